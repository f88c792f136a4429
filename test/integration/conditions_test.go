//go:build integration

package integration

import (
	"fmt"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// said is a condition as a user reads it.
type said struct{ Type, Status, Reason, Message string }

// ofPlacement is the type a condition has on a placement as a whole.
func ofPlacement(conditionType string) string {
	return placementv1beta1.Scope{}.PlacementConditionType(conditionType)
}

// requireConditions asserts that these are all the conditions there are, and that they are about a generation. An empty
// message in want stands for any. A condition that says that something is over counts only if it is wanted: whether there was
// something depends on what has happened before.
func (s *spec) requireConditions(conditions []metav1.Condition, generation int64, want ...said) {
	s.Helper()
	got := make([]said, 0, len(conditions))
	for _, c := range conditions {
		one := said{c.Type, string(c.Status), c.Reason, c.Message}
		i := slices.IndexFunc(want, func(w said) bool { return w.Type == c.Type })
		if i < 0 && c.Reason == placementv1beta1.ReasonResolved {
			continue
		}
		if i >= 0 && want[i].Message == "" {
			one.Message = ""
		}
		got = append(got, one)
		require.Equal(s, generation, c.ObservedGeneration, "observed generation of %s", c.Type)
	}
	byType := func(a, b said) int { return strings.Compare(a.Type, b.Type) }
	slices.SortFunc(got, byType)
	wanted := slices.Clone(want)
	slices.SortFunc(wanted, byType)
	require.Empty(s, cmp.Diff(wanted, got), "conditions (-want +got)")
}

// isTrue says what is missing until a condition is true for a generation.
func isTrue(conditions []metav1.Condition, conditionType string, generation int64) error {
	return has(conditions, conditionType, metav1.ConditionTrue, generation)
}

func has(conditions []metav1.Condition, conditionType string, status metav1.ConditionStatus, generation int64) error {
	c := meta.FindStatusCondition(conditions, conditionType)
	switch {
	case c == nil:
		return fmt.Errorf("it has no condition %s", conditionType)
	case c.Status != status:
		return fmt.Errorf("%s is %s %s: %s", c.Type, c.Status, c.Reason, c.Message)
	case c.ObservedGeneration != generation:
		return fmt.Errorf("%s is about generation %d, not %d", c.Type, c.ObservedGeneration, generation)
	}
	return nil
}

// awaitAvailable waits until the placement is available with a resource snapshot.
func (s *spec) awaitAvailable(index string) *placementv1beta1.ClusterResourcePlacement {
	s.Helper()
	return await(s, s.hub, s.placement(), "to be available with resource index "+index, func(p *placementv1beta1.ClusterResourcePlacement) error {
		if p.Status.ObservedResourceIndex != index {
			return fmt.Errorf("it observes resource index %q", p.Status.ObservedResourceIndex)
		}
		return isTrue(p.Status.Conditions, ofPlacement(placementv1beta1.ConditionTypeAvailable), p.Generation)
	})
}

// awaitSucceeded waits until a run has succeeded; it fails at once if the run does.
func (s *spec) awaitSucceeded(run *placementv1beta1.ClusterStagedUpdateRun) *placementv1beta1.ClusterStagedUpdateRun {
	s.Helper()
	ended := s.awaitEnd(run)
	require.NoError(s, isTrue(ended.Status.Conditions, placementv1beta1.ConditionTypeSucceeded, ended.Generation), "run %s", run.Name)
	return ended
}

// awaitEnd waits until a run is over, one way or the other.
func (s *spec) awaitEnd(run *placementv1beta1.ClusterStagedUpdateRun) *placementv1beta1.ClusterStagedUpdateRun {
	s.Helper()
	return await(s, s.hub, run.DeepCopy(), "to be over", func(r *placementv1beta1.ClusterStagedUpdateRun) error {
		if meta.IsStatusConditionFalse(r.Status.Conditions, placementv1beta1.ConditionTypeInitialized) {
			return nil
		}
		if c := meta.FindStatusCondition(r.Status.Conditions, placementv1beta1.ConditionTypeSucceeded); c != nil {
			return nil
		}
		return fmt.Errorf("its conditions are %s", spoken(r.Status.Conditions))
	})
}

func spoken(conditions []metav1.Condition) string {
	words := make([]string, len(conditions))
	for i, c := range conditions {
		words[i] = fmt.Sprintf("%s=%s (%s)", c.Type, c.Status, c.Reason)
	}
	return strings.Join(words, ", ")
}

// availableConditions are those of an available placement of so many clusters.
func availableConditions(clusters int) []said {
	counted := func(format string) string { return fmt.Sprintf(format, clusters) }
	return []said{
		{ofPlacement("Scheduled"), "True", "SchedulingPolicyFulfilled", counted("found all cluster needed as specified by the scheduling policy, found %d cluster(s)")},
		{ofPlacement("RolloutStarted"), "True", "RolloutStarted", counted("All %d cluster(s) start rolling out the latest resource")},
		{ofPlacement("Overridden"), "True", "NoOverrideSpecified", "No override rules are configured for the selected resources"},
		{ofPlacement("WorkSynchronized"), "True", "WorkSynchronized", counted("Work(s) are successfully created or updated in %d target cluster(s)' namespaces")},
		{ofPlacement("Applied"), "True", "ApplySucceeded", counted("The selected resources are successfully applied to %d cluster(s)")},
		{ofPlacement("Available"), "True", "ResourceAvailable", counted("The selected resources in %d cluster(s) are available now")},
	}
}

// availableOnCluster are those of one cluster on which the placement is available. What a run adds to the message of
// RolloutStarted is in by.
func availableOnCluster(by string) []said {
	return []said{
		{"Scheduled", "True", "Scheduled", ""},
		{"RolloutStarted", "True", "RolloutStarted", "Detected the new changes on the resources and started the rollout process" + by},
		{"Overridden", "True", "NoOverrideSpecified", "No override rules are configured for the selected resources"},
		{"WorkSynchronized", "True", "AllWorkSynced", "All of the works are synchronized to the latest"},
		{"Applied", "True", "AllWorkHaveBeenApplied", "All corresponding work objects are applied"},
		{"Available", "True", "AllWorkAreAvailable", "All corresponding work objects are available"},
	}
}

// requireAvailable asserts the whole status of an available placement on these clusters.
func (s *spec) requireAvailable(p *placementv1beta1.ClusterResourcePlacement, index, by string, clusters ...string) {
	s.Helper()
	s.requireConditions(p.Status.Conditions, p.Generation, availableConditions(len(clusters))...)
	names := make([]string, len(p.Status.PerClusterPlacementStatuses))
	for i, entry := range p.Status.PerClusterPlacementStatuses {
		names[i] = entry.ClusterName
		require.Equal(s, index, entry.ObservedResourceIndex, "resource index on %s", entry.ClusterName)
		require.Empty(s, entry.FailedPlacements, "failed on %s", entry.ClusterName)
		s.requireConditions(entry.Conditions, p.Generation, availableOnCluster(by)...)
	}
	require.Equal(s, clusters, names, "clusters in the status")
}
