package main

import (
	"context"
	"fmt"
	"os"

	"github.com/go-logr/logr"
	temporallog "go.temporal.io/sdk/log"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/fleetflow/fleetflow/activities/clusterupdate"
	"github.com/fleetflow/fleetflow/activities/placement"
	"github.com/fleetflow/fleetflow/activities/stagedupdate"
	"github.com/fleetflow/fleetflow/activities/works"
	"github.com/fleetflow/fleetflow/controllers/hub/engine"
	"github.com/fleetflow/fleetflow/worker"
)

// newEngine connects to Temporal, lazily.
func newEngine(o *options, log logr.Logger) (*engine.Engine, error) {
	host, err := os.Hostname()
	if err != nil {
		host = "hub-agent"
	}
	e, err := engine.New(engine.Options{
		Address: o.temporal.address, Namespace: o.temporal.namespace, Security: o.temporal.security,
		Identity: fmt.Sprintf("hub-agent@%s/%d", host, os.Getpid()),
		Logger:   temporallog.NewStructuredLogger(slogOf(log.WithName("temporal"))),
	})
	if err != nil {
		return nil, err
	}
	e.Ensure = func(ctx context.Context) error { return worker.Ensure(ctx, e.Client, o.temporal.namespace) }
	return e, nil
}

// addWorker adds the Temporal workers, with their activities, to the manager.
func addWorker(ctx context.Context, mgr ctrl.Manager, e *engine.Engine, syncer *works.Syncer, o *options, log logr.Logger) error {
	activities, err := newActivities(mgr, e, syncer, o)
	if err != nil {
		return err
	}
	notifier := activities.UpdateRun.Notifier
	if err := notifier.Watch(ctx, mgr.GetCache()); err != nil {
		return err
	}
	return mgr.Add(&worker.Runner{Client: e.Client, Namespace: o.temporal.namespace, Activities: activities, Log: log.WithName("worker")})
}

// newActivities puts the activities together.
func newActivities(mgr ctrl.Manager, e *engine.Engine, syncer *works.Syncer, o *options) (worker.Activities, error) {
	cached, live, clk := mgr.GetClient(), mgr.GetAPIReader(), clock.RealClock{}
	selector, err := placement.NewSelector(mgr.GetConfig(), cached, live, clk, o.filter, o.pace)
	if err != nil {
		return worker.Activities{}, fmt.Errorf("preparing the selection of resources: %w", err)
	}
	notifier := clusterupdate.NewNotifier()
	return worker.Activities{
		Placement: placement.NewActivities(cached, live, selector, clk),
		Rolling:   &placement.Rolling{Client: cached, Live: live, Works: syncer, Notifier: notifier, Clock: clk, Events: mgr.GetEventRecorder("placement-eviction-controller")},
		UpdateRun: &stagedupdate.Activities{
			Client: cached, Live: live, Works: syncer, Snapshots: selector, Notifier: notifier, Clock: clk,
			Events:     mgr.GetEventRecorder("staged-update-run"),
			Identities: &worker.Identities{Client: e.Client, Namespace: o.temporal.namespace},
		},
	}, nil
}
