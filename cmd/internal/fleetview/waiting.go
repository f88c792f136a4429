package fleetview

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	"github.com/fleetflow/fleetflow/apis/placement/stagetask"
	"github.com/fleetflow/fleetflow/apis/placement/updaterun"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
)

// waitingFor says in a few words what a run waits for; empty if it is over.
func waitingFor(run updaterun.State, now time.Time) string {
	switch run.Phase {
	case updaterun.PhaseInitializing:
		return "its plan"
	case updaterun.PhaseInitialized:
		return "its start (kubectl fleet resume)"
	case updaterun.PhaseStopped:
		return "its resumption (kubectl fleet resume)"
	case updaterun.PhaseDeleting:
		return "its clean-up"
	}
	if run.Phase.Over() || run.Current >= len(run.Stages) {
		return ""
	}
	stage := run.Stages[run.Current]
	if tasks := describeTasks(stage, now); tasks != "" {
		return tasks
	}
	return namesUpdating(stage)
}

// heldBy returns what a run says of the holds and windows that it stands still for; empty if it does not.
func heldBy(run hub.Run) string {
	held := run.Condition(fleetflowv1alpha1.ConditionTypeHeld)
	if held == nil || !updaterun.IsHeldUp(run.Object) {
		return ""
	}
	return held.Message
}

// describeTasks says for which tasks a stage waits.
func describeTasks(stage updaterun.Stage, now time.Time) string {
	var parts []string
	for _, task := range stage.Tasks() {
		if task.Waiting() {
			parts = append(parts, describeTask(task, now))
		}
	}
	return strings.Join(parts, ", ")
}

func describeTask(task stagetask.State, now time.Time) string {
	text := task.Title
	if task.Subject != "" {
		text += " of " + task.Subject
	}
	if task.Timed {
		text += ", " + describeRemaining(task.Due.Sub(now))
	}
	return text
}

// describeRemaining returns how much of a timed wait is left.
func describeRemaining(left time.Duration) string {
	if left <= 0 {
		return "due"
	}
	return duration.HumanDuration(left) + " left"
}

// namesUpdating names the clusters of a stage that are being updated.
func namesUpdating(stage updaterun.Stage) string {
	names := stage.ClustersIn(updaterun.PhaseRunning)
	const shown = 2
	switch {
	case len(names) == 0:
		return ""
	case len(names) > shown:
		return fmt.Sprintf("%s and %d more", strings.Join(names[:shown], ", "), len(names)-shown)
	default:
		return strings.Join(names, ", ")
	}
}

// Sentence says in a sentence what a run is at: what it waits for, what it does, or how it has ended.
func (r Run) Sentence() string {
	subject := "Run " + r.Name
	switch phase := updaterun.Phase(r.State); phase {
	case updaterun.PhaseSucceeded:
		return fmt.Sprintf("%s has succeeded: %s clusters.", subject, r.Progress)
	case updaterun.PhaseFailed:
		return fmt.Sprintf("%s has failed: %s", subject, r.Message)
	case updaterun.PhaseStuck:
		if r.Message == "" && r.WaitingFor != "" {
			return fmt.Sprintf("%s is stuck: it waits for %s.", subject, r.WaitingFor)
		}
		return fmt.Sprintf("%s is stuck: %s", subject, r.Message)
	default:
		if r.WaitingFor != "" {
			return fmt.Sprintf("%s waits for %s.", subject, r.WaitingFor)
		}
		return fmt.Sprintf("%s is %s.", subject, strings.ToLower(r.State))
	}
}
