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

// KubeFleet's agent hashes a manifest as it is written, and an API server stores an empty text in place of a null.
func TestAnObjectOfAManifestWithNullsIsTakenOverWithoutAWrite(t *testing.T) {
	const text = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"n"},"data":{"x":"1","y":null}}`
	said := &unstructured.Unstructured{}
	require.NoError(t, said.UnmarshalJSON([]byte(text)))
	said.SetOwnerReferences([]metav1.OwnerReference{me})
	hash := kubeFleetHash(said)
	said.SetAnnotations(map[string]string{placementv1beta1.ManifestHashAnnotation: hash})
	base, err := said.MarshalJSON()
	require.NoError(t, err)
	for name, way := range map[string]placementv1beta1.ApplyStrategyType{"client-side": clientSide, "server-side": serverSide} {
		t.Run(name, func(t *testing.T) {
			live := configMap("1", me)
			live.Data["y"] = ""
			live.Annotations = map[string]string{placementv1beta1.ManifestHashAnnotation: hash}
			entry := metav1.ManagedFieldsEntry{
				Manager: FieldManager, Operation: metav1.ManagedFieldsOperationApply, APIVersion: "v1", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(
					`{"f:data":{"f:x":{},"f:y":{}},"f:metadata":{"f:annotations":{"f:` + placementv1beta1.ManifestHashAnnotation + `":{}}}}`),
			}
			if way == clientSide {
				live.Annotations[placementv1beta1.LastAppliedConfigAnnotation] = string(base)
				entry.Operation = metav1.ManagedFieldsOperationUpdate
			}
			live.ManagedFields = []metav1.ManagedFieldsEntry{entry}
			e, writes := newEngine(nil, live)
			strategy := placementv1beta1.ApplyStrategy{Type: way, WhenToTakeOver: placementv1beta1.WhenToTakeOverTypeAlways}
			assert.False(t, mustApply(t, e, requestWith(text, strategy)).Wrote)
			assert.Zero(t, *writes)
			mustApply(t, e, requestWith(manifestX1, strategy))
			assert.Equal(t, map[string]string{"x": "1"}, storedConfigMap(t, e).Data, "what is null leaves with the manifest")
		})
	}
	other := Decode(raw(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"n","annotations":{"a":null,"b":"1"}},"data":{"x":"1"}}`))[0]
	another := Decode(raw(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"n","annotations":{"a":null,"b":"2"}},"data":{"x":"1"}}`))[0]
	assert.NotEqual(t, other.kubeFleetHash(), another.kubeFleetHash(), "an annotation beside a null counts")
}
