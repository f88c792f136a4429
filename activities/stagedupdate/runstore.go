package stagedupdate

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/bind"
	"github.com/fleetflow/fleetflow/activities/clusterwait"
	"github.com/fleetflow/fleetflow/activities/hubread"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	"github.com/fleetflow/fleetflow/apis/placement/updaterun"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// runStore reads runs and their clusters' bindings live, and writes the status and the events of runs.
type runStore struct {
	client client.Client
	live   client.Reader
	events EventRecorder
	clock  clock.Clock
	pace   *statusPace
}

// readRun reads a run live; nil when there is none with this uid any more.
func (s runStore) readRun(ctx context.Context, ref wf.Ref) (placementv1beta1.UpdateRunObject, error) {
	run, err := hubread.Existing(ctx, s.live, scopeOf(ref).NewUpdateRun(ref.Name), "run")
	if err != nil || run == nil || ref.UID != "" && string(run.GetUID()) != ref.UID {
		return nil, err
	}
	return run, nil
}

// readActive reads a run that still has something to do; nil otherwise.
func (s runStore) readActive(ctx context.Context, ref wf.Ref) (placementv1beta1.UpdateRunObject, error) {
	run, err := s.readRun(ctx, ref)
	if err != nil || run == nil || !run.GetDeletionTimestamp().IsZero() || rules.IsRunOver(run) {
		return nil, err
	}
	return run, nil
}

// readBinding reads the binding of a cluster live; nil when there is none.
func (s runStore) readBinding(ctx context.Context, placement placementv1beta1.PlacementObject,
	cluster string) (placementv1beta1.BindingObject, error) {
	key, err := clusterwait.KeyOfBinding(ctx, s.client, placement, cluster)
	if err != nil {
		return nil, err
	}
	return hubread.Existing(ctx, s.live, placementv1beta1.ScopeOf(placement).NewBinding(key.Name), "binding")
}

// recordStatus records progress in the status of a run, and says whether the run is still active. What
// another writer has written meanwhile stays: the progress is recorded once more on the newer version.
func (s runStore) recordStatus(ctx context.Context, run placementv1beta1.UpdateRunObject,
	record func(updaterun.Recorder)) (active bool, err error) {
	ref := wf.Ref{Namespace: run.GetNamespace(), Name: run.GetName(), UID: string(run.GetUID())}
	first := true
	active = true
	err = retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		if !first {
			fresh, err := s.readActive(ctx, ref)
			if active = fresh != nil; err != nil || !active {
				return err
			}
			placementv1beta1.CopyInto(run, fresh)
		}
		first = false
		before := placementv1beta1.DeepCopyOf(run)
		recorder := updaterun.Recorder{Run: run, Now: s.clock.Now()}
		record(recorder)
		if statusEqual(before, run) {
			return nil
		}
		recorder.Observed()
		began := s.clock.Now()
		defer func() { s.pace.observeWrite(s.clock.Since(began)) }()
		return s.client.Status().Update(ctx, run)
	})
	switch why, refused := bind.RefusalOf(err); {
	case err == nil:
		return active, nil
	case apierrors.IsNotFound(err):
		return false, nil
	case refused && !apierrors.IsConflict(err):
		s.emitWarning(run, eventWriteRefused, "The status of the run cannot be written, which is tried again: "+why)
	}
	return true, fmt.Errorf("writing the status of run %s: %w", run.GetName(), err)
}

func statusEqual(a, b placementv1beta1.UpdateRunObject) bool {
	return equality.Semantic.DeepEqual(*a.GetUpdateRunStatus(), *b.GetUpdateRunStatus())
}

// failRun ends a run for good, with the message that users see.
func (s runStore) failRun(ctx context.Context, run placementv1beta1.UpdateRunObject, message string) error {
	message += updaterun.OutOfServiceText(run)
	active, err := s.recordStatus(ctx, run, func(r updaterun.Recorder) { r.Failed(message) })
	if err != nil || !active {
		return err
	}
	s.emitWarning(run, placementv1beta1.ReasonUpdateRunFailed, message)
	return nil
}

// emitEnd emits the event of a run that has ended with its deletion stage.
func (s runStore) emitEnd(run placementv1beta1.UpdateRunObject) {
	if hasSucceeded(run) {
		s.emitEvent(run, placementv1beta1.ReasonUpdateRunSucceeded, "All stages are completed successfully%s",
			updaterun.ExceptionsText(run.GetUpdateRunStatus().StagesStatus...))
		return
	}
	failed := meta.FindStatusCondition(run.GetConditions(), placementv1beta1.ConditionTypeSucceeded)
	s.emitWarning(run, placementv1beta1.ReasonUpdateRunFailed, failed.Message)
}

func (s runStore) emitEvent(run placementv1beta1.UpdateRunObject, reason, note string, args ...any) {
	s.events.Eventf(run, nil, corev1.EventTypeNormal, reason, "Rollout", "%s", placementv1beta1.ScopeOf(run).Word(fmt.Sprintf(note, args...)))
}

func (s runStore) emitWarning(run placementv1beta1.UpdateRunObject, reason, note string) {
	s.events.Eventf(run, nil, corev1.EventTypeWarning, reason, "Rollout", "%s", placementv1beta1.ScopeOf(run).Word(note))
}

// emitClusterEvent and emitClusterWarning report one cluster, which is the related object. Events that are otherwise alike become
// a series, which shows the note of the first only: without the cluster, the first that fails would hide all others.
func (s runStore) emitClusterEvent(run placementv1beta1.UpdateRunObject, cluster, reason, note string, args ...any) {
	s.events.Eventf(run, clusterv1beta1.ReferTo(cluster), corev1.EventTypeNormal, reason, "Rollout", "%s",
		placementv1beta1.ScopeOf(run).Word(fmt.Sprintf(note, args...)))
}

func (s runStore) emitClusterWarning(run placementv1beta1.UpdateRunObject, cluster, reason, note string) {
	s.events.Eventf(run, clusterv1beta1.ReferTo(cluster), corev1.EventTypeWarning, reason, "Rollout", "%s",
		placementv1beta1.ScopeOf(run).Word(note))
}

// emitStageEvent and emitStageWarning report one stage, which is in the action for the same cause.
func (s runStore) emitStageEvent(run placementv1beta1.UpdateRunObject, stage, reason, note string, args ...any) {
	s.events.Eventf(run, nil, corev1.EventTypeNormal, reason, actionOf(stage), "%s",
		placementv1beta1.ScopeOf(run).Word(fmt.Sprintf(note, args...)))
}

func (s runStore) emitStageWarning(run placementv1beta1.UpdateRunObject, stage, reason, note string) {
	s.events.Eventf(run, nil, corev1.EventTypeWarning, reason, actionOf(stage), "%s", placementv1beta1.ScopeOf(run).Word(note))
}

func actionOf(stage string) string { return truncateText("Rollout of stage "+stage, maxAction) }

// emitRefusal tells what was refused. Events alike in reason and action become a series, which shows the note of the first
// only: without what was tried as the action, one refusal would hide the next.
func (s runStore) emitRefusal(run placementv1beta1.UpdateRunObject, reason, tried, note string) {
	s.events.Eventf(run, nil, corev1.EventTypeWarning, reason, truncateText(tried, maxAction), "%s", note)
}
