package workmodel

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	"github.com/fleetflow/fleetflow/activities/envelope"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

const (
	namespaceApp     = `{apiVersion: v1, kind: Namespace, metadata: {name: app}}`
	resourceEnvelope = `
apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: ResourceEnvelope
metadata: {name: example, namespace: app}
data:
  deploy.yaml: {apiVersion: apps/v1, kind: Deployment, metadata: {name: ingress, namespace: app}, spec: {replicas: 1}}
  cm.yaml: {apiVersion: v1, kind: ConfigMap, metadata: {name: config, namespace: app}, data: {foo: bar}}`
	clusterEnvelope = `
apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: ClusterResourceEnvelope
metadata: {name: example}
data:
  webhook.yaml: {apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: guard}}`
	brokenEnvelope = `
apiVersion: v1
kind: ConfigMap
metadata: {name: broken, namespace: app, annotations: {kubernetes-fleet.io/envelope-configmap: "true"}}
data: {quota.yaml: "kind: ResourceQuota\n metadata: {"}`
)

// partsOf is a snapshot with resources in YAML, one list for each part.
func partsOf(t *testing.T, resources ...[]string) []placementv1beta1.ResourceSnapshotObject {
	t.Helper()
	parts := snapshotParts(len(resources))
	for i := range parts {
		spec := parts[i].GetResourceSnapshotSpec()
		spec.SelectedResources = nil
		for _, resource := range resources[i] {
			raw, err := yaml.YAMLToJSONStrict([]byte(resource))
			require.NoError(t, err)
			spec.SelectedResources = append(spec.SelectedResources,
				placementv1beta1.ResourceContent{RawExtension: runtime.RawExtension{Raw: raw}})
		}
	}
	return parts
}

func generate(t *testing.T, content *Content) []placementv1beta1.Work {
	t.Helper()
	works, err := Generate(binding(), content)
	require.NoError(t, err)
	return works
}

func names(works []placementv1beta1.Work) []string {
	var out []string
	for i := range works {
		out = append(out, works[i].Name)
	}
	return out
}

func TestEveryEnvelopeGetsAWork(t *testing.T) {
	content := NewContent(envelope.Rules{}, partsOf(t, []string{namespaceApp, resourceEnvelope}, []string{clusterEnvelope}))
	require.NoError(t, content.Invalid())
	golden(t, "works-envelopes.yaml", generate(t, content))
}

func TestTheWorkOfAnEnvelopeKeepsItsNameWhereverItsSnapshotIsSplit(t *testing.T) {
	together := generate(t, NewContent(envelope.Rules{}, partsOf(t, []string{namespaceApp, resourceEnvelope})))
	apart := generate(t, NewContent(envelope.Rules{}, partsOf(t, []string{namespaceApp}, []string{resourceEnvelope})))
	assert.Equal(t, together[1].Name, apart[2].Name)
	assert.Equal(t, []string{"crp-1-work", "crp-1-1"}, names(apart[:2]))
}

func TestALongNameOfAnEnvelopeIsCutInItsLabel(t *testing.T) {
	name := strings.Repeat("a", 53) + "." + strings.Repeat("b", 30)
	works := generate(t, NewContent(envelope.Rules{}, partsOf(t, []string{strings.Replace(clusterEnvelope, "name: example", "name: "+name, 1)})))
	label := works[1].Labels[placementv1beta1.EnvelopeNameLabel]
	assert.Empty(t, validation.IsValidLabelValue(label))
	assert.NotEqual(t, name, label)
	assert.Equal(t, name, envelopeOf(&works[1]).Name, "the status names the envelope in full")
}

func TestAnInvalidEnvelopeKeepsNoOtherWorkFromBeingWritten(t *testing.T) {
	content := NewContent(envelope.Rules{}, partsOf(t, []string{namespaceApp, brokenEnvelope, resourceEnvelope}))
	var invalid *InvalidError
	require.ErrorAs(t, content.Invalid(), &invalid)
	assert.ErrorContains(t, invalid, `ConfigMap app/broken: key "quota.yaml": it is neither YAML nor JSON`)
	works := generate(t, content)
	require.Len(t, works, 2)
	for i := range works {
		assert.Equal(t, "3", works[i].Annotations[placementv1beta1.WorkCountAnnotation], "it counts nevertheless")
		works[i].Generation = 2
	}
	reportUp(works)
	assert.Equal(t, ClusterState{}, StateOf(binding(), works), "the cluster does not have all it should have")
	golden(t, "binding-invalid-envelope.yaml", BindingStatus(binding(), works, invalid, now))
}

func TestAnObjectIsInOneWorkOnly(t *testing.T) {
	const config = `{apiVersion: v1, kind: ConfigMap, metadata: {name: config, namespace: app}}`
	cases := map[string]struct {
		resources []string
		want      string
	}{
		"not selected and in an envelope": {[]string{config, resourceEnvelope},
			`ResourceEnvelope app/example: key "cm.yaml": ConfigMap app/config is selected by the placement itself as well`},
		"not in two envelopes": {[]string{resourceEnvelope, strings.Replace(resourceEnvelope, "name: example", "name: second", 1)},
			`ResourceEnvelope app/second: key "cm.yaml": ConfigMap app/config is in ResourceEnvelope app/example as well: remove it from one of the two; key "deploy.yaml"`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			require.ErrorContains(t, NewContent(envelope.Rules{}, partsOf(t, tc.resources)).Invalid(), tc.want)
		})
	}
}

// The failed placements that KubeFleet's documentation prints for objects in
// envelopes, with the group and version of the Deployment where a status has them.
func TestAFailedObjectIsReportedWithItsEnvelope(t *testing.T) {
	const (
		printedNamespaced = `
condition: {lastTransitionTime: "2023-12-06T00:09:53Z", message: 'Failed to apply manifest: namespaces "app" not found', reason: AppliedManifestFailedReason, status: "False", type: Applied}
envelope: {name: example, namespace: app, type: ResourceEnvelope}
group: apps
kind: Deployment
name: ingress
namespace: app
version: v1`
		printedClusterScoped = `
condition: {lastTransitionTime: "2023-12-06T00:09:53Z", message: 'Failed to apply manifest: service "guard" not found in namespace "ops"', reason: AppliedManifestFailedReason, status: "False", type: Applied}
envelope: {name: example, type: ClusterResourceEnvelope}
kind: ValidatingWebhookConfiguration
name: guard
group: admissionregistration.k8s.io
version: v1`
	)
	cases := map[string]struct {
		resources []string
		failed    placementv1beta1.WorkResourceIdentifier
		printed   string
	}{
		"in a ResourceEnvelope": {[]string{namespaceApp, resourceEnvelope},
			placementv1beta1.WorkResourceIdentifier{Ordinal: 1, Group: "apps", Version: "v1", Kind: "Deployment", Resource: "deployments", Namespace: "app", Name: "ingress"}, printedNamespaced},
		"in a ClusterResourceEnvelope": {[]string{clusterEnvelope},
			placementv1beta1.WorkResourceIdentifier{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "ValidatingWebhookConfiguration", Resource: "validatingwebhookconfigurations", Name: "guard"}, printedClusterScoped},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var want placementv1beta1.FailedResourcePlacement
			require.NoError(t, yaml.UnmarshalStrict([]byte(tc.printed), &want))
			works := generate(t, NewContent(envelope.Rules{}, partsOf(t, tc.resources)))
			reportUp(works[:1])
			report(&works[1], placementv1beta1.ConditionTypeApplied, metav1.ConditionFalse, placementv1beta1.ReasonSomeManifestsAreNotApplied)
			works[1].Status.ManifestConditions = []placementv1beta1.ManifestCondition{{Identifier: tc.failed, Conditions: []metav1.Condition{want.Condition}}}

			status := BindingStatus(binding(), works, nil, now)
			require.Len(t, status.FailedPlacements, 1)
			assert.Empty(t, cmp.Diff(want, status.FailedPlacements[0]))
			assert.Equal(t, "Work object "+works[1].Name+" has failed to apply", status.Conditions[3].Message)
		})
	}
}

func TestDriftedAndDiffedObjectsAreReportedWithTheirEnvelope(t *testing.T) {
	works := generate(t, NewContent(envelope.Rules{}, partsOf(t, []string{namespaceApp, resourceEnvelope})))
	reportUp(works)
	works[1].Status.ManifestConditions = []placementv1beta1.ManifestCondition{
		{Identifier: placementv1beta1.WorkResourceIdentifier{Version: "v1", Kind: "ConfigMap", Name: "config", Namespace: "app"}, DriftDetails: &placementv1beta1.DriftDetails{}},
		{Identifier: placementv1beta1.WorkResourceIdentifier{Group: "apps", Version: "v1", Kind: "Deployment", Name: "ingress", Namespace: "app"}, DiffDetails: &placementv1beta1.DiffDetails{}},
	}
	status := BindingStatus(binding(), works, nil, now)
	require.Len(t, status.DriftedPlacements, 1)
	require.Len(t, status.DiffedPlacements, 1)
	want := &placementv1beta1.EnvelopeIdentifier{Name: "example", Namespace: "app", Type: placementv1beta1.ResourceEnvelopeType}
	assert.Equal(t, want, status.DriftedPlacements[0].Envelope)
	assert.Equal(t, want, status.DiffedPlacements[0].Envelope)
}
