package placement

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// conditionsOnLeaving returns the condition that names the clusters which are no longer picked and still have
// resources; none if all are clean. picked are the entries of the clusters that are.
func conditionsOnLeaving(facts *Facts, picked []placementv1beta1.PerClusterPlacementStatus, now time.Time) []metav1.Condition {
	stays := make(map[string]bool, len(picked))
	for i := range picked {
		stays[picked[i].ClusterName] = true
	}
	var held, suspended, cleaned, hooked, superseded []string
	var since time.Time
	for _, binding := range facts.Bindings {
		spec := binding.GetBindingSpec()
		switch removal := binding.GetDeletionTimestamp(); {
		case stays[spec.TargetCluster] || !isLeaving(binding):
		case removal.IsZero() && placementv1beta1.IsSuperseded(binding):
			superseded = append(superseded, spec.TargetCluster)
		case placementv1beta1.IsSuspended(facts.Placement, spec.TargetCluster):
			suspended = append(suspended, spec.TargetCluster)
		case removal.IsZero() && hookWaitOf(facts, binding, now) != nil:
			hooked = append(hooked, spec.TargetCluster+" "+hookWaitOf(facts, binding, now).Text())
		case removal.IsZero():
			held = append(held, spec.TargetCluster)
		default:
			if cleaned = append(cleaned, spec.TargetCluster); since.IsZero() || removal.Time.Before(since) {
				since = removal.Time
			}
		}
	}
	var reason string
	var parts []string
	for _, group := range []struct {
		clusters     []string
		when, reason string
	}{
		{cleaned, "since " + formatTime(since), placementv1beta1.ReasonCleaningUp},
		{hooked, "once lifecycle hooks are answered", placementv1beta1.ReasonWaitingForHook},
		{held, "when the rollout strategy allows it", placementv1beta1.ReasonWaitingForRolloutStrategy},
		{superseded, "once it is evicted, as strategy.failover.application has purgeMode Never,", placementv1beta1.ReasonSuperseded},
		{suspended, "when strategy.suspension leaves them out", placementv1beta1.ReasonWaitingForRolloutStrategy},
	} {
		if len(group.clusters) > 0 {
			reason = cmp.Or(reason, group.reason)
			parts = append(parts, fmt.Sprintf("%s from %d cluster(s), %s", group.when, len(group.clusters), joinLimited(group.clusters)))
		}
	}
	if len(parts) == 0 {
		return nil
	}
	fate := "What was placed is removed from clusters that are no longer selected: "
	if placementv1beta1.AbandonsRemoved(facts.Placement) {
		fate = "What was placed is given up, and stays, on clusters that are no longer selected: "
	}
	return []metav1.Condition{{
		Type: placementv1beta1.ConditionTypeClustersLeaving, Status: metav1.ConditionTrue, Reason: reason,
		Message: fate + strings.Join(parts, "; "),
	}}
}

// isLeaving says that a cluster which has resources is no longer picked.
func isLeaving(binding placementv1beta1.BindingObject) bool {
	return binding.GetBindingSpec().ResourceSnapshotName != "" && !placementv1beta1.IsLiveBinding(binding)
}

// formatTime is how messages tell the time.
func formatTime(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 MST") }
