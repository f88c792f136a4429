package bind_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/bind"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/test/fixture"
)

func read(t *testing.T, c client.Client, name string) *placementv1beta1.ClusterResourceBinding {
	t.Helper()
	b := &placementv1beta1.ClusterResourceBinding{}
	require.NoError(t, c.Get(t.Context(), client.ObjectKey{Name: name}, b))
	return b
}

var target = bind.Target{
	Snapshot:                         "crp-1-snapshot",
	ResourceOverrideSnapshots:        []placementv1beta1.NamespacedName{{Namespace: "app", Name: "ro-1"}},
	ClusterResourceOverrideSnapshots: []string{"cro-1"},
	ApplyStrategy:                    &placementv1beta1.ApplyStrategy{Type: placementv1beta1.ApplyStrategyTypeServerSideApply},
	Annotations:                      map[string]string{"fleetflow.io/update-run": "run", "a~b": "c"},
}

func TestBindPointsABindingToTheTarget(t *testing.T) {
	for sentence, prepare := range map[string]func(*placementv1beta1.ClusterResourceBinding){
		"one that was just scheduled": func(b *placementv1beta1.ClusterResourceBinding) {
			b.Spec.State = placementv1beta1.BindingStateScheduled
			b.Spec.ResourceSnapshotName = ""
		},
		"one without annotations": func(b *placementv1beta1.ClusterResourceBinding) { b.Annotations = nil },
		"one with annotations": func(b *placementv1beta1.ClusterResourceBinding) {
			b.Annotations = map[string]string{"kept": "yes", "fleetflow.io/update-run": "earlier"}
		},
		"one with overrides of its own": func(b *placementv1beta1.ClusterResourceBinding) {
			b.Spec.ClusterResourceOverrideSnapshots = []string{"cro-0"}
			b.Spec.ApplyStrategy = &placementv1beta1.ApplyStrategy{Type: placementv1beta1.ApplyStrategyTypeReportDiff}
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			b := fixture.Binding("a", 1)
			prepare(b)
			c := fixture.APIServer(t, b)
			from := read(t, c, "crp-a")
			got, err := bind.PointTo(t.Context(), c, from, target)
			require.NoError(t, err)
			stored := read(t, c, "crp-a")
			assert.Equal(t, stored.ResourceVersion, got.ResourceVersion, "the caller knows what was written")
			assert.Equal(t, placementv1beta1.BindingStateBound, stored.Spec.State)
			assert.Equal(t, "crp-1-snapshot", stored.Spec.ResourceSnapshotName)
			assert.Equal(t, target.ApplyStrategy, stored.Spec.ApplyStrategy)
			assert.Equal(t, target.ClusterResourceOverrideSnapshots, stored.Spec.ClusterResourceOverrideSnapshots)
			assert.Equal(t, target.ResourceOverrideSnapshots, stored.Spec.ResourceOverrideSnapshots)
			assert.Equal(t, "run", stored.Annotations["fleetflow.io/update-run"])
			assert.Equal(t, "c", stored.Annotations["a~b"])
			assert.Equal(t, b.Annotations["kept"], stored.Annotations["kept"])

			_, err = bind.PointTo(t.Context(), c, stored, bind.Target{Snapshot: "crp-2-snapshot"})
			require.NoError(t, err)
			stored = read(t, c, "crp-a")
			assert.Nil(t, stored.Spec.ApplyStrategy)
			assert.Empty(t, stored.Spec.ResourceOverrideSnapshots)
			assert.Empty(t, stored.Spec.ClusterResourceOverrideSnapshots)
		})
	}
}

func TestBindIsFencedByWhatTheDecisionRestedOn(t *testing.T) {
	for sentence, change := range map[string]func(*placementv1beta1.ClusterResourceBinding){
		"another binding of the name": func(b *placementv1beta1.ClusterResourceBinding) { b.UID = "another" },
		"another state": func(b *placementv1beta1.ClusterResourceBinding) {
			b.Spec.State = placementv1beta1.BindingStateUnscheduled
		},
		"another snapshot": func(b *placementv1beta1.ClusterResourceBinding) { b.Spec.ResourceSnapshotName = "crp-7-snapshot" },
	} {
		t.Run(sentence, func(t *testing.T) {
			c := fixture.APIServer(t, fixture.Binding("a", 1))
			from := read(t, c, "crp-a")
			now := from.DeepCopy()
			change(now)
			require.NoError(t, c.Update(t.Context(), now))
			_, err := bind.PointTo(t.Context(), c, from, target)
			require.ErrorIs(t, err, bind.ErrFenced)
			assert.Equal(t, now.ResourceVersion, read(t, c, "crp-a").ResourceVersion, "nothing is written")
		})
	}
	t.Run("a binding that is gone", func(t *testing.T) {
		_, err := bind.PointTo(t.Context(), fixture.APIServer(t), fixture.Binding("a", 1), target)
		require.ErrorIs(t, err, bind.ErrFenced)
	})
}

func TestBindIsNotFencedByTheStatusNorByOthersAnnotations(t *testing.T) {
	b := fixture.Binding("a", 1)
	b.Annotations = map[string]string{"first": "1"}
	c := fixture.APIServer(t, b)
	from := read(t, c, "crp-a")
	now := from.DeepCopy()
	now.Annotations["second"] = "2"
	require.NoError(t, c.Update(t.Context(), now))
	now.Status.Conditions = []metav1.Condition{{Type: "Available", Status: metav1.ConditionTrue, Reason: "r", LastTransitionTime: metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))}}
	require.NoError(t, c.Status().Update(t.Context(), now))
	_, err := bind.PointTo(t.Context(), c, from, target)
	require.NoError(t, err)
	stored := read(t, c, "crp-a")
	assert.Equal(t, "2", stored.Annotations["second"], "what somebody else has annotated meanwhile stays")
	assert.Equal(t, "1", stored.Annotations["first"])
	assert.Len(t, stored.Status.Conditions, 1)
}

func TestRemoveDeletesOnlyWhatWasDecidedOn(t *testing.T) {
	c := fixture.APIServer(t, fixture.Binding("a", 1))
	from := read(t, c, "crp-a")
	now := from.DeepCopy()
	now.Spec.State = placementv1beta1.BindingStateScheduled // picked again
	require.NoError(t, c.Update(t.Context(), now))
	require.ErrorIs(t, bind.Remove(t.Context(), c, from), bind.ErrFenced)
	require.NoError(t, bind.Remove(t.Context(), c, now))
	require.NoError(t, bind.Remove(t.Context(), c, now), "one that is gone is removed")
	going := fixture.Binding("b", 1)
	going.DeletionTimestamp = &metav1.Time{Time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	require.NoError(t, bind.Remove(t.Context(), c, going), "one that is going, too")
}

func TestABindingSaysWhatHappensToResourcesThatLeaveItOnlyIfItHasTo(t *testing.T) {
	const key = placementv1beta1.RemovedResourcesAnnotation
	placement := func(policy placementv1beta1.DeletePropagationPolicy) *placementv1beta1.ClusterResourcePlacement {
		return &placementv1beta1.ClusterResourcePlacement{Spec: placementv1beta1.PlacementSpec{Strategy: &placementv1beta1.RolloutStrategy{
			DeleteStrategy: &placementv1beta1.DeleteStrategy{RemovedResources: policy},
		}}}
	}
	plain := fixture.Binding("a", 1)
	said := fixture.Binding("a", 1)
	said.Annotations = map[string]string{key: "Abandon"}
	assert.Empty(t, bind.RemovedResources(plain, &placementv1beta1.ClusterResourcePlacement{}))
	assert.Empty(t, bind.RemovedResources(plain, placement("Delete")))
	assert.Equal(t, map[string]string{key: "Abandon"}, bind.RemovedResources(plain, placement("Abandon")))
	assert.Equal(t, map[string]string{key: "Delete"}, bind.RemovedResources(said, placement("")))
}
