package placement

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/fleetflow/fleetflow/activities/envelope"
	"github.com/fleetflow/fleetflow/activities/snapshot"
	"github.com/fleetflow/fleetflow/activities/workmodel"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/test/fixture"
)

func sample(t *testing.T, name string, into any) {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("..", "..", "..", "deploy", "samples", "how-tos", "envelopes", name))
	require.NoError(t, err)
	require.NoError(t, yaml.UnmarshalStrict(content, into))
}

// enveloped is the situation of a placement on one cluster, with a snapshot of these
// objects and Works that were applied but for one object of an envelope.
func enveloped(t *testing.T, failed placementv1beta1.FailedResourcePlacement, objects ...*unstructured.Unstructured) (situation, []placementv1beta1.ResourceSnapshotObject) {
	t.Helper()
	s := newSituation("kind-cluster-1").bound(0, up, "kind-cluster-1")
	var items []snapshot.Item
	for _, object := range objects {
		item, err := snapshot.Encode(object)
		require.NoError(t, err)
		items = append(items, item)
	}
	parts := snapshot.Group(s.Placement, 0, snapshot.NewContent(items))
	binding := s.binding("kind-cluster-1")
	works, err := workmodel.Generate(binding, workmodel.NewContent(envelope.Rules{}, parts))
	require.NoError(t, err)
	require.Len(t, works, 2)
	for i := range works {
		works[i].Status.Conditions = []metav1.Condition{{Type: placementv1beta1.ConditionTypeApplied, Status: metav1.ConditionTrue, Reason: "Applied"}}
	}
	works[1].Status.Conditions[0].Status = metav1.ConditionFalse
	works[1].Status.ManifestConditions = []placementv1beta1.ManifestCondition{{
		Identifier: placementv1beta1.WorkResourceIdentifier{
			Group: failed.Group, Version: failed.Version, Kind: failed.Kind, Namespace: failed.Namespace, Name: failed.Name,
		},
		Conditions: []metav1.Condition{failed.Condition},
	}}
	binding.Status = workmodel.BindingStatus(binding, works, nil, now)
	return s, parts
}

// The statuses that the documentation prints for objects in envelopes that could not
// be applied: the envelope is selected, the object in it has failed.
func TestObjectsInEnvelopesAreReportedAsPrinted(t *testing.T) {
	cases := map[string]struct {
		envelope, printed string
		namespace         bool
	}{
		"in a ResourceEnvelope": {
			envelope: "resource-envelope.yaml", printed: "placement-resource-envelope-failed-status.yaml", namespace: true},
		"in a ClusterResourceEnvelope": {
			envelope: "cluster-resource-envelope.yaml", printed: "placement-cluster-resource-envelope-failed-status.yaml"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var printed placementv1beta1.ClusterResourcePlacement
			sample(t, tc.printed, &printed)
			wrapped := &unstructured.Unstructured{}
			sample(t, tc.envelope, &wrapped.Object)
			objects := []*unstructured.Unstructured{wrapped}
			if tc.namespace {
				objects = append(objects, &unstructured.Unstructured{Object: map[string]any{
					"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "app"},
				}})
			}
			want := printed.Status.PerClusterPlacementStatuses[0].FailedPlacements
			s, parts := enveloped(t, want[0], objects...)

			scheme := fixture.Scheme(t)
			selected, err := newSelectionCache(fixture.NewClientBuilder(scheme).WithObjects(parts[0]).Build()).listSelected(t.Context(), s.Placement, s.Latest)
			require.NoError(t, err)
			status := Project(s.Facts, View{Selected: selected, Now: now})
			assert.Empty(t, cmp.Diff(printed.Status.SelectedResources, status.SelectedResources))
			assert.Empty(t, cmp.Diff(want, status.PerClusterPlacementStatuses[0].FailedPlacements))
		})
	}
}
