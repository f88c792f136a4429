package work

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	discoveryfake "k8s.io/client-go/discovery/fake"
	metadatafake "k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

const namespaceManifest = `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"n"}}`

// namespaceWork is a Work of a placement with a Namespace and ConfigMaps in it.
func namespaceWork(name string, maps ...string) *placementv1beta1.Work {
	work := manifestWork(name, maps...)
	work.Labels = map[string]string{placementv1beta1.ParentPlacementLabel: "crp-" + name, placementv1beta1.ParentBindingLabel: "crp-" + name + "-one"}
	namespace := placementv1beta1.Manifest{RawExtension: runtime.RawExtension{Raw: []byte(namespaceManifest)}}
	work.Spec.Workload.Manifests = append([]placementv1beta1.Manifest{namespace}, work.Spec.Workload.Manifests...)
	return work
}

// has lets the member have objects besides those that are placed, as the agent's metadata client and discovery see them.
func (a *agent) has(objects ...*metav1.PartialObjectMetadata) {
	scheme := metadatafake.NewTestScheme()
	_ = metav1.AddMetaToScheme(scheme)
	var listed []runtime.Object
	for _, o := range objects {
		listed = append(listed, o)
	}
	a.contents.metadata = metadatafake.NewSimpleMetadataClient(scheme, listed...)
	verbs := metav1.Verbs{"list", "delete"}
	a.contents.discovery = &discoveryfake.FakeDiscovery{Fake: &clienttesting.Fake{Resources: []*metav1.APIResourceList{{
		GroupVersion: "v1", APIResources: []metav1.APIResource{
			{Name: "configmaps", Kind: "ConfigMap", Namespaced: true, Verbs: verbs},
			{Name: "serviceaccounts", Kind: "ServiceAccount", Namespaced: true, Verbs: verbs},
			{Name: "persistentvolumeclaims", Kind: "PersistentVolumeClaim", Namespaced: true, Verbs: verbs},
			{Name: "events", Kind: "Event", Namespaced: true, Verbs: verbs},
		},
	}}}}
}

func metadataOf(kind, name string, change ...func(*metav1.PartialObjectMetadata)) *metav1.PartialObjectMetadata {
	o := &metav1.PartialObjectMetadata{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: kind}, ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name},
	}
	for _, c := range change {
		c(o)
	}
	return o
}

// hasNamespace reads the Namespace, if it is there.
func (a *agent) hasNamespace(t *testing.T, into *corev1.Namespace) bool {
	t.Helper()
	err := a.member.Get(t.Context(), client.ObjectKey{Name: "n"}, into)
	require.NoError(t, client.IgnoreNotFound(err))
	return err == nil
}

func (a *agent) pending(t *testing.T, work string) *metav1.Condition {
	t.Helper()
	return placementv1beta1.FindTrue(a.work(t, work).Status.Conditions, placementv1beta1.ConditionTypeRemovalPending)
}

// deleteAndWait deletes a Work and has the agent look at it until the status tells what takes long.
func (a *agent) deleteAndWait(t *testing.T, name string) {
	t.Helper()
	require.NoError(t, a.hub.Delete(t.Context(), a.work(t, name)))
	a.mustReconcile(t, name)
	a.clock.SetTime(a.clock.Now().Add(removalPatience))
	a.mustReconcile(t, name)
}

func TestANamespaceInWhichOthersHaveObjectsIsNotRemoved(t *testing.T) {
	mine := func(o *metav1.PartialObjectMetadata) {
		o.OwnerReferences = []metav1.OwnerReference{{APIVersion: placementv1beta1.GroupVersion.String(), Kind: "AppliedWork", Name: "one", UID: "uid-one"}}
	}
	by := func(manager string) func(o *metav1.PartialObjectMetadata) {
		return func(o *metav1.PartialObjectMetadata) {
			o.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate}}
		}
	}
	for name, tc := range map[string]struct {
		has  []*metav1.PartialObjectMetadata
		says string // empty if the Namespace is removed
	}{
		"nothing is in it": {},
		"what is placed is in it, and what every cluster makes": {has: []*metav1.PartialObjectMetadata{
			metadataOf("ConfigMap", "a", mine), metadataOf("ConfigMap", "kube-root-ca.crt"), metadataOf("ServiceAccount", "default"), metadataOf("Event", "e"),
			metadataOf("ConfigMap", "istio-ca-root-cert"), metadataOf("ConfigMap", "made", by("kube-controller-manager")),
		}},
		"a ConfigMap of the cluster is in it": {
			has: []*metav1.PartialObjectMetadata{metadataOf("ConfigMap", "local", by("kubectl"))}, says: "ConfigMap n/local of the cluster",
		},
		"a claim that a controller made is in it": {
			has:  []*metav1.PartialObjectMetadata{metadataOf("PersistentVolumeClaim", "data-db-0", by("kube-controller-manager"))},
			says: "PersistentVolumeClaim n/data-db-0 of the cluster",
		},
		"an object of another fleet is in it": {has: []*metav1.PartialObjectMetadata{metadataOf("ConfigMap", "c", func(o *metav1.PartialObjectMetadata) {
			o.OwnerReferences = []metav1.OwnerReference{{APIVersion: placementv1beta1.GroupVersion.String(), Kind: "AppliedWork", Name: "other", UID: "u"}}
		})}, says: "ConfigMap n/c of AppliedWork other"},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAgent(t, []client.Object{namespaceWork("one", "a")}, nil)
			a.mustReconcile(t, "one")
			a.has(tc.has...)
			if tc.says == "" {
				require.NoError(t, a.hub.Delete(t.Context(), a.work(t, "one")))
				assert.Contains(t, a.mustReconcile(t, "one"), "member delete Namespace n")
				return
			}
			a.deleteAndWait(t, "one")
			require.True(t, a.hasNamespace(t, &corev1.Namespace{}))
			assert.False(t, a.hasConfigMap(t, "a"), "the rest is removed")
			c := a.pending(t, "one")
			require.NotNil(t, c)
			assert.Equal(t, placementv1beta1.ReasonInUse, c.Reason)
			assert.Contains(t, c.Message, "Namespace n is not removed, as others have objects in it, which would go with it: "+tc.says)

			a.has()
			a.mustReconcile(t, "one")
			assert.False(t, a.hasNamespace(t, &corev1.Namespace{}), "it goes once they are gone")
		})
	}
}

func TestACluterThatLeavesKeepsANamespaceWithItsOwnObjects(t *testing.T) {
	a := newAgent(t, []client.Object{namespaceWork("one", "a")}, nil)
	a.mustReconcile(t, "one")
	a.has(metadataOf("ConfigMap", "local"))
	require.NoError(t, a.SetMode(t.Context(), ModeLeave))
	a.mustReconcile(t, "one")
	namespace := &corev1.Namespace{}
	require.True(t, a.hasNamespace(t, namespace))
	assert.Empty(t, namespace.OwnerReferences, "it is the cluster's from now on")
	names, err := a.Remaining(t.Context())
	require.NoError(t, err)
	assert.Empty(t, names, "the leaving does not wait")
}

func TestACluterThatLeavesKeepsANamespaceInWhichAPlacementLeavesItsObjects(t *testing.T) {
	a := newAgent(t, []client.Object{namespaceWork("one"), manifestWork("two", "b")}, nil)
	a.mustReconcile(t, "one")
	a.mustReconcile(t, "two")
	placed := &corev1.ConfigMap{}
	require.True(t, a.readMember(t, placed, "b"))
	a.has(metadataOf("ConfigMap", "b", func(o *metav1.PartialObjectMetadata) { o.OwnerReferences = placed.OwnerReferences }))
	two := a.work(t, "two")
	metav1.SetMetaDataAnnotation(&two.ObjectMeta, placementv1beta1.DeletePropagationAnnotation, string(placementv1beta1.DeletePropagationPolicyAbandon))
	require.NoError(t, a.hub.Update(t.Context(), two))
	require.NoError(t, a.hub.Delete(t.Context(), two))
	require.NoError(t, a.SetMode(t.Context(), ModeLeave))
	a.mustReconcile(t, "one")
	a.mustReconcile(t, "two")
	namespace := &corev1.Namespace{}
	require.True(t, a.hasNamespace(t, namespace))
	assert.Empty(t, namespace.OwnerReferences, "it is the cluster's from now on")
	names, err := a.Remaining(t.Context())
	require.NoError(t, err)
	assert.Empty(t, names, "the leaving does not wait")
}

func TestTheOwnerOfAClusterLetsANamespaceGoWithWhatIsInIt(t *testing.T) {
	a := newAgent(t, []client.Object{namespaceWork("one")}, nil)
	a.mustReconcile(t, "one")
	a.has(metadataOf("ConfigMap", "local"))
	namespace := &corev1.Namespace{}
	require.True(t, a.hasNamespace(t, namespace))
	namespace.Annotations[placementv1beta1.RemoveContentAnnotation] = "true"
	require.NoError(t, a.member.Update(t.Context(), namespace))
	require.NoError(t, a.hub.Delete(t.Context(), a.work(t, "one")))
	assert.Contains(t, a.mustReconcile(t, "one"), "member delete Namespace n")
}

func TestTheEndOfOnePlacementKeepsWhatAnotherHasInItsNamespace(t *testing.T) {
	t.Run("both have the Namespace: it is handed over", func(t *testing.T) {
		a := newAgent(t, []client.Object{namespaceWork("one", "a"), namespaceWork("two", "b")}, nil)
		a.mustReconcile(t, "one")
		a.mustReconcile(t, "two")
		require.NoError(t, a.hub.Delete(t.Context(), a.work(t, "one")))
		for _, name := range []string{"one", "two", "one"} {
			a.afterRetryDelay().mustReconcile(t, name)
		}
		namespace := &corev1.Namespace{}
		require.True(t, a.hasNamespace(t, namespace))
		require.Len(t, namespace.OwnerReferences, 1)
		assert.Equal(t, "two", namespace.OwnerReferences[0].Name)
		assert.True(t, a.hasConfigMap(t, "b"))
		assert.NotContains(t, a.writes, "member delete Namespace n")
	})
	t.Run("one has it alone: it stays until the other ends as well", func(t *testing.T) {
		other := manifestWork("two", "b")
		other.Labels = map[string]string{placementv1beta1.ParentPlacementLabel: "web", placementv1beta1.ParentNamespaceLabel: "n"}
		a := newAgent(t, []client.Object{namespaceWork("one"), other}, nil)
		a.mustReconcile(t, "one")
		a.mustReconcile(t, "two")
		a.deleteAndWait(t, "one")
		c := a.pending(t, "one")
		require.NotNil(t, c)
		assert.Contains(t, c.Message, "ConfigMap n/b of placement n/web")
		require.NoError(t, a.hub.Delete(t.Context(), a.work(t, "two")))
		a.mustReconcile(t, "two")
		a.mustReconcile(t, "one")
		assert.False(t, a.hasNamespace(t, &corev1.Namespace{}))
	})
	t.Run("the Work itself still has objects in it", func(t *testing.T) {
		a := newAgent(t, []client.Object{namespaceWork("one", "a")}, nil)
		a.mustReconcile(t, "one")
		a.setManifests(t, "one", mapManifests("a"))
		a.mustReconcile(t, "one")
		assert.True(t, a.hasNamespace(t, &corev1.Namespace{}))
		assert.True(t, a.hasConfigMap(t, "a"))
	})
}

func TestANamespaceStaysUntilAnotherWorkThatEndsHasLeftItsObjectsThere(t *testing.T) {
	abandon := string(placementv1beta1.DeletePropagationPolicyAbandon)
	for name, tc := range map[string]struct {
		end    func(t *testing.T, a *agent)
		leaves bool
	}{
		"it is deleted and leaves them": {leaves: true, end: func(t *testing.T, a *agent) {
			two := a.work(t, "two")
			metav1.SetMetaDataAnnotation(&two.ObjectMeta, placementv1beta1.DeletePropagationAnnotation, abandon)
			require.NoError(t, a.hub.Update(t.Context(), two))
			require.NoError(t, a.hub.Delete(t.Context(), two))
		}},
		"it drops one and leaves it": {leaves: true, end: func(t *testing.T, a *agent) {
			two := a.work(t, "two")
			metav1.SetMetaDataAnnotation(&two.ObjectMeta, placementv1beta1.RemovedResourcesAnnotation, abandon)
			require.NoError(t, a.hub.Update(t.Context(), two))
			a.setManifests(t, "two", nil)
		}},
		"it is deleted with them": {end: func(t *testing.T, a *agent) { require.NoError(t, a.hub.Delete(t.Context(), a.work(t, "two"))) }},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAgent(t, []client.Object{namespaceWork("one"), manifestWork("two", "b")}, nil)
			a.mustReconcile(t, "one")
			a.mustReconcile(t, "two")
			placed := &corev1.ConfigMap{}
			require.True(t, a.readMember(t, placed, "b"))
			a.has(metadataOf("ConfigMap", "b", func(o *metav1.PartialObjectMetadata) { o.OwnerReferences = placed.OwnerReferences }))
			tc.end(t, a)
			a.deleteAndWait(t, "one")
			require.True(t, a.hasNamespace(t, &corev1.Namespace{}), "the other Work has not ended")
			assert.Contains(t, a.pending(t, "one").Message, "ConfigMap n/b of AppliedWork two")

			a.mustReconcile(t, "two")
			if tc.leaves {
				a.has(metadataOf("ConfigMap", "b"))
			} else {
				a.has()
			}
			a.mustReconcile(t, "one")
			assert.Equal(t, tc.leaves, a.hasNamespace(t, &corev1.Namespace{}))
		})
	}
}

func TestAWorkThatEndsWhileItsObjectsAreLookedAtWakesTheNamespaceOfAnother(t *testing.T) {
	a := newAgent(t, []client.Object{namespaceWork("one"), manifestWork("two", "b")}, nil)
	a.mustReconcile(t, "one")
	a.mustReconcile(t, "two")
	placed := &corev1.ConfigMap{}
	require.True(t, a.readMember(t, placed, "b"))
	a.has(metadataOf("ConfigMap", "b", func(o *metav1.PartialObjectMetadata) { o.OwnerReferences = placed.OwnerReferences }))
	require.NoError(t, a.hub.Delete(t.Context(), a.work(t, "one")))
	require.NoError(t, a.hub.Delete(t.Context(), a.work(t, "two")))
	a.contents.metadata.(*metadatafake.FakeMetadataClient).PrependReactor("list", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
		a.enqueuer.waiting = nil
		a.mustReconcile(t, "two")
		return false, nil, nil
	})
	a.mustReconcile(t, "one")
	assert.True(t, a.hasNamespace(t, &corev1.Namespace{}), "the list has been answered before the other ended")
	assert.Contains(t, a.enqueuer.waiting, "one")
}

// A look at what is in a Namespace is a list of each kind: it is not made after each change of any Work.
func TestAChangeOfAnotherWorkIsLookedAtOnlyByWhoWaitsForWorks(t *testing.T) {
	other := manifestWork("two", "b")
	for name, tc := range map[string]struct {
		works []client.Object
		has   []*metav1.PartialObjectMetadata
		wakes []string
	}{
		"it waits for objects of the cluster":  {works: []client.Object{namespaceWork("one")}, has: []*metav1.PartialObjectMetadata{metadataOf("ConfigMap", "local")}},
		"it waits for what another Work wants": {works: []client.Object{namespaceWork("one"), other}, wakes: []string{"one"}},
		"it waits for what another fleet has": {works: []client.Object{namespaceWork("one")}, wakes: []string{"one"},
			has: []*metav1.PartialObjectMetadata{metadataOf("ConfigMap", "c", func(o *metav1.PartialObjectMetadata) {
				o.OwnerReferences = []metav1.OwnerReference{{APIVersion: placementv1beta1.GroupVersion.String(), Kind: "AppliedWork", Name: "other", UID: "u"}}
			})}},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAgent(t, tc.works, nil)
			a.mustReconcile(t, "one")
			a.has(tc.has...)
			a.deleteAndWait(t, "one")
			require.True(t, a.hasNamespace(t, &corev1.Namespace{}))
			assert.Equal(t, tc.wakes, a.memories.holdingWorks("two"))
		})
	}
}

func TestTwoWorksThatWaitDoNotWakeEachOther(t *testing.T) {
	other := manifestWork("other", "b")
	a := newAgent(t, []client.Object{namespaceWork("one"), other, manifestWork("stuck", "c")}, nil)
	for _, name := range []string{"one", "other", "stuck"} {
		a.mustReconcile(t, name)
	}
	held := &corev1.ConfigMap{}
	require.True(t, a.readMember(t, held, "c"))
	held.Finalizers = []string{"example.com/hold"}
	require.NoError(t, a.member.Update(t.Context(), held))
	a.deleteAndWait(t, "one")
	require.NoError(t, a.hub.Delete(t.Context(), a.work(t, "stuck")))
	a.enqueuer.waiting = nil
	a.mustReconcile(t, "stuck")
	assert.Contains(t, a.enqueuer.waiting, "one", "the deletion of a Work may free what is waited for")
	a.enqueuer.waiting = nil
	a.mustReconcile(t, "stuck")
	assert.NotContains(t, a.enqueuer.waiting, "one", "nothing has changed")
}

func TestWhatIsLeftIsLookedAtEverMoreSeldom(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	told := []remnant{{reason: placementv1beta1.ReasonInUse}}
	for waited, want := range map[time.Duration]time.Duration{0: 10 * time.Second, time.Minute: 15 * time.Second, time.Hour: time.Minute} {
		assert.Equal(t, want, delayUntilNextLook(1, told, remnantsSince{{Name: "n"}: {at: now.Add(-waited)}}, now), "after %s", waited)
	}
	assert.Equal(t, removalPatience, delayUntilNextLook(2, told, nil, now), "until all is told")
}

func TestARemovalThatIsRefusedIsTold(t *testing.T) {
	refuse := func(write string) error {
		if write == "member delete ConfigMap a" {
			return apierrors.NewForbidden(corev1.Resource("configmaps"), "a", errors.New("the policy says so"))
		}
		return nil
	}
	t.Run("of an object that has left the Work", func(t *testing.T) {
		a := newAgent(t, []client.Object{manifestWork("w", "a", "b")}, nil)
		a.mustReconcile(t, "w")
		a.fail = refuse
		a.setManifests(t, "w", mapManifests("b"))
		_, _, err := a.reconcileByName(t, "w")
		require.Error(t, err, "it is tried again")
		c := a.pending(t, "w")
		require.NotNil(t, c)
		assert.Equal(t, placementv1beta1.ReasonRemovalRefused, c.Reason)
		assert.Contains(t, c.Message, "ConfigMap n/a is still there, as the API server of the cluster refuses: ")
		assert.Contains(t, c.Message, "the policy says so")
		a.fail = func(string) error { return nil }
		a.mustReconcile(t, "w")
		assert.Nil(t, a.pending(t, "w"), "nothing is said of it once it is gone")
		assert.False(t, a.hasConfigMap(t, "a"))
	})
	t.Run("of an object of a deleted Work", func(t *testing.T) {
		a := newAgent(t, []client.Object{manifestWork("w", "a", "b")}, nil)
		a.mustReconcile(t, "w")
		a.fail = refuse
		require.NoError(t, a.hub.Delete(t.Context(), a.work(t, "w")))
		_, _, err := a.reconcileByName(t, "w")
		require.Error(t, err)
		require.NotNil(t, a.pending(t, "w"))
		assert.Contains(t, a.pending(t, "w").Message, "the policy says so")
		assert.False(t, a.hasConfigMap(t, "b"))
	})
}

func TestWhatARemovalWaitsForIsToldOnceItTakesLong(t *testing.T) {
	a := newAgent(t, []client.Object{manifestWork("w", "a")}, nil)
	a.mustReconcile(t, "w")
	stuck := &corev1.ConfigMap{}
	require.True(t, a.readMember(t, stuck, "a"))
	stuck.Finalizers = []string{"example.com/hold"}
	require.NoError(t, a.member.Update(t.Context(), stuck))
	require.NoError(t, a.hub.Delete(t.Context(), a.work(t, "w")))
	_, result, err := a.reconcileByName(t, "w")
	require.NoError(t, err)
	assert.Nil(t, a.pending(t, "w"), "most removals are quick")
	assert.Equal(t, removalPatience, result.RequeueAfter)
	a.clock.SetTime(a.clock.Now().Add(removalPatience))
	a.mustReconcile(t, "w")
	require.NotNil(t, a.pending(t, "w"))
	assert.Equal(t, placementv1beta1.ReasonWaitingForFinalizers, a.pending(t, "w").Reason)
	assert.Contains(t, a.pending(t, "w").Message, "ConfigMap n/a is being deleted and waits for its finalizers: example.com/hold")
}

func TestWhatIsKeptBecauseANeighbourFailsIsTold(t *testing.T) {
	a := newAgent(t, []client.Object{manifestWork("w", "a")}, nil)
	a.mustReconcile(t, "w")
	a.fail = func(write string) error {
		if write == "member create ConfigMap b" {
			return apierrors.NewForbidden(corev1.Resource("configmaps"), "b", errors.New("quota"))
		}
		return nil
	}
	a.setManifests(t, "w", mapManifests("b"))
	a.mustReconcile(t, "w")
	a.clock.SetTime(a.clock.Now().Add(time.Minute))
	a.mustReconcile(t, "w")
	require.NotNil(t, a.pending(t, "w"))
	assert.Equal(t, placementv1beta1.ReasonRemovalHeldBack, a.pending(t, "w").Reason)
	assert.Contains(t, a.pending(t, "w").Message, "ConfigMap n/a is not removed while another manifest of the same Work fails")
}

func TestAWorkOfWhichOnlyDifferencesAreReportedHasNothingPending(t *testing.T) {
	a := newAgent(t, []client.Object{manifestWork("w", "a")}, nil)
	a.Metrics = NewMetrics()
	a.mustReconcile(t, "w")
	a.fail = func(write string) error {
		if write == "member create ConfigMap b" {
			return apierrors.NewForbidden(corev1.Resource("configmaps"), "b", errors.New("quota"))
		}
		return nil
	}
	a.setManifests(t, "w", mapManifests("b"))
	a.mustReconcile(t, "w")
	a.clock.SetTime(a.clock.Now().Add(time.Minute))
	a.mustReconcile(t, "w")
	pending := func() float64 {
		return testutil.ToFloat64(a.Metrics.pending.WithLabelValues(placementv1beta1.ReasonRemovalHeldBack))
	}
	require.InDelta(t, 1, pending(), 0)
	work := a.work(t, "w")
	work.Generation++
	work.Spec.ApplyStrategy = &placementv1beta1.ApplyStrategy{Type: placementv1beta1.ApplyStrategyTypeReportDiff}
	require.NoError(t, a.hub.Update(t.Context(), work))
	a.mustReconcile(t, "w")
	assert.Nil(t, a.pending(t, "w"))
	assert.InDelta(t, 0, pending(), 0)

	work = a.work(t, "w")
	work.Generation++
	work.Spec.ApplyStrategy = nil
	require.NoError(t, a.hub.Update(t.Context(), work))
	a.mustReconcile(t, "w")
	assert.Nil(t, a.pending(t, "w"), "its time begins anew")
	a.clock.SetTime(a.clock.Now().Add(time.Minute))
	a.mustReconcile(t, "w")
	assert.NotNil(t, a.pending(t, "w"))
	assert.InDelta(t, 1, pending(), 0)
}

func TestAClaimThatLeavesAWorkStaysOnTheCluster(t *testing.T) {
	claim := placementv1beta1.Manifest{RawExtension: runtime.RawExtension{Raw: []byte(
		`{"apiVersion":"v1","kind":"PersistentVolumeClaim","metadata":{"namespace":"n","name":"data-db-0"}}`)}}
	work := manifestWork("w", "a")
	work.Spec.Workload.Manifests = append(work.Spec.Workload.Manifests, claim)
	a := newAgent(t, []client.Object{work}, nil)
	a.mustReconcile(t, "w")
	a.setManifests(t, "w", mapManifests("a"))
	a.mustReconcile(t, "w")
	kept := &corev1.PersistentVolumeClaim{}
	require.True(t, a.readMember(t, kept, "data-db-0"))
	assert.Empty(t, kept.OwnerReferences, "nobody collects it")
	require.NoError(t, a.hub.Delete(t.Context(), a.work(t, "w")))
	a.mustReconcile(t, "w")
	assert.True(t, a.readMember(t, kept, "data-db-0"), "it is the cluster's from then on")
}

func TestTheConditionNamesWhatMattersFirst(t *testing.T) {
	var left []remnant
	for i := range 7 {
		left = append(left, remnant{reason: placementv1beta1.ReasonWaitingForFinalizers, message: fmt.Sprintf("object %d waits", i)})
	}
	left = append(left, remnant{reason: placementv1beta1.ReasonRemovalRefused, message: "one is refused"}, remnant{})
	c := removalCondition(left, 3)
	require.NotNil(t, c)
	assert.Equal(t, placementv1beta1.ReasonRemovalRefused, c.Reason)
	assert.Equal(t, "one is refused; object 0 waits; object 1 waits; object 2 waits; object 3 waits; and 3 more objects", c.Message)
	assert.Nil(t, removalCondition([]remnant{{}}, 3), "what has only begun is not told")
}

// An API of the cluster that is not served, such as that of metrics, hides what is in a Namespace.
func TestWhatCannotBeLookedAtIsTold(t *testing.T) {
	item := placementv1beta1.AppliedResourceMeta{WorkResourceIdentifier: placementv1beta1.WorkResourceIdentifier{Version: "v1", Kind: "Namespace", Name: "n"}}
	away := &discovery.ErrGroupDiscoveryFailed{Groups: map[schema.GroupVersion]error{{Group: "metrics.k8s.io", Version: "v1beta1"}: errors.New("unavailable")}}
	l := refusedRemnant(item, fmt.Errorf("finding out what others have in Namespace n: %w", away))
	assert.Equal(t, placementv1beta1.ReasonRemovalHeldBack, l.reason)
	assert.Contains(t, l.message, "Namespace n is not removed, as not all kinds of the cluster can be looked at: ")
	assert.Contains(t, l.message, "metrics.k8s.io/v1beta1")
	assert.Empty(t, refusedRemnant(item, errors.New("connection refused")).reason, "the next attempt may get an answer")
}
