package rollout_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/fleetflow/fleetflow/workflows/rollout"
)

func TestWhatIsStuckByDefinitionSaysSo(t *testing.T) {
	gone := outdated("c")
	gone.Available = false
	gone.Failed = true
	broken := gone
	broken.Current = true
	refused := func(c rollout.Cluster) rollout.Cluster {
		c.Claimed = true
		c.Waits = []rollout.Wait{{Kind: rollout.BrakeRefusal, Why: "not on Saturdays"}}
		return c
	}
	cases := map[string]struct {
		clusters []rollout.Cluster
		limits   rollout.Limits
		want     string
	}{
		"maxUnavailable 0 leaves nothing that may be updated in place": {
			clusters: []rollout.Cluster{outdated("a"), outdated("b")}, limits: limits(2, 0, 1),
			want: "of the 2 cluster(s) asked for 2 are available, and with maxUnavailable 0 none of them may become unavailable",
		},
		"a slot that no cluster fills counts as unavailable": {
			clusters: []rollout.Cluster{outdated("a"), outdated("b")}, limits: limits(3, 1, 1),
			want: "of the 3 cluster(s) asked for 2 are available, and with maxUnavailable 1 none of them may become unavailable",
		},
		"a move without surge waits for ever if no cluster may be lost": {
			clusters: []rollout.Cluster{deselected("a"), deselected("b"), fresh("c"), fresh("d")}, limits: limits(2, 0, 0),
			want: "of the 2 cluster(s) asked for 2 are available, and with maxUnavailable 0 none of them may become unavailable; " +
				"2 cluster(s) have resources, 2 are asked for, and with maxSurge 0 no other may get any",
		},
		"a claim that cannot be given back holds the last place": {
			clusters: []rollout.Cluster{refused(outdated("a")), outdated("b"), outdated("c")}, limits: limits(3, 1, 1),
			want: "cluster a, whose refused write cannot be taken back, may still become unavailable, and with maxUnavailable 1 no other may",
		},
		"claims that cannot be given back hold the room": {
			clusters: []rollout.Cluster{current("a"), refused(fresh("b")), refused(fresh("c")), fresh("d")}, limits: limits(2, 1, 1),
			want: "cluster b and 1 more, whose refused writes cannot be taken back, may still get resources, and with maxSurge 1 no other may",
		},
		"a cluster that may still become available is waited for": {
			clusters: []rollout.Cluster{outdated("a"), broken}, limits: limits(2, 1, 1),
		},
		"what goes on is not held": {clusters: []rollout.Cluster{outdated("a"), outdated("b")}, limits: limits(2, 1, 1)},
		"what is done is not held": {clusters: []rollout.Cluster{current("a")}, limits: limits(1, 0, 1)},
	}
	for sentence, tc := range cases {
		t.Run(sentence, func(t *testing.T) {
			assert.Equal(t, tc.want, decideBatch(tc.clusters, tc.limits).Stuck())
		})
	}
}
