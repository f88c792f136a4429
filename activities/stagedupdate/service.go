package stagedupdate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/attempt"
	"github.com/fleetflow/fleetflow/activities/bind"
	"github.com/fleetflow/fleetflow/activities/hubread"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	"github.com/fleetflow/fleetflow/apis/placement/updaterun"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
	"github.com/fleetflow/fleetflow/workflows/rollout"
)

// putBackClusters puts clusters back into service that were prepared to be updated and are not to be updated by the run any more. One
// whose binding the API server refuses to write keeps no other out of service: whys says of each why.
func (w *clusterWriter) putBackClusters(ctx context.Context, clusters []string) (whys map[string]string, err error) {
	whys = map[string]string{}
	if w.placement == nil || rules.LifecycleOf(w.placement) == nil {
		return whys, nil
	}
	var mu sync.Mutex
	var group errgroup.Group
	group.SetLimit(maxRetries)
	for _, name := range clusters {
		group.Go(func() error {
			release, err := attempt.Acquire(ctx, w.acts.ClusterWrites)
			if err != nil {
				return err
			}
			defer release()
			err = w.putBackCluster(ctx, name)
			if refused, is := errors.AsType[*bind.RefusedError](err); is {
				mu.Lock()
				defer mu.Unlock()
				whys[name] = refused.Why
				return nil
			}
			return err
		})
	}
	return whys, group.Wait()
}

// putBackCluster puts a cluster back into service, if it is prepared and the run may have it.
func (w *clusterWriter) putBackCluster(ctx context.Context, cluster string) error {
	var fenced error
	version := ""
	for range maxFencedTries {
		binding, result, err := w.readBinding(ctx, cluster, false)
		if err != nil || result.owner != rollout.OwnerNone {
			return err
		}
		if state, _ := rules.LifecycleStateOf(binding); state != placementv1beta1.LifecyclePreparingUpdate {
			return nil
		}
		if binding.GetResourceVersion() == version {
			break // the binding has not changed, so it was not the fence that failed
		}
		next := rules.StateWhenGivenUp(rules.LifecycleOf(w.placement), binding)
		_, err = w.binder().Enter(ctx, binding, next, "", nil)
		if err == nil {
			return nil
		}
		fenced = fmt.Errorf("putting cluster %s back into service: %w", cluster, err)
		if !errors.Is(err, bind.ErrFenced) {
			break
		}
		version = binding.GetResourceVersion()
	}
	return fenced
}

// serviceKeeper puts clusters back into service that the run does not update any more, for one call. The status names those that it could
// not put back, until that succeeds.
type serviceKeeper struct {
	observer *stageObserver
	// nextTry is when that is tried again; zero if there are no such clusters.
	nextTry time.Time
}

// putBack puts clusters back into service.
func (k *serviceKeeper) putBack(ctx context.Context, clusters []string) error {
	if len(clusters) == 0 {
		return nil
	}
	run := k.observer.run
	acts := k.observer.acts
	whys, putErr := k.observer.newWriter(run).putBackClusters(ctx, clusters)
	before := updaterun.OutOfService(run)
	var back, news []string
	for _, name := range clusters {
		known := slices.Contains(before, name)
		why, refused := whys[name]
		switch {
		case refused:
			acts.refusals.Record(serviceOf(run), name, "", why, acts.Clock.Now())
			if !known {
				news = append(news, name)
			}
		case putErr == nil && known:
			acts.refusals.Forget(serviceOf(run), name)
			back = append(back, name)
		}
	}
	if len(whys)+len(back) == 0 {
		return putErr
	}
	acts.runs().tellOutOfService(run, news, whys)
	_, err := acts.runs().recordStatus(ctx, run, func(r updaterun.Recorder) {
		r.NotPutBack(whys)
		r.PutBack(back)
	})
	return errors.Join(putErr, err)
}

// putBackConcluded puts the clusters back into service that a plan takes out of the request without an update, those included that an attempt
// which has died may have recorded as failed or skipped, and no more.
func (k *serviceKeeper) putBackConcluded(ctx context.Context, plan rollout.StagePlan) error {
	recorded := plan.AlreadyRecorded
	return k.putBack(ctx, union(slices.Concat(plan.NotStarted, plan.GiveUp, plan.Skip), slices.Concat(recorded.Failed, recorded.Skipped)))
}

// putBackRunning puts the clusters of the stage back into service that the run has prepared to be updated, and all that it could not put
// back before.
func (k *serviceKeeper) putBackRunning(ctx context.Context) error {
	running := updaterun.NamesIn(updaterun.StageAt(k.observer.run, k.observer.request.Index), updaterun.PhaseRunning)
	return k.putBack(ctx, union(running, updaterun.OutOfService(k.observer.run)))
}

// putBackAgain tries again to put clusters back into service, unless they are to be updated: those that it is time for, or all.
func (k *serviceKeeper) putBackAgain(ctx context.Context, roles map[string]rollout.StageRole, all bool) error {
	now := k.observer.acts.Clock.Now()
	due := slices.DeleteFunc(k.listWaiting(roles), func(name string) bool { return !all && now.Before(k.nextTryOf(name)) })
	if err := k.putBack(ctx, due); err != nil {
		return err
	}
	k.scheduleNextTry(roles)
	return nil
}

// listWaiting returns the clusters out of service that are not to be updated.
func (k *serviceKeeper) listWaiting(roles map[string]rollout.StageRole) []string {
	return slices.DeleteFunc(updaterun.OutOfService(k.observer.run), func(name string) bool {
		return roles[name] == rollout.RoleStart || roles[name] == rollout.RoleInFlight
	})
}

// scheduleNextTry notes when clusters are to be put back into service next.
func (k *serviceKeeper) scheduleNextTry(roles map[string]rollout.StageRole) {
	k.nextTry = time.Time{}
	for _, name := range k.listWaiting(roles) {
		k.nextTry = rollout.EarlierOf(k.nextTry, k.nextTryOf(name))
	}
}

// nextTryOf returns when this process tries again to put a cluster back into service; zero if it has not tried.
func (k *serviceKeeper) nextTryOf(cluster string) time.Time {
	wait, _, _ := k.observer.acts.refusals.Of(serviceOf(k.observer.run), cluster)
	return wait.Until
}

// serviceSweep puts clusters back into service outside of the calls that advance a stage: before a run stops or ends, and when its workflow is
// started anew.
type serviceSweep struct {
	acts *Activities
	run  placementv1beta1.UpdateRunObject
}

// putBack puts the clusters back into service that the run could not put back before, and those that it has left.
func (s serviceSweep) putBack(ctx context.Context) error {
	return s.putBackAll(ctx, updaterun.OutOfService(s.run))
}

// putBackLeft puts the clusters back into service that an attempt has recorded as failed or skipped before it died: a workflow that is
// started anew asks for nothing of them.
func (s serviceSweep) putBackLeft(ctx context.Context) error { return s.putBackAll(ctx, nil) }

// putBackAll puts clusters back into service, and those that the run has left. It reads the placement live only if there are any.
func (s serviceSweep) putBackAll(ctx context.Context, known []string) error {
	run := s.run
	concluded := concludedIn(run)
	if len(known)+len(concluded) == 0 {
		return nil
	}
	ref := wf.Ref{Namespace: run.GetNamespace(), Name: run.GetName(), UID: string(run.GetUID())}
	c := newStageCall(s.acts, wf.StageAdvance{StageRequest: wf.StageRequest{Run: ref}}, run, nil)
	var err error
	if c.observer.placement, err = s.readPlacement(ctx, s.acts.Client); err != nil {
		return err
	}
	left, err := c.observer.preparedAmong(ctx, concluded)
	if err != nil || len(known)+len(left) == 0 {
		return err
	}
	if c.observer.placement, err = s.readPlacement(ctx, s.acts.Live); err != nil {
		return err
	}
	return c.service.putBack(ctx, union(known, left))
}

// readPlacement reads the placement of the run; nil if there is none.
func (s serviceSweep) readPlacement(ctx context.Context, from client.Reader) (placementv1beta1.PlacementObject, error) {
	return hubread.Placement(ctx, from, placementv1beta1.ScopeOf(s.run), s.run.GetUpdateRunSpec().PlacementName)
}

// failRun puts clusters back into service and fails the run.
func (s serviceSweep) failRun(ctx context.Context, message string) error {
	if err := s.putBack(ctx); err != nil {
		return err
	}
	return s.acts.runs().failRun(ctx, s.run, message)
}

// concludedIn returns the clusters of a run that it does not update any more without having updated them, except for those of which it says
// that they are out of service.
func concludedIn(run placementv1beta1.UpdateRunObject) []*placementv1beta1.ClusterUpdatingStatus {
	var concluded []*placementv1beta1.ClusterUpdatingStatus
	known := updaterun.OutOfService(run)
	stages := run.GetUpdateRunStatus().StagesStatus
	for i := range stages {
		for _, phase := range []updaterun.Phase{updaterun.PhaseFailed, updaterun.PhaseSkipped} {
			for _, at := range updaterun.PositionsIn(&stages[i], phase) {
				if cluster := &stages[i].Clusters[at]; !slices.Contains(known, cluster.ClusterName) {
					concluded = append(concluded, cluster)
				}
			}
		}
	}
	return concluded
}

// preparedAmong returns which of the clusters that the run is done with are out of service to be updated since then or before, as the cache
// has it: one that was prepared later is another run's.
func (o *stageObserver) preparedAmong(ctx context.Context, concluded []*placementv1beta1.ClusterUpdatingStatus) ([]string, error) {
	if o.placement == nil || rules.LifecycleOf(o.placement) == nil {
		return nil, nil
	}
	var prepared []string
	for _, cluster := range concluded {
		binding, err := readCachedBinding(ctx, o.bindings, o.placement, cluster.ClusterName)
		if err != nil {
			return nil, err
		}
		if binding == nil {
			continue
		}
		if state, since := rules.LifecycleStateOf(binding); state == placementv1beta1.LifecyclePreparingUpdate && !updaterun.ConcludedBefore(cluster, since) {
			prepared = append(prepared, cluster.ClusterName)
		}
	}
	return prepared, nil
}

// serviceOf returns under what the refusals are remembered to put the clusters of a run back into service: those to update them are others.
func serviceOf(run placementv1beta1.UpdateRunObject) types.UID { return run.GetUID() + "/service" }

// union returns the names of two lists, each once.
func union(a, b []string) []string {
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}

// tellOutOfService reports clusters that could not be put back into service, the first few by name.
func (s runStore) tellOutOfService(run placementv1beta1.UpdateRunObject, clusters []string, whys map[string]string) {
	for _, name := range clusters[:min(len(clusters), updaterun.ShownNames)] {
		s.emitClusterWarning(run, name, eventWriteRefused,
			fmt.Sprintf("Cluster %s could not be put back into service: its binding cannot be written: %s", name, whys[name]))
	}
	if more := len(clusters) - updaterun.ShownNames; more > 0 {
		s.emitWarning(run, eventWriteRefused, fmt.Sprintf("%d more clusters could not be put back into service: their bindings cannot be written", more))
	}
}
