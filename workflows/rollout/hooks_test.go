package rollout_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/fleetflow/fleetflow/workflows/rollout"
)

// held is a cluster whose hooks hold every change.
func held(c rollout.Cluster) rollout.Cluster {
	for _, op := range []rollout.Op{rollout.Update, rollout.Remove} {
		c.Waits = append(c.Waits, rollout.Wait{Kind: rollout.BrakeHook, Op: op, Object: "preUpdate", Why: "a label"})
	}
	return c
}

// prepared is a cluster that is out of service for a change.
func prepared(c rollout.Cluster, change rollout.Op) rollout.Cluster {
	c.Prepared, c.Drained, c.Available = change, c.Available, false
	return c
}

func TestHooksHoldChanges(t *testing.T) {
	evicted := []rollout.Eviction{{Name: "off", Cluster: "a"}}
	for sentence, test := range map[string]struct {
		facts  rollout.Facts
		want   []rollout.Step
		evicts int
		hooked int
	}{
		"a cluster is prepared before it is updated, within the limit": {
			facts: rollout.Facts{Clusters: []rollout.Cluster{held(outdated("a")), held(outdated("b"))}, Limits: limits(2, 1, 0)},
			want:  []rollout.Step{{Cluster: "a", Op: rollout.PrepareUpdate}},
		},
		"one that is prepared counts as unavailable and waits": {
			facts:  rollout.Facts{Clusters: []rollout.Cluster{held(prepared(outdated("a"), rollout.Update)), held(outdated("b"))}, Limits: limits(2, 1, 0)},
			hooked: 1,
		},
		"one that is prepared comes first when it is let go": {
			facts: rollout.Facts{Clusters: []rollout.Cluster{down(outdated("a")), prepared(outdated("b"), rollout.Update)}, Limits: limits(2, 1, 0)},
			want:  []rollout.Step{{Cluster: "b", Op: rollout.Update}, {Cluster: "a", Op: rollout.Update}},
		},
		"a broken cluster waits for its hook, too": {
			facts: rollout.Facts{Clusters: []rollout.Cluster{held(failed(outdated("a")))}, Limits: limits(1, 1, 0)},
			want:  []rollout.Step{{Cluster: "a", Op: rollout.PrepareUpdate}},
		},
		"first placements are not held": {
			facts: rollout.Facts{Clusters: []rollout.Cluster{fresh("a")}, Limits: limits(1, 1, 0)},
			want:  []rollout.Step{{Cluster: "a", Op: rollout.Add}},
		},
		"a removal is prepared": {
			facts: rollout.Facts{Clusters: []rollout.Cluster{held(deselected("a")), current("b")}, Limits: limits(1, 1, 0)},
			want:  []rollout.Step{{Cluster: "a", Op: rollout.PrepareRemove}},
		},
		"a removal is made once it is let go": {
			facts: rollout.Facts{Clusters: []rollout.Cluster{prepared(deselected("a"), rollout.Remove), current("b")}, Limits: limits(1, 0, 1)},
			want:  []rollout.Step{{Cluster: "a", Op: rollout.Remove}},
		},
		"a cluster that is picked again goes back into service": {
			facts: rollout.Facts{Clusters: []rollout.Cluster{held(prepared(current("a"), rollout.Remove))}, Limits: limits(1, 1, 0)},
			want:  []rollout.Step{{Cluster: "a", Op: rollout.GiveUpChange}},
		},
		"a pause puts a prepared cluster back into service": {
			facts: rollout.Facts{Clusters: []rollout.Cluster{held(prepared(outdated("a"), rollout.Update))}, Limits: rollout.Limits{Target: 1, MaxUnavailable: 1, Paused: true}},
			want:  []rollout.Step{{Cluster: "a", Op: rollout.GiveUpChange}},
		},
		"those of update runs are the runs'": {
			facts: rollout.Facts{Clusters: []rollout.Cluster{held(prepared(outdated("a"), rollout.Update))}, Limits: limits(1, 1, 0), EvictionsOnly: true},
		},
		"an eviction is prepared": {
			facts: rollout.Facts{Clusters: []rollout.Cluster{held(current("a")), current("b")}, Limits: limits(2, 1, 0), Evictions: evicted},
			want:  []rollout.Step{{Cluster: "a", Op: rollout.PrepareRemove}},
		},
		"an eviction waits, and the cluster is not updated meanwhile": {
			facts:  rollout.Facts{Clusters: []rollout.Cluster{held(prepared(outdated("a"), rollout.Remove)), current("b")}, Limits: limits(2, 1, 0), Evictions: evicted},
			hooked: 1,
		},
		"the budget that let it be prepared lets it be evicted": {
			facts: rollout.Facts{
				Clusters: []rollout.Cluster{prepared(current("a"), rollout.Remove), current("b")}, Limits: limits(2, 1, 0), Evictions: evicted,
				Policy: rollout.EvictionPolicy{Type: "PickN", Clusters: 2, Budget: &rollout.Budget{MinAvailable: "1"}},
			},
			evicts: 1,
		},
		"the partition counts prepared clusters as going": {
			facts: rollout.Facts{
				Clusters: []rollout.Cluster{held(prepared(outdated("a"), rollout.Update)), held(outdated("b"))},
				Limits:   rollout.Limits{Target: 2, MaxUnavailable: 2, Partition: 1},
			},
			hooked: 1,
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			plan := rollout.Decide(test.facts)
			assert.Equal(t, test.want, plan.Steps)
			assert.Len(t, plan.Evictions, test.evicts)
			assert.Equal(t, test.hooked, plan.Hooked())
			assert.False(t, plan.Settled && test.hooked > 0, "what waits is not settled")
		})
	}
}

func TestAStageDoesNotGiveUpWhatAHookHolds(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	hook := rollout.Wait{Kind: rollout.BrakeHook, Reason: "WaitingForHook", Object: "preUpdate", Why: "a label"}
	plan := rollout.DecideStage(rollout.StageFacts{
		Clusters: []rollout.StageCluster{{
			Name: "a", Role: rollout.RoleInFlight, Phase: rollout.ClusterUpdating, StartedAt: now.Add(-time.Hour), Owner: rollout.OwnerNone,
			Waits: []rollout.Wait{hook}, Told: hook.Told(),
		}},
		MaxConcurrency: 1, Deadline: time.Minute, Budget: &rollout.FailureBudget{}, Now: now,
	})
	assert.Empty(t, plan.GiveUp)
	assert.Empty(t, plan.Stuck)
	assert.Empty(t, plan.Start, "only an answer lets it go on")
	assert.True(t, plan.LookAt.IsZero(), "time changes nothing")
	assert.Equal(t, []string{"a"}, plan.InFlight)
}
