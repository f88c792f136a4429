package steer

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetflow/fleetflow/activities/fence"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
)

// Stop stops a run.
func Stop() Verb {
	return Verb{
		Name: "stop", Takes: "RUN", Group: GroupRollout, Kinds: []hub.Kind{hub.KindRun}, Completes: isUnderWay,
		Short: "Stop a run: clusters that are being updated finish, no others start",
		Long: `Stop a staged update run by setting its spec.state to Stop. Clusters that are being updated finish, no others start, and
soak time that has been served is not lost. kubectl fleet resume goes on from there.`,
		Example:        `  kubectl fleet stop web-17`,
		CheckArguments: exactlyOne("stop", "a run", "stop web-17"),
		New: func() *Request {
			return &Request{Prepare: func(_ context.Context, call *Call, target hub.Found) (Deed, error) {
				return setState(call, *target.Run, placementv1beta1.StateStop, "stopping", "is stopped already")
			}}
		},
		Form: stateForm("Stop", "Clusters that are being updated finish, no others start. Soak time that was served is not lost.",
			func(run hub.Run) string {
				if run.Spec.State == placementv1beta1.StateStop || run.Spec.State == placementv1beta1.StateInitialize {
					return ""
				}
				return "Stop"
			}),
	}
}

// Resume goes on with a run or a placement.
func Resume() Verb {
	return Verb{
		Name: "resume", Aliases: []string{"start"}, Takes: "(RUN | placement/NAME)", Group: GroupRollout,
		Kinds: []hub.Kind{hub.KindRun, hub.KindPlacement},
		Short: "Go on with a run that was stopped, or a placement that was paused; start a run that was only initialized",
		Long: `Go on with a staged update run by setting its spec.state to Run: one that was stopped, or one that was created with
kubectl fleet run --initialize to look at its plan first. Or go on with the rolling update of a placement that was paused
with kubectl fleet pause.`,
		Example: `  kubectl fleet resume web-17
  kubectl fleet resume placement/web`,
		CheckArguments: exactlyOne("resume", "a run", "resume web-17"),
		New: func() *Request {
			return &Request{Prepare: func(_ context.Context, call *Call, target hub.Found) (Deed, error) {
				if target.Placement != nil {
					return setPaused(call, *target.Placement, false), nil
				}
				return setState(call, *target.Run, placementv1beta1.StateRun, "running", "is not stopped")
			}}
		},
		Form: stateForm("Resume", "The run goes on from where it is.", func(run hub.Run) string {
			return map[placementv1beta1.UpdateRunState]string{placementv1beta1.StateStop: "Resume",
				placementv1beta1.StateInitialize: "Start"}[run.Spec.State]
		}),
	}
}

// stateForm returns the form of a verb that changes what a run is to do. label names the link while there is one.
func stateForm(word, lead string, label func(hub.Run) string) *Form {
	return &Form{
		Kinds: []hub.Kind{hub.KindRun}, Rights: patchesRun,
		Links: func(target hub.Found) []Link {
			if name := label(*target.Run); name != "" && isUnderWay(*target.Run) {
				return []Link{{Label: name}}
			}
			return nil
		},
		Page: func(view View) Page {
			name := word + " " + view.Target.Run.Name
			return Page{Title: name, Lead: view.Sentence + " " + lead, Button: name}
		},
	}
}

// patchesRun returns the right that it takes to change a run.
func patchesRun(target hub.Found) []Right { return []Right{{Verb: "patch", Object: target.Run.Object}} }

// isUnderWay reports whether a run has not ended.
func isUnderWay(run hub.Run) bool { return run.Outcome() == "" }

// checkUnderWay refuses a run that has ended.
func checkUnderWay(run hub.Run) error {
	if isUnderWay(run) {
		return nil
	}
	word := "succeeded"
	if run.Outcome() == metav1.ConditionFalse {
		word = "failed"
	}
	return fmt.Errorf("%s has ended (%s): create a new run, as with kubectl fleet run %s", run.Ref, word, run.Placement().Flags())
}

// setState changes what a run is to do. It is no harm to ask for what is the case.
func setState(call *Call, run hub.Run, state placementv1beta1.UpdateRunState, done, already string) (Deed, error) {
	if err := checkUnderWay(run); err != nil {
		return Deed{}, err
	}
	if run.Spec.State == state || run.Spec.State == "" && state == placementv1beta1.StateRun {
		return nothingToDo("%s %s", run.Ref, already), nil
	}
	return Deed{Do: func(ctx context.Context) (Result, error) {
		return resultSaying("%s %s", run.Ref, done), call.patchRun(ctx, run, fence.Add("/spec/state", state))
	}}, nil
}
