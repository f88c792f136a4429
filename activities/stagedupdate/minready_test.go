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

// withMinReady is a hub whose stage canary has its clusters available for 30 seconds, and no budget or one of a cluster.
func withMinReady(t *testing.T, budget bool) *hub {
	return withStrategy(t, func(s *placementv1beta1.UpdateStrategySpec) {
		s.Stages[1].MinReadySeconds = new(int32(30))
		if budget {
			most := intstr.FromInt32(1)
			s.Stages[1].FailureBudget = &placementv1beta1.FailureBudget{MaxFailures: &most, OnExceeded: placementv1beta1.FailureBudgetAbort}
		}
	})
}

// reports has the status of a cluster's binding say whether what is placed is available, as the binding controller writes it.
func (h *hub) reports(cluster string, available metav1.ConditionStatus) {
	h.t.Helper()
	old := h.binding(cluster)
	binding := editStatus(h, old.DeepCopy(), func(b *placementv1beta1.ClusterResourceBinding) {
		meta.SetStatusCondition(&b.Status.Conditions, metav1.Condition{Type: placementv1beta1.ConditionTypeAvailable, Status: available,
			Reason: "Reported", ObservedGeneration: b.Generation, LastTransitionTime: metav1.NewTime(h.clock.Now())})
	})
	h.tell(&placementv1beta1.ClusterResourceBinding{}, old, binding)
}

func TestAClusterIsDoneOnceItHasBeenAvailableForLongEnough(t *testing.T) {
	h := withMinReady(t, false)
	delta := h.advancing(canaryAdvance(names("member3"), nil, nil))
	h.reports("member3", metav1.ConditionTrue)
	h.untilItWaits()
	h.clock.Step(29 * time.Second)
	select {
	case early := <-delta:
		t.Fatalf("it ended after 29 seconds: %+v", early)
	default:
	}
	h.clock.Step(time.Second)
	assert.Equal(t, names("member3"), (<-delta).Done)
}

func TestABreakBeginsTheTimeAnew(t *testing.T) {
	h := withMinReady(t, false)
	delta := h.advancing(canaryAdvance(names("member3"), nil, nil))
	for range 3 { // available for 20 seconds at a time
		h.reports("member3", metav1.ConditionTrue)
		h.untilItWaits()
		h.clock.Step(20 * time.Second)
		h.reports("member3", metav1.ConditionFalse)
	}
	h.reports("member3", metav1.ConditionTrue)
	h.untilItWaits()
	select {
	case early := <-delta:
		t.Fatalf("it ended though it was never available for 30 seconds: %+v", early)
	default:
	}
	h.clock.Step(30 * time.Second)
	assert.Equal(t, names("member3"), (<-delta).Done)
}

func TestATimeThatIsNotOverAtTheDeadlineIsTold(t *testing.T) {
	h := withMinReady(t, true)
	delta := h.advancing(canaryAdvance(names("member3"), nil, nil))
	h.clock.Step(5*time.Minute + 20*time.Second) // 5 minutes and the 30 seconds are the deadline
	h.reports("member3", metav1.ConditionTrue)
	h.untilItWaits()
	h.clock.Step(10 * time.Second)
	assert.Equal(t, names("member3"), (<-delta).Failed)
	assert.Contains(t, h.canaryCondition("member3", "Succeeded"), "Not available within 5m30s: available since ")
	assert.Contains(t, h.canaryCondition("member3", "Succeeded"), ", and minReadySeconds is 30")
}

func TestACallAfterAnotherWaitsForTheRestOfTheTime(t *testing.T) {
	h := withMinReady(t, false)
	delta := h.advancing(canaryAdvance(names("member3"), nil, nil))
	h.reports("member3", metav1.ConditionTrue)
	h.untilItWaits()
	h.clock.Step(10 * time.Second)
	h.acts = h.restarted() // another process takes over
	next := h.advancing(canaryAdvance(nil, names("member3"), nil))
	h.clock.Step(20 * time.Second)
	assert.Equal(t, names("member3"), (<-next).Done)
	<-delta
}

func TestAClusterThatWasGivenUpRecoversAfterTheSameTime(t *testing.T) {
	h := withMinReady(t, true)
	h.stuck["member3"] = true
	late := h.advancing(canaryAdvance(names("member3"), nil, nil))
	h.clock.Step(5*time.Minute + 30*time.Second)
	require.Equal(t, names("member3"), (<-late).Failed)
	in := canaryAdvance(names("member1"), nil, nil)
	in.Failed = names("member3")
	delta := h.advancing(in)
	h.reports("member1", metav1.ConditionTrue)
	h.untilItWaits()
	h.clock.Step(30 * time.Second)
	<-delta
	gate := wf.GateRequest{StageRequest: stageOf("example-run-2", "canary", 1)}
	h.recover("member3")
	h.reports("member3", metav1.ConditionTrue)
	must(h, h.acts.CheckGates, gate)
	assert.NotEqual(t, wasUpdated, h.canaryCondition("member3", "Succeeded"), "it is available, and not for long enough")
	h.clock.Step(30 * time.Second)
	must(h, h.acts.CheckGates, gate)
	assert.Equal(t, wasUpdated, h.canaryCondition("member3", "Succeeded"))
}
