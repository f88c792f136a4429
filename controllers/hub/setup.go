// Package hub registers the hub's controllers with a manager: those that
// project state (Works to bindings to placements, members' reports to members)
// and those that wake workflows.
package hub

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/fleetflow/fleetflow/activities/safetycatch"
	"github.com/fleetflow/fleetflow/activities/snapshot"
	"github.com/fleetflow/fleetflow/activities/worksync"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/controllers/hub/binding"
	"github.com/fleetflow/fleetflow/controllers/hub/clusterprofile"
	"github.com/fleetflow/fleetflow/controllers/hub/clusterwatch"
	"github.com/fleetflow/fleetflow/controllers/hub/eviction"
	"github.com/fleetflow/fleetflow/controllers/hub/fieldindex"
	"github.com/fleetflow/fleetflow/controllers/hub/membership"
	"github.com/fleetflow/fleetflow/controllers/hub/override"
	"github.com/fleetflow/fleetflow/controllers/hub/placement"
	"github.com/fleetflow/fleetflow/controllers/hub/reportback"
	"github.com/fleetflow/fleetflow/controllers/hub/resourcewatch"
	"github.com/fleetflow/fleetflow/controllers/hub/stagedupdate"
	"github.com/fleetflow/fleetflow/controllers/hub/telemetry"
	"github.com/fleetflow/fleetflow/controllers/hub/waker"
)

// Defaults of Options.
const (
	// DefaultUnhealthyThreshold is how long a member's reports may stay away.
	DefaultUnhealthyThreshold = 60 * time.Second
	// DefaultForceDeleteWaitTime is how long a leaving member's agent may take.
	DefaultForceDeleteWaitTime = 15 * time.Minute
)

// Options are what the hub's controllers need beside a manager.
type Options struct {
	// UnhealthyThreshold and ForceDeleteWaitTime are described at membership.Options;
	// 0 is the default.
	UnhealthyThreshold  time.Duration
	ForceDeleteWaitTime time.Duration
	// ProfileNamespace is where members have ClusterProfiles; empty if they have none.
	ProfileNamespace string
	// Temporal is where workflows are woken.
	Temporal waker.Temporal
	// EvictionTTL is after how long executed evictions are deleted; 0 keeps them.
	EvictionTTL time.Duration
	// Filter is what the operator keeps from being placed.
	Filter snapshot.Filter
	// Works is the writer of Works, which the workers of this process share.
	Works *worksync.Syncer
	// Catch holds removals of bindings that nothing explains; with nil none is held.
	Catch *safetycatch.Catch
	// Registry takes the metrics of the hub's objects; there are none without it.
	Registry prometheus.Registerer
	// Clock is the real one unless a test says otherwise.
	Clock clock.PassiveClock
}

// clusterScoped has the controllers look after the cluster-scoped kinds; their twins in namespaces have none yet.
var clusterScoped = placementv1beta1.Scope{}

// controllers is the one list of the hub's controllers. Each entry registers one with the manager; those whose
// objects have workflows return the source for the audit.
var controllers = []struct {
	name string
	add  func(ctrl.Manager, Options) (waker.Source, error)
}{
	{"membership", addMembership},
	{"cluster profile", addClusterProfile},
	{"binding", addBinding},
	{"placement", addPlacement},
	{"staged update run", addStagedUpdate},
	{"resource watch", addResourceWatch},
	{"cluster watch", addClusterWatch},
	{"override", addOverride},
	{"report back", addReportBack},
	{"eviction", addEviction},
	{"telemetry", addTelemetry},
}

// Setup registers the cache's indexes and every controller with a manager whose
// cache was made with CacheOptions.
func Setup(ctx context.Context, mgr ctrl.Manager, options Options) error {
	if err := fieldindex.Setup(ctx, mgr.GetFieldIndexer()); err != nil {
		return err
	}
	options = withDefaults(options)
	var sources []waker.Source
	for _, controller := range controllers {
		source, err := controller.add(mgr, options)
		if err != nil {
			return fmt.Errorf("adding the %s controller: %w", controller.name, err)
		}
		if source != nil {
			sources = append(sources, source)
		}
	}
	return mgr.Add(&waker.Auditor{
		Temporal: options.Temporal, Sources: sources,
		Log: mgr.GetLogger().WithName("audit"),
	})
}

func withDefaults(options Options) Options {
	if options.Clock == nil {
		options.Clock = clock.RealClock{}
	}
	if options.UnhealthyThreshold == 0 {
		options.UnhealthyThreshold = DefaultUnhealthyThreshold
	}
	if options.ForceDeleteWaitTime == 0 {
		options.ForceDeleteWaitTime = DefaultForceDeleteWaitTime
	}
	return options
}

func addMembership(mgr ctrl.Manager, options Options) (waker.Source, error) {
	return nil, membership.NewReconciler(mgr.GetClient(), mgr.GetAPIReader(), mgr.GetEventRecorder("member-cluster-controller"), options.Clock,
		membership.Options{UnhealthyThreshold: options.UnhealthyThreshold, ForceDeleteWaitTime: options.ForceDeleteWaitTime},
	).SetupWithManager(mgr)
}

func addClusterProfile(mgr ctrl.Manager, options Options) (waker.Source, error) {
	if options.ProfileNamespace == "" {
		return nil, nil
	}
	return nil, clusterprofile.NewReconciler(mgr.GetClient(), mgr.GetEventRecorder("cluster-profile-controller"), options.ProfileNamespace).SetupWithManager(mgr)
}

func addBinding(mgr ctrl.Manager, options Options) (waker.Source, error) {
	return nil, binding.NewReconciler(mgr.GetClient(), mgr.GetAPIReader(), options.Works, options.Clock, binding.Options{
		ForceDeleteWaitTime: options.ForceDeleteWaitTime, Events: mgr.GetEventRecorder(placement.EventSource), Catch: options.Catch,
	}).SetupWithManager(mgr, clusterScoped)
}

func addPlacement(mgr ctrl.Manager, options Options) (waker.Source, error) {
	r := placement.NewReconciler(mgr.GetClient(), mgr.GetAPIReader(), options.Temporal,
		mgr.GetEventRecorder(placement.EventSource), options.Clock)
	return r.Needing, r.SetupWithManager(mgr, clusterScoped)
}

func addStagedUpdate(mgr ctrl.Manager, options Options) (waker.Source, error) {
	r := stagedupdate.New(mgr.GetClient(), options.Temporal, options.Clock)
	return r.Needing, r.SetupWithManager(mgr, clusterScoped)
}

func addEviction(mgr ctrl.Manager, options Options) (waker.Source, error) {
	if options.EvictionTTL == 0 {
		return nil, nil
	}
	return nil, eviction.NewReconciler(mgr.GetClient(), options.Clock, options.EvictionTTL).SetupWithManager(mgr)
}

func addResourceWatch(mgr ctrl.Manager, options Options) (waker.Source, error) {
	return nil, resourcewatch.SetupWithManager(mgr, options.Temporal, options.Filter, clusterScoped)
}

func addClusterWatch(mgr ctrl.Manager, options Options) (waker.Source, error) {
	return nil, clusterwatch.SetupWithManager(mgr, options.Temporal, clusterScoped)
}

func addOverride(mgr ctrl.Manager, options Options) (waker.Source, error) {
	for _, r := range override.NewReconcilers(mgr.GetClient(), mgr.GetAPIReader(), mgr.GetEventRecorder("override-controller"), options.Clock) {
		if err := r.SetupWithManager(mgr); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

func addReportBack(mgr ctrl.Manager, _ Options) (waker.Source, error) {
	return nil, reportback.NewReconciler(mgr.GetClient(), mgr.GetAPIReader()).SetupWithManager(mgr, clusterScoped)
}

func addTelemetry(mgr ctrl.Manager, options Options) (waker.Source, error) {
	if options.Registry == nil {
		return nil, nil
	}
	return nil, telemetry.SetupWithManager(mgr, options.Registry, options.Clock)
}
