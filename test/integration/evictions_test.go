//go:build integration

package integration

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/test/devfleet/control"
)

const (
	withoutBudget = "Eviction is allowed, no ClusterResourcePlacementDisruptionBudget specified"
	notPicked     = "The placement is not on this cluster, there is nothing to evict (Failed to find scheduler decision for placement in cluster targeted by eviction)"
	badBudget     = "Eviction is blocked by misconfigured ClusterResourcePlacementDisruptionBudget, either MaxUnavailable is specified or " +
		"MinAvailable is specified as a percentage for PickAll ClusterResourcePlacement"
)

// byBudget is what a budget makes of an eviction.
func byBudget(allowed string, available, total int) string {
	return fmt.Sprintf("Eviction is %s by specified ClusterResourcePlacementDisruptionBudget, availablePlacements: %d, totalPlacements: %d", allowed, available, total)
}

// evict asks to take the spec's placement off a cluster.
func (s *spec) evict(suffix, cluster string) *placementv1beta1.ClusterResourcePlacementEviction {
	s.Helper()
	e := &placementv1beta1.ClusterResourcePlacementEviction{
		ObjectMeta: metav1.ObjectMeta{Name: s.name + "-" + suffix},
		Spec:       placementv1beta1.PlacementEvictionSpec{PlacementName: s.name, ClusterName: cluster},
	}
	s.create(e)
	return e
}

// budget bounds evictions from the spec's placement.
func (s *spec) budget(most, least string) {
	s.Helper()
	b := &placementv1beta1.ClusterResourcePlacementDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: s.name}}
	if most != "" {
		b.Spec.MaxUnavailable = new(intstr.Parse(most))
	}
	if least != "" {
		b.Spec.MinAvailable = new(intstr.Parse(least))
	}
	s.create(b)
}

// awaitOutcome waits until an eviction is decided, and returns its last condition.
func (s *spec) awaitOutcome(e *placementv1beta1.ClusterResourcePlacementEviction) *metav1.Condition {
	s.Helper()
	decided := await(s, s.hub, e.DeepCopy(), "to have an outcome", func(e *placementv1beta1.ClusterResourcePlacementEviction) error {
		if !e.Ended() {
			return errors.New("it has none")
		}
		return nil
	})
	if c := meta.FindStatusCondition(decided.Status.Conditions, placementv1beta1.ConditionTypeExecuted); c != nil {
		valid := meta.FindStatusCondition(decided.Status.Conditions, placementv1beta1.ConditionTypeValid)
		require.Equal(s, "Eviction is valid", valid.Message)
		require.Equal(s, "ClusterResourcePlacementEvictionValid", valid.Reason)
		return c
	}
	return meta.FindStatusCondition(decided.Status.Conditions, placementv1beta1.ConditionTypeValid)
}

func (s *spec) requireExecuted(e *placementv1beta1.ClusterResourcePlacementEviction, message string) {
	s.Helper()
	c := s.awaitOutcome(e)
	require.Equal(s, metav1.ConditionTrue, c.Status, c.Message)
	require.Equal(s, "ClusterResourcePlacementEvictionExecuted", c.Reason)
	require.Equal(s, message, c.Message)
}

func (s *spec) requireBlocked(e *placementv1beta1.ClusterResourcePlacementEviction, message string) {
	s.Helper()
	c := s.awaitOutcome(e)
	require.Equal(s, "ClusterResourcePlacementEvictionNotExecuted", c.Reason, c.Message)
	require.Equal(s, metav1.ConditionFalse, c.Status)
	require.Equal(s, message, c.Message)
}

func (s *spec) requireNotValid(e *placementv1beta1.ClusterResourcePlacementEviction, message string) {
	s.Helper()
	c := s.awaitOutcome(e)
	require.Equal(s, "ClusterResourcePlacementEvictionInvalid", c.Reason, c.Message)
	require.Equal(s, metav1.ConditionFalse, c.Status)
	require.Equal(s, message, c.Message)
}

// bindingOn is the uid of the binding on a cluster; empty if there is none.
func (s *spec) bindingOn(cluster string) types.UID {
	s.Helper()
	for _, b := range s.bindings() {
		if b.Spec.TargetCluster == cluster {
			return b.UID
		}
	}
	return ""
}

// awaitReplaced waits until a cluster has another binding than before, and all is available again.
func (s *spec) awaitReplaced(cluster string, before types.UID) {
	s.Helper()
	awaitAll(s, s.hub, "to have another binding on "+cluster, func(all []*placementv1beta1.ClusterResourceBinding) error {
		for _, b := range all {
			if b.Spec.TargetCluster == cluster && b.UID != before && b.DeletionTimestamp.IsZero() {
				return nil
			}
		}
		return errors.New("there is none")
	}, s.mine())
	s.awaitAvailable("0")
}

func evictedClusterIsPickedAgain(s *spec) {
	s.namespaceWithConfigMap()
	s.place()
	s.awaitAvailable("0")
	before := s.bindingOn("member-2")
	s.requireExecuted(s.evict("off", "member-2"), withoutBudget)
	s.awaitReplaced("member-2", before)
	s.awaitValue(value1, allMembers...)
}

func budgetBlocksEvictions(s *spec) {
	s.namespaceWithConfigMap()
	s.place()
	s.budget("", "3")
	s.awaitAvailable("0")
	e := s.evict("off", "member-1")
	s.requireBlocked(e, byBudget("blocked", 3, 3))
	require.Len(s, s.bindings(), 3)
	update(s, s.hub, &placementv1beta1.ClusterResourcePlacementDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: s.name}},
		func(b *placementv1beta1.ClusterResourcePlacementDisruptionBudget) {
			b.Spec.MinAvailable = new(intstr.FromInt32(2))
		})
	before := s.bindingOn("member-1")
	s.requireExecuted(s.evict("again", "member-1"), byBudget("allowed", 3, 3))
	s.awaitReplaced("member-1", before)
	s.requireBlocked(e, byBudget("blocked", 3, 3))
}

// evictionsAtOnceShareABudget asks for all clusters at once, of which one may go.
func evictionsAtOnceShareABudget(s *spec) {
	s.namespaceWithConfigMap()
	s.place(func(p *placementv1beta1.PlacementSpec) {
		p.Policy = &placementv1beta1.PlacementPolicy{PlacementType: placementv1beta1.PickNPlacementType, NumberOfClusters: new(int32(3))}
	})
	s.budget("1%", "")
	s.awaitAvailable("0")
	evictions := map[string]*placementv1beta1.ClusterResourcePlacementEviction{}
	before := map[string]types.UID{}
	for _, name := range allMembers {
		before[name] = s.bindingOn(name)
	}
	for _, name := range allMembers {
		evictions[name] = s.evict("off-"+name, name)
	}
	executed := ""
	for name, e := range evictions {
		if s.awaitOutcome(e).Status == metav1.ConditionTrue {
			require.Empty(s, executed, "two were executed: %s and %s", executed, name)
			executed = name
		}
	}
	require.NotEmpty(s, executed)
	s.awaitReplaced(executed, before[executed])
	for name, uid := range before {
		if name != executed {
			require.Equal(s, uid, s.bindingOn(name), "the binding on %s", name)
		}
	}
}

func evictionsThatCannotBe(s *spec) {
	s.requireNotValid(s.evict("nothing", "member-1"), "The hub has no placement of this name: correct spec.placementName in another eviction (Failed to find ClusterResourcePlacement targeted by eviction)")
	s.namespaceWithConfigMap()
	s.place(pickN(3, "canary"))
	s.requireNotValid(s.evict("elsewhere", "member-7"), notPicked)
}

func misconfiguredBudgetsBlockEvictions(s *spec) {
	s.namespaceWithConfigMap()
	s.budget("1", "")
	s.place()
	s.awaitAvailable("0")
	s.requireBlocked(s.evict("most", "member-1"), badBudget)
}

// evictionsUnderExternal are decided although update runs roll out.
func evictionsUnderExternal(s *spec) {
	s.externalPlacement()
	s.requireBlocked(s.evict("early", "member-3"), "Eviction is blocked, placement has not propagated resources to target cluster yet")
	s.strategy(everywhere())
	s.awaitSucceeded(s.startRun("run", "0"))
	s.requireExecuted(s.evict("off", "member-3"), withoutBudget)
	awaitAll(s, s.hub, "to have a new binding on member-3 that waits for a run", func(all []*placementv1beta1.ClusterResourceBinding) error {
		for _, b := range all {
			if b.Spec.TargetCluster == "member-3" && b.DeletionTimestamp.IsZero() && b.Spec.State == placementv1beta1.BindingStateScheduled {
				return nil
			}
		}
		return errors.New("there is none")
	}, s.mine())
	s.awaitCleared("member-3")
}

// taintAndEvictDrains takes a cluster out of use by hand.
func taintAndEvictDrains(s *spec) {
	s.namespaceWithConfigMap()
	s.place()
	s.awaitAvailable("0")
	s.taint("member-2", true)
	defer s.taint("member-2", false)
	s.requireExecuted(s.evict("off", "member-2"), withoutBudget)
	s.awaitCleared("member-2")
	awaitAll(s, s.hub, "to be on two clusters", func(all []*placementv1beta1.ClusterResourceBinding) error {
		if len(all) != 2 {
			return fmt.Errorf("there are %d", len(all))
		}
		return nil
	}, s.mine())
}

// evictionsSurviveTheHubAgent asks for evictions while the hub agent is killed: each is decided, and happens once.
func evictionsSurviveTheHubAgent(s *spec) {
	s.namespaceWithConfigMap()
	s.place(func(p *placementv1beta1.PlacementSpec) {
		p.Policy = &placementv1beta1.PlacementPolicy{PlacementType: placementv1beta1.PickNPlacementType, NumberOfClusters: new(int32(3))}
	})
	s.budget("1", "")
	s.awaitAvailable("0")
	deletions := s.record(s.hub, &placementv1beta1.ClusterResourceBinding{}, s.mine())
	executed := 0
	for round := range 3 {
		before := map[string]types.UID{}
		var asked []*placementv1beta1.ClusterResourcePlacementEviction
		for _, name := range allMembers {
			before[name] = s.bindingOn(name)
			asked = append(asked, s.evict(fmt.Sprintf("off-%s-%d", name, round), name))
		}
		s.controlled(func(ctx context.Context) error { return s.Control.Do(ctx, control.Kill, hubAgent) })
		s.controlled(func(ctx context.Context) error { return s.Control.WaitReady(ctx, hubAgent) })
		for _, e := range asked {
			if s.awaitOutcome(e).Status == metav1.ConditionTrue {
				executed++
				s.awaitReplaced(e.Spec.ClusterName, before[e.Spec.ClusterName])
			}
		}
	}
	require.Positive(s, executed)
	gone := map[types.UID]bool{}
	newest := uint64(0)
	for _, b := range s.bindings() {
		newest = max(newest, revisionOf(b))
	}
	for _, c := range deletions.upTo(s, newest) {
		if b := c.object.(*placementv1beta1.ClusterResourceBinding); !b.DeletionTimestamp.IsZero() {
			gone[b.UID] = true
		}
	}
	require.Len(s, gone, executed, "as many bindings went as evictions were executed")
}

// deletedBindingComesBack deletes one by hand: the cluster is lost for a moment, and picked again.
func deletedBindingComesBack(s *spec) {
	s.namespaceWithConfigMap()
	s.place()
	s.awaitAvailable("0")
	lost := s.bindings()[0]
	byHand.Store(lost.UID, true)
	s.delete(s.hub, lost)
	require.Eventually(s, func() bool {
		now := s.bindings()
		return len(now) == members && !slices.ContainsFunc(now, func(b *placementv1beta1.ClusterResourceBinding) bool { return b.UID == lost.UID })
	}, patience, visibilityEvery, "the binding must come back as another one")
	s.awaitAvailable("0")
	s.awaitValue(value1, allMembers...)
}
