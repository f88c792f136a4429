package brake

import (
	"cmp"
	"slices"
	"strings"
	"time"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	"github.com/fleetflow/fleetflow/workflows/rollout"
)

// holds are the RolloutHolds that concern a subject, those that never expire first, then those that expire last: a cluster
// opens when the last of them ends.
type holds []hold

// hold is a hold, and until when the subject is exempt from it.
type hold struct {
	*fleetflowv1alpha1.RolloutHold
	exemptUntil time.Time
}

// Holds makes a source of the holds that concern a subject; nil if there are none.
func Holds(all []fleetflowv1alpha1.RolloutHold, of Subject) Source {
	var concern holds
	for i := range all {
		if hold := &all[i]; HoldConcerns(hold, of) {
			concern = append(concern, newHold(hold, of))
		}
	}
	if len(concern) == 0 {
		return nil
	}
	slices.SortFunc(concern, func(a, b hold) int {
		return cmp.Or(compareExpiry(a.Expires(), b.Expires()), strings.Compare(a.Name, b.Name))
	})
	return concern
}

// HoldConcerns reports whether a hold is about a subject, on some clusters at least.
func HoldConcerns(hold *fleetflowv1alpha1.RolloutHold, of Subject) bool {
	exempt := of.Rollback && hold.Spec.Rollbacks == fleetflowv1alpha1.RollbacksExempt
	return hold.DeletionTimestamp.IsZero() && !exempt && hold.CoversPlacement(of.PlacementLabels, of.NamespaceLabels)
}

func newHold(of *fleetflowv1alpha1.RolloutHold, subject Subject) hold {
	return hold{of, subject.Exemptions.until(fleetflowv1alpha1.ExemptFromHold, of.Name)}
}

// compareExpiry orders what never expires before the rest, and that by how long it lasts.
func compareExpiry(a, b time.Time) int {
	switch {
	case a.IsZero() && b.IsZero():
		return 0
	case a.IsZero():
		return -1
	case b.IsZero():
		return 1
	}
	return b.Compare(a)
}

// Closed reports whether a hold in force covers the cluster.
func (h holds) Closed(cluster Cluster, start Start, now time.Time) (rollout.Wait, bool) {
	for i := range h {
		hold := &h[i]
		if hold.IsInForce(now) && !now.Before(hold.exemptUntil) && hold.Holds(start) && hold.CoversCluster(cluster.Labels) {
			return rollout.Wait{
				Kind: rollout.BrakeHold, Object: hold.Name, Reason: fleetflowv1alpha1.ReasonHoldInForce, Why: hold.Spec.Message, Until: hold.Expires(),
			}, true
		}
	}
	return rollout.Wait{}, false
}

// NextChange returns when the next hold expires, or an exemption from one.
func (h holds) NextChange(now time.Time) (next time.Time) {
	for i := range h {
		for _, expires := range []time.Time{h[i].Expires(), h[i].exemptUntil} {
			if now.Before(expires) {
				next = rollout.EarlierOf(next, expires)
			}
		}
	}
	return next
}
