package scheduler_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/fleetflow/fleetflow/activities/scheduler"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// The status of a placement has a row for each slot that is not filled, as far as there are reasons: also after a change by which
// clusters that had it lose it.
func TestEachClusterThatAChangeTakesAwayIsExplained(t *testing.T) {
	clusters := fleet(cluster("a"), cluster("b"), cluster("c"))
	for name, tc := range map[string]struct {
		policy   *placementv1beta1.PlacementPolicy
		bindings []scheduler.Binding
		selected int
	}{
		"none matches any more":               {policy: requiring(pickN(3), prod()), bindings: []scheduler.Binding{with(bound("a"), old), with(bound("b"), old), with(bound("c"), old)}},
		"none matches any more, some going":   {policy: requiring(pickN(3), prod()), bindings: []scheduler.Binding{with(with(bound("a"), old), unscheduled), with(bound("b"), old), with(with(bound("c"), old), terminating)}},
		"none matches, none had it":           {policy: requiring(pickN(3), prod())},
		"one had it":                          {policy: requiring(pickN(3), prod()), bindings: []scheduler.Binding{with(bound("a"), old)}},
		"of the policy in force, unscheduled": {policy: requiring(pickN(3), prod()), bindings: []scheduler.Binding{with(bound("a"), unscheduled), with(bound("b"), terminating), bound("c")}, selected: 1},
	} {
		t.Run(name, func(t *testing.T) {
			decision := scheduler.Decide(scheduler.Facts{PolicySnapshot: "p-1", Policy: tc.policy, Clusters: clusters, Bindings: tc.bindings, Now: now})
			assert.Len(t, decision.Selected, tc.selected)
			assert.Len(t, decision.Unselected, 3-tc.selected)
		})
	}
}
