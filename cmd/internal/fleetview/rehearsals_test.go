package fleetview_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/cmd/internal/fleetview"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
)

// A task that has images pulled tells in the same part of the status what it has found.
func TestImagesThatArePulledAreNoRehearsal(t *testing.T) {
	task := func(of placementv1beta1.StageTaskType) placementv1beta1.StageTaskStatus {
		return placementv1beta1.StageTaskStatus{Type: of, Rehearsal: &placementv1beta1.StageRehearsal{Name: string(of)}}
	}
	run := hub.RunOf(&placementv1beta1.ClusterStagedUpdateRun{ObjectMeta: metav1.ObjectMeta{Name: "web-2"}, Status: placementv1beta1.UpdateRunStatus{
		StagesStatus: []placementv1beta1.StageUpdatingStatus{
			{StageName: "canary", BeforeStageTaskStatus: []placementv1beta1.StageTaskStatus{task(placementv1beta1.StageTaskTypePrePull)}},
			{StageName: "rest", BeforeStageTaskStatus: []placementv1beta1.StageTaskStatus{task(placementv1beta1.StageTaskTypePrePull), task(placementv1beta1.StageTaskTypeRehearsal)}},
		},
	}})
	all := fleetview.RehearsalsOf(run, "")
	require.Len(t, all, 1)
	assert.Equal(t, "rest", all[0].Stage)
	assert.Empty(t, fleetview.RehearsalsOf(run, "canary"))
}
