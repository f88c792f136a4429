package updaterun

import placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"

// Measured are the clusters that an analysis of a stage is about.
type Measured struct {
	// Clusters are those of the stage, without those that the run goes on without; Begun are those of which the update has begun, and
	// Control those of all stages that the run has not come to.
	Clusters, Begun, Control []string
	// Updated says that all clusters of the stage are.
	Updated bool
}

// MeasuredIn returns what an analysis of a stage of a run is about; found is false if the run has no such stage.
func MeasuredIn(status *placementv1beta1.UpdateRunStatus, stage string) (m Measured, found bool) {
	for i := range status.StagesStatus {
		of := &status.StagesStatus[i]
		for j := range of.Clusters {
			m.add(&of.Clusters[j], of.StageName == stage)
		}
		if of.StageName == stage {
			found = true
			m.Updated = StageUpdated(of)
		}
	}
	return m, found
}

func (m *Measured) add(cluster *placementv1beta1.ClusterUpdatingStatus, inStage bool) {
	phase := ClusterPhase(cluster)
	if phase == PhasePending {
		m.Control = append(m.Control, cluster.ClusterName)
	}
	if !inStage || phase == PhaseSkipped {
		return
	}
	m.Clusters = append(m.Clusters, cluster.ClusterName)
	if phase != PhasePending {
		m.Begun = append(m.Begun, cluster.ClusterName)
	}
}
