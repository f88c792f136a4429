package promise

import (
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// Fleet judges what a hub stores of all its ClusterResourcePlacements, write by write.
type Fleet struct {
	// Batch is for how long the batch may still be written that had begun when a hold was created, or when a placement asked for
	// fewer clusters; it counts only if At says when writes happen.
	Batch time.Duration

	checkers map[string]*Checker
	external map[string]bool
	holds    map[string]storedHold
	clusters map[string]storedCluster
	// exemptions are those that are stored.
	exemptions map[string]*fleetflowv1alpha1.RolloutExemption
	clock      time.Time
	// judged and placements count what was judged of placements that are gone.
	judged, placements int
}

// NewFleet returns a judge to whom nothing is known.
func NewFleet() *Fleet {
	return &Fleet{checkers: map[string]*Checker{}, external: map[string]bool{}, holds: map[string]storedHold{},
		clusters:   map[string]storedCluster{},
		exemptions: map[string]*fleetflowv1alpha1.RolloutExemption{}}
}

// Judged counts the writes of which there was something to judge, and the placements.
func (f *Fleet) Judged() (writes, placements int) {
	writes = f.judged
	placements = f.placements + len(f.checkers)
	for _, checker := range f.checkers {
		writes += checker.Judged
	}
	return writes, placements
}

// At is when the writes happen that follow.
func (f *Fleet) At(now time.Time) {
	f.clock = now
	for _, checker := range f.checkers {
		checker.At(now)
	}
}

// UserDeletes allows that a binding is deleted.
func (f *Fleet) UserDeletes(b *placementv1beta1.ClusterResourceBinding) {
	if checker := f.checkers[b.Labels[placementv1beta1.ParentPlacementLabel]]; checker != nil {
		checker.UserDeletes(b.Name)
	}
}

// Take judges one write: an object as it is stored now, or as it was stored last if it is gone. Kinds that promises do not
// speak of are passed over.
func (f *Fleet) Take(object client.Object, gone bool) error {
	switch o := object.(type) {
	case *fleetflowv1alpha1.RolloutHold:
		f.takeHold(o, gone)
	case *fleetflowv1alpha1.RolloutExemption:
		f.takeExemption(o, gone)
	case *clusterv1beta1.MemberCluster:
		f.takeCluster(o, gone)
	case *placementv1beta1.ClusterResourcePlacement:
		f.takePlacement(o, gone)
	case *placementv1beta1.ClusterStagedUpdateRun:
		return Run(o)
	default:
		return f.takePart(object, gone)
	}
	return nil
}

// takeHold shows a hold to all checkers. Where the time of writes is not known, a hold that expires is passed over: a batch
// may have been written after its end.
func (f *Fleet) takeHold(hold *fleetflowv1alpha1.RolloutHold, gone bool) {
	gone = gone || f.clock.IsZero() && hold.Spec.ExpirationTime != nil
	for _, checker := range f.checkers {
		checker.Hold(hold, gone, f.clock, f.Batch)
	}
	if gone {
		delete(f.holds, hold.Name)
		return
	}
	f.holds[hold.Name] = storedHold{hold, f.clock}
}

// takeExemption shows an exemption to all checkers.
func (f *Fleet) takeExemption(exemption *fleetflowv1alpha1.RolloutExemption, gone bool) {
	for _, checker := range f.checkers {
		checker.Exempt(exemption, gone, f.clock, f.Batch)
	}
	f.exemptions[exemption.Name] = exemption
	if gone {
		delete(f.exemptions, exemption.Name)
	}
}

// storedCluster is a member cluster as it was stored last.
type storedCluster struct {
	labels  map[string]string
	leaving bool
}

// takeCluster shows a member cluster to all checkers. One that leaves stays known as such until it joins again.
func (f *Fleet) takeCluster(member *clusterv1beta1.MemberCluster, gone bool) {
	cluster := storedCluster{member.Labels, gone || !member.DeletionTimestamp.IsZero()}
	f.clusters[member.Name] = cluster
	for _, checker := range f.checkers {
		checker.Labels(member.Name, cluster.labels)
		checker.Leaves(member.Name, cluster.leaving)
	}
}

// takePlacement begins to judge a placement, or notes how it has changed.
func (f *Fleet) takePlacement(p *placementv1beta1.ClusterResourcePlacement, gone bool) {
	checker := f.checkers[p.Name]
	if gone { // the next of this name is another one
		if checker != nil {
			f.judged += checker.Judged
			f.placements++
		}
		delete(f.checkers, p.Name)
		return
	}
	if checker == nil {
		checker = New(p)
		checker.batch = f.Batch
		for _, hold := range f.holds {
			checker.Hold(hold.RolloutHold, false, hold.grace, f.Batch)
		}
		for _, exemption := range f.exemptions {
			checker.Exempt(exemption, false, f.clock, f.Batch)
		}
		for name, cluster := range f.clusters {
			checker.Labels(name, cluster.labels)
			checker.Leaves(name, cluster.leaving)
		}
		checker.At(f.clock)
		f.checkers[p.Name] = checker
	}
	checker.Placement(p)
	f.external[p.Name] = p.Spec.Strategy != nil && p.Spec.Strategy.Type == placementv1beta1.ExternalRolloutStrategyType
}

// takePart shows a write to the checker of its placement. What update runs roll out has other limits.
func (f *Fleet) takePart(object client.Object, gone bool) error {
	name := object.GetLabels()[placementv1beta1.ParentPlacementLabel]
	switch o := object.(type) {
	case *placementv1beta1.ClusterResourcePlacementEviction:
		name = o.Spec.PlacementName
	case *placementv1beta1.ClusterResourcePlacementDisruptionBudget:
		name = o.Name
	}
	checker := f.checkers[name]
	if checker == nil {
		return nil
	}
	if b, is := object.(*placementv1beta1.ClusterResourceBinding); is && f.external[name] {
		return checker.BindingOfRun(b, gone)
	}
	if f.external[name] {
		return nil
	}
	switch o := object.(type) {
	case *placementv1beta1.ClusterResourceBinding:
		return checker.Binding(o, gone)
	case *placementv1beta1.Work:
		checker.Work(o, gone)
	case *placementv1beta1.ClusterResourcePlacementEviction:
		checker.Eviction(o)
	case *placementv1beta1.ClusterResourcePlacementDisruptionBudget:
		if gone {
			o = nil
		}
		checker.Budget(o)
	}
	return nil
}
