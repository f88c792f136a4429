// Command hub-agent runs fleetflow on the hub: the controllers, of which one
// replica leads, and the Temporal workers, of which every replica has its own.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/go-logr/logr"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/fleetflow/fleetflow/apis/kubefleet"
	"github.com/fleetflow/fleetflow/cmd/agent"
	"github.com/fleetflow/fleetflow/cmd/version"
	"github.com/fleetflow/fleetflow/controllers/hub"
)

// shutdownTimeout leaves the workers the time to hand over what they wait for.
const shutdownTimeout = 15 * time.Second

func main() {
	if err := run(os.Args[1:]); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintf(os.Stderr, "hub-agent: %v\n", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	o, err := parseOptions(args, os.Stderr, os.LookupEnv)
	if err != nil {
		return err
	}
	if o.version {
		fmt.Println(version.Of("hub-agent"))
		return nil
	}
	log := o.log.Logger(os.Stderr)
	ctrl.SetLogger(log)
	klog.SetLogger(log)
	ctx := ctrl.SetupSignalHandler()
	mgr, err := newManager(o, log)
	if err != nil {
		return err
	}
	tracer, flush, err := o.traces.Start(ctx, "hub-agent", log)
	if err != nil {
		return err
	}
	defer flush()
	temporal, err := newTemporalClient(o, tracer, log)
	if err != nil {
		return err
	}
	defer temporal.SDK.Close()
	checks, err := addParts(ctx, mgr, temporal, o, log)
	if err != nil {
		return err
	}
	if err := agent.AddHealth(mgr, checks...); err != nil {
		return err
	}
	if err := standBack(ctx, mgr, o, log); err != nil {
		return err
	}
	log.Info("Starting", "version", version.Number(), "role", o.role, "temporal", o.temporal.address, "temporalNamespace", o.temporal.namespace)
	return mgr.Start(ctx)
}

// standBack waits while KubeFleet's hub agent works on this hub, and has the manager watch for it.
func standBack(ctx context.Context, mgr ctrl.Manager, o *options, log logr.Logger) error {
	leases, err := coordinationclient.NewForConfig(mgr.GetConfig())
	if err != nil {
		return fmt.Errorf("making a client for leases: %w", err)
	}
	guard := &agent.StandBack{
		Leases: leases, Lease: kubefleet.HubAgentLease, HealthAddress: o.healthAddress,
		Events: mgr.GetEventRecorder("hub-agent"), Log: log.WithName("stand-back"), Clock: clock.RealClock{},
	}
	if err := guard.Await(ctx); err != nil {
		return fmt.Errorf("waiting for the end of KubeFleet's hub agent: %w", err)
	}
	return mgr.Add(guard)
}

func newManager(o *options, log logr.Logger) (ctrl.Manager, error) {
	config, err := o.hubConfig()
	if err != nil {
		return nil, err
	}
	shutdown := shutdownTimeout
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: hub.Scheme(), Cache: hub.CacheOptions(), Logger: log,
		Metrics:                       metricsserver.Options{BindAddress: o.metricsAddress},
		HealthProbeBindAddress:        o.healthAddress,
		PprofBindAddress:              o.profiling.Address(),
		LeaderElection:                o.leaderElect && o.role != roleWorker,
		LeaderElectionID:              "hub-agent.kubernetes-fleet.io",
		LeaderElectionNamespace:       o.leaderElectionNamespace,
		LeaderElectionReleaseOnCancel: true,
		LeaseDuration:                 &o.leaseDuration,
		RenewDeadline:                 &o.renewDeadline,
		RetryPeriod:                   &o.retryPeriod,
		GracefulShutdownTimeout:       &shutdown,
	})
	if err != nil {
		return nil, fmt.Errorf("creating the manager: %w", err)
	}
	return mgr, nil
}

// slogOf lets Temporal's SDK log into the same sink as everything else.
func slogOf(log logr.Logger) *slog.Logger { return slog.New(logr.ToSlogHandler(log)) }
