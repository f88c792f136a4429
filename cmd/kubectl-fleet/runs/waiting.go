package runs

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// WaitingFor says in a few words what a run waits for, empty if it is over.
func (r Run) WaitingFor(now time.Time) string {
	switch r.State {
	case StateInitializing:
		return "its plan"
	case StateInitialized:
		return "its start (kubectl fleet resume)"
	case StateStopped:
		return "to be resumed"
	case StateDeleting:
		return "its clean-up"
	}
	if r.State.Over() || r.Current >= len(r.Stages) {
		return ""
	}
	stage := r.Stages[r.Current]
	if gates := stage.waitingFor(now); gates != "" {
		return gates
	}
	return stage.clusters()
}

func (s Stage) waitingFor(now time.Time) string {
	var parts []string
	for _, gate := range append(append([]Gate{}, s.Before...), s.After...) {
		if gate.Open {
			parts = append(parts, gate.describe(now))
		}
	}
	return strings.Join(parts, ", ")
}

func (g Gate) describe(now time.Time) string {
	if g.Type == placementv1beta1.StageTaskTypeApproval {
		return "approval of " + g.Request
	}
	return "soak, " + g.Remaining(now)
}

// Remaining says how much of a timed wait is left.
func (g Gate) Remaining(now time.Time) string {
	left := g.Until().Sub(now)
	if left <= 0 {
		return "due"
	}
	return duration.HumanDuration(left) + " left"
}

// clusters are those under way.
func (s Stage) clusters() string {
	var names []string
	for _, cluster := range s.Clusters {
		if cluster.State == StateRunning {
			names = append(names, cluster.Name)
		}
	}
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
