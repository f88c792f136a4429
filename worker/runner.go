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

// Options of the workers (design §3, operating parameters): enough pollers that
// no task waits for one, enough slots that no waiting activity keeps another
// from running, and time to hand work over when the process ends.
const (
	pollers     = 10
	waitSlots   = 10000
	stopTimeout = 10 * time.Second
	// After a crash, what was meant for the dead process waits this long before
	// another one may take it. The default of 5 s would prolong every gate that
	// opens in that time; much less would replay histories on a busy worker.
	stickyTimeout = 2 * time.Second
	retryStart    = 500 * time.Millisecond
	retryAtMost   = 5 * time.Second
	setUpTimeout  = 10 * time.Second
)

// Runner keeps the workers of this process running, whatever becomes of
// Temporal: it waits for it to appear and starts again when a worker gives up.
// It runs on every replica, leader or not.
type Runner struct {
	Client     client.Client
	Namespace  string
	Activities Activities
	Log        logr.Logger
	// Metrics, if set, are reported to.
	Metrics *Metrics
	// Ready, if set, is called each time the workers are up.
	Ready func()

	running atomic.Bool
}

// Check says why the workers do not work, if they do not.
func (r *Runner) Check() error {
	if !r.running.Load() {
		return errors.New("the Temporal workers are not running; the log says why")
	}
	return nil
}

// NeedLeaderElection lets every replica work.
func (r *Runner) NeedLeaderElection() bool { return false }

// Start runs until the context ends.
func (r *Runner) Start(ctx context.Context) error {
	wait := retryStart
	for {
		began := time.Now()
		err := r.serve(ctx)
		if ctx.Err() != nil {
			return nil //nolint:nilerr // that is how it ends
		}
		if time.Since(began) > retryAtMost {
			wait = retryStart
		}
		r.Log.Info("Temporal workers are not running; trying again", "after", wait.String(), "cause", fmt.Sprint(err))
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return nil
		}
		wait = min(2*wait, retryAtMost)
	}
}

// serve runs the workers once.
func (r *Runner) serve(ctx context.Context) error {
	if err := Ensure(ctx, r.Client, r.Namespace); err != nil {
		return err
	}
	fatal := make(chan error, 2)
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
	main := worker.New(r.Client, wf.TaskQueue, worker.Options{
		MaxConcurrentWorkflowTaskPollers: pollers,
		MaxConcurrentActivityTaskPollers: pollers,
		StickyScheduleToStartTimeout:     stickyTimeout,
		WorkerStopTimeout:                stopTimeout,
		OnFatalError:                     onFatal,
		Interceptors:                     []interceptor.WorkerInterceptor{&meter{metrics: metrics}, &guard{log: r.Log}},
	})
	RegisterWorkflows(main)
	RegisterShort(main, r.Activities)
	waiting := worker.New(r.Client, wf.AdvanceTaskQueue, worker.Options{
		DisableWorkflowWorker:              true,
		MaxConcurrentActivityExecutionSize: waitSlots,
		MaxConcurrentActivityTaskPollers:   pollers,
		WorkerStopTimeout:                  stopTimeout,
		OnFatalError:                       onFatal,
		Interceptors:                       []interceptor.WorkerInterceptor{&guard{log: r.Log}},
	})
	RegisterWaiting(waiting, r.Activities)
	if err := main.Start(); err != nil {
		return fmt.Errorf("starting the worker of queue %s: %w", wf.TaskQueue, err)
	}
	if err := waiting.Start(); err != nil {
		main.Stop()
		return fmt.Errorf("starting the worker of queue %s: %w", wf.AdvanceTaskQueue, err)
	}
	defer stop(main, waiting)
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
	select {
	case err := <-fatal:
		return err
	case <-ctx.Done():
		return nil
	}
}

// stop ends workers at the same time: each may take until its stop timeout.
func stop(workers ...worker.Worker) {
	var g sync.WaitGroup
	for _, w := range workers {
		g.Go(w.Stop)
	}
	g.Wait()
}
