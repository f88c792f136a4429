package steer

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	"github.com/fleetflow/fleetflow/cmd/internal/fleetview"
)

func TestAHoldIsWhatItsFlagsSay(t *testing.T) {
	now := time.Date(2026, 11, 22, 12, 0, 0, 500, time.UTC)
	all, err := (&hold{name: "incident", message: "payments down"}).newHold(now)
	require.NoError(t, err)
	assert.Equal(t, fleetflowv1alpha1.RolloutHoldSpec{Message: "payments down"}, all.Spec)
	assert.Equal(t, "the whole fleet", fleetview.HoldCover(&all.Spec))

	part, err := (&hold{lasts: 2 * time.Hour, clusters: "region in (west,east)", placements: "team=web", rollbacks: true, message: "storm"}).newHold(now)
	require.NoError(t, err)
	assert.Regexp(t, "^hold-[a-z0-9]{5}$", part.Name)
	assert.Equal(t, fleetflowv1alpha1.RolloutHoldSpec{
		Message: "storm", Rollbacks: fleetflowv1alpha1.RollbacksExempt, ExpirationTime: &metav1.Time{Time: time.Date(2026, 11, 22, 14, 0, 0, 0, time.UTC)},
		ClusterSelector: &metav1.LabelSelector{MatchLabels: map[string]string{}, MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: "region", Operator: metav1.LabelSelectorOpIn, Values: []string{"east", "west"}},
		}},
		PlacementSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"team": "web"}, MatchExpressions: []metav1.LabelSelectorRequirement{}},
	}, part.Spec)
	assert.Equal(t, "clusters region in (east,west), placements team=web", fleetview.HoldCover(&part.Spec))
}

func TestAHoldIsRefusedThatSaysNothing(t *testing.T) {
	_, err := (&hold{lasts: -time.Hour, message: "r"}).newHold(time.Now())
	assert.EqualError(t, err, "--for -1h0m0s is in the past: use a duration such as 2h")
	_, err = (&hold{clusters: "region=(west", message: "r"}).newHold(time.Now())
	assert.ErrorContains(t, err, `--clusters "region=(west" is no label selector, such as region=west`)
}
