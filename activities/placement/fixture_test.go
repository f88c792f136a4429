package placement_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientdiscovery "k8s.io/client-go/discovery"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/fleetflow/fleetflow/activities/hubread"
	"github.com/fleetflow/fleetflow/activities/placement"
	"github.com/fleetflow/fleetflow/activities/selection"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/test/fixture"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

var errDied = errors.New("the process died")

// hub is a hub of objects in memory. Its client dies after a number of writes.
type hub struct {
	t *testing.T
	client.WithWatch
	dynamic *dynamicfake.FakeDynamicClient
	clock   *clocktesting.FakeClock
	served  *discovery
	// left is how many writes succeed before the process dies; negative for any.
	mu         sync.Mutex
	left, uids int
	writes     int
}

// discovery serves fixed kinds and counts how often it was asked.
type discovery struct {
	lists []*metav1.APIResourceList
	err   error
	asked int
}

func (d *discovery) ServerGroupsAndResourcesWithContext(context.Context) ([]*metav1.APIGroup, []*metav1.APIResourceList, error) {
	d.asked++
	return nil, d.lists, d.err
}

func newHub(t *testing.T, objects ...runtime.Object) *hub {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{appsv1.AddToScheme, corev1.AddToScheme, apiextensionsv1.AddToScheme, placementv1beta1.AddToScheme, clusterv1beta1.AddToScheme, fleetflowv1alpha1.AddToScheme} {
		require.NoError(t, add(scheme))
	}
	h := &hub{t: t, left: -1, clock: clocktesting.NewFakeClock(now)}
	var fleet []client.Object
	var user []runtime.Object
	for _, object := range objects {
		switch o := object.(type) {
		case *corev1.Namespace, *corev1.ConfigMap, *corev1.Secret, *corev1.ReplicationController, *appsv1.Deployment:
			user = append(user, o)
		default:
			fleet = append(fleet, o.(client.Object))
		}
	}
	h.WithWatch = fixture.Index(fixture.NewClientBuilder(scheme)).WithObjects(fleet...).
		WithStatusSubresource(&placementv1beta1.ClusterSchedulingPolicySnapshot{}).
		WithInterceptorFuncs(h.interceptor()).Build()
	h.dynamic = dynamicfake.NewSimpleDynamicClient(scheme, user...)
	all := metav1.Verbs{"create", "get", "list", "watch"}
	h.served = &discovery{lists: []*metav1.APIResourceList{{GroupVersion: "v1", APIResources: []metav1.APIResource{
		{Name: "namespaces", Kind: "Namespace", Verbs: all},
		{Name: "configmaps", Kind: "ConfigMap", Namespaced: true, Verbs: all},
		{Name: "secrets", Kind: "Secret", Namespaced: true, Verbs: all},
		{Name: "pods", Kind: "Pod", Namespaced: true, Verbs: all},
	}}}}
	return h
}

// write counts a write and says whether the process lives to make it.
func (h *hub) write() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.left == 0 {
		return errDied
	}
	h.left--
	h.writes++
	return nil
}

func (h *hub) interceptor() interceptor.Funcs {
	return interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
			if err := h.write(); err != nil {
				return err
			}
			h.mu.Lock()
			h.uids++
			object.SetUID(types.UID(fmt.Sprintf("uid-%d", h.uids)))
			h.mu.Unlock()
			return c.Create(ctx, object, options...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
			if err := h.write(); err != nil {
				return err
			}
			return c.Patch(ctx, object, patch, options...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.DeleteOption) error {
			if err := h.write(); err != nil {
				return err
			}
			return c.Delete(ctx, object, options...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, subResource string, object client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
			if err := h.write(); err != nil {
				return err
			}
			return c.SubResource(subResource).Patch(ctx, object, patch, options...)
		},
	}
}

// activities are those of a process that has just started.
func (h *hub) activities() *placement.Activities {
	return placement.NewActivities(h, h, &selection.Selector{
		Client: h, Live: fixture.PastCache(h), Dynamic: h.dynamic, Clock: h.clock,
		Kinds: &hubread.ServedKinds{Discovery: h.served, Live: h, Clock: h.clock, ClusterScopedInConfigMaps: true},
	}, h.clock)
}

// crp is a placement that selects the namespace app.
func crp(changes ...func(*placementv1beta1.ClusterResourcePlacement)) *placementv1beta1.ClusterResourcePlacement {
	p := &placementv1beta1.ClusterResourcePlacement{
		ObjectMeta: metav1.ObjectMeta{Name: "crp", UID: "crp-uid", Generation: 1},
		Spec: placementv1beta1.PlacementSpec{ResourceSelectors: []placementv1beta1.ResourceSelectorTerm{
			{Version: "v1", Kind: "Namespace", Name: "app"},
		}},
	}
	for _, change := range changes {
		change(p)
	}
	return p
}

var ref = wf.Ref{Kind: wf.KindClusterResourcePlacement, Name: "crp", UID: "crp-uid"}

func namespace(name string) *corev1.Namespace {
	return &corev1.Namespace{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}, ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"name": name}}}
}

func configMap(name, value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "app"},
		Data:       map[string]string{"key": value},
	}
}

// change replaces a ConfigMap on the hub.
func (h *hub) change(c *corev1.ConfigMap) {
	h.t.Helper()
	_, err := h.dynamic.Resource(corev1.SchemeGroupVersion.WithResource("configmaps")).Namespace(c.Namespace).
		Update(h.t.Context(), unstructuredOf(h.t, c), metav1.UpdateOptions{})
	require.NoError(h.t, err)
}

// add creates a ConfigMap on the hub, remove deletes one.
func (h *hub) add(c *corev1.ConfigMap) {
	h.t.Helper()
	_, err := h.dynamic.Resource(corev1.SchemeGroupVersion.WithResource("configmaps")).Namespace(c.Namespace).
		Create(h.t.Context(), unstructuredOf(h.t, c), metav1.CreateOptions{})
	require.NoError(h.t, err)
}

func (h *hub) remove(name string) {
	h.t.Helper()
	require.NoError(h.t, h.dynamic.Resource(corev1.SchemeGroupVersion.WithResource("configmaps")).Namespace("app").
		Delete(h.t.Context(), name, metav1.DeleteOptions{}))
}

func unstructuredOf(t *testing.T, object any) *unstructured.Unstructured {
	t.Helper()
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	require.NoError(t, err)
	return &unstructured.Unstructured{Object: fields}
}

func (h *hub) placement() *placementv1beta1.ClusterResourcePlacement {
	h.t.Helper()
	p := &placementv1beta1.ClusterResourcePlacement{}
	require.NoError(h.t, h.Get(h.t.Context(), client.ObjectKey{Name: "crp"}, p))
	return p
}

// groupFailure is what discovery says when one API group cannot be read.
func groupFailure(group string) error {
	return &clientdiscovery.ErrGroupDiscoveryFailed{Groups: map[schema.GroupVersion]error{
		{Group: group, Version: "v1"}: errors.New("service unavailable"),
	}}
}
