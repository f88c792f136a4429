//go:build integration

package admission

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetflow/fleetflow/test/devfleet/state"
	"github.com/fleetflow/fleetflow/test/devfleet/supervisor"
)

// encryptAtRest has the hub's API server encrypt by the sample of the chart, with a key of its own.
func encryptAtRest(fleet *state.Fleet, specs []supervisor.Spec) error {
	sample, err := os.ReadFile(filepath.Join(root, "deploy", "charts", "hub-agent", "examples", "encryption-configuration.yaml"))
	if err != nil {
		return fmt.Errorf("reading the sample: %w", err)
	}
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails
	configured := strings.Replace(string(sample), "REPLACE_WITH_32_BYTES_IN_BASE64", base64.StdEncoding.EncodeToString(key), 1)
	file := fleet.Path(state.Hub, "encryption-configuration.yaml")
	if err := os.WriteFile(file, []byte(configured), 0o600); err != nil {
		return fmt.Errorf("writing the configuration: %w", err)
	}
	for i := range specs {
		if specs[i].Name == apiServer {
			specs[i].Command = append(specs[i].Command, "--encryption-provider-config="+file)
		}
	}
	return nil
}

// storedBytes tells whether a text is anywhere in the files of the hub's etcd.
func storedBytes(t *testing.T, text string) bool {
	t.Helper()
	found := false
	err := filepath.WalkDir(hub.Path(state.Hub, "etcd"), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || found {
			return err
		}
		content, err := os.ReadFile(path)
		found = bytes.Contains(content, []byte(text))
		return err
	})
	require.NoError(t, err)
	return found
}

func TestWhatIsPlacedIsEncryptedAtRest(t *testing.T) {
	const value = "the-launch-code-is-4711"
	encoded := base64.StdEncoding.EncodeToString([]byte(value))
	secret := `{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: web}, data: {code: ` + encoded + `}}`
	for _, manifest := range []string{
		`{apiVersion: placement.kubernetes-fleet.io/v1beta1, kind: ClusterResourceSnapshot, metadata: {name: encrypted-0-snapshot}, spec: {selectedResources: [` + secret + `]}}`,
		`{apiVersion: placement.kubernetes-fleet.io/v1beta1, kind: Work, metadata: {name: encrypted, namespace: default}, spec: {workload: {manifests: [` + secret + `]}}}`,
		`{apiVersion: placement.kubernetes-fleet.io/v1beta1, kind: ResourceEnvelope, metadata: {name: encrypted, namespace: default}, data: {s.yaml: ` + strings.Replace(secret, "namespace: web", "namespace: default", 1) + `}}`,
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: encrypted, namespace: default}, data: {code: ` + encoded + `}}`,
		`{apiVersion: v1, kind: Secret, metadata: {name: encrypted, namespace: default}, data: {code: ` + encoded + `}}`,
	} {
		admin.createObject(t, parse(t, manifest))
		assert.False(t, storedBytes(t, encoded) || storedBytes(t, value), "%s", manifest)
	}
	// What the configuration does not name is found where it is looked for.
	admin.createObject(t, parse(t, `{apiVersion: v1, kind: ServiceAccount, metadata: {name: not-encrypted, namespace: default, annotations: {code: `+encoded+`}}}`))
	assert.True(t, storedBytes(t, encoded))

	resource, err := admin.resource(parse(t, "{apiVersion: placement.kubernetes-fleet.io/v1beta1, kind: ClusterResourceSnapshot}"))
	require.NoError(t, err)
	read, err := resource.Get(t.Context(), "encrypted-0-snapshot", metav1.GetOptions{})
	require.NoError(t, err)
	content, err := read.MarshalJSON()
	require.NoError(t, err)
	assert.Contains(t, string(content), encoded, "who may read it reads it")
}
