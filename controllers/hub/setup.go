// Package hub registers the hub's controllers with a manager: those that
// project state (Works to bindings to placements, members' reports to members)
// and those that wake workflows.
package hub

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/analysis"
	"github.com/fleetflow/fleetflow/activities/bind"
	"github.com/fleetflow/fleetflow/activities/hubread"
	"github.com/fleetflow/fleetflow/activities/outbound"
	"github.com/fleetflow/fleetflow/activities/snapshot"
	"github.com/fleetflow/fleetflow/activities/worksync"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/controllers/hub/auditsink"
	"github.com/fleetflow/fleetflow/controllers/hub/binding"
	"github.com/fleetflow/fleetflow/controllers/hub/brakes"
	"github.com/fleetflow/fleetflow/controllers/hub/clusterprofile"
	"github.com/fleetflow/fleetflow/controllers/hub/clusterwatch"
	"github.com/fleetflow/fleetflow/controllers/hub/delivery"
	"github.com/fleetflow/fleetflow/controllers/hub/eviction"
	"github.com/fleetflow/fleetflow/controllers/hub/fieldindex"
	"github.com/fleetflow/fleetflow/controllers/hub/membership"
	"github.com/fleetflow/fleetflow/controllers/hub/notification"
	"github.com/fleetflow/fleetflow/controllers/hub/override"
	"github.com/fleetflow/fleetflow/controllers/hub/placement"
	"github.com/fleetflow/fleetflow/controllers/hub/placementdecision"
	"github.com/fleetflow/fleetflow/controllers/hub/records"
	"github.com/fleetflow/fleetflow/controllers/hub/rehearsal"
	"github.com/fleetflow/fleetflow/controllers/hub/reportback"
	"github.com/fleetflow/fleetflow/controllers/hub/resourcewatch"
	"github.com/fleetflow/fleetflow/controllers/hub/stageanalysis"
	"github.com/fleetflow/fleetflow/controllers/hub/stagedupdate"
	"github.com/fleetflow/fleetflow/controllers/hub/telemetry"
	"github.com/fleetflow/fleetflow/controllers/hub/waker"
)

// Options are what the hub's controllers need beside a manager.
type Options struct {
	// UnhealthyThreshold and ForceDeleteWaitTime are described at membership.Options; 0 is a minute, and a quarter of an
	// hour.
	UnhealthyThreshold  time.Duration
	ForceDeleteWaitTime time.Duration
	// Outages are those of the hub's API server, during which no member is called silent; with nil none are known.
	Outages membership.Outages
	// LocationLabels is described at membership.Options.
	LocationLabels bool
	// ProfileNamespace is where members have ClusterProfiles; empty if they have none.
	ProfileNamespace string
	// DecisionNamespace is where placements have PlacementDecisions; empty if they have none.
	DecisionNamespace string
	// Vocabulary is in which words the statuses of placements are written.
	Vocabulary placementv1beta1.Vocabulary
	// Temporal is where workflows are woken.
	Temporal waker.Temporal
	// AuditPokes is how many missing workflows are started in a second; 0 is the usual number.
	AuditPokes int
	// EvictionTTL is after how long executed evictions are deleted; 0 keeps them.
	EvictionTTL time.Duration
	// Filter is what the operator keeps from being placed.
	Filter snapshot.Filter
	// Works is the writer of Works, which the workers of this process share.
	Works *worksync.Syncer
	// Catch holds removals of bindings that nothing explains; with nil none is held.
	Catch *bind.SafetyCatch
	// Sources says which metric sources can be used.
	Sources stageanalysis.SourceChecker
	// Jobs deletes Jobs of analyses; with nil none are.
	Jobs stageanalysis.JobDeleter
	// Overrides picks the overrides that a change would be written with; with nil no member is asked what a change would do there.
	Overrides rehearsal.OverridesFor
	// Reach is what metrics may reach on the hub.
	Reach analysis.Reach
	// Exemptions says which exemptions count.
	Exemptions hubread.ExemptionRule
	// Clock is that of the hub's API server: by it windows open, holds and exemptions expire, and everything waits.
	Clock clock.WithTicker
	// Records are how many AuditRecords are kept, and for how long; with nil none are written.
	Records *records.Bounds
	// Calls is how servers outside of the fleet are called, as those of metric sources are: records are delivered so. AuditFiles is the folder
	// of the files that records are delivered to; without one there are none.
	Calls      *outbound.Client
	AuditFiles string
	// Registry takes the metrics of the hub's objects; there are none without it.
	Registry prometheus.Registerer
}

// Setup registers the cache's indexes and every controller with a manager whose cache was made with CacheOptions.
func Setup(ctx context.Context, mgr ctrl.Manager, options Options) error {
	if err := fieldindex.Setup(ctx, mgr.GetFieldIndexer()); err != nil {
		return err
	}
	cached := mgr.GetClient()
	live := mgr.GetAPIReader()
	recorder := mgr.GetEventRecorder
	clk := options.Clock
	forceDeleteWait := cmp.Or(options.ForceDeleteWaitTime, 15*time.Minute)
	keeper := options.keeper(cached, live)
	// The one list of the hub's controllers: first those that look after all kinds, then those of each scope.
	controllers := []setUp{
		{"membership", false, func() error {
			return membership.NewReconciler(cached, live, recorder("member-cluster-controller"), clk, membership.Options{
				UnhealthyThreshold: cmp.Or(options.UnhealthyThreshold, time.Minute), ForceDeleteWaitTime: forceDeleteWait, Outages: options.Outages,
				LocationLabels: options.LocationLabels, Leaves: keeper.MemberLeaves(),
			}).SetupWithManager(mgr)
		}},
		{"cluster profile", options.ProfileNamespace == "", func() error {
			return clusterprofile.NewReconciler(cached, recorder("cluster-profile-controller"), options.ProfileNamespace).SetupWithManager(mgr)
		}},
		{"placement decision", options.DecisionNamespace == "", func() error {
			return placementdecision.NewReconciler(cached, live, options.DecisionNamespace).SetupWithManager(mgr)
		}},
		{"resource watch", false, func() error { return resourcewatch.SetupWithManager(mgr, options.Temporal, clk, options.Filter) }},
		{"override", false, func() error { return addOverrides(mgr, cached, live, recorder("override-controller"), clk) }},
		{"eviction", options.EvictionTTL == 0, func() error {
			evictions := eviction.NewReconciler(cached, clk, options.EvictionTTL)
			evictions.BeforeEnd = keeper.EvictionEnds()
			return evictions.SetupWithManager(mgr)
		}},
		{"rollout hold", false, func() error {
			return brakes.NewHoldReconciler(cached, recorder("rollout-hold-controller"), clk, options.Exemptions).SetupWithManager(mgr)
		}},
		{"rollout window", false, func() error {
			return brakes.NewWindowReconciler(cached, recorder("rollout-window-controller"), clk).SetupWithManager(mgr)
		}},
		{"rollout exemption", false, func() error {
			return brakes.NewExemptionReconciler(cached, recorder("rollout-exemption-controller"), clk, options.Exemptions).SetupWithManager(mgr)
		}},
		{"stage analysis", options.Sources == nil, func() error {
			return stageanalysis.SetupWithManager(mgr, recorder("stage-analysis-controller"), options.Sources, options.Jobs, options.Reach, clk)
		}},
		{"rehearsal", options.Overrides == nil, func() error {
			return rehearsal.SetupWithManager(ctx, mgr, rehearsal.Options{
				Client: cached, Live: live, Works: options.Works, Overrides: options.Overrides, Events: recorder("rehearsal-controller"), Clock: clk,
			})
		}},
		{"records", keeper == nil, func() error { return records.SetupWithManager(ctx, mgr, keeper, recorder("audit-record-controller")) }},
		{"audit sink", keeper == nil || options.Calls == nil, func() error { return options.addSinks(mgr, keeper) }},
		{"telemetry", options.Registry == nil, func() error { return telemetry.SetupWithManager(mgr, options.Registry, clk) }},
	}
	auditor := &waker.Auditor{
		Temporal: options.Temporal, Log: mgr.GetLogger().WithName("audit"), Events: recorder("workflow-auditor"), Clock: clk,
		PokesPerSecond: options.AuditPokes,
	}
	for _, scope := range placementv1beta1.Scopes() {
		placements := placement.NewReconciler(cached, live, options.Temporal, recorder(placement.EventSource(scope)), clk)
		placements.Vocabulary = options.Vocabulary
		placements.Gates.Exemptions = options.Exemptions
		runs := options.runs(cached, keeper)
		auditor.Sources = append(auditor.Sources, placements.Needing, runs.Needing)
		controllers = append(controllers,
			setUp{"binding", false, func() error {
				return binding.NewReconciler(cached, live, options.Works, clk, binding.Options{
					ForceDeleteWaitTime: forceDeleteWait, Events: recorder(placement.EventSource(scope)), Catch: options.Catch,
				}).SetupWithManager(mgr, scope)
			}},
			setUp{"placement", false, func() error { return placements.SetupWithManager(mgr, scope) }},
			setUp{"staged update run", false, func() error { return runs.SetupWithManager(mgr, scope) }},
			setUp{"cluster watch", false, func() error { return clusterwatch.SetupWithManager(mgr, options.Temporal, clk, scope) }},
			setUp{"report back", false, func() error { return reportback.NewReconciler(cached, live).SetupWithManager(mgr, scope) }},
		)
	}
	if err := addAll(controllers); err != nil {
		return err
	}
	return mgr.Add(auditor)
}

// addOverrides registers the controllers of overrides.
func addOverrides(mgr ctrl.Manager, cached client.Client, live client.Reader, recorder events.EventRecorder, clk clock.PassiveClock) error {
	var failed error
	for _, r := range override.NewReconcilers(cached, live, recorder, clk) {
		failed = errors.Join(failed, r.SetupWithManager(mgr))
	}
	return failed
}

// keeper returns what writes records; nil if none are written.
func (o *Options) keeper(cached client.Client, live client.Reader) *records.Keeper {
	if o.Records == nil {
		return nil
	}
	return records.NewKeeper(cached, live, o.Clock, *o.Records)
}

// addSinks adds what delivers records to AuditSinks.
func (o *Options) addSinks(mgr ctrl.Manager, keeper *records.Keeper) error {
	if served, err := auditsink.IsServed(mgr.GetRESTMapper()); err != nil || !served {
		return err
	}
	engine := delivery.NewEngine(mgr.GetClient(), mgr.GetAPIReader(), delivery.HubSource{
		Config: mgr.GetConfig(), Live: mgr.GetAPIReader(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(),
	}, o.Clock, mgr.GetLogger().WithName("delivery"))
	keeper.Undelivered = engine.IsUndelivered
	sinks := auditsink.NewReconciler(mgr.GetClient(), o.Calls, engine, mgr.GetEventRecorder("audit-sink-controller"), o.Clock, o.AuditFiles)
	engine.Existing = sinks.Existing
	if err := sinks.SetupWithManager(mgr); err != nil {
		return err
	}
	teller := notification.NewTeller(mgr.GetClient(), notification.NewSender(o.Calls, o.Clock), engine, mgr.GetEventRecorder("notification-controller"), o.Clock)
	if err := teller.SetupWithManager(mgr); err != nil {
		return err
	}
	if o.Registry != nil {
		if err := errors.Join(o.Registry.Register(delivery.NewCollector(engine)), o.Registry.Register(keeper.Dropped)); err != nil {
			return fmt.Errorf("registering the metrics of deliveries: %w", err)
		}
	}
	return mgr.Add(teller.Before(engine))
}

// runs returns what looks after the runs of one scope.
func (o *Options) runs(cached client.Client, keeper *records.Keeper) *stagedupdate.Reconciler {
	runs := stagedupdate.New(cached, o.Temporal, o.Clock)
	runs.BeforeEnd = keeper.BeforeEnd()
	return runs
}

// addAll adds controllers to the manager.
func addAll(controllers []setUp) error {
	for _, controller := range controllers {
		if controller.off {
			continue
		}
		if err := controller.do(); err != nil {
			return fmt.Errorf("adding the %s controller: %w", controller.name, err)
		}
	}
	return nil
}

// setUp adds a controller to the manager, unless it is off.
type setUp struct {
	name string
	off  bool
	do   func() error
}
