package stagedupdate

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fleetflow/fleetflow/apis/placement/updaterun"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// eventRefused is the reason of the event that tells that a write is refused.
const eventRefused = "WriteRefused"

// refusal says whether the API server has refused a write for what it is, and why: a webhook or a
// policy of somebody's does not want it, or a right is missing. Trying again at once would not help,
// and other writes may well succeed. That the API server cannot be reached, takes too long, has too
// much to do, is in trouble itself, or does not know who asks, says nothing of the write: that is
// an error like others. A webhook that gives no answer is one that refuses: the API server is well.
func refusal(err error) (why string, is bool) {
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) {
		return "", false
	}
	status := answer.Status()
	switch status.Code {
	case http.StatusUnauthorized, http.StatusRequestTimeout, http.StatusTooManyRequests:
		return "", false
	case http.StatusInternalServerError:
		is = strings.Contains(status.Message, "failed calling webhook")
	default:
		is = status.Code >= http.StatusBadRequest && status.Code < http.StatusInternalServerError
	}
	if !is {
		return "", false
	}
	return shorten(status.Message, maxWhy), true
}

// refusedError says that a cluster's binding cannot be written.
type refusedError struct {
	cluster, why string
	err          error
}

func (e *refusedError) Error() string { return e.err.Error() }

// Unwrap returns what the API server answered.
func (e *refusedError) Unwrap() error { return e.err }

// refusedIf makes a *refusedError of an error that is a refusal.
func refusedIf(cluster string, err error) error {
	if why, is := refusal(err); is {
		return &refusedError{cluster, why, err}
	}
	return err
}

// How soon a refused write is tried again: after as long as it has been refused, within bounds. With
// many clusters refused, each is tried less often.
const (
	refusedAtLeast = time.Second
	refusedAtMost  = 30 * time.Second
	refusedEach    = 50 * time.Millisecond
)

// refusedKept is how long it is known that a write was refused that nobody tries any more.
const refusedKept = time.Hour

// refusals are the clusters that this process could not write to when it tried last. The status of
// their runs says so, too, for people and for other processes.
type refusals struct {
	mu     sync.Mutex
	all    map[refusedKey]refusedWrite
	pruned time.Time
}

type refusedKey struct {
	run     types.UID
	cluster string
}

type refusedWrite struct {
	why         string
	since, next time.Time
}

func (r *refusals) note(run types.UID, cluster, why string, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.all == nil {
		r.all = map[refusedKey]refusedWrite{}
	}
	if now.Sub(r.pruned) > refusedKept { // of runs that have ended
		maps.DeleteFunc(r.all, func(_ refusedKey, w refusedWrite) bool { return now.Sub(w.next) > refusedKept })
		r.pruned = now
	}
	key := refusedKey{run, cluster}
	w, again := r.all[key]
	if !again {
		w.since = now
		r.all[key] = w
	}
	most := refusedAtMost + time.Duration(len(r.all)-1)*refusedEach
	w.why, w.next = why, now.Add(min(max(now.Sub(w.since), refusedAtLeast), most))
	r.all[key] = w
}

func (r *refusals) of(run types.UID, cluster string) (refusedWrite, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	w, is := r.all[refusedKey{run, cluster}]
	return w, is
}

// none says that nothing is refused.
func (r *refusals) none() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.all) == 0
}

// nextTry is when one of some clusters is due to be tried again; zero if none is refused.
func (r *refusals) nextTry(run types.UID, clusters map[string]struct{}) time.Time {
	var first time.Time
	if r.none() {
		return first
	}
	for name := range clusters {
		if w, is := r.of(run, name); is && (first.IsZero() || w.next.Before(first)) {
			first = w.next
		}
	}
	return first
}

func (r *refusals) forget(run types.UID, cluster string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.all, refusedKey{run, cluster})
}

// unlessRefused notes that a cluster cannot be written to, which is no error: it is in flight, as
// one that is slow is, and is tried again.
func (s *stageAdvance) unlessRefused(err error) error {
	refused, is := errors.AsType[*refusedError](err)
	if !is {
		return err
	}
	s.refused.note(s.uid, refused.cluster, refused.why, s.Clock.Now())
	return nil
}

// refusedBefore are the clusters in flight that, as the status has it, could not be written to, and
// of which this process knows nothing.
func (s *stageAdvance) refusedBefore() []string {
	var clusters []string
	s.said = updaterun.RefusedTexts(s.stage(s.run))
	for _, name := range s.in.InFlight {
		if _, known := s.refused.of(s.uid, name); s.said[name] != "" && !known {
			clusters = append(clusters, name)
		}
	}
	return clusters
}

// refusedNow says, as an addition to a sentence, that a cluster's binding cannot be written;
// nothing if it can.
func (a *Activities) refusedNow(run types.UID, cluster string) string {
	w, is := a.refused.of(run, cluster)
	if !is {
		return ""
	}
	return ": its binding cannot be written: " + w.why
}

// parallelRetries bounds the clusters that are tried again at the same time: the places of the
// process are for those that can be written to, and who refuses may take long to say so.
const parallelRetries = 4

// retry tries those of some clusters that are due to be tried again.
func (s *stageAdvance) retry(ctx context.Context, pending map[string]struct{}) error {
	now := s.Clock.Now()
	var g errgroup.Group
	g.SetLimit(parallelRetries)
	for name := range pending {
		if w, is := s.refused.of(s.uid, name); is && !now.Before(w.next) {
			g.Go(func() error { return s.unlessRefused(s.unlessLeft(s.startCluster(ctx, s.run, name))) })
		}
	}
	if err := g.Wait(); err != nil {
		return err
	}
	return s.sayRefused(ctx)
}

// sayRefused brings up to date what the status says of clusters that cannot be written to.
func (s *stageAdvance) sayRefused(ctx context.Context) (err error) {
	s.said, err = s.sayRefusedOf(ctx, s.run, s.stageIn, s.inFlight())
	return err
}

// stage is the stage of a run that is being advanced.
func (s *stageAdvance) stage(run *placementv1beta1.ClusterStagedUpdateRun) *placementv1beta1.StageUpdatingStatus {
	return s.stageIn(&run.Status)
}

func (s *stageAdvance) stageIn(status *placementv1beta1.UpdateRunStatus) *placementv1beta1.StageUpdatingStatus {
	return &status.StagesStatus[s.in.Index]
}

// sayRefusedOf says in the status which clusters of a stage in flight cannot be written to: all of
// them, but in a large run, which has to fit into what the API server stores, the first few. It
// returns what is said now.
func (a *Activities) sayRefusedOf(
	ctx context.Context, run *placementv1beta1.ClusterStagedUpdateRun, stageOf func(*placementv1beta1.UpdateRunStatus) *placementv1beta1.StageUpdatingStatus, inFlight []string,
) (map[string]string, error) {
	before := updaterun.RefusedTexts(stageOf(&run.Status))
	if len(before) == 0 && a.refused.none() {
		return before, nil
	}
	most := len(inFlight)
	if updaterun.IsLarge(run) {
		most = updaterun.ShownNames
	}
	why := map[string]string{}
	var refused, fresh, written []string
	for _, name := range inFlight {
		w, is := a.refused.of(run.UID, name)
		switch {
		case is && len(why) < most:
			if why[name] = w.why; before[name] != updaterun.RefusedText(w.why) {
				refused = append(refused, name)
			}
			if before[name] == "" {
				fresh = append(fresh, name)
			}
		case !is && before[name] != "":
			written = append(written, name)
		}
	}
	if len(refused)+len(written) == 0 {
		return before, nil
	}
	err := a.store(ctx, run, func(r updaterun.Recorder) {
		stage := stageOf(r.Status())
		r.ClustersRefused(stage, refused, why)
		r.ClustersAccepted(stage, written)
		if len(written) > 0 && !updaterun.IsStopping(r.Run) {
			r.Progressing()
		}
	})
	if err != nil {
		return before, err
	}
	a.tellRefused(run, stageOf(&run.Status).StageName, fresh, why)
	return updaterun.RefusedTexts(stageOf(&run.Status)), nil
}

// tellRefused tells of clusters that cannot be written to.
func (a *Activities) tellRefused(run *placementv1beta1.ClusterStagedUpdateRun, stage string, clusters []string, why map[string]string) {
	for _, name := range clusters[:min(len(clusters), updaterun.ShownNames)] {
		a.warn(run, eventRefused, fmt.Sprintf("The binding of cluster %s in stage %s cannot be written, which is tried again: %s", name, stage, why[name]))
	}
	if more := len(clusters) - updaterun.ShownNames; more > 0 {
		a.warn(run, eventRefused, fmt.Sprintf("The bindings of %d more clusters in stage %s cannot be written", more, stage))
	}
}

// errRefusedNow ends a wait: what the status says of a cluster is no longer true.
var errRefusedNow = errors.New("a cluster cannot be written to, or can after all")

// news says whether the status has to say something else of a cluster.
func (s *stageAdvance) news(cluster string) error {
	w, is := s.refused.of(s.uid, cluster)
	want := ""
	if is {
		want = updaterun.RefusedText(w.why)
	}
	if want == s.said[cluster] || is && updaterun.IsLarge(s.run) && len(s.said) >= updaterun.ShownNames {
		return nil
	}
	return errRefusedNow
}

// maxTrouble bounds what is repeated of an error.
const maxTrouble = 512

// troubled says on a run that it cannot go on as long as a write is refused, and returns the error:
// it is tried again. It clears itself with the next progress.
func (a *Activities) troubled(ctx context.Context, run *placementv1beta1.ClusterStagedUpdateRun, err error) error {
	if _, refused := refusal(err); !refused || apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err) {
		return err
	}
	text := "The updateRun is stuck, a write is refused, which is tried again: " + shorten(err.Error(), maxTrouble)
	fresh := false
	stored := a.store(ctx, run, func(r updaterun.Recorder) {
		before := meta.FindStatusCondition(r.Run.GetConditions(), placementv1beta1.ConditionTypeProgressing)
		fresh = before == nil || before.Message != text
		r.RunCondition(placementv1beta1.ConditionTypeProgressing, metav1.ConditionFalse, placementv1beta1.ReasonUpdateRunStuck, text)
	})
	if stored == nil && fresh {
		a.warn(run, eventRefused, text)
	}
	return err
}
