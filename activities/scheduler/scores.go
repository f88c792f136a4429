package scheduler

import (
	"fmt"

	"github.com/fleetflow/fleetflow/activities/scheduler/framework"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// scores are those in decisions. Most clusters of a fleet have the same few, so equal
// ones are made once.
type scores map[framework.Score]*placementv1beta1.ClusterScore

func (s scores) shareScore(score framework.Score) *placementv1beta1.ClusterScore {
	score.Placed = 0 // is not told of
	known, ok := s[score]
	if !ok {
		affinity, topology := score.Affinity, score.Topology
		known = &placementv1beta1.ClusterScore{AffinityScore: &affinity, PriorityScore: &topology}
		s[score] = known
	}
	return known
}

// wordings are how the reason of a picked cluster ends, by its score in scores.
type wordings map[*placementv1beta1.ClusterScore]string

func (w wordings) endingFor(score *placementv1beta1.ClusterScore) string {
	known, ok := w[score]
	if !ok {
		known = ": picked by scheduling policy"
		if score != nil {
			known = fmt.Sprintf(" (affinity score: %d, topology spread score: %d)%s", *score.AffinityScore, *score.PriorityScore, known)
		}
		w[score] = known
	}
	return known
}
