package apis_test

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// fewestWords is below what a description says nothing that the name of the field does not.
const fewestWords = 3

// TestKubectlExplainReadsWell checks that every kind and field is described in whole sentences, and that the description
// of a field that takes a few values says which.
func TestKubectlExplainReadsWell(t *testing.T) {
	for _, crd := range readCRDs(t) {
		t.Run(crd.Spec.Names.Kind, func(t *testing.T) {
			root := *crd.Spec.Versions[0].Schema.OpenAPIV3Schema
			for path, problem := range explain(crd.Spec.Names.Kind, root) {
				assert.Fail(t, problem, path)
			}
		})
	}
}

// explain returns what is wrong with the descriptions at and below a field, by the path of each.
func explain(path string, field apiextensionsv1.JSONSchemaProps) map[string]string {
	problems := map[string]string{}
	if problem := describe(field); problem != "" {
		problems[path] = problem
	}
	entry, suffix := entriesOf(field)
	for name, below := range entry.Properties {
		// These three are described by Kubernetes, in every object alike.
		isMeta := !strings.Contains(path, ".") && slices.Contains([]string{"apiVersion", "kind", "metadata"}, name)
		if !isMeta {
			maps.Copy(problems, explain(path+suffix+"."+name, below))
		}
	}
	return problems
}

// entriesOf returns the schema of the entries of a list or a map, and what they add to a path. Anything else is its own.
func entriesOf(field apiextensionsv1.JSONSchemaProps) (entry apiextensionsv1.JSONSchemaProps, suffix string) {
	switch {
	case field.Items != nil && field.Items.Schema != nil:
		entry, suffix = entriesOf(*field.Items.Schema)
		return entry, "[]" + suffix
	case field.AdditionalProperties != nil && field.AdditionalProperties.Schema != nil:
		entry, suffix = entriesOf(*field.AdditionalProperties.Schema)
		return entry, "{}" + suffix
	}
	return field, ""
}

// describe returns what is wrong with the description of a field.
func describe(field apiextensionsv1.JSONSchemaProps) string {
	description := strings.TrimSpace(field.Description)
	switch {
	case len(strings.Fields(description)) < fewestWords:
		return "says too little: " + description
	case !strings.HasSuffix(description, "."):
		return "does not end in a full stop: " + description
	}
	entry, _ := entriesOf(field)
	for _, value := range entry.Enum {
		word := strings.Trim(string(value.Raw), `"`)
		if word != "" && !regexp.MustCompile(`\b`+regexp.QuoteMeta(word)+`\b`).MatchString(description) {
			return "does not mention the value " + word + ": " + description
		}
	}
	return ""
}

func TestBadDescriptionsAreFound(t *testing.T) {
	enum := []apiextensionsv1.JSON{{Raw: []byte(`"On"`)}, {Raw: []byte(`"Off"`)}}
	for name, tc := range map[string]struct {
		description, want string
	}{
		"all values in a sentence": {"Switch is On or Off.", ""},
		"no description":           {"", "says too little"},
		"only the name":            {"The switch.", "says too little"},
		"half a sentence":          {"Switch is On or Off", "does not end in a full stop"},
		"a value is missing":       {"Switch is On or not.", "does not mention the value Off"},
		"a longer word":            {"Switch is On or Office.", "does not mention the value Off"},
	} {
		t.Run(name, func(t *testing.T) {
			list := apiextensionsv1.JSONSchemaProps{
				Description: tc.description,
				Items:       &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &apiextensionsv1.JSONSchemaProps{Enum: enum}},
			}
			root := apiextensionsv1.JSONSchemaProps{
				Description: "Thing is a thing.", Properties: map[string]apiextensionsv1.JSONSchemaProps{"switches": list, "kind": {}},
			}
			problems := explain("Thing", root)
			if tc.want == "" {
				assert.Empty(t, problems)
				return
			}
			assert.Len(t, problems, 1)
			assert.Contains(t, problems["Thing.switches"], tc.want)
		})
	}
}
