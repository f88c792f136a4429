//go:build integration

package admission

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/test/devfleet/access"
)

// session is what one user can do on the hub. Its embedded client is for typed objects, its methods are for manifests.
type session struct {
	client.Client
	dynamic   dynamic.Interface
	discovery *discovery.DiscoveryClient
	config    *rest.Config
	mapper    meta.RESTMapper
}

func newSession(config *rest.Config) (*session, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, clusterv1beta1.AddToScheme, fleetflowv1alpha1.AddToScheme, placementv1beta1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("making the scheme: %w", err)
		}
	}
	s := &session{config: config}
	var err error
	if s.discovery, err = discovery.NewDiscoveryClientForConfig(config); err != nil {
		return nil, fmt.Errorf("making a discovery client: %w", err)
	}
	groups, err := restmapper.GetAPIGroupResources(s.discovery)
	if err != nil {
		return nil, fmt.Errorf("asking which kinds there are: %w", err)
	}
	s.mapper = restmapper.NewDiscoveryRESTMapper(groups)
	if s.dynamic, err = dynamic.NewForConfig(config); err != nil {
		return nil, fmt.Errorf("making a dynamic client: %w", err)
	}
	s.Client, err = client.New(config, client.Options{Scheme: scheme, Mapper: s.mapper, FieldValidation: metav1.FieldValidationStrict})
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	return s, nil
}

// as returns a session of a user in groups. RBAC lets every such user do everything here: what is refused is refused at
// admission.
func as(t testing.TB, user string, groups ...string) *session {
	t.Helper()
	return granted(t, user, append(groups, everybody)...)
}

// granted returns a session of a user in groups, who may do what RBAC grants.
func granted(t testing.TB, user string, groups ...string) *session {
	t.Helper()
	config := rest.CopyConfig(admin.config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: append(groups, "system:authenticated")}
	s, err := newSession(config)
	require.NoError(t, err)
	return s
}

// awaitRole returns once the server knows that the user has a ClusterRole everywhere.
func (s *session) awaitRole(t testing.TB, name string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), accessPatience)
	defer cancel()
	role := &rbacv1.ClusterRole{}
	require.NoError(t, admin.Get(ctx, client.ObjectKey{Name: name}, role))
	require.NoError(t, access.AwaitRights(ctx, s, "", role.Rules...))
}

// through returns a session of a user whom the dashboard acts for, if it acts as the chart's account does.
func through(t testing.TB, channel, user string) *session {
	t.Helper()
	config := rest.CopyConfig(admin.config)
	config.Impersonate = rest.ImpersonationConfig{
		UserName: user, Groups: []string{everybody, "system:authenticated"}, Extra: map[string][]string{placementv1beta1.ApprovalChannelExtra: {channel}},
	}
	s, err := newSession(config)
	require.NoError(t, err)
	return s
}

// resource returns where objects like the given one live, in the version that its manifest names.
func (s *session) resource(object *unstructured.Unstructured) (dynamic.ResourceInterface, error) {
	gvk := object.GroupVersionKind()
	mapping, err := s.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return nil, fmt.Errorf("looking for %s: %w", gvk, err)
	}
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		namespace := object.GetNamespace()
		if namespace == "" {
			namespace = metav1.NamespaceDefault
		}
		return s.dynamic.Resource(mapping.Resource).Namespace(namespace), nil
	}
	return s.dynamic.Resource(mapping.Resource), nil
}

// strict makes a field that does not exist an error, as it is for kubectl.
func strict(dryRun ...string) metav1.CreateOptions {
	return metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict, DryRun: dryRun}
}

// try creates an object and returns what the server made of it.
func (s *session) try(ctx context.Context, object *unstructured.Unstructured, dryRun ...string) (*unstructured.Unstructured, error) {
	resource, err := s.resource(object)
	if err != nil {
		return nil, err
	}
	return resource.Create(ctx, object, strict(dryRun...))
}

// admittedWithin is how long what went before a test may still count for the API server.
const admittedWithin = 30 * time.Second

// create creates what a manifest says, for the time of the test.
func (s *session) create(t testing.TB, manifest string) *unstructured.Unstructured {
	t.Helper()
	return s.createObject(t, parse(t, manifest))
}

func (s *session) createObject(t testing.TB, object *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), admittedWithin)
	defer cancel()
	var stored *unstructured.Unstructured
	require.NoError(t, access.WhenAdmitted(ctx, func(ctx context.Context) (err error) {
		stored, err = s.try(ctx, object)
		return err
	}))
	t.Cleanup(func() { remove(t, stored) })
	return stored
}

// admittedObject asserts that an object would be admitted; nothing is stored.
func (s *session) admittedObject(t testing.TB, object *unstructured.Unstructured) {
	t.Helper()
	_, err := s.try(t.Context(), object, metav1.DryRunAll)
	assert.NoError(t, err, "the neighbour that is right")
}

// update changes a stored object by a merge patch written as YAML.
func (s *session) update(ctx context.Context, stored *unstructured.Unstructured, patch map[string]any, dryRun ...string) error {
	resource, err := s.resource(stored)
	if err != nil {
		return err
	}
	_, err = resource.Update(ctx, patched(stored, patch), metav1.UpdateOptions{
		FieldValidation: metav1.FieldValidationStrict, DryRun: dryRun,
	})
	return err
}

// setStatus writes the status of a stored object, given as YAML.
func setStatus(t testing.TB, stored *unstructured.Unstructured, status string) error {
	t.Helper()
	return admin.updateStatus(t, stored, parsePatch(t, status))
}

// updateStatus writes the status of a stored object.
func (s *session) updateStatus(t testing.TB, stored *unstructured.Unstructured, status any) error {
	t.Helper()
	resource, err := s.resource(stored)
	require.NoError(t, err)
	changed := stored.DeepCopy()
	changed.Object["status"] = status
	_, err = resource.UpdateStatus(t.Context(), changed, metav1.UpdateOptions{FieldValidation: metav1.FieldValidationStrict})
	return err
}

// requireRefusal asserts that the server itself refused, by a rule, and said so in the given words.
func requireRefusal(t testing.TB, err error, message string) {
	t.Helper()
	require.Error(t, err, "admitted, but expected: %s", message)
	var status apierrors.APIStatus
	require.ErrorAs(t, err, &status)
	assert.False(t, apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err), "refused for another reason: %v", err)
	assert.Contains(t, err.Error(), message)
}

// remove deletes an object, also one that a finalizer holds: nothing acts on this hub.
func remove(t testing.TB, object *unstructured.Unstructured) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	resource, err := admin.resource(object)
	require.NoError(t, err)
	err = resource.Delete(ctx, object.GetName(), metav1.DeleteOptions{GracePeriodSeconds: new(int64)})
	if apierrors.IsNotFound(err) {
		return
	}
	assert.NoError(t, err)
	if object.GetKind() == "Namespace" {
		// Else it would wait for a controller that says it is empty.
		object = object.DeepCopy()
		unstructured.RemoveNestedField(object.Object, "metadata", "resourceVersion")
		assert.NoError(t, unstructured.SetNestedSlice(object.Object, []any{}, "spec", "finalizers"))
		_, err = resource.Update(ctx, object, metav1.UpdateOptions{}, "finalize")
		assert.NoError(t, err)
		return
	}
	if len(object.GetFinalizers()) > 0 {
		_, err = resource.Patch(ctx, object.GetName(), "application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
		assert.NoError(t, err)
	}
}
