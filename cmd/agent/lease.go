package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/uuid"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/tools/record"

	"github.com/fleetflow/fleetflow/cmd/version"
)

// podUIDEnv has the UID of the agent's Pod, in the containers of the charts.
const podUIDEnv = "POD_UID"

// firstProcess is the id of the process with which a container begins and ends.
const firstProcess = 1

// holder returns what an agent calls itself in a lease. A container that was started again is the holder it was before: it goes on with
// the lease that the agent lost, without waiting until that runs out.
//
// Two agents of one name would both lead. So the name is made of the Pod's UID, which no other Pod ever has, not of its name alone; and
// only the first process of a container takes it: kubelet starts a container again only once that process has ended, even if it was
// frozen, and all others of the container with it. What else runs there, or passes its environment on, has a name of its own. What the
// ended process had sent may still be written, as may that of an agent that has given its lease back: each write pins what it changes.
func holder(pid int, host, podUID string) string {
	if pid != firstProcess || podUID == "" {
		podUID = string(uuid.NewUUID())
	}
	return host + "_" + podUID
}

// newLock returns the lease of a name, as this agent takes it.
func (p *Process) newLock(ctx context.Context, config *rest.Config, name string) (resourcelock.Interface, error) {
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("finding the name of this host: %w", err)
	}
	config = rest.AddUserAgent(config, "leader-election")
	config.Timeout = max(p.renewDeadline/2, time.Second) // one request that hangs does not cost the lease
	leases, err := coordinationclient.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client for the lease: %w", err)
	}
	sink, err := coreclient.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client for the events of the lease: %w", err)
	}
	identity := holder(os.Getpid(), host, os.Getenv(podUIDEnv))
	broadcaster := record.NewBroadcaster(record.WithContext(ctx))
	broadcaster.StartRecordingToSink(&coreclient.EventSinkImpl{Interface: sink.Events("")})
	return &heldLease{LeaseLock: &resourcelock.LeaseLock{
		LeaseMeta: metav1.ObjectMeta{Namespace: p.leaseNamespace, Name: name}, Client: leases,
		LockConfig: resourcelock.ResourceLockConfig{
			Identity: identity, EventRecorder: broadcaster.NewRecorder(runtime.NewScheme(), corev1.EventSource{Component: identity}),
		},
		Labels: version.Labels(), // by which kubectl fleet check knows the version of the agent that leads
	}}, nil
}

// errNotHolder says that another agent holds a lease that was to be given back.
var errNotHolder = errors.New("another agent holds the lease, and keeps it")

// heldLease is a lease that only its holder gives back. client-go reads the lease before that, but decides by what the elector saw last
// whether it is its own: an agent that was frozen until another led, and is told to stop as it wakes, would empty the other's.
type heldLease struct {
	*resourcelock.LeaseLock
	// holder is whose the lease is in the version that the next update pins.
	holder string
}

// Get reads the lease.
func (l *heldLease) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := l.LeaseLock.Get(ctx)
	if err == nil {
		l.holder = record.HolderIdentity
	}
	return record, raw, err
}

// Create makes the lease.
func (l *heldLease) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	err := l.LeaseLock.Create(ctx, record)
	if err == nil {
		l.holder = record.HolderIdentity
	}
	return err
}

// Update writes the lease, if it is still as it was read. It does not give back that of another holder.
func (l *heldLease) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	if record.HolderIdentity == "" && l.holder != l.Identity() {
		return fmt.Errorf("giving lease %s back: held by %q: %w", l.Describe(), l.holder, errNotHolder)
	}
	err := l.LeaseLock.Update(ctx, record)
	if err == nil {
		l.holder = record.HolderIdentity
	}
	return err
}
