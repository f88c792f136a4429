package rollingupdate

import (
	"context"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	act "github.com/fleetflow/fleetflow/activities/contract"
	"github.com/fleetflow/fleetflow/activities/workmodel"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/workflows/rollout"
)

// rolloutFacts are what one batch is decided from.
type rolloutFacts struct {
	rollout.Facts
	// bindings by cluster: their names, and what a change of them must pin.
	bindings map[string]string
	pins     map[string]act.Change
	// there are the uids of bindings that are not going, evictionUIDs those of evictions
	// that wait, by name.
	there        map[string]bool
	evictionUIDs map[string]string
	// down are the bindings to clusters that have resources and are not available.
	down []*placementv1beta1.ClusterResourceBinding
}

func (f *rolloutFacts) plan() rollout.Plan { return rollout.Decide(f.Facts) }

func (f *rolloutFacts) change(step rollout.Step) act.Change {
	c := f.pins[step.Cluster]
	c.Op = string(step.Op)
	return c
}

// look gathers the facts. The first look of a rollout, with nothing recorded
// yet, lists the bindings live and waits for the cache to be as new; later ones
// can trust the cache, because what we wrote ourselves is known (view, in
// flight) and what others wrote makes the fence hold.
func (a *advanceCall) look(ctx context.Context) (*rolloutFacts, error) {
	return a.gather(ctx, len(a.in.Batch) == 0 && len(a.in.InFlight) == 0 || slices.ContainsFunc(a.in.Batch, isEviction))
}

// lookAgain gathers the facts before a write. The batch may have been decided by another
// worker: if the cache of this one does not have what that was decided from, it may lag
// behind, and count a cluster as available that is gone.
func (a *advanceCall) lookAgain(ctx context.Context) (*rolloutFacts, error) {
	facts, err := a.look(ctx)
	if err != nil || a.in.Basis == "" || facts.basis() == a.in.Basis {
		return facts, err
	}
	return a.gather(ctx, true)
}

// basis identifies the bindings that facts were gathered from: which there are, and what they
// ask for.
func (f *rolloutFacts) basis() string {
	var sum uint64
	for uid, stays := range f.there {
		hash := fnv.New64a()
		// Writing to a hash never fails.
		_, _ = fmt.Fprint(hash, uid, stays)
		sum += hash.Sum64() // a sum does not depend on the order
	}
	for _, pin := range f.pins {
		hash := fnv.New64a()
		_, _ = fmt.Fprint(hash, pin.UID, pin.FromState, pin.FromRevision)
		sum += hash.Sum64()
	}
	return strconv.FormatUint(sum, 36)
}

func (a *advanceCall) gather(ctx context.Context, first bool) (*rolloutFacts, error) {
	var reader client.Reader = a.Client
	if first {
		reader = a.Live
	}
	var list placementv1beta1.ClusterResourceBindingList
	if err := reader.List(ctx, &list, client.MatchingLabels{placementv1beta1.ParentPlacementLabel: a.placement.Name}); err != nil {
		return nil, fmt.Errorf("listing the bindings of placement %s: %w", a.placement.Name, err)
	}
	if first {
		if err := a.view.WaitForVersions(ctx, a.sub, list.Items); err != nil {
			return nil, err
		}
		if err := a.view.WaitForDeletions(ctx, a.sub, a.placement.Name, list.Items); err != nil {
			return nil, err
		}
	}
	if err := a.applyTo(ctx, list.Items); err != nil {
		return nil, err
	}
	f := &rolloutFacts{
		bindings: map[string]string{}, pins: map[string]act.Change{}, there: map[string]bool{}, evictionUIDs: map[string]string{},
	}
	f.EvictionsOnly = a.in.EvictionsOnly
	for i := range list.Items {
		binding, err := a.newest(ctx, &list.Items[i])
		if err != nil {
			return nil, err
		}
		c, err := a.cluster(ctx, binding)
		if err != nil {
			return nil, err
		}
		f.add(c, binding)
	}
	for name := range a.inFlight {
		if _, there := f.bindings[name]; !there {
			delete(a.inFlight, name) // removed
		}
	}
	var err error
	if f.Limits, err = limitsOf(a.placement, f.Clusters); err != nil {
		return nil, err
	}
	return f, a.askedFor(ctx, f)
}

func isEviction(change act.Change) bool { return change.Eviction != "" }

// newest prefers what we have written over what was listed. One that was written
// to and does not look so is read live: either the cache lags behind, or somebody
// has changed it since, and then it is no longer in flight.
func (a *advanceCall) newest(ctx context.Context, listed *placementv1beta1.ClusterResourceBinding) (*placementv1beta1.ClusterResourceBinding, error) {
	a.view.Record(listed)
	binding, err := a.view.Get(ctx, listed.Name)
	if err != nil || binding == nil {
		return listed, err
	}
	cluster := binding.Spec.TargetCluster
	_, flying := a.inFlight[cluster]
	if unsettled := flying && !a.atTarget(binding) && binding.DeletionTimestamp.IsZero(); !unsettled && !a.claim.pends(binding) {
		return binding, nil
	}
	live, err := a.liveBinding(ctx, binding.Name)
	if err != nil || live == nil {
		return binding, err
	}
	if !a.atTarget(live) && live.DeletionTimestamp.IsZero() {
		delete(a.inFlight, cluster)
	}
	return live, nil
}

func (f *rolloutFacts) add(c rollout.Cluster, b *placementv1beta1.ClusterResourceBinding) {
	f.Clusters = append(f.Clusters, c)
	f.bindings[c.Name] = b.Name
	if c.Placed && !c.Available {
		f.down = append(f.down, b)
	}
	f.there[string(b.UID)] = b.DeletionTimestamp.IsZero()
	f.pins[c.Name] = act.Change{
		Cluster: c.Name, Binding: b.Name, UID: string(b.UID),
		FromState: string(b.Spec.State), FromRevision: workmodel.Revision(b),
	}
}

// cluster turns a binding and its Works into a planner's fact. A cluster in
// flight counts as unavailable until it is seen available at the target.
func (a *advanceCall) cluster(ctx context.Context, b *placementv1beta1.ClusterResourceBinding) (rollout.Cluster, error) {
	state, err := a.view.ClusterState(ctx, b)
	if err != nil {
		return rollout.Cluster{}, err
	}
	c := rollout.Cluster{
		Name: b.Spec.TargetCluster, State: rollout.State(b.Spec.State), Deleting: !b.DeletionTimestamp.IsZero(),
		Placed:  b.Spec.ResourceSnapshotName != "",
		Current: a.atTarget(b),
		Claimed: a.claim.pends(b), Expendable: expendable(b),
		Reports: reportsOnly(b.Spec.ApplyStrategy) && reportsOnly(a.target(b.Spec.TargetCluster).ApplyStrategy),
		Failed:  state.Failed, Available: state.Available && b.DeletionTimestamp.IsZero(),
	}
	if ready := a.readyAt(state); state.Available && state.NotTrackable && a.Clock.Now().Before(ready) {
		c.Available, c.ReadyAt = false, ready
	}
	if _, flying := a.inFlight[c.Name]; !flying {
		return c, nil
	}
	if c.Current && c.Available {
		delete(a.inFlight, c.Name)
		return c, nil
	}
	c.Available = false
	return c, nil
}

// limitsOf resolves the rollout's limits; the target number depends on the
// placement type (API reference, RollingUpdateConfig).
func limitsOf(placement *placementv1beta1.ClusterResourcePlacement, clusters []rollout.Cluster) (rollout.Limits, error) {
	limits := rollout.Limits{Target: targetNumber(placement.Spec.Policy, clusters)}
	unavailable, surge := intstr.FromString("25%"), intstr.FromString("25%")
	if s := placement.Spec.Strategy; s != nil && s.RollingUpdate != nil {
		if s.RollingUpdate.MaxUnavailable != nil {
			unavailable = *s.RollingUpdate.MaxUnavailable
		}
		if s.RollingUpdate.MaxSurge != nil {
			surge = *s.RollingUpdate.MaxSurge
		}
	}
	var err error
	if limits.MaxUnavailable, err = rollout.Resolve(unavailable.String(), limits.Target); err != nil {
		return limits, fmt.Errorf("maxUnavailable of placement %s: %w", placement.Name, err)
	}
	if limits.MaxSurge, err = rollout.Resolve(surge.String(), limits.Target); err != nil {
		return limits, fmt.Errorf("maxSurge of placement %s: %w", placement.Name, err)
	}
	return limits, nil
}

func targetNumber(policy *placementv1beta1.PlacementPolicy, clusters []rollout.Cluster) int {
	if policy != nil && policy.PlacementType == placementv1beta1.PickFixedPlacementType {
		return len(policy.ClusterNames)
	}
	if policy != nil && policy.PlacementType == placementv1beta1.PickNPlacementType && policy.NumberOfClusters != nil {
		return int(*policy.NumberOfClusters)
	}
	n := 0
	for _, c := range clusters {
		if c.State != rollout.Unscheduled && !c.Deleting {
			n++
		}
	}
	return n
}
