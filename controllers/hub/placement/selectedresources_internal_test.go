package placement

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/test/fixture"
)

// storedPlacement has a status about snapshot 3 that lists so many ConfigMaps.
func storedPlacement(uid types.UID, listed int) *placementv1beta1.ClusterResourcePlacement {
	placement := &placementv1beta1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: "app", UID: uid}}
	placement.Status.ObservedResourceIndex = "3"
	for i := range listed {
		placement.Status.SelectedResources = append(placement.Status.SelectedResources,
			placementv1beta1.ResourceIdentifier{Version: "v1", Kind: "ConfigMap", Namespace: "app", Name: fmt.Sprintf("stored-%d", i)})
	}
	return placement
}

func TestAListThatTheStatusHasIsNotReadAgainAfterARestart(t *testing.T) {
	scheme := runtime.NewScheme()
	require.NoError(t, placementv1beta1.AddToScheme(scheme))
	reads := 0
	live := fixture.NewClientBuilder(scheme).WithObjects(&placementv1beta1.ClusterResourceSnapshot{
		ObjectMeta: metav1.ObjectMeta{Name: placementv1beta1.ResourceSnapshotName("app", 3, 0)},
		Spec: placementv1beta1.ResourceSnapshotSpec{SelectedResources: []placementv1beta1.ResourceContent{
			{RawExtension: runtime.RawExtension{Raw: []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"read","namespace":"app"}}`)}},
		}},
	}).WithInterceptorFuncs(interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, into client.Object, opts ...client.GetOption) error {
		reads++
		return c.Get(ctx, key, into, opts...)
	}}).Build()
	snapshot := func(uid types.UID) Snapshot {
		return Snapshot{Name: placementv1beta1.ResourceSnapshotName("app", 3, 0), Index: 3, UID: uid, Parts: 1}
	}
	list := func(cache *selectionCache, placement *placementv1beta1.ClusterResourcePlacement, s Snapshot) (first string, read int) {
		before := reads
		selected, err := cache.listSelected(t.Context(), placement, s)
		require.NoError(t, err)
		require.NotEmpty(t, selected)
		return selected[0].Name, reads - before
	}
	check := func(what, wantName string, wantRead int, name string, read int) {
		t.Helper()
		assert.Equal(t, wantName, name, what)
		assert.Equal(t, wantRead, read, what)
	}

	cache := newSelectionCache(live)
	placement := storedPlacement("one", 2)
	name, read := list(cache, placement, snapshot("a"))
	check("the first look", "stored-0", 0, name, read)
	name, read = list(cache, placement, snapshot("a"))
	check("the second look", "stored-0", 0, name, read)
	name, read = list(cache, placement, snapshot("b"))
	check("a snapshot that was made again under its name", "read", 1, name, read)
	name, read = list(cache, storedPlacement("two", 2), snapshot("c"))
	check("a placement that was created again, and has a status already", "stored-0", 0, name, read)

	name, read = list(newSelectionCache(live), storedPlacement("one", maxShort+1), snapshot("a"))
	check("a list that may have been shortened", "read", 1, name, read)
	name, read = list(newSelectionCache(live), storedPlacement("one", 0), snapshot("a"))
	check("a status without a list", "read", 1, name, read)
	older := storedPlacement("one", 2)
	older.Status.ObservedResourceIndex = "2"
	name, read = list(newSelectionCache(live), older, snapshot("a"))
	check("a status about another snapshot", "read", 1, name, read)
}
