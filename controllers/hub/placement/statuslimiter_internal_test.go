package placement

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

func TestHowLongToWaitBetweenStatuses(t *testing.T) {
	for sentence, test := range map[string]struct {
		clusters int
		took     time.Duration
		external bool
		want     time.Duration
	}{
		"a small status that is written at once comes twice in a second": {clusters: 3, took: 5 * time.Millisecond, want: statusPause},
		"a large one comes less often":                                   {clusters: 1000, took: 5 * time.Millisecond, want: 7 * statusPause},
		"a busy hub is told less often":                                  {clusters: 100, took: 100 * time.Millisecond, want: 2 * time.Second},
		"however busy the hub is, something is told":                     {clusters: 100, took: 10 * time.Second, want: maxStatusPause},
		"what a run tells anyway has time while the hub is busy":         {clusters: 100, took: 100 * time.Millisecond, external: true, want: 6 * time.Second},
		"and is told in the end":                                         {clusters: 100, took: 10 * time.Second, external: true, want: maxExternalPause},
		"a hub that is not busy tells of runs at once, too":              {clusters: 100, took: 5 * time.Millisecond, external: true, want: statusPause},
	} {
		t.Run(sentence, func(t *testing.T) {
			l := newStatusLimiter()
			now := time.Now()
			l.recordWrite("app", now, pauseAfter(test.clusters, test.external, test.took))
			assert.Equal(t, 2*test.want, l.waitBeforeWrite("app", false, now), "what is on its way")
			assert.Zero(t, l.waitBeforeWrite("app", true, now), "how it has come out is told at once")
		})
	}
}

func TestARunIsNoEndOfAnExternalPlacement(t *testing.T) {
	scheduled := func(index string, generation int64, others ...metav1.Condition) placementv1beta1.PlacementStatus {
		return placementv1beta1.PlacementStatus{ObservedResourceIndex: index, Conditions: append([]metav1.Condition{{
			Type:   placementv1beta1.Scope{}.PlacementConditionType(placementv1beta1.ConditionTypeScheduled),
			Status: metav1.ConditionTrue, ObservedGeneration: generation,
		}}, others...)}
	}
	facts := func(before placementv1beta1.PlacementStatus) *Facts {
		return &Facts{Placement: &placementv1beta1.ClusterResourcePlacement{
			Spec:   placementv1beta1.PlacementSpec{Strategy: &placementv1beta1.RolloutStrategy{Type: placementv1beta1.ExternalRolloutStrategyType}},
			Status: before,
		}}
	}
	available := metav1.Condition{
		Type:   placementv1beta1.Scope{}.PlacementConditionType(placementv1beta1.ConditionTypeAvailable),
		Status: metav1.ConditionTrue,
	}
	assert.True(t, isOutcome(facts(placementv1beta1.PlacementStatus{}), scheduled("0", 1)), "its clusters are picked")
	assert.False(t, isOutcome(facts(scheduled("0", 1)), scheduled("0", 1)), "a run is on its way")
	assert.True(t, isOutcome(facts(scheduled("0", 1)), scheduled("1", 1)), "other resources are selected")
	assert.True(t, isOutcome(facts(scheduled("0", 1)), scheduled("0", 2)), "it was changed, and scheduled again")
	assert.True(t, isOutcome(facts(scheduled("0", 1)), scheduled("0", 1, available)), "all clusters are updated")
}

func TestAStatusThatHasToWaitIsNotWorkedOutAtEachEvent(t *testing.T) {
	l := newStatusLimiter()
	now := time.Now()
	assert.Zero(t, l.waitBeforeProjection("app", now), "the first one is")
	l.recordWrite("app", now, pauses{statusPause, statusPause})
	assert.Zero(t, l.waitBeforeProjection("app", now), "it may be the end already")
	l.recordProjection("app", now)
	assert.Equal(t, statusPause/projectionsPerPause, l.waitBeforeProjection("app", now), "it was not; the next look is worth it a little later")
	assert.Zero(t, l.waitBeforeProjection("app", now.Add(statusPause/projectionsPerPause)))
	assert.Zero(t, l.waitBeforeWrite("app", true, now), "what is found then is written at once")
	l.recordWrite("app", now, pauses{statusPause, statusPause})
	assert.Equal(t, 2*statusPause, l.waitBeforeProjection("app", now), "after two writes there is nothing to work out")
	assert.Zero(t, l.waitBeforeProjection("other", now), "another placement has its own pauses")
}

// The API server may be away while a status is written, which then takes long.
func TestHowARunHasComeOutIsToldSoonHoweverLongAWriteTook(t *testing.T) {
	l := newStatusLimiter()
	now := time.Now()
	l.recordWrite("app", now, pauseAfter(3, true, time.Millisecond))
	l.recordWrite("app", now.Add(time.Second), pauseAfter(3, true, 10*time.Second))
	assert.Equal(t, 2*maxExternalPause, l.waitBeforeWrite("app", false, now.Add(time.Second)), "progress has time")
	assert.LessOrEqual(t, l.waitBeforeWrite("app", true, now.Add(time.Second)), 2*maxStatusPause)
	l.recordProjection("app", now.Add(20*time.Second))
	assert.LessOrEqual(t, l.waitBeforeProjection("app", now.Add(20*time.Second)), maxStatusPause/projectionsPerPause)
}
