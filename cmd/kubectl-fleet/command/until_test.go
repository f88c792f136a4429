package command

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/cli"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
)

// firstStageOver is a run whose first stage is over.
func firstStageOver(run *placementv1beta1.ClusterStagedUpdateRun) *placementv1beta1.ClusterStagedUpdateRun {
	run = run.DeepCopy()
	stage := &run.Status.StagesStatus[0]
	stage.Conditions = append(stage.Conditions, condition(placementv1beta1.ConditionTypeSucceeded, metav1.ConditionTrue, placementv1beta1.ReasonStageUpdatingSucceeded, time.Minute))
	return run
}

func TestWhatIsWatchedForDecidesWhenWatchingEndsAndWithWhichCode(t *testing.T) {
	soaking := soakingRun()
	waiting, request := waitingAtCanary()
	stopped := soakingRun()
	stopped.Spec.State = placementv1beta1.StateStop
	stopped.Status.Conditions[1] = condition(placementv1beta1.ConditionTypeProgressing, metav1.ConditionFalse, placementv1beta1.ReasonUpdateRunStopped, time.Minute)
	stopped.Status.Conditions[1].Message = "The update run has been stopped"
	resumed := stopped.DeepCopy()
	resumed.Spec.State = placementv1beta1.StateRun
	const none = -1
	for sentence, test := range map[string]struct {
		until    string
		run      *placementv1beta1.ClusterStagedUpdateRun
		approved bool
		code     int
		says     string
	}{
		"without a goal an approval is waited for":         {"", waiting, false, none, ""},
		"without a goal a stopped run is waited for":       {"", stopped, false, none, ""},
		"an approval that is waited for":                   {"approval", waiting, false, 0, ""},
		"no approval is waited for yet":                    {"approval", soaking, false, none, ""},
		"an approval the run does not know of yet":         {"approval", waiting, true, none, ""},
		"the end, behind an approval":                      {"done", waiting, false, cli.CodeApproval, "run/web-5 waits for an approval of stage canary: kubectl fleet approve run/web-5 --stage canary"},
		"the end, once it is approved":                     {"done", waiting, true, none, ""},
		"a stage behind an approval":                       {"stage=canary", waiting, false, cli.CodeApproval, "run/web-5 waits for an approval"},
		"a stage that soaks":                               {"stage=staging", soaking, false, none, ""},
		"a stage that is over":                             {"stage=staging", firstStageOver(soaking), false, 0, ""},
		"a stage there is not":                             {"stage=test", soaking, false, cli.CodeUsage, `run/web-5 has no stage "test" but staging, canary`},
		"the end of a stopped run":                         {"done", stopped, false, cli.CodeStopped, "run/web-5 is stopped (The update run has been stopped): kubectl fleet resume run/web-5 has it go on"},
		"an approval of a stopped run":                     {"approval", stopped, false, cli.CodeStopped, "run/web-5 is stopped"},
		"the end of a run that is about to go on":          {"done", resumed, false, none, ""},
		"a stage that was over before the run was stopped": {"stage=staging", firstStageOver(stopped), false, 0, ""},
	} {
		t.Run(sentence, func(t *testing.T) {
			g, err := parseGoal(test.until)
			require.NoError(t, err)
			found := hub.Found{Run: new(hub.RunOf(test.run.DeepCopy()))}
			answered := request.DeepCopy()
			if test.approved {
				answered.Status.Conditions = []metav1.Condition{condition(placementv1beta1.ConditionTypeApproved, metav1.ConditionTrue, "x", 0)}
			}
			over, err := g.isOver(found, []client.Object{test.run, answered})
			assert.Equal(t, test.code != none, over)
			if test.code <= 0 {
				require.NoError(t, err)
				return
			}
			exit, is := errors.AsType[*cli.Exit](err)
			require.True(t, is, "%v", err)
			assert.Equal(t, test.code, exit.Code)
			assert.Contains(t, err.Error(), test.says)
		})
	}
}

func TestStatusUntilAnApproval(t *testing.T) {
	run, request := waitingAtCanary()
	request.Labels = map[string]string{placementv1beta1.TargetUpdateRunLabel: "web-5"}
	c := newConsole(t, run, request)
	require.NoError(t, c.run("status", "web-5", "--until", "approval"))
	assert.Contains(t, c.Out.String(), "run/web-5")
	require.ErrorContains(t, c.run("status", "web-5", "--until", "done", "-o", "json"), "run/web-5 waits for an approval of stage canary")
	assert.Regexp(t, `^\{"kind":"run","name":"run/web-5".*\}\n$`, c.Out.String(), "one object, in one line")
}

func TestAStageThatThereIsNotIsRefusedBeforeAnythingIsShown(t *testing.T) {
	early := soakingRun()
	early.Status = placementv1beta1.UpdateRunStatus{}
	for name, c := range map[string]*console{"initialized": newConsole(t, soakingRun()), "before that": newConsole(t, append(release(), early)...)} {
		t.Run(name, func(t *testing.T) {
			err := c.run("status", "web-5", "--until", "stage=nosuch")
			exit, is := errors.AsType[*cli.Exit](err)
			require.True(t, is, "%v", err)
			assert.Equal(t, cli.CodeUsage, exit.Code)
			assert.ErrorContains(t, err, `run/web-5 has no stage "nosuch" but staging, `)
			assert.Empty(t, c.Out.String())
		})
	}
}

func TestReject(t *testing.T) {
	run, request := waitingAtCanary()
	c := newConsole(t, run, request)
	require.NoError(t, c.run("reject", "web-5", "--dry-run"))
	assert.Equal(t, "stage canary of run/web-5 rejected: the run stops; kubectl fleet rollback run/web-5 takes back what it has done (dry run)\n", c.Out.String())
	assert.Empty(t, get(c, &placementv1beta1.ClusterStagedUpdateRun{}, "web-5").Spec.State)

	require.NoError(t, c.run("get", "approvals"))
	assert.Regexp(t, `^NAME +RUN +STAGE +PLACEMENT +STATE +WAITS\nweb-5-canary +web-5 +canary +web +waiting `, c.Out.String())
	require.NoError(t, c.run("reject", "web-5", "--comment", "error rate doubled"))
	assert.Equal(t, placementv1beta1.StateStop, get(c, &placementv1beta1.ClusterStagedUpdateRun{}, "web-5").Spec.State)
	status := get(c, &placementv1beta1.ClusterApprovalRequest{}, "web-5-canary").Status
	require.Len(t, status.Conditions, 1)
	assert.Equal(t, metav1.ConditionFalse, status.Conditions[0].Status)
	assert.Equal(t, "error rate doubled", status.Conditions[0].Message)
	assert.Nil(t, status.Approval)
	require.NoError(t, c.run("get", "approvals", "-o", "wide"))
	assert.Regexp(t, `web-5-canary +web-5 +canary +web +rejected .*error rate doubled`, c.Out.String())

	require.NoError(t, c.run("approve", "web-5"), "it may be reconsidered")
	require.ErrorContains(t, c.run("reject", "web-5"), "stage canary of run/web-5 is approved already, by jane")
	require.NoError(t, c.run("get", "approvals"))
	assert.Equal(t, "No run waits for an approval.\n", c.Err.String())
	require.ErrorContains(t, c.run("reject", "web-5", "--stage", "staging"), "does not wait for an approval")
	require.EqualError(t, c.run("get", "approvals", "none"), `there is no approval request "none"; kubectl fleet get approvals lists those that wait`)
}
