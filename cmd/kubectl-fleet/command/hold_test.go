package command

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	"github.com/fleetflow/fleetflow/cmd/internal/fleetview"
)

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
