package rollout

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// A brake that nobody has thought of yet needs a kind and its nature: both planners keep to it, and carry its wait whole.
func TestABrakeThatIsMadeUp(t *testing.T) {
	const brakeMoon = "FullMoon"
	defer Register(brakeMoon, BrakeHold)()
	moon := Wait{Kind: brakeMoon, Reason: "MoonIsFull", Object: "moon", Why: "the moon to wane", Until: time.Date(2026, 1, 3, 10, 0, 0, 0, time.UTC)}
	of := func(cluster string, op Op) Wait {
		wait := moon
		wait.Cluster = cluster
		wait.Op = op
		return wait
	}

	stage := DecideStage(StageFacts{MaxConcurrency: 2, Clusters: []StageCluster{{Name: "a", Waits: []Wait{moon}}, {Name: "b"}}})
	assert.Equal(t, []Wait{of("a", "")}, stage.Waits)
	assert.Equal(t, stage.Waits, stage.Closed())
	assert.Empty(t, stage.Next, "it keeps its turn")
	assert.True(t, stage.StandsStill)

	outdated := Cluster{State: Bound, Placed: true, Old: true, Available: true}
	a := outdated
	a.Name = "a"
	a.Waits = []Wait{moon}
	b := outdated
	b.Name = "b"
	plan := Decide(Facts{Clusters: []Cluster{a, b}, Limits: Limits{Target: 2, MaxUnavailable: 2}})
	assert.Equal(t, []Step{{"b", Update}}, plan.Steps)
	assert.Equal(t, []Wait{of("a", Update)}, plan.Waits)

	var tally Tally
	tally.Add(plan.Waits[0])
	assert.Equal(t, "1 of 2 cluster(s) of the placement wait for the moon to wane", tally.Text(2, "the placement"))
	assert.Equal(t, moon.Until, tally.Until())
}

// A write that is refused costs nothing of the limits, and what it concerns is planned again when its time is over.
func TestARollingUpdateGoesOnWithoutWhatIsRefused(t *testing.T) {
	again := time.Date(2026, 1, 3, 10, 0, 0, 0, time.UTC)
	refused := func(c Cluster) Cluster {
		c.Waits = []Wait{{Kind: BrakeRefusal, Reason: "Refused", Why: "not on Saturdays", Until: again}}
		return c
	}
	outdated := func(name string) Cluster {
		return Cluster{Name: name, State: Bound, Placed: true, Old: true, Available: true}
	}
	picked := func(name string) Cluster { return Cluster{Name: name, State: Scheduled} }
	left := func(name string) Cluster {
		return Cluster{Name: name, State: Unscheduled, Placed: true, Available: true}
	}
	claimed := outdated("c")
	claimed.Claimed = true
	drained := outdated("c")
	drained.Prepared = Update
	limits := Limits{Target: 3, MaxUnavailable: 1, MaxSurge: 1}
	for sentence, test := range map[string]struct {
		clusters  []Cluster
		evictions []Eviction
		limits    Limits
		steps     []Step
		waits     []Op
	}{
		"an update":                   {[]Cluster{refused(outdated("a")), outdated("b"), outdated("d")}, nil, limits, []Step{{"b", Update}}, []Op{Update}},
		"a first placement":           {[]Cluster{refused(picked("a")), picked("b")}, nil, limits, []Step{{"b", Add}}, []Op{Add}},
		"a removal":                   {[]Cluster{refused(left("a")), left("b")}, nil, Limits{Target: 1, MaxUnavailable: 0}, []Step{{"b", Remove}}, []Op{Remove}},
		"to take a claim back":        {[]Cluster{refused(claimed)}, nil, Limits{Target: 1, MaxUnavailable: 0}, nil, []Op{Update}},
		"to put one back to service":  {[]Cluster{refused(drained)}, nil, Limits{Target: 1, Paused: true}, nil, []Op{GiveUpChange}},
		"an eviction, though planned": {[]Cluster{refused(outdated("a"))}, []Eviction{{Name: "e", Cluster: "a"}}, limits, nil, []Op{Evict, Update}},
	} {
		plan := Decide(Facts{Clusters: test.clusters, Limits: test.limits, Evictions: test.evictions})
		steps := slices.DeleteFunc(plan.Steps, func(s Step) bool { return s.Cluster == "d" })
		assert.Equal(t, test.steps, steps, sentence)
		assert.Empty(t, plan.Evictions, sentence)
		var ops []Op
		for _, wait := range plan.Refused() {
			ops = append(ops, wait.Op)
		}
		assert.Equal(t, test.waits, ops, sentence)
		assert.Equal(t, again, plan.WakeAt, sentence)
		assert.Equal(t, len(test.waits) == 0, plan.Settled, sentence)
	}
}

// Every brake has a nature: one without would keep a cluster of a stage as a refused write does.
func TestEveryBrakeHasANature(t *testing.T) {
	for _, kind := range []string{
		BrakeSuspension, BrakeHook, BrakeRefusal, BrakeHold, BrakeWindow, BrakeBusy, BrakeBase, BrakePartition, BrakePause, BrakeMaxInFlight, BrakeMaxUnavailable,
		BrakeMaxSurge, BrakeReplacement, BrakeDeparture, BrakeClaim,
	} {
		assert.Contains(t, natures, kind)
	}
}
