package work

import (
	"errors"
	"testing"

	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

func TestWhatLeavesAWorkLeavesTheMember(t *testing.T) {
	a := newAgent(t, []client.Object{manifestWork("w", "a", "b")}, nil)
	a.mustReconcile(t, "w")
	a.setManifests(t, "w", mapManifests("b", "c"))
	a.mustReconcile(t, "w")
	assert.False(t, a.hasConfigMap(t, "a"))
	assert.True(t, a.hasConfigMap(t, "b"))
	assert.True(t, a.hasConfigMap(t, "c"))
	applied := &placementv1beta1.AppliedWork{}
	require.NoError(t, a.member.Get(t.Context(), types.NamespacedName{Name: "w"}, applied))
	require.Len(t, applied.Status.AppliedResources, 2)
	for _, item := range applied.Status.AppliedResources {
		assert.NotEmpty(t, item.UID)
	}
}

func TestNothingIsPrunedWhileAManifestFails(t *testing.T) {
	a := newAgent(t, []client.Object{manifestWork("w", "a")}, nil)
	a.mustReconcile(t, "w")
	a.fail = func(write string) error {
		if write == "member create ConfigMap b" {
			return apierrors.NewForbidden(corev1.Resource("configmaps"), "b", errors.New("quota"))
		}
		return nil
	}
	a.setManifests(t, "w", mapManifests("b"))
	_, result, err := a.reconcileByName(t, "w")
	require.NoError(t, err)
	assert.InDelta(t, 210, result.RequeueAfter.Milliseconds(), 11, "it is tried again soon")
	assert.True(t, a.hasConfigMap(t, "a"), "what runs may still need it")
	assert.Equal(t, "SomeManifestsAreNotApplied", a.conditionReasons(t, "w")[0])

	a.clock.SetTime(a.clock.Now().Add(result.RequeueAfter))
	_, result, _ = a.reconcileByName(t, "w")
	assert.InDelta(t, 420, result.RequeueAfter.Milliseconds(), 22, "and then ever more slowly")
	a.fail = func(string) error { return nil }
	a.afterRetryDelay().mustReconcile(t, "w")
	assert.False(t, a.hasConfigMap(t, "a"))
	assert.True(t, a.hasConfigMap(t, "b"))
}

func TestNothingIsPrunedWhileAManifestCannotBeRead(t *testing.T) {
	a := newAgent(t, []client.Object{manifestWork("w", "a")}, nil)
	a.mustReconcile(t, "w")
	a.setManifests(t, "w", []placementv1beta1.Manifest{{RawExtension: runtime.RawExtension{Raw: []byte(`{"kind":"?"}`)}}})
	a.mustReconcile(t, "w")
	assert.True(t, a.hasConfigMap(t, "a"), "the manifest may be of this object")
	assert.Equal(t, "SomeManifestsAreNotApplied", a.conditionReasons(t, "w")[0])
}

func TestADeletedWorkIsLetGoWhenAllItBroughtIsGone(t *testing.T) {
	a := newAgent(t, []client.Object{manifestWork("w", "a", "b")}, nil)
	a.mustReconcile(t, "w")
	stuck := &corev1.ConfigMap{}
	require.True(t, a.readMember(t, stuck, "b"))
	stuck.Finalizers = []string{"example.com/hold"}
	require.NoError(t, a.member.Update(t.Context(), stuck))

	require.NoError(t, a.hub.Delete(t.Context(), a.work(t, "w")))
	a.mustReconcile(t, "w")
	assert.False(t, a.hasConfigMap(t, "a"))
	assert.NotEmpty(t, a.work(t, "w").Finalizers, "one object is still there")

	require.True(t, a.readMember(t, stuck, "b"))
	stuck.Finalizers = nil
	require.NoError(t, a.member.Update(t.Context(), stuck))
	assert.Equal(t, []string{"member delete AppliedWork w", "hub patch Work w"}, a.mustReconcile(t, "w"))
	err := a.hub.Get(t.Context(), types.NamespacedName{Namespace: testNamespace, Name: "w"}, &placementv1beta1.Work{})
	assert.True(t, apierrors.IsNotFound(err))

	nothing := &crash{}
	a.HubLive, a.engine.Client, a.Member = nothing.wrapClient(a.hub), nothing.wrapClient(a.member), nothing.wrapClient(a.member)
	assert.Empty(t, a.mustReconcile(t, "w"), "and when the cache hears of it, nobody is asked")
	assert.Zero(t, nothing.callsLeft)
}

func TestWhatAVanishedWorkHasBroughtStays(t *testing.T) {
	a := newAgent(t, []client.Object{manifestWork("w", "a", "b")}, nil)
	var logged []string
	ctx := log.IntoContext(t.Context(), funcr.New(func(_, args string) { logged = append(logged, args) }, funcr.Options{}))
	a.mustReconcile(t, "w")
	again := manifestWork("w", "a")
	a.removeWorkFromHub(t, "w")
	for range 3 {
		a.writes = nil
		_, err := a.Reconcile(ctx, requestForWork(testNamespace, "w"))
		require.NoError(t, err)
		assert.Empty(t, a.writes, "a Work is never gone before the agent has let go of it: the hub has lost it")
	}
	require.Len(t, logged, 1, "it is said once")
	assert.True(t, a.hasConfigMap(t, "a"))

	again.UID = "another"
	require.NoError(t, a.hub.Create(t.Context(), again))
	a.mustReconcile(t, "w")
	assert.Equal(t, "AllManifestsApplied", a.conditionReasons(t, "w")[0], "a Work of that name takes up again what it finds")
	assert.True(t, a.hasConfigMap(t, "a"))
	assert.False(t, a.hasConfigMap(t, "b"))
}

func TestWhatAWorkHasBroughtGoesIfItVanishesWhileItIsCleanedUp(t *testing.T) {
	a := newAgent(t, []client.Object{manifestWork("w", "a")}, nil)
	a.mustReconcile(t, "w")
	require.NoError(t, a.hub.Delete(t.Context(), a.work(t, "w")))
	busy := true
	a.fail = func(write string) error {
		if busy && write == "member delete ConfigMap a" {
			return apierrors.NewServiceUnavailable("later")
		}
		return nil
	}
	_, _, err := a.reconcileByName(t, "w")
	require.Error(t, err)
	busy = false
	a.removeWorkFromHub(t, "w")
	assert.Equal(t, []string{"member delete ConfigMap a", "member delete AppliedWork w"}, a.mustReconcile(t, "w"))
}

func TestWhatWasKeptStaysWhenTheClusterJoinsAgain(t *testing.T) {
	a := newAgent(t, []client.Object{manifestWork("w", "a")}, nil)
	a.mustReconcile(t, "w")
	require.NoError(t, a.hub.Delete(t.Context(), a.work(t, "w")))
	a.fail = func(write string) error {
		if write == "member delete ConfigMap a" {
			return apierrors.NewServiceUnavailable("later")
		}
		return nil
	}
	_, _, err := a.reconcileByName(t, "w")
	require.Error(t, err, "the clean-up has begun")
	a.fail = func(string) error { return nil }
	require.NoError(t, a.SetMode(t.Context(), ModeAbandon))
	assert.Equal(t, []string{"hub patch Work w"}, a.mustReconcile(t, "w"))

	require.NoError(t, a.SetMode(t.Context(), ModeApply))
	assert.Empty(t, a.mustReconcile(t, "w"))
	assert.True(t, a.hasConfigMap(t, "a"))
}

func TestAnAppliedWorkOfAnotherHubIsLeftAlone(t *testing.T) {
	foreign := &placementv1beta1.AppliedWork{
		ObjectMeta: metav1.ObjectMeta{Name: "w", UID: "uid-w"},
		Spec:       placementv1beta1.AppliedWorkSpec{WorkName: "w", WorkNamespace: "fleet-member-other"},
	}
	a := newAgent(t, nil, []client.Object{foreign})
	assert.Empty(t, a.mustReconcile(t, "w"))
	names, err := a.Remaining(t.Context())
	require.NoError(t, err)
	assert.Empty(t, names)
}

func TestAnObjectMovesBetweenWorksOfABindingWithoutBeingDeleted(t *testing.T) {
	for name, order := range map[string][]string{
		"the Work that loses it is looked at first": {"first", "second", "first"},
		"the Work that gains it is looked at first": {"second", "first"},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAgent(t, []client.Object{manifestWork("first", "a", "b"), manifestWork("second")}, nil)
			a.mustReconcile(t, "first")
			a.mustReconcile(t, "second")
			a.setManifests(t, "first", mapManifests("b"))
			a.setManifests(t, "second", mapManifests("a"))
			var writes []string
			for _, work := range order {
				writes = append(writes, a.mustReconcile(t, work)...)
			}
			assert.NotContains(t, writes, "member delete ConfigMap a")
			got := &corev1.ConfigMap{}
			require.True(t, a.readMember(t, got, "a"))
			require.Len(t, got.OwnerReferences, 1)
			assert.Equal(t, "second", got.OwnerReferences[0].Name)
		})
	}
}

func TestWhatADeletedWorkLeavesToItsSiblingIsNeverDeleted(t *testing.T) {
	a := newAgent(t, []client.Object{manifestWork("first", "a"), manifestWork("second", "b", "c")}, nil)
	a.mustReconcile(t, "first")
	a.mustReconcile(t, "second")
	a.setManifests(t, "first", mapManifests("a", "b"))
	require.NoError(t, a.hub.Delete(t.Context(), a.work(t, "second")))

	writes := a.mustReconcile(t, "second")
	assert.NotContains(t, writes, "member delete ConfigMap b", "the first Work has not applied it yet")
	assert.Contains(t, writes, "member delete ConfigMap c", "nobody has it any more")
	assert.NotEmpty(t, a.work(t, "second").Finalizers, "b is not handed over yet")

	a.mustReconcile(t, "first")
	got := &corev1.ConfigMap{}
	require.True(t, a.readMember(t, got, "b"))
	require.Len(t, got.OwnerReferences, 1)
	assert.Equal(t, "first", got.OwnerReferences[0].Name)
	assert.Equal(t, []string{"member delete AppliedWork second", "hub patch Work second"}, a.mustReconcile(t, "second"))
	assert.True(t, a.hasConfigMap(t, "b"))
}

func TestADeletedWorkLeavesNothingToOthers(t *testing.T) {
	for name, change := range map[string]func(a *agent, sibling *placementv1beta1.Work){
		"nothing to a Work that writes nothing": func(_ *agent, w *placementv1beta1.Work) {
			w.Spec.ApplyStrategy = &placementv1beta1.ApplyStrategy{Type: placementv1beta1.ApplyStrategyTypeReportDiff}
		},
		"nothing to a Work that is being deleted as well":    func(a *agent, w *placementv1beta1.Work) { require.NoError(t, a.hub.Delete(t.Context(), w)) },
		"nothing to anyone in a cluster that leaves":         func(a *agent, _ *placementv1beta1.Work) { require.NoError(t, a.SetMode(t.Context(), ModeLeave)) },
		"nothing to a Work that does not have it (any more)": func(_ *agent, w *placementv1beta1.Work) { w.Spec.Workload.Manifests = nil },
	} {
		t.Run(name, func(t *testing.T) {
			a := newAgent(t, []client.Object{manifestWork("first"), manifestWork("second", "b")}, nil)
			a.mustReconcile(t, "second")
			a.setManifests(t, "first", mapManifests("b"))
			sibling := a.work(t, "first")
			change(a, sibling)
			if sibling.DeletionTimestamp.IsZero() {
				_ = a.hub.Update(t.Context(), sibling)
			}
			require.NoError(t, a.hub.Delete(t.Context(), a.work(t, "second")))
			assert.Contains(t, a.mustReconcile(t, "second"), "member delete ConfigMap b")
		})
	}
}

func TestWhatADeletedWorkLeavesToAnotherPlacementIsNeverDeleted(t *testing.T) {
	for name, change := range map[string]func(w *placementv1beta1.Work){
		"to a Work of another placement": func(w *placementv1beta1.Work) { w.Labels[placementv1beta1.ParentBindingLabel] = "crp-2-one" },
		"to a Work of a binding of another life": func(w *placementv1beta1.Work) {
			w.Annotations = map[string]string{placementv1beta1.BindingUIDAnnotation: "uid-2"}
		},
		"to a Work that takes nothing over otherwise": func(w *placementv1beta1.Work) {
			w.Spec.ApplyStrategy = &placementv1beta1.ApplyStrategy{WhenToTakeOver: placementv1beta1.WhenToTakeOverTypeNever}
		},
	} {
		t.Run(name, func(t *testing.T) {
			heir := manifestWork("first", "b")
			change(heir)
			a := newAgent(t, []client.Object{heir, manifestWork("second", "b")}, nil)
			a.mustReconcile(t, "second")
			a.mustReconcile(t, "first")
			require.NoError(t, a.hub.Delete(t.Context(), a.work(t, "second")))
			var writes []string
			for _, work := range []string{"second", "first", "second"} {
				writes = append(writes, a.afterRetryDelay().mustReconcile(t, work)...)
			}
			assert.NotContains(t, writes, "member delete ConfigMap b")
			assert.Contains(t, writes, "hub patch Work second", "the deleted Work is let go")
			got := &corev1.ConfigMap{}
			require.True(t, a.readMember(t, got, "b"))
			require.Len(t, got.OwnerReferences, 1)
			assert.Equal(t, "first", got.OwnerReferences[0].Name)
		})
	}
}

func TestWhatWasHandedOverIsNoLongerListed(t *testing.T) {
	a := newAgent(t, []client.Object{manifestWork("first", "a", "b"), manifestWork("second")}, nil)
	a.mustReconcile(t, "first")
	a.setManifests(t, "first", mapManifests("b"))
	a.setManifests(t, "second", mapManifests("a"))
	for _, name := range []string{"first", "second", "first"} {
		a.mustReconcile(t, name)
	}
	applied := &placementv1beta1.AppliedWork{}
	require.NoError(t, a.member.Get(t.Context(), types.NamespacedName{Name: "first"}, applied))
	require.Len(t, applied.Status.AppliedResources, 1)
	assert.Equal(t, "b", applied.Status.AppliedResources[0].Name)
}

// removeWorkFromHub removes a Work without the agent having removed its finalizer.
func (a *agent) removeWorkFromHub(t *testing.T, name string) {
	t.Helper()
	lost := a.work(t, name)
	lost.Finalizers = nil
	require.NoError(t, a.hub.Update(t.Context(), lost))
	require.NoError(t, client.IgnoreNotFound(a.hub.Delete(t.Context(), lost)))
}

func TestWhatAnAbandoningWorkHasBroughtStaysAndIsNobodys(t *testing.T) {
	for sentence, mode := range map[string]Mode{
		"a placement is deleted":                          ModeApply,
		"a placement is deleted while the cluster leaves": ModeLeave,
	} {
		t.Run(sentence, func(t *testing.T) {
			a := newAgent(t, []client.Object{manifestWork("w", "a", "b")}, nil)
			a.mustReconcile(t, "w")
			work := a.work(t, "w")
			work.Annotations = map[string]string{placementv1beta1.DeletePropagationAnnotation: "Abandon"}
			require.NoError(t, a.hub.Update(t.Context(), work))
			require.NoError(t, a.hub.Delete(t.Context(), work))
			require.NoError(t, a.SetMode(t.Context(), mode))
			a.mustReconcile(t, "w")

			got := &corev1.ConfigMap{}
			for _, name := range []string{"a", "b"} {
				require.True(t, a.readMember(t, got, name))
				assert.Empty(t, got.OwnerReferences, "nobody collects it")
				assert.NotContains(t, got.Annotations, placementv1beta1.LastAppliedConfigAnnotation)
				assert.NotContains(t, got.Annotations, placementv1beta1.ManifestHashAnnotation)
			}
			names, err := a.Remaining(t.Context())
			require.NoError(t, err)
			assert.Empty(t, names, "the AppliedWork is gone")
			err = a.hub.Get(t.Context(), types.NamespacedName{Namespace: testNamespace, Name: "w"}, &placementv1beta1.Work{})
			assert.True(t, apierrors.IsNotFound(err), "and the Work")
		})
	}
}

func TestWhatLeavesAWorkThatAbandonsStaysAndIsNobodys(t *testing.T) {
	a := newAgent(t, []client.Object{manifestWork("w", "a", "b")}, nil)
	a.mustReconcile(t, "w")
	work := a.work(t, "w")
	work.Annotations = map[string]string{placementv1beta1.RemovedResourcesAnnotation: "Abandon"}
	require.NoError(t, a.hub.Update(t.Context(), work))
	a.setManifests(t, "w", mapManifests("b"))
	a.mustReconcile(t, "w")
	got := &corev1.ConfigMap{}
	require.True(t, a.readMember(t, got, "a"))
	assert.Empty(t, got.OwnerReferences, "nobody collects it")
	require.True(t, a.readMember(t, got, "b"))
	assert.NotEmpty(t, got.OwnerReferences)

	// The end of the placement says for itself what happens to what is still in the Work.
	require.NoError(t, a.hub.Delete(t.Context(), a.work(t, "w")))
	a.mustReconcile(t, "w")
	assert.True(t, a.hasConfigMap(t, "a"))
	assert.False(t, a.hasConfigMap(t, "b"))
}
