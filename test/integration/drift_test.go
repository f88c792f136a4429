//go:build integration

package integration

import (
	"fmt"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

func keyOf(object client.Object) client.ObjectKey { return client.ObjectKeyFromObject(object) }

const foundDrifts = "Failed to apply the manifest (error: cannot apply manifest: drifts are found between the manifest and the object from the member cluster)"

// awaitDrifts waits until the namespace is all that has drifted on a cluster, in these fields.
func (s *spec) awaitDrifts(cluster string, details ...placementv1beta1.PatchDetail) *placementv1beta1.PerClusterPlacementStatus {
	s.Helper()
	var found *placementv1beta1.PerClusterPlacementStatus
	s.awaitOnCluster(cluster, fmt.Sprintf("the drifts %v", details), func(entry *placementv1beta1.PerClusterPlacementStatus) error {
		if len(entry.DriftedPlacements) != 1 || len(entry.DriftedPlacements[0].ObservedDrifts) != len(details) {
			return fmt.Errorf("it names %+v", entry.DriftedPlacements)
		}
		found = entry
		return nil
	})
	drifted := found.DriftedPlacements[0]
	require.Equal(s, placementv1beta1.ResourceIdentifier{Version: "v1", Kind: "Namespace", Name: s.name}, drifted.ResourceIdentifier)
	require.Equal(s, details, drifted.ObservedDrifts)
	require.EqualValues(s, 0, drifted.TargetClusterObservedGeneration)
	require.WithinDuration(s, time.Now(), drifted.FirstDriftedObservedTime.Time, patience)
	require.Empty(s, found.DiffedPlacements)
	return found
}

// spoil changes the namespace on a member as in the guide: a label that the hub sets and one that it does not.
func (s *spec) spoil(member string) {
	s.Helper()
	update(s, s.member(member), s.namespace(""), func(n *corev1.Namespace) {
		n.Labels["owner"], n.Labels["use"] = "wesker", "hack"
	})
}

func driftsAreOverwrittenOrToldAsToldTo(s *spec) {
	var (
		owner = placementv1beta1.PatchDetail{Path: ownerPath, ValueInHub: "redfield", ValueInMember: "wesker"}
		use   = placementv1beta1.PatchDetail{Path: "/metadata/labels/use", ValueInMember: "hack"}
	)
	s.create(s.namespace("redfield"))
	s.place(applying(placementv1beta1.ApplyStrategy{}))
	s.awaitAvailable("0")

	s.spoil("member-1")
	s.awaitLabel("member-1", s.namespace(""), "owner", "redfield")
	s.awaitLabel("member-1", s.namespace(""), "use", "hack")

	s.applyBy(placementv1beta1.ApplyStrategy{WhenToApply: placementv1beta1.WhenToApplyTypeIfNotDrifted})
	s.awaitAvailable("0")
	s.spoil("member-1")
	s.awaitDrifts("member-1", owner)
	entry := s.awaitFailed("member-1", "FoundDrifts", foundDrifts)
	first := entry.DriftedPlacements[0].FirstDriftedObservedTime
	s.awaitOnCluster("member-2", "that it is applied", isAppliedThere)

	s.applyBy(placementv1beta1.ApplyStrategy{
		WhenToApply: placementv1beta1.WhenToApplyTypeIfNotDrifted, ComparisonOption: placementv1beta1.ComparisonOptionTypeFullComparison,
	})
	entry = s.awaitDrifts("member-1", owner, use)
	require.Equal(s, first, entry.DriftedPlacements[0].FirstDriftedObservedTime, "it has drifted since the first time")

	s.applyBy(placementv1beta1.ApplyStrategy{ComparisonOption: placementv1beta1.ComparisonOptionTypeFullComparison})
	entry = s.awaitDrifts("member-1", use)
	require.Empty(s, entry.FailedPlacements, "what is told of fields that the hub does not set is no error")
	s.awaitLabel("member-1", s.namespace(""), "owner", "redfield")
	s.awaitAvailable("0")
}

func driftsGoWithNewRevisionsAndDeletions(s *spec) {
	owner := placementv1beta1.PatchDetail{Path: ownerPath, ValueInHub: "redfield", ValueInMember: "wesker"}
	s.create(s.namespace("redfield"))
	s.create(s.configMap(value1))
	s.place(applying(placementv1beta1.ApplyStrategy{WhenToApply: placementv1beta1.WhenToApplyTypeIfNotDrifted}))
	s.awaitAvailable("0")
	s.spoil("member-1")
	s.awaitDrifts("member-1", owner)

	s.setLabel(s.hub, "owner", "leon")
	s.awaitLabel("member-1", s.namespace(""), "owner", "leon")
	s.awaitAvailable("1")
	s.awaitOnCluster("member-1", "no drifts", func(entry *placementv1beta1.PerClusterPlacementStatus) error {
		if len(entry.DriftedPlacements)+len(entry.FailedPlacements) > 0 {
			return fmt.Errorf("it names %+v", entry)
		}
		return nil
	})

	there := s.configMap("")
	require.NoError(s, s.member("member-1").Get(s.Context(), keyOf(there), there))
	s.delete(s.member("member-1"), there)
	await(s, s.member("member-1"), s.configMap(""), "to be there again", func(c *corev1.ConfigMap) error {
		if c.UID == there.UID {
			return fmt.Errorf("it is the old one")
		}
		return nil
	})

	s.setLabel(s.member("member-1"), "owner", "wesker")
	s.awaitFailed("member-1", "FoundDrifts", foundDrifts)
	s.setLabel(s.member("member-1"), "owner", "leon")
	s.awaitAvailable("1")
}

var reportDiff = placementv1beta1.ApplyStrategy{Type: placementv1beta1.ApplyStrategyTypeReportDiff}

// awaitDiffReported waits until the differences are reported, and asserts that this is told as it should.
func (s *spec) awaitDiffReported(index string) {
	s.Helper()
	reported := await(s, s.hub, s.placement(), "to have reported the differences", func(p *placementv1beta1.ClusterResourcePlacement) error {
		if p.Status.ObservedResourceIndex != index {
			return fmt.Errorf("it observes resource index %q", p.Status.ObservedResourceIndex)
		}
		return isTrue(p.Status.Conditions, ofPlacement(placementv1beta1.ConditionTypeDiffReported), p.Generation)
	})
	c := meta.FindStatusCondition(reported.Status.Conditions, ofPlacement(placementv1beta1.ConditionTypeDiffReported))
	require.Equal(s, said{c.Type, "True", "DiffReportingCompleted", "Diff reporting in 3 cluster(s) has been completed"},
		said{c.Type, string(c.Status), c.Reason, c.Message})
}

// awaitDiff waits until the namespace is told to differ on a cluster, in this field.
func (s *spec) awaitDiff(cluster string, detail placementv1beta1.PatchDetail) {
	s.Helper()
	var found *placementv1beta1.PerClusterPlacementStatus
	s.awaitOnCluster(cluster, fmt.Sprintf("the difference %v", detail), func(entry *placementv1beta1.PerClusterPlacementStatus) error {
		if len(entry.DiffedPlacements) == 0 || len(entry.DiffedPlacements[0].ObservedDiffs) == 0 || entry.DiffedPlacements[0].ObservedDiffs[0] != detail {
			return fmt.Errorf("it names %+v", entry.DiffedPlacements)
		}
		found = entry
		return nil
	})
	s.requireDiff(found, detail)
	require.Empty(s, found.FailedPlacements, "a difference is no error")
	require.NoError(s, has(found.Conditions, placementv1beta1.ConditionTypeDiffReported, metav1.ConditionTrue, found.Conditions[0].ObservedGeneration))
}

func differencesAreReportedAndNothingIsWritten(s *spec) {
	s.create(s.namespace("leon"))
	s.place(applying(placementv1beta1.ApplyStrategy{}))
	s.awaitAvailable("0")
	s.applyBy(reportDiff)
	s.awaitDiffReported("0")

	s.setLabel(s.member("member-2"), "owner", "krauser")
	s.awaitDiff("member-2", placementv1beta1.PatchDetail{Path: ownerPath, ValueInHub: "leon", ValueInMember: "krauser"})
	s.awaitDiffReported("0")

	s.setLabel(s.hub, "owner", "ada")
	s.awaitDiffReported("1")
	s.awaitDiff("member-1", placementv1beta1.PatchDetail{Path: ownerPath, ValueInHub: "ada", ValueInMember: "leon"})
	s.awaitDiff("member-2", placementv1beta1.PatchDetail{Path: ownerPath, ValueInHub: "ada", ValueInMember: "krauser"})
	s.awaitLabel("member-2", s.namespace(""), "owner", "krauser")
	s.awaitLabel("member-1", s.namespace(""), "owner", "leon")

	s.applyBy(placementv1beta1.ApplyStrategy{})
	s.awaitAvailable("1")
	s.awaitLabel("member-2", s.namespace(""), "owner", "ada")
}

func whatIsAbsentDiffersAsAWhole(s *spec) {
	s.createOn("member-2", s.namespace("leon"))
	s.create(s.namespace("leon"))
	s.place(applying(reportDiff))
	s.awaitDiffReported("0")
	whole := placementv1beta1.PatchDetail{Path: "/", ValueInHub: "(the whole object)"}
	s.awaitDiff("member-1", whole)
	s.awaitDiff("member-3", whole)
	s.awaitOnCluster("member-2", "that nothing differs", func(entry *placementv1beta1.PerClusterPlacementStatus) error {
		if len(entry.DiffedPlacements) > 0 {
			return fmt.Errorf("it names %+v", entry.DiffedPlacements)
		}
		return nil
	})
	s.requireNothingOn("member-1", "member-3")
	there := s.namespace("")
	require.NoError(s, s.member("member-2").Get(s.Context(), keyOf(there), there))
	require.Empty(s, there.OwnerReferences, "nothing is taken over")

	s.createOn("member-1", s.namespace("krauser"))
	s.awaitDiff("member-1", placementv1beta1.PatchDetail{Path: ownerPath, ValueInHub: "leon", ValueInMember: "krauser"})
	for _, name := range []string{"member-1", "member-2"} {
		s.delete(s.member(name), s.namespace(""))
	}
}

func runReportsDifferencesOnly(s *spec) {
	s.externalPlacement(func(p *placementv1beta1.PlacementSpec) { p.Strategy.ApplyStrategy = &reportDiff })
	s.strategy(staging(), canary())
	s.awaitSucceeded(s.startRun("run", "0"))
	whole := placementv1beta1.PatchDetail{Path: "/", ValueInHub: "(the whole object)"}
	for _, name := range allMembers {
		s.awaitOnCluster(name, "that all is absent", func(entry *placementv1beta1.PerClusterPlacementStatus) error {
			if len(entry.DiffedPlacements) != 2 {
				return fmt.Errorf("it names %+v", entry.DiffedPlacements)
			}
			require.Equal(s, []placementv1beta1.PatchDetail{whole}, entry.DiffedPlacements[0].ObservedDiffs)
			return nil
		})
	}
	s.requireNothingOn(allMembers...)
}
