package stagedupdate

import (
	"context"
	"fmt"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/apis/placement/rules"
	"github.com/fleetflow/fleetflow/apis/placement/updaterun"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// An attempt may outlive the execution that asked for it: one that was terminated, or whose worker
// hung. While it has clusters left to write to, another execution may end the run, or stop it, and plan
// a rollback that counts those clusters as never written to. What keeps such an attempt from writing:
//
//   - Temporal cancels its context with the answer to the first heartbeat after the execution is gone,
//     and requests end with their context. A heartbeat is sent every call.HeartbeatPause; one that is
//     not delivered is sent again until it is, so that this takes longer while Temporal is away;
//   - before each write it reads its run from the informer cache, which costs nothing: a run that
//     has ended there, or is deleted, replaced or has another spec, is read live;
//   - a live read older than maxReadAge is repeated, in case the informer receives nothing any more:
//     one read in so many seconds, not one for each write;
//   - of two runs that write to one binding, the fence on the binding lets one through.
//
// What remains is a write that has been sent already when the run ends. A fence in the API server
// itself would have to change each binding when a run ends: a write more for each cluster.

// maxReadAge is how long an attempt relies on its last live read of its run.
const maxReadAge = 5 * time.Second

// runFence keeps an attempt from writing for a run that has ended, or that its user wants something
// else of, since the attempt has read it.
type runFence struct {
	acts *Activities
	ref  wf.Ref

	mu         sync.Mutex
	readAt     time.Time
	generation int64
	stopping   bool
}

// newRunFence is for an attempt that has just read its run.
func newRunFence(a *Activities, ref wf.Ref, run placementv1beta1.UpdateRunObject) *runFence {
	f := &runFence{acts: a, ref: ref}
	f.noteRead(run)
	return f
}

// noteRead notes a live read of the run.
func (f *runFence) noteRead(run placementv1beta1.UpdateRunObject) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.readAt, f.generation, f.stopping = f.acts.Clock.Now(), run.GetGeneration(), updaterun.IsStopping(run)
}

// mayWrite reports whether the run is still as it was when the attempt read it.
func (f *runFence) mayWrite(ctx context.Context) (bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	cached := scopeOf(f.ref).NewUpdateRun(f.ref.Name)
	// It is only read, and may be large.
	err := f.acts.Client.Get(ctx, client.ObjectKeyFromObject(cached), cached, client.UnsafeDisableDeepCopyOption(true))
	if err == nil && f.isUnchanged(cached) && f.acts.Clock.Since(f.readAt) < maxReadAge {
		return true, nil
	}
	run, err := f.acts.runs().readActive(ctx, f.ref)
	if err != nil {
		return false, fmt.Errorf("making sure that a run is still to be updated: %w", err)
	}
	if run == nil || !f.isUnchanged(run) {
		return false, nil
	}
	f.readAt = f.acts.Clock.Now()
	return true, nil
}

func (f *runFence) isUnchanged(run placementv1beta1.UpdateRunObject) bool {
	return (f.ref.UID == "" || f.ref.UID == string(run.GetUID())) && !rules.IsDeleting(run) &&
		!rules.IsRunOver(run) && run.GetGeneration() == f.generation && updaterun.IsStopping(run) == f.stopping
}
