package override

import (
	"testing"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

func TestMended(t *testing.T) {
	binding := func(status metav1.ConditionStatus, observed int64, overrides ...string) placementv1beta1.ClusterResourceBinding {
		b := placementv1beta1.ClusterResourceBinding{ObjectMeta: metav1.ObjectMeta{Generation: 2}}
		b.Spec.ClusterResourceOverrideSnapshots = overrides
		b.Status.Conditions = []metav1.Condition{{Type: placementv1beta1.ConditionTypeOverridden, Status: status, ObservedGeneration: observed}}
		return b
	}
	inForce := func(names ...string) (all Snapshots) {
		for _, name := range names {
			all = append(all, &placementv1beta1.ClusterResourceOverrideSnapshot{ObjectMeta: metav1.ObjectMeta{Name: name}})
		}
		return all
	}
	for sentence, test := range map[string]struct {
		inForce Snapshots
		binding placementv1beta1.ClusterResourceBinding
		want    bool
	}{
		"one that failed was changed":            {inForce("cro-1"), binding(metav1.ConditionFalse, 2, "cro-0"), true},
		"one that failed is as it was":           {inForce("cro-0"), binding(metav1.ConditionFalse, 2, "cro-0"), false},
		"one that works was changed":             {inForce("cro-1"), binding(metav1.ConditionTrue, 2, "cro-0"), false},
		"whether it works is not known yet":      {inForce("cro-1"), binding(metav1.ConditionFalse, 1, "cro-0"), false},
		"the cluster has the new one by now":     {inForce("cro-1"), binding(metav1.ConditionFalse, 2, "cro-1"), false},
		"what failed is not of this rollout":     {inForce("cro-1"), binding(metav1.ConditionFalse, 2, "old-0"), false},
		"one that failed was taken out of force": {inForce(), binding(metav1.ConditionFalse, 2, "cro-0"), true},
	} {
		t.Run(sentence, func(t *testing.T) {
			assert.Equal(t, test.want, Corrected(test.inForce, []string{"cro-0"}, []placementv1beta1.BindingObject{&test.binding}))
		})
	}
}
