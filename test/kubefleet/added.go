package kubefleet

import (
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/fleetflow/fleetflow/apis/kubefleet"
)

// AddedFields returns the fields of a version of a kind's spec that KubeFleet's kind has not, the highest ones of those that stand in
// one another, in order. KubeFleet has to know the kind in that version.
func AddedFields(definition *apiextensionsv1.CustomResourceDefinition, version apiextensionsv1.CustomResourceDefinitionVersion) []string {
	kind := definition.Spec.Names.Kind
	var fields []string
	var walk func(path string, schema *apiextensionsv1.JSONSchemaProps)
	walk = func(path string, schema *apiextensionsv1.JSONSchemaProps) {
		for name, property := range schema.Properties {
			if at := path + "." + name; kubefleet.HasField(kind, version.Name, at) {
				walk(at, &property)
			} else {
				fields = append(fields, at)
			}
		}
		if schema.Items != nil && schema.Items.Schema != nil {
			walk(path+"[]", schema.Items.Schema)
		}
	}
	spec := version.Schema.OpenAPIV3Schema.Properties["spec"]
	walk("spec", &spec)
	slices.Sort(fields)
	return fields
}
