package rules_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

func TestAWorkSaysHowThePlacementRemovesObjects(t *testing.T) {
	for sentence, tc := range map[string]struct {
		of   *placementv1beta1.DeleteStrategy
		want string
	}{
		"nothing is said":              {nil, ""},
		"nothing is said of pruning":   {&placementv1beta1.DeleteStrategy{PropagationPolicy: "Abandon", RemovedResources: "Delete"}, ""},
		"what is said of it, and only": {&placementv1beta1.DeleteStrategy{PropagationPolicy: "Abandon", PruneTimeoutSeconds: new(int32(60))}, `{"pruneTimeoutSeconds":60}`},
		"all of it": {&placementv1beta1.DeleteStrategy{PrunePropagationPolicy: "Orphan", ReconcileTimeoutSeconds: new(int32(1)), PruneTimeoutSeconds: new(int32(2))},
			`{"prunePropagationPolicy":"Orphan","reconcileTimeoutSeconds":1,"pruneTimeoutSeconds":2}`},
	} {
		t.Run(sentence, func(t *testing.T) {
			placement := &placementv1beta1.ClusterResourcePlacement{Spec: placementv1beta1.PlacementSpec{Strategy: &placementv1beta1.RolloutStrategy{DeleteStrategy: tc.of}}}
			said := rules.PruningOf(placement)
			assert.Equal(t, tc.want, said)
			work := &placementv1beta1.Work{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{placementv1beta1.PruneAnnotation: said}}}
			want := placementv1beta1.DeleteStrategy{}
			if tc.of != nil {
				want = *tc.of
				want.PropagationPolicy = ""
				want.RemovedResources = ""
			}
			assert.Equal(t, want, rules.PruningOfWork(work))
		})
	}
	for sentence, said := range map[string]string{
		"no JSON": "60s", "another shape": `[1]`, "an unknown policy": `{"prunePropagationPolicy":"Never"}`,
		"no time": `{"pruneTimeoutSeconds":0}`, "a time before now": `{"reconcileTimeoutSeconds":-5}`, "a text": `{"pruneTimeoutSeconds":"60"}`,
	} {
		work := &placementv1beta1.Work{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{placementv1beta1.PruneAnnotation: said}}}
		assert.Equal(t, placementv1beta1.DeleteStrategy{}, rules.PruningOfWork(work), sentence)
	}
}
