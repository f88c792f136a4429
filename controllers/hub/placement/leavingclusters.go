package placement

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetflow/fleetflow/activities/brake"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/workflows/rollout"
)

// conditionsOnLeaving returns the condition that names the clusters which are no longer picked and still have
// resources; none if all are clean. picked are the entries of the clusters that are.
func conditionsOnLeaving(facts *Facts, picked []placementv1beta1.PerClusterPlacementStatus, now time.Time) []metav1.Condition {
	leaving := clustersThatLeave(facts, picked, now)
	var reason string
	var parts []string
	for _, group := range []struct {
		clusters     []string
		when, reason string
	}{
		{leaving.cleaned, "since " + formatTime(leaving.since), placementv1beta1.ReasonCleaningUp},
		{leaving.hooked, "once lifecycle hooks are answered", placementv1beta1.ReasonWaitingForHook},
		{leaving.held, "when the rollout strategy allows it", placementv1beta1.ReasonWaitingForRolloutStrategy},
		{leaving.superseded, "once it is evicted, as strategy.failover.application has purgeMode Never,", placementv1beta1.ReasonSuperseded},
		{leaving.replaced, "when what replaces them is available", placementv1beta1.ReasonWaitingForRolloutStrategy},
		{leaving.suspended, "when strategy.suspension leaves them out", placementv1beta1.ReasonWaitingForRolloutStrategy},
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
	if rules.AbandonsRemoved(facts.Placement) {
		fate = "What was placed is given up, and stays, on clusters that are no longer selected: "
	}
	return []metav1.Condition{{
		Type: placementv1beta1.ConditionTypeClustersLeaving, Status: metav1.ConditionTrue, Reason: reason,
		Message: fate + strings.Join(parts, "; "),
	}}
}

// leavingClusters are the clusters that are no longer picked and still have resources, by what happens to these.
type leavingClusters struct {
	// cleaned are removed, since the earliest of their deletions.
	cleaned []string
	since   time.Time
	// The others wait: for lifecycle hooks, with the text of the wait; for limits; for an eviction; for the end of a suspension.
	hooked, held, superseded, suspended []string
	// replaced keep their copies until those of the clusters that replace them are available, with the text of the wait.
	replaced []string
}

func clustersThatLeave(facts *Facts, picked []placementv1beta1.PerClusterPlacementStatus, now time.Time) (leaving leavingClusters) {
	stays := make(map[string]bool, len(picked))
	for i := range picked {
		stays[picked[i].ClusterName] = true
	}
	for _, binding := range facts.Bindings {
		spec := binding.GetBindingSpec()
		switch removal := binding.GetDeletionTimestamp(); {
		case stays[spec.TargetCluster] || !isLeaving(binding):
		case removal.IsZero() && rules.IsSuperseded(binding):
			leaving.superseded = append(leaving.superseded, spec.TargetCluster)
		case rules.IsSuspended(facts.Placement, spec.TargetCluster):
			leaving.suspended = append(leaving.suspended, spec.TargetCluster)
		case removal.IsZero() && hookWaitOf(facts, binding, now) != nil:
			leaving.hooked = append(leaving.hooked, spec.TargetCluster+" "+brake.HookText(hookWaitOf(facts, binding, now)))
		case removal.IsZero() && rules.ReplacedBy(binding) != "":
			leaving.replaced = append(leaving.replaced, describeReplaced(binding, facts.standing(now).replaced[binding.GetName()]))
		case removal.IsZero():
			leaving.held = append(leaving.held, spec.TargetCluster)
		default:
			if leaving.cleaned = append(leaving.cleaned, spec.TargetCluster); leaving.since.IsZero() || removal.Time.Before(leaving.since) {
				leaving.since = removal.Time
			}
		}
	}
	return leaving
}

// isLeaving reports whether a cluster which has resources is no longer picked.
func isLeaving(binding placementv1beta1.BindingObject) bool {
	return binding.GetBindingSpec().ResourceSnapshotName != "" && !rules.IsLiveBinding(binding)
}

// formatTime returns how messages tell the time.
func formatTime(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 MST") }

// describeReplaced says what the copy on a cluster that is being replaced waits for, if that is known.
func describeReplaced(binding placementv1beta1.BindingObject, wait rollout.Wait) string {
	cluster := binding.GetBindingSpec().TargetCluster
	if wait.Why != "" {
		return cluster + " (" + wait.Why + ")"
	}
	return cluster + " (replaced by " + rules.ReplacedBy(binding) + ")"
}
