package work

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/controllers/member/apply"
)

func TestARefusalThatTheSameChangeLiftsIsUnknown(t *testing.T) {
	object := func(kind, namespace, name string) placementv1beta1.WorkResourceIdentifier {
		return placementv1beta1.WorkResourceIdentifier{Version: "v1", Kind: kind, Namespace: namespace, Name: name}
	}
	seen := func(outcome fleetflowv1alpha1.RehearsalOutcome, id placementv1beta1.WorkResourceIdentifier) fleetflowv1alpha1.RehearsedObject {
		return fleetflowv1alpha1.RehearsedObject{Object: id, Outcome: outcome}
	}
	for name, c := range map[string]struct {
		by, message string
		before      fleetflowv1alpha1.RehearsedObject
		lifted      bool
	}{
		"the quota changes":           {"ResourceQuota q", "", seen(fleetflowv1alpha1.RehearsalChanges, object("ResourceQuota", "n", "q")), true},
		"the quota stays":             {"ResourceQuota q", "", seen(fleetflowv1alpha1.RehearsalSame, object("ResourceQuota", "n", "q")), false},
		"a quota of another name":     {"ResourceQuota q", "", seen(fleetflowv1alpha1.RehearsalChanges, object("ResourceQuota", "n", "r")), false},
		"a quota elsewhere":           {"ResourceQuota q", "", seen(fleetflowv1alpha1.RehearsalChanges, object("ResourceQuota", "m", "q")), false},
		"the Namespace's labels":      {"PodSecurity", "", seen(fleetflowv1alpha1.RehearsalChanges, object("Namespace", "", "n")), true},
		"limits":                      {"LimitRange", "", seen(fleetflowv1alpha1.RehearsalChanges, object("LimitRange", "n", "l")), true},
		"a policy":                    {"ValidatingAdmissionPolicy p", "", seen(fleetflowv1alpha1.RehearsalChanges, object("ValidatingAdmissionPolicy", "", "p")), true},
		"an account that comes":       {"the API server", `serviceaccount "sa" not found`, seen(fleetflowv1alpha1.RehearsalCreates, object("ServiceAccount", "n", "sa")), true},
		"an account elsewhere":        {"the API server", `serviceaccount "sa" not found`, seen(fleetflowv1alpha1.RehearsalCreates, object("ServiceAccount", "m", "sa")), false},
		"a priority class that comes": {"the API server", "no PriorityClass with name high was found", seen(fleetflowv1alpha1.RehearsalCreates, object("PriorityClass", "", "high")), true},
		"something else":              {"the API server", "it is invalid", seen(fleetflowv1alpha1.RehearsalCreates, object("ConfigMap", "n", "a")), false},
	} {
		found := apply.Rehearsal{RehearsedObject: fleetflowv1alpha1.RehearsedObject{
			Object: object("Pod", "n", "x"), Outcome: fleetflowv1alpha1.RehearsalRefused, By: c.by, Message: c.message,
		}}
		out := softened(found, nil, []fleetflowv1alpha1.RehearsedObject{c.before})
		if !c.lifted {
			assert.Equal(t, found, out, name)
			continue
		}
		assert.Equal(t, fleetflowv1alpha1.RehearsalUnknown, out.Outcome, name)
		assert.Contains(t, out.Message, "it comes after "+c.before.Object.Kind+" "+c.before.Object.Name, name)
	}
}

func TestAnObjectOfAKindOfTheSameChangeIsJudgedByTheDefinition(t *testing.T) {
	definition := &unstructured.Unstructured{Object: map[string]any{
		"kind": "CustomResourceDefinition", "metadata": map[string]any{"name": "widgets.a.b"},
		"spec": map[string]any{"group": "a.b", "scope": "Namespaced", "names": map[string]any{"kind": "Widget"}, "versions": []any{
			map[string]any{"name": "v1", "served": true}, map[string]any{"name": "v2", "served": false},
		}},
	}}
	earlier := []fleetflowv1alpha1.RehearsedObject{{
		Outcome: fleetflowv1alpha1.RehearsalCreates, Object: placementv1beta1.WorkResourceIdentifier{Kind: "CustomResourceDefinition", Name: "widgets.a.b"},
	}}
	for version, want := range map[string]fleetflowv1alpha1.RehearsalOutcome{
		"v1": fleetflowv1alpha1.RehearsalUnknown, "v2": fleetflowv1alpha1.RehearsalRefused, "v3": fleetflowv1alpha1.RehearsalRefused,
	} {
		found := apply.Rehearsal{RehearsedObject: fleetflowv1alpha1.RehearsedObject{
			Object:  placementv1beta1.WorkResourceIdentifier{Group: "a.b", Version: version, Kind: "Widget", Namespace: "n", Name: "x"},
			Outcome: fleetflowv1alpha1.RehearsalRefused, By: "the API server",
		}}
		assert.Equal(t, want, softened(found, definition, earlier).Outcome, version)
		assert.Equal(t, fleetflowv1alpha1.RehearsalRefused, softened(found, definition, nil).Outcome, "the definition is not written")
	}
	elsewhere := apply.Rehearsal{RehearsedObject: fleetflowv1alpha1.RehearsedObject{
		Object:  placementv1beta1.WorkResourceIdentifier{Group: "a.b", Version: "v1", Kind: "Widget", Name: "x"},
		Outcome: fleetflowv1alpha1.RehearsalRefused, By: "the API server",
	}}
	assert.Contains(t, softened(elsewhere, definition, earlier).Message, "scope")
}

func TestAChangeMayUseUpAQuotaByItself(t *testing.T) {
	quota := func(hard, used corev1.ResourceList) corev1.ResourceQuota {
		return corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "q"}, Status: corev1.ResourceQuotaStatus{Hard: hard, Used: used}}
	}
	id := func(group, resource string) placementv1beta1.WorkResourceIdentifier {
		return placementv1beta1.WorkResourceIdentifier{Group: group, Resource: resource}
	}
	created := []placementv1beta1.WorkResourceIdentifier{id("", "configmaps"), id("apps", "deployments"), id("", "configmaps"), id("apps", "deployments")}
	amount := resource.MustParse
	assert.Equal(t, map[int]string{2: "q"}, overQuota([]corev1.ResourceQuota{
		quota(corev1.ResourceList{"configmaps": amount("2")}, corev1.ResourceList{"configmaps": amount("1")}),
	}, created))
	assert.Equal(t, map[int]string{1: "q", 3: "q"}, overQuota([]corev1.ResourceQuota{
		quota(corev1.ResourceList{"count/deployments.apps": amount("1")}, corev1.ResourceList{"count/deployments.apps": amount("1")}),
	}, created))
	scoped := quota(corev1.ResourceList{"configmaps": amount("0")}, nil)
	scoped.Spec.Scopes = []corev1.ResourceQuotaScope{corev1.ResourceQuotaScopeBestEffort}
	assert.Empty(t, overQuota([]corev1.ResourceQuota{scoped}, created))
	require.Empty(t, overQuota(nil, created))
}
