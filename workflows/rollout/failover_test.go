package rollout_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/fleetflow/fleetflow/workflows/rollout"
)

// left is a cluster that the placement has left for another.
func left(name string, how rollout.Leaving) rollout.Cluster {
	c := deselected(name)
	c.Leaving = how
	return c
}

// superseded is a copy that stays until it is evicted.
func superseded(name string) rollout.Cluster {
	c := deselected(name)
	c.Superseded = true
	return c
}

func settled(c rollout.Cluster) rollout.Cluster {
	c.Settled = true
	return c
}

func settling(c rollout.Cluster, at time.Time) rollout.Cluster {
	c.SettlesAt = at
	return c
}

func lost(c rollout.Cluster) rollout.Cluster {
	c.Deleting = true
	c.Available = false
	c.Lost = true
	return c
}

// Acceptance example R13, as far as a cluster is concerned.
func TestCopiesMakePlaceForEachOther(t *testing.T) {
	const gracefully, directly = rollout.LeavingGracefully, rollout.LeavingDirectly
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for sentence, test := range map[string]struct {
		clusters []rollout.Cluster
		limits   rollout.Limits
		want     []rollout.Step
		blocked  int
		wakeAt   time.Time
	}{
		"R13: the replacement is written, and the copy stays": {
			clusters: []rollout.Cluster{left("a", gracefully), fresh("n")}, limits: limits(1, 1, 1), want: []rollout.Step{{Cluster: "n", Op: rollout.Add}}, blocked: 1,
		},
		"R13: it stays while the replacement is not available": {
			clusters: []rollout.Cluster{left("a", gracefully), settling(down(current("n")), at)}, limits: limits(1, 1, 1), blocked: 1, wakeAt: at,
		},
		"a copy that is not available stays, too": {
			clusters: []rollout.Cluster{down(left("a", gracefully)), settling(down(current("n")), at)}, limits: limits(1, 1, 1), blocked: 1, wakeAt: at,
		},
		"R13: it goes as soon as the replacement is available": {
			clusters: []rollout.Cluster{left("a", gracefully), current("n")}, limits: limits(1, 1, 1), want: []rollout.Step{{Cluster: "a", Op: rollout.Remove}},
		},
		"R13: or after the grace period": {
			clusters: []rollout.Cluster{left("a", gracefully), settled(down(current("n")))}, limits: limits(1, 1, 1), want: []rollout.Step{{Cluster: "a", Op: rollout.Remove}},
		},
		"but not against the limits": {
			clusters: []rollout.Cluster{left("a", gracefully), settled(down(current("n")))}, limits: limits(1, 0, 1), blocked: 1,
		},
		"of two copies one goes when the first replacement is available, and makes room for the second": {
			clusters: []rollout.Cluster{left("a", gracefully), left("b", gracefully), current("m"), fresh("n")}, limits: limits(2, 1, 1),
			want: []rollout.Step{{Cluster: "a", Op: rollout.Remove}}, blocked: 2,
		},
		"both stay before that": {
			clusters: []rollout.Cluster{left("a", gracefully), left("b", gracefully), down(current("m")), fresh("n")}, limits: limits(2, 1, 1), blocked: 3,
		},
		"a copy that nothing replaces any more goes": {
			clusters: []rollout.Cluster{left("a", gracefully), current("n")}, limits: limits(1, 1, 0), want: []rollout.Step{{Cluster: "a", Op: rollout.Remove}},
		},
		"what leaves for another reason does not wait": {
			clusters: []rollout.Cluster{deselected("a"), fresh("n")}, limits: limits(1, 1, 1), want: []rollout.Step{{Cluster: "a", Op: rollout.Remove}, {Cluster: "n", Op: rollout.Add}},
		},
		"directly, the copy goes first": {
			clusters: []rollout.Cluster{left("a", directly), fresh("n")}, limits: limits(1, 1, 1), want: []rollout.Step{{Cluster: "a", Op: rollout.Remove}}, blocked: 1,
		},
		"and as many replacements wait as copies are to go": {
			clusters: []rollout.Cluster{left("a", directly), fresh("m"), fresh("n")}, limits: limits(2, 2, 2),
			want: []rollout.Step{{Cluster: "a", Op: rollout.Remove}, {Cluster: "m", Op: rollout.Add}}, blocked: 1,
		},
		"a superseded copy stays, takes no room of others and is not waited for": {
			clusters: []rollout.Cluster{superseded("a"), fresh("n")}, limits: limits(1, 0, 0), want: []rollout.Step{{Cluster: "n", Op: rollout.Add}},
		},
		"it is not counted among those that are available": {
			clusters: []rollout.Cluster{superseded("a"), outdated("m")}, limits: limits(1, 0, 1), blocked: 1,
		},
		"and nothing is left to do for it": {clusters: []rollout.Cluster{superseded("a"), current("n")}, limits: limits(1, 1, 1)},
		"what is left on a cluster that cannot be reached takes no room": {
			clusters: []rollout.Cluster{lost(left("a", gracefully)), left("b", gracefully), current("m"), fresh("n")}, limits: limits(2, 1, 1),
			want: []rollout.Step{{Cluster: "n", Op: rollout.Add}}, blocked: 1,
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			plan := rollout.Decide(rollout.Facts{Clusters: test.clusters, Limits: test.limits})
			assert.Equal(t, test.want, plan.Steps)
			assert.Equal(t, test.blocked, plan.Blocked())
			assert.Equal(t, test.wakeAt, plan.WakeAt)
			assert.Equal(t, len(test.want) == 0 && test.blocked == 0, plan.Settled)
		})
	}
}

func TestASupersededCopyIsEvictedWhateverTheBudget(t *testing.T) {
	plan := rollout.Decide(rollout.Facts{
		Clusters: []rollout.Cluster{superseded("a"), current("n")}, Limits: limits(1, 1, 1),
		Evictions: []rollout.Eviction{off("a")}, Policy: pickN(1, maxUnavailable("0")),
	})
	assert.Equal(t, map[string]rollout.Op{"off-a": rollout.Evict}, ops(plan))
}
