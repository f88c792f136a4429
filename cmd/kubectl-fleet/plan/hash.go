package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"k8s.io/apimachinery/pkg/types"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
)

// frozen is what an approver of a run agrees to: what goes to which cluster, in which order, and what was asked for since.
// What comes and goes while the run is under way is no part of it.
type frozen struct {
	UID                           types.UID
	Placement, Snapshot, Rollback string
	Strategy                      *placementv1beta1.UpdateStrategySpec
	Stages                        []frozenStage
	Actions                       []placementv1beta1.ClusterAction
}

type frozenStage struct {
	Name     string
	Clusters []frozenCluster
}

type frozenCluster struct{ Name, Snapshot string }

// Hash sums up what a run that is planned goes on to do, so that an approval can be held to what its approver has seen.
func Hash(run hub.Run) string {
	sum := frozen{
		UID: run.Object.GetUID(), Placement: run.Spec.PlacementName, Snapshot: run.Status.ResourceSnapshotIndexUsed,
		Rollback: run.Spec.RollbackOf,
		Strategy: run.Status.UpdateStrategySnapshot, Actions: run.Spec.ClusterActions,
	}
	for i := range run.Status.StagesStatus {
		sum.Stages = append(sum.Stages, freezeStage(&run.Status.StagesStatus[i]))
	}
	if deletion := run.Status.DeletionStageStatus; deletion != nil {
		sum.Stages = append(sum.Stages, freezeStage(deletion))
	}
	text, err := json.Marshal(sum)
	if err != nil {
		panic(err) // API types can be written as JSON
	}
	hash := sha256.Sum256(text)
	return hex.EncodeToString(hash[:8])
}

func freezeStage(stage *placementv1beta1.StageUpdatingStatus) frozenStage {
	one := frozenStage{Name: stage.StageName}
	for i := range stage.Clusters {
		one.Clusters = append(one.Clusters, frozenCluster{stage.Clusters[i].ClusterName, stage.Clusters[i].ResourceSnapshotIndex})
	}
	return one
}
