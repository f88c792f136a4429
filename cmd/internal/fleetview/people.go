package fleetview

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetflow/fleetflow/apis/placement/rules"
	"github.com/fleetflow/fleetflow/apis/placement/updaterun"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
)

// Waiting is something that waits for a person.
type Waiting struct {
	Ref  hub.Ref
	What string
	// Since is when it began to wait; zero if that is not known.
	Since time.Time
	// Verb goes on with it, and Act is what that is called; without a verb there is nothing to do but to look. Stage is what an approval
	// is of.
	Verb, Act, Stage string
}

// WaitingIn returns what waits for people in a run; nothing does in one that is over.
func WaitingIn(run hub.Run, state updaterun.State) []Waiting {
	why := withPrefix(": ", state.Why)
	switch {
	case run.Outcome() != "":
		return nil
	case state.Phase == updaterun.PhaseStopped:
		return []Waiting{{Ref: run.Ref, What: "is stopped" + why, Since: state.Since, Verb: "resume", Act: "Resume"}}
	case state.Phase == updaterun.PhaseInitialized:
		return []Waiting{{Ref: run.Ref, What: "is planned and waits for its start", Since: state.Since, Verb: "resume", Act: "Start"}}
	case state.Phase == updaterun.PhaseStuck:
		return []Waiting{{Ref: run.Ref, What: "is stuck" + why, Since: state.Since, Act: "Look"}}
	}
	var all []Waiting
	for _, stage := range updaterun.Read(run.Object).Stages {
		for _, task := range stage.Tasks() {
			if task.Approvable && task.Waiting() {
				all = append(all, Waiting{Ref: run.Ref, What: "waits for the approval of stage " + stage.Name + withPrefix(": ", task.Detail()), Since: task.WaitsSince,
					Verb: "approve", Act: "Approve", Stage: stage.Name})
			}
		}
	}
	return all
}

// WaitingOf returns what waits for people in a placement.
func WaitingOf(p hub.Placement) []Waiting {
	if p.External() || !rules.RollingUpdateOf(p.Object).Paused {
		return nil
	}
	return []Waiting{{Ref: p.Ref, What: "is paused: kubectl fleet resume " + p.Flags()}}
}

// WaitingAfter returns what waits for people after an eviction that was not executed.
func WaitingAfter(eviction *placementv1beta1.ClusterResourcePlacementEviction) []Waiting {
	c := meta.FindStatusCondition(eviction.Status.Conditions, placementv1beta1.ConditionTypeExecuted)
	if c == nil || c.Status != metav1.ConditionFalse || c.Message == "" {
		return nil
	}
	return []Waiting{{Ref: hub.Ref{Kind: hub.KindPlacement, Name: eviction.Spec.PlacementName}, Since: eviction.CreationTimestamp.Time,
		What: "keeps " + eviction.Spec.ClusterName + ", its eviction was blocked: " + c.Message}}
}
