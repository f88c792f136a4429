//go:build integration

package admission

import (
	"context"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
)

const samples = root + "/deploy/samples"

// notServed are the kinds of the samples that a hub does not serve of itself; they are only read.
var notServed = map[string]bool{
	"Application": true, "AppProject": true, // of Argo CD
	"Kustomization":      true,                                                                                               // of Flux
	"FederatedNamespace": true, "FederatedConfigMap": true, "FederatedDeployment": true, "ReplicaSchedulingPreference": true, // of KubeFed
	"PropagationPolicy": true, "OverridePolicy": true, // of Karmada
}

// patchOf has the manifest of the object that a sample patches, by the file of the patch.
var patchOf = map[string]string{
	"staged-update/5-approval.yaml": `
apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: ClusterApprovalRequest
metadata: {name: example-run-canary}
spec: {parentStageRollout: example-run, targetStage: canary}
`,
}

// sampleFiles returns the files with samples, relative to their folder.
func sampleFiles(t *testing.T) []string {
	t.Helper()
	var files []string
	err := filepath.WalkDir(samples, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".yaml" {
			return err
		}
		name, err := filepath.Rel(samples, path)
		files = append(files, name)
		return err
	})
	require.NoError(t, err)
	require.NotEmpty(t, files)
	return files
}

func TestSamplesAreStoredAsWritten(t *testing.T) {
	count := &tally{}
	for _, file := range sampleFiles(t) {
		t.Run(file, func(t *testing.T) {
			content, err := os.ReadFile(filepath.Join(samples, file))
			require.NoError(t, err)
			documents := split(t, content)
			assert.NotEmpty(t, documents, "no manifest in the file")
			for _, document := range documents {
				checkSample(t, file, document, count)
			}
		})
	}
	t.Logf("%d manifests, stored through %d versions and read back through %d", count.manifests, count.writes, count.reads)
}

// tally says how much was looked at.
type tally struct{ manifests, writes, reads int }

func checkSample(t *testing.T, file string, document *unstructured.Unstructured, count *tally) {
	t.Helper()
	count.manifests++
	if base := patchOf[file]; base != "" {
		checkPatch(t, base, document)
		return
	}
	gvk := document.GroupVersionKind()
	if notServed[gvk.Kind] {
		return
	}
	versions := versionsOf(t, gvk)
	require.Contains(t, versions, gvk.Version, "%s %s is not served", gvk, document.GetName())
	if !isOurs(gvk.Group) {
		versions = []string{gvk.Version}
	}
	if gvk.Kind == "RolloutExemption" { // its end has to be within a day, which no sample can say beforehand
		require.NoError(t, unstructured.SetNestedField(document.Object, time.Now().Add(time.Hour).UTC().Format(time.RFC3339), "spec", "expirationTime"))
	}
	ensureNamespace(t, document.GetNamespace())
	for _, version := range versions {
		checkVersion(t, inVersion(document, version), versions, count)
	}
}

// checkVersion writes a manifest, status included, and reads it back through all versions.
func checkVersion(t *testing.T, manifest *unstructured.Unstructured, versions []string, count *tally) {
	t.Helper()
	ctx := t.Context()
	what := manifest.GetKind() + " " + manifest.GetName() + " through " + manifest.GetAPIVersion()
	remove(t, manifest)
	stored, err := store(ctx, manifest)
	if !assert.NoError(t, err, what) {
		return
	}
	count.writes++
	defer remove(t, stored)
	if status, has := manifest.Object["status"]; has {
		require.True(t, hasStatus(t, manifest.GroupVersionKind()), "%s has no status", what)
		// Part of it is what only the agents write.
		assert.NoError(t, as(t, "fleet-hub-agent").updateStatus(t, stored, status), "status of %s", what)
	}
	for _, version := range versions {
		other := inVersion(manifest, version)
		resource, err := admin.resource(other)
		require.NoError(t, err)
		read, err := resource.Get(ctx, other.GetName(), metav1.GetOptions{})
		require.NoError(t, err)
		count.reads++
		assert.Empty(t, missing(withoutServerFields(other).Object, read.Object, ""), "%s, read through %s", what, version)
		if status, has := other.Object["status"]; has {
			assert.Empty(t, missing(status, read.Object["status"], "status"), "%s, read through %s", what, version)
		}
	}
}

// store writes a manifest, again while the API server still knows its namespace as the one that an earlier sample has removed.
func store(ctx context.Context, manifest *unstructured.Unstructured) (stored *unstructured.Unstructured, err error) {
	_ = wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		stored, err = admin.try(ctx, withoutServerFields(manifest))
		return !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause), nil
	})
	return stored, err
}

// checkPatch patches an object the way the sample's first line does: its status is a subresource.
func checkPatch(t *testing.T, base string, patch *unstructured.Unstructured) {
	t.Helper()
	stored := admin.create(t, base)
	resource, err := admin.resource(stored)
	require.NoError(t, err)
	text, err := json.Marshal(patch.Object)
	require.NoError(t, err)
	changed, err := resource.Patch(t.Context(), stored.GetName(), "application/merge-patch+json", text,
		metav1.PatchOptions{FieldValidation: metav1.FieldValidationStrict}, "status")
	require.NoError(t, err)
	assert.Empty(t, missing(patch.Object, changed.Object, ""))
}

func isOurs(group string) bool {
	return strings.HasSuffix(group, "kubernetes-fleet.io") || group == ownGroup
}

// inVersion returns a manifest as it is in another version of its kind.
func inVersion(manifest *unstructured.Unstructured, version string) *unstructured.Unstructured {
	changed := manifest.DeepCopy()
	gvk := changed.GroupVersionKind()
	changed.SetGroupVersionKind(gvk.GroupKind().WithVersion(version))
	return changed
}

// versionsOf returns the served versions of a kind.
func versionsOf(t *testing.T, gvk schema.GroupVersionKind) []string {
	t.Helper()
	mappings, err := admin.mapper.RESTMappings(gvk.GroupKind())
	require.NoError(t, err)
	var versions []string
	for _, mapping := range mappings {
		versions = append(versions, mapping.GroupVersionKind.Version)
	}
	return versions
}

func hasStatus(t *testing.T, gvk schema.GroupVersionKind) bool {
	t.Helper()
	list, err := admin.discovery.ServerResourcesForGroupVersion(gvk.GroupVersion().String())
	require.NoError(t, err)
	return slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool {
		return r.Kind == gvk.Kind && strings.HasSuffix(r.Name, "/status")
	})
}

// withoutServerFields leaves out what a printed object shows and nobody can set: its status, which is set by itself, and
// what only the server writes.
func withoutServerFields(manifest *unstructured.Unstructured) *unstructured.Unstructured {
	changed := manifest.DeepCopy()
	delete(changed.Object, "status")
	for _, field := range []string{
		"uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds",
		"managedFields", "selfLink",
	} {
		unstructured.RemoveNestedField(changed.Object, "metadata", field)
	}
	return changed
}

// ensureNamespace creates a namespace that a sample lives in, unless it is there.
func ensureNamespace(t *testing.T, name string) {
	t.Helper()
	if name == "" {
		return
	}
	_, err := admin.try(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name},
	}})
	if !apierrors.IsAlreadyExists(err) {
		require.NoError(t, err)
	}
}
