package stagedupdate

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/apis/placement/updaterun"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// An attempt may outlive the execution that asked for it: one that was terminated, or whose worker
// hung. While it has clusters left to write to, another execution may end the run, or let it stand
// still, and plan a rollback that counts those clusters as never written to. What keeps such an
// attempt from writing:
//
//   - Temporal cancels its context with the answer to a heartbeat, at most 8 seconds (of the
//     heartbeat timeout, 80 %) after the execution is gone, and requests end with their context;
//   - before each write it looks at its run in the informer cache, which costs nothing: a run that
//     the cache has as ended, deleted, replaced or with another spec is looked at live;
//   - a live look older than lookFresh is repeated, in case the cache hears nothing any more: one
//     read in so many seconds, not one for each write;
//   - of two runs that write to one binding, the fence on the binding lets one through.
//
// What remains is a write that is on its way already while the run ends. A fence in the API server
// itself would have to change each binding when a run ends: a write more for each cluster.

// lookFresh is how long an attempt trusts its last live look at its run.
const lookFresh = 5 * time.Second

// errNotOn says that a run has ended meanwhile, or that its user wants something else of it:
// whoever writes for it must begin again by reading it.
var errNotOn = errors.New("the run has ended, or was told something else, meanwhile")

// unlessNotOn is for those to whom it is all the same that a run has ended meanwhile.
func unlessNotOn(err error) error {
	if errors.Is(err, errNotOn) {
		return nil
	}
	return err
}

// look is what an attempt has last seen of its run, live.
type look struct {
	ref wf.Ref

	mu         sync.Mutex
	at         time.Time
	generation int64
	stopping   bool
}

// stillOn says whether a run is still what it was when an attempt looked last: errNotOn if not.
func (a *Activities) stillOn(ctx context.Context, l *look) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	cached := &placementv1beta1.ClusterStagedUpdateRun{}
	// It is only read, and may be large.
	err := a.Client.Get(ctx, types.NamespacedName{Name: l.ref.Name}, cached, client.UnsafeDisableDeepCopyOption(true))
	if err == nil && l.same(cached) && a.Clock.Since(l.at) < lookFresh {
		return nil
	}
	run, err := a.active(ctx, l.ref)
	if err != nil {
		return fmt.Errorf("making sure that a run is still on: %w", err)
	}
	if run == nil || !l.same(run) {
		return errNotOn
	}
	l.at = a.Clock.Now()
	return nil
}

// saw notes a live look.
func (l *look) saw(run *placementv1beta1.ClusterStagedUpdateRun, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.at, l.generation, l.stopping = now, run.Generation, updaterun.IsStopping(run)
}

func (l *look) same(run *placementv1beta1.ClusterStagedUpdateRun) bool {
	return (l.ref.UID == "" || l.ref.UID == string(run.UID)) && run.DeletionTimestamp.IsZero() && !placementv1beta1.IsRunOver(run) &&
		run.Generation == l.generation && updaterun.IsStopping(run) == l.stopping
}
