package rollingupdate_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// memberIs writes a member, which is known to be healthy or not, and tells of it.
func (r *rollout) memberIs(name string, healthy metav1.ConditionStatus, replacedBy string) {
	r.t.Helper()
	old := &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := r.Get(r.t.Context(), client.ObjectKey{Name: name}, old); err != nil {
		require.NoError(r.t, client.IgnoreNotFound(err))
		require.NoError(r.t, r.Create(r.t.Context(), old))
	}
	now := old.DeepCopy()
	for kind, status := range map[string]metav1.ConditionStatus{clusterv1beta1.ConditionTypeJoined: metav1.ConditionTrue, clusterv1beta1.ConditionTypeHealthy: healthy} {
		meta.SetStatusCondition(&now.Status.Conditions, metav1.Condition{Type: kind, Status: status, Reason: "Said"})
	}
	if replacedBy != "" {
		metav1.SetMetaDataAnnotation(&now.ObjectMeta, clusterv1beta1.ReplacedByAnnotation, replacedBy)
	}
	require.NoError(r.t, r.Update(r.t.Context(), now))
	r.tell(old, now)
}

// replacedIn has the copy on cluster a wait for that on cluster n, which is available.
func replacedIn(t *testing.T) *rollout {
	t.Helper()
	old := bound("a", newSnapshot)
	old.Spec.State = placementv1beta1.BindingStateUnscheduled
	old.Annotations = map[string]string{placementv1beta1.ReplacedByAnnotation: "n"}
	r := newRollout(t, old, bound("n", newSnapshot))
	r.roll(1, placementv1beta1.RollingUpdateConfig{MaxUnavailable: percentOrNumber("1"), MaxSurge: percentOrNumber("1")})
	r.memberIs("a", metav1.ConditionTrue, "n")
	return r
}

func TestTheCopyStaysWhileTheNewClusterIsSilentAndGoesWhenItSpeaks(t *testing.T) {
	r := replacedIn(t)
	r.memberIs("n", metav1.ConditionUnknown, "")
	done := r.waiting(wf.AdvanceRequest{})
	r.memberIs("n", metav1.ConditionTrue, "")
	assert.Equal(t, []string{"remove a"}, steps(r.ended(done)), "no time has passed: it is woken")
}

func TestTheNewClusterIsLookedAtAgainBeforeTheCopyGoes(t *testing.T) {
	for sentence, test := range map[string]struct {
		meanwhile func(r *rollout)
		gone      bool
	}{
		"nothing has changed":               {func(*rollout) {}, true},
		"the new cluster has fallen silent": {func(r *rollout) { r.memberIs("n", metav1.ConditionUnknown, "") }, false},
		"the new copy is not available":     {func(r *rollout) { r.report("n", metav1.ConditionFalse) }, false},
		"the new copy goes": {func(r *rollout) {
			r.set("n", func(b *placementv1beta1.ClusterResourceBinding) {
				b.Spec.State = placementv1beta1.BindingStateUnscheduled
			})
		}, false},
		"the new copy is taken away by a user": {func(r *rollout) { require.NoError(r.t, r.Delete(r.t.Context(), r.binding("n"))) }, false},
	} {
		t.Run(sentence, func(t *testing.T) {
			r := replacedIn(t)
			r.memberIs("n", metav1.ConditionTrue, "")
			decided := r.advance(wf.AdvanceRequest{})
			require.Equal(t, []string{"remove a"}, steps(decided))
			test.meanwhile(r)
			done := make(chan wf.AdvanceResult, 1)
			go func() { done <- r.advance(wf.AdvanceRequest{Batch: decided.Next}) }()
			select {
			case <-done:
			case <-r.clock.waits:
				defer func() {
					r.clock.Step(time.Hour)
					r.ended(done)
				}()
			}
			b := &placementv1beta1.ClusterResourceBinding{}
			err := r.Get(t.Context(), client.ObjectKey{Name: placementv1beta1.BindingName("crp", "crp-uid", "a")}, b)
			assert.Equal(t, test.gone, err != nil || b.DeletionTimestamp != nil)
		})
	}
}
