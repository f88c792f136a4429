package rollout_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fleetflow/fleetflow/workflows/rollout"
)

// The examples of KubeFleet's page on safe rollouts, and its case of a rollout that is stuck.
func TestDocumentedExamples(t *testing.T) {
	limit := func(value string, of int) int {
		n, err := rollout.Resolve(value, of)
		require.NoError(t, err)
		return n
	}
	three := limits(3, 1, 1)
	quarter := limits(2, limit("25%", 2), 2)
	stuck := limits(3, limit("25%", 3), limit("25%", 3))
	for sentence, test := range map[string]struct {
		clusters []rollout.Cluster
		limits   rollout.Limits
		want     []rollout.Step
		blocked  int
	}{
		"example 1: first placements do not wait": {
			clusters: []rollout.Cluster{fresh("cluster-1"), fresh("cluster-2"), fresh("cluster-3")}, limits: three,
			want: []rollout.Step{{"cluster-1", rollout.Add}, {"cluster-2", rollout.Add}, {"cluster-3", rollout.Add}},
		},
		"example 1: a bad image goes to one cluster": {
			clusters: []rollout.Cluster{outdated("cluster-1"), outdated("cluster-2"), outdated("cluster-3")}, limits: three,
			want: []rollout.Step{{"cluster-1", rollout.Update}}, blocked: 2,
		},
		"example 1: there it stays, and the surge is not used": {
			clusters: []rollout.Cluster{down(current("cluster-1")), outdated("cluster-2"), outdated("cluster-3")}, limits: three, blocked: 2,
		},
		"example 1: the surge is for a cluster that is picked anew": {
			clusters: []rollout.Cluster{down(current("cluster-1")), outdated("cluster-2"), outdated("cluster-3"), fresh("cluster-4")}, limits: limits(4, 1, 1),
			want: []rollout.Step{{"cluster-4", rollout.Add}}, blocked: 2,
		},
		"example 2: two are added and one goes at once": {
			clusters: []rollout.Cluster{deselected("cluster-1"), deselected("cluster-2"), fresh("cluster-3"), fresh("cluster-4")}, limits: quarter,
			want: []rollout.Step{{"cluster-1", rollout.Remove}, {"cluster-3", rollout.Add}, {"cluster-4", rollout.Add}}, blocked: 1,
		},
		"example 2: the other goes when a new one is available": {
			clusters: []rollout.Cluster{deleting(down(deselected("cluster-1"))), deselected("cluster-2"), current("cluster-3"), down(current("cluster-4"))}, limits: quarter,
			want: []rollout.Step{{"cluster-2", rollout.Remove}},
		},
		"stuck: two of three were found, and the missing one uses up all that may be unavailable": {
			clusters: []rollout.Cluster{outdated("kind-cluster-1"), outdated("kind-cluster-2")}, limits: stuck, blocked: 2,
		},
		"stuck: with two that may be unavailable it goes on": {
			clusters: []rollout.Cluster{outdated("kind-cluster-1"), outdated("kind-cluster-2")}, limits: limits(3, 2, 1),
			want: []rollout.Step{{"kind-cluster-1", rollout.Update}}, blocked: 1,
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			plan := decideBatch(test.clusters, test.limits)
			assert.Equal(t, test.want, plan.Steps)
			assert.Equal(t, test.blocked, plan.Blocked())
		})
	}
}
