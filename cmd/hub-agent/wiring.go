package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel/trace"
	temporallog "go.temporal.io/sdk/log"
	sdkworker "go.temporal.io/sdk/worker"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/fleetflow/fleetflow/activities/analysis/measure"
	"github.com/fleetflow/fleetflow/activities/analysis/metricsource"
	"github.com/fleetflow/fleetflow/activities/attempt"
	"github.com/fleetflow/fleetflow/activities/bind"
	"github.com/fleetflow/fleetflow/activities/clusterwait"
	"github.com/fleetflow/fleetflow/activities/hubread"
	"github.com/fleetflow/fleetflow/activities/outbound"
	"github.com/fleetflow/fleetflow/activities/placement"
	"github.com/fleetflow/fleetflow/activities/rollingupdate"
	"github.com/fleetflow/fleetflow/activities/selection"
	"github.com/fleetflow/fleetflow/activities/stagedupdate"
	"github.com/fleetflow/fleetflow/activities/worksync"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	"github.com/fleetflow/fleetflow/cmd/agent"
	"github.com/fleetflow/fleetflow/controllers/hub"
	"github.com/fleetflow/fleetflow/controllers/hub/temporalclient"
	"github.com/fleetflow/fleetflow/controllers/hub/waker"
	"github.com/fleetflow/fleetflow/worker"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// addParts adds to the manager what the role of this process asks for, and returns what that depends on.
func addParts(ctx context.Context, mgr ctrl.Manager, temporal *temporalclient.Client, o *options, log logr.Logger) ([]agent.Check, error) {
	hubAPI, err := agent.APIServerAnswers("hub-api", mgr.GetConfig())
	if err != nil {
		return nil, err
	}
	temporal.Priority = waker.Priorities{Cached: mgr.GetClient()}.KeyOf
	checks := []agent.Check{hubAPI, agent.CachesAreFilled("caches", mgr.GetCache()), {Name: "temporal", Run: temporal.Check}}
	// Controllers and activities share one, and what it remembers of snapshots.
	kinds, err := hubread.NewServedKinds(mgr.GetConfig(), mgr.GetAPIReader(), o.clock, o.filter)
	if err != nil {
		return nil, err
	}
	kinds.ClusterScopedInConfigMaps = o.configMapEnvelopes == configMapsHoldAny
	syncer := worksync.NewSyncer(mgr.GetClient(), mgr.GetAPIReader(), o.clock, kinds.EnvelopeRules)
	catch, err := addSafetyCatch(mgr, o)
	if err != nil {
		return nil, err
	}
	sources := metricsource.NewSources(mgr.GetAPIReader(), o.sourceNamespace, o.guard)
	sources.Hub = outbound.NewHubAddresses(mgr.GetConfig().Host, mgr.GetAPIReader(), o.clock)
	if err := mgr.Add(&agent.SkewReporter{
		APIClock: o.clock, Events: mgr.GetEventRecorder("hub-agent"), Lease: o.LeaseReference(leaseName), Log: log.WithName("clock"),
	}); err != nil {
		return nil, fmt.Errorf("watching the clocks: %w", err)
	}
	if o.role != roleWorker {
		if err := hub.Setup(ctx, mgr, hub.Options{
			UnhealthyThreshold: o.unhealthyThreshold, ForceDeleteWaitTime: o.forceDeleteWait, Outages: o.outages,
			ProfileNamespace: o.namespaceOfProfiles(), DecisionNamespace: o.namespaceOfDecisions(), LocationLabels: o.locationLabels,
			Temporal: temporal, AuditPokes: o.temporal.auditPokes(), Works: syncer, Filter: o.filter, EvictionTTL: o.evictionTTL,
			Catch:   catch,
			Records: o.bounds(),
			Calls:   &sources.Client, AuditFiles: o.recordFiles,
			Vocabulary: o.vocabulary, Registry: metrics.Registry, Sources: sources, Reach: o.reach, Exemptions: o.exemptions(), Clock: o.clock,
			Jobs:      metricsource.Jobs{Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Reach: o.reach, Clock: o.clock},
			Overrides: (&selection.Selector{Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Kinds: kinds}).Overrides,
		}); err != nil {
			return nil, fmt.Errorf("setting up the controllers: %w", err)
		}
	}
	workers := func() error { return nil }
	if o.role != roleControllers {
		runner, err := addWorker(ctx, mgr, temporal, parts{kinds, syncer, catch, sources}, o, log)
		if err != nil {
			return nil, fmt.Errorf("setting up the workers: %w", err)
		}
		checks = append(checks, agent.Check{Name: "temporal-workers", Run: func(context.Context) error { return runner.Check() }})
		workers = runner.Check
	}
	if o.role != roleWorker {
		routing, err := addRouting(mgr, temporal, workers, o, log)
		if err != nil {
			return nil, err
		}
		if err := addReporter(mgr, temporal, routing, o, log); err != nil {
			return nil, err
		}
	}
	return checks, nil
}

// addRouting adds what has Temporal give its tasks to this build while this agent leads; nil if Temporal is for this agent alone.
func addRouting(mgr ctrl.Manager, temporal *temporalclient.Client, workers func() error, o *options, log logr.Logger) (*worker.Routing, error) {
	if o.temporal.bundled() {
		return nil, nil
	}
	lease := o.LeaseReference(leaseName)
	recorder := mgr.GetEventRecorder("hub-agent")
	routing := &worker.Routing{
		Client: temporal.SDK, Build: o.temporal.build, Workers: workers, Log: log.WithName("routing"),
		Tell: func(message string) {
			recorder.Eventf(&lease, nil, corev1.EventTypeNormal, "BuildTakesTasks", "Route", "%s", message)
		},
	}
	if err := mgr.Add(routing); err != nil {
		return nil, fmt.Errorf("routing the tasks of Temporal to builds: %w", err)
	}
	return routing, nil
}

// addReporter adds what notes whether Temporal can be reached.
func addReporter(mgr ctrl.Manager, temporal *temporalclient.Client, routing *worker.Routing, o *options, log logr.Logger) error {
	host, err := os.Hostname()
	if err != nil {
		host = "hub-agent"
	}
	reach := &worker.Reach{Client: temporal.SDK, Namespace: o.temporal.namespace}
	reporter := &temporalclient.Reporter{
		Ask: func(ctx context.Context) error {
			err := reach.Ask(ctx)
			if err == nil && routing != nil {
				err = routing.Problem()
			}
			return temporal.RecordAnswer(err)
		},
		Live: mgr.GetAPIReader(), Writer: mgr.GetClient(), Holder: host, Clock: o.clock, Log: log.WithName("temporal-report"),
		Lease: types.NamespacedName{Namespace: o.LeaseReference(leaseName).Namespace, Name: clusterv1beta1.TemporalLease},
		Mode:  o.temporal.mode, Patience: o.temporal.patience,
	}
	if o.needsSenders() {
		senders := worker.Identities{Client: temporal.SDK, Namespace: o.temporal.namespace}
		reporter.AskApprovals = senders.ApprovalsProblem
	}
	if err := mgr.Add(reporter); err != nil {
		return fmt.Errorf("reporting whether Temporal can be reached: %w", err)
	}
	return nil
}

// needsSenders reports whether an approval through Temporal counts only if Temporal names its sender.
func (o *options) needsSenders() bool {
	return stagedupdate.ApprovalPolicy(o.temporal.approvals) == stagedupdate.ApprovalsVerified
}

// newTemporalClient connects to Temporal, lazily.
func newTemporalClient(o *options, tracer trace.Tracer, log logr.Logger) (*temporalclient.Client, error) {
	measured := temporalclient.NewMetrics()
	metrics.Registry.MustRegister(measured.Collectors()...)
	if o.temporal.data != "" {
		metrics.Registry.MustRegister(temporalclient.NewDatabaseSize(o.temporal.data))
	}
	host, err := os.Hostname()
	if err != nil {
		host = "hub-agent"
	}
	c, err := temporalclient.New(temporalclient.Options{
		Address: o.temporal.address, Namespace: o.temporal.namespace, Security: o.temporal.security, Bundled: o.temporal.bundled(),
		Identity: fmt.Sprintf("hub-agent@%s/%d", host, os.Getpid()),
		Metrics:  measured,
		Tracer:   tracer,
		Logger:   temporallog.NewStructuredLogger(slog.New(logr.ToSlogHandler(log.WithName("temporal")))),
	})
	if err != nil {
		return nil, err
	}
	c.Ensure = func(ctx context.Context) error { return worker.Ensure(ctx, c.SDK, o.temporal.namespace) }
	return c, nil
}

// addSafetyCatch adds what holds removals that nothing explains; nil if they are not to be held.
func addSafetyCatch(mgr ctrl.Manager, o *options) (*bind.SafetyCatch, error) {
	if !o.holdRemovals {
		return nil, nil
	}
	catch := &bind.SafetyCatch{Cached: mgr.GetClient()}
	return catch, mgr.Add(catch)
}

// parts are what controllers and activities share.
type parts struct {
	kinds   *hubread.ServedKinds
	syncer  *worksync.Syncer
	catch   *bind.SafetyCatch
	sources *metricsource.Sources
}

// addWorker adds the Temporal workers, with their activities, to the manager.
func addWorker(ctx context.Context, mgr ctrl.Manager, temporal *temporalclient.Client, shared parts, o *options,
	log logr.Logger) (*worker.Runner, error) {
	if o.role == roleWorker { // controllers register them among others
		if err := hubread.Register(ctx, mgr.GetFieldIndexer(), hubread.Indexes()); err != nil {
			return nil, err
		}
	}
	activities, err := newActivities(mgr, temporal, shared, o)
	if err != nil {
		return nil, err
	}
	notifier := activities.UpdateRun.Notifier
	if err := notifier.Watch(ctx, mgr.GetCache(), mgr.GetClient()); err != nil {
		return nil, err
	}
	sdkworker.SetStickyWorkflowCacheSize(o.temporal.cacheSize) // before any worker starts
	measured := worker.NewMetrics()
	metrics.Registry.MustRegister(measured.Collectors()...)
	runner := &worker.Runner{
		Client: temporal.SDK, Namespace: o.temporal.namespace, Activities: activities, Log: log.WithName("worker"), Metrics: measured,
		NeedsSenders: o.needsSenders(), Build: o.temporal.build, LeaderOnly: o.temporal.bundled(), Before: temporal.TakeOver,
	}
	lease := o.LeaseReference(leaseName)
	recorder := mgr.GetEventRecorder("hub-agent")
	runner.SendersUnnamed = func(message string) {
		recorder.Eventf(&lease, nil, corev1.EventTypeWarning, "ApprovalsNotVerified", "Observe", "%s", message)
	}
	steps := mgr.GetEventRecorder("workflow-worker")
	runner.Tell = func(object wf.Ref, good bool, message string) {
		if good {
			steps.Eventf(waker.ObjectOf(object), nil, corev1.EventTypeNormal, "ActivityGoesOn", "RunActivity", "%s", message)
			return
		}
		steps.Eventf(waker.ObjectOf(object), nil, corev1.EventTypeWarning, "ActivityKeepsFailing", "RunActivity", "%s", message)
	}
	return runner, mgr.Add(runner)
}

// newActivities puts the activities together.
func newActivities(mgr ctrl.Manager, temporal *temporalclient.Client, shared parts, o *options) (worker.Activities, error) {
	cached := mgr.GetClient()
	live := mgr.GetAPIReader()
	clk := o.clock
	selector, err := selection.NewSelector(mgr.GetConfig(), cached, live, shared.kinds, clk, o.pace, o.ceiling)
	if err != nil {
		return worker.Activities{}, fmt.Errorf("preparing the selection of resources: %w", err)
	}
	notifier := clusterwait.NewNotifier()
	writes := attempt.NewLimit(attempt.MaxClusterWrites)
	fleetReads := attempt.NewLimit(attempt.MaxFleetReads)
	placements := placement.NewActivities(cached, live, selector, clk)
	placements.FleetReads = fleetReads
	placements.Catch = shared.catch
	measured := measure.NewMetrics()
	metrics.Registry.MustRegister(measured.Collectors()...)
	return worker.Activities{
		Placement: placements,
		Rolling: &rollingupdate.Activities{
			Client: cached, Live: live, Works: shared.syncer, Notifier: notifier, Clock: clk, ClusterWrites: writes,
			Events: mgr.GetEventRecorder("placement-eviction-controller"), Exemptions: o.exemptions(),
		},
		UpdateRun: &stagedupdate.Activities{
			Client: cached, Live: live, Works: shared.syncer, Snapshots: selector, Notifier: notifier, Clock: clk,
			ClusterWrites: writes, FleetReads: fleetReads, Outages: o.outages, Vocabulary: o.vocabulary,
			Events:     mgr.GetEventRecorder("staged-update-run"),
			Approvals:  stagedupdate.ApprovalPolicy(o.temporal.approvals),
			Identities: &worker.Identities{Client: temporal.SDK, Namespace: o.temporal.namespace, Converter: temporal.Converter},
			Sources:    shared.sources,
			Reach:      o.reach,
			Exemptions: o.exemptions(),
		},
		Measure: &measure.Activities{
			Client: cached, Live: live, Clock: clk, Metrics: measured, Sources: shared.sources,
			Objects: metricsource.Objects{Live: live, Reach: o.reach},
			Jobs:    metricsource.Jobs{Client: cached, Live: live, Reach: o.reach, Clock: clk},
		},
	}, nil
}
