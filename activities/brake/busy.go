package brake

import (
	"time"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	"github.com/fleetflow/fleetflow/workflows/rollout"
)

// busy are the clusters whose owners have asked that nothing begins on them, by name.
type busy map[string]busyCluster

// busyCluster is until when a cluster is busy, why, and until when the subject is exempt from that.
type busyCluster struct {
	until, exemptUntil time.Time
	why                string
}

// Busy makes a source of the members that are busy at an instant, as their owners have asked that nothing begins on them; nil if there are
// none. A member that asks concerns no other cluster than itself.
func Busy(members []clusterv1beta1.MemberCluster, of Subject, now time.Time) Source {
	var found busy
	for i := range members {
		granted := members[i].Status.Busy
		if !granted.IsNow(now) {
			continue
		}
		if found == nil {
			found = busy{}
		}
		name := members[i].Name
		found[name] = busyCluster{
			until: granted.Until.Time, why: granted.Message, exemptUntil: of.Exemptions.until(fleetflowv1alpha1.ExemptFromBusy, name),
		}
	}
	if found == nil {
		return nil
	}
	return found
}

// Closed reports whether the cluster is busy. That concerns whatever would begin.
func (b busy) Closed(cluster Cluster, _ Start, now time.Time) (rollout.Wait, bool) {
	of, is := b[cluster.Name]
	if !is || !now.Before(of.until) || now.Before(of.exemptUntil) {
		return rollout.Wait{}, false
	}
	return rollout.Wait{
		Kind: rollout.BrakeBusy, Object: cluster.Name, Reason: fleetflowv1alpha1.ReasonClusterBusy, Why: of.why, Until: of.until,
	}, true
}

// NextChange returns when the next cluster is busy no more, or an exemption ends.
func (b busy) NextChange(now time.Time) (next time.Time) {
	for _, of := range b {
		for _, end := range []time.Time{of.until, of.exemptUntil} {
			if now.Before(end) {
				next = rollout.EarlierOf(next, end)
			}
		}
	}
	return next
}
