package stagedupdate

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetflow/fleetflow/activities/bind"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	"github.com/fleetflow/fleetflow/apis/placement/updaterun"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/workflows/rollout"
)

// eventWriteRefused is the reason of the event that reports a refused write.
const eventWriteRefused = "WriteRefused"

// maxCauseBytes bounds what a message repeats of another message.
const maxCauseBytes = 256

// refusalOf returns what a cluster of the run waits for whose binding could not be written when that was last tried.
func (o *stageObserver) refusalOf(cluster string) (rollout.Wait, bool) {
	wait, _, refused := o.acts.refusals.Of(o.run.GetUID(), cluster) // a run has one basis: it brings a cluster one snapshot
	return wait, refused
}

// refusalWaits returns what a cluster waits for whose binding cannot be written; nothing if it can.
func (o *stageObserver) refusalWaits(cluster string) []rollout.Wait {
	if wait, refused := o.refusalOf(cluster); refused {
		return []rollout.Wait{wait}
	}
	return nil
}

// refusalText says, as an addition to a sentence, that a cluster's binding cannot be written; nothing if
// it can.
func (o *stageObserver) refusalText(cluster string) string {
	if wait, refused := o.refusalOf(cluster); refused {
		return wait.StuckText()
	}
	return ""
}

// maxErrorBytes bounds what a message repeats of an error.
const maxErrorBytes = 512

// recordRefusedWrite says on a run that it is stuck if a write that it cannot do without is refused,
// and returns the error: the write is tried again. The next progress clears what it says.
func (s runStore) recordRefusedWrite(ctx context.Context, run placementv1beta1.UpdateRunObject, err error) error {
	_, refused := bind.RefusalOf(err)
	if !refused || apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err) {
		return err
	}
	text := "The updateRun is stuck, a write is refused, which is tried again: " + truncateText(err.Error(), maxErrorBytes)
	isNew := false
	active, storeErr := s.recordStatus(ctx, run, func(r updaterun.Recorder) {
		before := meta.FindStatusCondition(r.Run.GetConditions(), placementv1beta1.ConditionTypeProgressing)
		isNew = before == nil || before.Message != text
		r.RunCondition(placementv1beta1.ConditionTypeProgressing, metav1.ConditionFalse, placementv1beta1.ReasonUpdateRunStuck, text)
	})
	if active && storeErr == nil && isNew {
		s.emitWarning(run, eventWriteRefused, text)
	}
	return err
}

func truncateText(text string, limit int) string {
	return clusterv1beta1.FirstBytes(text, limit)
}
