package scheduler

import (
	"fmt"

	"k8s.io/utils/ptr"

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
		affinity := score.Affinity
		topology := score.Topology
		known = &placementv1beta1.ClusterScore{AffinityScore: &affinity, TopologySpreadScore: &topology}
		if taints := score.Taints; taints != 0 {
			known.TaintScore = &taints
		}
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
			known = fmt.Sprintf(" (%s)%s", describeScore(scoreOf(score)), known)
		}
		w[score] = known
	}
	return known
}

// scoreOf reads a score from a decision.
func scoreOf(s *placementv1beta1.ClusterScore) framework.Score {
	if s == nil {
		return framework.Score{}
	}
	return framework.Score{Affinity: ptr.Deref(s.AffinityScore, 0), Topology: ptr.Deref(s.TopologySpreadScore, 0),
		Taints: ptr.Deref(s.TaintScore, 0)}
}

// describeScore words a score; of taints only if there are some.
func describeScore(score framework.Score) string {
	text := fmt.Sprintf("affinity score: %d, topology spread score: %d", score.Affinity, score.Topology)
	if score.Taints != 0 {
		text += fmt.Sprintf(", taint score: %d", score.Taints)
	}
	return text
}
