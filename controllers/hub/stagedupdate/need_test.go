package stagedupdate_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/controllers/hub/stagedupdate"
)

func TestWhichRunsNeedAWorkflow(t *testing.T) {
	const initialized, progressing, succeeded = placementv1beta1.ConditionTypeInitialized, placementv1beta1.ConditionTypeProgressing, placementv1beta1.ConditionTypeSucceeded
	const stopped = placementv1beta1.ReasonUpdateRunStopped
	rolledBack := map[string]string{placementv1beta1.RolledBackByAnnotation: "other"}
	condition := func(kind string, status metav1.ConditionStatus, reason string) metav1.Condition {
		return metav1.Condition{Type: kind, Status: status, Reason: reason}
	}
	planned := condition(initialized, metav1.ConditionTrue, "")
	for sentence, test := range map[string]struct {
		state       placementv1beta1.UpdateRunState
		annotations map[string]string
		conditions  []metav1.Condition
		deleted     bool
		want        bool
	}{
		"a new one":                                {want: true},
		"one that runs":                            {state: placementv1beta1.StateRun, conditions: []metav1.Condition{planned}, want: true},
		"one that is being deleted does not":       {deleted: true},
		"one that has succeeded does not":          {conditions: []metav1.Condition{planned, condition(succeeded, metav1.ConditionTrue, "")}},
		"one that has failed does not":             {conditions: []metav1.Condition{planned, condition(succeeded, metav1.ConditionFalse, "")}, annotations: rolledBack},
		"one without a plan does not":              {conditions: []metav1.Condition{condition(initialized, metav1.ConditionFalse, "")}},
		"one that is to make its plan":             {state: placementv1beta1.StateInitialize, want: true},
		"one that has made its plan does not":      {state: placementv1beta1.StateInitialize, conditions: []metav1.Condition{planned}},
		"one that is to stop":                      {state: placementv1beta1.StateStop, conditions: []metav1.Condition{planned}, want: true},
		"one that stands still does not":           {state: placementv1beta1.StateStop, conditions: []metav1.Condition{planned, condition(progressing, metav1.ConditionFalse, stopped)}},
		"one that stands still and is rolled back": {state: placementv1beta1.StateStop, conditions: []metav1.Condition{planned, condition(progressing, metav1.ConditionFalse, stopped)}, annotations: rolledBack, want: true},
	} {
		t.Run(sentence, func(t *testing.T) {
			run := &placementv1beta1.ClusterStagedUpdateRun{}
			run.Spec.State = test.state
			run.Annotations = test.annotations
			run.Status.Conditions = test.conditions
			if test.deleted {
				now := metav1.Now()
				run.DeletionTimestamp = &now
			}
			assert.Equal(t, test.want, stagedupdate.NeedsWork(run))
		})
	}
}
