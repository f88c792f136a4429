package worksync

import (
	"crypto/sha256"
	"encoding/hex"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/fleetflow/fleetflow/activities/workmodel"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// unsign makes stored Works those that KubeFleet would have written, and returns them as the hub's cache has them.
func (h *hub) unsign(t *testing.T, names ...string) []placementv1beta1.Work {
	t.Helper()
	ofNone := sha256.Sum256([]byte("null"))
	var cached []placementv1beta1.Work
	for _, name := range names {
		work := h.work(t, name)
		work.Generation = 1
		work.Annotations = map[string]string{
			placementv1beta1.ParentClusterResourceOverrideSnapshotHashAnnotation: hex.EncodeToString(ofNone[:]),
			placementv1beta1.ParentResourceOverrideSnapshotHashAnnotation:        hex.EncodeToString(ofNone[:]),
		}
		require.NoError(t, h.Client.Update(t.Context(), work))
		workmodel.DropManifests(work)
		cached = append(cached, *work)
	}
	h.writes = nil
	h.reads = 0
	return cached
}

func TestAWorkOfAnotherAuthorIsSignedByOneWriteAndNoLiveRead(t *testing.T) {
	h := newHub(t, snapshot(0, 1)...)
	s := newSyncer(h)
	require.NoError(t, s.Sync(t.Context(), newBinding(0, 1)))
	s.client = stale{Client: h, works: h.unsign(t, "app-work")}
	s.live = nil // nothing is read past the cache

	require.NoError(t, s.Sync(t.Context(), newBinding(0, 1)))
	assert.Equal(t, []string{"patch app-work"}, h.writes)
	work := h.work(t, "app-work")
	assert.True(t, rules.IsSigned(work))
	assert.NotContains(t, work.Annotations, workmodel.ManifestsHashAnnotation)
	assert.NotContains(t, work.Annotations, workmodel.RevisionTimeAnnotation)
	assert.JSONEq(t, `{"part":0}`, string(work.Spec.Workload.Manifests[0].Raw))
}

func TestAWorkThatTheCacheHasOtherwiseIsReadBeforeItIsSigned(t *testing.T) {
	h := newHub(t, snapshot(0, 1)...)
	s := newSyncer(h)
	require.NoError(t, s.Sync(t.Context(), newBinding(0, 1)))
	s.client = stale{Client: h, works: h.unsign(t, "app-work")}
	edited := h.work(t, "app-work")
	edited.Generation = 2
	edited.Spec.Workload.Manifests[0].Raw = []byte(`{"part":"edited"}`)
	require.NoError(t, h.Client.Update(t.Context(), edited))

	require.NoError(t, s.Sync(t.Context(), newBinding(0, 1)))
	assert.JSONEq(t, `{"part":0}`, string(h.work(t, "app-work").Spec.Workload.Manifests[0].Raw), "it is not signed for what it was before")
}

func TestNoStoredWorkCanHaveAHashOfManifests(t *testing.T) {
	assert.NotEmpty(t, validation.IsQualifiedName(workmodel.ManifestsHashAnnotation), "the API server takes no annotation of that name")
}

func TestAWorkOfAnotherAuthorThatIsLeftOverGoesOnceTheOthersAreApplied(t *testing.T) {
	h := newHub(t, append(snapshot(0, 2), newBinding(0, 1))...)
	s := newSyncer(h)
	require.NoError(t, s.Sync(t.Context(), newBinding(0, 1)))
	for name, uid := range map[string]string{"app-left-over": "", "app-of-an-earlier-binding": "an earlier one"} {
		left := h.work(t, "app-work").DeepCopy()
		left.Name = name
		left.ResourceVersion = ""
		left.UID = ""
		require.NoError(t, h.Create(t.Context(), left))
		h.unsign(t, name)
		if uid != "" {
			left = h.work(t, name)
			left.Annotations[placementv1beta1.BindingUIDAnnotation], left.Annotations[placementv1beta1.RevisionAnnotation] = uid, "earlier"
			require.NoError(t, h.Client.Update(t.Context(), left))
		}
	}
	h.unsign(t, "app-work", "app-1")
	require.NoError(t, s.Sync(t.Context(), newBinding(0, 1)))
	assert.ElementsMatch(t, []string{"patch app-work", "patch app-1"}, h.writes)
	h.writes = nil
	require.NoError(t, s.Sync(t.Context(), newBinding(0, 1)))
	assert.Empty(t, h.writes, "an object of it may have moved: it stays until the member has applied the others")

	h.applied(t, "app-work", "app-1")
	h.writes = nil
	require.NoError(t, s.Sync(t.Context(), newBinding(0, 1)))
	assert.ElementsMatch(t, []string{"delete app-left-over", "delete app-of-an-earlier-binding"}, h.writes)
	h.writes = nil
	require.NoError(t, s.Sync(t.Context(), newBinding(0, 1)))
	assert.Empty(t, h.writes)
}
