package worker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/worker"

	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// Options of the workers: enough pollers that no task waits for one, enough
// slots that no waiting activity keeps another from running, and time to hand
// tasks over when the process ends.
const (
	pollers      = 10
	waitingSlots = 10000
	// An endpoint that hangs takes one of these slots, and none of those of clusters.
	measuringSlots = 256
	// Of selections 16 go on at the same time, and of schedules 4 hold a copy of the fleet: what waits for those in the process is bounded
	// by this, so that it is done within its time, and the rest waits in Temporal.
	longSlots   = 64
	stopTimeout = 10 * time.Second
	// After a crash, tasks meant for the dead process wait this long before another process may
	// take them. The default of 5 s would prolong every gate that opens in that time; a much
	// shorter timeout would replay histories on a busy worker.
	stickyTimeout = 2 * time.Second
	minRetryDelay = 500 * time.Millisecond
	maxRetryDelay = 5 * time.Second
	setUpTimeout  = 10 * time.Second
)

// Runner keeps the workers of this process running: it waits for Temporal to be reachable and
// starts the workers again when one gives up. Where Temporal is shared, it runs on every replica, leader or not.
type Runner struct {
	Client     client.Client
	Namespace  string
	Activities Activities
	Log        logr.Logger
	// Metrics are optional.
	Metrics *Metrics
	// Build names that of this process, if Temporal is to give tasks to one build only; empty if it is not.
	Build string
	// LeaderOnly says that only the replica that leads works: each has a Temporal of its own.
	LeaderOnly bool
	// Before, if set, is called before workers start.
	Before func(context.Context) error
	// Ready, if set, is called each time the workers have started.
	Ready func()
	// NeedsSenders says that only approvals count whose sender Temporal names. Whether it does is then found out at each start.
	NeedsSenders bool
	// SendersUnnamed, if set, is told when it does not.
	SendersUnnamed func(message string)
	// Tell, if set, tells an object that an activity for it keeps failing, and that it has succeeded then.
	Tell func(object wf.Ref, good bool, message string)

	running atomic.Bool
}

// Check returns an error if the workers are not running.
func (r *Runner) Check() error {
	if !r.running.Load() {
		return errors.New("the Temporal workers are not running; the log says why")
	}
	return nil
}

// NeedLeaderElection reports whether only the replica that leads works.
func (r *Runner) NeedLeaderElection() bool { return r.LeaderOnly }

// Start runs until the context ends.
func (r *Runner) Start(ctx context.Context) error {
	wait := minRetryDelay
	for {
		began := time.Now()
		err := r.runWorkers(ctx)
		if ctx.Err() != nil {
			return nil //nolint:nilerr // the runner ends without an error when its context ends
		}
		if time.Since(began) > maxRetryDelay {
			wait = minRetryDelay
		}
		r.Log.Info("Temporal workers are not running; trying again", "after", wait.String(), "cause", fmt.Sprint(err))
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return nil
		}
		wait = min(2*wait, maxRetryDelay)
	}
}

// prepare makes sure of what workers need of Temporal.
func (r *Runner) prepare(ctx context.Context) error {
	if err := Ensure(ctx, r.Client, r.Namespace); err != nil {
		return err
	}
	if r.Build != "" {
		if err := checkBuilds(ctx, r.Client); err != nil {
			return err
		}
	}
	if r.Before == nil {
		return nil
	}
	return r.Before(ctx)
}

// runWorkers starts the workers and returns when one fails or the context ends.
func (r *Runner) runWorkers(ctx context.Context) error {
	if err := r.prepare(ctx); err != nil {
		return err
	}
	fatal := make(chan error, 4)
	onFatal := func(err error) {
		select {
		case fatal <- err:
		default:
		}
	}
	metrics := r.Metrics
	if metrics == nil {
		metrics = NewMetrics()
	}
	failures := Failures{Log: r.Log, Metrics: metrics, Tell: r.Tell}
	options := Options(r.Client, failures, 0)
	options.DeploymentOptions = deploymentOptions(r.Build)
	options.OnFatalError = onFatal
	options.MaxConcurrentWorkflowTaskPollers = pollers
	options.StickyScheduleToStartTimeout = stickyTimeout
	main := worker.New(r.Client, wf.TaskQueue, options)
	RegisterWorkflows(main)
	RegisterShort(main, r.Activities)
	running := []worker.Worker{main}
	defer func() { stopWorkers(running...) }()
	if err := main.Start(); err != nil {
		running = nil
		return fmt.Errorf("starting the worker of queue %s: %w", wf.TaskQueue, err)
	}
	for _, of := range []struct {
		queue    string
		slots    int
		register func(worker.ActivityRegistry, Activities)
	}{
		{wf.LongTaskQueue, longSlots, RegisterLong}, {wf.AdvanceTaskQueue, waitingSlots, RegisterWaiting},
		{wf.MeasureTaskQueue, measuringSlots, RegisterMeasuring},
	} {
		options := Options(r.Client, failures, of.slots)
		options.DeploymentOptions = deploymentOptions(r.Build)
		options.OnFatalError = onFatal
		options.DisableWorkflowWorker = true
		w := worker.New(r.Client, of.queue, options)
		of.register(w, r.Activities)
		if err := w.Start(); err != nil {
			return fmt.Errorf("starting the worker of queue %s: %w", of.queue, err)
		}
		running = append(running, w)
	}
	r.Log.Info("Temporal workers are running", "temporalNamespace", r.Namespace)
	r.running.Store(true)
	metrics.running.Set(1)
	defer func() {
		r.running.Store(false)
		metrics.running.Set(0)
	}()
	if r.Ready != nil {
		r.Ready()
	}
	if r.NeedsSenders {
		asking, stop := context.WithCancel(ctx)
		var asked sync.WaitGroup
		asked.Go(func() { r.reportSenders(asking, metrics) })
		defer asked.Wait()
		defer stop()
	}
	select {
	case err := <-fatal:
		return err
	case <-ctx.Done():
		return nil
	}
}

// Options returns those that all workers share, with so many slots for activities; 0 stands for the SDK's number.
func Options(c client.Client, failures Failures, slots int) worker.Options {
	return worker.Options{
		MaxConcurrentActivityExecutionSize: slots,
		MaxConcurrentActivityTaskPollers:   pollers,
		WorkerStopTimeout:                  stopTimeout,
		Interceptors: []interceptor.WorkerInterceptor{
			&meter{metrics: failures.Metrics}, &guard{failures: failures, client: c}, &callerCheck{log: failures.Log},
		},
	}
}

// stopWorkers stops workers in parallel: each may take until its stop timeout.
func stopWorkers(workers ...worker.Worker) {
	var g sync.WaitGroup
	for _, w := range workers {
		g.Go(w.Stop)
	}
	g.Wait()
}
