package agent

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	eventsclient "k8s.io/client-go/kubernetes/typed/events/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/fleetflow/fleetflow/apis/kubefleet"
)

// Process is what flags say of the process of any agent: its endpoints, its log, and the lease by which several agents
// agree who works.
type Process struct {
	// Version asks for nothing but the version.
	Version  bool
	Log      Log
	Profiles Profiles
	Traces   Traces
	// LeaderElect lets one of several agents work.
	LeaderElect bool

	metricsAddress, healthAddress, leaseNamespace string
	metricsSecure                                 bool
	leaseDuration, renewDeadline, retryPeriod     time.Duration
}

// Defaults are what agents differ in.
type Defaults struct {
	// LeaderElect and LeaseNamespaceUsage explain two flags, LeaseNamespace is the default of the latter.
	LeaderElect, LeaseNamespace, LeaseNamespaceUsage string
	ProfilesPort                                     int
}

// Add adds the flags of the process.
func (p *Process) Add(f *flag.FlagSet, d Defaults) {
	f.BoolVar(&p.Version, "version", false, "print the version and end")
	f.StringVar(&p.metricsAddress, "metrics-bind-address", ":8080", "address of the metrics endpoint; 0 for none")
	f.BoolVar(&p.metricsSecure, "metrics-secure", true, "serve metrics by https, to those whose token has the right to get the non-resource URL /metrics of this cluster; otherwise in plain text, to every client that reaches the address")
	f.StringVar(&p.healthAddress, "health-probe-bind-address", ":8081", "address of the endpoints /healthz and /readyz; 0 for none")
	f.BoolVar(&p.LeaderElect, "leader-elect", true, d.LeaderElect)
	f.StringVar(&p.leaseNamespace, "leader-election-namespace", d.LeaseNamespace, d.LeaseNamespaceUsage)
	f.DurationVar(&p.leaseDuration, "leader-election-lease-duration", 15*time.Second, "how long a lease is respected that is not renewed")
	f.DurationVar(&p.renewDeadline, "leader-election-renew-deadline", 10*time.Second,
		"how long the leader tries to renew its lease before it gives up")
	f.DurationVar(&p.retryPeriod, "leader-election-retry-period", 2*time.Second, "how often the lease is looked at")
	p.Log.Add(f)
	p.Profiles.Add(f, d.ProfilesPort)
	p.Traces.Add(f)
}

// Check names the flags that are wrong.
func (p *Process) Check() error {
	var lease error
	if p.LeaderElect && p.leaseNamespace == "" {
		lease = errors.New("--leader-election-namespace is empty; name the namespace of the lease")
	}
	return errors.Join(lease, p.Log.Check(), p.Profiles.Check(), p.Traces.Check())
}

// ManagerOptions returns those of the manager that runs the agent on the cluster of the configuration; what is under way may take so
// long to end when the agent is told to stop.
func (p *Process) ManagerOptions(ctx context.Context, config *rest.Config, log logr.Logger, lease string,
	shutdown time.Duration) (ctrl.Options, error) {
	lock, err := p.newLock(ctx, config, lease)
	if err != nil {
		return ctrl.Options{}, err
	}
	metrics := metricsserver.Options{BindAddress: p.metricsAddress, SecureServing: p.metricsSecure}
	if p.metricsSecure {
		metrics.FilterProvider = newMetricsFilter
	}
	return ctrl.Options{
		Logger:                              log,
		Metrics:                             metrics,
		HealthProbeBindAddress:              p.healthAddress,
		PprofBindAddress:                    p.Profiles.Address(),
		LeaderElection:                      p.LeaderElect,
		LeaderElectionID:                    lease,
		LeaderElectionNamespace:             p.leaseNamespace,
		LeaderElectionResourceLockInterface: lock,
		LeaderElectionReleaseOnCancel:       true,
		LeaseDuration:                       &p.leaseDuration,
		RenewDeadline:                       &p.renewDeadline,
		RetryPeriod:                         &p.retryPeriod,
		GracefulShutdownTimeout:             &shutdown,
	}, nil
}

// LeaseReference names the lease of the agent that holds it, on which events report what concerns every replica.
func (p *Process) LeaseReference(lease string) corev1.ObjectReference {
	return corev1.ObjectReference{APIVersion: coordinationv1.SchemeGroupVersion.String(), Kind: "Lease", Namespace: p.leaseNamespace,
		Name: lease}
}

// StandBack waits while the agent's counterpart of KubeFleet works on a cluster, and returns what ends the agent's manager
// when the counterpart begins. It comes before the manager, which takes the address of the health endpoints. Events about it
// come from a source; with none there are none.
func (p *Process) StandBack(ctx context.Context, config *rest.Config, log logr.Logger, counterpart kubefleet.Lease,
	source string) (*StandBack, error) {
	leases, err := coordinationclient.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client for leases: %w", err)
	}
	guard := &StandBack{
		Leases: leases, Lease: counterpart, HealthAddress: p.healthAddress,
		Log: log.WithName("stand-back"), Clock: clock.RealClock{},
	}
	if source != "" {
		if guard.Events, err = newRecorder(ctx, config, source); err != nil {
			return nil, err
		}
	}
	if err := guard.Await(ctx); err != nil {
		return nil, fmt.Errorf("waiting for the end of %s: %w", counterpart.Agent, err)
	}
	return guard, nil
}

// newRecorder records events on leases.
func newRecorder(ctx context.Context, config *rest.Config, source string) (events.EventRecorder, error) {
	client, err := eventsclient.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client for events: %w", err)
	}
	scheme := runtime.NewScheme()
	if err := coordinationv1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("making the scheme of leases: %w", err)
	}
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: client})
	if err := broadcaster.StartRecordingToSinkWithContext(ctx); err != nil {
		return nil, fmt.Errorf("recording events: %w", err)
	}
	return broadcaster.NewRecorder(scheme, source), nil
}
