package updaterun

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// Requests are the clusterActions of a run's spec that a stage has yet to carry out.
type Requests struct {
	// Skip are clusters to go on without.
	Skip []string
	// Requeue are clusters that wait for their turn again.
	Requeue []string
	// Restart are clusters in flight that are written to again.
	Restart []string
	// Noted are clusters that have not had their turn, so that there is nothing to try again.
	Noted []string
}

// Empty reports whether nothing is asked for.
func (r Requests) Empty() bool { return len(r.Skip)+len(r.Requeue)+len(r.Restart)+len(r.Noted) == 0 }

// RequestsOf finds what a run's spec asks for in a stage. The clusters in done have succeeded although the status does not
// say so yet. A stage that is over cannot be asked for anything any more, and the deletion stage never can.
func RequestsOf(run placementv1beta1.UpdateRunObject, index int, done []string) Requests {
	var requests Requests
	spec := run.GetUpdateRunSpec()
	stage := StageAt(run, index)
	if len(spec.ClusterActions) == 0 || index >= len(run.GetUpdateRunStatus().StagesStatus) || StageOver(stage) {
		return requests
	}
	actions := make(map[string]placementv1beta1.ClusterAction, len(spec.ClusterActions))
	for _, a := range spec.ClusterActions {
		actions[a.Cluster] = a
	}
	for i := range stage.Clusters {
		c := &stage.Clusters[i]
		// A rollback that has nothing to take a cluster back to leaves it skipped, whatever is asked for.
		keepsSkipping := spec.RollbackOf != "" && c.ResourceSnapshotIndex == ""
		if action, ok := actions[c.ClusterName]; ok && !slices.Contains(done, c.ClusterName) && !keepsSkipping {
			requests.add(c, action)
		}
	}
	return requests
}

func (r *Requests) add(c *placementv1beta1.ClusterUpdatingStatus, action placementv1beta1.ClusterAction) {
	phase := ClusterPhase(c)
	switch {
	case phase == PhaseSucceeded:
	case action.Action == placementv1beta1.ClusterActionSkip:
		if phase != PhaseSkipped {
			r.Skip = append(r.Skip, c.ClusterName)
		}
	case c.Attempt >= attemptOf(action):
	case phase == PhasePending:
		r.Noted = append(r.Noted, c.ClusterName)
	case phase == PhaseRunning:
		r.Restart = append(r.Restart, c.ClusterName)
	default:
		r.Requeue = append(r.Requeue, c.ClusterName)
	}
}

func attemptOf(action placementv1beta1.ClusterAction) int32 { return max(1, action.Attempt) }

// CarryOut records what was asked for.
func (r Recorder) CarryOut(stage *placementv1beta1.StageUpdatingStatus, requests Requests) {
	for _, action := range r.Run.GetUpdateRunSpec().ClusterActions {
		c := FindCluster(stage, action.Cluster)
		if c == nil {
			continue
		}
		switch name := action.Cluster; {
		case slices.Contains(requests.Skip, name):
			why := "Skipped, as spec.clusterActions asks for"
			if ClusterPhase(c) != PhasePending {
				why += "; it keeps what was written to it"
			}
			r.skipCluster(c, why)
			continue
		case slices.Contains(requests.Requeue, name):
			c.Conditions = slices.DeleteFunc(c.Conditions, func(said metav1.Condition) bool {
				return said.Type != placementv1beta1.ConditionTypeBackInService // until its turn comes
			})
		case slices.Contains(requests.Restart, name):
			r.restartCluster(c)
		case !slices.Contains(requests.Noted, name):
			continue
		}
		c.Attempt = attemptOf(action)
	}
}
