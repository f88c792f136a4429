package stagedupdate_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

const (
	webStalls = "Deployment prod/web: The object says that it makes no progress: ProgressDeadlineExceeded: timed out"
	webFailed = "Succeeded=False ClusterUpdatingFailed: Stalled: " + webStalls
)

// withFailOn is a hub whose stage canary lets some clusters fail, which they do at once when they stall, or not.
func withFailOn(t *testing.T, most int32, action placementv1beta1.FailureBudgetAction, failOn ...placementv1beta1.ClusterFailure) *hub {
	return withStrategy(t, func(s *placementv1beta1.UpdateStrategySpec) {
		failures := intstr.FromInt32(most)
		s.Stages[1].FailureBudget = &placementv1beta1.FailureBudget{MaxFailures: &failures, OnExceeded: action, FailOn: failOn}
	})
}

// stalls has a member report that a Deployment makes no progress, as its agent writes it.
func (h *hub) stalls(cluster string) {
	h.t.Helper()
	h.stallsSince(cluster, 0)
}

// stallsSince has it report that since a while from now.
func (h *hub) stallsSince(cluster string, from time.Duration) {
	h.t.Helper()
	work := get(h, &placementv1beta1.Work{}, placementv1beta1.MemberNamespace(cluster), "example-placement-work")
	old := work.DeepCopy()
	say := func(conditions *[]metav1.Condition, kind string, status metav1.ConditionStatus, reason, message string) {
		meta.SetStatusCondition(conditions, metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message,
			ObservedGeneration: work.Generation, LastTransitionTime: metav1.NewTime(h.clock.Now().Add(from))})
	}
	say(&work.Status.Conditions, placementv1beta1.ConditionTypeApplied, metav1.ConditionTrue, placementv1beta1.ReasonAllManifestsApplied, "")
	say(&work.Status.Conditions, placementv1beta1.ConditionTypeAvailable, metav1.ConditionFalse, placementv1beta1.ReasonSomeManifestsAreNotAvailable, "")
	work.Status.ManifestConditions = []placementv1beta1.ManifestCondition{{
		Identifier: placementv1beta1.WorkResourceIdentifier{Kind: "Deployment", Namespace: "prod", Name: "web"},
	}}
	of := &work.Status.ManifestConditions[0].Conditions
	say(of, placementv1beta1.ConditionTypeApplied, metav1.ConditionTrue, placementv1beta1.ReasonApplied, "")
	say(of, placementv1beta1.ConditionTypeAvailable, metav1.ConditionFalse, placementv1beta1.ReasonManifestNotAvailableYet, "")
	say(of, placementv1beta1.ConditionTypeStalled, metav1.ConditionTrue, placementv1beta1.ReasonStalled,
		"The object says that it makes no progress: ProgressDeadlineExceeded: timed out")
	require.NoError(h.t, h.WithWatch.Status().Update(h.t.Context(), work))
	h.tell(&placementv1beta1.Work{}, old, work)
}

func TestAClusterThatStallsFailsAtOnceAndSaysWhy(t *testing.T) {
	h := withFailOn(t, 1, placementv1beta1.FailureBudgetAbort, placementv1beta1.ClusterFailureStalled)
	h.stuck["member3"] = true
	delta := h.advancing(canaryAdvance(names("member3"), nil, nil))
	h.stalls("member3")
	assert.Equal(t, wf.StageDelta{Failed: names("member3"), NextAt: "1"}, <-delta)
	assert.Equal(t, webFailed, h.canaryCondition("member3", "Succeeded"))
	assert.Contains(t, h.events, "Warning example-run-2 ClusterUpdatingFailed: Cluster member3 in stage canary: Stalled: "+webStalls)

	in := canaryAdvance(names("member1"), nil, nil)
	in.Failed = names("member3")
	h.stuck["member1"] = true
	delta = h.advancing(in)
	h.recover("member3")
	assert.Equal(t, wf.StageDelta{Recorded: names("member3"), Waiting: "member1"}, <-delta, "it makes progress after all")
	assert.Equal(t, wasUpdated, h.canaryCondition("member3", "Succeeded"))
}

func TestAClusterThatHasStalledSinceBeforeItsUpdateHasItsTime(t *testing.T) {
	h := withFailOn(t, 1, placementv1beta1.FailureBudgetAbort, placementv1beta1.ClusterFailureStalled)
	h.stuck["member3"] = true
	delta := h.advancing(canaryAdvance(names("member3"), nil, nil))
	h.stallsSince("member3", -time.Hour)
	h.clock.Step(5 * time.Minute)
	assert.Equal(t, names("member3"), (<-delta).Failed)
	assert.Equal(t, "Succeeded=False ClusterUpdatingFailed: Not available within 5m0s: "+webStalls, h.canaryCondition("member3", "Succeeded"))
}

func TestWithoutFailOnAClusterThatStallsHasItsTimeAndSaysWhy(t *testing.T) {
	h := withFailOn(t, 1, placementv1beta1.FailureBudgetAbort)
	h.stuck["member3"] = true
	delta := h.advancing(canaryAdvance(names("member3"), nil, nil))
	h.stalls("member3")
	h.clock.Step(5*time.Minute - time.Second)
	select {
	case early := <-delta:
		t.Fatalf("it ended before its deadline: %+v", early)
	default:
	}
	h.clock.Step(time.Second)
	assert.Equal(t, names("member3"), (<-delta).Failed)
	assert.Equal(t, "Succeeded=False ClusterUpdatingFailed: Not available within 5m0s: "+webStalls, h.canaryCondition("member3", "Succeeded"))
}

func TestARunIsStuckAtOnceBecauseOfAClusterThatStallsBeyondItsBudget(t *testing.T) {
	h := withFailOn(t, 0, placementv1beta1.FailureBudgetWait, placementv1beta1.ClusterFailureStalled)
	h.stuck["member3"] = true
	delta := h.advancing(canaryAdvance(names("member3"), nil, nil))
	h.stalls("member3")
	assert.Equal(t, "member3", (<-delta).Waiting)
	assert.Contains(t, progressingOf(h), "Progressing=False UpdateRunStuck: Cluster member3 in stage canary has not finished updating: "+webStalls)
	assert.Equal(t, names("Warning example-run-2 UpdateRunStuck: Cluster member3 in stage canary has not finished updating: "+webStalls), h.events)

	delta = h.advancing(canaryAdvance(nil, names("member3"), nil)) // which returns once it waits: it does not loop
	h.recover("member3")
	assert.Equal(t, names("member3"), (<-delta).Done)
}
