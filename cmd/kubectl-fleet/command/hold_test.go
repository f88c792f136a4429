package command

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	"github.com/fleetflow/fleetflow/cmd/internal/fleetview"
)

func TestAHoldIsWhatItsFlagsSay(t *testing.T) {
	now := time.Date(2026, 11, 22, 12, 0, 0, 500, time.UTC)
	all, err := (&holding{name: "incident"}).object("payments down", now)
	require.NoError(t, err)
	assert.Equal(t, fleetflowv1alpha1.RolloutHoldSpec{Message: "payments down"}, all.Spec)
	assert.Equal(t, "the whole fleet", fleetview.HoldCover(&all.Spec))

	part, err := (&holding{lasts: 2 * time.Hour, clusters: "region in (west,east)", placements: "team=web", rollbacks: true}).object("storm", now)
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
	_, err := (&holding{lasts: -time.Hour}).object("r", time.Now())
	assert.EqualError(t, err, "--for -1h0m0s is in the past: use a duration such as 2h")
	_, err = (&holding{clusters: "region=(west"}).object("r", time.Now())
	assert.ErrorContains(t, err, `--clusters "region=(west" is no label selector, such as region=west`)
}

func TestTheTableOfHoldsTellsHowFarTheLineIsStopped(t *testing.T) {
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	hold := &fleetflowv1alpha1.RolloutHold{ObjectMeta: metav1.ObjectMeta{Name: "incident"}, Spec: fleetflowv1alpha1.RolloutHoldSpec{Message: "payments down"}}
	hold.Status.HeldRuns = 3
	hold.Status.InFlight = 2
	assert.Equal(t, []string{"incident", "the whole fleet", "stopping", "3", "0", "2", "", "payments down"}, cellsOf(fleetview.HoldColumns, fleetview.HoldOf(hold, now)))
	hold.Status.InFlight = 0
	hold.Status.Conditions = []metav1.Condition{{Type: fleetflowv1alpha1.ConditionTypeQuiet, Status: metav1.ConditionTrue}}
	assert.Equal(t, "quiet", cellsOf(fleetview.HoldColumns, fleetview.HoldOf(hold, now))[2])
	hold.Spec.ExpirationTime = &metav1.Time{Time: now}
	assert.Equal(t, []string{"expired", "2026-11-22T12:00:00Z"}, []string{cellsOf(fleetview.HoldColumns, fleetview.HoldOf(hold, now))[2], cellsOf(fleetview.HoldColumns, fleetview.HoldOf(hold, now))[6]})
}

func TestHoldsGoByTheClockOfTheCommand(t *testing.T) {
	c := newConsole(t)
	require.NoError(t, c.run("hold", "payments down", "--for", "2h", "--name", "incident", "--yes"))
	var hold fleetflowv1alpha1.RolloutHold
	require.NoError(t, c.hub.Get(t.Context(), client.ObjectKey{Name: "incident"}, &hold))
	require.NotNil(t, hold.Spec.ExpirationTime)
	assert.True(t, hold.Spec.ExpirationTime.Equal(&metav1.Time{Time: now.Add(2 * time.Hour)}), hold.Spec.ExpirationTime)
	require.NoError(t, c.run("get", "holds"))
	assert.NotContains(t, c.out.String(), "expired")
}
