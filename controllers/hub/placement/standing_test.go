package placement

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/workflows/rollout"
)

// The projection of the plan says of random worlds what the status derived by itself before. Where they differ, the planner is right:
// nothing is stuck on the limits while something can be written.
func TestTheProjectionSaysWhatTheStatusDerived(t *testing.T) {
	told := map[string]int{}
	for seed := range uint64(20000) {
		s := randomSituation(rand.New(rand.NewPCG(seed, 1)))
		stands := s.Facts.standing(now.Time)
		held := derivedHeld(s.Facts)
		if !rules.RollingUpdateOf(s.Placement).Paused {
			require.Equal(t, held, stands.held, "seed %d", seed)
		}
		// A new cluster that is given the older snapshot during a pause takes a place of the partition: the pause keeps another then.
		require.ElementsMatch(t, slices.Collect(maps.Keys(held)), slices.Collect(maps.Keys(stands.held)), "seed %d", seed)
		closed := derivedClosed(s.Facts, held)
		require.Equal(t, closed, stands.closed, "seed %d", seed)
		require.Equal(t, derivedPending(s.Facts, held, closed), s.Facts.standing(time.Time{}).moves, "seed %d", seed)
		stuck := derivedStuck(s.Facts, held, closed)
		if slices.ContainsFunc(s.Bindings, rules.IsSuperseded) {
			continue // the planner does not count a copy that another has replaced, and the status did
		}
		if stands.stuck != stuck {
			require.Empty(t, stands.stuck, "seed %d: %s", seed, stuck)
			told["differs"]++
		}
		for what, is := range map[string]bool{"held": len(held) > 0, "closed": len(closed) > 0, "stuck": stands.stuck != "", "moves": stands.moves} {
			if is {
				told[what]++
			}
		}
	}
	t.Log(told)
	for _, what := range []string{"held", "closed", "stuck", "moves"} {
		require.Greater(t, told[what], 500, what)
	}
}

func randomSituation(r *rand.Rand) situation {
	var names []string
	for i := range 1 + r.IntN(6) {
		names = append(names, fmt.Sprintf("c%d", i))
	}
	s := newSituation(names...).snapshot(1)
	config := placementv1beta1.RollingUpdateConfig{Paused: r.IntN(4) == 0}
	if r.IntN(2) == 0 {
		config.Partition = new(intstr.FromInt(r.IntN(len(names) + 1)))
	}
	if r.IntN(2) == 0 {
		config.MaxUnavailable = new(intstr.FromInt(r.IntN(3)))
		config.MaxSurge = new(intstr.FromInt(r.IntN(3)))
	}
	if r.IntN(4) == 0 {
		config.MinReadySeconds = new(int32(600))
	}
	s = s.rolling(config)
	if r.IntN(3) == 0 {
		s.Placement.Spec.Policy = &placementv1beta1.PlacementPolicy{PlacementType: placementv1beta1.PickNPlacementType, NumberOfClusters: new(int32(r.IntN(len(names) + 2)))}
	}
	if r.IntN(3) == 0 {
		s.Placement.Spec.Strategy.Suspension = &placementv1beta1.Suspension{ClusterNames: names[:r.IntN(len(names)+1)]}
	}
	s.Closed = map[string]rollout.Wait{}
	for _, name := range names {
		b := s.binding(name)
		if r.IntN(5) > 0 {
			last := up
			if r.IntN(4) == 0 {
				last = notUp
			}
			s.bound(r.IntN(2), last, name)
			if r.IntN(6) == 0 {
				b.Spec.ApplyStrategy = &placementv1beta1.ApplyStrategy{Type: placementv1beta1.ApplyStrategyTypeClientSideApply}
			}
		}
		if r.IntN(6) == 0 {
			b.Spec.State = placementv1beta1.BindingStateUnscheduled
			if r.IntN(3) == 0 {
				b.Annotations = map[string]string{placementv1beta1.SupersededAnnotation: "x"}
			}
		}
		if r.IntN(8) == 0 {
			b.DeletionTimestamp = &metav1.Time{Time: now.Time}
		}
		if r.IntN(4) == 0 && !rules.IsDeleting(b) && !upToDate(s.Facts, b, s.Latest.Name) && !rules.IsSuperseded(b) {
			s.Closed[b.Name] = rollout.Wait{Cluster: name, Kind: rollout.BrakeHold, Reason: "HoldInForce", Object: "incident"}
		}
	}
	return s
}

func derivedHeld(f *Facts) map[string]string {
	held := map[string]string{}
	config := rules.RollingUpdateOf(f.Placement)
	if config.Partition == nil && !config.Paused && rules.StrategyOf(f.Placement).Suspension == nil {
		return held
	}
	older := map[string]bool{}
	for _, binding := range f.Bindings {
		if isWritten(binding) && binding.GetBindingSpec().ResourceSnapshotName != f.Latest.Name {
			older[binding.GetName()] = true
		}
	}
	reached := len(older) <= derivedLimits(f).Partition
	for _, binding := range f.Bindings {
		switch name := binding.GetName(); {
		case rules.IsSuspended(f.Placement, binding.GetBindingSpec().TargetCluster):
			held[name] = placementv1beta1.ReasonSuspended
		case older[name] && reached && config.Partition != nil:
			held[name] = placementv1beta1.ReasonHeldByPartition
		case config.Paused && isWritten(binding) && !upToDate(f, binding, f.Latest.Name):
			held[name] = placementv1beta1.ReasonRolloutPaused
		}
	}
	return held
}

func derivedClosed(f *Facts, held map[string]string) map[string]rollout.Wait {
	closed := map[string]rollout.Wait{}
	for name, wait := range f.Closed {
		if held[name] == "" {
			closed[name] = wait
		}
	}
	return closed
}

func derivedPending(f *Facts, held map[string]string, closed map[string]rollout.Wait) bool {
	for _, binding := range f.Bindings {
		_, waits := closed[binding.GetName()]
		if binding.GetDeletionTimestamp().IsZero() && !rules.IsSuperseded(binding) && !upToDate(f, binding, f.Latest.Name) &&
			held[binding.GetName()] == "" && !waits {
			return true
		}
	}
	return false
}

func derivedLimits(f *Facts) (out rollout.Limits) {
	fitting := 0
	for _, binding := range f.Bindings {
		if rules.IsLiveBinding(binding) {
			fitting++
		}
	}
	out.Target = rules.TargetClusters(f.Placement.GetPlacementSpec().Policy, fitting)
	unavailable, surge := rules.RolloutLimits(f.Placement)
	out.MaxUnavailable, _ = rollout.Resolve(unavailable.String(), out.Target)
	out.MaxSurge, _ = rollout.Resolve(surge.String(), out.Target)
	if partition := rules.RollingUpdateOf(f.Placement).Partition; partition != nil {
		out.Partition, _ = rollout.ResolvePartition(partition.String(), out.Target)
	}
	return out
}

func derivedStuck(f *Facts, held map[string]string, closed map[string]rollout.Wait) string {
	limits := derivedLimits(f)
	placed, available, changes, additions := 0, 0, 0, 0
	for _, binding := range f.Bindings {
		holds := binding.GetBindingSpec().ResourceSnapshotName != "" || !binding.GetDeletionTimestamp().IsZero()
		if holds {
			placed++
		}
		ready, known := rules.ReadyAt(binding, f.Placement.GetPlacementSpec().Strategy.MinReady())
		up := rules.SaysAvailable(binding) && known && !now.Time.Before(ready)
		if up {
			available++
		}
		_, waits := closed[binding.GetName()]
		switch {
		case holds && !up:
			return ""
		case held[binding.GetName()] == placementv1beta1.ReasonSuspended, waits:
		case binding.GetBindingSpec().State == placementv1beta1.BindingStateScheduled:
			additions++
		case !upToDate(f, binding, f.Latest.Name) && held[binding.GetName()] == "":
			changes++
		}
	}
	var reasons []string
	if changes > 0 && available <= limits.Target-limits.MaxUnavailable {
		reasons = append(reasons, fmt.Sprintf("of the %d cluster(s) asked for %d are available, and with maxUnavailable %d none of them may become unavailable",
			limits.Target, available, limits.MaxUnavailable))
	}
	if additions > 0 && placed >= limits.Target+limits.MaxSurge {
		reasons = append(reasons, fmt.Sprintf("%d cluster(s) have resources, %d are asked for, and with maxSurge %d no other may get any", placed, limits.Target, limits.MaxSurge))
	}
	return strings.Join(reasons, "; ")
}
