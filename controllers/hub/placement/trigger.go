package placement

import (
	"context"
	"fmt"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/fleetflow/fleetflow/activities/fence"
	"github.com/fleetflow/fleetflow/activities/workmodel"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/controllers/hub/fieldindex"
)

// triggerFacts are what decides about the update run of a placement's latest resource snapshot.
type triggerFacts struct {
	// Runs of the placement, those of users included.
	Runs []placementv1beta1.UpdateRunObject
	// HasStrategy says that the strategy of the run exists.
	HasStrategy bool
}

// triggerPlan is what to do about the update run of a placement's latest resource snapshot.
type triggerPlan struct {
	// Recorded is a run that the snapshot has already, and that is to be recorded on it.
	Recorded string
	// Superseded are the runs of older snapshots that have to be told to end.
	Superseded []placementv1beta1.UpdateRunObject
	// HeldReason and Held say why the run is not created yet; both are empty if nothing holds it back.
	HeldReason, Held string
	// Creates says that the run is to be created.
	Creates bool
}

// triggersRuns reports whether the fleet creates the update runs of a placement.
func triggersRuns(placement placementv1beta1.PlacementObject) bool {
	external := rules.StrategyOf(placement).External
	return rules.IsExternal(placement) && external != nil && external.Trigger == placementv1beta1.UpdateRunTriggerOnChange
}

// planTrigger decides about the update run of the latest resource snapshot. It is pure.
//
// A snapshot has at most one run, whatever becomes of it: a run that a user has deleted or stopped is not created again. Runs
// of one placement follow each other. One that stands still waits for a person, so that nothing is started over its head.
func planTrigger(facts *Facts) triggerPlan {
	placement := facts.Placement
	if !triggersRuns(placement) || !facts.canBeRolledOut() || facts.Latest.TriggeredRun != "" {
		return triggerPlan{}
	}
	var underWay []placementv1beta1.UpdateRunObject
	for _, run := range facts.Trigger.Runs {
		if rollsOut(run, facts.Latest.Index) {
			return triggerPlan{Recorded: run.GetName()}
		}
		if !rules.IsRunOver(run) {
			underWay = append(underWay, run)
		}
	}
	if !facts.Trigger.HasStrategy {
		return triggerPlan{
			HeldReason: placementv1beta1.ReasonUpdateStrategyNotFound,
			Held: fmt.Sprintf("Resource snapshot %d waits for its update run: there is no %s %s, which spec.strategy.external.strategyName names",
				facts.Latest.Index, placementv1beta1.ScopeOf(placement).UpdateStrategyKind().Kind,
				rules.StrategyOf(placement).External.StrategyName),
		}
	}
	if len(underWay) == 0 {
		return triggerPlan{Creates: true}
	}
	return waitForRuns(facts, underWay)
}

// waitForRuns returns which runs the latest resource snapshot waits for, and which of them end because of it.
func waitForRuns(facts *Facts, underWay []placementv1beta1.UpdateRunObject) triggerPlan {
	supersedes := rules.StrategyOf(facts.Placement).External.WhenRunning == placementv1beta1.WhenRunningSupersede
	plan := triggerPlan{HeldReason: placementv1beta1.ReasonEarlierRunUnderWay}
	for _, run := range underWay {
		if supersedes && canBeSuperseded(run, facts.Placement) {
			if rules.WhyRunEnds(run) == "" {
				plan.Superseded = append(plan.Superseded, run)
			}
			continue
		}
		plan.Held = fmt.Sprintf("Resource snapshot %d waits for its update run until run %s is over", facts.Latest.Index, run.GetName())
		if run.GetUpdateRunSpec().State != placementv1beta1.StateRun && run.GetUpdateRunSpec().State != "" {
			plan.Held += fmt.Sprintf(", whose state is %s: let it run, or delete it", run.GetUpdateRunSpec().State)
		}
	}
	if plan.Held == "" {
		plan.Held = fmt.Sprintf("Resource snapshot %d takes the place of an older one, and waits until run %s has ended", facts.Latest.Index,
			underWay[0].GetName())
	}
	return plan
}

// rollsOut reports whether a run is one of a resource snapshot.
func rollsOut(run placementv1beta1.UpdateRunObject, index int) bool {
	of := strconv.Itoa(index)
	return run.GetUpdateRunSpec().RollbackOf == "" && (run.GetUpdateRunSpec().ResourceSnapshotIndex == of ||
		run.GetUpdateRunStatus().ResourceSnapshotIndexUsed == of)
}

// canBeSuperseded reports whether a later resource snapshot may end a run: the fleet has created it, and no user has stopped it.
func canBeSuperseded(run placementv1beta1.UpdateRunObject, of placementv1beta1.PlacementObject) bool {
	return run.GetAnnotations()[placementv1beta1.TriggeredByAnnotation] == string(of.GetUID()) &&
		run.GetUpdateRunSpec().State == placementv1beta1.StateRun &&
		!rules.IsDeleting(run)
}

// canBeRolledOut reports whether an update run of the latest resource snapshot would have a plan: the placement as it is now has been
// selected and scheduled, and its clusters have bindings.
func (f *Facts) canBeRolledOut() bool {
	return f.Latest.Name != "" && !f.Overrides.areLacking() && f.Verdict.Generation == f.Placement.GetGeneration() && f.Verdict.Error == "" &&
		f.isScheduled() &&
		rules.FoundAllClusters(meta.FindStatusCondition(f.Policy.GetPolicySnapshotStatus().Conditions,
			placementv1beta1.ConditionTypeScheduled)) &&
		len(f.Bindings) > 0 && len(lostClusters(f)) == 0
}

// gatherTrigger reads what decides about the run of the latest resource snapshot; nothing where users create the runs, or the
// snapshot has one.
func (f *Facts) gatherTrigger(ctx context.Context, cached client.Reader) error {
	if !triggersRuns(f.Placement) || f.Latest.TriggeredRun != "" {
		return nil
	}
	scope := placementv1beta1.ScopeOf(f.Placement)
	name := f.Placement.GetName()
	runs := scope.NewUpdateRunList()
	if err := cached.List(ctx, runs, client.InNamespace(scope.Namespace), client.MatchingFields{fieldindex.ByPlacement: name},
		client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing the update runs of %s: %w", name, err)
	}
	f.Trigger.Runs = runs.Objects()
	strategy := rules.StrategyOf(f.Placement).External.StrategyName
	err := cached.Get(ctx, scope.Key(strategy), scope.NewUpdateStrategy(""))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading update strategy %s of %s: %w", strategy, name, err)
	}
	f.Trigger.HasStrategy = err == nil
	return nil
}

// triggerRun does what planTrigger says. The run is created first and recorded on the snapshot then: after a crash between the
// two, the same name is found taken by the same run.
func (r *Reconciler) triggerRun(ctx context.Context, facts *Facts) error {
	plan := planTrigger(facts)
	for _, run := range plan.Superseded {
		if err := r.supersedeRun(ctx, run, facts.Latest.Index); err != nil {
			return err
		}
		r.events.Eventf(facts.Placement, run, "Normal", "UpdateRunSuperseded", "Rollout",
			"Run %s ends: resource snapshot %d takes the place of its own", run.GetName(), facts.Latest.Index)
	}
	name := plan.Recorded
	if plan.Creates {
		var err error
		if name, err = r.createRun(ctx, facts); err != nil {
			r.events.Eventf(facts.Placement, nil, "Warning", "UpdateRunNotCreated", "Rollout", "%s", workmodel.CutMessage(err.Error(), maxNote))
			return err
		}
	}
	if name == "" {
		return nil
	}
	return r.recordTriggeredRun(ctx, facts, name)
}

// createRun creates the run of the latest resource snapshot, or finds it, and returns its name.
func (r *Reconciler) createRun(ctx context.Context, facts *Facts) (string, error) {
	placement := facts.Placement
	names := placementv1beta1.TriggeredRunNames(placement.GetName(), placement.GetUID(), facts.Latest.Index)
	for _, name := range names {
		run := placementv1beta1.ScopeOf(placement).NewUpdateRun(name)
		run.SetAnnotations(map[string]string{placementv1beta1.TriggeredByAnnotation: string(placement.GetUID())})
		*run.GetUpdateRunSpec() = placementv1beta1.UpdateRunSpec{
			PlacementName: placement.GetName(), ResourceSnapshotIndex: strconv.Itoa(facts.Latest.Index),
			StagedUpdateStrategyName: rules.StrategyOf(placement).External.StrategyName, State: placementv1beta1.StateRun,
		}
		err := r.client.Create(ctx, run)
		if err == nil {
			r.events.Eventf(placement, run, "Normal", "UpdateRunCreated", "Rollout", "Run %s rolls resource snapshot %d out", name,
				facts.Latest.Index)
			return name, nil
		}
		if !apierrors.IsAlreadyExists(err) {
			return "", fmt.Errorf("creating run %s for resource snapshot %d of %s: %w", name, facts.Latest.Index, placement.GetName(), err)
		}
		if err := r.live.Get(ctx, client.ObjectKeyFromObject(run), run); err != nil {
			return "", fmt.Errorf("reading run %s, which exists already: %w", name, err) // one that is gone again is created by the next attempt
		}
		if run.GetUpdateRunSpec().PlacementName == placement.GetName() && rollsOut(run, facts.Latest.Index) {
			return name, nil
		}
	}
	return "", fmt.Errorf("creating a run for resource snapshot %d of %s: other runs have the names %v: delete one of them",
		facts.Latest.Index, placement.GetName(), names)
}

// supersedeRun tells a run to end.
func (r *Reconciler) supersedeRun(ctx context.Context, run placementv1beta1.UpdateRunObject, index int) error {
	// Its annotations hold at least who has triggered it, so that the key can be added.
	patch, err := fence.Patch(run.GetUID(), fence.Test("/spec/state", placementv1beta1.StateRun),
		fence.Add(fence.AnnotationPath(placementv1beta1.SupersededByAnnotation), strconv.Itoa(index)))
	if err != nil {
		return err
	}
	err = r.client.Patch(ctx, placementv1beta1.DeepCopyOf(run), patch)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("telling run %s that resource snapshot %d takes the place of its own: %w", run.GetName(), index, err)
	}
	return nil
}

// recordTriggeredRun records on the latest resource snapshot which run it has.
func (r *Reconciler) recordTriggeredRun(ctx context.Context, facts *Facts, run string) error {
	// The annotations of a master say at least how many parts there are.
	patch, err := fence.Patch(facts.Latest.UID, fence.Add(fence.AnnotationPath(placementv1beta1.TriggeredRunAnnotation), run))
	if err != nil {
		return err
	}
	scope := placementv1beta1.ScopeOf(facts.Placement)
	snapshot := scope.NewResourceSnapshot(facts.Latest.Name)
	if err := r.client.Patch(ctx, snapshot, patch); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("recording run %s on resource snapshot %s: %w", run, facts.Latest.Name, err)
	}
	return nil
}

// runHeldCondition returns what the run of the latest resource snapshot waits for.
func runHeldCondition(plan triggerPlan) metav1.Condition {
	return metav1.Condition{Type: placementv1beta1.ConditionTypeUpdateRunHeld, Status: metav1.ConditionTrue, Reason: plan.HeldReason,
		Message: plan.Held}
}

// onRunOver passes the end and the deletion of an update run: another may have waited for it.
func onRunOver() predicate.Predicate {
	isOver := func(o client.Object) bool {
		run, ok := o.(placementv1beta1.UpdateRunObject)
		return ok && rules.IsRunOver(run)
	}
	return predicate.Funcs{
		CreateFunc:  func(event.CreateEvent) bool { return false },
		UpdateFunc:  func(e event.UpdateEvent) bool { return !isOver(e.ObjectOld) && isOver(e.ObjectNew) },
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}

// requestRolledOut requests the placement of an update run, if the fleet creates its runs.
func (r requester) requestRolledOut(ctx context.Context, o client.Object) []reconcile.Request {
	run, ok := o.(placementv1beta1.UpdateRunObject)
	if !ok {
		return nil
	}
	scope := placementv1beta1.ScopeOf(run)
	placement := scope.NewPlacement("")
	if r.client.Get(ctx, scope.Key(run.GetUpdateRunSpec().PlacementName), placement, client.UnsafeDisableDeepCopy) != nil ||
		!triggersRuns(placement) {
		return nil
	}
	return []reconcile.Request{{NamespacedName: scope.Key(placement.GetName())}}
}

// requestUsersOf requests the placements whose runs use an update strategy.
func (r requester) requestUsersOf(ctx context.Context, strategy client.Object) []reconcile.Request {
	scope := placementv1beta1.ScopeOf(strategy)
	placements := scope.NewPlacementList()
	if err := r.client.List(ctx, placements, client.InNamespace(scope.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		log.FromContext(ctx).Error(err, "Listing the placements whose runs use an update strategy")
		return nil
	}
	var requests []reconcile.Request
	for _, placement := range placements.Objects() {
		if triggersRuns(placement) && rules.StrategyOf(placement).External.StrategyName == strategy.GetName() {
			requests = append(requests, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: scope.Namespace,
				Name: placement.GetName()}})
		}
	}
	return requests
}

// onCreation passes new objects only.
func onCreation() builder.Predicates {
	return builder.WithPredicates(predicate.Funcs{
		UpdateFunc: func(event.UpdateEvent) bool { return false }, DeleteFunc: func(event.DeleteEvent) bool { return false },
	})
}
