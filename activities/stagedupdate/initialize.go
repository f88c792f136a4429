package stagedupdate

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"go.temporal.io/sdk/activity"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/clusterwait"
	"github.com/fleetflow/fleetflow/activities/hubread"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	"github.com/fleetflow/fleetflow/apis/placement/updaterun"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// schedulingPatience is how long initialization waits for a placement that was
// created or changed a moment ago to be scheduled.
const schedulingPatience = 20 * time.Second

// InitializeRun validates a run and freezes its plan into its status, once.
// A plan that cannot be made until the user changes something ends the run with Initialized False.
func (a *Activities) InitializeRun(ctx context.Context, ref wf.Ref) (wf.InitializeResult, error) {
	run, err := a.runs().readRun(ctx, ref)
	if err != nil || run == nil {
		return wf.InitializeResult{}, err
	}
	if meta.FindStatusCondition(run.GetUpdateRunStatus().Conditions, placementv1beta1.ConditionTypeInitialized) != nil {
		return wf.InitializeResult{State: stateOf(run)}, nil
	}
	planned := placementv1beta1.DeepCopyOf(run)
	note, err := a.planner(placementv1beta1.ScopeOf(planned)).makePlan(ctx, planned)
	if err == nil {
		if err = checkStatusSize(planned); err == nil { // first: nothing deletes the analyses of a plan that is not kept
			err = (analyst{a, planned}).prepareAll(ctx)
		}
	}
	if err != nil {
		planned.GetUpdateRunStatus().StagesStatus = nil
	}
	var refused *userError
	if err != nil && !errors.As(err, &refused) {
		return wf.InitializeResult{}, a.runs().recordRefusedWrite(ctx, run, err)
	}
	if err := a.runs().storePlan(ctx, run, *planned.GetUpdateRunStatus(), note, refused); err != nil {
		return wf.InitializeResult{}, err
	}
	return wf.InitializeResult{State: stateOf(run)}, nil
}

// storePlan writes the frozen plan, unless another attempt was faster.
func (s runStore) storePlan(ctx context.Context, run placementv1beta1.UpdateRunObject, planned placementv1beta1.UpdateRunStatus,
	note string, refused *userError) error {
	written := false
	active, err := s.recordStatus(ctx, run, func(r updaterun.Recorder) {
		if written = meta.FindStatusCondition(r.Status().Conditions, placementv1beta1.ConditionTypeInitialized) == nil; !written {
			return
		}
		conditions := r.Status().Conditions
		*r.Status() = *planned.DeepCopy()
		r.Status().Conditions = conditions
		if refused != nil {
			r.RunCondition(placementv1beta1.ConditionTypeInitialized, metav1.ConditionFalse,
				placementv1beta1.ReasonUpdateRunInitializedFailed, cannotStart(refused.text))
			return
		}
		r.Initialized(note)
		if run.GetUpdateRunSpec().State == "" || run.GetUpdateRunSpec().State == placementv1beta1.StateRun {
			r.Progressing()
		}
	})
	if err != nil || !active || !written {
		return err // the run is read again, or is gone
	}
	if refused != nil {
		s.emitWarning(run, placementv1beta1.ReasonUpdateRunInitializedFailed, cannotStart(refused.text))
		return nil //nolint:nilerr // the run's status says it; trying again would not help
	}
	s.emitEvent(run, placementv1beta1.ReasonUpdateRunInitializedSuccessfully,
		"Froze %d clusters in %d stages, resource snapshot index %s",
		run.GetUpdateRunStatus().PolicyObservedClusterCount, len(run.GetUpdateRunStatus().StagesStatus),
		run.GetUpdateRunStatus().ResourceSnapshotIndexUsed)
	return nil
}

// planner reads what the plan of a run is made from.
type planner struct {
	acts  *Activities
	scope placementv1beta1.Scope
}

// makePlan reads the facts and freezes the plan into the run that it is given; note is added to the
// message that the run is initialized.
func (p *planner) makePlan(ctx context.Context, run placementv1beta1.UpdateRunObject) (note string, err error) {
	if p.acts.Vocabulary != placementv1beta1.VocabularyDocumentation {
		run.GetUpdateRunStatus().Vocabulary = p.acts.Vocabulary
	}
	if err := checkReferences(run); err != nil {
		return "", err
	}
	if run.GetUpdateRunSpec().RollbackOf != "" {
		return "", p.makeRollbackPlan(ctx, run)
	}
	f, err := p.waitUntilScheduled(ctx, run)
	if err != nil {
		return "", err
	}
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() error { return p.readBindings(gctx, f) })
	g.Go(func() error { return p.readStrategy(gctx, run.GetUpdateRunSpec().StagedUpdateStrategyName, f) })
	g.Go(func() error { return p.readMemberClusters(gctx, f) })
	g.Go(func() error { return p.readOtherRuns(gctx, f) })
	if err := g.Wait(); err != nil {
		return "", err
	}
	if err := p.readNamedWindows(ctx, f); err != nil {
		return "", err
	}
	if note, err = freezePlan(run, *f); err != nil {
		return "", err
	}
	index, err := p.resolveSnapshotIndex(ctx, run, f.placement)
	if err != nil {
		return "", err
	}
	overrides, err := p.readOverrides(ctx, f.placement, index)
	if err != nil {
		return "", err
	}
	run.GetUpdateRunStatus().ResourceSnapshotIndexUsed = index
	applyOverrides(run.GetUpdateRunStatus(), overrides, f.clusters)
	resources, err := p.readSnapshotHashes(ctx, f.placement.GetName())
	if err != nil {
		return "", err
	}
	return note, sealPlan(run, f, resources)
}

// waitUntilScheduled waits, for a while, until the latest policy snapshot of the placement of a run is fully
// scheduled.
func (p *planner) waitUntilScheduled(ctx context.Context, run placementv1beta1.UpdateRunObject) (*facts, error) {
	placement := run.GetUpdateRunSpec().PlacementName
	sub := p.acts.Notifier.Subscribe(clusterwait.PlacementKey(p.scope, placement))
	defer sub.Close()
	deadline := p.acts.Clock.NewTimer(schedulingPatience)
	defer deadline.Stop()
	for {
		f, err := p.readPlacementFacts(ctx, placement, "")
		if err != nil {
			return nil, err
		}
		if err := checkBeginning(run, f.placement); err != nil {
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

// checkScheduled returns what is missing before a run of the placement can begin.
func checkScheduled(f *facts) error {
	switch {
	case f.policy == nil:
		return refuse("no latest policy snapshot found for clusterResourcePlacement `%s`", f.placement.GetName())
	case !decided(f.placement, f.policy) ||
		!rules.FoundAllClusters(meta.FindStatusCondition(f.policy.GetPolicySnapshotStatus().Conditions,
			placementv1beta1.ConditionTypeScheduled)):
		return refuse("policy snapshot `%s` not fully scheduled yet", f.policy.GetName())
	}
	return nil
}

func (p *planner) readStrategy(ctx context.Context, name string, f *facts) (err error) {
	f.strategy, err = hubread.Existing(ctx, p.acts.Live, p.scope.NewUpdateStrategy(name), "strategy")
	return err
}

// resolveSnapshotIndex returns the index that the run asks for, if there is such a snapshot. A run that asks
// for none gets a snapshot of what the placement selects now.
func (p *planner) resolveSnapshotIndex(ctx context.Context, run placementv1beta1.UpdateRunObject,
	placement placementv1beta1.PlacementObject) (string, error) {
	index := run.GetUpdateRunSpec().ResourceSnapshotIndex
	if index == "" {
		selected, err := p.acts.Snapshots.Select(ctx, placement)
		if err != nil {
			return "", fmt.Errorf("selecting the resources of placement %s: %w", placement.GetName(), err)
		}
		if selected.Invalid && selected.OverridesLacking == nil || selected.Gone { // what is lacking is told when overrides are read
			return "", refuse("the resource selectors of clusterResourcePlacement `%s` are invalid, see its condition ClusterResourcePlacementScheduled", placement.GetName())
		}
		if selected.LossHeld {
			return "", refuse("clusterResourcePlacement `%s` holds removals, see its condition RemovalsHeld: accept them with %s, or name a resourceSnapshotIndex to go on with a snapshot that there is",
				placement.GetName(), rules.AcceptCommand(placement))
		}
		return strconv.Itoa(selected.Index), nil
	}
	if err := parseIndex(index); err != nil {
		return "", err
	}
	var list metav1.PartialObjectMetadataList
	list.SetGroupVersionKind(placementv1beta1.GroupVersion.WithKind(p.scope.ResourceSnapshotKind().Kind + "List"))
	err := p.acts.Live.List(ctx, &list, client.InNamespace(p.scope.Namespace), client.MatchingLabels{
		placementv1beta1.ParentPlacementLabel: placement.GetName(), placementv1beta1.ResourceIndexLabel: index})
	if err != nil {
		return "", fmt.Errorf("listing the resource snapshots of placement %s: %w", placement.GetName(), err)
	}
	if len(list.Items) == 0 {
		return "", refuse("no clusterResourceSnapshots with index `%s` found for clusterResourcePlacement `%s`", index, placement.GetName())
	}
	return index, nil
}
