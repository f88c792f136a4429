package plan

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/util/intstr"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

func TestWhatAStageDoesWhenClustersFailIsSaid(t *testing.T) {
	two := intstr.FromInt32(2)
	for want, config := range map[string]placementv1beta1.StageConfig{
		"":                              {},
		"a cluster may take 10m0s":      {ClusterDeadlineSeconds: new(int32(600))},
		"0 may fail, beyond that: Wait": {FailureBudget: &placementv1beta1.FailureBudget{}},
		"it has to be available for 30s; 2 may fail, beyond that: Pause; a cluster that stalls fails at once": {
			MinReadySeconds: new(int32(30)), FailureBudget: &placementv1beta1.FailureBudget{
				MaxFailures: &two, OnExceeded: placementv1beta1.FailureBudgetPause, FailOn: []placementv1beta1.ClusterFailure{placementv1beta1.ClusterFailureStalled},
			}},
	} {
		assert.Equal(t, want, describeFailures(config))
	}
}
