package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const crd = `---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  annotations:
    controller-gen.kubebuilder.io/version: v0.0.0
  name: things.zoo.example.com
spec:
  group: zoo.example.com
  names:
    kind: Thing
  versions:
  - name: v1beta1
    schema:
      openAPIV3Schema:
        type: object
    served: true
    storage: true
    subresources:
      status: {}
`

// inFolder writes a type with a comment above it and a CRD, and returns the folders of both.
func inFolder(t *testing.T, comment, definition string) (types, crds, file string) {
	t.Helper()
	types, crds = t.TempDir(), t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(types, "zoo", "v1beta1"), 0o755))
	source := "package v1beta1\n\n// Thing is a thing.\n" + comment + "type Thing struct{}\n"
	require.NoError(t, os.WriteFile(filepath.Join(types, "zoo", "v1beta1", "thing.go"), []byte(source), 0o600))
	file = filepath.Join(crds, "things.yaml")
	if definition != "" {
		require.NoError(t, os.WriteFile(file, []byte(definition), 0o600))
	}
	return types, crds, file
}

func TestVersionsAreCopiesOfTheStoredOne(t *testing.T) {
	types, crds, file := inFolder(t, "// +fleetflow:versions=v1,v1beta1\n", crd)
	require.NoError(t, run(types, []string{crds}))
	first, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, `---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  annotations:
    controller-gen.kubebuilder.io/version: v0.0.0
  name: things.zoo.example.com
spec:
  conversion:
    strategy: None
  group: zoo.example.com
  names:
    kind: Thing
  versions:
  - name: v1
    schema:
      openAPIV3Schema:
        type: object
    served: true
    storage: false
    subresources:
      status: {}
  - name: v1beta1
    schema:
      openAPIV3Schema:
        type: object
    served: true
    storage: true
    subresources:
      status: {}
`, string(first))
	require.NoError(t, run(types, []string{crds}))
	second, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, string(first), string(second))
}

func TestMarkersAndDefinitionsBelongTogether(t *testing.T) {
	const good = "// +fleetflow:versions=v1,v1beta1\n"
	tests := map[string]struct {
		comment, crd, want string
	}{
		"a kind without a marker is refused":             {"", crd, "say which versions zoo Thing is served in: write // +fleetflow:versions=v1,v1beta1 above its Go type"},
		"a marker without a definition is refused":       {good, "", "zoo Thing has a marker +fleetflow:versions= but no CRD"},
		"the stored version has to be served":            {"// +fleetflow:versions=v1\n", crd, "v1beta1 is the stored version and must be served"},
		"an unknown version is refused":                  {"// +fleetflow:versions=v1,v1beta1,v2\n", crd, "versions are some of v1,v1beta1,v1alpha1"},
		"versions keep the order of preference":          {"// +fleetflow:versions=v1beta1,v1\n", crd, "in this order"},
		"a definition without stored version is refused": {good, "spec: {group: zoo.example.com, names: {kind: Thing}}", "there is no version v1beta1"},
		"a file that is no YAML is refused":              {good, "\t", "decoding"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			types, crds, _ := inFolder(t, tc.comment, tc.crd)
			assert.ErrorContains(t, run(types, []string{crds}), tc.want)
		})
	}
}
