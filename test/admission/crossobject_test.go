//go:build integration

package admission

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
)

// hearsayTimeout bounds how long the server takes to hear of an object that another one is compared with.
const hearsayTimeout = 10 * time.Second

// standing is an object that is there before.
type standing struct {
	manifest string
	// deleted says that it is on its way out.
	deleted bool
}

// contradiction is what cannot be created next to what is there. That it is refused shows that the server has heard of
// all that is there, which makes the manifests that are admitted worth something.
type contradiction struct {
	there            []standing
	refused, message string
	admitted         []string
}

func (s standing) create(t *testing.T) *unstructured.Unstructured {
	t.Helper()
	var stored *unstructured.Unstructured
	// It may contradict one before it that has ended, of which the server has not heard yet.
	awaitAdmission(t, func(ctx context.Context) (err error) {
		stored, err = admin.try(ctx, parse(t, s.manifest))
		return err
	})
	t.Cleanup(func() { remove(t, stored) })
	resource, err := admin.resource(stored)
	require.NoError(t, err)
	if s.deleted {
		require.NoError(t, resource.Delete(t.Context(), stored.GetName(), metav1.DeleteOptions{}))
	}
	return stored
}

// awaitRefusal asks until the server has heard of what it compares with.
func awaitRefusal(t *testing.T, do func(context.Context) error) error {
	t.Helper()
	var refusal error
	err := wait.PollUntilContextTimeout(t.Context(), probeEvery, hearsayTimeout, true, func(ctx context.Context) (bool, error) {
		refusal = do(ctx)
		return refusal != nil, nil
	})
	require.NoError(t, err, "admitted all the time")
	return refusal
}

// awaitAdmission tries until it succeeds.
func awaitAdmission(t *testing.T, do func(context.Context) error) {
	t.Helper()
	var refusal error
	err := wait.PollUntilContextTimeout(context.WithoutCancel(t.Context()), probeEvery, hearsayTimeout, true, func(ctx context.Context) (bool, error) {
		refusal = do(ctx)
		return refusal == nil, nil
	})
	require.NoError(t, err, "refused all the time: %v", refusal)
}

func TestWhatContradictsAnotherObjectIsRefused(t *testing.T) {
	for name, tt := range contradictions {
		t.Run(name, func(t *testing.T) {
			for _, object := range tt.there {
				object.create(t)
			}
			manifest := parse(t, tt.refused)
			err := awaitRefusal(t, func(ctx context.Context) error {
				_, err := admin.try(ctx, manifest, metav1.DryRunAll)
				return err
			})
			requireRefusal(t, err, tt.message)
			for _, fine := range tt.admitted {
				_, err := admin.try(t.Context(), parse(t, fine), metav1.DryRunAll)
				assert.NoError(t, err, fine)
			}
			for _, object := range tt.there {
				requireAppliedAgain(t, parse(t, object.manifest))
			}
		})
	}
}

// requireAppliedAgain asserts that an object that is there can be written as it is, whatever it contradicts.
func requireAppliedAgain(t *testing.T, object *unstructured.Unstructured) {
	t.Helper()
	resource, err := admin.resource(object)
	require.NoError(t, err)
	_, err = resource.Apply(t.Context(), object.GetName(), object, metav1.ApplyOptions{
		FieldManager: "tests", Force: true, DryRun: []string{metav1.DryRunAll},
	})
	assert.NoError(t, err)
}

// TestOverridesInConflictCanBeMended is about overrides that were created in the same instant, or before the policies.
func TestOverridesInConflictCanBeMended(t *testing.T) {
	const twoRoles = `[{group: rbac.authorization.k8s.io, version: v1, kind: ClusterRole, name: mended-a},
		{group: rbac.authorization.k8s.io, version: v1, kind: ClusterRole, name: mended-b}]`
	const oneRole = `[{group: rbac.authorization.k8s.io, version: v1, kind: ClusterRole, name: mended-b}]`
	mine := standing{manifest: clusterOverride("mended-mine", twoRoles)}.create(t)
	theirs := parse(t, clusterOverride("mended-theirs", twoRoles))
	resume := suspend(t, "hub-agent-clusterresourceoverrides")
	awaitAdmission(t, func(ctx context.Context) error {
		_, err := admin.try(ctx, theirs)
		return err
	})
	t.Cleanup(func() { remove(t, theirs) })
	resume()
	err := awaitRefusal(t, func(ctx context.Context) error {
		_, err := admin.try(ctx, parse(t, clusterOverride("mended-third", oneRole)), metav1.DryRunAll)
		return err
	})
	requireRefusal(t, err, "the resource has been selected by both mended-third and mended-")

	labelled := map[string]any{"metadata": map[string]any{"labels": map[string]any{"a": "b"}}}
	assert.NoError(t, admin.update(t.Context(), mine, labelled, metav1.DryRunAll), "a label")
	fewer := parsePatch(t, `{spec: {clusterResourceSelectors: `+oneRole+`}}`)
	assert.NoError(t, admin.update(t.Context(), mine, fewer, metav1.DryRunAll), "one conflict less")
}

// suspend takes a policy out of force until the function it returns is called.
func suspend(t *testing.T, name string) (resume func()) {
	t.Helper()
	binding := parse(t, "{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicyBinding}")
	bindings, err := admin.resource(binding)
	require.NoError(t, err)
	stored, err := bindings.Get(t.Context(), name, metav1.GetOptions{})
	require.NoError(t, err)
	require.NoError(t, bindings.Delete(t.Context(), name, metav1.DeleteOptions{}))
	return func() {
		stored.SetResourceVersion("")
		stored.SetUID("")
		_, err := bindings.Create(t.Context(), stored, metav1.CreateOptions{})
		require.NoError(t, err)
	}
}
