package placement

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

func evictionFrom(placement, name string) *placementv1beta1.ClusterResourcePlacementEviction {
	return &placementv1beta1.ClusterResourcePlacementEviction{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: "uid"}, Spec: placementv1beta1.PlacementEvictionSpec{PlacementName: placement, ClusterName: "member1"},
	}
}

func TestAnEvictionFromNothingWakesAWorkflowThatRefusesIt(t *testing.T) {
	e := evictionFrom("crp", "off")
	b := newBench(t, e)
	assert.Equal(t, "crp", requestEvictedPlacement(t.Context(), e)[0].Name)
	result := b.reconcile(t)
	assert.Equal(t, []string{wf.CauseEvictions}, b.pokes.causes)
	assert.Positive(t, result.RequeueAfter, "somebody has to see to it")
	b.reconcile(t)
	assert.Len(t, b.pokes.causes, 1, "the workflow is at it")

	e.Status.Conditions = []metav1.Condition{{Type: placementv1beta1.ConditionTypeValid, Status: metav1.ConditionFalse, LastTransitionTime: now}}
	require.NoError(t, b.hub.Update(t.Context(), e))
	assert.Zero(t, b.reconcile(t).RequeueAfter)
	assert.Empty(t, requestEvictedPlacement(t.Context(), e))
}

func TestTheAuditNamesEvictionsFromNothingOnce(t *testing.T) {
	ended := evictionFrom("elsewhere", "ended")
	ended.Status.Conditions = []metav1.Condition{{Type: placementv1beta1.ConditionTypeExecuted, Status: metav1.ConditionFalse}}
	b := newBench(t, evictionFrom("crp", "off"), evictionFrom("crp", "again"), ended)
	refs, err := b.Needing(t.Context(), false)
	require.NoError(t, err)
	assert.Equal(t, []wf.Ref{{Kind: wf.KindClusterResourcePlacement, Name: "crp"}}, refs)
}

func TestAnEvictionWakesItsPlacement(t *testing.T) {
	s := newSituation("member1").bound(0, up, "member1")
	b := newBench(t, append(stored(s), client.Object(evictionFrom("crp", "off")))...)
	b.reconcile(t)
	assert.Equal(t, []string{wf.CauseEvictions}, b.pokes.causes)
}
