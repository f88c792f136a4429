package apis_test

import (
	"cmp"
	"html"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// readReference returns the pages of the reference of the API as a reader sees them, by name.
func readReference(t *testing.T) map[string]string {
	t.Helper()
	paths, err := filepath.Glob("../deploy/docs/api/*.md")
	require.NoError(t, err)
	pages := map[string]string{}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		pages[filepath.Base(path)] = html.UnescapeString(strings.ReplaceAll(string(text), `\`, ""))
	}
	return pages
}

// Every message that a rule may answer with has to be found by users who search the reference for it.
func TestTheReferenceHasEveryKindAndRule(t *testing.T) {
	pages := readReference(t)
	rules := 0
	reference := strings.Join(slices.Collect(maps.Values(pages)), "\n")
	has := func(text string) { assert.True(t, strings.Contains(reference, text), text) }
	var check func(schema *apiextensionsv1.JSONSchemaProps)
	check = func(schema *apiextensionsv1.JSONSchemaProps) {
		for _, rule := range schema.XValidations {
			rules++
			said := strings.Trim(rule.MessageExpression, `"`)
			if rule.Message != "" {
				said = rule.Message
			}
			for _, part := range regexp.MustCompile(`" \+ .*? \+ "`).Split(said, -1) {
				has(part)
			}
		}
		if schema.Items != nil {
			check(schema.Items.Schema)
		}
		if schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil {
			check(schema.AdditionalProperties.Schema)
		}
		for name, property := range schema.Properties {
			if !slices.Contains([]string{"apiVersion", "kind", "metadata"}, name) {
				has("| `" + name + "` |")
			}
			check(&property)
		}
	}
	for _, crd := range readCRDs(t) {
		assert.Contains(t, pages[strings.ToLower(crd.Spec.Names.Kind)+".md"], "# "+crd.Spec.Names.Kind+"\n")
		has("`kubectl get`: `" + crd.Spec.Names.Plural + "`")
		var versions []string
		for _, version := range crd.Spec.Versions {
			versions = append(versions, "`"+crd.Spec.Group+"/"+version.Name+"`")
		}
		has("- apiVersion: " + strings.Join(versions, ", ") + "\n")
		check(crd.Spec.Versions[0].Schema.OpenAPIV3Schema)
	}
	assert.Positive(t, rules)
}

func TestLinksOfTheReferenceLead(t *testing.T) {
	pages := readReference(t)
	found := 0
	for name, page := range pages {
		for _, link := range regexp.MustCompile(`\]\(([a-z]+\.md)?(?:#(.*?))?\)`).FindAllStringSubmatch(page, -1) {
			found++
			target := pages[cmp.Or(link[1], name)]
			assert.NotEmpty(t, target, link[0])
			assert.Regexp(t, `(?im)^#+ `+link[2], target, link[0])
		}
	}
	assert.Greater(t, found, 100)
}
