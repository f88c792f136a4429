//go:build integration

package member

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/test/devfleet/access"
	"github.com/fleetflow/fleetflow/test/onemember"
)

func definition(group string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": "widgets." + group},
		"spec": map[string]any{
			"group": group, "scope": "Namespaced",
			"names": map[string]any{"kind": "Widget", "plural": "widgets"},
			"versions": []any{map[string]any{
				"name": "v1", "served": true, "storage": true,
				"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
			}},
		},
	}}
}

func kindVanishes(s *spec) {
	group := s.name + ".example.com"
	widget := map[string]any{
		"apiVersion": group + "/v1", "kind": "Widget", "metadata": map[string]any{"namespace": s.name, "name": "w"},
	}
	s.place(s.configMap("a", "v"), widget)
	s.awaitRefused(s.name, "w", "The cluster has no kind Widget in "+group+"/v1", "CustomResourceDefinition")
	s.awaitValue("a", "v")

	require.NoError(s, rig.Member.Create(s.ctx, definition(group)))
	s.awaitAvailable(s.name)

	require.NoError(s, rig.Member.Delete(s.ctx, definition(group)))
	s.awaitRefused(s.name, "w", "The cluster has no kind Widget in "+group+"/v1", "CustomResourceDefinition")

	require.NoError(s, rig.Member.Create(s.ctx, definition(group)))
	s.awaitAvailable(s.name)
}

// scopeContradicted is how an author of namespaced objects would get cluster-scoped ones: the hub does not know the
// kind, and the member's API server would drop the namespace.
func scopeContradicted(s *spec) {
	group := s.name + ".example.com"
	kind := definition(group)
	require.NoError(s, unstructured.SetNestedField(kind.Object, "Cluster", "spec", "scope"))
	require.NoError(s, rig.Member.Create(s.ctx, kind))
	widget := map[string]any{
		"apiVersion": group + "/v1", "kind": "Widget", "metadata": map[string]any{"namespace": s.name, "name": "w"},
	}
	work := s.place(s.configMap("a", "v"), widget)
	s.awaitRefused(s.name, "w", "cluster-scoped on this cluster", "remove metadata.namespace")
	s.awaitValue("a", "v")
	live := &unstructured.Unstructured{}
	live.SetAPIVersion(group + "/v1")
	live.SetKind("Widget")
	require.True(s, apierrors.IsNotFound(rig.Member.Get(s.ctx, client.ObjectKey{Name: "w"}, live)))

	delete(widget["metadata"].(map[string]any), "namespace")
	s.replaceManifests(work, s.configMap("a", "v"), widget)
	s.awaitAvailable(s.name)
	require.NoError(s, rig.Member.Get(s.ctx, client.ObjectKey{Name: "w"}, live))
}

func finalizersOfOthers(s *spec) {
	work := s.place(s.configMap("held", "v"), s.configMap("free", "v"))
	s.awaitAvailable(s.name)
	const finalizer = "example.com/others"
	held := &corev1.ConfigMap{}
	key := client.ObjectKey{Namespace: s.name, Name: "held"}
	require.NoError(s, rig.Member.Get(s.ctx, key, held))
	held.Finalizers = append(held.Finalizers, finalizer)
	require.NoError(s, rig.Member.Update(s.ctx, held))

	require.NoError(s, rig.Hub.Delete(s.ctx, work))
	require.NoError(s, access.AwaitGone[corev1.ConfigMap](s.ctx, rig.Member, client.ObjectKey{Namespace: s.name, Name: "free"}))
	_, err := access.Await(s.ctx, rig.Member, key, func(m *corev1.ConfigMap) string {
		if m.DeletionTimestamp == nil {
			return "it is not being deleted"
		}
		return ""
	})
	require.NoError(s, err)
	require.NoError(s, rig.Hub.Get(s.ctx, onemember.Key(s.name), work), "the Work is held as long as the object is")

	require.NoError(s, rig.Member.Get(s.ctx, key, held))
	held.Finalizers = slices.DeleteFunc(held.Finalizers, func(f string) bool { return f == finalizer })
	require.NoError(s, rig.Member.Update(s.ctx, held))
	require.NoError(s, access.AwaitGone[placementv1beta1.Work](s.ctx, rig.Hub, onemember.Key(s.name)))
}

func refusals(s *spec) {
	for what, how := range map[string]struct {
		stands []client.Object
		words  []string
	}{
		"policy":  {s.policy(), []string{"not in my cluster", placementv1beta1.ReasonManifestApplyFailed}},
		"webhook": {s.webhook(), []string{"failed calling webhook", s.name + ".example.com", placementv1beta1.ReasonManifestApplyFailed}},
	} {
		for _, object := range how.stands {
			s.Cleanup(func() { _ = rig.Member.Delete(context.WithoutCancel(s.ctx), object) }) // as a rule it is gone
			require.NoError(s, rig.Member.Create(s.ctx, object))
		}
		s.awaitRejected(what)
		name := s.name + "-" + what
		require.NoError(s, rig.Hub.Create(s.ctx, onemember.Work(name, s.configMap(what+"-refused", "v"), onemember.NamespaceOf(name))))
		s.awaitRefused(name, what+"-refused", how.words...)
		require.NoError(s, rig.Member.Get(s.ctx, client.ObjectKey{Name: name}, &corev1.Namespace{}), "what is not refused is applied")
		for _, object := range how.stands {
			require.NoError(s, rig.Member.Delete(s.ctx, object))
		}
		s.awaitAvailable(name)
	}
}

// awaitRejected waits until the API server refuses what is to be refused: it learns of policies a while later.
func (s *spec) awaitRejected(prefix string) {
	s.Helper()
	require.Eventually(s, func() bool {
		m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.name, Name: prefix + "-refused"}}
		return rig.Member.Create(s.ctx, m, client.DryRunAll) != nil
	}, patience, pollEvery)
}

// policy refuses ConfigMaps whose names say so.
func (s *spec) policy() []client.Object {
	meta := metav1.ObjectMeta{Name: s.name + ".policy.example.com"}
	fail := admissionv1.Fail
	all := admissionv1.NamespacedScope
	return []client.Object{
		&admissionv1.ValidatingAdmissionPolicy{ObjectMeta: meta, Spec: admissionv1.ValidatingAdmissionPolicySpec{
			FailurePolicy: &fail,
			MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{
				RuleWithOperations: admissionv1.RuleWithOperations{
					Operations: []admissionv1.OperationType{admissionv1.Create},
					Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}, Scope: &all},
				},
			}}},
			Validations: []admissionv1.Validation{{Expression: `object.metadata.name != "policy-refused"`, Message: "not in my cluster"}},
		}},
		&admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: meta, Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: meta.Name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
		}},
	}
}

// webhook cannot be reached and must not be passed by.
func (s *spec) webhook() []client.Object {
	fail := admissionv1.Fail
	none := admissionv1.SideEffectClassNone
	url := "https://127.0.0.1:1/refuse"
	return []client.Object{&admissionv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: s.name + ".webhook.example.com"},
		Webhooks: []admissionv1.ValidatingWebhook{{
			Name: "refuse." + s.name + ".example.com", FailurePolicy: &fail, SideEffects: &none, AdmissionReviewVersions: []string{"v1"},
			ClientConfig:      admissionv1.WebhookClientConfig{URL: &url},
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: s.name}},
			Rules: []admissionv1.RuleWithOperations{{
				Operations: []admissionv1.OperationType{admissionv1.Create},
				Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
			}},
		}},
	}}
}

func largestWork(s *spec) {
	objects := []map[string]any{s.configMap("one-large", strings.Repeat("x", 900<<10))}
	for i := range 40 {
		objects = append(objects, s.configMap(fmt.Sprintf("many-%02d", i), strings.Repeat("y", 12<<10)))
	}
	s.place(objects...)
	work := s.awaitAvailable(s.name)
	s.awaitValue("many-39", strings.Repeat("y", 12<<10))

	// One byte more than fits is said by the hub, not by the member; what is there can be changed and removed.
	s.replaceManifests(work, append(objects[:20], s.configMap("one-large", strings.Repeat("z", 900<<10)))[1:]...)
	s.awaitAvailable(s.name)
	s.awaitValue("one-large", strings.Repeat("z", 900<<10))
	require.NoError(s, access.AwaitGone[corev1.ConfigMap](s.ctx, rig.Member, client.ObjectKey{Namespace: s.name, Name: "many-39"}))
	require.NoError(s, rig.Hub.Delete(s.ctx, work))
	require.NoError(s, access.AwaitGone[placementv1beta1.Work](s.ctx, rig.Hub, onemember.Key(s.name)))
}

// creationRace asks the API server for what the apply engine relies on when it creates server-side.
func creationRace(s *spec) {
	work := onemember.Work(s.name, s.configMap("a", "v"))
	work.Spec.ApplyStrategy = &placementv1beta1.ApplyStrategy{
		Type: placementv1beta1.ApplyStrategyTypeServerSideApply, WhenToTakeOver: placementv1beta1.WhenToTakeOverTypeNever,
	}
	require.NoError(s, rig.Hub.Create(s.ctx, work))
	s.awaitAvailable(s.name)

	object := &unstructured.Unstructured{Object: s.configMap("a", "other")}
	object.SetResourceVersion("1") // at which no object ever stands
	err := rig.Member.Apply(s.ctx, client.ApplyConfigurationFromUnstructured(object), client.FieldOwner("other"), client.ForceOwnership)
	assert.True(s, apierrors.IsConflict(err), "an apply at a version at which no object stands does not change one that is there: %v", err)
	s.awaitValue("a", "v")
}

// claimsGo needs the volume controllers of the local fleet: an API server makes each claim and volume wait for them.
func claimsGo(s *spec) {
	claim := func(name string) map[string]any {
		return map[string]any{
			"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": map[string]any{"namespace": s.name, "name": name},
			"spec": map[string]any{
				"accessModes": []any{"ReadWriteOnce"}, "storageClassName": "", "volumeName": s.name,
				"resources": map[string]any{"requests": map[string]any{"storage": "1Mi"}},
			},
		}
	}
	volume := map[string]any{
		"apiVersion": "v1", "kind": "PersistentVolume", "metadata": map[string]any{"name": s.name},
		"spec": map[string]any{
			"accessModes": []any{"ReadWriteOnce"}, "storageClassName": "", "capacity": map[string]any{"storage": "1Mi"},
			"hostPath": map[string]any{"path": "/nowhere"},
		},
	}
	work := s.place(volume, claim("placed"))
	s.awaitAvailable(s.name)
	require.NoError(s, rig.Hub.Delete(s.ctx, work))
	require.NoError(s, access.AwaitGone[placementv1beta1.Work](s.ctx, rig.Hub, onemember.Key(s.name)), "the Work waits for the claim and the volume")

	require.NoError(s, rig.Member.Create(s.ctx, &unstructured.Unstructured{Object: claim("forgotten")}))
	require.NoError(s, rig.Member.Delete(s.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.name}}))
	require.NoError(s, access.AwaitGone[corev1.Namespace](s.ctx, rig.Member, client.ObjectKey{Name: s.name}))
}
