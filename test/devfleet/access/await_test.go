package access

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/fleetflow/fleetflow/test/devfleet/controlplane"
)

var shopKey = client.ObjectKey{Namespace: "shop", Name: "prices"}

func prices(value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "prices"}, Data: map[string]string{"apple": value}}
}

// builder makes clients that can select by name, as an API server can.
func builder(t *testing.T) *fake.ClientBuilder {
	t.Helper()
	byName := func(object client.Object) []string { return []string{object.GetName()} }
	return fake.NewClientBuilder().WithScheme(controlplane.Scheme()).WithIndex(&corev1.ConfigMap{}, "metadata.name", byName)
}

// clientThat returns a client that does something each time a watch has begun.
func clientThat(t *testing.T, onWatch func(c client.WithWatch, n int), objects ...client.Object) client.WithWatch {
	t.Helper()
	watches := 0
	return builder(t).WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		Watch: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) (watch.Interface, error) {
			w, err := c.Watch(ctx, list, options...)
			watches++
			onWatch(c, watches)
			return w, err
		},
	}).Build()
}

func wantPrice(value string) func(*corev1.ConfigMap) string {
	return func(cm *corev1.ConfigMap) string {
		switch {
		case cm == nil:
			return "missing"
		case cm.Data["apple"] != value:
			return fmt.Sprintf("apple is %q, want %q", cm.Data["apple"], value)
		}
		return ""
	}
}

func TestAwaitReturnsAtOnceWhatIsAsWanted(t *testing.T) {
	c := clientThat(t, func(client.WithWatch, int) { t.Error("nothing to watch for") }, prices("2"))
	found, err := Await(t.Context(), c, shopKey, wantPrice("2"))
	require.NoError(t, err)
	assert.Equal(t, "2", found.Data["apple"])
}

func TestAwaitSeesTheObjectComeAndChange(t *testing.T) {
	ctx := t.Context()
	c := clientThat(t, func(c client.WithWatch, _ int) {
		other := prices("2")
		other.Name = "another"
		require.NoError(t, c.Create(ctx, other))
		created := prices("1")
		require.NoError(t, c.Create(ctx, created))
		created.Data["apple"] = "2"
		require.NoError(t, c.Update(ctx, created))
	})
	found, err := Await(ctx, c, shopKey, wantPrice("2"))
	require.NoError(t, err)
	assert.Equal(t, "prices", found.Name)
}

func TestAwaitSaysWhatWasMissing(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	late := errors.New("too late")
	c := clientThat(t, func(client.WithWatch, int) { cancel(late) }, prices("1"))
	_, err := Await(ctx, c, shopKey, wantPrice("2"))
	require.ErrorContains(t, err, `ConfigMap shop/prices: apple is "1", want "2" (waited 0.`)
	require.ErrorIs(t, err, late)
	var unmet *UnmetError
	assert.ErrorAs(t, err, &unmet)
}

func TestAwaitStartsAgainWhenAWatchBreaks(t *testing.T) {
	ctx := t.Context()
	watches := 0
	c := builder(t).WithObjects(prices("1")).WithInterceptorFuncs(interceptor.Funcs{
		Watch: func(_ context.Context, c client.WithWatch, _ client.ObjectList, _ ...client.ListOption) (watch.Interface, error) {
			watches++
			if watches == 1 {
				return nil, apierrors.NewServiceUnavailable("starting")
			}
			require.NoError(t, c.Update(ctx, prices("2")))
			closed := watch.NewFake()
			closed.Stop()
			return closed, nil
		},
	}).Build()
	_, err := Await(ctx, c, shopKey, wantPrice("2"))
	require.NoError(t, err)
	assert.Equal(t, 2, watches)
}

func TestAwaitGivesUpWhenRepeatingWouldNotHelp(t *testing.T) {
	c := builder(t).WithInterceptorFuncs(interceptor.Funcs{
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "", errors.New("not yours"))
		},
	}).Build()
	_, err := Await(t.Context(), c, shopKey, wantPrice("2"))
	require.ErrorContains(t, err, "watching ConfigMap shop/prices")
}

func TestAwaitAllSeesEveryObjectInOrder(t *testing.T) {
	ctx := t.Context()
	c := clientThat(t, func(c client.WithWatch, _ int) {
		other := prices("3")
		other.Name = "costs"
		require.NoError(t, c.Create(ctx, other))
	}, prices("1"))
	found, err := AwaitAll(ctx, c, func(all []*corev1.ConfigMap) string {
		if len(all) != 2 {
			return fmt.Sprintf("%d, want 2", len(all))
		}
		return ""
	}, client.InNamespace("shop"))
	require.NoError(t, err)
	assert.Equal(t, "costs", found[0].Name)
}

func TestAwaitGone(t *testing.T) {
	ctx := t.Context()
	c := clientThat(t, func(c client.WithWatch, _ int) { require.NoError(t, c.Delete(ctx, prices(""))) }, prices("1"))
	require.NoError(t, AwaitGone[corev1.ConfigMap](ctx, c, shopKey))
}

func TestWatchEndsWithTheErrorOfItsWatcher(t *testing.T) {
	broken := errors.New("order broken")
	c := clientThat(t, func(client.WithWatch, int) {}, prices("1"))
	err := Watch(t.Context(), c, shopKey, func(*corev1.ConfigMap) (bool, error) { return false, broken })
	assert.Equal(t, broken, err)
}
