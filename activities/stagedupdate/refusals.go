package stagedupdate

import (
	"context"
	"maps"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fleetflow/fleetflow/activities/bind"
	"github.com/fleetflow/fleetflow/activities/brake"
	"github.com/fleetflow/fleetflow/apis/placement/updaterun"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/workflows/rollout"
)

// eventWriteRefused is the reason of the event that reports a refused write.
const eventWriteRefused = "WriteRefused"

// maxCauseBytes bounds what a message repeats of another message.
const maxCauseBytes = 256

// A refused write is tried again after as long as it has been refused, within these bounds. With many
// refused clusters, each is tried less often.
const (
	minRetryDelay        = time.Second
	maxRetryDelay        = 30 * time.Second
	retryDelayPerCluster = 50 * time.Millisecond
)

// refusalMemory is how long a refusal is remembered that is not tried again: its run has ended.
const refusalMemory = time.Hour

// refusalLog has the clusters that this process could not write to when it last tried. The status of
// their runs has them too, for people and for other processes.
type refusalLog struct {
	mu        sync.Mutex
	refusals  map[refusalKey]rollout.Wait
	lastPrune time.Time
}

type refusalKey struct {
	run     types.UID
	cluster string
}

func (l *refusalLog) recordRefusal(run types.UID, cluster, why string, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.refusals == nil {
		l.refusals = map[refusalKey]rollout.Wait{}
	}
	if now.Sub(l.lastPrune) > refusalMemory {
		maps.DeleteFunc(l.refusals, func(_ refusalKey, r rollout.Wait) bool { return now.Sub(r.Until) > refusalMemory })
		l.lastPrune = now
	}
	key := refusalKey{run, cluster}
	since := now
	others := len(l.refusals)
	if last, again := l.refusals[key]; again {
		since = last.Since
		others--
	}
	most := maxRetryDelay + time.Duration(others)*retryDelayPerCluster
	l.refusals[key] = brake.Refusal(cluster, why, since, now.Add(min(max(now.Sub(since), minRetryDelay), most)))
}

func (l *refusalLog) refusalOfCluster(run types.UID, cluster string) (rollout.Wait, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r, refused := l.refusals[refusalKey{run, cluster}]
	return r, refused
}

func (l *refusalLog) forget(run types.UID, cluster string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.refusals, refusalKey{run, cluster})
}

// waits returns what a cluster waits for whose binding cannot be written; nothing if it can.
func (l *refusalLog) waits(run types.UID, cluster string) []rollout.Wait {
	if wait, refused := l.refusalOfCluster(run, cluster); refused {
		return []rollout.Wait{wait}
	}
	return nil
}

// causeText says, as an addition to a sentence, that a cluster's binding cannot be written; nothing if
// it can.
func (l *refusalLog) causeText(run types.UID, cluster string) (text string) {
	for _, wait := range l.waits(run, cluster) {
		text = wait.StuckText()
	}
	return text
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
	return strings.ToValidUTF8(text[:min(len(text), limit)], "")
}
