// Package stagedupdate has the activities of an update run: they freeze its
// plan, bring clusters to its snapshot, keep its gates and write its status.
// Each loads, decides by a pure function, and stores; each may run twice, or at
// the same time as an earlier attempt of itself.
package stagedupdate

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/clusterwait"
	act "github.com/fleetflow/fleetflow/activities/contract"
	"github.com/fleetflow/fleetflow/activities/override"
	"github.com/fleetflow/fleetflow/activities/throttle"
	"github.com/fleetflow/fleetflow/apis/placement/updaterun"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// Snapshotter makes sure that the latest resource snapshot of a placement holds
// what it selects now, and says which one that is.
type Snapshotter interface {
	Select(ctx context.Context, placement placementv1beta1.PlacementObject) (act.SelectResult, error)
	// Overrides are those that concern the snapshot with an index; nil if there are none.
	Overrides(ctx context.Context, placement placementv1beta1.PlacementObject, index string) (*override.Matcher, error)
}

// WorkSyncer writes the Works a binding needs.
type WorkSyncer interface {
	Sync(ctx context.Context, binding placementv1beta1.BindingObject) error
}

// EventRecorder emits Kubernetes events about an object.
type EventRecorder interface {
	Eventf(regarding, related runtime.Object, eventtype, reason, action, note string, args ...any)
}

// Identities tells who sent what to a workflow.
type Identities interface {
	// Approver is who sent the newest approval of a stage through a door;
	// verified says that the server vouches for it.
	Approver(ctx context.Context, request act.ApprovalRequest) (who string, verified bool, err error)
	// Canceller is who asked to cancel a workflow.
	Canceller(ctx context.Context, workflow, execution string) (who string, err error)
}

// Activities of an update run.
type Activities struct {
	// Client writes, and reads from the informer cache; Live reads the API
	// server.
	Client     client.Client
	Live       client.Reader
	Works      WorkSyncer
	Snapshots  Snapshotter
	Notifier   *clusterwait.Notifier
	Events     EventRecorder
	Identities Identities
	Clock      clock.WithTicker
	// ClusterWrites bounds the clusters that this process writes to at the same time,
	// FleetReads the copies of the fleet that it holds.
	ClusterWrites, FleetReads throttle.Limit
	// Outages knows when the API server could not be reached; nil if that is not observed.
	Outages *APIServerOutages

	refusals refusalLog
	gaps     observationGaps
	pace     statusPace
}

// run reads a run live; nil when there is none with this uid any more.
func (a *Activities) run(ctx context.Context, ref wf.Ref) (*placementv1beta1.ClusterStagedUpdateRun, error) {
	run := &placementv1beta1.ClusterStagedUpdateRun{}
	err := a.Live.Get(ctx, types.NamespacedName{Name: ref.Name}, run)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading run %s: %w", ref.Key(), err)
	}
	if ref.UID != "" && string(run.UID) != ref.UID {
		return nil, nil
	}
	return run, nil
}

// active reads a run that still has something to do; nil otherwise.
func (a *Activities) active(ctx context.Context, ref wf.Ref) (*placementv1beta1.ClusterStagedUpdateRun, error) {
	run, err := a.run(ctx, ref)
	if err != nil || run == nil || !run.DeletionTimestamp.IsZero() || placementv1beta1.IsRunOver(run) {
		return nil, err
	}
	return run, nil
}

// liveBinding reads the binding of a cluster live; nil when there is none.
func (a *Activities) liveBinding(ctx context.Context, placement *placementv1beta1.ClusterResourcePlacement, cluster string) (*placementv1beta1.ClusterResourceBinding, error) {
	name := placementv1beta1.BindingName(placement.Name, placement.UID, cluster)
	binding := &placementv1beta1.ClusterResourceBinding{}
	err := a.Live.Get(ctx, types.NamespacedName{Name: name}, binding)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the binding of cluster %s: %w", cluster, err)
	}
	return binding, nil
}

// recordStatus records progress in the status of a run, and says whether the run is still active. What
// another writer has written meanwhile stays: the progress is recorded once more on the newer version.
func (a *Activities) recordStatus(ctx context.Context, run *placementv1beta1.ClusterStagedUpdateRun, record func(updaterun.Recorder)) (active bool, err error) {
	ref := wf.Ref{Name: run.Name, UID: string(run.UID)}
	first := true
	active = true
	err = retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		if !first {
			fresh, err := a.active(ctx, ref)
			if active = fresh != nil; err != nil || !active {
				return err
			}
			fresh.DeepCopyInto(run)
		}
		first = false
		before := run.DeepCopy()
		record(updaterun.Recorder{Run: run, Now: a.Clock.Now()})
		if statusEqual(before, run) {
			return nil
		}
		began := a.Clock.Now()
		defer func() { a.pace.observeWrite(a.Clock.Since(began)) }()
		return a.Client.Status().Update(ctx, run)
	})
	switch why, refused := writeRefusal(err); {
	case err == nil:
		return active, nil
	case apierrors.IsNotFound(err):
		return false, nil
	case refused && !apierrors.IsConflict(err):
		a.warn(run, eventWriteRefused, "The status of the run cannot be written, which is tried again: "+why)
	}
	return true, fmt.Errorf("writing the status of run %s: %w", run.Name, err)
}

// store is recordStatus for those who need not know whether the run is still active.
func (a *Activities) store(ctx context.Context, run *placementv1beta1.ClusterStagedUpdateRun, record func(updaterun.Recorder)) error {
	active, err := a.recordStatus(ctx, run, record)
	if err == nil && !active {
		return errNotOn
	}
	return err
}

// errNotOn says that a run has ended meanwhile.
var errNotOn = errors.New("the run has ended, or was told something else, meanwhile")

// unlessNotOn is for those to whom it is all the same that a run has ended meanwhile.
func unlessNotOn(err error) error {
	if errors.Is(err, errNotOn) {
		return nil
	}
	return err
}

// fail ends a run for good, with the message that users see.
func (a *Activities) fail(ctx context.Context, run *placementv1beta1.ClusterStagedUpdateRun, message string) error {
	if err := a.store(ctx, run, func(r updaterun.Recorder) { r.Failed(message) }); err != nil {
		return unlessNotOn(err) // it has ended by itself
	}
	a.warn(run, placementv1beta1.ReasonUpdateRunFailed, message)
	return nil
}

func (a *Activities) event(run *placementv1beta1.ClusterStagedUpdateRun, reason, note string, args ...any) {
	a.Events.Eventf(run, nil, corev1.EventTypeNormal, reason, "Rollout", note, args...)
}

func (a *Activities) warn(run *placementv1beta1.ClusterStagedUpdateRun, reason, note string) {
	a.Events.Eventf(run, nil, corev1.EventTypeWarning, reason, "Rollout", "%s", note)
}
