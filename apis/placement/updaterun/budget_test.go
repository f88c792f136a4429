package updaterun_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/fleetflow/fleetflow/apis/placement/updaterun"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

func TestAFailureBudgetIsANumberOrAShareOfTheClusters(t *testing.T) {
	for sentence, test := range map[string]struct {
		value    intstr.IntOrString
		clusters int
		want     int
	}{
		"a number":                           {intstr.FromInt32(2), 10, 2},
		"none":                               {intstr.FromInt32(0), 10, 0},
		"a percentage":                       {intstr.FromString("10%"), 30, 3},
		"a percentage is rounded down":       {intstr.FromString("10%"), 19, 1},
		"a small percentage may be none":     {intstr.FromString("10%"), 9, 0},
		"all":                                {intstr.FromString("100%"), 7, 7},
		"what is below zero allows nothing":  {intstr.FromInt32(-1), 10, 0},
		"a negative share allows nothing":    {intstr.FromString("-5%"), 100, 0},
		"what cannot be read allows nothing": {intstr.FromString("many"), 10, 0},
	} {
		t.Run(sentence, func(t *testing.T) {
			run := &placementv1beta1.ClusterStagedUpdateRun{}
			run.Status.UpdateStrategySnapshot = &placementv1beta1.UpdateStrategySpec{Stages: []placementv1beta1.StageConfig{
				{Name: "canary", FailureBudget: &placementv1beta1.FailureBudget{MaxFailures: &test.value}},
			}}
			run.Status.StagesStatus = []placementv1beta1.StageUpdatingStatus{{StageName: "canary", Clusters: make([]placementv1beta1.ClusterUpdatingStatus, test.clusters)}}
			assert.Equal(t, updaterun.Budget{Exists: true, MaxFailures: test.want, OnExceeded: placementv1beta1.FailureBudgetWait}, updaterun.BudgetOf(run, 0))
		})
	}
}
