//go:build integration

package integration

import (
	"fmt"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// ownerPath is where the label is that the guides to takeover, drifts and differences change.
const ownerPath = "/metadata/labels/owner"

// namespace is the spec's namespace with an owner, as in the guides.
func (s *spec) namespace(owner string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.name, Labels: map[string]string{"app": s.name, "owner": owner}}}
}

// createOn creates an object on a member, as somebody there would.
func (s *spec) createOn(member string, namespace *corev1.Namespace) {
	s.Helper()
	require.NoError(s, s.member(member).Create(s.Context(), namespace), "creating %s on %s", namespace.Name, member)
}

// setLabel sets a label of the spec's namespace on a cluster.
func (s *spec) setLabel(c *cluster, key, value string) {
	s.Helper()
	update(s, c, s.namespace(""), func(n *corev1.Namespace) { n.Labels[key] = value })
}

// applying rolls out to all clusters at once and applies in a certain way.
func applying(strategy placementv1beta1.ApplyStrategy) placementOption {
	return func(p *placementv1beta1.PlacementSpec) {
		p.Strategy = &placementv1beta1.RolloutStrategy{
			Type:          placementv1beta1.RollingUpdateRolloutStrategyType,
			ApplyStrategy: &strategy,
			RollingUpdate: &placementv1beta1.RollingUpdateConfig{
				MaxUnavailable: new(intstr.FromString("100%")), UnavailablePeriodSeconds: new(int32(1)),
			},
		}
	}
}

// applyBy changes how the placement is applied.
func (s *spec) applyBy(strategy placementv1beta1.ApplyStrategy) {
	s.Helper()
	update(s, s.hub, s.placement(), func(p *placementv1beta1.ClusterResourcePlacement) { applying(strategy)(&p.Spec) })
}

// awaitFailed waits until the namespace is the only thing that failed on a cluster, and for this reason.
func (s *spec) awaitFailed(cluster, reason, message string) *placementv1beta1.PerClusterPlacementStatus {
	s.Helper()
	var found *placementv1beta1.PerClusterPlacementStatus
	s.awaitOnCluster(cluster, "that it failed for "+reason, func(entry *placementv1beta1.PerClusterPlacementStatus) error {
		if len(entry.FailedPlacements) != 1 || entry.FailedPlacements[0].Condition.Reason != reason {
			return fmt.Errorf("it names %+v", entry.FailedPlacements)
		}
		found = entry
		return nil
	})
	failed := found.FailedPlacements[0]
	require.Equal(s, placementv1beta1.ResourceIdentifier{Version: "v1", Kind: "Namespace", Name: s.name}, failed.ResourceIdentifier)
	require.Equal(s, placementv1beta1.ConditionTypeApplied, failed.Condition.Type)
	require.Equal(s, metav1.ConditionFalse, failed.Condition.Status)
	require.Contains(s, failed.Condition.Message, message)
	require.True(s, meta.IsStatusConditionFalse(found.Conditions, placementv1beta1.ConditionTypeApplied))
	return found
}

// requireDiff asserts that the namespace is all that differs on a cluster, and in what.
func (s *spec) requireDiff(entry *placementv1beta1.PerClusterPlacementStatus, details ...placementv1beta1.PatchDetail) {
	s.Helper()
	require.Empty(s, entry.DriftedPlacements)
	require.Len(s, entry.DiffedPlacements, 1)
	diffed := entry.DiffedPlacements[0]
	require.Equal(s, placementv1beta1.ResourceIdentifier{Version: "v1", Kind: "Namespace", Name: s.name}, diffed.ResourceIdentifier)
	require.Equal(s, details, diffed.ObservedDiffs)
	require.WithinDuration(s, time.Now(), diffed.FirstDiffedObservedTime.Time, patience)
	require.False(s, diffed.ObservationTime.Before(&diffed.FirstDiffedObservedTime))
}

func preExistingNamespaceIsTakenOverAsToldTo(s *spec) {
	s.createOn("member-2", s.namespace("wesker"))
	s.create(s.namespace("redfield"))
	s.place(applying(placementv1beta1.ApplyStrategy{WhenToTakeOver: placementv1beta1.WhenToTakeOverTypeNever}))
	entry := s.awaitFailed("member-2", "NotTakenOver",
		"Failed to apply the manifest (error: no ownership of the object in the member cluster; takeover is needed)")
	require.Empty(s, entry.DiffedPlacements)
	s.awaitOnCluster("member-1", "that it is applied", isAppliedThere)
	await(s, s.hub, s.placement(), "to say that applying failed", func(p *placementv1beta1.ClusterResourcePlacement) error {
		return has(p.Status.Conditions, ofPlacement(placementv1beta1.ConditionTypeApplied), metav1.ConditionFalse, p.Generation)
	})

	s.applyBy(placementv1beta1.ApplyStrategy{WhenToTakeOver: placementv1beta1.WhenToTakeOverTypeIfNoDiff})
	entry = s.awaitFailed("member-2", "FailedToTakeOver", "Failed to apply the manifest (error: cannot take over object: "+
		"configuration differences are found between the manifest object and the corresponding object in the member cluster)")
	s.requireDiff(entry, placementv1beta1.PatchDetail{Path: ownerPath, ValueInHub: "redfield", ValueInMember: "wesker"})
	require.Equal(s, new(int64(0)), entry.DiffedPlacements[0].TargetClusterObservedGeneration)

	s.applyBy(placementv1beta1.ApplyStrategy{WhenToTakeOver: placementv1beta1.WhenToTakeOverTypeAlways})
	s.awaitLabel("member-2", s.namespace(""), "owner", "redfield")
	s.requireAvailable(s.awaitAvailable("0"), "0", "", allMembers...)
}

func isAppliedThere(entry *placementv1beta1.PerClusterPlacementStatus) error {
	if c := meta.FindStatusCondition(entry.Conditions, placementv1beta1.ConditionTypeApplied); c == nil || c.Status != metav1.ConditionTrue {
		return fmt.Errorf("its conditions are %s", spoken(entry.Conditions))
	}
	return nil
}

func objectIsTakenOverOnceItDoesNotDiffer(s *spec) {
	for _, name := range []string{"member-2", "member-3"} {
		s.createOn(name, s.namespace("wesker"))
	}
	s.create(s.namespace("redfield"))
	placement := s.place(applying(placementv1beta1.ApplyStrategy{WhenToTakeOver: placementv1beta1.WhenToTakeOverTypeIfNoDiff}))
	s.awaitFailed("member-2", "FailedToTakeOver", "cannot take over object")
	s.awaitFailed("member-3", "FailedToTakeOver", "cannot take over object")

	s.setLabel(s.member("member-2"), "owner", "redfield")
	s.awaitOnCluster("member-2", "that it is applied", func(entry *placementv1beta1.PerClusterPlacementStatus) error {
		if len(entry.DiffedPlacements) > 0 {
			return fmt.Errorf("it names %+v", entry.DiffedPlacements)
		}
		return isAppliedThere(entry)
	})

	s.delete(s.hub, placement)
	awaitGone(s, s.hub, placement)
	s.awaitCleared("member-1", "member-2")
	kept := s.namespace("")
	require.NoError(s, s.member("member-3").Get(s.Context(), keyOf(kept), kept))
	require.Equal(s, "wesker", kept.Labels["owner"], "what was not taken over stays as it was")
	require.Empty(s, kept.OwnerReferences)
	s.delete(s.member("member-3"), kept)
}

func secondPlacementOfAnObjectIsRefused(s *spec) {
	s.namespaceWithConfigMap()
	first := s.place(applying(placementv1beta1.ApplyStrategy{}))
	s.awaitAvailable("0")
	second := s.placement(applying(placementv1beta1.ApplyStrategy{AllowCoOwnership: true}))
	second.Name += "-second"
	s.create(second)
	await(s, s.hub, second.DeepCopy(), "to be refused everywhere", func(p *placementv1beta1.ClusterResourcePlacement) error {
		if len(p.Status.PerClusterPlacementStatuses) != members {
			return fmt.Errorf("it tells of %d clusters", len(p.Status.PerClusterPlacementStatuses))
		}
		for _, entry := range p.Status.PerClusterPlacementStatuses {
			if len(entry.FailedPlacements) != 2 {
				return fmt.Errorf("on %s it names %+v", entry.ClusterName, entry.FailedPlacements)
			}
			for _, failed := range entry.FailedPlacements {
				require.Equal(s, "ApplyConflictBetweenPlacements", failed.Condition.Reason)
				require.Contains(s, failed.Condition.Message, "placement "+s.name)
			}
		}
		return nil
	})

	s.delete(s.hub, first)
	await(s, s.hub, second, "to be available once the first is gone", func(p *placementv1beta1.ClusterResourcePlacement) error {
		return isTrue(p.Status.Conditions, ofPlacement(placementv1beta1.ConditionTypeAvailable), p.Generation)
	})
	s.awaitValue(value1, allMembers...)
}

func ownersOutsideTheFleetShareIfTheyMay(s *spec) {
	member := s.member("member-2")
	s.createOn("member-2", s.namespace("wesker"))
	owner := s.configMap("")
	owner.Name = "owner"
	require.NoError(s, member.Create(s.Context(), owner))
	owned := s.configMap("theirs")
	owned.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID}}
	require.NoError(s, member.Create(s.Context(), owned))

	s.namespaceWithConfigMap()
	s.place(applying(placementv1beta1.ApplyStrategy{}))
	c := s.awaitFinding("member-2", configMapName, "FailedToTakeOver")
	require.Contains(s, c.Message, "it is owned by ConfigMap owner outside the fleet")
	s.awaitValue("theirs", "member-2")

	s.applyBy(placementv1beta1.ApplyStrategy{AllowCoOwnership: true})
	s.awaitValue(value1, allMembers...)
	s.awaitAvailable("0")
	require.NoError(s, member.Get(s.Context(), keyOf(owned), owned))
	require.Len(s, owned.OwnerReferences, 2)
	require.Equal(s, owner.UID, owned.OwnerReferences[0].UID)
}
