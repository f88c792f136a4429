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

func TestAManifestThatHasChangedSinceIsApplied(t *testing.T) {
	for name, pair := range recordedPairs(t) {
		pair.manifest.Object.SetLabels(map[string]string{"new": "label"})
		assert.NotEqual(t, pair.live.GetAnnotations()[placementv1beta1.ManifestHashAnnotation], pair.manifest.withHashOn(pair.live).Hash, name)
	}
}
