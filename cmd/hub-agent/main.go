// Command hub-agent runs fleetflow on the hub: the controllers, of which one
// replica leads, and the Temporal workers, of which every replica has its own.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime/debug"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/fleetflow/fleetflow/apis/kubefleet"
	"github.com/fleetflow/fleetflow/cmd/agent"
	"github.com/fleetflow/fleetflow/cmd/version"
	"github.com/fleetflow/fleetflow/controllers/hub"
)

// gcPercent is how much the heap may grow, in percent of what is in use, before Go collects what is not. Most of the agent's
// memory is the hub's objects, which stay: with Go's 100, half of it would be garbage. GOGC in the environment counts instead.
const gcPercent = 50

// leaseName is the lease of the hub agent that leads.
const leaseName = "hub-agent.fleetflow.io"

// shutdownTimeout leaves the workers the time to hand over what they wait for.
const shutdownTimeout = 15 * time.Second

func main() {
	if err := start(os.Args[1:]); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintf(os.Stderr, "hub-agent: %v\n", err)
		os.Exit(1)
	}
}

// start runs the agent, or what its first argument names.
func start(args []string) error {
	if len(args) > 0 && args[0] == checkPodsCommand {
		return checkPods(ctrl.SetupSignalHandler(), args[1:], os.Stderr)
	}
	return run(args)
}

func run(args []string) error {
	o, err := parseOptions(args, os.Stderr, os.LookupEnv)
	if err != nil {
		return err
	}
	if o.Version {
		fmt.Println(version.Of("hub-agent"))
		return nil
	}
	log := o.Log.Logger(os.Stderr)
	ctrl.SetLogger(log)
	klog.SetLogger(log)
	if _, set := os.LookupEnv("GOGC"); !set {
		debug.SetGCPercent(gcPercent)
	}
	ctx := ctrl.SetupSignalHandler()
	config, err := o.hubConfig()
	if err != nil {
		return err
	}
	if err := o.AwaitAPIServer(ctx, config, log); err != nil {
		return err
	}
	guard, err := o.StandBack(ctx, config, log, kubefleet.HubAgentLease, "hub-agent")
	if err != nil {
		return err
	}
	definitions, err := o.AwaitDefinitions(ctx, config, hub.Scheme(), log)
	if err != nil {
		return err
	}
	mgr, err := newManager(ctx, o, config, log)
	if err != nil {
		return err
	}
	tracer, flush, err := o.Traces.Start(ctx, "hub-agent", log)
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
		return explainMissingKinds(err)
	}
	if err := agent.AddHealth(mgr, checks...); err != nil {
		return err
	}
	if err := mgr.Add(guard); err != nil {
		return fmt.Errorf("watching for KubeFleet's hub agent: %w", err)
	}
	if err := mgr.Add(definitions); err != nil {
		return fmt.Errorf("watching the definitions: %w", err)
	}
	metrics.Registry.MustRegister(agent.NewBuildInfo())
	log.Info("Starting", "version", version.Number(), "role", o.role, "temporalMode", o.temporal.mode, "temporal", o.temporal.address,
		"temporalNamespace",
		o.temporal.namespace)
	return explainMissingKinds(mgr.Start(ctx))
}

func newManager(ctx context.Context, o *options, config *rest.Config, log logr.Logger) (ctrl.Manager, error) {
	all, err := o.ManagerOptions(ctx, config, log, leaseName, shutdownTimeout)
	if err != nil {
		return nil, err
	}
	all.Scheme = hub.Scheme()
	all.Cache = hub.CacheOptions()
	all.LeaderElection = o.LeaderElect && o.role != roleWorker
	mgr, err := ctrl.NewManager(config, all)
	if err != nil {
		return nil, fmt.Errorf("creating the manager: %w", err)
	}
	return mgr, nil
}
