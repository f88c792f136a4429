package placement

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// conditionsOnLeaving returns the condition that names the clusters which are no longer picked and still have
// resources; none if all are clean. picked are the entries of the clusters that are.
func conditionsOnLeaving(facts *Facts, picked []placementv1beta1.PerClusterPlacementStatus) []metav1.Condition {
	stays := make(map[string]bool, len(picked))
	for i := range picked {
		stays[picked[i].ClusterName] = true
	}
	var held, suspended, cleaned []string
	var since time.Time
	for _, binding := range facts.Bindings {
		spec := binding.GetBindingSpec()
		switch removal := binding.GetDeletionTimestamp(); {
		case stays[spec.TargetCluster] || spec.ResourceSnapshotName == "" || placementv1beta1.IsLiveBinding(binding):
		case placementv1beta1.IsSuspended(facts.Placement, spec.TargetCluster):
			suspended = append(suspended, spec.TargetCluster)
		case removal.IsZero():
			held = append(held, spec.TargetCluster)
		default:
			if cleaned = append(cleaned, spec.TargetCluster); since.IsZero() || removal.Time.Before(since) {
				since = removal.Time
			}
		}
	}
	reason := placementv1beta1.ReasonWaitingForRolloutStrategy
	var parts []string
	if len(cleaned) > 0 {
		reason = placementv1beta1.ReasonCleaningUp
		parts = append(parts, fmt.Sprintf("since %s from %d cluster(s), %s", formatTime(since), len(cleaned), joinLimited(cleaned)))
	}
	if len(held) > 0 {
		parts = append(parts, fmt.Sprintf("when the rollout strategy allows it from %d cluster(s), %s", len(held), joinLimited(held)))
	}
	if len(suspended) > 0 {
		parts = append(parts, fmt.Sprintf("when strategy.suspension leaves them out from %d cluster(s), %s", len(suspended), joinLimited(suspended)))
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

// formatTime is how messages tell the time.
func formatTime(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 MST") }
