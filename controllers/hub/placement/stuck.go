package placement

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetflow/fleetflow/activities/workmodel"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

const (
	// namedStuck is how many stuck clusters a message names.
	namedStuck = 3
	// maxWhy is how many bytes of the message of a resource are repeated.
	maxWhy = 200
)

// stuckCluster is a cluster that was written to and has not finished a step for a while.
type stuckCluster struct {
	cluster string
	since   time.Time
	why     string
}

// stuckClusters returns the clusters that were written to and have not finished a step since before an instant; the
// longest first.
func stuckClusters(entries []placementv1beta1.PerClusterPlacementStatus, before time.Time) []stuckCluster {
	var all []stuckCluster
	for i := range entries {
		entry := &entries[i]
		missing := firstUndoneStep(entry)
		if missing == nil || missing.LastTransitionTime.After(before) {
			continue
		}
		all = append(all, stuckCluster{entry.ClusterName, missing.LastTransitionTime.Time, reasonForStuck(entry, missing)})
	}
	slices.SortStableFunc(all, func(a, b stuckCluster) int { return a.since.Compare(b.since) })
	return all
}

// firstUndoneStep returns the first step that a cluster which was written to has not finished; nil if there is none. Of a
// suspended cluster nothing is waited for.
func firstUndoneStep(entry *placementv1beta1.PerClusterPlacementStatus) *metav1.Condition {
	if !meta.IsStatusConditionTrue(entry.Conditions, placementv1beta1.ConditionTypeRolloutStarted) || saysSuspended(entry) {
		return nil
	}
	for i := range entry.Conditions {
		if isHooked(&entry.Conditions[i]) || saysSilent(&entry.Conditions[i]) {
			return nil // it waits for what the user has to do, or is reported as silent
		}
		if entry.Conditions[i].Status != metav1.ConditionTrue {
			return &entry.Conditions[i]
		}
	}
	return nil
}

// reasonForStuck returns what is missing on a cluster: the first resource that fails, if one is known.
func reasonForStuck(entry *placementv1beta1.PerClusterPlacementStatus, missing *metav1.Condition) string {
	if len(entry.FailedPlacements) == 0 {
		return workmodel.CutMessage(missing.Message, maxWhy)
	}
	first := &entry.FailedPlacements[0]
	return fmt.Sprintf("%s: %s", formatResource(&first.ResourceIdentifier), workmodel.CutMessage(first.Condition.Message, maxWhy))
}

// stuckRollout is what a rollout is stuck on: clusters that take very long, the longest first, or limits that cannot be kept.
type stuckRollout struct {
	clusters []stuckCluster
	limits   string
	// message is that of the condition of the step that is not done.
	message string
}

// findStuck returns what the rollout is stuck on at a step that is not done; nothing if it is not stuck.
func findStuck(facts *Facts, entries []placementv1beta1.PerClusterPlacementStatus, step *stepTemplate, now time.Time) stuckRollout {
	if waiting := stuckClusters(entries, now.Add(-wf.StuckAfter)); len(waiting) > 0 {
		return stuckRollout{clusters: waiting}
	}
	if step != &rolloutStartedStep || rules.IsExternal(facts.Placement) {
		return stuckRollout{}
	}
	stands := facts.standing(now)
	if stands.stuck != "" && (stands.limits.MaxUnavailable == 0 || hasBeenBlockedSince(facts, now.Add(-wf.StuckAfter))) {
		return stuckRollout{limits: stands.stuck}
	}
	return stuckRollout{}
}

// text returns the part of the message of a step that says what the rollout is stuck on.
func (s stuckRollout) text() string {
	if s.limits != "" {
		return "; stuck: " + s.limits
	}
	if len(s.clusters) == 0 {
		return ""
	}
	var parts []string
	for _, w := range s.clusters[:min(len(s.clusters), namedStuck)] {
		parts = append(parts, fmt.Sprintf("%s since %s (%s)", w.cluster, formatTime(w.since), w.why))
	}
	if more := len(s.clusters) - len(parts); more > 0 {
		parts = append(parts, fmt.Sprintf("%d more", more))
	}
	return "; stuck on " + strings.Join(parts, ", ")
}

// describeAwaited names the clusters whose availability the others wait for, if a condition says that the limits hold clusters back.
func describeAwaited(stands standing, condition metav1.Condition) string {
	if condition.Reason != placementv1beta1.ReasonRolloutNotStartedYet || len(stands.awaited) == 0 {
		return ""
	}
	are := "is"
	if len(stands.awaited) > 1 {
		are = "are"
	}
	return fmt.Sprintf("; waits until %s %s available, as maxUnavailable is %d", joinLimited(slices.Clone(stands.awaited)), are,
		stands.limits.MaxUnavailable)
}

// key identifies what the rollout is stuck on, whatever the words; it is empty if the rollout is not stuck.
func (s stuckRollout) key() string {
	if s.limits != "" {
		return "limits"
	}
	on := ""
	for _, w := range s.clusters[:min(len(s.clusters), namedStuck)] {
		on += w.cluster + ","
	}
	return on
}

// hasBeenBlockedSince reports whether the rollout has been blocked since before an instant.
func hasBeenBlockedSince(facts *Facts, before time.Time) bool {
	said := meta.FindStatusCondition(facts.Placement.GetPlacementStatus().Conditions,
		placementv1beta1.ScopeOf(facts.Placement).PlacementConditionType(placementv1beta1.ConditionTypeRolloutStarted))
	return said != nil && said.Status == metav1.ConditionFalse && !said.LastTransitionTime.After(before)
}

// waitUntilStuck returns when the next cluster may count as stuck; 0 if the rollout waits for none.
func waitUntilStuck(scope placementv1beta1.Scope, status placementv1beta1.PlacementStatus, now time.Time) time.Duration {
	var next time.Duration
	consider := func(missing *metav1.Condition) {
		if missing == nil || missing.Status == metav1.ConditionTrue {
			return
		}
		if left := missing.LastTransitionTime.Add(wf.StuckAfter).Sub(now); left > 0 {
			next = shorterWait(next, left)
		}
	}
	consider(meta.FindStatusCondition(status.Conditions, scope.PlacementConditionType(placementv1beta1.ConditionTypeRolloutStarted)))
	for i := range status.PerClusterPlacementStatuses {
		consider(firstUndoneStep(&status.PerClusterPlacementStatuses[i]))
	}
	return next
}

// lastReports remembers what was last reported of each placement, such as what it is stuck on. It lives in memory only: after a
// restart the report is repeated.
type lastReports struct {
	mu   sync.Mutex
	last map[string]string
}

func newLastReports() *lastReports { return &lastReports{last: map[string]string{}} }

// recordIfChanged reports whether there is something else to report of a placement than was last reported, and records it. Nothing to
// report is empty.
func (t *lastReports) recordIfChanged(placement, on string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.last[placement] == on {
		return false
	}
	if on == "" {
		delete(t.last, placement)
		return false
	}
	t.last[placement] = on
	return true
}

// emitStuckEvent emits an event when a rollout is stuck, and whenever the clusters change on which it is.
func (a *announcer) emitStuckEvent(placement placementv1beta1.PlacementObject, stuck stuckRollout) {
	if a.stuck.recordIfChanged(keyOf(placement), stuck.key()) {
		a.Eventf(placement, nil, "Warning", "PlacementRolloutStuck", "Rollout", "%s", workmodel.CutMessage(stuck.message, maxNote))
	}
}
