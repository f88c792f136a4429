package demo

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/test/devfleet/access"
	"github.com/fleetflow/fleetflow/test/devfleet/state"
)

// TestOnlyAFleetWithARealNodeHasTheActOnIt: what is simulated never crashes.
func TestOnlyAFleetWithARealNodeHasTheActOnIt(t *testing.T) {
	actsOf := func(realNodes int) []act {
		return (&story{Access: &access.Access{Fleet: &state.Fleet{Members: 3, RealNodes: realNodes}}}).acts()
	}
	assert.Len(t, actsOf(1), len(actsOf(0))+1)
	assert.NotContains(t, deployment(false).Spec.Template.Spec.Containers[0].Image, "devfleet")
}

// TestTheRealNodeIsAloneInTheFirstStage has each member in one stage of the strategy, however many there are.
func TestTheRealNodeIsAloneInTheFirstStage(t *testing.T) {
	for _, stage := range guardedStrategy().Spec.Stages {
		selector, err := metav1.LabelSelectorAsSelector(stage.LabelSelector)
		require.NoError(t, err)
		for member, set := range map[string]labels.Set{
			"member-1": {environment: canaryStage, orderLabel: "2"}, "member-2": {environment: stagingStage},
			"member-3": {environment: canaryStage, orderLabel: "1"}, "member-4": {environment: productionStage, orderLabel: "4"},
		} {
			isReal := member == realMember
			assert.Equal(t, isReal == (stage.Name == canaryStage), selector.Matches(set), "%s in %s", member, stage.Name)
		}
	}
}

func TestNotCrashing(t *testing.T) {
	failing := func(status metav1.ConditionStatus, reason, message string) []*placementv1beta1.Work {
		return []*placementv1beta1.Work{{}, {Status: placementv1beta1.WorkStatus{ManifestConditions: []placementv1beta1.ManifestCondition{{}, {
			Conditions: []metav1.Condition{{Type: "Failing", Status: status, Reason: reason, Message: message}},
		}}}}}
	}
	for sentence, c := range map[string]struct {
		works []*placementv1beta1.Work
		want  string
	}{
		"nothing is told yet":        {nil, "no manifest has the condition Failing"},
		"it was, and is over":        {failing("False", "Resolved", lastWords), "no manifest has the condition Failing"},
		"another cause":              {failing("True", "ProbeFails", "refused"), "ProbeFails: refused"},
		"the words are not told yet": {failing("True", "CrashLoop", "exit 3"), "CrashLoop: exit 3"},
		"all is told":                {failing("True", "CrashLoop", "1 of 3 pods: exit 3 of container app: "+lastWords), ""},
	} {
		t.Run(sentence, func(t *testing.T) { assert.Equal(t, c.want, notCrashing(c.works)) })
	}
}
