// Command member-agent joins the cluster it runs in to a fleet and applies what the hub places
// on it. See options.go for what it reads from its environment.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"

	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"

	"github.com/fleetflow/fleetflow/controllers/member"
)

func main() {
	err := run(os.Args[1:])
	if err == nil || errors.Is(err, flag.ErrHelp) {
		return
	}
	fmt.Fprintf(os.Stderr, "member-agent: %v\n", err)
	os.Exit(1)
}

func run(args []string) error {
	o, err := parse(args, os.LookupEnv)
	if err != nil {
		return err
	}
	logger := o.logger()
	ctrl.SetLogger(logger)
	klog.SetLogger(logger)

	config, err := o.memberConfig()
	if err != nil {
		return err
	}
	mgr, err := ctrl.NewManager(config, member.ManagerOptions(o.manager(logger)))
	if err != nil {
		return fmt.Errorf("creating the manager: %w", err)
	}
	// Ready means able to work, not joined: a hub that is away must not get the agent restarted.
	if err := errors.Join(mgr.AddHealthzCheck("alive", healthz.Ping), mgr.AddReadyzCheck("alive", healthz.Ping)); err != nil {
		return fmt.Errorf("adding the health checks: %w", err)
	}
	if err := member.Setup(mgr, o.hubConfig(), o.cluster, o.pruning, o.provider); err != nil {
		return fmt.Errorf("setting up the agent: %w", err)
	}
	logger.Info("Starting", "cluster", o.cluster, "hub", o.hubURL)
	return mgr.Start(ctrl.SetupSignalHandler())
}
