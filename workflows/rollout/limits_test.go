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
