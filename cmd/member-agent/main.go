// Command member-agent joins the cluster it runs in to a fleet and applies what the hub places
// on it. See options.go for what it reads from its environment.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"

	"github.com/go-logr/logr"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/fleetflow/fleetflow/apis/kubefleet"
	"github.com/fleetflow/fleetflow/cmd/agent"
	"github.com/fleetflow/fleetflow/cmd/version"
	"github.com/fleetflow/fleetflow/controllers/joining"
	"github.com/fleetflow/fleetflow/controllers/member"
	"github.com/fleetflow/fleetflow/controllers/member/work"
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
	o, err := parseOptions(args, os.LookupEnv)
	if err != nil {
		return err
	}
	if o.Version {
		fmt.Println(version.Of("member-agent"))
		return nil
	}
	logger := o.Log.Logger(os.Stderr)
	ctrl.SetLogger(logger)
	klog.SetLogger(logger)

	config, err := o.memberConfig()
	if err != nil {
		return err
	}
	ctx := ctrl.SetupSignalHandler()
	tokens, err := o.tokenStore(config)
	if err != nil {
		return err
	}
	hub := o.hubConfig(tokens)
	if o.try {
		return tryHub(ctx, hub, o.cluster, os.Stdout)
	}
	guard, err := o.StandBack(ctx, config, logger, kubefleet.MemberAgentLease, "")
	if err != nil {
		return err
	}
	mgr, err := newManager(ctx, o, config, logger)
	if err != nil {
		return err
	}
	if err := addHealth(mgr, hub); err != nil {
		return err
	}
	measured := work.NewMetrics()
	joins := joining.NewCounters()
	metrics.Registry.MustRegister(append(measured.Collectors(), joins.Collectors()...)...)
	metrics.Registry.MustRegister(agent.NewBuildInfo())
	tracer, flush, err := o.Traces.Start(ctx, "member-agent", logger, semconv.K8SClusterName(o.cluster))
	if err != nil {
		return err
	}
	defer flush()
	if err := member.Setup(mgr, member.Options{
		Name: o.cluster, Version: version.Number(), Hub: hub, TokenStore: tokens, Consent: o.consent, Pruning: o.pruning, Veto: o.veto, Provider: o.provider,
		SelfUpdate: o.selfUpdate, Namespaces: o.namespaces, TellsOutput: o.tellsOutput, AnswersQuestions: o.answersQuestions, PullsImages: o.pullsImages,
		Metrics: measured, Joins: joins, Tracer: tracer,
	}); err != nil {
		return fmt.Errorf("setting up the agent: %w", err)
	}
	if err := mgr.Add(guard); err != nil {
		return fmt.Errorf("watching for KubeFleet's member agent: %w", err)
	}
	logger.Info("Starting", "version", version.Number(), "cluster", o.cluster, "hub", o.hubURL)
	return mgr.Start(ctx)
}

func newManager(ctx context.Context, o *options, config *rest.Config, logger logr.Logger) (ctrl.Manager, error) {
	all, err := o.ManagerOptions(ctx, config, logger, "member-agent.fleetflow.io", shutdownTimeout)
	if err != nil {
		return nil, err
	}
	mgr, err := ctrl.NewManager(config, member.ManagerOptions(all))
	if err != nil {
		return nil, fmt.Errorf("creating the manager: %w", err)
	}
	return mgr, nil
}

// addHealth adds the health endpoints. Not to reach the hub keeps nothing on the member from working, so the probe of the
// Pod leaves hub-api out.
func addHealth(mgr ctrl.Manager, hub *rest.Config) error {
	hubAPI, err := agent.APIServerAnswers("hub-api", hub)
	if err != nil {
		return err
	}
	memberAPI, err := agent.APIServerAnswers("member-api", mgr.GetConfig())
	if err != nil {
		return err
	}
	return agent.AddHealth(mgr, hubAPI, memberAPI, agent.CachesAreFilled("caches", mgr.GetCache()))
}
