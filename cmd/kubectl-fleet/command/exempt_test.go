package command

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/cmd/internal/fleetview"
)

// heldConsole has a run that waits, and a hold.
func heldConsole(t *testing.T) *console {
	run, request := waitingAtCanary()
	return newConsole(t, run, request, &fleetflowv1alpha1.RolloutHold{
		ObjectMeta: metav1.ObjectMeta{Name: "incident"}, Spec: fleetflowv1alpha1.RolloutHoldSpec{Message: "payments down"},
	})
}

func TestExemptMakesAnExemption(t *testing.T) {
	c := heldConsole(t)
	require.NoError(t, c.run("exempt", "run/web-5", "--from", "hold/incident", "--from", "window,analysis/canary", "--reason", "CVE-2026-1", "--ticket", "INC-9", "--for", "2h", "--name", "hotfix", "--yes"))
	assert.Contains(t, c.Out.String(), "exemption/hotfix lets run/web-5 go despite hold/incident, window, analysis/canary, until ")
	made := get(c, &fleetflowv1alpha1.RolloutExemption{}, "hotfix")
	assert.Equal(t, "jane", made.Annotations[placementv1beta1.CreatorAnnotation])
	end := made.Spec.ExpirationTime
	uid := get(c, &placementv1beta1.ClusterStagedUpdateRun{}, "web-5").UID
	require.NotEmpty(t, uid)
	assert.Equal(t, fleetflowv1alpha1.RolloutExemptionSpec{
		TargetRef: fleetflowv1alpha1.ExemptTarget{Kind: "ClusterStagedUpdateRun", Name: "web-5", UID: string(uid)}, Message: "CVE-2026-1", Ticket: "INC-9", ExpirationTime: end, ExemptFrom: []fleetflowv1alpha1.ExemptFrom{
			{Kind: fleetflowv1alpha1.ExemptFromHold, Name: "incident"}, {Kind: fleetflowv1alpha1.ExemptFromWindow}, {Kind: fleetflowv1alpha1.ExemptFromAnalysis, Stage: "canary"},
		},
	}, made.Spec)

	c.Out.Reset()
	require.NoError(t, c.run("get", "exemptions"))
	assert.Regexp(t, `hotfix +run/web-5 +hold/incident, window, analysis/canary +jane +not seen yet`, c.Out.String())
}

func TestExemptRefusesWhatSaysNothing(t *testing.T) {
	for sentence, test := range map[string]struct {
		args []string
		want string
	}{
		"no reason":               {[]string{"--from", "hold/incident", "--for", "2h"}, "--reason is missing"},
		"from nothing":            {[]string{"--reason", "r", "--for", "2h"}, "--from is missing"},
		"no end":                  {[]string{"--reason", "r", "--from", "window"}, "--for 0s is not how long an exemption may last"},
		"more than a day":         {[]string{"--reason", "r", "--from", "window", "--for", "25h"}, "use a duration up to 24h"},
		"an approval":             {[]string{"--reason", "r", "--from", "approval/canary", "--for", "2h"}, "an exemption never stands for an approval: kubectl fleet approve gives one"},
		"holds that have no name": {[]string{"--reason", "r", "--from", "hold", "--for", "2h"}, `--from "hold" is none of hold/NAME, window/NAME, window, busy/CLUSTER, busy and analysis/STAGE`},
		"a hold there is not":     {[]string{"--reason", "r", "--from", "hold/other", "--for", "2h"}, "there is no hold/other: kubectl fleet get holds"},
		"a window there is not":   {[]string{"--reason", "r", "--from", "window/nights", "--for", "2h"}, "there is no window/nights"},
		"a stage there is not":    {[]string{"--reason", "r", "--from", "analysis/prod", "--for", "2h"}, `run/web-5 has no stage "prod"`},
	} {
		t.Run(sentence, func(t *testing.T) {
			c := heldConsole(t)
			require.ErrorContains(t, c.run(append([]string{"exempt", "run/web-5", "--yes"}, test.args...)...), test.want)
			var all fleetflowv1alpha1.RolloutExemptionList
			require.NoError(t, c.Hub.List(t.Context(), &all))
			assert.Empty(t, all.Items, "nothing is written")
		})
	}
}

func TestTheTableOfExemptionsTellsWhichCount(t *testing.T) {
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	e := &fleetflowv1alpha1.RolloutExemption{ObjectMeta: metav1.ObjectMeta{Name: "hotfix"}, Spec: fleetflowv1alpha1.RolloutExemptionSpec{
		TargetRef: fleetflowv1alpha1.ExemptPlacement("team-a", "web"), ExemptFrom: []fleetflowv1alpha1.ExemptFrom{{Kind: fleetflowv1alpha1.ExemptFromWindow}},
		Message: "r", ExpirationTime: metav1.NewTime(now.Add(time.Hour)),
	}}
	e.Status.Conditions = []metav1.Condition{{Type: "Effective", Status: metav1.ConditionFalse, Reason: fleetflowv1alpha1.ReasonExemptionUnverified}}
	assert.Equal(t, []string{"hotfix", "placement/team-a/web", "window", "unverified", "void: unverified", "2026-11-22T13:00:00Z", "r", ""}, cellsOf(fleetview.ExemptionColumns, fleetview.ExemptionOf(e, now)))
	e.Status.Conditions[0].Reason = fleetflowv1alpha1.ReasonExemptionInForce
	assert.Equal(t, "in force", cellsOf(fleetview.ExemptionColumns, fleetview.ExemptionOf(e, now))[4])
	assert.Equal(t, "expired", cellsOf(fleetview.ExemptionColumns, fleetview.ExemptionOf(e, now.Add(time.Hour)))[4])
}
