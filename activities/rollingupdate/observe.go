package rollingupdate

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/bind"
	"github.com/fleetflow/fleetflow/activities/brake"
	"github.com/fleetflow/fleetflow/activities/clusterwait"
	"github.com/fleetflow/fleetflow/activities/hubread"
	"github.com/fleetflow/fleetflow/activities/planning"
	"github.com/fleetflow/fleetflow/activities/workmodel"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/workflows/rollout"
)

// observer gathers the facts that a call decides from.
type observer struct {
	*callState
	sub *clusterwait.Subscription
}

// observe gathers the facts. At the start of a rollout, when nothing is recorded yet, it
// lists the bindings live and waits until the cache is as new. Later it can trust the
// cache, because the call knows its own writes, and because the fence refuses a write to
// a binding that another writer has changed.
func (o observer) observe(ctx context.Context) (*rolloutFacts, error) {
	return o.gatherFacts(ctx, o.in.Basis == "" && len(o.in.Batch) == 0 || slices.ContainsFunc(o.in.Batch, isEviction))
}

// observeFirst gathers the facts at the beginning of a call. Another worker may have had the one before: if the
// cache of this one does not have the bindings that it ended with, it may lag behind, and count a cluster as available
// that was written to, or is gone.
func (o observer) observeFirst(ctx context.Context) (*rolloutFacts, error) {
	facts, err := o.observe(ctx)
	if err != nil || o.in.Basis == "" || facts.basis() == o.in.Basis {
		return facts, err
	}
	return o.gatherFacts(ctx, true)
}

// observeBeforeWrite gathers the facts before a write.
func (o observer) observeBeforeWrite(ctx context.Context) (*rolloutFacts, error) {
	if rules.RollingUpdateOf(o.placement).Partition != nil || o.lifecycleHooks() != nil {
		return o.gatherFacts(ctx, true) // it counts the clusters that are selected now; hooks are answered at any time
	}
	return o.observeFirst(ctx)
}

func (o observer) gatherFacts(ctx context.Context, live bool) (*rolloutFacts, error) {
	bindings, err := o.listBindings(ctx, live)
	if err != nil {
		return nil, err
	}
	if err := o.goal.matchClusters(ctx, o.acts.Client, bindings); err != nil {
		return nil, err
	}
	refusalKeeper{o.callState}.learn(bindings)
	f := newRolloutFacts()
	f.EvictionsOnly = o.in.EvictionsOnly
	f.claimRoom = roomForClaim(o.placement.GetAnnotations())
	for _, listed := range bindings {
		binding, err := o.readNewest(ctx, listed)
		if err != nil {
			return nil, err
		}
		cluster, err := o.observeCluster(ctx, binding)
		if err != nil {
			return nil, err
		}
		f.addCluster(cluster, binding)
		if err := o.observeReplacement(ctx, f, binding); err != nil {
			return nil, err
		}
		if refused, is := (refusalKeeper{o.callState}).findRefusal(binding); is {
			f.refused = append(f.refused, refused)
		}
	}
	if err := o.observeClosed(ctx, f); err != nil {
		return nil, err
	}
	o.flight.keepInFlight(func(cluster string) bool { return f.bindingNames[cluster] != "" })
	if f.Limits, err = LimitsOf(o.placement, f.Clusters); err != nil {
		return nil, err
	}
	if err := o.orderClusters(ctx, f); err != nil {
		return nil, err
	}
	f.stable = rollout.StableSnapshot(f.older, snapshotIndex)
	if err := o.addEvictions(ctx, f); err != nil {
		return nil, err
	}
	f.forgetIdleRefusals(rules.IsExternal(o.placement))
	return f, nil
}

// orderClusters adds to the facts in which order clusters are to be updated, by their labels.
func (o observer) orderClusters(ctx context.Context, f *rolloutFacts) error {
	given := rules.RollingUpdateOf(o.placement).Order
	if given == nil {
		return nil
	}
	var list clusterv1beta1.MemberClusterList
	if err := o.acts.Client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing the member clusters to order them: %w", err)
	}
	labels := make(map[string]map[string]string, len(list.Items))
	for i := range list.Items {
		labels[list.Items[i].Name] = list.Items[i].Labels
	}
	order := planning.CompileOrder(given)
	members := make([]rollout.Member, len(f.Clusters))
	for i, c := range f.Clusters {
		members[i] = rollout.Member{Name: c.Name, Labels: labels[c.Name]}
	}
	places := make(map[string]int, len(members))
	for place, name := range order.Sort(members) {
		places[name] = place
	}
	for i := range f.Clusters {
		c := &f.Clusters[i]
		c.Order = places[c.Name]
		c.Scatter = labels[c.Name][order.Scatter]
	}
	return nil
}

// listBindings lists the bindings of the placement, from the cache or live. After a live
// list it waits until the cache is as new.
func (o observer) listBindings(ctx context.Context, live bool) ([]placementv1beta1.BindingObject, error) {
	name := o.placement.GetName()
	var reader client.Reader = o.acts.Client
	var mine client.ListOption = client.MatchingFields{hubread.ByPlacement: name}
	if live {
		reader = o.acts.Live
		mine = client.MatchingLabels{placementv1beta1.ParentPlacementLabel: name}
	}
	list := placementv1beta1.ScopeOf(o.placement).NewBindingList()
	err := reader.List(ctx, list, client.InNamespace(o.placement.GetNamespace()), mine)
	if err != nil {
		return nil, fmt.Errorf("listing the bindings of placement %s: %w", name, err)
	}
	bindings := list.Objects()
	if !live {
		return bindings, nil
	}
	if err := o.bindings.WaitForVersions(ctx, o.sub, bindings); err != nil {
		return nil, err
	}
	return bindings, o.bindings.WaitForDeletions(ctx, o.sub, o.placement, bindings)
}

// readNewest returns the binding that the call has written, if that is newer than the
// listed one. One that was written to and does not look so is read live: either the cache
// lags behind, or another writer has changed it since, and then it is no longer in flight.
func (o observer) readNewest(ctx context.Context, listed placementv1beta1.BindingObject) (placementv1beta1.BindingObject, error) {
	o.bindings.Record(listed)
	binding, err := o.bindings.Binding(ctx, client.ObjectKeyFromObject(listed))
	if err != nil || binding == nil {
		return listed, err
	}
	cluster := binding.GetBindingSpec().TargetCluster
	seemsUnwritten := o.flight.isInFlight(cluster) && !o.goal.isReached(binding) && !rules.IsDeleting(binding)
	if !seemsUnwritten && (!o.claim.isPending(binding) || refusalKeeper{o.callState}.isKept(binding)) {
		return binding, nil
	}
	live, err := o.readBinding(ctx, binding.GetName())
	if err != nil || live == nil {
		return binding, err
	}
	// One that was given an older snapshot lands when it is available with that.
	if !o.goal.isReached(live) && !rules.IsDeleting(live) && !o.goal.isOld(live) {
		o.flight.markLanded(cluster)
	}
	return live, nil
}

// observeCluster makes a fact of a binding and its Works. A cluster in flight counts as
// unavailable until it is seen available at the target.
func (o observer) observeCluster(ctx context.Context, b placementv1beta1.BindingObject) (rollout.Cluster, error) {
	state, err := o.bindings.ClusterState(ctx, b)
	if err != nil {
		return rollout.Cluster{}, err
	}
	spec := b.GetBindingSpec()
	deleting := rules.IsDeleting(b)
	c := rollout.Cluster{
		Name: spec.TargetCluster, State: rollout.State(spec.State), Deleting: deleting,
		Placed:  spec.ResourceSnapshotName != "",
		Current: o.goal.isReached(b), Old: o.goal.isOld(b),
		Claimed: o.claim.isPending(b), Expendable: isExpendable(b),
		Reports: reportsOnly(spec.ApplyStrategy) && reportsOnly(o.goal.targetOf(spec.TargetCluster).ApplyStrategy),
		Failed:  state.Failed, Available: state.Available && !deleting,
		Waits: brake.Suspension(o.placement, spec.TargetCluster),
	}
	if ready, known := workmodel.ReadyAt(b, state, o.goal.strategy); c.Available && (!known || o.acts.Clock.Now().Before(ready)) {
		c.Available = false
		c.ReadyAt = ready
	}
	if err := o.observeFailover(ctx, &c, b); err != nil {
		return c, err
	}
	if err := o.observeHooks(ctx, &c, b); err != nil {
		return c, err
	}
	c.Waits = append(c.Waits, refusalKeeper{o.callState}.waitsOf(b)...)
	if !o.flight.isInFlight(c.Name) {
		return c, nil
	}
	if (c.Current || c.Old) && c.Available {
		o.flight.markLanded(c.Name)
		return c, nil
	}
	c.Available = false
	return c, nil
}

// observeReplacement adds to the facts which cluster is to take over from one that is being replaced, and whether it is fit.
func (o observer) observeReplacement(ctx context.Context, f *rolloutFacts, b placementv1beta1.BindingObject) error {
	by, err := bind.ReplacerOf(ctx, o.acts.Client, b)
	if err != nil || by == "" {
		return err
	}
	fit, err := bind.IsFitMember(ctx, o.acts.Client, by)
	if f.Replaced == nil {
		f.Replaced = map[string]rollout.Replacer{}
	}
	replacer := rollout.Replacer{Cluster: by, Fit: fit}
	if until := o.flight.awaitedUntil(b.GetBindingSpec().TargetCluster); o.acts.Clock.Now().Before(until) {
		replacer.Again = until
	}
	f.Replaced[b.GetBindingSpec().TargetCluster] = replacer
	return err
}

// longestDeparture is for how long what replaces a copy waits until that is gone: a member that is out of reach removes nothing.
const longestDeparture = 10 * time.Minute

// observeFailover adds what waits for each other if the placement leaves clusters for others.
func (o observer) observeFailover(ctx context.Context, c *rollout.Cluster, b placementv1beta1.BindingObject) error {
	rule := rules.FailoverOf(o.placement)
	now := o.acts.Clock.Now()
	if c.Superseded = rules.IsSuperseded(b); c.Superseded {
		return nil
	}
	if rule == nil {
		return nil
	}
	if since, left := rules.LeftSince(b); left {
		switch mode, gone := rules.PurgeModeFor(rule, rules.LeftBecauseOf(b)), since.Add(longestDeparture); {
		case mode == placementv1beta1.PurgeGracefully, mode == placementv1beta1.PurgeNever: // of the latter what is well, as the rest is superseded
			c.Leaving = rollout.LeavingGracefully
		case mode == placementv1beta1.PurgeDirectly && now.Before(gone):
			c.Leaving, c.ReadyAt = rollout.LeavingDirectly, rollout.EarlierOf(c.ReadyAt, gone)
		}
		return o.observeLost(ctx, c)
	}
	applied := meta.FindStatusCondition(b.GetBindingStatus().Conditions, placementv1beta1.ConditionTypeApplied)
	if applied != nil && applied.Status == metav1.ConditionTrue {
		settles := applied.LastTransitionTime.Add(rules.GracePeriod(rule))
		if c.Settled = !now.Before(settles); !c.Settled {
			c.SettlesAt = settles
		}
	}
	return nil
}

// observeLost adds a cluster that does not report and from which everything is being removed.
func (o observer) observeLost(ctx context.Context, c *rollout.Cluster) error {
	if !c.Deleting {
		return nil
	}
	member := &clusterv1beta1.MemberCluster{}
	if err := o.acts.Client.Get(ctx, client.ObjectKey{Name: c.Name}, member); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading member cluster %s: %w", c.Name, err)
	}
	c.Lost = !meta.IsStatusConditionTrue(member.Status.Conditions, clusterv1beta1.ConditionTypeHealthy)
	return nil
}

// observeHooks adds what the lifecycle hooks of the placement say of a cluster.
func (o observer) observeHooks(ctx context.Context, c *rollout.Cluster, b placementv1beta1.BindingObject) (err error) {
	lifecycle := o.lifecycleHooks()
	now := o.acts.Clock.Now()
	if lifecycle == nil || !c.Placed {
		return nil
	}
	removal, err := bind.HoldsRemoval(ctx, o.acts.Client, lifecycle, b, now)
	if err != nil {
		return err
	}
	update := rules.HoldsUpdate(lifecycle, b, now)
	switch state, _ := rules.LifecycleStateOf(b); state {
	case placementv1beta1.LifecyclePreparingUpdate:
		c.Prepared = rollout.Update
	case placementv1beta1.LifecyclePreparingRemove:
		c.Prepared = rollout.Remove
	}
	if rules.HoldsAvailable(lifecycle, b, now) != nil {
		c.Drained, c.Available = c.Prepared != "" && c.Available, false
	}
	for _, held := range []struct {
		op   rollout.Op
		wait *rules.HookWait
	}{{rollout.Update, update}, {rollout.Remove, removal}} {
		for _, wait := range brake.Hook(c.Name, held.wait) {
			wait.Op = held.op
			c.Waits = append(c.Waits, wait)
			c.ReadyAt = rollout.EarlierOf(c.ReadyAt, wait.Until)
		}
	}
	return nil
}

// maxEvictions bounds how many evictions one batch decides.
const maxEvictions = 200

// addEvictions adds to the facts the evictions without an outcome and what bounds them.
func (o observer) addEvictions(ctx context.Context, f *rolloutFacts) error {
	waiting, err := WaitingEvictions(ctx, o.acts.Client, placementv1beta1.ScopeOf(o.placement), o.placement.GetName())
	if err != nil {
		return err
	}
	for i := range waiting {
		e := &waiting[i]
		if _, concluded := o.flight.concluded.Load(e.UID); concluded || len(f.Evictions) == maxEvictions {
			continue
		}
		asked := rollout.Eviction{Name: e.Name, Cluster: e.Spec.ClusterName}
		if started, ok := o.claim.startedEviction(e); ok {
			asked.Begun = &started.Verdict
			asked.Gone = !f.staying[started.Binding]
		}
		f.Evictions = append(f.Evictions, asked)
		f.evictionUIDs[e.Name] = string(e.UID)
	}
	if len(f.Evictions) == 0 {
		return nil
	}
	f.Policy, err = readEvictionPolicy(ctx, o.acts.Live, o.placement)
	return err
}
