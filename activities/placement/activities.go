package placement

import (
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/attempt"
	"github.com/fleetflow/fleetflow/activities/bind"
	"github.com/fleetflow/fleetflow/activities/selection"
)

// Activities are the activities of the placement workflow.
type Activities struct {
	// Client writes.
	Client client.Client
	// Live reads from the API server, past every cache.
	Live client.Reader
	// Selector resolves resource selectors.
	Selector *selection.Selector
	// Clock stamps conditions.
	Clock clock.Clock
	// FleetReads bounds the copies of the fleet that this process holds at the same time.
	FleetReads attempt.Limit
	// Catch holds removals that nothing explains; with nil none is held.
	Catch *bind.SafetyCatch
}

// NewActivities returns the activities of the placement workflow.
func NewActivities(c client.Client, live client.Reader, selector *selection.Selector, clk clock.Clock) *Activities {
	return &Activities{Client: c, Live: live, Selector: selector, Clock: clk}
}
