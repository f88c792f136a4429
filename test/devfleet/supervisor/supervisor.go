// Package supervisor owns the processes of the local fleet: it starts each when what it needs is ready, probes it,
// starts it again when it ends by itself, and ends all of them in reverse order. Each component is an actor with one
// goroutine; requests reach it as messages.
package supervisor

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/fleetflow/fleetflow/test/devfleet/control"
)

// Spec describes a component.
type Spec struct {
	// Name is how people and the control protocol call it, such as "hub/apiserver".
	Name string
	// Command is the program and its arguments.
	Command []string
	// Env is added to the supervisor's own environment.
	Env []string
	// LogFile receives the output.
	LogFile string
	// Needs are the components that must be ready before it starts, and that outlive it at the end.
	Needs []string
	// Ports must be free before it starts.
	Ports []int
	// Probe says whether it is ready; without one, a running process is.
	Probe func(ctx context.Context) error
	// Pause is how long to wait before starting it again after it ended by itself. With zero the pause grows from
	// one second to half a minute.
	Pause time.Duration
	// Held components stay stopped until they are started by request.
	Held bool
	// Data are the files (with any suffix) and folders that a wipe deletes.
	Data []string
}

// grace is how long a process has between SIGTERM and SIGKILL.
const grace = 5 * time.Second

// Supervisor runs a set of components.
type Supervisor struct {
	members    int
	started    time.Time
	components []*component
	launcher   *launcher
	grace      time.Duration

	mu      sync.Mutex
	changed chan struct{} // closed and replaced at every change of a component
}

// New prepares a supervisor; Run starts it. The number of members is only passed on in the status.
func New(members int, specs []Spec) (*Supervisor, error) {
	s := &Supervisor{members: members, started: time.Now(), launcher: newLauncher(), grace: grace, changed: make(chan struct{})}
	for _, spec := range specs {
		if s.find(spec.Name) != nil {
			return nil, fmt.Errorf("component %s is listed twice", spec.Name)
		}
		for _, need := range spec.Needs {
			if s.find(need) == nil {
				return nil, fmt.Errorf("component %s needs %s, which is not listed before it", spec.Name, need)
			}
		}
		s.components = append(s.components, newComponent(s, spec))
	}
	return s, nil
}

// Run starts all components that are not held and returns when the context ends and every process is gone.
func (s *Supervisor) Run(ctx context.Context) {
	var actors sync.WaitGroup
	for _, c := range s.components {
		actors.Go(func() { c.live(ctx) })
	}
	actors.Wait()
	s.launcher.close()
}

// Do carries out a request and waits for its effect: gone for stop and kill, ready for the others.
func (s *Supervisor) Do(ctx context.Context, asked control.Request) error {
	c := s.find(asked.Component)
	if c == nil {
		return unknown(asked.Component)
	}
	if err := c.ask(ctx, asked.Verb); err != nil {
		return err
	}
	if asked.NoWait || asked.Verb == control.Stop || asked.Verb == control.Kill {
		return nil
	}
	return s.WaitReady(ctx, asked.Component)
}

func unknown(component string) error {
	return fmt.Errorf("no component %q; `devfleet status` lists them", component)
}

// WaitReady returns when the component is ready. It fails at once for a stopped component: waiting would not end.
func (s *Supervisor) WaitReady(ctx context.Context, name string) error {
	c := s.find(name)
	if c == nil {
		return unknown(name)
	}
	for {
		s.mu.Lock()
		view := c.view
		changed := s.changed
		s.mu.Unlock()
		switch view.State {
		case control.Ready:
			return nil
		case control.Stopped:
			return fmt.Errorf("%s is stopped", name)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("%s is %s (%s): %w", name, view.State, view.Reason, ctx.Err())
		}
	}
}

// Status returns the state of all components.
func (s *Supervisor) Status() control.Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	status := control.Status{PID: os.Getpid(), Started: s.started, Members: s.members}
	for _, c := range s.components {
		view := c.view
		view.Memory = residentMemory(view.PID)
		status.Components = append(status.Components, view)
	}
	return status
}

func (s *Supervisor) find(name string) *component {
	i := slices.IndexFunc(s.components, func(c *component) bool { return c.spec.Name == name })
	if i < 0 {
		return nil
	}
	return s.components[i]
}

// update changes what is shown of a component and wakes the goroutines that wait for a change.
func (s *Supervisor) update(c *component, change func(view *control.Component)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&c.view)
	close(s.changed)
	s.changed = make(chan struct{})
}

// unready returns the first of the given components that is not ready, and a channel closed at the next change.
func (s *Supervisor) unready(names []string) (string, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range names {
		if s.find(name).view.State != control.Ready {
			return name, s.changed
		}
	}
	return "", s.changed
}

// dependents returns the components that need the given one.
func (s *Supervisor) dependents(name string) []*component {
	var found []*component
	for _, c := range s.components {
		if slices.Contains(c.spec.Needs, name) {
			found = append(found, c)
		}
	}
	return found
}
