package web

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
)

// rehearsalView is what the clusters of a stage have said that the run would do there.
type rehearsalView struct {
	Stage string
	// Message says what was found, Bad that the stage is not started for it; At is when the clusters had answered.
	Message string
	Bad     bool
	At      time.Time
	// Refused and Unknown name the first clusters that would refuse it, or of which it is not known.
	Refused, Unknown []string
	Digest           string
	// Command asks them again on a command line.
	Command string
}

// rehearsalsOf returns what is known of the rehearsals before the stages of a run, or before one of them.
func rehearsalsOf(run hub.Run, stage string) []rehearsalView {
	var views []rehearsalView
	for i := range run.Status.StagesStatus {
		of := &run.Status.StagesStatus[i]
		if stage != "" && stage != of.StageName {
			continue
		}
		for j := range of.BeforeStageTaskStatus {
			if task := &of.BeforeStageTaskStatus[j]; task.Type == placementv1beta1.StageTaskTypeRehearsal && task.Rehearsal != nil {
				views = append(views, rehearsalOf(run, of.StageName, task))
			}
		}
	}
	return views
}

func rehearsalOf(run hub.Run, stage string, task *placementv1beta1.StageTaskStatus) rehearsalView {
	found := task.Rehearsal
	view := rehearsalView{
		Stage: stage, Message: "The clusters have not been asked yet.", Refused: found.RefusedClusters, Unknown: found.UnknownClusters,
		Digest: found.RehearsalDigest, Command: "kubectl fleet rehearse " + run.Flags() + " --stage " + stage,
	}
	if found.CompletionTime != nil {
		view.At = found.CompletionTime.Time
	}
	if said := meta.FindStatusCondition(task.Conditions, placementv1beta1.ConditionTypeRehearsed); said != nil {
		view.Message = said.Message
		view.Bad = said.Status == "False"
	}
	return view
}
