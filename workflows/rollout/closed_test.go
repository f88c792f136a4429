package rollout_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fleetflow/fleetflow/workflows/rollout"
)

// manyClusters, and how many of them are under way.
const manyClusters, underWay = 1000, 50

// B7.5, as far as it is decided here: while a hold covers 1,000 clusters nothing begins, what is under way ends, and once the hold is
// released all go on. That a hold stops the very next batch on a real hub, the specs of the holds show.
func TestAHoldOverAThousandClustersOfARollingUpdate(t *testing.T) {
	facts := rollout.Facts{Limits: rollout.Limits{Target: manyClusters, MaxUnavailable: 2 * underWay}}
	for i := range manyClusters {
		c := rollout.Cluster{Name: fmt.Sprintf("member-%04d", i), State: rollout.Bound, Placed: true, Old: true, Available: true}
		if i < underWay {
			c.Current = true
			c.Old = false
			c.Available = false
		}
		facts.Clusters = append(facts.Clusters, c)
	}
	require.Len(t, rollout.Decide(facts).Steps, underWay, "as many as may be unavailable beside those under way")

	line := func(closed bool) {
		for i := range facts.Clusters {
			facts.Clusters[i].Waits = nil
			if closed {
				facts.Clusters[i].Waits = closedForAll()
			}
		}
	}
	line(true)
	plan := rollout.Decide(facts)
	assert.Empty(t, plan.Steps)
	assert.NotEmpty(t, plan.Closed(), "it is told what waits")
	for i := range underWay {
		facts.Clusters[i].Available = true
	}
	assert.Empty(t, rollout.Decide(facts).Steps, "nor when what was under way has ended")
	line(false)
	assert.Len(t, rollout.Decide(facts).Steps, 2*underWay)
}

func TestAHoldOverAThousandClustersOfAStage(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	facts := rollout.StageFacts{MaxConcurrency: 2 * underWay, Deadline: time.Hour, Now: now, ReliableFrom: now}
	for i := range manyClusters {
		c := rollout.StageCluster{Name: fmt.Sprintf("member-%04d", i), Owner: rollout.OwnerNone, Waits: []rollout.Wait{hold}}
		switch {
		case i < underWay:
			c.Role = rollout.RoleInFlight
			c.Phase = rollout.ClusterUpdating
			c.StartedAt = now
			c.Owner = rollout.OwnerThisRun
			c.Waits = nil
		case i < 2*underWay: // the workflow had chosen them when the hold came
			c.Role = rollout.RoleStart
		}
		facts.Clusters = append(facts.Clusters, c)
	}
	plan := rollout.DecideStage(facts)
	assert.Empty(t, plan.Start)
	assert.Len(t, plan.InFlight, underWay, "what is under way is waited for")
	assert.Empty(t, plan.Next)
	assert.False(t, plan.StandsStill)

	for i := range underWay {
		facts.Clusters[i].Available = true
	}
	plan = rollout.DecideStage(facts)
	assert.Len(t, plan.Done, underWay)
	assert.Empty(t, plan.Start)
	assert.Empty(t, plan.Next)

	for i := range facts.Clusters {
		facts.Clusters[i].Waits = nil
	}
	plan = rollout.DecideStage(facts)
	assert.Len(t, plan.Start, underWay, "those that were chosen begin at once")
	assert.Len(t, plan.Next, underWay, "and others are chosen for the places of those that are done")
}
