package steer

import (
	"context"
	"slices"

	"github.com/fleetflow/fleetflow/apis/placement/updaterun"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
)

// clustersOf returns the clusters of a placement or of a run.
func clustersOf(ctx context.Context, reader hub.Reader, target hub.Found) ([]string, error) {
	var names []string
	if target.Run != nil {
		for _, stage := range updaterun.Read(target.Run.Object).Stages {
			for _, cluster := range stage.Clusters {
				names = append(names, cluster.Name)
			}
		}
		return names, nil
	}
	bindings, err := reader.Of(target.Ref()).Bindings(ctx)
	for _, binding := range bindings {
		names = append(names, binding.Spec.TargetCluster)
	}
	slices.Sort(names)
	return slices.Compact(names), err
}

// waitingStages returns the stages at which a run waits for an approval.
func waitingStages(_ context.Context, _ hub.Reader, target hub.Found) ([]string, error) {
	var stages []string
	if target.Run == nil {
		return nil, nil
	}
	for _, gate := range GatesOf(*target.Run) {
		if gate.Begun && !gate.Approved {
			stages = append(stages, gate.Stage)
		}
	}
	return stages, nil
}

// waitsForApproval reports whether a run waits for an approval now.
func waitsForApproval(run hub.Run) bool {
	return isUnderWay(run) && slices.ContainsFunc(GatesOf(run), func(g Gate) bool { return g.Begun && !g.Approved })
}
