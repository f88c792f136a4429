package demo

import (
	"fmt"
	"slices"
	"time"

	"github.com/fleetflow/fleetflow/apis/placement/stagetask"
	"github.com/fleetflow/fleetflow/apis/placement/updaterun"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// line is one line of the live view.
type line struct {
	stage, cluster, text string
	tone                 tone
}

// liveView turns the states of a run, one after the other, into lines about what has changed.
type liveView struct {
	last updaterun.State
	// since has when a cluster was first seen updating; states are seen within milliseconds, while the times in a
	// status are whole seconds.
	since map[string]time.Time
	began time.Time
	lines []line
}

// shortestUpdate is what an update takes at least: of two states that arrive closer together, the first was late.
const shortestUpdate = 10 * time.Millisecond

// see returns what has changed since the last state. It is pure except for what it remembers.
func (v *liveView) see(run *placementv1beta1.ClusterStagedUpdateRun, now time.Time) []line {
	if v.since == nil {
		v.since = map[string]time.Time{}
		v.began = now
	}
	v.lines = nil
	before := v.last
	after := updaterun.Read(run)
	v.last = after
	if stages := run.Status.StagesStatus; len(before.Stages) == 0 && len(stages) > 0 {
		clusters := 0
		for i := range stages {
			clusters += len(stages[i].Clusters)
		}
		v.add("run", "", toneQuiet, "planned: snapshot %s to %d clusters in %d stages", run.Status.ResourceSnapshotIndexUsed, clusters,
			len(stages))
	}
	for i, stage := range after.Stages {
		was := updaterun.Stage{}
		if i < len(before.Stages) {
			was = before.Stages[i]
		}
		v.stage(was, stage, now)
	}
	if after.Phase != before.Phase {
		v.run(after, now)
	}
	return v.lines
}

func (v *liveView) add(stage, cluster string, t tone, format string, args ...any) {
	v.lines = append(v.lines, line{stage: stage, cluster: cluster, tone: t, text: fmt.Sprintf(format, args...)})
}

// run tells that a run has ended, or why it does not move on.
func (v *liveView) run(run updaterun.State, now time.Time) {
	switch run.Phase {
	case updaterun.PhaseStuck, updaterun.PhaseStopping, updaterun.PhaseStopped:
		v.add("run", "", toneWait, "%s", run.Why)
	case updaterun.PhaseSucceeded:
		v.add("run", "", toneGood, "succeeded after %s", seconds(now.Sub(v.began)))
	case updaterun.PhaseFailed:
		what := "failed"
		if len(run.Stages) == 0 {
			what = "cannot be planned"
		}
		v.add("run", "", toneBad, "%s: %s", what, run.Why)
	}
}

func (v *liveView) stage(before, after updaterun.Stage, now time.Time) {
	name := after.Title()
	v.tasks(name, before.Before, after.Before)
	for _, cluster := range after.Clusters {
		was := updaterun.PhasePending
		if i := slices.IndexFunc(before.Clusters, func(c updaterun.Cluster) bool { return c.Name == cluster.Name }); i >= 0 {
			was = before.Clusters[i].Phase
		}
		if cluster.Phase != was {
			v.cluster(name, cluster, now)
		}
	}
	v.tasks(name, before.After, after.After)
	if after.Phase == before.Phase {
		return
	}
	switch after.Phase {
	case updaterun.PhaseSkipped:
		v.add(name, "", toneQuiet, "skipped: it has no clusters")
	case updaterun.PhaseSucceeded:
		v.add(name, "", toneGood, "stage done")
	case updaterun.PhaseFailed:
		v.add(name, "", toneBad, "stage failed: %s", after.Why)
	}
}

func (v *liveView) cluster(stage string, cluster updaterun.Cluster, now time.Time) {
	key := stage + "/" + cluster.Name
	switch started, seen := v.since[key]; {
	case cluster.Phase == updaterun.PhaseRunning:
		v.since[key] = now
		v.add(stage, cluster.Name, toneQuiet, "updating")
	case !cluster.Phase.Over():
	case cluster.Phase != updaterun.PhaseSucceeded:
		v.add(stage, cluster.Name, toneBad, "failed: %s", cluster.Why)
	case seen && now.Sub(started) >= shortestUpdate:
		v.add(stage, cluster.Name, toneGood, "updated in %s", seconds(now.Sub(started)))
	default:
		v.add(stage, cluster.Name, toneGood, "updated")
	}
}

// tasks tells what has become of the tasks on one side of a stage.
func (v *liveView) tasks(stage string, before, after []stagetask.State) {
	for i, task := range after {
		was := stagetask.State{}
		if i < len(before) {
			was = before[i]
		}
		v.task(stage, was, task)
	}
}

func (v *liveView) task(stage string, before, after stagetask.State) {
	switch {
	case before.Begun.IsZero() && after.Timed && !after.Due.IsZero():
		v.add(stage, "", toneWait, "%ss for %s, until %s", after.Title, after.Duration, after.Due.Local().Format(time.TimeOnly))
	case before.Begun.IsZero() && !after.Begun.IsZero() && !after.Done():
		v.add(stage, "", toneWait, "waiting for %s of %s", after.Title, after.Subject)
	}
	switch {
	case before.Done() || !after.Done():
	case after.Approvable:
		v.add(stage, "", toneGood, "approved")
	default:
		v.add(stage, "", toneGood, "%s is over", after.Title)
	}
}
