package stagedupdate

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"go.temporal.io/sdk/activity"
	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/clusterwait"
	act "github.com/fleetflow/fleetflow/activities/contract"
	"github.com/fleetflow/fleetflow/activities/throttle"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	"github.com/fleetflow/fleetflow/apis/placement/updaterun"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// schedulingPatience is how long initialization waits for a placement that was
// created or changed a moment ago to be scheduled.
const schedulingPatience = 20 * time.Second

// InitializeRun validates a run and freezes its plan into its status, once.
// A plan that cannot be made until the user changes something ends the run with Initialized False.
func (a *Activities) InitializeRun(ctx context.Context, ref wf.Ref) (act.InitializeResult, error) {
	run, err := a.runs().readRun(ctx, ref)
	if err != nil || run == nil {
		return act.InitializeResult{}, err
	}
	if meta.FindStatusCondition(run.Status.Conditions, placementv1beta1.ConditionTypeInitialized) != nil {
		return act.InitializeResult{State: stateOf(run)}, nil
	}
	planned := run.DeepCopy()
	note, err := a.planner().makePlan(ctx, planned)
	var refused *userError
	if err != nil && !errors.As(err, &refused) {
		return act.InitializeResult{}, a.runs().recordRefusedWrite(ctx, run, err)
	}
	if err := a.storePlan(ctx, run, planned.Status, note, refused); err != nil {
		return act.InitializeResult{}, err
	}
	return act.InitializeResult{State: stateOf(run)}, nil
}

// storePlan writes the frozen plan, unless another attempt was faster.
func (a *Activities) storePlan(ctx context.Context, run *placementv1beta1.ClusterStagedUpdateRun, planned placementv1beta1.UpdateRunStatus, note string, refused *userError) error {
	written := false
	active, err := a.runs().recordStatus(ctx, run, func(r updaterun.Recorder) {
		if written = meta.FindStatusCondition(r.Status().Conditions, placementv1beta1.ConditionTypeInitialized) == nil; !written {
			return
		}
		conditions := r.Status().Conditions
		*r.Status() = *planned.DeepCopy()
		r.Status().Conditions = conditions
		if refused != nil {
			r.RunCondition(placementv1beta1.ConditionTypeInitialized, metav1.ConditionFalse,
				placementv1beta1.ReasonUpdateRunInitializedFailed, clientError(refused.text))
			return
		}
		r.Initialized(note)
		if run.Spec.State == "" || run.Spec.State == placementv1beta1.StateRun {
			r.Progressing()
		}
	})
	if err != nil || !active || !written {
		return err // the run is read again, or is gone
	}
	if refused != nil {
		a.runs().emitWarning(run, placementv1beta1.ReasonUpdateRunInitializedFailed, clientError(refused.text))
		return nil //nolint:nilerr // the run's status says it; trying again would not help
	}
	a.runs().emitEvent(run, placementv1beta1.ReasonUpdateRunInitializedSuccessfully, "Froze %d clusters in %d stages, resource snapshot index %s",
		run.Status.PolicyObservedClusterCount, len(run.Status.StagesStatus), run.Status.ResourceSnapshotIndexUsed)
	return nil
}

// planner reads what the plan of a run is made from.
type planner struct{ acts *Activities }

// makePlan reads the facts and freezes the plan into the run that it is given; note is added to the
// message that the run is initialized.
func (p *planner) makePlan(ctx context.Context, run *placementv1beta1.ClusterStagedUpdateRun) (note string, err error) {
	if run.Spec.RollbackOf != "" {
		return "", p.makeRollbackPlan(ctx, run)
	}
	f, err := p.waitUntilScheduled(ctx, run.Spec.PlacementName)
	if err != nil {
		return "", err
	}
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() error { return p.readBindings(gctx, f) })
	g.Go(func() error { return p.readStrategy(gctx, run.Spec.StagedRolloutStrategyName, f) })
	g.Go(func() error { return p.readMemberClusters(gctx, f) })
	g.Go(func() error { return p.readOtherRuns(gctx, f) })
	if err := g.Wait(); err != nil {
		return "", err
	}
	if note, err = freezePlan(run, *f); err != nil {
		run.Status.StagesStatus = nil
		return "", err
	}
	index, err := p.resolveSnapshotIndex(ctx, run, f.placement)
	if err != nil {
		run.Status.StagesStatus = nil
		return "", err
	}
	run.Status.ResourceSnapshotIndexUsed = index
	overrides, err := p.acts.Snapshots.Overrides(ctx, f.placement, index)
	if err != nil {
		return "", fmt.Errorf("reading the overrides of placement %s: %w", f.placement.Name, err)
	}
	applyOverrides(&run.Status, overrides, f.clusters)
	return note, nil
}

// waitUntilScheduled waits, for a while, until the latest policy snapshot is fully
// scheduled.
func (p *planner) waitUntilScheduled(ctx context.Context, placement string) (*facts, error) {
	sub := p.acts.Notifier.Subscribe(clusterwait.PlacementKey(placementv1beta1.Scope{}, placement))
	defer sub.Close()
	deadline := p.acts.Clock.NewTimer(schedulingPatience)
	defer deadline.Stop()
	for {
		f, err := p.readPlacementFacts(ctx, placement, "")
		if err != nil {
			return nil, err
		}
		if err := checkPlacement(f.placement); err != nil {
			return nil, err
		}
		unfinished := checkScheduled(f)
		if unfinished == nil {
			return f, nil
		}
		select {
		case <-sub.C:
			sub.TakeChanges()
		case <-deadline.C():
			return nil, unfinished
		case <-activity.GetWorkerStopChannel(ctx):
			return nil, fmt.Errorf("waiting for %s to be scheduled: the worker stops", placement)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// checkScheduled says what is missing before a run of the placement can begin.
func checkScheduled(f *facts) error {
	switch {
	case f.policy == nil:
		return refuse("no latest policy snapshot found for clusterResourcePlacement `%s`", f.placement.Name)
	case !decided(f.placement, f.policy) || !meta.IsStatusConditionTrue(f.policy.Status.Conditions, placementv1beta1.ConditionTypeScheduled):
		return refuse("policy snapshot `%s` not fully scheduled yet", f.policy.Name)
	}
	return nil
}

// readPlacementFacts reads the placement and its latest policy snapshot live. The
// snapshot that a run has used is asked for by name: as long as it is the
// latest, that spares a list, for which the API server first makes sure that
// its cache is as new as the store.
func (p *planner) readPlacementFacts(ctx context.Context, name, usedIndex string) (*facts, error) {
	f := &facts{}
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		placement := &placementv1beta1.ClusterResourcePlacement{}
		err := p.acts.Live.Get(gctx, types.NamespacedName{Name: name}, placement)
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading placement %s: %w", name, err)
		}
		f.placement = placement
		return nil
	})
	g.Go(func() (err error) {
		f.policy, err = p.readPolicy(gctx, name, usedIndex)
		return err
	})
	return f, g.Wait()
}

// readPolicy reads the latest policy snapshot of a placement; nil when there is none.
func (p *planner) readPolicy(ctx context.Context, placement, usedIndex string) (*placementv1beta1.ClusterSchedulingPolicySnapshot, error) {
	if index, err := strconv.Atoi(usedIndex); err == nil {
		used := &placementv1beta1.ClusterSchedulingPolicySnapshot{}
		err := p.acts.Live.Get(ctx, types.NamespacedName{Name: placementv1beta1.PolicySnapshotName(placement, index)}, used)
		if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("reading policy snapshot %d of placement %s: %w", index, placement, err)
		}
		if err == nil && placementv1beta1.IsLatestSnapshot(used) {
			return used, nil
		}
	}
	var list placementv1beta1.ClusterSchedulingPolicySnapshotList
	err := p.acts.Live.List(ctx, &list, client.MatchingLabels{
		placementv1beta1.ParentPlacementLabel: placement, placementv1beta1.IsLatestSnapshotLabel: placementv1beta1.LabelValueTrue})
	if err != nil {
		return nil, fmt.Errorf("listing the policy snapshots of placement %s: %w", placement, err)
	}
	latest, _ := placementv1beta1.LatestSnapshot(list.Objects(), placementv1beta1.PolicyIndexLabel).(*placementv1beta1.ClusterSchedulingPolicySnapshot)
	return latest, nil
}

func (p *planner) readBindings(ctx context.Context, f *facts) error {
	var list placementv1beta1.ClusterResourceBindingList
	if err := p.acts.Live.List(ctx, &list, client.MatchingLabels{placementv1beta1.ParentPlacementLabel: f.placement.Name}); err != nil {
		return fmt.Errorf("listing the bindings of placement %s: %w", f.placement.Name, err)
	}
	f.bindings = list.Items
	return nil
}

func (p *planner) readStrategy(ctx context.Context, name string, f *facts) error {
	strategy := &placementv1beta1.ClusterStagedUpdateStrategy{}
	err := p.acts.Live.Get(ctx, types.NamespacedName{Name: name}, strategy)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading strategy %s: %w", name, err)
	}
	f.strategy = strategy
	return nil
}

// readOtherRuns reads all runs from the cache, not live: their statuses are large, and admission has
// checked live before.
func (p *planner) readOtherRuns(ctx context.Context, f *facts) error {
	var list placementv1beta1.ClusterStagedUpdateRunList
	if err := p.acts.Client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing update runs: %w", err)
	}
	f.runs = list.Items
	return nil
}

// readMemberClusters reads the names and labels of the clusters of the fleet.
func (p *planner) readMemberClusters(ctx context.Context, f *facts) error {
	release, err := throttle.Acquire(ctx, p.acts.FleetReads)
	if err != nil {
		return err
	}
	defer release()
	var list metav1.PartialObjectMetadataList
	list.SetGroupVersionKind(clusterv1beta1.GroupVersion.WithKind("MemberClusterList"))
	if err := p.acts.Live.List(ctx, &list); err != nil {
		return fmt.Errorf("listing member clusters: %w", err)
	}
	f.clusters = make([]clusterv1beta1.MemberCluster, len(list.Items))
	for i := range list.Items {
		f.clusters[i].Name, f.clusters[i].Labels = list.Items[i].Name, list.Items[i].Labels
	}
	return nil
}

// resolveSnapshotIndex returns the index that the run asks for, if there is such a snapshot. A run that asks
// for none gets a snapshot of what the placement selects now.
func (p *planner) resolveSnapshotIndex(ctx context.Context, run *placementv1beta1.ClusterStagedUpdateRun, placement *placementv1beta1.ClusterResourcePlacement) (string, error) {
	index := run.Spec.ResourceSnapshotIndex
	if index == "" {
		selected, err := p.acts.Snapshots.Select(ctx, placement)
		if err != nil {
			return "", fmt.Errorf("selecting the resources of placement %s: %w", placement.Name, err)
		}
		if selected.Invalid || selected.Gone {
			return "", refuse("the resource selectors of clusterResourcePlacement `%s` are invalid, see its condition ClusterResourcePlacementScheduled", placement.Name)
		}
		return strconv.Itoa(selected.Index), nil
	}
	if err := parseIndex(index); err != nil {
		return "", err
	}
	var list metav1.PartialObjectMetadataList
	list.SetGroupVersionKind(placementv1beta1.GroupVersion.WithKind("ClusterResourceSnapshotList"))
	err := p.acts.Live.List(ctx, &list, client.MatchingLabels{
		placementv1beta1.ParentPlacementLabel: placement.Name, placementv1beta1.ResourceIndexLabel: index})
	if err != nil {
		return "", fmt.Errorf("listing the resource snapshots of placement %s: %w", placement.Name, err)
	}
	if len(list.Items) == 0 {
		return "", refuse("no clusterResourceSnapshots with index `%s` found for clusterResourcePlacement `%s`", index, placement.Name)
	}
	return index, nil
}
