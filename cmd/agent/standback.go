package agent

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"

	"github.com/fleetflow/fleetflow/apis/kubefleet"
	"github.com/fleetflow/fleetflow/controllers/informer"
)

// StandBack keeps an agent from working beside its counterpart of KubeFleet, which would undo what it writes: the agent does
// not start while the counterpart holds its lease, and ends if it takes the lease later. The kubelet then
// starts the agent again, which waits until the lease is released or expires.
type StandBack struct {
	// Leases reads and watches leases on the cluster of the counterpart.
	Leases coordinationclient.LeasesGetter
	// Lease is that of the counterpart.
	Lease kubefleet.Lease
	// HealthAddress is where the agent serves /healthz and /readyz while it waits; empty or 0 for nowhere.
	HealthAddress string
	// Events takes events on the lease; with nil there are none.
	Events events.EventRecorder
	Log    logr.Logger
	Clock  clock.Clock
}

// Await waits while the counterpart holds its lease. If that cannot be read, it does not wait: the agent may have to work
// while its API server is away, and Start looks again.
func (s *StandBack) Await(ctx context.Context) error {
	lease, err := s.Leases.Leases(s.Lease.Namespace).Get(ctx, s.Lease.Name, metav1.GetOptions{})
	if err != nil {
		if !apierrors.IsNotFound(err) {
			s.Log.Error(err, "Cannot tell whether KubeFleet's agent runs")
		}
		return nil
	}
	hold := kubefleet.Hold{}.Observe(lease, s.Clock.Now())
	if !hold.IsHeld(s.Clock.Now()) {
		return nil
	}
	message := fmt.Sprintf("%s (%s) runs here: this agent writes nothing until it has ended. Scale it to zero; its lease %s/%s ends then",
		s.Lease.Agent, hold.Holder, s.Lease.Namespace, s.Lease.Name)
	s.Log.Info("Standing back", "cause", message)
	s.emitEvent(lease, "Warning", "StandingBack", message)
	closeHealth, err := serveUnready(s.HealthAddress, message)
	if err != nil {
		return err
	}
	defer closeHealth()
	if _, ended := s.awaitHold(ctx, hold, false); !ended {
		return ctx.Err()
	}
	s.Log.Info("Going on: KubeFleet's agent has ended")
	s.emitEvent(lease, "Normal", "GoingOn", s.Lease.Agent+" has ended: this agent takes over")
	return nil
}

// Start watches the lease while the agent works, and fails, which ends the agent, when the counterpart takes it.
func (s *StandBack) Start(ctx context.Context) error {
	hold, begun := s.awaitHold(ctx, kubefleet.Hold{}, true)
	if !begun {
		return nil // the agent was told to end
	}
	return fmt.Errorf("%s (%s) has begun to work here: this agent ends, and stands back when it is started again", s.Lease.Agent, hold.Holder)
}

// NeedLeaderElection reports whether replicas that do not lead watch, too: their workers work.
func (s *StandBack) NeedLeaderElection() bool { return false }

// awaitHold waits until the lease is held, or is not any more; done is false if the context ended before.
func (s *StandBack) awaitHold(ctx context.Context, hold kubefleet.Hold, held bool) (_ kubefleet.Hold, done bool) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	seen := make(chan *coordinationv1.Lease)
	go s.watchLease(ctx, seen)
	for {
		now := s.Clock.Now()
		if hold.IsHeld(now) == held {
			return hold, true
		}
		var expired <-chan time.Time
		if hold.IsHeld(now) {
			expired = s.Clock.After(hold.Until.Sub(now))
		}
		select {
		case <-ctx.Done():
			return hold, false
		case lease := <-seen:
			hold = hold.Observe(lease, s.Clock.Now())
		case <-expired:
		}
	}
}

// watchLease sends the lease whenever it changes, and nil when it is deleted, until the context ends.
func (s *StandBack) watchLease(ctx context.Context, seen chan<- *coordinationv1.Lease) {
	send := func(object any) {
		lease, _ := object.(*coordinationv1.Lease)
		select {
		case seen <- lease:
		case <-ctx.Done():
		}
	}
	leases := s.Leases.Leases(s.Lease.Namespace)
	named := fields.OneTermEqualSelector("metadata.name", s.Lease.Name).String()
	watched := informer.New(cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.FieldSelector = named
			return leases.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.FieldSelector = named
			return leases.Watch(ctx, options)
		},
	}, s.Leases), &coordinationv1.Lease{}, 0, nil)
	_, err := watched.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: send, UpdateFunc: func(_, object any) { send(object) }, DeleteFunc: func(any) { send(nil) },
	})
	if err != nil {
		s.Log.Error(err, "Watching the lease of KubeFleet's agent") // only an informer that has ended refuses handlers
		return
	}
	watched.RunWithContext(ctx)
}

func (s *StandBack) emitEvent(lease *coordinationv1.Lease, kind, reason, message string) {
	if s.Events != nil {
		s.Events.Eventf(lease, nil, kind, reason, "StandBack", "%s", message)
	}
}
