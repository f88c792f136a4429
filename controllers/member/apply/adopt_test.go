package apply

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/test/kubefleet"
)

// recordedPair is a manifest in a recorded Work, and the object that KubeFleet's agent made of it.
type recordedPair struct {
	manifest Manifest
	live     *unstructured.Unstructured
}

func recordedPairs(t *testing.T) map[string]recordedPair {
	t.Helper()
	hub, err := kubefleet.Hub()
	require.NoError(t, err)
	pairs := map[string]recordedPair{}
	for number, namespace := range []string{1: "fleet-member-member-1", 2: "fleet-member-member-2", 3: "fleet-member-member-3"} {
		if number == 0 {
			continue
		}
		objects, err := kubefleet.Member(number)
		require.NoError(t, err)
		for _, work := range kubefleet.OfKinds(hub, "Work") {
			if work.GetNamespace() != namespace {
				continue
			}
			manifests, _, _ := unstructured.NestedSlice(work.Object, "spec", "workload", "manifests")
			for _, manifest := range manifests {
				raw, err := (&unstructured.Unstructured{Object: manifest.(map[string]any)}).MarshalJSON()
				require.NoError(t, err)
				m := Decode([]placementv1beta1.Manifest{{RawExtension: runtime.RawExtension{Raw: raw}}})[0]
				for _, live := range objects {
					if live.GroupVersionKind() == m.Object.GroupVersionKind() && live.GetName() == m.Object.GetName() && live.GetNamespace() == m.Object.GetNamespace() {
						pairs[namespace+" "+KeyOf(m.Identifier).String()] = recordedPair{m, live}
					}
				}
			}
		}
	}
	require.Greater(t, len(pairs), 20)
	return pairs
}

func TestKubeFleetsHashesAreUnderstood(t *testing.T) {
	for name, pair := range recordedPairs(t) {
		stated := pair.live.GetAnnotations()[placementv1beta1.ManifestHashAnnotation]
		assert.Equal(t, stated, kubeFleetHash(pair.manifest.Object), name)
		assert.True(t, isLastAppliedTo(pair.live, pair.manifest.withHashOn(pair.live)), name)
	}
}

func TestAnObjectIsNotWrittenForTheSakeOfItsMarks(t *testing.T) {
	for name, pair := range recordedPairs(t) {
		if _, clientSide := pair.live.GetAnnotations()[placementv1beta1.LastAppliedConfigAnnotation]; !clientSide {
			assert.True(t, isUpToDateServerSide(pair.live, Marked(pair.manifest.withHashOn(pair.live), metav1.OwnerReference{})), name)
			continue
		}
		desired, fits, err := Desired(pair.manifest.withHashOn(pair.live), metav1.OwnerReference{Name: "x"}, pair.live)
		require.NoError(t, err)
		require.True(t, fits)
		retainFinalizers(pair.live, desired)
		keepLastApplied(pair.live, desired)
		patch, err := ThreeWay(pair.live, desired)
		require.NoError(t, err)
		assert.True(t, patch.Empty(), "%s: %s", name, patch.Data)
	}
}

// On the way back KubeFleet writes an object where these differ from what it would write, be it for them alone.
func TestTheMarksThatAreWrittenAreKubeFleets(t *testing.T) {
	clientSide := 0
	serverSide := 0
	for name, pair := range recordedPairs(t) {
		owner := pair.live.GetOwnerReferences()[0]
		want := pair.live.GetAnnotations()
		desired, fits, err := Desired(pair.manifest, owner, nil)
		require.NoError(t, err)
		if _, base := want[placementv1beta1.LastAppliedConfigAnnotation]; base && fits {
			assert.Equal(t, want[placementv1beta1.LastAppliedConfigAnnotation], desired.GetAnnotations()[placementv1beta1.LastAppliedConfigAnnotation], name)
			assert.Equal(t, want[placementv1beta1.ManifestHashAnnotation], desired.GetAnnotations()[placementv1beta1.ManifestHashAnnotation], name)
			clientSide++
			continue
		}
		if !hasReservedKeys(pair.manifest.Object) && !isSecret(pair.manifest.Object) {
			marked := Marked(pair.manifest, owner).GetAnnotations()
			assert.Equal(t, want[placementv1beta1.ManifestHashAnnotation], marked[placementv1beta1.ManifestHashAnnotation], name)
			serverSide++
		}
	}
	assert.Greater(t, clientSide, 10)
	assert.Positive(t, serverSide)
}

// KubeFleet's hash leaves out labels and annotations of Kubernetes' domains.
func TestAChangeThatTheHashLeavesOutIsTold(t *testing.T) {
	owner := metav1.OwnerReference{Name: "x", UID: "u"}
	manifest := func(metadata string) Manifest {
		raw := []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c","namespace":"n"` + metadata + `}}`)
		return Decode([]placementv1beta1.Manifest{{RawExtension: runtime.RawExtension{Raw: raw}}})[0]
	}
	contents := map[string]Manifest{
		"none":             manifest(``),
		"a label":          manifest(`,"labels":{"app.kubernetes.io/version":"1"}`),
		"a label changed":  manifest(`,"labels":{"app.kubernetes.io/version":"2"}`),
		"an annotation":    manifest(`,"annotations":{"app.kubernetes.io/version":"1"}`),
		"both":             manifest(`,"labels":{"app.kubernetes.io/version":"1"},"annotations":{"app.kubernetes.io/version":"1"}`),
		"a label of users": manifest(`,"labels":{"app":"1"}`),
	}
	for before, applied := range contents {
		clientSide, fits, err := Desired(applied, owner, nil)
		require.NoError(t, err)
		require.True(t, fits)
		serverSide := Marked(applied, owner)
		for after, m := range contents {
			assert.Equal(t, before == after, isLastAppliedTo(clientSide, m.withHashOn(clientSide)), "client-side: %s, then %s", before, after)
			assert.Equal(t, before == after, isLastAppliedTo(serverSide, m.withHashOn(serverSide)), "server-side: %s, then %s", before, after)
		}
	}
}

// After a client-side apply and a server-side one of the same manifest, an object has KubeFleet's hash and no base of a next merge.
func TestAKeyOfAnEarlierManifestIsNotTakenForAnothers(t *testing.T) {
	raw := []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c","namespace":"n"}}`)
	m := Decode([]placementv1beta1.Manifest{{RawExtension: runtime.RawExtension{Raw: raw}}})[0]
	for _, where := range []string{"labels", "annotations"} {
		for manager, isLast := range map[string]bool{FieldManager: false, "kubectl": true} {
			live := m.Object.DeepCopy()
			live.SetAnnotations(map[string]string{placementv1beta1.ManifestHashAnnotation: m.kubeFleetHash()})
			require.NoError(t, unstructured.SetNestedField(live.Object, "a", "metadata", where, "app.kubernetes.io/part-of"))
			live.SetManagedFields([]metav1.ManagedFieldsEntry{{
				Manager: manager, Operation: metav1.ManagedFieldsOperationApply, APIVersion: "v1", FieldsType: "FieldsV1",
				FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:` + where + `":{"f:app.kubernetes.io/part-of":{}}}}`),
			}})
			assert.Equal(t, isLast, isLastAppliedTo(live, m.withHashOn(live)), "%s of %s", where, manager)
		}
	}
}

// API servers note a map that was applied without a key as a field of its own, beside which others set keys.
func TestKeysOfOthersInAMapThatWasAppliedEmptyAreNotOurs(t *testing.T) {
	raw := []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c","namespace":"n","labels":{}}}`)
	m := Decode([]placementv1beta1.Manifest{{RawExtension: runtime.RawExtension{Raw: raw}}})[0]
	live := m.Object.DeepCopy()
	live.SetAnnotations(map[string]string{placementv1beta1.ManifestHashAnnotation: m.kubeFleetHash()})
	live.SetLabels(map[string]string{"app.kubernetes.io/part-of": "a", "other": "b"})
	live.SetManagedFields([]metav1.ManagedFieldsEntry{{
		Manager: FieldManager, Operation: metav1.ManagedFieldsOperationApply, APIVersion: "v1", FieldsType: "FieldsV1",
		FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:labels":{}}}`),
	}})
	assert.True(t, isLastAppliedTo(live, m.withHashOn(live)))
	assert.Empty(t, ownedFields(live)["metadata"], "a merge would remove them")
}

// Earlier versions stated a hash of the whole manifest: what bears it is not written for that.
func TestTheHashOfEarlierVersionsStays(t *testing.T) {
	for name, pair := range recordedPairs(t) {
		live := pair.live.DeepCopy()
		annotations := live.GetAnnotations()
		annotations[placementv1beta1.ManifestHashAnnotation] = pair.manifest.Hash
		live.SetAnnotations(annotations)
		kept := pair.manifest.withHashOn(live)
		assert.True(t, isLastAppliedTo(live, kept), name)
		assert.Equal(t, pair.manifest.Hash, Marked(kept, metav1.OwnerReference{}).GetAnnotations()[placementv1beta1.ManifestHashAnnotation], name)
	}
}

func TestAManifestThatHasChangedSinceIsApplied(t *testing.T) {
	for name, pair := range recordedPairs(t) {
		pair.manifest.Object.SetLabels(map[string]string{"new": "label"})
		assert.NotEqual(t, pair.live.GetAnnotations()[placementv1beta1.ManifestHashAnnotation], pair.manifest.withHashOn(pair.live).Hash, name)
	}
}
