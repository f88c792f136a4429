package worksync

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/workmodel"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// envelope is one with a ConfigMap in a namespace, which is to be app.
func wrap(name, namespace string) string {
	return `{"apiVersion":"placement.kubernetes-fleet.io/v1beta1","kind":"ResourceEnvelope","metadata":{"name":"` + name + `","namespace":"app"},` +
		`"data":{"cm.yaml":{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"` + name + `","namespace":"` + namespace + `"}}}}`
}

// enveloped is a snapshot that also has these envelopes.
func enveloped(index int, envelopes ...string) []client.Object {
	parts := snapshot(index, 1)
	spec := &parts[0].(*placementv1beta1.ClusterResourceSnapshot).Spec
	for _, e := range envelopes {
		spec.SelectedResources = append(spec.SelectedResources, placementv1beta1.ResourceContent{RawExtension: runtime.RawExtension{Raw: []byte(e)}})
	}
	return parts
}

func workOf(envelope string) string {
	return placementv1beta1.EnvelopeWorkName("app", placementv1beta1.EnvelopeIdentifier{
		Type: placementv1beta1.ResourceEnvelopeType, Namespace: "app", Name: envelope,
	})
}

func TestTheWorkOfAnEnvelopeComesAndGoesWithIt(t *testing.T) {
	h := newHub(t, append(enveloped(0, wrap("a", "app"), wrap("b", "app")), enveloped(1, wrap("a", "app"))...)...)
	s := newSyncer(h)
	require.NoError(t, s.Sync(t.Context(), newBinding(0, 1)))
	assert.ElementsMatch(t, []string{"create app-work", "create " + workOf("a"), "create " + workOf("b")}, h.writes)
	assert.Contains(t, string(h.work(t, workOf("b")).Spec.Workload.Manifests[0].Raw), `"kind":"ConfigMap"`)
	assert.Len(t, h.work(t, "app-work").Spec.Workload.Manifests, 1, "the envelopes themselves are not sent")

	h.writes = nil
	require.NoError(t, s.Sync(t.Context(), newBinding(1, 2)))
	assert.ElementsMatch(t, []string{"patch app-work", "patch " + workOf("a")}, h.writes)
	h.applied(t, "app-work", workOf("a"))
	h.writes = nil
	require.NoError(t, s.Sync(t.Context(), newBinding(1, 2)))
	assert.Equal(t, []string{"delete " + workOf("b")}, h.writes)
}

func TestAnInvalidEnvelopeLeavesItsWorkAsItIs(t *testing.T) {
	h := newHub(t, append(enveloped(0, wrap("a", "app"), wrap("b", "app")), enveloped(1, wrap("a", "elsewhere"), wrap("b", "app"))...)...)
	s := newSyncer(h)
	require.NoError(t, s.Sync(t.Context(), newBinding(0, 1)))
	h.writes = nil
	var invalid *workmodel.InvalidError
	require.ErrorAs(t, s.Sync(t.Context(), newBinding(1, 2)), &invalid)
	assert.ErrorContains(t, invalid, `ResourceEnvelope app/a: key "cm.yaml": ConfigMap elsewhere/a is not in the namespace of the envelope`)
	assert.ElementsMatch(t, []string{"patch app-work", "patch " + workOf("b")}, h.writes, "the others are written")
	assert.Equal(t, "0", h.work(t, workOf("a")).Labels[placementv1beta1.ParentResourceSnapshotIndexLabel])

	h.applied(t, "app-work", workOf("b"))
	h.writes = nil
	require.ErrorAs(t, s.Sync(t.Context(), newBinding(1, 2)), &invalid)
	assert.Empty(t, h.writes, "nothing is written again, and nothing removed")
}
