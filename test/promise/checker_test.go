package promise_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/fleetflow/fleetflow/activities/workmodel"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/test/promise"
)

// trace is a fleet of three available clusters, a, b and c, and what is written to it.
type trace struct {
	*promise.Checker
	placement *placementv1beta1.ClusterResourcePlacement
	bindings  map[string]*placementv1beta1.ClusterResourceBinding
}

func newTrace(policy placementv1beta1.PlacementPolicy, maxUnavailable int) *trace {
	p := &placementv1beta1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: "crp"}}
	p.Spec.Policy = &policy
	p.Spec.Strategy = &placementv1beta1.RolloutStrategy{RollingUpdate: &placementv1beta1.RollingUpdateConfig{
		MaxUnavailable: new(intstr.FromInt(maxUnavailable)), MaxSurge: new(intstr.FromInt(1)),
	}}
	t := &trace{Checker: promise.New(p), placement: p, bindings: map[string]*placementv1beta1.ClusterResourceBinding{}}
	for _, cluster := range []string{"a", "b", "c"} {
		b := &placementv1beta1.ClusterResourceBinding{ObjectMeta: metav1.ObjectMeta{Name: "crp-" + cluster, UID: types.UID(cluster), Generation: 1}}
		b.Spec.State = placementv1beta1.BindingStateBound
		b.Spec.TargetCluster = cluster
		b.Spec.ResourceSnapshotName = "crp-0-snapshot"
		t.bindings[cluster] = b
		t.Seed(b)
		t.reports(cluster, metav1.ConditionTrue)
	}
	return t
}

// reports has a member report on what its binding asks for.
func (t *trace) reports(cluster string, available metav1.ConditionStatus) {
	b := t.bindings[cluster]
	work := &placementv1beta1.Work{ObjectMeta: metav1.ObjectMeta{
		Namespace: placementv1beta1.MemberNamespace(cluster), Name: "crp-work", Generation: 1,
		Labels: map[string]string{placementv1beta1.ParentBindingLabel: b.Name},
		Annotations: map[string]string{
			placementv1beta1.RevisionAnnotation: workmodel.Revision(b), placementv1beta1.BindingUIDAnnotation: string(b.UID),
			placementv1beta1.WorkCountAnnotation: "1",
		},
	}}
	for _, kind := range []string{placementv1beta1.ConditionTypeApplied, placementv1beta1.ConditionTypeAvailable, placementv1beta1.ConditionTypeDiffReported} {
		work.Status.Conditions = append(work.Status.Conditions, metav1.Condition{Type: kind, Status: available, ObservedGeneration: 1})
	}
	t.Work(work, false)
}

// writes changes the binding of a cluster.
func (t *trace) writes(cluster string, change func(*placementv1beta1.ClusterResourceBinding)) error {
	b := t.bindings[cluster].DeepCopy()
	change(b)
	t.bindings[cluster] = b
	return t.Binding(b, false)
}

func (t *trace) updates(cluster string) error {
	return t.writes(cluster, func(b *placementv1beta1.ClusterResourceBinding) { b.Spec.ResourceSnapshotName = "crp-1-snapshot" })
}

func (t *trace) deletes(cluster string) error {
	return t.writes(cluster, func(b *placementv1beta1.ClusterResourceBinding) { b.DeletionTimestamp = new(metav1.Now()) })
}

func (t *trace) evicts(cluster string) {
	e := &placementv1beta1.ClusterResourcePlacementEviction{ObjectMeta: metav1.ObjectMeta{Name: "off-" + cluster}}
	e.Spec.PlacementName = "crp"
	e.Spec.ClusterName = cluster
	t.Eviction(e)
}

func (t *trace) budgets(minAvailable intstr.IntOrString) {
	budget := &placementv1beta1.ClusterResourcePlacementDisruptionBudget{}
	budget.Spec.MinAvailable = &minAvailable
	t.Budget(budget)
}

// The checker sees each way of breaking the promise, and nothing in what keeps it.
func TestWhatBreaksThePromiseIsSeen(t *testing.T) {
	pickN := placementv1beta1.PlacementPolicy{PlacementType: placementv1beta1.PickNPlacementType, NumberOfClusters: new(int32(3))}
	pickAll := placementv1beta1.PlacementPolicy{PlacementType: placementv1beta1.PickAllPlacementType}
	pickFixed := placementv1beta1.PlacementPolicy{PlacementType: placementv1beta1.PickFixedPlacementType, ClusterNames: []string{"a", "b", "c"}}
	cases := map[string]struct {
		policy placementv1beta1.PlacementPolicy
		do     func(*trace) error
		broken string
	}{
		"one of three may be down": {policy: pickN, do: func(h *trace) error { return h.updates("a") }},
		"not two": {policy: pickN, broken: "taking b away leaves 1 clusters available, 2 must remain", do: func(h *trace) error {
			require.NoError(t, h.updates("a"))
			return h.updates("b")
		}},
		"two, once the first is back": {policy: pickN, do: func(h *trace) error {
			require.NoError(t, h.updates("a"))
			h.reports("a", metav1.ConditionTrue)
			return h.updates("b")
		}},
		"another one, while a user takes a cluster out of the fleet, which counts or not": {policy: pickAll, do: func(h *trace) error {
			h.Leaves("a", true)
			h.reports("a", metav1.ConditionFalse)
			return h.updates("b")
		}},
		"not two, while a user takes a cluster out of the fleet": {policy: pickAll, broken: "taking c away leaves 0 clusters available, 2 must remain", do: func(h *trace) error {
			h.Leaves("a", true)
			h.reports("a", metav1.ConditionFalse)
			require.NoError(t, h.updates("b"))
			return h.updates("c")
		}},
		"not two that replace clusters which a user takes out of the fleet": {policy: pickN, broken: "taking y away leaves 1 clusters available, 2 must remain", do: func(h *trace) error {
			for i, cluster := range []string{"x", "y"} {
				replacing := h.bindings["a"].DeepCopy()
				replacing.Name = "crp-" + cluster
				replacing.UID = types.UID(cluster)
				replacing.Spec.TargetCluster = cluster
				h.Seed(replacing)
				h.bindings[cluster] = replacing
				h.reports(cluster, metav1.ConditionTrue)
				h.Leaves([]string{"a", "b"}[i], true)
				h.reports([]string{"a", "b"}[i], metav1.ConditionFalse)
			}
			require.NoError(t, h.updates("x"))
			return h.updates("y")
		}},
		"any number, where differences are only reported": {policy: pickN, do: func(h *trace) error {
			for _, cluster := range []string{"a", "b", "c"} {
				b := h.bindings[cluster]
				b.Spec.ApplyStrategy = &placementv1beta1.ApplyStrategy{Type: placementv1beta1.ApplyStrategyTypeReportDiff}
				h.Seed(b)
				h.reports(cluster, metav1.ConditionTrue)
			}
			return errors.Join(h.updates("a"), h.updates("b"), h.updates("c"))
		}},
		"a stale report does not count": {policy: pickN, broken: "taking b away", do: func(h *trace) error {
			h.reports("a", metav1.ConditionTrue)
			require.NoError(t, h.updates("a"))
			return h.updates("b")
		}},
		"what is down anyway may be rewritten": {policy: pickN, do: func(h *trace) error {
			h.reports("a", metav1.ConditionFalse)
			h.reports("b", metav1.ConditionFalse)
			return h.updates("a")
		}},
		"what goes and never had resources takes no place": {policy: pickN, do: func(h *trace) error {
			never := h.bindings["a"].DeepCopy()
			never.Name = "crp-d"
			never.UID = "d"
			never.Spec.TargetCluster = "d"
			never.Spec.ResourceSnapshotName = ""
			never.Spec.State = placementv1beta1.BindingStateUnscheduled
			h.Seed(never)
			h.bindings["d"] = never
			require.NoError(t, h.deletes("d"))
			fourth := h.bindings["a"].DeepCopy()
			fourth.Name = "crp-e"
			fourth.UID = "e"
			fourth.Spec.TargetCluster = "e"
			return h.Binding(fourth, false)
		}},
		"a fourth cluster is within the surge, a fifth is not": {policy: pickN, broken: "placing on e makes 5 clusters, 4 may have resources", do: func(h *trace) error {
			var last error
			for _, cluster := range []string{"d", "e"} {
				require.NoError(t, last)
				b := h.bindings["a"].DeepCopy()
				b.Name = "crp-" + cluster
				b.UID = types.UID(cluster)
				b.Spec.TargetCluster = cluster
				last = h.Binding(b, false)
			}
			return last
		}},
		"a deletion without a request": {policy: pickN, broken: "without a cause that allows it", do: func(h *trace) error { return h.deletes("a") }},
		"the user has":                 {policy: pickN, do: func(h *trace) error { h.UserDeletes("crp-a"); return h.deletes("a") }},
		"a deleted placement takes all along": {policy: pickN, do: func(h *trace) error {
			h.placement.DeletionTimestamp = new(metav1.Now())
			h.Placement(h.placement)
			return errors.Join(h.deletes("a"), h.deletes("b"), h.deletes("c"))
		}},
		"a cluster that was dropped may go": {policy: pickN, do: func(h *trace) error {
			require.NoError(t, h.writes("a", func(b *placementv1beta1.ClusterResourceBinding) {
				b.Spec.State = placementv1beta1.BindingStateUnscheduled
			}))
			return h.deletes("a")
		}},
		"an eviction has asked for it":      {policy: pickN, do: func(h *trace) error { h.evicts("a"); return h.deletes("a") }},
		"not from a fixed list of clusters": {policy: pickFixed, broken: "without a cause that allows it", do: func(h *trace) error { h.evicts("a"); return h.deletes("a") }},
		"a budget lets one go": {policy: pickN, do: func(h *trace) error {
			h.budgets(intstr.FromInt(2))
			h.evicts("a")
			return h.deletes("a")
		}},
		"and not another": {policy: pickN, broken: "evicting from b is more than the budget allows: 2 of 3 were available", do: func(h *trace) error {
			h.budgets(intstr.FromInt(2))
			h.evicts("a")
			h.evicts("b")
			require.NoError(t, h.deletes("a"))
			return h.deletes("b")
		}},
		"a budget that does not fit lets none go": {policy: pickAll, broken: "a budget that does not fit the placement", do: func(h *trace) error {
			h.budgets(intstr.FromString("10%"))
			h.evicts("a")
			return h.deletes("a")
		}},
	}
	for sentence, tc := range cases {
		t.Run(sentence, func(t *testing.T) {
			err := tc.do(newTrace(tc.policy, 1))
			if tc.broken == "" {
				assert.NoError(t, err)
				return
			}
			assert.ErrorContains(t, err, tc.broken, fmt.Sprint(err))
		})
	}
}
