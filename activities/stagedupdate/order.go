package stagedupdate

import (
	"fmt"
	"slices"

	"github.com/fleetflow/fleetflow/apis/placement/stagetask"
	"github.com/fleetflow/fleetflow/apis/placement/updaterun"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
	"github.com/fleetflow/fleetflow/workflows/rollout"
)

// The workflow of a run keeps the order of stages and waits at gates. Who may write to the Temporal
// namespace can schedule activities in its name, so the activities look for themselves, on the run as
// the API server has it, whether it is the stage's turn.

// eventCallRefused is the reason of events about calls that the run does not allow.
const eventCallRefused = "CallFromTemporalRefused"

// refuseCall says on the run what a call wanted that the run does not allow.
func (s runStore) refuseCall(run placementv1beta1.UpdateRunObject, what, why string) {
	s.emitRefusal(run, eventCallRefused, what, truncateText(fmt.Sprintf("%s is refused, whatever the workflow says: %s", what, why), maxNote))
}

// unfinishedBefore returns which stage before one is not over; nothing if all are.
func unfinishedBefore(run placementv1beta1.UpdateRunObject, index int) (why string) {
	stages := run.GetUpdateRunStatus().StagesStatus
	for i := range stages[:index] {
		if !updaterun.StageOver(&stages[i]) {
			return fmt.Sprintf("stage %s before it is not over", stages[i].StageName)
		}
	}
	return ""
}

// reasonNotToStart returns why no cluster of a stage may be started yet; nothing if some may.
func reasonNotToStart(run placementv1beta1.UpdateRunObject, index int) (why string) {
	if why := unfinishedBefore(run, index); why != "" {
		return why
	}
	if todo := typesToDo(run, index, stagetask.Before); len(todo) > 0 {
		return fmt.Sprintf("its task %s before the stage is not done", todo[0])
	}
	return ""
}

// refuseAdvance returns why a request to advance a stage contradicts the run; nothing if it does not.
// Clusters that the status does not know as started count as new ones, whatever the request calls them.
func refuseAdvance(run placementv1beta1.UpdateRunObject, in wf.StageAdvance) (why string) {
	stage := &run.GetUpdateRunStatus().StagesStatus[in.Index]
	phases := map[string]updaterun.Phase{}
	inFlight := map[string]bool{}
	for i := range stage.Clusters {
		c := &stage.Clusters[i]
		phases[c.ClusterName] = updaterun.ClusterPhase(c)
		inFlight[c.ClusterName] = phases[c.ClusterName] == updaterun.PhaseRunning
	}
	starts := false
	for _, name := range slices.Concat(in.Start, in.InFlight, in.InFlightAt.Of(updaterun.ClusterNames(stage)), in.Done) {
		if phases[name] == updaterun.PhasePending {
			starts = true
			inFlight[name] = true
		}
	}
	for _, name := range in.Done {
		delete(inFlight, name)
	}
	if !starts {
		return ""
	}
	if why := reasonNotToStart(run, in.Index); why != "" {
		return why
	}
	limit, err := rollout.Concurrency(concurrencyOf(updaterun.StageConfig(run, in.Index)), len(stage.Clusters))
	if count := countTrue(inFlight); err == nil && count > limit {
		return fmt.Sprintf("%d clusters would be in flight, and maxConcurrency allows %d", count, limit)
	}
	return ""
}

func countTrue(set map[string]bool) (count int) {
	for _, is := range set {
		if is {
			count++
		}
	}
	return count
}
