package demo

import (
	"context"
	"fmt"
	"time"

	"github.com/fleetflow/fleetflow/test/devfleet/access"
	"github.com/fleetflow/fleetflow/test/devfleet/control"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// story is one telling of the demo.
type story struct {
	*access.Access
	options Options
	screen  *screen
	// soak is the timed wait after the first stage.
	soak  time.Duration
	began time.Time
	// enter receives the confirmations of the user; nil when the user is not asked.
	enter <-chan struct{}

	// checked counts the statements that were found true; note is what the current act adds to the summary.
	checked int
	note    string
}

// act is one part of the story.
type act struct {
	title, about string
	play         func(context.Context) error

	took    time.Duration
	checked int
	note    string
}

// acts returns the whole story, in order. The indexes of snapshots follow from it: every change of the ConfigMap makes one.
func (s *story) acts() []act {
	acts := []act{
		{title: "Place a namespace, without rolling it out", play: s.place, about: "" +
			"A namespace with a ConfigMap and a Deployment is placed on every cluster. Its strategy is External:\n" +
			"clusters are picked and versions kept, but nothing reaches a cluster before a run brings it there."},
		{title: "Change it: a second version is kept", play: s.change, about: "" +
			"Every change on the hub becomes a resource snapshot with the next index."},
		{title: "Say in which stages to roll out", play: s.stages, about: "" +
			fmt.Sprintf("staging first, then a soak of %s; then canary, ordered by a label, then a person has to approve.", s.soak)},
		{title: "Roll out version 1, approved by a Temporal signal", play: s.firstRun, about: "" +
			"The run is a Temporal workflow; what it has done so far is in the status of its object on the hub."},
		{title: "Roll out the latest, approved by a Temporal update", play: s.secondRun, about: "" +
			"Without an index a run takes the latest snapshot. An update, unlike a signal, has an answer."},
		{title: "Roll back to version 1, approved with kubectl", play: s.rollback, about: "" +
			"A rollback is a run with an older index, through the same stages and gates."},
		{title: "Kill the hub agent in the middle of a run", play: s.killAgent, about: "" +
			"kill -9 while staging soaks. The agent starts again, the run goes on where it was: the soak is counted from\n" +
			"an instant stored in the run, and no cluster is written to twice."},
		{title: "Delete all of Temporal's data in the middle of a run", play: s.wipeTemporal, about: "" +
			"The objects on the hub are the truth. A Temporal server without a past gets the workflow of every open run\n" +
			"again, and each goes on from what its object says."},
		{title: "Let an analysis find a bad version and take it back", play: s.badVersion, about: "" +
			"After its first stage a run asks for the ratio of errors, as it would ask Prometheus; this program answers from what\n" +
			"the cluster really has. The figure is bad: the stage goes back by itself, the clusters behind it are never touched."},
	}
	if s.hasRealNode() {
		acts = append(acts, act{title: "Let a version crash on a real node, and be taken back", play: s.crashLoop, about: "" +
			realMember + " has a kubelet, and its Pods are processes. The next version ends as soon as it starts: the run stops in its\n" +
			"first stage, the hub is told which container crashes and what it said last, and the cluster gets the version before."})
	}
	return acts
}

// firstRun is the how-to's run, with an index and the first channel of Temporal.
func (s *story) firstRun(ctx context.Context) error {
	err := s.rollOut(ctx, rollout{n: 1, index: "1", wantIndex: 1, value: "value2", channel: channelSignal})
	if err != nil {
		return err
	}
	if err := s.kubectl(ctx, "get", "csur", runName(1)); err != nil {
		return err
	}
	return s.kubectl(ctx, "get", "crp", placementName)
}

func (s *story) secondRun(ctx context.Context) error {
	if err := s.edit(ctx, "value3", 2); err != nil {
		return err
	}
	return s.rollOut(ctx, rollout{n: 2, wantIndex: 2, value: "value3", channel: channelUpdate})
}

func (s *story) rollback(ctx context.Context) error {
	err := s.rollOut(ctx, rollout{n: 3, index: "1", wantIndex: 1, value: "value2", channel: channelKubectl})
	if err != nil {
		return err
	}
	return s.kubectl(ctx, "get", "clusterapprovalrequest")
}

func (s *story) killAgent(ctx context.Context) error {
	if err := s.edit(ctx, "value4", 3); err != nil {
		return err
	}
	crash := &crash{story: s}
	r := rollout{n: 4, wantIndex: 3, value: "value4", channel: channelUpdate, whileSoaking: crash.kill}
	crash.during = r
	if err := s.rollOut(ctx, r); err != nil {
		return err
	}
	return crash.check(ctx)
}

func (s *story) wipeTemporal(ctx context.Context) error {
	if err := s.edit(ctx, "value5", 4); err != nil {
		return err
	}
	loss := &loss{story: s, workflow: wf.UpdateRunID("", runName(5))}
	r := rollout{n: 5, wantIndex: 4, value: "value5", channel: channelSignal, whileWaiting: loss.wipe}
	if err := s.rollOut(ctx, r); err != nil {
		return err
	}
	return loss.check(ctx)
}

// component asks the supervisor about one of its components.
func (s *story) component(ctx context.Context, name string) (control.Component, error) {
	status, err := s.Control.Status(ctx)
	if err != nil {
		return control.Component{}, fmt.Errorf("asking the supervisor about %s: %w", name, err)
	}
	c, found := status.Component(name)
	if !found {
		return control.Component{}, fmt.Errorf("the fleet has no component %s", name)
	}
	return c, nil
}
