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
    versions: v1,v1beta1
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

// inFolder writes a CRD into a folder of its own.
func inFolder(t *testing.T, definition string) (folder, file string) {
	t.Helper()
	folder = t.TempDir()
	file = filepath.Join(folder, "zoo.kubernetes-fleet.io_things.yaml")
	require.NoError(t, os.WriteFile(file, []byte(definition), 0o600))
	return folder, file
}

func TestVersionsAreCopiesOfTheStoredOne(t *testing.T) {
	folder, file := inFolder(t, crd)
	require.NoError(t, run([]string{folder}))
	text, err := os.ReadFile(file)
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
    schema: &schema
      openAPIV3Schema:
        type: object
    served: true
    storage: false
    subresources:
      status: {}
  - name: v1beta1
    schema: *schema
    served: true
    storage: true
    subresources:
      status: {}
`, string(text))
}

func TestDefinitionsSayTheirVersions(t *testing.T) {
	tests := map[string]struct {
		crd, want string
	}{
		"a kind without a marker is refused":                    {"kind: CustomResourceDefinition", `write // +kubebuilder:metadata:annotations="versions=v1,v1beta1" above its Go type`},
		"a definition without version is refused":               {"metadata: {annotations: {versions: v1beta1}}", "there are 0 versions, not only the one that is stored"},
		"a definition that has its versions already is refused": {"metadata: {annotations: {versions: v1beta1}}\nspec: {versions: [{}, {}]}", "there are 2 versions"},
		"a file that is no YAML is refused":                     {"\t", "decoding"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			folder, _ := inFolder(t, tc.crd)
			assert.ErrorContains(t, run([]string{folder}), tc.want)
		})
	}
}

func TestDescriptionsOfAFrozenStrategyAreShort(t *testing.T) {
	for sentence, test := range map[string]struct {
		schema map[string]any
		want   string
	}{
		"one sentence stays":              {map[string]any{"description": "A says this."}, "A says this."},
		"of more, the first":              {map[string]any{"description": "A says this. It says\nmore."}, "A says this."},
		"whose addition it is":            {map[string]any{"description": "A says this. An addition of fleetflow."}, "A says this. An addition of fleetflow."},
		"values that are named":           {map[string]any{"description": "A is X or Y. X is good.", "enum": []any{"X", "Y"}}, "A is X or Y."},
		"values that are not":             {map[string]any{"description": "A says what. X is good. Y is bad.", "enum": []any{"X", "Y"}}, "A says what. One of X, Y."},
		"values of the entries of a list": {map[string]any{"description": "A has some. X and Y.", "items": map[string]any{"enum": []any{"X", "Y"}}}, "A has some. One of X, Y."},
	} {
		shorten(test.schema)
		assert.Equal(t, test.want, test.schema["description"], sentence)
	}
}

func TestConditionsOfARunAreDescribedInASentence(t *testing.T) {
	condition := map[string]any{
		"description": "Condition contains details for one aspect of the current state of this API Resource.",
		"properties":  map[string]any{"reason": map[string]any{"description": "Reason says why. It is an identifier."}},
	}
	other := map[string]any{"description": "Others stay. All of them."}
	shortenConditions(map[string]any{"properties": map[string]any{"conditions": map[string]any{"items": condition}, "other": other}})
	assert.Equal(t, map[string]any{"description": "Reason says why."}, condition["properties"].(map[string]any)["reason"])
	assert.Equal(t, "Others stay. All of them.", other["description"])
}
