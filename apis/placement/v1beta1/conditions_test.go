package v1beta1

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestAConditionThatWasToldStaysOnceThereIsNothingToTell(t *testing.T) {
	earlier := metav1.NewTime(time.Unix(1_800_000_000, 0))
	now := metav1.NewTime(earlier.Add(time.Minute))
	for _, name := range slices.Sorted(maps.Keys(resolutions)) {
		told := metav1.Condition{Type: name, Status: metav1.ConditionTrue, Reason: "Some", Message: "some", LastTransitionTime: earlier}
		if resolutions[name].Status == metav1.ConditionTrue {
			told.Status = metav1.ConditionFalse
		}
		applied := metav1.Condition{Type: ConditionTypeApplied, Status: metav1.ConditionTrue}
		over := WithResolved([]metav1.Condition{applied, told}, []metav1.Condition{applied}, 7, now)
		require.Len(t, over, 2, name)
		assert.NotEqual(t, told.Status, over[1].Status, name)
		assert.NotEmpty(t, over[1].Reason, name)
		assert.NotEmpty(t, over[1].Message, name)
		assert.Equal(t, int64(7), over[1].ObservedGeneration, name)
		assert.Equal(t, now, over[1].LastTransitionTime, name)
		assert.Equal(t, over, WithResolved(over, []metav1.Condition{applied}, 7, metav1.NewTime(now.Add(time.Hour))), "it is written once: %s", name)
		assert.Equal(t, []metav1.Condition{applied, told}, WithResolved(over, []metav1.Condition{applied, told}, 8, now), "it may be told again: %s", name)
		assert.Equal(t, []metav1.Condition{applied}, WithResolved([]metav1.Condition{applied}, []metav1.Condition{applied}, 7, now), "what was never told is not there: %s", name)

		conditions := []metav1.Condition{applied}
		Resolve(&conditions, name, 7, now)
		assert.Equal(t, []metav1.Condition{applied}, conditions, name)
		conditions = append(conditions, told)
		Resolve(&conditions, name, 7, now)
		assert.Equal(t, over, conditions, name)
		assert.Nil(t, FindTrue([]metav1.Condition{applied}, name))
		assert.Equal(t, resolutions[name].Status == metav1.ConditionTrue, FindTrue(over, name) != nil, name)
	}
	left := WithResolved([]metav1.Condition{{Type: ConditionTypeAvailable}}, nil, 7, now)
	assert.Nil(t, meta.FindStatusCondition(left, ConditionTypeAvailable), "the steps of a rollout end with the first that is not done")
}
