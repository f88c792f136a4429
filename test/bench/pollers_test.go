//go:build bench

package bench

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	temporalclient "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"golang.org/x/sync/errgroup"

	"github.com/fleetflow/fleetflow/test/devfleet/controlplane"
)

const (
	// fixedPollers is what the product's workers have of each kind.
	fixedPollers = 10
	// burstSteps is how many steps each workflow of a burst has, one after the other.
	burstSteps = 12
	// idlePolls is for how long workers have nothing to do before a burst: longer than a long poll of Temporal.
	idlePolls = 75 * time.Second
)

// polled is what workers took with one way to poll.
type polled struct {
	// waited is for how long each step waited for a worker, by Temporal's clock.
	waited []time.Duration
	wall   time.Duration
	// busy and idle are seconds of CPU time, of Temporal and this process.
	busy, idle float64
}

// TestPollers compares a fixed number of polls for work, as the product's workers have, with the number that the SDK adapts to the work:
// by turns, each for a time without work, and then for many short workflows at once.
func TestPollers(t *testing.T) {
	ways := map[string]func(*worker.Options){
		"fixed": func(o *worker.Options) {
			o.MaxConcurrentWorkflowTaskPollers = fixedPollers
			o.MaxConcurrentActivityTaskPollers = fixedPollers
		},
		"adapted": func(o *worker.Options) {
			o.WorkflowTaskPollerBehavior = worker.NewPollerBehaviorAutoscaling(worker.PollerBehaviorAutoscalingOptions{})
			o.ActivityTaskPollerBehavior = worker.NewPollerBehaviorAutoscaling(worker.PollerBehaviorAutoscalingOptions{})
		},
	}
	sum := map[string]*polled{"fixed": {}, "adapted": {}}
	workflows := scaled(200, 20)
	for i, way := range []string{"fixed", "adapted", "adapted", "fixed", "fixed", "adapted"} {
		p := shared.poll(t, fmt.Sprintf("pollers-%d", i), workflows, ways[way])
		t.Logf("%s: %d steps in %s, of which half waited %s and one in 100 %s; CPU time %.2f s, and %.2f s in %s without work; load %s", way, len(p.waited),
			seconds(p.wall), milliseconds(percentile(p.waited, 0.5)), milliseconds(percentile(p.waited, 0.99)), p.busy, p.idle, idlePolls, load())
		s := sum[way]
		s.waited = append(s.waited, p.waited...)
		s.wall += p.wall
		s.busy += p.busy
		s.idle += p.idle
	}
	fixed, adapted := sum["fixed"], sum["adapted"]
	title := fmt.Sprintf("%d workflows of %d steps, polls adapted to the work", workflows, burstSteps)
	f := shared.figures
	f.add(t, title+": time of all against a fixed number", "-", quantity{adapted.wall.Seconds() / fixed.wall.Seconds(), "x"})
	f.add(t, title+": CPU time against a fixed number", "-", quantity{adapted.busy / fixed.busy, "x"})
	f.add(t, title+": CPU time without work against a fixed number", "-", quantity{adapted.idle / fixed.idle, "x"})
	for _, way := range []string{"fixed", "adapted"} {
		f.add(t, title+": p50 that a step waits for a worker, "+way, "-", milliseconds(percentile(sum[way].waited, 0.5)))
		f.add(t, title+": p99 that a step waits for a worker, "+way, "-", milliseconds(percentile(sum[way].waited, 0.99)))
	}
}

// poll has a worker of this process wait, and then take the steps of workflows.
func (f *fleet) poll(t *testing.T, queue string, workflows int, way func(*worker.Options)) *polled {
	t.Helper()
	p := &polled{}
	options := worker.Options{DisableEagerActivities: true} // each step is polled for
	way(&options)
	w := worker.New(f.Temporal, queue, options)
	var mu sync.Mutex
	w.RegisterActivityWithOptions(func(ctx context.Context) error {
		info := activity.GetInfo(ctx)
		mu.Lock()
		defer mu.Unlock()
		p.waited = append(p.waited, info.StartedTime.Sub(info.ScheduledTime))
		return nil
	}, activity.RegisterOptions{Name: queue})
	w.RegisterWorkflowWithOptions(func(ctx workflow.Context) error {
		ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: time.Minute})
		for range burstSteps {
			if err := workflow.ExecuteActivity(ctx, queue).Get(ctx, nil); err != nil {
				return err
			}
		}
		return nil
	}, workflow.RegisterOptions{Name: queue})
	require.NoError(t, w.Start())
	defer w.Stop()

	before := f.pollTime(t)
	pause(idlePolls) // that nothing happens cannot be waited for
	p.idle = f.pollTime(t) - before

	before = f.pollTime(t)
	began := time.Now()
	var all errgroup.Group
	for _, name := range named(queue, workflows) {
		all.Go(func() error {
			run, err := f.Temporal.ExecuteWorkflow(t.Context(), temporalclient.StartWorkflowOptions{ID: name, TaskQueue: queue}, queue)
			if err != nil {
				return err
			}
			return run.Get(t.Context(), nil)
		})
	}
	require.NoError(t, all.Wait())
	p.wall = time.Since(began)
	p.busy = f.pollTime(t) - before
	return p
}

// pollTime is the CPU time that Temporal and this process have had.
func (f *fleet) pollTime(t *testing.T) float64 {
	t.Helper()
	return cpuTime(t, os.Getpid()) + cpuTime(t, f.component(t, controlplane.Temporal).PID)
}
