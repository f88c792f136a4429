package work

import (
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testclock "k8s.io/utils/clock/testing"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/controllers/member/cause"
)

// unavailable is a step whose object has not been available for a while.
func unavailable(looks bool, own string) *step {
	s := &step{outcome: outcome{id: placementv1beta1.WorkResourceIdentifier{Kind: "Widget", Name: "w"}}}
	s.outcome.failing = failing{since: noon.Add(-time.Hour), looks: looks, subject: cause.Subject{UID: "of-w", Own: cause.Cause{Reason: "NotReady", Message: own}}}
	return s
}

func newTestFinder() *cause.Finder {
	return cause.NewFinder(cause.Options{Clock: testclock.NewFakeClock(noon.Time), Log: logr.Discard()})
}

// A Work is not written twice because its agent has been restarted: what the former one has reported holds until it is looked for again.
func TestACauseHoldsOverARestartOfTheAgent(t *testing.T) {
	s := unavailable(true, "")
	recallCauses([]*step{s}, placementv1beta1.WorkStatus{ManifestConditions: []placementv1beta1.ManifestCondition{{
		Identifier: s.outcome.id, Conditions: []metav1.Condition{
			{Type: placementv1beta1.ConditionTypeFailing, Status: metav1.ConditionTrue, Reason: "CrashLoop", Message: "exit 1"},
		},
	}}})
	finder := newTestFinder()
	findCauses(finder, "w", []*step{s}, noon.Time)
	assert.Equal(t, cause.Cause{Reason: "CrashLoop", Message: "exit 1"}, s.outcome.failing.told)
	assert.True(t, s.outcome.failing.isCurrent(finder, noon.Time))

	well := &step{outcome: outcome{id: s.outcome.id}}
	recallCauses([]*step{well}, placementv1beta1.WorkStatus{ManifestConditions: []placementv1beta1.ManifestCondition{{
		Identifier: s.outcome.id, Conditions: []metav1.Condition{{Type: placementv1beta1.ConditionTypeFailing, Status: metav1.ConditionTrue, Reason: "CrashLoop"}},
	}}})
	assert.Empty(t, well.outcome.failing.told, "it is available now")
}

// A controller may count in the message of its condition: the Work is not written each time.
func TestOtherWordsOfACauseAreReportedOnceAMinute(t *testing.T) {
	finder := newTestFinder()
	s := unavailable(false, "1 of 3 done")
	find := func(after time.Duration) string {
		findCauses(finder, "w", []*step{s}, noon.Add(after))
		return s.outcome.failing.told.Message
	}
	assert.Equal(t, "1 of 3 done", find(0))
	s.outcome.failing.subject.Own.Message = "2 of 3 done"
	assert.Equal(t, "1 of 3 done", find(time.Second))
	assert.True(t, s.outcome.failing.isCurrent(finder, noon.Add(time.Second)))
	assert.Equal(t, noon.Add(cause.Renewal), earliestCause([]outcome{s.outcome}, finder, noon.Add(time.Second)), "it is due then")
	assert.False(t, s.outcome.failing.isCurrent(finder, noon.Add(cause.Renewal)))
	assert.Equal(t, "2 of 3 done", find(cause.Renewal))
	s.outcome.failing.subject.Own = cause.Cause{Reason: "NoAddress", Message: "none"}
	assert.Equal(t, "none", find(cause.Renewal+time.Second), "another cause is reported at once")
}

// What is on its way is not looked at before its time.
func TestACauseIsNotLookedForAtOnce(t *testing.T) {
	finder := newTestFinder()
	s := unavailable(true, "")
	s.outcome.failing.since = noon.Time
	findCauses(finder, "w", []*step{s}, noon.Time)
	assert.False(t, s.outcome.failing.isLookedAt)
	assert.Equal(t, noon.Add(cause.Patience), earliestCause([]outcome{s.outcome}, finder, noon.Time))
	findCauses(finder, "w", []*step{s}, noon.Add(cause.Patience))
	assert.True(t, s.outcome.failing.isLookedAt)
}
