package plan

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetflow/fleetflow/activities/brake"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
)

// nights opens each day from 22:00 to 06:00 in Berlin.
func nights() fleetflowv1alpha1.RolloutWindow {
	return fleetflowv1alpha1.RolloutWindow{ObjectMeta: metav1.ObjectMeta{Name: "nights"}, Spec: fleetflowv1alpha1.RolloutWindowSpec{
		Type: fleetflowv1alpha1.WindowAllow, Scope: fleetflowv1alpha1.WindowStage, Stages: []string{"prod"}, TimeZone: "Europe/Berlin",
		Weekly: []fleetflowv1alpha1.WeeklyOpening{{
			Days: []fleetflowv1alpha1.Weekday{"Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"}, DailyHours: fleetflowv1alpha1.DailyHours{Start: "22:00", End: "06:00"},
		}},
	}}
}

func TestAPlanTellsWhenItsWavesOpen(t *testing.T) {
	noon := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	made := func() Plan {
		return Plan{Stages: []Stage{
			{Name: "canary", Waves: [][]Cluster{{{Name: "a", From: "1"}}}, soak: time.Hour},
			{Name: "prod", Waves: [][]Cluster{{{Name: "b", From: "1"}, {Name: "c"}}, {{Name: "d", From: "1"}}}, soak: 8 * time.Hour},
			{Name: "rest", Waves: [][]Cluster{{{Name: "e", From: "1"}}}},
		}}
	}
	gates := func(holds ...fleetflowv1alpha1.RolloutHold) func(Stage) *brake.Chain {
		return func(stage Stage) *brake.Chain {
			of := brake.Subject{Run: "web-17", Stage: stage.Name, Windows: stage.Windows}
			return brake.NewChain(brake.Holds(holds, of), brake.Windows([]fleetflowv1alpha1.RolloutWindow{nights()}, of))
		}
	}
	p := made()
	p.AddOpenings(gates(), nil, noon)
	assert.Empty(t, p.Stages[0].Openings)
	require.Len(t, p.Stages[1].Openings, 1, "the second wave begins in the same opening")
	opens := time.Date(2026, 11, 23, 21, 0, 0, 0, time.UTC)
	assert.True(t, p.Stages[1].Openings[0].Opens.Equal(opens))
	assert.Equal(t, 1, p.Stages[1].Openings[0].Wave)
	assert.Equal(t, "window nights: opens 2026-11-23T22:00:00+01:00", p.Stages[1].Openings[0].For)
	assert.True(t, p.EarliestEnd.Equal(opens.Add(8*time.Hour)), p.EarliestEnd)

	p = made()
	p.AddOpenings(gates(), nil, time.Date(2026, 11, 23, 22, 0, 0, 0, time.UTC))
	assert.Nil(t, p.EarliestEnd, "it is night")

	p = made()
	storm := fleetflowv1alpha1.RolloutHold{ObjectMeta: metav1.ObjectMeta{Name: "storm"}, Spec: fleetflowv1alpha1.RolloutHoldSpec{
		Message: "r", ClusterSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"region": "west"}},
	}}
	p.AddOpenings(gates(storm), map[string]map[string]string{"c": {"region": "west"}}, noon)
	assert.Equal(t, []Opening{{Wave: 1, Cluster: "c", For: "hold storm (r)"}}, p.Stages[1].Openings, "time alone opens it never")
	assert.Empty(t, p.Stages[2].Openings, "what comes after it is not known")
	assert.Nil(t, p.EarliestEnd)
}

func TestThePlanOfARunUnderWayCountsFromWhereItIs(t *testing.T) {
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	expires := metav1.NewTime(now.Add(2 * time.Hour))
	storm := fleetflowv1alpha1.RolloutHold{ObjectMeta: metav1.ObjectMeta{Name: "storm"}, Spec: fleetflowv1alpha1.RolloutHoldSpec{
		Message: "r", ExpirationTime: &expires,
	}}
	soaksUntil := now.Add(20 * time.Minute)
	p := Plan{Stages: []Stage{
		{Name: "staging", Waves: [][]Cluster{{{Name: "a", begun: true}}}, soak: 8 * time.Hour, over: true},
		{Name: "canary", Waves: [][]Cluster{{{Name: "b", begun: true}}}, soaks: soaksUntil},
		{Name: "prod", Waves: [][]Cluster{{{Name: "c", From: "1"}}, {{Name: "d", From: "1"}}}, soak: time.Hour},
	}}
	p.AddOpenings(func(Stage) *brake.Chain {
		return brake.NewChain(brake.Holds([]fleetflowv1alpha1.RolloutHold{storm}, brake.Subject{}))
	}, nil, now)
	assert.Zero(t, p.Stages[0].Earliest, "it is over")
	assert.Empty(t, p.Stages[1].Openings, "what has begun waits for no opening")
	assert.Equal(t, Earliest{now, now, soaksUntil}, p.Stages[1].Earliest, "half of its soak is over")
	assert.Equal(t, soaksUntil, p.Stages[2].Earliest.Begins)
	assert.True(t, p.Stages[2].Earliest.Opened.Equal(expires.Time))
	assert.True(t, p.EarliestEnd.Equal(expires.Add(time.Hour)), p.EarliestEnd)
}

func TestAPlanOfAStrategyThatSkipsHeldClustersWaitsForTheLastOfThem(t *testing.T) {
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	expires := metav1.NewTime(now.Add(time.Hour))
	storm := fleetflowv1alpha1.RolloutHold{ObjectMeta: metav1.ObjectMeta{Name: "storm"}, Spec: fleetflowv1alpha1.RolloutHoldSpec{
		Message: "r", ClusterSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"region": "west"}}, ExpirationTime: &expires,
	}}
	p := Plan{Stages: []Stage{{Name: "all", SkipsHeld: true, Windows: []string{"nights"}, Waves: [][]Cluster{{{Name: "a"}}, {{Name: "b"}}, {{Name: "c"}}}}}}
	p.AddOpenings(func(Stage) *brake.Chain {
		return brake.NewChain(brake.Holds([]fleetflowv1alpha1.RolloutHold{storm}, brake.Subject{}))
	}, map[string]map[string]string{"a": {"region": "west"}, "c": {"region": "west"}}, now)
	require.Len(t, p.Stages[0].Openings, 2, "b goes before a")
	assert.Equal(t, []int{1, 3}, []int{p.Stages[0].Openings[0].Wave, p.Stages[0].Openings[1].Wave})
	assert.True(t, p.EarliestEnd.Equal(expires.Time))
}

func TestAPlanNamesWindowsThatItsStagesCannotName(t *testing.T) {
	named := nights()
	other := nights()
	some := nights()
	named.Name, other.Name, some.Name = "named", "other", "some"
	other.Spec.Scope = fleetflowv1alpha1.WindowFleet
	some.Spec.PlacementSelector = &metav1.LabelSelector{}
	p := Plan{Stages: []Stage{{Name: "all", Windows: []string{"named", "other", "some", "gone"}}}}
	p.CheckWindows([]fleetflowv1alpha1.RolloutWindow{named, other, some})
	assert.Equal(t, []string{
		"stage all names rollout window other in windows: its scope is Fleet, and stages name windows of scope Stage: it counts without being named, or create another",
		"stage all names rollout window some in windows: it has a placementSelector, which says what it counts for: remove that, or the name",
		"stage all names rollout window gone in windows: there is none: create it, or remove the name",
	}, p.Problems)
}
