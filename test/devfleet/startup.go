package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/fleetflow/fleetflow/test/devfleet/control"
	"github.com/fleetflow/fleetflow/test/devfleet/controlplane"
	"github.com/fleetflow/fleetflow/test/devfleet/progress"
	"github.com/fleetflow/fleetflow/test/devfleet/state"
)

const (
	// All control planes start at once, so on a slow machine the last one takes long.
	clusterTimeout = 2 * time.Minute
	agentTimeout   = time.Minute
	joinTimeout    = time.Minute
	// watchEvery is how often the supervisor is asked while something starts.
	watchEvery = 50 * time.Millisecond
	// crashLimit is how often a component may end by itself before waiting for it is given up.
	crashLimit = 3
	logLines   = 20
)

// startup takes a supervised fleet from started to joined.
type startup struct {
	fleet   *state.Fleet
	client  *control.Client
	root    string
	display *progress.Display
	// bare leaves the clusters without what the agents need.
	bare bool
}

// run waits for the clusters and Temporal, sets the clusters up, starts the agents and waits for all members to join.
// The names of changed binaries say which running agents to restart.
func (s *startup) run(ctx context.Context, changed []string, withAgents bool) error {
	if err := s.release(ctx, s.platform(), func(string) bool { return false }); err != nil {
		return err
	}
	group, groupCtx := errgroup.WithContext(ctx)
	for _, cluster := range s.fleet.Clusters() {
		group.Go(func() error { return s.startCluster(groupCtx, cluster) })
	}
	group.Go(func() error {
		step := s.display.Step("temporal")
		return step.End(s.await(groupCtx, step, clusterTimeout, controlplane.Temporal))
	})
	if err := group.Wait(); err != nil || !withAgents {
		return err
	}
	if err := s.startAgents(ctx, changed); err != nil {
		return err
	}
	if err := s.awaitJoined(ctx); err != nil || s.fleet.Members == 0 { // a hub without members is there to be measured
		return err
	}
	step := s.display.Step("dashboard")
	if err := s.startOurs(ctx, changed, controlplane.Dashboard); err != nil {
		return step.End(err)
	}
	return step.End(s.await(ctx, step, agentTimeout, controlplane.Dashboard))
}

// platform returns every component that is not an agent of this repository.
func (s *startup) platform() []string {
	names := []string{controlplane.Temporal}
	for _, cluster := range s.fleet.Clusters() {
		names = append(names, s.componentsOf(cluster)...)
	}
	return names
}

func (s *startup) componentsOf(cluster string) []string {
	names := []string{cluster + "/etcd", cluster + "/apiserver", cluster + "/controller-manager"}
	switch {
	case s.fleet.IsReal(cluster):
		names = append(names, cluster+"/scheduler", controlplane.Node(cluster))
	case cluster != state.Hub:
		names = append(names, cluster+"/scheduler", cluster+"/kwok")
	}
	return names
}

// release starts those of the components that are stopped, or that the caller wants to run anew.
func (s *startup) release(ctx context.Context, names []string, anew func(name string) bool) error {
	status, err := s.client.Status(ctx)
	if err != nil {
		return fmt.Errorf("asking the supervisor: %w", err)
	}
	group, ctx := errgroup.WithContext(ctx)
	for _, name := range names {
		if c, _ := status.Component(name); c.State == control.Stopped || anew(name) {
			group.Go(func() error { return s.client.Begin(ctx, control.Restart, name) })
		}
	}
	return group.Wait()
}

func (s *startup) startCluster(ctx context.Context, cluster string) error {
	step := s.display.Step("%s: control plane", cluster)
	if err := s.await(ctx, step, clusterTimeout, cluster+"/apiserver"); err != nil {
		return step.End(err)
	}
	if s.bare {
		err := controlplane.SetUpNodes(ctx, s.fleet, cluster)
		return step.End(errors.Join(err, s.await(ctx, step, clusterTimeout, s.componentsOf(cluster)...)))
	}
	step.Note("definitions")
	setUp := func() error { return controlplane.SetUpMember(ctx, s.fleet, s.root, cluster) }
	if cluster == state.Hub {
		setUp = func() error { return controlplane.SetUpHub(ctx, s.fleet, s.root) }
	}
	if err := setUp(); err != nil {
		return step.End(fmt.Errorf("setting up %s: %w", cluster, err))
	}
	return step.End(s.await(ctx, step, clusterTimeout, s.componentsOf(cluster)...))
}

// startAgents starts the agents that are stopped and restarts those whose binary changed.
func (s *startup) startAgents(ctx context.Context, changed []string) error {
	names := controlplane.AgentNames(s.fleet)
	step := s.display.Step("hub agent and %d member agents", s.fleet.Members)
	if err := s.startOurs(ctx, changed, names...); err != nil {
		return step.End(err)
	}
	return step.End(s.await(ctx, step, agentTimeout, names...))
}

// startOurs starts components that run this repository's programs, anew those whose binary changed.
func (s *startup) startOurs(ctx context.Context, changed []string, names ...string) error {
	return s.release(ctx, names, func(name string) bool { return slices.Contains(changed, binaryOf(name)) })
}

// startPrometheus starts what plays the traffic, and the Prometheus that measures it and the agents.
func (s *startup) startPrometheus(ctx context.Context, changed []string) error {
	step := s.display.Step("prometheus")
	if err := controlplane.WritePrometheusConfig(s.fleet, s.root); err != nil {
		return step.End(err)
	}
	if err := s.startOurs(ctx, changed, controlplane.Traffic, controlplane.Prometheus); err != nil {
		return step.End(err)
	}
	return step.End(s.await(ctx, step, agentTimeout, controlplane.Traffic, controlplane.Prometheus))
}

// binaryOf returns the program that one of our components runs.
func binaryOf(component string) string {
	switch component {
	case controlplane.HubAgent:
		return "hub-agent"
	case controlplane.Dashboard:
		return "kubectl-fleet"
	case controlplane.Traffic, controlplane.Prometheus:
		return component
	}
	return "member-agent"
}

func (s *startup) awaitJoined(ctx context.Context) error {
	step := s.display.Step("members join")
	status, err := s.client.Status(ctx)
	if err != nil {
		return step.End(fmt.Errorf("asking the supervisor: %w", err))
	}
	client, err := controlplane.Client(s.fleet, state.Hub)
	if err != nil {
		return step.End(err)
	}
	ctx, cancel := context.WithTimeout(ctx, joinTimeout)
	defer cancel()
	var missing []string
	err = controlplane.AwaitJoined(ctx, client, s.fleet, status.Started, func(still []string) {
		missing = still
		step.Note("missing %s", strings.Join(still, ", "))
	})
	if !errors.Is(err, context.DeadlineExceeded) || len(missing) == 0 {
		return step.End(err)
	}
	agent := controlplane.MemberAgent(missing[0])
	return step.End(fmt.Errorf("after %s %s has not joined\n%s\n%s", joinTimeout, strings.Join(missing, ", "),
		s.lastLines(agent), s.lastLines(controlplane.HubAgent)))
}

// await returns when all named components are ready; it gives up on one that crashes again and again, or after a time,
// with the end of that component's log.
func (s *startup) await(ctx context.Context, step *progress.Step, limit time.Duration, names ...string) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	ticker := time.NewTicker(watchEvery)
	defer ticker.Stop()
	restarts := map[string]int{}
	for {
		pending, err := s.firstPending(ctx, names, restarts)
		if err != nil || pending == nil {
			return err
		}
		step.Note("%s: %s", pending.Name, pending.State)
		select {
		case <-ticker.C:
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.Canceled) {
				return ctx.Err()
			}
			return fmt.Errorf("%s is not ready after %s: %s %s\n%s", pending.Name, limit, pending.State, pending.Reason, s.lastLines(pending.Name))
		}
	}
}

// firstPending returns the first of the components that is not ready, or an error for one that keeps crashing. It
// remembers in restarts what each had when it was first asked about.
func (s *startup) firstPending(ctx context.Context, names []string, restarts map[string]int) (*control.Component, error) {
	status, err := s.client.Status(ctx)
	if err != nil {
		return nil, fmt.Errorf("asking the supervisor: %w", err)
	}
	var pending *control.Component
	for _, name := range names {
		c, found := status.Component(name)
		if !found {
			return nil, fmt.Errorf("the running supervisor has no component %s: take it down and up again", name)
		}
		if _, seen := restarts[name]; !seen {
			restarts[name] = c.Restarts
		}
		if c.State == control.BackOff && c.Restarts-restarts[name] >= crashLimit {
			return nil, fmt.Errorf("%s keeps crashing: %s\n%s", name, c.Reason, s.lastLines(name))
		}
		if c.State != control.Ready && pending == nil {
			pending = &c
		}
	}
	return pending, nil
}

func (s *startup) lastLines(component string) string {
	path := s.fleet.LogFile(component)
	return fmt.Sprintf("last %d lines of %s:\n%s", logLines, path, tailOf(path, logLines))
}
