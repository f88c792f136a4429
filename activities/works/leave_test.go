package works

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// A member cleans up after a Work that it sees being deleted, so it must never see one that
// is to be left; it puts its finalizer back whenever that is missing.
func TestAMemberNeverSeesAWorkGoThatIsLeft(t *testing.T) {
	scheme := runtime.NewScheme()
	require.NoError(t, placementv1beta1.AddToScheme(scheme))
	binding := newBinding(0, 1)
	work := &placementv1beta1.Work{ObjectMeta: metav1.ObjectMeta{
		Namespace: memberNS, Name: "work", UID: "work-uid", Finalizers: []string{placementv1beta1.WorkFinalizer},
		Labels:      map[string]string{placementv1beta1.ParentBindingLabel: binding.Name, placementv1beta1.ParentPlacementLabel: "crp"},
		Annotations: map[string]string{placementv1beta1.BindingUIDAnnotation: string(binding.UID)},
	}}
	back := 2
	hub := interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme).WithObjects(work).Build(), interceptor.Funcs{
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			now := &placementv1beta1.Work{}
			require.NoError(t, c.Get(ctx, client.ObjectKeyFromObject(work), now))
			if back > 0 { // the member is faster
				back--
				now.Finalizers = []string{placementv1beta1.WorkFinalizer}
				require.NoError(t, c.Update(ctx, now))
			}
			err := c.Delete(ctx, o, opts...)
			if c.Get(ctx, client.ObjectKeyFromObject(work), now) == nil {
				assert.True(t, now.DeletionTimestamp.IsZero(), "the member would clean up")
			}
			return err
		},
	})
	s := &Syncer{client: hub, live: hub}
	_, err := s.Leave(t.Context(), binding)
	require.NoError(t, err)
	remaining, err := s.Leave(t.Context(), binding)
	require.NoError(t, err)
	assert.Zero(t, remaining)
	assert.Zero(t, back)
}
