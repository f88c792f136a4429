package apply

import (
	"context"
	"errors"
	"net/url"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// fixedRivals is a RivalFinder with a fixed answer.
type fixedRivals []Rival

func (r fixedRivals) Find(context.Context, metav1.OwnerReference, Key, []metav1.OwnerReference) ([]Rival, error) {
	return r, nil
}

// newEngine returns an engine on a cluster with these objects, and counts the engine's writes.
func newEngine(rivals []Rival, objects ...client.Object) (*Engine, *int) {
	writes := 0
	c := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithReturnManagedFields().WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			writes++
			return c.Create(ctx, o, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			options := client.PatchOptions{}
			if options.ApplyOptions(opts); len(options.DryRun) > 0 {
				return dryRun(ctx, c, o, p, options)
			}
			writes++
			return c.Patch(ctx, o, p, opts...)
		},
	}).Build()
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{corev1.SchemeGroupVersion})
	mapper.Add(corev1.SchemeGroupVersion.WithKind("ConfigMap"), meta.RESTScopeNamespace)
	return &Engine{Client: c, Mapper: mapper, Rivals: fixedRivals(rivals)}, &writes
}

// dryRun makes a dry run, which the fake client does not support: it patches a copy of the object.
func dryRun(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, options client.PatchOptions) error {
	current := o.DeepCopyObject().(client.Object)
	if err := c.Get(ctx, client.ObjectKeyFromObject(o), current); err != nil {
		return err
	}
	aside := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithReturnManagedFields().WithObjects(current).Build()
	options.DryRun = nil
	return aside.Patch(ctx, o, p, &options)
}

func configMap(data string, owners ...metav1.OwnerReference) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "a", UID: "uid-object", OwnerReferences: owners},
		Data:       map[string]string{"x": data},
	}
}

func request(text string) Request {
	return Request{
		Manifest: Decode(raw(text))[0], Owner: me,
		Strategy: placementv1beta1.ApplyStrategy{
			Type:           placementv1beta1.ApplyStrategyTypeClientSideApply,
			WhenToTakeOver: placementv1beta1.WhenToTakeOverTypeAlways,
		},
	}
}

const manifestX1 = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"n"},"data":{"x":"1"}}`

func storedConfigMap(t *testing.T, e *Engine) *corev1.ConfigMap {
	t.Helper()
	out := &corev1.ConfigMap{}
	require.NoError(t, e.Client.Get(t.Context(), types.NamespacedName{Namespace: "n", Name: "a"}, out))
	return out
}

func TestApplyCreatesOnceAndThenWritesNothing(t *testing.T) {
	e, writes := newEngine(nil)
	result, problem, err := e.Apply(t.Context(), request(manifestX1))
	require.NoError(t, err)
	require.Nil(t, problem)
	assert.True(t, result.Wrote)
	assert.Equal(t, []metav1.OwnerReference{me}, storedConfigMap(t, e).OwnerReferences)

	result, problem, err = e.Apply(t.Context(), request(manifestX1))
	require.NoError(t, err)
	require.Nil(t, problem)
	assert.False(t, result.Wrote)
	assert.Equal(t, 1, *writes)
}

func TestApplyTakesOver(t *testing.T) {
	e, _ := newEngine(nil, configMap("theirs"))
	result, problem, err := e.Apply(t.Context(), request(manifestX1))
	require.NoError(t, err)
	require.Nil(t, problem)
	assert.True(t, result.Wrote)
	got := storedConfigMap(t, e)
	assert.Equal(t, "1", got.Data["x"])
	assert.Equal(t, []metav1.OwnerReference{me}, got.OwnerReferences)
}

func TestApplyTouchesNothingOfAnotherPlacement(t *testing.T) {
	e, writes := newEngine([]Rival{{Name: "other"}}, configMap("theirs", other))
	_, problem, err := e.Apply(t.Context(), request(manifestX1))
	require.NoError(t, err)
	require.NotNil(t, problem)
	assert.Equal(t, placementv1beta1.ReasonApplyConflictBetweenPlacements, problem.Reason)
	assert.Zero(t, *writes)
}

func TestApplyReplacesADanglingOwner(t *testing.T) {
	e, _ := newEngine(nil, configMap("theirs", other, foreign))
	req := request(manifestX1)
	req.Strategy.AllowCoOwnership = true
	_, problem, err := e.Apply(t.Context(), req)
	require.NoError(t, err)
	require.Nil(t, problem)
	assert.Equal(t, []metav1.OwnerReference{foreign, me}, storedConfigMap(t, e).OwnerReferences)
}

func TestApplyHoldsBackWhenToldTo(t *testing.T) {
	e, writes := newEngine(nil, configMap("theirs", me))
	req := request(manifestX1)
	req.KeepContent = true
	result, problem, err := e.Apply(t.Context(), req)
	require.NoError(t, err)
	require.Nil(t, problem)
	assert.False(t, result.Wrote)
	assert.Zero(t, *writes)
	assert.Equal(t, "theirs", storedConfigMap(t, e).Data["x"])
}

func TestApplyTellsARefusalFromSilence(t *testing.T) {
	gr := schema.GroupResource{Resource: "configmaps"}
	tests := map[string]struct {
		err    error
		reason string // empty if it says nothing about the manifest
	}{
		"an object the API server refuses is a problem": {
			apierrors.NewForbidden(gr, "a", errors.New("quota")), placementv1beta1.ReasonManifestApplyFailed,
		},
		"so is one a webhook breaks": {apierrors.NewInternalError(errors.New("webhook")), placementv1beta1.ReasonManifestApplyFailed},
		"a connection that breaks says nothing": {
			&url.Error{Op: "Post", URL: "https://member", Err: errors.New("refused")}, "",
		},
		"nor does a pass that is called off":                       {context.Canceled, ""},
		"an API that is too busy is a problem of this object":      {apierrors.NewTooManyRequests("busy", 1), placementv1beta1.ReasonManifestApplyFailed},
		"so is an aggregated API that is not available":            {apierrors.NewServiceUnavailable("later"), placementv1beta1.ReasonManifestApplyFailed},
		"so is one that takes too long":                            {apierrors.NewTimeoutError("too long", 1), placementv1beta1.ReasonManifestApplyFailed},
		"so is one that the API server has waited for long enough": {apierrors.NewServerTimeout(gr, "create", 1), placementv1beta1.ReasonManifestApplyFailed},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			e, _ := newEngine(nil)
			e.Client = interceptor.NewClient(e.Client.(client.WithWatch), interceptor.Funcs{
				Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error { return tc.err },
			})
			_, problem, err := e.Apply(t.Context(), request(manifestX1))
			if tc.reason == "" {
				assert.ErrorIs(t, err, tc.err)
				assert.Nil(t, problem)
				return
			}
			require.NoError(t, err)
			require.NotNil(t, problem)
			assert.Equal(t, tc.reason, problem.Reason)
		})
	}
}

func TestAnObjectThatCannotBeReadNowIsNotApplied(t *testing.T) {
	for name, tc := range map[string]struct {
		err    error
		reason string
	}{
		"an API that is not available": {apierrors.NewServiceUnavailable("later"), placementv1beta1.ReasonManifestApplyFailed},
		"a definition whose conversion webhook is away": {apierrors.NewInternalError(errors.New("conversion webhook for example.com/v1, Kind=Widget failed")),
			placementv1beta1.ReasonFailedToFindObjInMemberCluster},
		"an object that may not be read": {apierrors.NewForbidden(schema.GroupResource{}, "a", nil), placementv1beta1.ReasonFailedToFindObjInMemberCluster},
	} {
		t.Run(name, func(t *testing.T) {
			e, writes := newEngine(nil)
			e.Client = interceptor.NewClient(e.Client.(client.WithWatch), interceptor.Funcs{
				Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
					return tc.err
				},
			})
			_, problem, err := e.Apply(t.Context(), request(manifestX1))
			require.NoError(t, err)
			require.NotNil(t, problem)
			assert.Equal(t, tc.reason, problem.Reason)
			assert.Zero(t, *writes)
		})
	}
}

// brokenMapper fails to find any kind.
type brokenMapper struct {
	meta.RESTMapper
	err error
}

func (m brokenMapper) RESTMapping(schema.GroupKind, ...string) (*meta.RESTMapping, error) {
	return nil, m.err
}

func TestAKindWhoseAPICannotBeAskedIsAProblemOfTheManifest(t *testing.T) {
	gv := schema.GroupVersion{Group: "example.com", Version: "v1"}
	id := placementv1beta1.WorkResourceIdentifier{Group: gv.Group, Version: gv.Version, Kind: "Widget"}
	e := &Engine{Mapper: brokenMapper{err: &apiutil.ErrResourceDiscoveryFailed{gv: apierrors.NewServiceUnavailable("later")}}}
	_, problem, err := e.Resource(id)
	require.NoError(t, err)
	require.NotNil(t, problem)
	assert.Equal(t, placementv1beta1.ReasonManifestApplyFailed, problem.Reason)

	refused := &url.Error{Op: "Get", URL: "https://member", Err: errors.New("refused")}
	e.Mapper = brokenMapper{err: &apiutil.ErrResourceDiscoveryFailed{gv: refused}}
	_, problem, err = e.Resource(id)
	require.ErrorIs(t, err, refused)
	assert.Nil(t, problem)
}

func TestResourceNamesAnUnknownKind(t *testing.T) {
	e, _ := newEngine(nil)
	gvr, problem, err := e.Resource(placementv1beta1.WorkResourceIdentifier{Version: "v1", Kind: "ConfigMap", Namespace: "n"})
	require.NoError(t, err)
	assert.Nil(t, problem)
	assert.Equal(t, "configmaps", gvr.Resource)

	_, problem, err = e.Resource(placementv1beta1.WorkResourceIdentifier{Group: "example.com", Version: "v1", Kind: "Widget"})
	require.NoError(t, err)
	require.NotNil(t, problem)
	assert.Contains(t, problem.Message, "Widget in example.com/v1")
}

func TestAnObjectThatContradictsTheScopeOfItsKindIsRefused(t *testing.T) {
	for sentence, tc := range map[string]struct {
		id    placementv1beta1.WorkResourceIdentifier
		words []string
	}{
		"a cluster-scoped object with a namespace, which the API server would drop": {
			placementv1beta1.WorkResourceIdentifier{Version: "v1", Kind: "Namespace", Namespace: "n", Name: "x"},
			[]string{"Namespace n/x", "cluster-scoped on this cluster", "remove metadata.namespace"},
		},
		"a namespaced object without a namespace": {
			placementv1beta1.WorkResourceIdentifier{Version: "v1", Kind: "ConfigMap", Name: "x"},
			[]string{"ConfigMap x", "namespaced on this cluster", "set metadata.namespace"},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			e, _ := newEngine(nil)
			e.Mapper.(*meta.DefaultRESTMapper).Add(corev1.SchemeGroupVersion.WithKind("Namespace"), meta.RESTScopeRoot)
			_, problem, err := e.Resource(tc.id)
			require.NoError(t, err)
			require.NotNil(t, problem)
			assert.Equal(t, placementv1beta1.ReasonManifestApplyFailed, problem.Reason)
			for _, word := range tc.words {
				assert.Contains(t, problem.Message, word)
			}
		})
	}
}

func TestRemoveOfANameWithTheWrongScopeLeavesTheObjectWithoutNamespaceAlone(t *testing.T) {
	e, _ := newEngine(nil, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "x", OwnerReferences: []metav1.OwnerReference{me}}})
	e.Mapper.(*meta.DefaultRESTMapper).Add(corev1.SchemeGroupVersion.WithKind("Namespace"), meta.RESTScopeRoot)
	gone, err := e.Remove(t.Context(), placementv1beta1.WorkResourceIdentifier{Version: "v1", Kind: "Namespace", Namespace: "n", Name: "x"}, me, "")
	require.NoError(t, err)
	assert.True(t, gone)
	require.NoError(t, e.Client.Get(t.Context(), types.NamespacedName{Name: "x"}, &corev1.Namespace{}))
}

func TestRemove(t *testing.T) {
	id := placementv1beta1.WorkResourceIdentifier{Version: "v1", Kind: "ConfigMap", Resource: "configmaps", Namespace: "n", Name: "a"}
	held := configMap("1", me)
	held.Finalizers = []string{"example.com/hold"}
	tests := map[string]struct {
		object *corev1.ConfigMap
		gone   bool
		exists bool
		owners []metav1.OwnerReference
	}{
		"an object of ours is deleted":               {object: configMap("1", me), gone: true},
		"an object that is not there is gone":        {gone: true},
		"an object of others is left alone":          {object: configMap("1", other), gone: true, exists: true, owners: []metav1.OwnerReference{other}},
		"an object without owners is left alone":     {object: configMap("1"), gone: true, exists: true},
		"an object with other owners is only let go": {object: configMap("1", foreign, me), gone: true, exists: true, owners: []metav1.OwnerReference{foreign}},
		"an object with a finalizer takes its time":  {object: held, gone: false, exists: true, owners: []metav1.OwnerReference{me}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			e, _ := newEngine(nil)
			if tc.object != nil {
				e, _ = newEngine(nil, tc.object)
			}
			gone, err := e.Remove(t.Context(), id, me, "")
			require.NoError(t, err)
			assert.Equal(t, tc.gone, gone)
			got := &corev1.ConfigMap{}
			err = e.Client.Get(t.Context(), types.NamespacedName{Namespace: "n", Name: "a"}, got)
			if !tc.exists {
				assert.True(t, apierrors.IsNotFound(err))
				return
			}
			require.NoError(t, err)
			assert.Equal(t, tc.owners, got.OwnerReferences)
		})
	}
}

func TestRemoveJudgesAgainWhatChangedMeanwhile(t *testing.T) {
	id := placementv1beta1.WorkResourceIdentifier{Version: "v1", Kind: "ConfigMap", Resource: "configmaps", Namespace: "n", Name: "a"}
	tests := map[string]struct {
		change func(o *corev1.ConfigMap)
		exists bool
	}{
		"an object that another Work has taken over stays": {func(o *corev1.ConfigMap) { o.OwnerReferences = []metav1.OwnerReference{other} }, true},
		"an object that somebody only wrote to goes":       {func(o *corev1.ConfigMap) { o.Data["x"] = "2" }, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			e, _ := newEngine(nil, configMap("1", me))
			plain := e.Client
			changed := false
			e.Client = interceptor.NewClient(plain.(client.WithWatch), interceptor.Funcs{
				Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
					if !changed {
						changed = true
						now := storedConfigMap(t, &Engine{Client: plain})
						tc.change(now)
						require.NoError(t, plain.Update(ctx, now))
					}
					return c.Delete(ctx, o, opts...)
				},
			})
			gone, err := e.Remove(t.Context(), id, me, "")
			require.NoError(t, err)
			assert.True(t, gone)
			err = plain.Get(t.Context(), types.NamespacedName{Namespace: "n", Name: "a"}, &corev1.ConfigMap{})
			assert.Equal(t, tc.exists, err == nil, "%v", err)
		})
	}
}

func TestRemoveFindsAnObjectWhoseVersionIsNoLongerServed(t *testing.T) {
	old := placementv1beta1.WorkResourceIdentifier{Version: "v1beta1", Kind: "ConfigMap", Resource: "configmaps", Namespace: "n", Name: "a"}
	for name, answer := range map[string]error{
		"the client does not know the version": &meta.NoKindMatchError{
			GroupKind: schema.GroupKind{Kind: "ConfigMap"}, SearchedVersions: []string{"v1beta1"},
		},
		"the API server does not know the path": apierrors.NewGenericServerResponse(404, "get",
			schema.GroupResource{Resource: "configmaps"}, "a", "404 page not found", 0, true),
	} {
		t.Run(name, func(t *testing.T) {
			e, _ := newEngine(nil, configMap("1", me))
			plain := e.Client
			e.Client = interceptor.NewClient(plain.(client.WithWatch), interceptor.Funcs{
				Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
					if o.GetObjectKind().GroupVersionKind().Version == "v1beta1" {
						return answer
					}
					return c.Get(ctx, key, o, opts...)
				},
			})
			gone, err := e.Remove(t.Context(), old, me, "")
			require.NoError(t, err)
			assert.True(t, gone)
			err = plain.Get(t.Context(), types.NamespacedName{Namespace: "n", Name: "a"}, &corev1.ConfigMap{})
			assert.True(t, apierrors.IsNotFound(err), "it is not taken for gone while it is there")
		})
	}
}

func TestRemoveTakesNothingForGoneThatCannotBeAsked(t *testing.T) {
	gv := schema.GroupVersion{Group: "example.com", Version: "v1"}
	e, _ := newEngine(nil)
	e.Mapper = brokenMapper{err: &apiutil.ErrResourceDiscoveryFailed{gv: apierrors.NewServiceUnavailable("later")}}
	e.Client = interceptor.NewClient(e.Client.(client.WithWatch), interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return &meta.NoKindMatchError{GroupKind: schema.GroupKind{Group: gv.Group, Kind: "Widget"}}
		},
	})
	gone, err := e.Remove(t.Context(), placementv1beta1.WorkResourceIdentifier{Group: gv.Group, Version: gv.Version, Kind: "Widget", Name: "a"}, me, "")
	require.ErrorContains(t, err, "later")
	assert.False(t, gone)
}
