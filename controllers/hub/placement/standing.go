package placement

import (
	"slices"
	"time"

	"github.com/fleetflow/fleetflow/activities/brake"
	"github.com/fleetflow/fleetflow/activities/rollingupdate"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/workflows/rollout"
)

// standing is how a rollout stands, as the planner says of what the bindings tell: a projection of its plan. The planner of the
// workflow also knows Works, claims, hooks and the order of clusters.
type standing struct {
	// held are the reasons of clusters that only a change of the placement takes on, and of those that are suspended, by binding.
	held map[string]string
	// closed are the waits of clusters that must not begin, by binding.
	closed map[string]rollout.Wait
	// refused are the waits of clusters whose bindings the API server refuses to write, by binding.
	refused map[string]rollout.Wait
	// replaced are the waits of clusters that are being replaced, by binding.
	replaced map[string]rollout.Wait
	// moves says that clusters are to be changed as others move.
	moves bool
	// stuck says why no cluster can move though some are to be changed; empty if one can. limits are those of the rollout.
	stuck  string
	limits rollout.Limits
	// awaited are the clusters that have resources and are not available, if others wait for them by maxUnavailable.
	awaited []string
}

// standing projects what the rollout would decide at an instant. Of facts that are complete it is projected once: many ask for it.
func (f *Facts) standing(now time.Time) standing {
	if known, has := f.standings[now]; has {
		return known
	}
	s := standing{held: map[string]string{}, closed: map[string]rollout.Wait{}, refused: map[string]rollout.Wait{}}
	refused := brake.RefusedWaits(f.Placement)
	bindings := map[string]string{}
	clusters := make([]rollout.Cluster, 0, len(f.Bindings))
	for _, binding := range f.Bindings {
		c := rolloutCluster(f, binding, now)
		if wait, is := refused[c.Name]; is && !c.Deleting {
			c.Waits = slices.Concat(c.Waits, []rollout.Wait{wait})
			c.Claimed = rollingupdate.IsClaimed(f.Placement, binding)
		}
		clusters = append(clusters, c)
		if !c.Deleting {
			bindings[c.Name] = binding.GetName()
		}
		if rules.IsSuspended(f.Placement, c.Name) {
			s.held[binding.GetName()] = placementv1beta1.ReasonSuspended
		}
	}
	s.limits, _ = rollingupdate.LimitsOf(f.Placement, clusters) // invalid ones are refused elsewhere
	plan := rollout.Decide(rollout.Facts{Clusters: clusters, Limits: s.limits, Replaced: listReplacers(f.Bindings)})
	s.moves = len(plan.Steps)+plan.Blocked()+len(plan.Refused()) > 0
	s.stuck = plan.Stuck()
	s.replaced = listReplaced(plan.Waits, bindings)
	reached := plan.ReachesPartition(clusters)
	if slices.ContainsFunc(plan.Waits, func(w rollout.Wait) bool { return w.Kind == rollout.BrakeMaxUnavailable }) {
		s.awaited = listUnavailable(clusters)
	}
	for _, wait := range plan.Waits {
		name := bindings[wait.Cluster]
		closure, closed := f.Closed[name]
		switch {
		case wait.Kind == rollout.BrakeRefusal:
			s.refused[name] = wait
		case wait.Kind == rollout.BrakePause, wait.Kind == rollout.BrakePartition && reached:
			s.held[name] = wait.Reason
		case closed && s.held[name] == "": // also one that the partition keeps while others, which go first, are closed
			s.closed[name] = closure
		}
	}
	if f.standings != nil {
		f.standings[now] = s
	}
	return s
}

// listReplaced returns the waits of clusters that are being replaced, by binding; bindings are the names of these by cluster.
func listReplaced(waits []rollout.Wait, bindings map[string]string) map[string]rollout.Wait {
	replaced := map[string]rollout.Wait{}
	for _, wait := range waits {
		if wait.Kind == rollout.BrakeNewCluster {
			replaced[bindings[wait.Cluster]] = wait
		}
	}
	return replaced
}

// listReplacers returns by which clusters those are replaced that keep their copies until then. Whether they are fit the workflow knows.
func listReplacers(bindings []placementv1beta1.BindingObject) map[string]rollout.Replacer {
	replacers := map[string]rollout.Replacer{}
	for _, binding := range bindings {
		if by := rules.ReplacedBy(binding); by != "" {
			replacers[binding.GetBindingSpec().TargetCluster] = rollout.Replacer{Cluster: by, Fit: true}
		}
	}
	return replacers
}

// listUnavailable returns the names of the clusters that have resources and are not available.
func listUnavailable(clusters []rollout.Cluster) (names []string) {
	for i := range clusters {
		if c := &clusters[i]; c.Placed && !c.Available && !c.Deleting {
			names = append(names, c.Name)
		}
	}
	return names
}

// rolloutCluster makes of a binding what the planner knows of its cluster.
func rolloutCluster(f *Facts, binding placementv1beta1.BindingObject, now time.Time) rollout.Cluster {
	spec := binding.GetBindingSpec()
	c := rollout.Cluster{
		Name: spec.TargetCluster, State: rollout.State(spec.State), Deleting: rules.IsDeleting(binding), Placed: spec.ResourceSnapshotName != "",
		Current: upToDate(f, binding, f.Latest.Name), Old: spec.ResourceSnapshotName != "" && spec.ResourceSnapshotName != f.Latest.Name,
		Superseded: rules.IsSuperseded(binding), Waits: brake.Suspension(f.Placement, spec.TargetCluster),
	}
	if closure, closed := f.Closed[binding.GetName()]; closed {
		c.Waits = slices.Concat(c.Waits, []rollout.Wait{closure})
	}
	ready, known := rules.ReadyAt(binding, f.Placement.GetPlacementSpec().Strategy.MinReady())
	c.Available = rules.SaysAvailable(binding) && known && !now.Before(ready)
	return c
}
