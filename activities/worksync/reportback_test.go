package worksync

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

func TestWorksSayWhatIsToBeReportedBack(t *testing.T) {
	mirror := &placementv1beta1.ReportBackStrategy{
		Type: placementv1beta1.ReportBackStrategyTypeMirror, Destination: new(placementv1beta1.ReportBackDestinationWorkAPI),
	}
	disabled := &placementv1beta1.ReportBackStrategy{Type: placementv1beta1.ReportBackStrategyTypeDisabled}
	for name, tc := range map[string]struct {
		strategy *placementv1beta1.RolloutStrategy
		want     *placementv1beta1.ReportBackStrategy
	}{
		"what the placement wants":      {&placementv1beta1.RolloutStrategy{ReportBackStrategy: mirror}, mirror},
		"nothing if that is disabled":   {&placementv1beta1.RolloutStrategy{ReportBackStrategy: disabled}, nil},
		"nothing if it does not say":    {&placementv1beta1.RolloutStrategy{}, nil},
		"nothing if nothing is special": {nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			placement := &placementv1beta1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: "app", UID: placementUID}}
			placement.Spec.Strategy = tc.strategy
			h := newHub(t, append(snapshot(0, 1), placement)...)
			require.NoError(t, newSyncer(h).Sync(t.Context(), newBinding(0, 1)))
			assert.Equal(t, tc.want, h.work(t, "app-work").Spec.ReportBackStrategy)
		})
	}
}

func TestWorksSayWhichValuesGoAlongAndBringThoseThatCame(t *testing.T) {
	placement := &placementv1beta1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: "app", UID: placementUID}}
	placement.Spec.Strategy = &placementv1beta1.RolloutStrategy{Failover: &placementv1beta1.FailoverStrategy{Cluster: &placementv1beta1.ClusterFailover{
		PurgeMode:         placementv1beta1.PurgeDirectly,
		StatePreservation: &placementv1beta1.StatePreservation{Rules: []placementv1beta1.StatePreservationRule{{AliasLabelName: "job", JSONPath: "{.job}"}}},
	}}}
	parts := snapshot(0, 1)
	parts[0].(*placementv1beta1.ClusterResourceSnapshot).Spec.SelectedResources[0].Raw = []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"n","name":"m"}}`)
	h := newHub(t, append(parts, placement)...)
	syncer := newSyncer(h)
	b := newBinding(0, 1)
	require.NoError(t, syncer.Sync(t.Context(), b))
	work := h.work(t, "app-work")
	assert.Equal(t, []string{"{.job}"}, work.Spec.ReportState)

	state := rules.PreservedState{{Kind: "ConfigMap", Namespace: "n", Name: "m"}: {"job": "7"}}
	metav1.SetMetaDataAnnotation(&b.ObjectMeta, placementv1beta1.PreservedStateAnnotation, state.Encode())
	require.NoError(t, syncer.Sync(t.Context(), b))
	object := &unstructured.Unstructured{}
	require.NoError(t, object.UnmarshalJSON(h.work(t, "app-work").Spec.Workload.Manifests[0].Raw))
	assert.Equal(t, "7", object.GetLabels()["job"])
}
