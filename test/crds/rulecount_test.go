package crds

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
)

// countRules counts the CEL rules of a schema, each once however many values it is asked of.
func countRules(s *schema.Structural) int {
	n := len(s.XValidations)
	for name := range s.Properties {
		property := s.Properties[name]
		n += countRules(&property)
	}
	if s.Items != nil {
		n += countRules(s.Items)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Structural != nil {
		n += countRules(s.AdditionalProperties.Structural)
	}
	return n
}

// Every update of a cluster writes these kinds four times, and the API server asks every rule at each write.
func TestKindsThatAreWrittenForEachClusterHaveFewRules(t *testing.T) {
	for name, most := range map[string]int{"ClusterResourceBinding": 1, "ResourceBinding": 1, "Work": 2, "InternalMemberCluster": 0} {
		t.Run(name, func(t *testing.T) { assert.LessOrEqual(t, countRules(loadKind(t, name).structural), most) })
	}
	assert.Greater(t, countRules(loadKind(t, "ClusterResourcePlacement").structural), 100, "rules are found")
}
