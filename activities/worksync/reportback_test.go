package worksync

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
