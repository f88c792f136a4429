package apis_test

import (
	"html"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// readReference returns the reference of the API as a reader sees it.
func readReference(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../deploy/api-reference.md")
	require.NoError(t, err)
	return html.UnescapeString(strings.ReplaceAll(string(text), `\`, ""))
}

// Every message that a rule may answer with has to be found by users who search the reference for it.
func TestTheReferenceHasEveryKindAndRule(t *testing.T) {
	reference, rules := readReference(t), 0
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
		has("\n### " + crd.Spec.Names.Kind + "\n")
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
	reference := readReference(t)
	links := regexp.MustCompile(`\]\(#(.*?)\)`).FindAllStringSubmatch(reference, -1)
	assert.NotEmpty(t, links)
	for _, link := range links {
		assert.Regexp(t, `(?i)\n#+ `+link[1]+`\n`, reference)
	}
}
