package stagedupdate_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

const (
	denial        = `admission webhook "freeze.example.com" denied the request: not on Saturdays`
	couldNotWrite = "Started=True ClusterUpdatingStarted: Cluster update started; its binding cannot be written, which is tried again: "
)

// answers is an error as the API server answers with a code.
func answers(code int32, reason metav1.StatusReason, message string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: code, Reason: reason, Message: message}}
}

// refuse has a webhook refuse each write to the binding of a cluster; nil lets them pass.
func (h *hub) refuse(cluster string, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.refused[placementv1beta1.BindingName("example-placement", "crp-uid", cluster)] = err
}

// triesOf is how often a binding was tried to be written.
func (h *hub) triesOf(cluster string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.tries[placementv1beta1.BindingName("example-placement", "crp-uid", cluster)]
}

// refusing is the hub of the documents with both clusters of the stage canary in flight, of which
// member3 cannot be written to.
func refusing(t *testing.T, change func(*placementv1beta1.UpdateStrategySpec)) *hub {
	t.Helper()
	h := withStrategy(t, change)
	h.refuse("member3", answers(http.StatusForbidden, metav1.StatusReasonForbidden, denial))
	assert.Equal(t, wf.StageDelta{Done: names("member1"), Waiting: "member3"}, must(h, h.acts.AdvanceStage, canaryAdvance(names("member3", "member1"), nil, nil)))
	return h
}

func noChange(*placementv1beta1.UpdateStrategySpec) {}

func TestAClusterThatCannotBeWrittenToKeepsNobodyWaiting(t *testing.T) {
	h := refusing(t, noChange)
	assert.Equal(t, couldNotWrite+denial, h.canaryCondition("member3", "Started"))
	assert.Equal(t, names("Warning example-run-2 WriteRefused: The binding of cluster member3 in stage canary cannot be written, which is tried again: "+denial), h.events)
	assert.Equal(t, isStarted, progressingOf(h))

	delta := h.advancing(canaryAdvance(nil, names("member3"), names("member1")))
	assert.Equal(t, wasUpdated, h.canaryCondition("member1", "Succeeded"), "others are recorded")
	h.clock.Step(5 * time.Minute)
	assert.Equal(t, wf.StageDelta{Waiting: "member3"}, <-delta)
	assert.Equal(t, "Progressing=False UpdateRunStuck: Cluster member3 in stage canary has not finished updating: its binding cannot be written: "+denial+
		". kubectl fleet skip example-run-2 member3 goes on without it. ("+strings.TrimPrefix(isStuck, "Progressing=False UpdateRunStuck: ")+")", progressingOf(h))
	assert.Equal(t, "Warning example-run-2 UpdateRunStuck: Cluster member3 in stage canary has not finished updating for 5m0s: its binding cannot be written: "+denial, h.events[1])
	assert.Len(t, h.events, 2, "each is said once: %v", h.events)

	delta = h.advancing(canaryAdvance(nil, names("member3"), nil))
	h.stuck["member3"] = true
	h.refuse("member3", nil)
	h.clock.Step(30 * time.Second)
	require.Eventually(t, func() bool { return h.canaryCondition("member3", "Started") == wasStarted }, 2*time.Minute, time.Millisecond, "it clears itself")
	assert.Equal(t, isStarted, progressingOf(h))
	assert.WithinDuration(t, h.clock.Now(), h.canaryCluster("member3").Conditions[0].LastTransitionTime.Time, time.Second, "its deadline counts from then")
	h.recover("member3")
	assert.Equal(t, names("member3"), (<-delta).Recorded)
	assert.Equal(t, newSnapshot, h.binding("member3").Spec.ResourceSnapshotName)
}

// An admission policy answers as a failed test of the patch does: with 422.
func TestAStateBeforeARemovalThatIsRefusedKeepsNobodyWaiting(t *testing.T) {
	for sentence, err := range map[string]error{
		"by a webhook":           answers(http.StatusForbidden, metav1.StatusReasonForbidden, denial),
		"by an admission policy": answers(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, denial),
	} {
		t.Run(sentence, func(t *testing.T) {
			h := howTo(t, bindingObject("member4", placementv1beta1.BindingStateUnscheduled, oldSnapshot), clusterObject("member4"),
				bindingObject("member5", placementv1beta1.BindingStateUnscheduled, oldSnapshot), clusterObject("member5"))
			initialize(h, "example-run-2")
			h.hooked()
			h.mark("member4", true)
			h.refuse("member4", err)
			require.False(t, must(h, h.acts.AdvanceDeletion, refOf("example-run-2")).Done)
			status := h.run("example-run-2").Status.DeletionStageStatus.Clusters
			assert.Equal(t, couldNotWrite+denial, conditionOf(status[0].Conditions, "Started"))
			assert.Equal(t, wasUpdated, conditionOf(status[1].Conditions, "Succeeded"))
			h.refuse("member4", nil)
			done := background(h, func() bool { return must(h, h.acts.AdvanceDeletion, refOf("example-run-2")).Done })
			h.clock.Step(2 * time.Second)
			require.Eventually(t, func() bool { return h.stands("member4") == placementv1beta1.LifecyclePreparingRemove }, 2*time.Minute, time.Millisecond)
			h.mark("member4", false)
			assert.True(t, <-done)
		})
	}
}

// The time that a cluster was refused is the time until it is tried again, within bounds.
func TestARefusedWriteIsTriedAgainLessAndLessOften(t *testing.T) {
	h := refusing(t, noChange)
	delta := h.advancing(canaryAdvance(nil, names("member3"), names("member1")))
	tries := h.triesOf("member3")
	for _, seconds := range []time.Duration{1, 1, 2, 4, 8, 16, 30, 30} {
		next := h.clock.Now().Add(seconds * time.Second)
		if late := next.Sub(next.Truncate(5 * time.Second)); seconds >= 10 && late > 0 {
			next = next.Add(5*time.Second - late) // several are tried together
		}
		h.clock.SetTime(next)
		h.untilItWaits()
		tries++
		assert.Equal(t, tries, h.triesOf("member3"), "after %ds more", seconds)
	}
	assert.Len(t, h.events, 1)
	assert.Empty(t, delta, "nobody else has to know")
}

func TestARefusedClusterCountsAsFailedWhenItsTimeIsUp(t *testing.T) {
	h := withBudget(t, "1", placementv1beta1.FailureBudgetAbort)
	h.refuse("member3", answers(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, denial))
	assert.Equal(t, wf.StageDelta{Failed: names("member3"), NextAt: "1"}, h.late(names("member3"), nil))
	assert.Equal(t, tooLate+": its binding cannot be written: "+denial, h.canaryCondition("member3", "Succeeded"))
	// Its place is another's now: it is not written to any more, even if it could be.
	h.refuse("member3", nil)
	h.stuck["member1"] = true
	in := canaryAdvance(names("member1"), nil, nil)
	in.Failed = names("member3")
	h.advancing(in)
	assert.Equal(t, oldSnapshot, h.binding("member3").Spec.ResourceSnapshotName)
}

func TestAStopDoesNotWaitForAClusterThatWasNeverWritten(t *testing.T) {
	h := refusing(t, noChange)
	h.wish(placementv1beta1.StateStop)
	delta := background(h, func() wf.StageDelta {
		return must(h, h.acts.AdvanceStage, canaryAdvance(nil, names("member3"), names("member1")))
	})
	assert.Equal(t, wf.StageDelta{Stopping: true, NotStarted: names("member3")}, soon(h, delta))
	assert.Empty(t, h.canaryCondition("member3", "Started"))
	assert.Zero(t, must(h, h.acts.LoadRun, refOf("example-run-2")).Stages[1].InFlight)
	assert.True(t, must(h, h.acts.PauseRun, refOf("example-run-2")))

	h.refuse("member3", nil)
	h.wish(placementv1beta1.StateRun)
	assert.Empty(t, must(h, h.acts.LoadStage, stageOf("example-run-2", "canary", 1)).Started)
	assert.Equal(t, names("member3"), must(h, h.acts.AdvanceStage, canaryAdvance(names("member3"), nil, nil)).Recorded)
}

func TestAnotherProcessKnowsWhatCannotBeWritten(t *testing.T) {
	h := refusing(t, noChange)
	h.acts = h.restarted()
	h.refuse("member3", nil)
	assert.Equal(t, names("member3"), must(h, h.acts.AdvanceStage, canaryAdvance(nil, names("member3"), names("member1"))).Recorded)
	assert.Equal(t, wasStarted, h.canaryCondition("member3", "Started"), "nothing of it stays")

	h = refusing(t, noChange)
	h.acts = h.restarted()
	h.advancing(canaryAdvance(nil, names("member3"), names("member1")))
	assert.Len(t, h.events, 1, "what the status says is not told again: %v", h.events)
}

func TestARetryOfARefusedClusterIsMadeAtOnce(t *testing.T) {
	h := refusing(t, noChange)
	h.clock.Step(time.Minute)
	h.refuse("member3", nil)
	h.ask(action("member3", retry, 1))
	assert.Equal(t, names("member3"), must(h, h.acts.AdvanceStage, canaryAdvance(nil, names("member3"), names("member1"))).Recorded)
}

func TestOnlyWhatIsRefusedForGoodIsARefusal(t *testing.T) {
	for sentence, test := range map[string]struct {
		err     error
		refusal bool
	}{
		"a webhook says no":                       {answers(403, metav1.StatusReasonForbidden, denial), true},
		"a policy says no":                        {answers(422, metav1.StatusReasonInvalid, denial), true},
		"a webhook says that it is a bad request": {answers(400, metav1.StatusReasonBadRequest, denial), true},
		"a webhook says that it is a conflict":    {answers(409, metav1.StatusReasonConflict, denial), true},
		"a webhook does not answer":               {answers(500, metav1.StatusReasonInternalError, `Internal error occurred: failed calling webhook "x": connection refused`), true},
		"the API server has too much to do":       {answers(429, metav1.StatusReasonTooManyRequests, "later"), false},
		"the API server is in trouble":            {answers(500, metav1.StatusReasonInternalError, "etcdserver: leader changed"), false},
		"the API server is not there":             {answers(503, metav1.StatusReasonServiceUnavailable, "apiserver is shutting down"), false},
		"it takes too long":                       {answers(504, metav1.StatusReasonTimeout, "request did not complete within the allotted time"), false},
		"the token has expired":                   {answers(401, metav1.StatusReasonUnauthorized, "Unauthorized"), false},
		"nobody answers":                          {errors.New("dial tcp 127.0.0.1:6443: connect: connection refused"), false},
	} {
		t.Run(sentence, func(t *testing.T) {
			h := initialized(t)
			h.refuse("member3", test.err)
			h.stuck["member1"] = true
			if test.refusal {
				h.advancing(canaryAdvance(names("member3", "member1"), nil, nil))
				assert.Contains(t, h.canaryCondition("member3", "Started"), couldNotWrite)
				return
			}
			_, err := call(h, h.acts.AdvanceStage, canaryAdvance(names("member3", "member1"), nil, nil))
			require.ErrorContains(t, err, test.err.Error())
			assert.Equal(t, wasStarted, h.canaryCondition("member3", "Started"))
			assert.Empty(t, h.events)
		})
	}
}

func TestALostRaceForABindingIsNoRefusal(t *testing.T) {
	h := initialized(t)
	raced := answers(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, "the server rejected our request due to an error in our request")
	h.refuse("member3", raced)
	name := placementv1beta1.BindingName("example-placement", "crp-uid", "member3")
	h.onGet[name] = func() { // the first look; between it and the write, somebody else writes
		h.onGet[name] = func() {
			h.refuse("member3", nil)
			edit(h, h.binding("member3"), func(b *placementv1beta1.ClusterResourceBinding) { b.Spec.ApplyStrategy = nil; b.Labels["x"] = "y" })
		}
	}
	assert.Equal(t, names("member3"), must(h, h.acts.AdvanceStage, canaryAdvance(names("member3"), nil, nil)).Done)
	assert.Empty(t, h.events)
	assert.Equal(t, 2, h.triesOf("member3"))
}

// In a run of thousands of clusters the status has no room for what is wrong with each.
func TestALargeRunSaysItOfTheFirstFew(t *testing.T) {
	const many = 501
	clusters := make([]string, many)
	objects := []client.Object{}
	for i := range clusters {
		clusters[i] = fmt.Sprintf("c-%04d", i)
		objects = append(objects, clusterObject(clusters[i], "environment", "staging"), bindingObject(clusters[i], placementv1beta1.BindingStateBound, oldSnapshot))
	}
	strategy := strategyObject()
	strategy.Spec.Stages = strategy.Spec.Stages[:1]
	h := newHub(t, append(objects, placementObject(), policyObject(clusters...), snapshotObject(0), snapshotObject(1), strategy, runObject("example-run-2", "0"))...)
	require.True(t, initialize(h, "example-run-2").Initialized)
	h.events = nil
	for _, name := range clusters[:12] {
		h.refuse(name, answers(403, metav1.StatusReasonForbidden, denial))
	}
	h.advancing(wf.StageAdvance{StageRequest: stageOf("example-run-2", "staging", 0), Start: clusters[:12]})
	said := 0
	for _, c := range h.run("example-run-2").Status.StagesStatus[0].Clusters {
		if conditionOf(c.Conditions, "Started") == couldNotWrite+denial {
			said++
		}
	}
	assert.Equal(t, 10, said)
	assert.Len(t, h.events, 10)
}

func TestABindingThatMustNotBeDeletedIsNamedAndTriedAgain(t *testing.T) {
	h := howTo(t, bindingObject("member4", placementv1beta1.BindingStateUnscheduled, oldSnapshot))
	initialize(h, "example-run-2")
	h.events = nil
	advance := func() bool { return must(h, h.acts.AdvanceDeletion, refOf("example-run-2")).Done }
	says := func() string {
		return conditionOf(h.run("example-run-2").Status.DeletionStageStatus.Clusters[0].Conditions, "Started")
	}
	h.refuse("member4", answers(403, metav1.StatusReasonForbidden, denial))
	done := background(h, advance)
	h.untilItWaits()
	assert.Equal(t, couldNotWrite+denial, says())
	assert.Equal(t, names("Warning example-run-2 WriteRefused: The binding of cluster member4 in stage kubernetes-fleet.io/deleteStage cannot be written, which is tried again: "+denial), h.events)
	tries := h.triesOf("member4")
	h.clock.Step(time.Second)
	require.Eventually(t, func() bool { return h.triesOf("member4") > tries }, 2*time.Minute, time.Millisecond)
	h.clock.Step(5 * time.Minute)
	assert.False(t, <-done)
	assert.Equal(t, "Progressing=False UpdateRunStuck: Cluster member4 in stage kubernetes-fleet.io/deleteStage has not finished updating: its binding cannot be written: "+denial+
		". (The updateRun is stuck waiting for cluster member4 in stage kubernetes-fleet.io/deleteStage to finish updating, please check crp status for potential errors)", progressingOf(h))

	h.wish(placementv1beta1.StateStop)
	assert.False(t, advance(), "a stop does not wait for it")
	assert.Zero(t, must(h, h.acts.LoadRun, refOf("example-run-2")).DeletionInFlight)
	assert.True(t, must(h, h.acts.PauseRun, refOf("example-run-2")))

	h.refuse("member4", nil)
	h.wish(placementv1beta1.StateRun)
	h.clock.Step(time.Minute)
	assert.True(t, advance())
}

// A cluster goes out of service before a hook is answered: that this cannot be written is told as any other refusal is.
func TestABindingThatMustNotSayWhereItsClusterStandsIsNamed(t *testing.T) {
	h := howTo(t, bindingObject("member4", placementv1beta1.BindingStateUnscheduled, oldSnapshot), clusterObject("member4"))
	initialize(h, "example-run-2")
	h.hooked()
	h.mark("member4", true)
	h.refuse("member4", answers(403, metav1.StatusReasonForbidden, denial))
	done := background(h, func() bool { return must(h, h.acts.AdvanceDeletion, refOf("example-run-2")).Done })
	h.untilItWaits()
	stage := h.run("example-run-2").Status.DeletionStageStatus
	assert.Equal(t, couldNotWrite+denial, conditionOf(stage.Clusters[0].Conditions, "Started"))
	h.clock.Step(5 * time.Minute)
	assert.False(t, <-done)
}
