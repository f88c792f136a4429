package command

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/apis/placement/updaterun"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/cmd/internal/steer"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/cli"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
)

// Values of --until.
const (
	goalDone     = "done"
	goalApproval = "approval"
	goalStage    = "stage"
)

// goal is what a run is watched for; without a word it is watched to its end, whatever users do meanwhile.
type goal struct {
	word string
	// stage is the name behind stage=.
	stage string
}

// parseGoal reads the value of --until.
func parseGoal(text string) (goal, error) {
	word, stage, named := strings.Cut(text, "=")
	switch {
	case text == "", text == goalDone, text == goalApproval:
		return goal{word: text}, nil
	case word == goalStage && named && stage != "":
		return goal{word, stage}, nil
	}
	return goal{}, cli.Usagef("--until %q is not known: use approval, stage=NAME or done", text)
}

// String returns what a run is once it has come to the goal.
func (g goal) String() string {
	switch g.word {
	case goalApproval:
		return "waiting for an approval"
	case goalStage:
		return "past stage " + g.stage
	}
	return "over"
}

// isOver reports whether watching is over, as the run has come to the goal or cannot before a user acts. The error has the exit
// code of the latter.
func (g goal) isOver(found hub.Found, objects []client.Object) (over bool, why error) {
	if g.word == "" || found.Run == nil {
		return false, nil
	}
	var run *hub.Run
	approved := map[string]bool{}
	for _, object := range objects {
		switch object := object.DeepCopyObject().(type) {
		case placementv1beta1.UpdateRunObject:
			if object.GetUID() == found.Run.Object.GetUID() {
				read := hub.RunOf(object)
				run = &read
			}
		case placementv1beta1.ApprovalRequestObject:
			approved[object.GetName()] = meta.IsStatusConditionTrue(object.GetApprovalRequestStatus().Conditions,
				placementv1beta1.ConditionTypeApproved)
		}
	}
	if run == nil {
		return false, nil // it is gone, which the picture says
	}
	return g.judgeRun(*run, approved)
}

// judgeRun is judge for a run as it is, and the requests that are approved, whether or not the run knows.
func (g goal) judgeRun(run hub.Run, approved map[string]bool) (over bool, why error) {
	view := updaterun.Read(run.Object)
	if over, why := g.judgeStage(run, view); over {
		return true, why
	}
	waiting := slices.DeleteFunc(steer.GatesOf(run), func(g steer.Gate) bool { return !g.Begun || g.Approved || approved[g.Request] })
	stopped := view.Phase == updaterun.PhaseStopped && run.Spec.State == placementv1beta1.StateStop ||
		view.Phase == updaterun.PhaseInitialized && run.Spec.State == placementv1beta1.StateInitialize
	switch {
	case view.Phase.Over():
		return false, nil // the picture ends by itself
	case stopped:
		return true, &cli.Exit{Code: cli.CodeStopped, Err: fmt.Errorf("%s is stopped (%s): kubectl fleet resume %s has it go on", run.Ref,
			strings.TrimSuffix(view.Why, "."), run.Flags())}
	case len(waiting) > 0 && g.word == goalApproval:
		return true, nil
	case len(waiting) > 0:
		return true, &cli.Exit{Code: cli.CodeApproval, Err: fmt.Errorf(
			"%s waits for an approval of stage %s: kubectl fleet approve %s --stage %s", run.Ref, waiting[0].Stage, run.Flags(), waiting[0].Stage)}
	}
	return false, nil
}

// judgeStage is judge for a goal that is a stage.
func (g goal) judgeStage(run hub.Run, view updaterun.State) (over bool, why error) {
	if g.word != goalStage || len(view.Stages) == 0 {
		return false, nil
	}
	if err := g.checkStage(run, stageTitles(view)); err != nil {
		return true, err
	}
	at := slices.IndexFunc(view.Stages, func(s updaterun.Stage) bool { return s.Title() == g.stage })
	phase := view.Stages[at].Phase
	return phase == updaterun.PhaseSucceeded || phase == updaterun.PhaseSkipped, nil
}

// stageTitles returns the stages of a run, as they are called.
func stageTitles(view updaterun.State) []string {
	var names []string
	for _, stage := range view.Stages {
		names = append(names, stage.Title())
	}
	return names
}

// checkStage refuses a goal that is no stage of a run, of which the stages are known.
func (g goal) checkStage(run hub.Run, stages []string) error {
	if g.word != goalStage || len(stages) == 0 || slices.Contains(stages, g.stage) {
		return nil
	}
	return cli.Usagef("%s has no stage %q but %s", run.Ref, g.stage, strings.Join(stages, ", "))
}

// refuseImpossible refuses a goal to which a run cannot come, before anything is watched. A run that is not initialized has the stages of its
// strategy; who may not read that, or has a strategy made later, is told once the run has stages.
func (g goal) refuseImpossible(ctx context.Context, c client.Reader, run hub.Run) error {
	if g.word != goalStage {
		return nil
	}
	stages := stageTitles(updaterun.Read(run.Object))
	if len(stages) == 0 {
		strategy, err := hub.Reader{Reader: c}.Strategy(ctx, run.Namespace, run.Spec.StagedUpdateStrategyName)
		if err != nil || strategy == nil {
			return client.IgnoreNotFound(ignoreForbidden(err))
		}
		for i := range strategy.Stages {
			stages = append(stages, strategy.Stages[i].Name)
		}
		if strategy.UnassignedClusters == placementv1beta1.UnassignedClustersLast {
			return nil // a stage more, which the hub names
		}
	}
	return g.checkStage(run, stages)
}

func ignoreForbidden(err error) error {
	if apierrors.IsForbidden(err) {
		return nil
	}
	return err
}
