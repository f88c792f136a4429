package worksync

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/fleetflow/fleetflow/activities/envelope"
	"github.com/fleetflow/fleetflow/activities/workmodel"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/test/fixture"
)

const (
	placementUID = types.UID("placement-uid")
	memberNS     = "fleet-member-member1"
)

var start = time.Date(2025, 3, 17, 21, 0, 0, 0, time.UTC)

// hub is a fake hub that counts what is asked of it.
type hub struct {
	client.Client
	mu     sync.Mutex
	writes []string
	reads  int
}

func (h *hub) wrote(what string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.writes = append(h.writes, what)
}

func newHub(t *testing.T, objects ...client.Object) *hub {
	t.Helper()
	scheme := fixture.Scheme(t)
	h := &hub{}
	h.Client = interceptor.NewClient(
		fixture.Index(fixture.NewClientBuilder(scheme)).WithObjects(objects...).WithStatusSubresource(&placementv1beta1.Work{}).Build(),
		interceptor.Funcs{
			Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
				h.wrote("create " + o.GetName())
				o.SetUID(types.UID("uid of " + o.GetName())) // as an API server would
				return c.Create(ctx, o, opts...)
			},
			Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
				h.wrote("update " + o.GetName())
				return c.Update(ctx, o, opts...)
			},
			Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
				h.wrote("delete " + o.GetName())
				return c.Delete(ctx, o, opts...)
			},
			Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
				h.wrote("patch " + o.GetName())
				return asAPIServer(c.Patch(ctx, o, p, opts...))
			},
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
				h.mu.Lock()
				h.reads++
				h.mu.Unlock()
				return c.Get(ctx, key, o, opts...)
			},
		})
	return h
}

// asAPIServer turns the fake client's answer to a failed JSON patch test into
// that of an API server.
func asAPIServer(err error) error {
	if err != nil && strings.Contains(err.Error(), "test failed") {
		return apierrors.NewInvalid(schema.GroupKind{}, "", nil)
	}
	return err
}

func (h *hub) work(t *testing.T, name string) *placementv1beta1.Work {
	t.Helper()
	work := &placementv1beta1.Work{}
	require.NoError(t, h.Client.Get(t.Context(), client.ObjectKey{Namespace: memberNS, Name: name}, work))
	return work
}

// stale is a client whose Works are those of an earlier moment.
type stale struct {
	client.Client
	works []placementv1beta1.Work
}

func (s stale) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	list.(*placementv1beta1.WorkList).Items = s.works
	return nil
}

func newBinding(index int, generation int64) *placementv1beta1.ClusterResourceBinding {
	return &placementv1beta1.ClusterResourceBinding{
		ObjectMeta: metav1.ObjectMeta{
			Name: placementv1beta1.BindingName("app", placementUID, "member1"), UID: "binding-1", Generation: generation,
			Labels: map[string]string{placementv1beta1.ParentPlacementLabel: "app"},
		},
		Spec: placementv1beta1.ResourceBindingSpec{
			State:                placementv1beta1.BindingStateBound,
			ResourceSnapshotName: placementv1beta1.ResourceSnapshotName("app", index, 0),
			TargetCluster:        "member1",
		},
	}
}

func snapshot(index, parts int) []client.Object {
	var objects []client.Object
	for i := range parts {
		part := &placementv1beta1.ClusterResourceSnapshot{}
		part.Name = placementv1beta1.ResourceSnapshotName("app", index, i)
		part.UID = types.UID(part.Name)
		part.Labels = map[string]string{placementv1beta1.ResourceIndexLabel: string(rune('0' + index))}
		part.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ClusterResourcePlacement", Name: "app", UID: placementUID, Controller: new(true)}}
		if i == 0 {
			part.Annotations = map[string]string{placementv1beta1.NumberOfResourceSnapshotsAnnotation: string(rune('0' + parts))}
		}
		part.Spec.SelectedResources = []placementv1beta1.ResourceContent{{RawExtension: runtime.RawExtension{Raw: []byte(`{"part":` + string(rune('0'+i)) + `}`)}}}
		objects = append(objects, part)
	}
	return objects
}

func newSyncer(h *hub) *Syncer {
	return NewSyncer(h, h, clocktesting.NewFakePassiveClock(start), noRules)
}

// noRules lets envelopes hold what they may hold without a hub's own rules.
func noRules(context.Context) (envelope.Rules, error) { return envelope.Rules{}, nil }

func TestSyncCreatesThenWritesNothing(t *testing.T) {
	h := newHub(t, snapshot(0, 1)...)
	s := newSyncer(h)
	require.NoError(t, s.Sync(t.Context(), newBinding(0, 1)))
	assert.Equal(t, []string{"create app-work"}, h.writes)
	work := h.work(t, "app-work")
	assert.Equal(t, "2025-03-17T21:00:00Z", work.Annotations[workmodel.RevisionTimeAnnotation])
	assert.JSONEq(t, `{"part":0}`, string(work.Spec.Workload.Manifests[0].Raw))

	h.writes = nil
	h.reads = 0
	require.NoError(t, s.Sync(t.Context(), newBinding(0, 2)))
	assert.Empty(t, h.writes, "the same revision needs no write")
	assert.Zero(t, h.reads, "nor a read of a snapshot")
}

func TestSyncReplacesByOnePatch(t *testing.T) {
	h := newHub(t, append(snapshot(0, 1), snapshot(1, 1)...)...)
	s := newSyncer(h)
	require.NoError(t, s.Sync(t.Context(), newBinding(0, 1)))
	h.writes = nil
	require.NoError(t, s.Sync(t.Context(), newBinding(1, 2)))
	assert.Equal(t, []string{"patch app-work"}, h.writes)
	work := h.work(t, "app-work")
	assert.Equal(t, "1", work.Labels[placementv1beta1.ParentResourceSnapshotIndexLabel])
	assert.Equal(t, "2", work.Annotations[placementv1beta1.BindingGenerationAnnotation])
	assert.True(t, workmodel.StateOf(newBinding(1, 2), []placementv1beta1.Work{*work}).Synced)
}

func TestSyncNeverGoesBack(t *testing.T) {
	cases := map[string]struct {
		binding *placementv1beta1.ClusterResourceBinding
		cached  bool
	}{
		"a late attempt that sees the newer Work": {binding: newBinding(0, 1), cached: true},
		"a late attempt with an old cache":        {binding: newBinding(0, 1)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			h := newHub(t, append(snapshot(0, 1), snapshot(1, 1)...)...)
			s := newSyncer(h)
			require.NoError(t, s.Sync(t.Context(), newBinding(0, 1)))
			old := *h.work(t, "app-work")
			require.NoError(t, s.Sync(t.Context(), newBinding(1, 2)))
			if !tc.cached {
				old.Annotations[placementv1beta1.RevisionAnnotation] = "older still"
				s.client = stale{Client: h, works: []placementv1beta1.Work{old}}
			}
			require.NoError(t, s.Sync(t.Context(), tc.binding))
			assert.Equal(t, "1", h.work(t, "app-work").Labels[placementv1beta1.ParentResourceSnapshotIndexLabel])
		})
	}
}

func TestSyncWithAnEmptyCacheFindsTheWorkThere(t *testing.T) {
	h := newHub(t, snapshot(0, 1)...)
	s := newSyncer(h)
	require.NoError(t, s.Sync(t.Context(), newBinding(0, 1)))
	s.client = stale{Client: h}
	h.writes = nil
	require.NoError(t, s.Sync(t.Context(), newBinding(0, 1)))
	assert.Equal(t, []string{"create app-work"}, h.writes, "the create is refused and nothing is replaced")
}

func TestSyncLeavesTheWorkOfALivingBindingAlone(t *testing.T) {
	other := newBinding(0, 9)
	h := newHub(t, append(snapshot(0, 1), other)...)
	s := newSyncer(h)
	require.NoError(t, s.Sync(t.Context(), other))
	late := newBinding(0, 1)
	late.UID = "binding-0"
	var held *HeldError
	require.ErrorAs(t, s.Sync(t.Context(), late), &held)
	assert.Equal(t, "binding-1", h.work(t, "app-work").Annotations[placementv1beta1.BindingUIDAnnotation])
}

func TestSyncTakesOverWhatABindingLeftBehind(t *testing.T) {
	present := newBinding(0, 1)
	present.UID = "binding-2"
	h := newHub(t, append(snapshot(0, 1), present)...)
	s := newSyncer(h)
	require.NoError(t, s.Sync(t.Context(), newBinding(0, 7)))
	require.NoError(t, s.Sync(t.Context(), present))
	assert.Equal(t, "binding-2", h.work(t, "app-work").Annotations[placementv1beta1.BindingUIDAnnotation])
}

func TestSyncWaitsForAWorkOnItsWayOut(t *testing.T) {
	h := newHub(t, snapshot(0, 1)...)
	s := newSyncer(h)
	require.NoError(t, s.Sync(t.Context(), newBinding(0, 1)))
	require.NoError(t, h.Client.Delete(t.Context(), h.work(t, "app-work")))
	var held *HeldError
	require.ErrorAs(t, s.Sync(t.Context(), newBinding(0, 1)), &held)
	assert.ErrorContains(t, held, "is being deleted")
}

func TestSyncKeepsWorksWhenTheSnapshotIsMissing(t *testing.T) {
	parts := snapshot(0, 2)
	parts[0].GetLabels()[placementv1beta1.ParentPlacementLabel] = "app"
	h := newHub(t, parts...)
	s := newSyncer(h)
	require.NoError(t, s.Sync(t.Context(), newBinding(0, 1)))
	h.writes = nil
	var missing *SnapshotMissingError
	require.ErrorAs(t, s.Sync(t.Context(), newBinding(1, 2)), &missing)
	assert.Equal(t, "app-1-snapshot", missing.Name)
	assert.Empty(t, h.writes)

	foreign := newBinding(0, 2)
	foreign.Name = placementv1beta1.BindingName("other", "another placement", "member1")
	foreign.Labels = map[string]string{placementv1beta1.ParentPlacementLabel: "other"}
	require.ErrorAs(t, s.Sync(t.Context(), foreign), &missing, "the snapshot of another placement is none")
}

// applied answers for the member: it has applied these Works as they are.
func (h *hub) applied(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		work := h.work(t, name)
		work.Status.Conditions = []metav1.Condition{{
			Type: placementv1beta1.ConditionTypeApplied, Status: metav1.ConditionTrue, Reason: "Applied", ObservedGeneration: work.Generation,
		}}
		require.NoError(t, h.Status().Update(t.Context(), work))
	}
}

func TestSyncRemovesSurplusPartsOnceTheOthersAreApplied(t *testing.T) {
	h := newHub(t, append(snapshot(0, 3), snapshot(1, 1)...)...)
	s := newSyncer(h)
	require.NoError(t, s.Sync(t.Context(), newBinding(0, 1)))
	assert.ElementsMatch(t, []string{"create app-work", "create app-1", "create app-2"}, h.writes)
	h.writes = nil
	require.NoError(t, s.Sync(t.Context(), newBinding(1, 2)))
	require.NoError(t, s.Sync(t.Context(), newBinding(1, 2)))
	assert.Equal(t, []string{"patch app-work"}, h.writes, "objects may have moved: their old parts stay until the member has the new ones")
	h.applied(t, "app-work")
	h.writes = nil
	h.reads = 0
	require.NoError(t, s.Sync(t.Context(), newBinding(1, 2)))
	assert.ElementsMatch(t, []string{"delete app-1", "delete app-2"}, h.writes)
	assert.Zero(t, h.reads, "no snapshot is needed for that")
	h.writes = nil
	require.NoError(t, s.Sync(t.Context(), newBinding(1, 2)))
	assert.Empty(t, h.writes, "what is on its way out is not deleted again")
}

func TestSurplusPartsOfABindingThatAbandonsSaySoBeforeTheyGo(t *testing.T) {
	h := newHub(t, append(snapshot(0, 2), append(snapshot(1, 1), snapshot(2, 1)...)...)...)
	s := newSyncer(h)
	require.NoError(t, s.Sync(t.Context(), newBinding(0, 1)))
	binding := newBinding(1, 2)
	binding.Annotations = map[string]string{placementv1beta1.RemovedResourcesAnnotation: "Abandon"}
	require.NoError(t, s.Sync(t.Context(), binding))
	assert.Equal(t, "Abandon", h.work(t, "app-work").Annotations[placementv1beta1.RemovedResourcesAnnotation], "the member knows what to do with what leaves a part")
	h.applied(t, "app-work")
	h.writes = nil
	require.NoError(t, s.Sync(t.Context(), binding))
	assert.Equal(t, []string{"patch app-1", "delete app-1"}, h.writes)
	assert.Equal(t, "Abandon", h.work(t, "app-1").Annotations[placementv1beta1.DeletePropagationAnnotation])

	work := h.work(t, "app-work")
	work.Annotations[placementv1beta1.DeletePropagationAnnotation] = "Abandon"
	require.NoError(t, h.Update(t.Context(), work))
	binding = newBinding(2, 3)
	binding.Annotations = map[string]string{placementv1beta1.RemovedResourcesAnnotation: "Delete"}
	require.NoError(t, s.Sync(t.Context(), binding))
	assert.NotContains(t, h.work(t, "app-work").Annotations, placementv1beta1.RemovedResourcesAnnotation)
	assert.NotContains(t, h.work(t, "app-work").Annotations, placementv1beta1.DeletePropagationAnnotation, "it is in use")
}

func TestSyncWritesNewPartsBeforeItChangesOthers(t *testing.T) {
	h := newHub(t, append(snapshot(0, 1), snapshot(1, 3)...)...)
	s := newSyncer(h)
	require.NoError(t, s.Sync(t.Context(), newBinding(0, 1)))
	h.writes = nil
	require.NoError(t, s.Sync(t.Context(), newBinding(1, 2)))
	require.Len(t, h.writes, 3)
	assert.ElementsMatch(t, []string{"create app-1", "create app-2"}, h.writes[:2])
	assert.Equal(t, "patch app-work", h.writes[2])
}

func TestSyncTakesNothingOutOfAPartWhileAnotherCannotBeWritten(t *testing.T) {
	h := newHub(t, append(snapshot(0, 1), snapshot(1, 2)...)...)
	s := newSyncer(h)
	require.NoError(t, s.Sync(t.Context(), newBinding(0, 1)))
	leaving := h.work(t, "app-work").DeepCopy()
	leaving.Name = "app-1"
	leaving.ResourceVersion = ""
	require.NoError(t, h.Create(t.Context(), leaving))
	require.NoError(t, h.Delete(t.Context(), leaving))
	h.writes = nil
	var held *HeldError
	require.ErrorAs(t, s.Sync(t.Context(), newBinding(1, 2)), &held)
	assert.Empty(t, h.writes)
}

func TestALateAttemptDoesNotRemovePartsOfALaterGeneration(t *testing.T) {
	h := newHub(t, append(snapshot(0, 2), append(snapshot(1, 1), snapshot(2, 2)...)...)...)
	s := newSyncer(h)
	require.NoError(t, s.Sync(t.Context(), newBinding(0, 1)))
	old := []placementv1beta1.Work{*h.work(t, "app-work"), *h.work(t, "app-1")}
	require.NoError(t, s.Sync(t.Context(), newBinding(2, 3)))
	s.client = stale{Client: h, works: old}
	require.NoError(t, s.Sync(t.Context(), newBinding(1, 2)))
	assert.True(t, h.work(t, "app-1").DeletionTimestamp.IsZero())
	assert.Equal(t, "2", h.work(t, "app-work").Labels[placementv1beta1.ParentResourceSnapshotIndexLabel])
}

func TestDeleteTellsWhatRemains(t *testing.T) {
	h := newHub(t, snapshot(0, 2)...)
	s := newSyncer(h)
	require.NoError(t, s.Sync(t.Context(), newBinding(0, 1)))
	s.client = stale{Client: h} // the cache has not seen them yet
	remaining, err := s.Delete(t.Context(), newBinding(0, 1))
	require.NoError(t, err)
	assert.Equal(t, 2, remaining)
	s.client = h
	remaining, err = s.Delete(t.Context(), newBinding(0, 1))
	require.NoError(t, err)
	assert.Equal(t, 2, remaining, "the member has not let go yet")

	stranger := newBinding(0, 1)
	stranger.UID = "binding-2"
	remaining, err = s.Delete(t.Context(), stranger)
	require.NoError(t, err)
	assert.Zero(t, remaining, "works of another binding are not counted")

	_, err = s.Abandon(t.Context(), newBinding(0, 1))
	require.NoError(t, err)
	remaining, err = s.Delete(t.Context(), newBinding(0, 1))
	require.NoError(t, err)
	assert.Zero(t, remaining)
}
