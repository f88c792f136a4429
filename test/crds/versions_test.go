package crds

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apimachinery/pkg/util/version"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/environment"
)

// oldestHub is the oldest Kubernetes that a hub may run.
var oldestHub = version.MajorMinor(1, 30)

// compileRules compiles every rule at and below a schema as the oldest hub does, and returns how many there are and what
// that hub says about those it does not understand.
func compileRules(t *testing.T, path string, s *schema.Structural, isRoot bool) (count int, problems []string) {
	t.Helper()
	results, err := cel.Compile(s, model.SchemaDeclType(s, isRoot || s.XEmbeddedResource), celconfig.PerCallLimit,
		environment.MustBaseEnvSet(oldestHub), cel.NewExpressionsEnvLoader())
	require.NoError(t, err, path)
	for i, result := range results {
		if result.Error != nil {
			problems = append(problems, path+": "+s.XValidations[i].Rule+": "+result.Error.Error())
		}
		if result.MessageExpressionError != nil {
			problems = append(problems, path+": "+s.XValidations[i].MessageExpression+": "+result.MessageExpressionError.Error())
		}
	}
	count = len(results)
	below := func(path string, s *schema.Structural) {
		n, more := compileRules(t, path, s, false)
		count += n
		problems = append(problems, more...)
	}
	for name, property := range s.Properties {
		below(path+"."+name, &property)
	}
	if s.Items != nil {
		below(path+"[]", s.Items)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Structural != nil {
		below(path+"{}", s.AdditionalProperties.Structural)
	}
	return count, problems
}

func TestTheOldestHubUnderstandsEveryRule(t *testing.T) {
	total := 0
	for name := range loadCRDs(t) {
		t.Run(name, func(t *testing.T) {
			count, problems := compileRules(t, name, loadKind(t, name).structural, true)
			assert.Empty(t, problems)
			total += count
		})
	}
	assert.Positive(t, total)
}

func TestTheOldestHubRefusesNewerRules(t *testing.T) {
	tests := map[string]struct {
		rule    string
		refused bool
	}{
		"a rule it knows":                             {rule: `self.matches("^[a-z]+$")`},
		"quantities, as of 1.28":                      {rule: `isQuantity(self) && quantity(self).isGreaterThan(quantity("1"))`},
		"sets, as of 1.29":                            {rule: `sets.contains(["a", "b"], [self])`},
		"addresses, as of 1.30":                       {rule: `isIP(self)`},
		"named formats, as of 1.31":                   {rule: `!format.dns1123Label().validate(self).hasValue()`, refused: true},
		"comprehensions of two variables, as of 1.32": {rule: `["a", "b"].all(i, v, v != self)`, refused: true},
		"semantic versions, as of 1.33":               {rule: `isSemver(self)`, refused: true},
		"distinct elements, as of 1.34":               {rule: `[self, "a"].distinct().size() == 2`, refused: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := &schema.Structural{
				Generic:    schema.Generic{Type: "object"},
				Properties: map[string]schema.Structural{"list": {Generic: schema.Generic{Type: "array"}}},
			}
			item := schema.Structural{Generic: schema.Generic{Type: "string"}}
			item.XValidations = apiextensionsv1.ValidationRules{{Rule: tc.rule}}
			list := s.Properties["list"]
			list.Items = &item
			s.Properties["list"] = list
			count, problems := compileRules(t, "example", s, true)
			assert.Equal(t, 1, count)
			assert.Equal(t, tc.refused, len(problems) > 0, strings.Join(problems, "\n"))
		})
	}
}

// Members run Kubernetes 1.24 and later, where rules are an alpha feature and selectable fields do not exist.
func TestTheOldestMemberUnderstandsItsCRD(t *testing.T) {
	crd := loadCRDs(t)["AppliedWork"]
	require.NotNil(t, crd)
	assert.Empty(t, crd.Spec.SelectableFields)
	for _, version := range crd.Spec.Versions {
		assert.Empty(t, version.SelectableFields, version.Name)
	}
	count, _ := compileRules(t, "AppliedWork", loadKind(t, "AppliedWork").structural, true)
	assert.Zero(t, count)
}
