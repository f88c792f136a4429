package supervisor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/fleetflow/fleetflow/test/devfleet/control"
	"github.com/fleetflow/fleetflow/test/devfleet/state"
)

const (
	// probeEvery is short: the fleet's start is a chain of components that wait for each other.
	probeEvery = 50 * time.Millisecond
	// probeTimeout is generous: all control planes start at once on few cores.
	probeTimeout = 5 * time.Second
	// steadyAfter is how long a process has to run before its next end counts as a first one.
	steadyAfter  = time.Minute
	longestPause = 30 * time.Second
)

// request is a message to a component's actor; done receives exactly one answer.
type request struct {
	verb control.Verb
	done chan error
}

// component is one actor. Everything but view is touched by its own goroutine only.
type component struct {
	owner    *Supervisor
	spec     Spec
	requests chan request
	gone     chan struct{} // closed when the actor has ended, and its process with it

	wanted   bool
	failures int // ends by itself in a row, for the growing pause

	view control.Component // guarded by owner.mu
}

func newComponent(owner *Supervisor, spec Spec) *component {
	first := control.Waiting
	if spec.Held {
		first = control.Stopped
	}
	return &component{
		owner: owner, spec: spec, wanted: !spec.Held,
		requests: make(chan request), gone: make(chan struct{}),
		view: control.Component{Name: spec.Name, State: first, LogFile: spec.LogFile},
	}
}

// ask hands a request to the actor and returns its answer.
func (c *component) ask(ctx context.Context, verb control.Verb) error {
	r := request{verb: verb, done: make(chan error, 1)}
	select {
	case c.requests <- r:
	case <-c.gone:
		return errors.New("the fleet is going down")
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case err := <-r.done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// live is the actor: from one phase to the next until the context ends.
func (c *component) live(ctx context.Context) {
	defer close(c.gone)
	for ctx.Err() == nil {
		if !c.wanted {
			c.rest(ctx)
			continue
		}
		if !c.awaitTurn(ctx) {
			continue
		}
		c.runOnce(ctx)
	}
}

// rest waits, stopped, for a request.
func (c *component) rest(ctx context.Context) {
	c.show(control.Stopped, "")
	select {
	case <-ctx.Done():
	case r := <-c.requests:
		r.done <- c.decide(r.verb)
	}
}

// decide takes a request while no process runs.
func (c *component) decide(verb control.Verb) error {
	switch verb {
	case control.Stop:
		c.wanted = false
		c.show(control.Stopped, "")
		return nil
	case control.Kill:
		return fmt.Errorf("%s has no process to kill", c.spec.Name)
	case control.Wipe:
		if err := c.deleteData(); err != nil {
			return err
		}
	}
	c.wanted = true
	// The caller now waits for readiness: the component must not look stopped any more.
	c.show(control.Waiting, "")
	return nil
}

// awaitTurn waits until everything needed is ready and the ports are free. It returns false when a request or the end
// of the context came in between.
func (c *component) awaitTurn(ctx context.Context) bool {
	for {
		need, changed := c.owner.unready(c.spec.Needs)
		var recheck <-chan time.Time
		if need != "" {
			c.show(control.Waiting, "needs "+need)
		} else {
			busy := c.busyPort()
			if busy == 0 {
				return true
			}
			c.show(control.Waiting, fmt.Sprintf("port %d is in use by another process", busy))
			// Nothing tells when a port becomes free.
			recheck = time.After(probeEvery)
		}
		select {
		case <-ctx.Done():
			return false
		case r := <-c.requests:
			r.done <- c.decide(r.verb)
			return false
		case <-changed:
		case <-recheck:
		}
	}
}

func (c *component) busyPort() int {
	for _, port := range c.spec.Ports {
		if !state.PortIsFree(port) {
			return port
		}
	}
	return 0
}

// runOnce starts the process and stays with it until it is gone; afterwards it pauses if it ended by itself.
func (c *component) runOnce(ctx context.Context) {
	p, err := c.owner.launcher.start(c.spec)
	if err != nil {
		c.pause(ctx, err)
		return
	}
	started := time.Now()
	c.owner.update(c, func(v *control.Component) {
		v.State = control.Starting
		v.PID = p.pid
		v.Started = started
		v.Reason = "no answer to its readiness probe yet"
	})
	outcome := c.accompany(ctx, p)
	c.owner.update(c, func(v *control.Component) {
		v.PID = 0
		v.Started = time.Time{}
	})
	if outcome == nil {
		return
	}
	if time.Since(started) > steadyAfter {
		c.failures = 0
	}
	c.owner.update(c, func(v *control.Component) { v.Restarts++ })
	c.pause(ctx, outcome)
}

// accompany follows a running process. It returns nil after an end that was asked for, else how the process ended.
func (c *component) accompany(ctx context.Context, p *process) error {
	probing, stopProbing := context.WithCancel(ctx)
	defer stopProbing()
	ready := make(chan struct{})
	go c.probe(probing, ready)
	var killed []request
	for {
		select {
		case <-ready:
			ready = nil
			c.show(control.Ready, "")
		case <-p.exited:
			outcome := p.outcome()
			// Shown before the answer: a caller that killed it and then waits for it must not find it ready.
			c.show(control.BackOff, outcome.Error())
			answer(killed)
			return outcome
		case <-ctx.Done():
			c.endLast(p)
			answer(killed)
			return nil
		case r := <-c.requests:
			switch r.verb {
			case control.Start:
				r.done <- nil
			case control.Kill:
				p.kill()
				killed = append(killed, r)
			default:
				p.end(c.owner.grace)
				answer(killed)
				r.done <- c.decide(r.verb)
				return nil
			}
		}
	}
}

// answer tells those who asked for a kill that the process is gone.
func answer(killed []request) {
	for _, r := range killed {
		r.done <- nil
	}
}

// endLast ends the process after those of all components that need this one.
func (c *component) endLast(p *process) {
	for _, dependent := range c.owner.dependents(c.spec.Name) {
		<-dependent.gone
	}
	p.end(c.owner.grace)
}

// probe closes ready at the first success.
func (c *component) probe(ctx context.Context, ready chan<- struct{}) {
	for ctx.Err() == nil {
		if c.spec.Probe == nil || c.probeOnce(ctx) == nil {
			close(ready)
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(probeEvery):
		}
	}
}

func (c *component) probeOnce(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	return c.spec.Probe(ctx)
}

// pause waits before the next start, unless a request comes first.
func (c *component) pause(ctx context.Context, cause error) {
	c.failures++
	c.show(control.BackOff, cause.Error())
	select {
	case <-ctx.Done():
	case <-time.After(pauseAfter(c.failures, c.spec.Pause)):
	case r := <-c.requests:
		r.done <- c.decide(r.verb)
	}
}

// pauseAfter returns the pause before the start that follows so many failures in a row: the fixed one, or one second
// doubled each time up to the longest.
func pauseAfter(failures int, fixed time.Duration) time.Duration {
	if fixed > 0 {
		return fixed
	}
	pause := time.Second
	for range failures - 1 {
		if pause *= 2; pause >= longestPause {
			return longestPause
		}
	}
	return pause
}

func (c *component) deleteData() error {
	if len(c.spec.Data) == 0 {
		return fmt.Errorf("%s has no data that could be wiped", c.spec.Name)
	}
	for _, path := range c.spec.Data {
		// A database has companions: a write-ahead log and an index, named by suffixes.
		matches, err := filepath.Glob(path + "*")
		if err != nil {
			return fmt.Errorf("looking for the data of %s: %w", c.spec.Name, err)
		}
		for _, match := range matches {
			if err := os.RemoveAll(match); err != nil {
				return fmt.Errorf("deleting the data of %s: %w", c.spec.Name, err)
			}
		}
	}
	return nil
}

// show shows a state if it differs: every update wakes all waiting components, which must not wake each other without
// end.
func (c *component) show(state control.State, reason string) {
	c.owner.mu.Lock()
	same := c.view.State == state && c.view.Reason == reason
	c.owner.mu.Unlock()
	if !same {
		c.owner.update(c, func(v *control.Component) {
			v.State = state
			v.Reason = reason
		})
	}
}
