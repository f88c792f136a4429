// Command member-agent joins the cluster it runs in to a fleet and applies what the hub places
// on it. See options.go for what it reads from its environment.
package main

import (
	"fmt"
	"os"
	"time"

	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/fleetflow/fleetflow/controllers/member"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "member-agent: %v\n", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	o, err := parse(args, os.LookupEnv)
	if err != nil {
		return err
	}
	logger := o.logger()
	ctrl.SetLogger(logger)
	klog.SetLogger(logger)

	memberConfig, err := o.memberConfig()
	if err != nil {
		return err
	}
	shutdown := 5 * time.Second
	mgr, err := ctrl.NewManager(memberConfig, member.ManagerOptions(ctrl.Options{
		Logger:                        logger,
		Metrics:                       metricsserver.Options{BindAddress: o.metricsAddress},
		HealthProbeBindAddress:        o.healthAddress,
		LeaderElection:                o.leaderElect,
		LeaderElectionID:              "member-agent.kubernetes-fleet.io",
		LeaderElectionNamespace:       o.leaderElectionNamespace,
		LeaderElectionReleaseOnCancel: true,
		LeaseDuration:                 &o.leaseDuration,
		RenewDeadline:                 &o.renewDeadline,
		RetryPeriod:                   &o.retryPeriod,
		GracefulShutdownTimeout:       &shutdown,
	}))
	if err != nil {
		return fmt.Errorf("creating the manager: %w", err)
	}
	if err := mgr.AddHealthzCheck("alive", healthz.Ping); err != nil {
		return fmt.Errorf("adding the health check: %w", err)
	}
	if err := mgr.AddReadyzCheck("alive", healthz.Ping); err != nil {
		return fmt.Errorf("adding the readiness check: %w", err)
	}
	if err := member.Setup(mgr, o.hubConfig(), o.cluster); err != nil {
		return fmt.Errorf("setting up the agent: %w", err)
	}
	logger.Info("Starting", "cluster", o.cluster, "hub", o.hubURL)
	return mgr.Start(ctrl.SetupSignalHandler())
}
