package rollout

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// A brake that nobody has thought of yet needs a kind and its nature: both planners keep to it, and carry its wait whole.
func TestABrakeThatIsMadeUp(t *testing.T) {
	const brakeMoon = "FullMoon"
	natures[brakeMoon] = nature{atStart: true}
	defer delete(natures, brakeMoon)
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

// Every brake has a nature: one without would keep a cluster of a stage as a refused write does.
func TestEveryBrakeHasANature(t *testing.T) {
	for _, kind := range []string{
		BrakeSuspension, BrakeHook, BrakeRefusal, BrakeHold, BrakeWindow, BrakeBusy, BrakePartition, BrakePause, BrakeMaxInFlight, BrakeMaxUnavailable,
		BrakeMaxSurge, BrakeReplacement, BrakeDeparture, BrakeClaim,
	} {
		assert.Contains(t, natures, kind)
	}
}
