package worksync

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/test/fixture"
)

// A member cleans up after a Work that it sees being deleted, so a Work that is to leave what
// it has brought must say so before.
func TestAWorkThatLeavesWhatItHasBroughtSaysSoBeforeItGoes(t *testing.T) {
	scheme := fixture.Scheme(t)
	binding := newBinding(0, 1)
	work := &placementv1beta1.Work{ObjectMeta: metav1.ObjectMeta{
		Namespace: memberNS, Name: "work", UID: "work-uid", Finalizers: []string{placementv1beta1.WorkFinalizer},
		Labels:      map[string]string{placementv1beta1.ParentBindingLabel: binding.Name, placementv1beta1.ParentPlacementLabel: "crp"},
		Annotations: map[string]string{placementv1beta1.BindingUIDAnnotation: string(binding.UID)},
	}}
	now := &placementv1beta1.Work{}
	says := func(c client.Client) string {
		require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(work), now))
		return now.Annotations[placementv1beta1.DeletePropagationAnnotation]
	}
	deletes := 0
	hub := interceptor.NewClient(fixture.Index(fixture.NewClientBuilder(scheme)).WithObjects(work).Build(), interceptor.Funcs{
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			deletes++
			assert.Equal(t, "Abandon", says(c))
			return c.Delete(ctx, o, opts...)
		},
	})
	s := &Syncer{client: hub, live: hub}
	for range 2 {
		remaining, err := s.Leave(t.Context(), binding)
		require.NoError(t, err)
		assert.Equal(t, 1, remaining, "its member has not let go of it")
	}
	assert.Equal(t, 1, deletes)
	assert.Equal(t, "Abandon", says(hub))
	assert.False(t, now.DeletionTimestamp.IsZero())

	now.Finalizers = nil
	require.NoError(t, hub.Update(t.Context(), now))
	remaining, err := s.Leave(t.Context(), binding)
	require.NoError(t, err)
	assert.Zero(t, remaining)
}
