// Command hub-agent runs fleetflow on the hub: the controllers, of which one
// replica leads, and the Temporal workers, of which every replica has its own.
package main

import (
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/fleetflow/fleetflow/activities/works"
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
	o, err := parse(args, os.Stderr, os.LookupEnv)
	if err != nil {
		return err
	}
	log := o.logger()
	ctrl.SetLogger(log)
	klog.SetLogger(log)
	ctx := ctrl.SetupSignalHandler()
	mgr, err := newManager(o, log)
	if err != nil {
		return err
	}
	e, err := newEngine(o, log)
	if err != nil {
		return err
	}
	defer e.Client.Close()
	// Controllers and activities share one, and what it remembers of snapshots.
	syncer := works.NewSyncer(mgr.GetClient(), mgr.GetAPIReader(), clock.RealClock{})
	if o.role != roleWorker {
		if err := hub.Setup(ctx, mgr, hub.Options{
			UnhealthyThreshold: o.unhealthyThreshold, ForceDeleteWaitTime: o.forceDeleteWait, ProfileNamespace: o.profiles(),
			Engine: e, TemporalNamespace: o.temporal.namespace, Works: syncer, Filter: o.filter, EvictionTTL: o.evictionTTL,
		}); err != nil {
			return fmt.Errorf("setting up the controllers: %w", err)
		}
	}
	if o.role != roleControllers {
		if err := addWorker(ctx, mgr, e, syncer, o, log); err != nil {
			return fmt.Errorf("setting up the workers: %w", err)
		}
	}
	log.Info("Starting", "role", o.role, "temporal", o.temporal.address, "temporalNamespace", o.temporal.namespace)
	return mgr.Start(ctx)
}

func newManager(o *options, log logr.Logger) (ctrl.Manager, error) {
	config, err := o.config()
	if err != nil {
		return nil, err
	}
	shutdown := shutdownTimeout
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: hub.Scheme(), Cache: hub.CacheOptions(), Logger: log,
		Metrics:                       metricsserver.Options{BindAddress: o.metricsAddress},
		HealthProbeBindAddress:        o.healthAddress,
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
	if err := mgr.AddHealthzCheck("alive", healthz.Ping); err != nil {
		return nil, fmt.Errorf("adding the health check: %w", err)
	}
	if err := mgr.AddReadyzCheck("alive", healthz.Ping); err != nil {
		return nil, fmt.Errorf("adding the readiness check: %w", err)
	}
	return mgr, nil
}

// slogOf lets Temporal's SDK log into the same sink as everything else.
func slogOf(log logr.Logger) *slog.Logger { return slog.New(logr.ToSlogHandler(log)) }
