package worksync

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fleetflow/fleetflow/activities/workmodel"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

func TestWhatIsComposedIsWhatSyncWrites(t *testing.T) {
	objects, binding := withRole("cro-0")
	h := newHub(t, append(objects, overrideSnapshot("cro-0", "/metadata/labels", `{"on":"${MEMBER-CLUSTER-NAME}"}`))...)
	syncer := newSyncer(h)
	composed, err := syncer.Compose(t.Context(), binding)
	require.NoError(t, err)
	assert.Empty(t, h.writes, "to compose writes nothing")
	assert.NoError(t, composed.HeldBack)
	require.NoError(t, syncer.Sync(t.Context(), binding))
	require.Len(t, composed.Works, 1)
	written := h.work(t, composed.Works[0].Name)
	assert.Equal(t, written.Spec, composed.Works[0].Spec)
	delete(written.Annotations, workmodel.RevisionTimeAnnotation)
	assert.Equal(t, written.Annotations, composed.Works[0].Annotations)

	composed, err = syncer.Compose(t.Context(), binding)
	require.NoError(t, err)
	assert.Empty(t, composed.Removed)
	assert.Len(t, composed.Works, 1, "what is there already is composed as well")
}

func TestWorksOfARevisionWithMorePartsWouldGo(t *testing.T) {
	h := newHub(t, append(snapshot(0, 3), snapshot(1, 1)...)...)
	syncer := newSyncer(h)
	require.NoError(t, syncer.Sync(t.Context(), newBinding(0, 1)))
	h.writes = nil
	composed, err := syncer.Compose(t.Context(), newBinding(1, 1))
	require.NoError(t, err)
	assert.Empty(t, h.writes)
	require.Len(t, composed.Works, 1)
	assert.JSONEq(t, `{"part":0}`, string(composed.Works[0].Spec.Workload.Manifests[0].Raw))
	assert.Equal(t, []string{placementv1beta1.WorkName("app", 1), placementv1beta1.WorkName("app", 2)}, composed.Removed)
}

func TestWhatCannotBeOverriddenIsComposedAsItIs(t *testing.T) {
	objects, binding := withRole("cro-1-0")
	h := newHub(t, append(objects, overrideSnapshot("cro-1-0", "/metadata/labels/new-label", `"new-value"`))...)
	composed, err := newSyncer(h).Compose(t.Context(), binding)
	require.NoError(t, err)
	var failed *workmodel.OverrideError
	require.ErrorAs(t, composed.HeldBack, &failed)
	require.Len(t, composed.Works, 1)
	assert.Empty(t, composed.Works[0].Spec.Workload.Manifests)
}
