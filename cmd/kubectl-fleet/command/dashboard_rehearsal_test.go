package command

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testingclock "k8s.io/utils/clock/testing"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

func TestTheDashboardShowsBesideAnApprovalWhatARehearsalHasFound(t *testing.T) {
	objects := approvalFleet()
	run, is := objects[0].(*placementv1beta1.ClusterStagedUpdateRun)
	require.True(t, is)
	answered := ago(time.Minute)
	said := condition(placementv1beta1.ConditionTypeRehearsed, metav1.ConditionTrue, placementv1beta1.ReasonStageTaskRehearsalPassed, time.Minute)
	said.Message = "1 of 2 clusters would refuse the change (maxRefused 1), 1 are unknown (maxUnknown 1): " + script
	run.Status.StagesStatus[1].BeforeStageTaskStatus = []placementv1beta1.StageTaskStatus{{
		Type: placementv1beta1.StageTaskTypeRehearsal, Conditions: []metav1.Condition{said},
		Rehearsal: &placementv1beta1.StageRehearsal{
			Name: "web-5-canary-rehearsal-1", Attempt: 1, CompletionTime: &answered, Refused: 1, Unknown: 1,
			RefusedClusters: []string{"member-2"}, UnknownClusters: []string{"member-3"}, RehearsalDigest: "0a1b2c",
		},
	}}
	run.Status.StagesStatus[2].BeforeStageTaskStatus = []placementv1beta1.StageTaskStatus{{
		Type: placementv1beta1.StageTaskTypeRehearsal, Rehearsal: &placementv1beta1.StageRehearsal{Name: "web-5-rest-rehearsal-1", Attempt: 1},
	}}
	b := newBrowser(t, inMemory(objects...), testingclock.NewFakeClock(now))
	approve := b.get("/runs/web-5/approve?stage=canary").Body.String()
	plan := b.get("/runs/web-5/plan").Body.String()
	for _, page := range []string{approve, plan} {
		assert.Contains(t, page, "Rehearsal of stage canary")
		assert.Contains(t, page, "1 of 2 clusters would refuse the change (maxRefused 1)")
		assert.Contains(t, page, `<dt>Refused by<dd><a href="/clusters/member-2">member-2</a>`)
		assert.Contains(t, page, `<dt>Unknown<dd><a href="/clusters/member-3">member-3</a>`)
		assert.Contains(t, page, "<code>0a1b2c</code>")
		assert.Contains(t, page, "<code>kubectl fleet rehearse run/web-5 --stage canary</code>")
		assert.NotContains(t, page, script)
	}
	assert.NotContains(t, approve, "Rehearsal of stage rest", "it is about one stage")
	assert.Contains(t, plan, "Rehearsal of stage rest")
	assert.Contains(t, plan, "The clusters have not been asked yet.")
}
