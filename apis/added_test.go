package apis_test

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/fleetflow/fleetflow/apis/kubefleet"
	recording "github.com/fleetflow/fleetflow/test/kubefleet"
)

// addedFields are the fields of specs that KubeFleet's kinds have not, the highest ones of those that stand in one another, by kind
// and version.
func addedFields(t *testing.T) map[string][]string {
	added := map[string][]string{}
	for _, definition := range readCRDs(t) {
		kind := definition.Spec.Names.Kind
		for _, version := range definition.Spec.Versions {
			if !kubefleet.KnowsSpec(kind, version.Name) {
				continue
			}
			added[kind+" "+version.Name] = recording.AddedFields(definition, version)
		}
	}
	return added
}

// statusFields are the fields of the statuses of KubeFleet's kinds, by kind and version.
func statusFields(t *testing.T) map[string]map[string]bool {
	t.Helper()
	text, err := os.ReadFile("testdata/kubefleet-status.txt")
	require.NoError(t, err)
	byKind := map[string]map[string]bool{}
	var fields map[string]bool
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if kind, isKind := strings.CutPrefix(line, "= "); isKind {
			fields = map[string]bool{}
			name, versions, _ := strings.Cut(kind, " ")
			for version := range strings.FieldsSeq(versions) {
				byKind[name+" "+version] = fields
			}
		} else if !strings.HasPrefix(line, "#") {
			fields[line] = true
		}
	}
	return byKind
}

// TestAddedFieldsSayThatTheyAre: who reads of a field learns whether KubeFleet has it, too.
func TestAddedFieldsSayThatTheyAre(t *testing.T) {
	statuses := statusFields(t)
	inAnyVersion := func(kind, path string) bool { // it may have a field in a version that is not this one
		for _, version := range []string{"v1", "v1beta1", "v1alpha1"} {
			if kubefleet.HasField(kind, version, path) || statuses[kind+" "+version][path] {
				return true
			}
		}
		return strings.Contains(path, "onditions[].")
	}
	looked := 0
	for _, definition := range readCRDs(t) {
		kind := definition.Spec.Names.Kind
		for _, version := range definition.Spec.Versions {
			known := map[string]bool{"spec": kubefleet.KnowsSpec(kind, version.Name), "status": statuses[kind+" "+version.Name] != nil}
			for part, is := range known {
				if !is {
					continue
				}
				looked++
				schema := version.Schema.OpenAPIV3Schema.Properties[part]
				var walk func(path string, schema *apiextensionsv1.JSONSchemaProps)
				walk = func(path string, schema *apiextensionsv1.JSONSchemaProps) {
					for name, property := range schema.Properties {
						if at := path + "." + name; inAnyVersion(kind, at) {
							walk(at, &property)
						} else {
							assert.Contains(t, strings.Join(strings.Fields(property.Description), " "), "ddition of fleetflow", "%s %s: %s", kind, version.Name, at)
						}
					}
					if schema.Items != nil && schema.Items.Schema != nil {
						walk(path+"[]", schema.Items.Schema)
					}
					if schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil {
						walk(path+"{}", schema.AdditionalProperties.Schema)
					}
				}
				walk(part, &schema)
			}
		}
	}
	assert.Greater(t, looked, 40, "specs and statuses")
}

// TestNoTermOfKubeFleetsHasAFieldOfOurs: a term that has lost its only field matches every cluster.
func TestNoTermOfKubeFleetsHasAFieldOfOurs(t *testing.T) {
	added := addedFields(t)
	assert.NotEmpty(t, added["ClusterResourcePlacement v1beta1"])
	for kind, fields := range added {
		for _, field := range fields {
			for _, selects := range []string{"clusterSelectorTerms[].", "preference.", "labelSelector.", "resourceSelectors[]."} {
				assert.NotContains(t, strings.TrimPrefix(field, "spec."), selects, kind)
			}
		}
	}
}

// TestTheGuideListsTheAddedFields: what updates by KubeFleet's clients lose is told to who has such clients.
func TestTheGuideListsTheAddedFields(t *testing.T) {
	text, err := os.ReadFile("../deploy/docs/migration.md")
	require.NoError(t, err)
	_, section, _ := strings.Cut(string(text), "## Fields that KubeFleet has not")
	_, table, _ := strings.Cut(section, "|---|---|---|")
	table, _, _ = strings.Cut(table, "\n## ")
	told := map[string]bool{}
	for _, field := range regexp.MustCompile("`(spec[^`]*)`").FindAllStringSubmatch(table, -1) {
		told[field[1]] = true
	}
	added := map[string]bool{}
	for _, fields := range addedFields(t) {
		for _, field := range fields {
			added[field] = true
		}
	}
	assert.Equal(t, slices.Sorted(maps.Keys(added)), slices.Sorted(maps.Keys(told)))
}
