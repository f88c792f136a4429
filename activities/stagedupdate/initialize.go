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
// What a person must mend ends the run with Initialized False.
func (a *Activities) InitializeRun(ctx context.Context, ref wf.Ref) (act.InitializeResult, error) {
	run, err := a.run(ctx, ref)
	if err != nil || run == nil {
		return act.InitializeResult{}, err
	}
	if meta.FindStatusCondition(run.Status.Conditions, placementv1beta1.ConditionTypeInitialized) != nil {
		return act.InitializeResult{State: stateOf(run)}, nil
	}
	planned := run.DeepCopy()
	note, err := a.plan(ctx, planned)
	var refused *userError
	if err != nil && !errors.As(err, &refused) {
		return act.InitializeResult{}, a.recordRefusedWrite(ctx, run, err)
	}
	if err := a.storePlan(ctx, run, planned.Status, note, refused); err != nil {
		return act.InitializeResult{}, unlessNotOn(err) // the run is looked at again, or is gone
	}
	return act.InitializeResult{State: stateOf(run)}, nil
}

// storePlan writes the frozen plan, unless another attempt was faster.
func (a *Activities) storePlan(ctx context.Context, run *placementv1beta1.ClusterStagedUpdateRun, planned placementv1beta1.UpdateRunStatus, note string, refused *userError) error {
	written := false
	err := a.store(ctx, run, func(r updaterun.Recorder) {
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
	if err != nil || !written {
		return err
	}
	if refused != nil {
		a.warn(run, placementv1beta1.ReasonUpdateRunInitializedFailed, clientError(refused.text))
		return nil //nolint:nilerr // the run's status says it; trying again would not help
	}
	a.event(run, placementv1beta1.ReasonUpdateRunInitializedSuccessfully, "Froze %d clusters in %d stages, resource snapshot index %s",
		run.Status.PolicyObservedClusterCount, len(run.Status.StagesStatus), run.Status.ResourceSnapshotIndexUsed)
	return nil
}

// plan gathers the facts and freezes them into the run it is given; note is what is said of
// the plan beside that it was made.
func (a *Activities) plan(ctx context.Context, run *placementv1beta1.ClusterStagedUpdateRun) (note string, err error) {
	if run.Spec.RollbackOf != "" {
		return "", a.planRollback(ctx, run)
	}
	f, err := a.scheduled(ctx, run.Spec.PlacementName)
	if err != nil {
		return "", err
	}
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() error { return a.bindings(gctx, f) })
	g.Go(func() error { return a.strategy(gctx, run.Spec.StagedRolloutStrategyName, f) })
	g.Go(func() error { return a.memberClusters(gctx, f) })
	g.Go(func() error { return a.otherRuns(gctx, f) })
	if err := g.Wait(); err != nil {
		return "", err
	}
	if note, err = plan(run, *f); err != nil {
		run.Status.StagesStatus = nil
		return "", err
	}
	index, err := a.snapshotIndex(ctx, run, f.placement)
	if err != nil {
		run.Status.StagesStatus = nil
		return "", err
	}
	run.Status.ResourceSnapshotIndexUsed = index
	overrides, err := a.Snapshots.Overrides(ctx, f.placement, index)
	if err != nil {
		return "", fmt.Errorf("reading the overrides of placement %s: %w", f.placement.Name, err)
	}
	applyOverrides(&run.Status, overrides, f.clusters)
	return note, nil
}

// scheduled waits, for a while, until the latest policy snapshot is fully
// scheduled.
func (a *Activities) scheduled(ctx context.Context, placement string) (*facts, error) {
	sub := a.Notifier.Subscribe(clusterwait.PlacementKey(placementv1beta1.Scope{}, placement))
	defer sub.Close()
	deadline := a.Clock.NewTimer(schedulingPatience)
	defer deadline.Stop()
	for {
		f, err := a.placementFacts(ctx, placement, "")
		if err != nil {
			return nil, err
		}
		if err := checkPlacement(f.placement); err != nil {
			return nil, err
		}
		unfinished := unscheduled(f)
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

// unscheduled says what is missing before a run of the placement can begin.
func unscheduled(f *facts) error {
	switch {
	case f.policy == nil:
		return refuse("no latest policy snapshot found for clusterResourcePlacement `%s`", f.placement.Name)
	case !decided(f.placement, f.policy) || !meta.IsStatusConditionTrue(f.policy.Status.Conditions, placementv1beta1.ConditionTypeScheduled):
		return refuse("policy snapshot `%s` not fully scheduled yet", f.policy.Name)
	}
	return nil
}

// placementFacts reads the placement and its latest policy snapshot live. The
// snapshot that a run has used is asked for by name: as long as it is the
// latest, that spares a list, for which the API server first makes sure that
// its cache is as new as the store.
func (a *Activities) placementFacts(ctx context.Context, name, usedIndex string) (*facts, error) {
	f := &facts{}
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		placement := &placementv1beta1.ClusterResourcePlacement{}
		err := a.Live.Get(gctx, types.NamespacedName{Name: name}, placement)
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
		f.policy, err = a.policy(gctx, name, usedIndex)
		return err
	})
	return f, g.Wait()
}

// policy reads the latest policy snapshot of a placement; nil when there is none.
func (a *Activities) policy(ctx context.Context, placement, usedIndex string) (*placementv1beta1.ClusterSchedulingPolicySnapshot, error) {
	if index, err := strconv.Atoi(usedIndex); err == nil {
		used := &placementv1beta1.ClusterSchedulingPolicySnapshot{}
		err := a.Live.Get(ctx, types.NamespacedName{Name: placementv1beta1.PolicySnapshotName(placement, index)}, used)
		if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("reading policy snapshot %d of placement %s: %w", index, placement, err)
		}
		if err == nil && placementv1beta1.IsLatestSnapshot(used) {
			return used, nil
		}
	}
	var list placementv1beta1.ClusterSchedulingPolicySnapshotList
	err := a.Live.List(ctx, &list, client.MatchingLabels{
		placementv1beta1.ParentPlacementLabel: placement, placementv1beta1.IsLatestSnapshotLabel: placementv1beta1.LabelValueTrue})
	if err != nil {
		return nil, fmt.Errorf("listing the policy snapshots of placement %s: %w", placement, err)
	}
	latest, _ := placementv1beta1.LatestSnapshot(list.Objects(), placementv1beta1.PolicyIndexLabel).(*placementv1beta1.ClusterSchedulingPolicySnapshot)
	return latest, nil
}

func (a *Activities) bindings(ctx context.Context, f *facts) error {
	var list placementv1beta1.ClusterResourceBindingList
	if err := a.Live.List(ctx, &list, client.MatchingLabels{placementv1beta1.ParentPlacementLabel: f.placement.Name}); err != nil {
		return fmt.Errorf("listing the bindings of placement %s: %w", f.placement.Name, err)
	}
	f.bindings = list.Items
	return nil
}

func (a *Activities) strategy(ctx context.Context, name string, f *facts) error {
	strategy := &placementv1beta1.ClusterStagedUpdateStrategy{}
	err := a.Live.Get(ctx, types.NamespacedName{Name: name}, strategy)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading strategy %s: %w", name, err)
	}
	f.strategy = strategy
	return nil
}

// otherRuns come from the cache: the statuses of all runs there ever were are large, and
// admission has asked before.
func (a *Activities) otherRuns(ctx context.Context, f *facts) error {
	var list placementv1beta1.ClusterStagedUpdateRunList
	if err := a.Client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing update runs: %w", err)
	}
	f.runs = list.Items
	return nil
}

// memberClusters reads the names and labels of the clusters of the fleet.
func (a *Activities) memberClusters(ctx context.Context, f *facts) error {
	release, err := throttle.Acquire(ctx, a.FleetReads)
	if err != nil {
		return err
	}
	defer release()
	var list metav1.PartialObjectMetadataList
	list.SetGroupVersionKind(clusterv1beta1.GroupVersion.WithKind("MemberClusterList"))
	if err := a.Live.List(ctx, &list); err != nil {
		return fmt.Errorf("listing member clusters: %w", err)
	}
	f.clusters = make([]clusterv1beta1.MemberCluster, len(list.Items))
	for i := range list.Items {
		f.clusters[i].Name, f.clusters[i].Labels = list.Items[i].Name, list.Items[i].Labels
	}
	return nil
}

// snapshotIndex is the pinned index, which must exist, or that of a snapshot of
// what the placement selects at this moment.
func (a *Activities) snapshotIndex(ctx context.Context, run *placementv1beta1.ClusterStagedUpdateRun, placement *placementv1beta1.ClusterResourcePlacement) (string, error) {
	index := run.Spec.ResourceSnapshotIndex
	if index == "" {
		selected, err := a.Snapshots.Select(ctx, placement)
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
	err := a.Live.List(ctx, &list, client.MatchingLabels{
		placementv1beta1.ParentPlacementLabel: placement.Name, placementv1beta1.ResourceIndexLabel: index})
	if err != nil {
		return "", fmt.Errorf("listing the resource snapshots of placement %s: %w", placement.Name, err)
	}
	if len(list.Items) == 0 {
		return "", refuse("no clusterResourceSnapshots with index `%s` found for clusterResourcePlacement `%s`", index, placement.Name)
	}
	return index, nil
}
