package charts

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"

	celgo "github.com/google/cel-go/cel"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/version"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/cel/environment"
)

var (
	// oldestHub is the oldest Kubernetes that a hub may run. It has validating policies.
	oldestHub = version.MajorMinor(1, 30)
	// oldestMutating is the oldest Kubernetes that serves mutating policies as v1; the chart leaves them out before.
	oldestMutating = version.MajorMinor(1, 36)
)

// expression is one expression of a policy.
type expression struct {
	name, text string
	returns    *celgo.Type
}

func (e expression) GetName() string            { return e.name }
func (e expression) GetExpression() string      { return e.text }
func (e expression) ReturnTypes() []*celgo.Type { return []*celgo.Type{e.returns} }

// compiler compiles the expressions of one policy as an API server of some version does.
type compiler struct {
	*plugincel.CompositedCompiler
	has      plugincel.OptionalVariableDeclarations
	problems []string
}

func newCompiler(t *testing.T, of *version.Version, has plugincel.OptionalVariableDeclarations) *compiler {
	t.Helper()
	composed, err := plugincel.NewCompositedCompiler(environment.MustBaseEnvSet(of))
	require.NoError(t, err)
	return &compiler{CompositedCompiler: composed, has: has}
}

func (c *compiler) compile(where, text string, returns *celgo.Type) {
	result := c.CompileCELExpression(expression{text: text, returns: returns}, c.has, environment.NewExpressions)
	c.note(where, text, result)
}

func (c *compiler) note(where, text string, result plugincel.CompilationResult) {
	if result.Error != nil {
		c.problems = append(c.problems, fmt.Sprintf("%s: %s: %s", where, text, result.Error))
	}
}

// start compiles what comes first in every policy: variables, which the other expressions use, and conditions.
func (c *compiler) start(variables []admissionv1.Variable, conditions []admissionv1.MatchCondition) {
	for _, variable := range variables {
		named := expression{name: variable.Name, text: variable.Expression, returns: celgo.AnyType}
		c.note("variable "+variable.Name, variable.Expression, c.CompileAndStoreVariable(named, c.has, environment.NewExpressions))
	}
	for _, condition := range conditions {
		c.compile("condition "+condition.Name, condition.Expression, celgo.BoolType)
	}
}

// problemsOf returns what an API server of a version does not understand of a policy, and whether it is one.
func problemsOf(t *testing.T, object runtime.Object) (problems []string, isPolicy bool) {
	t.Helper()
	switch policy := object.(type) {
	case *admissionv1.ValidatingAdmissionPolicy:
		return problemsOfValidating(t, policy), true
	case *admissionv1.MutatingAdmissionPolicy:
		has := plugincel.OptionalVariableDeclarations{HasParams: policy.Spec.ParamKind != nil, HasAuthorizer: true, HasPatchTypes: true}
		c := newCompiler(t, oldestMutating, has)
		c.start(policy.Spec.Variables, policy.Spec.MatchConditions)
		for _, mutation := range policy.Spec.Mutations {
			if mutation.JSONPatch != nil {
				c.compile("patch", mutation.JSONPatch.Expression, celgo.AnyType)
			}
			if mutation.ApplyConfiguration != nil {
				c.compile("configuration", mutation.ApplyConfiguration.Expression, celgo.AnyType)
			}
		}
		return c.problems, true
	}
	return nil, false
}

func problemsOfValidating(t *testing.T, policy *admissionv1.ValidatingAdmissionPolicy) []string {
	t.Helper()
	hasParams := policy.Spec.ParamKind != nil
	c := newCompiler(t, oldestHub, plugincel.OptionalVariableDeclarations{HasParams: hasParams, HasAuthorizer: true})
	c.start(policy.Spec.Variables, policy.Spec.MatchConditions)
	for _, validation := range policy.Spec.Validations {
		c.compile("validation", validation.Expression, celgo.BoolType)
	}
	for _, annotation := range policy.Spec.AuditAnnotations {
		c.compile("annotation "+annotation.Key, annotation.ValueExpression, celgo.StringType)
	}
	c.has.HasAuthorizer = false // messages may not ask it
	for _, validation := range policy.Spec.Validations {
		if validation.MessageExpression != "" {
			c.compile("message", validation.MessageExpression, celgo.StringType)
		}
	}
	return c.problems
}

func TestTheOldestHubUnderstandsEveryPolicy(t *testing.T) {
	rendered, err := render(t, "hub-agent", required()["hub-agent"])
	require.NoError(t, err)
	policies := 0
	for _, object := range objects(t, rendered) {
		problems, isPolicy := problemsOf(t, object)
		assert.Empty(t, problems)
		if isPolicy {
			policies++
		}
	}
	assert.Positive(t, policies)
}

func TestTheOldestHubRefusesNewerExpressions(t *testing.T) {
	const known, newer = `request.operation == "CREATE"`, `!format.dns1123Label().validate(request.name).hasValue()`
	spec := func(change func(*admissionv1.ValidatingAdmissionPolicySpec)) *admissionv1.ValidatingAdmissionPolicy {
		policy := &admissionv1.ValidatingAdmissionPolicy{Spec: admissionv1.ValidatingAdmissionPolicySpec{
			Variables:   []admissionv1.Variable{{Name: "creates", Expression: known}},
			Validations: []admissionv1.Validation{{Expression: "variables.creates"}},
		}}
		change(&policy.Spec)
		return policy
	}
	tests := map[string]struct {
		change  func(*admissionv1.ValidatingAdmissionPolicySpec)
		refused string
	}{
		"what it knows": {change: func(*admissionv1.ValidatingAdmissionPolicySpec) {}},
		"a newer variable": {func(s *admissionv1.ValidatingAdmissionPolicySpec) { s.Variables[0].Expression = newer },
			"variable creates"},
		"a newer condition": {func(s *admissionv1.ValidatingAdmissionPolicySpec) {
			s.MatchConditions = []admissionv1.MatchCondition{{Name: "named", Expression: newer}}
		}, "condition named"},
		"a newer validation": {func(s *admissionv1.ValidatingAdmissionPolicySpec) { s.Validations[0].Expression = newer },
			"validation"},
		"a message that asks the authorizer": {func(s *admissionv1.ValidatingAdmissionPolicySpec) {
			s.Validations[0].MessageExpression = `string(authorizer.group("").resource("pods").check("get").allowed())`
		}, "message"},
		"an annotation that is no text": {func(s *admissionv1.ValidatingAdmissionPolicySpec) {
			s.AuditAnnotations = []admissionv1.AuditAnnotation{{Key: "why", ValueExpression: known}}
		}, "annotation why"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			problems, isPolicy := problemsOf(t, spec(tc.change))
			assert.True(t, isPolicy)
			if tc.refused == "" {
				assert.Empty(t, problems)
				return
			}
			require.NotEmpty(t, problems)
			assert.Contains(t, problems[0], tc.refused)
		})
	}
}

func TestApprovalsWithoutANameAreTakenOnOlderHubsOnly(t *testing.T) {
	older := common.DefaultCapabilities.Copy()
	older.APIVersions = append(slices.Clone(older.APIVersions), "admissionregistration.k8s.io/v1/ValidatingAdmissionPolicy")
	for sentence, test := range map[string]struct {
		hub   *common.Capabilities
		value string
		taken bool
	}{
		"an older hub":                  {older, "Allow", true},
		"an older hub that denies":      {older, "Deny", false},
		"a hub that notes who approves": {everything(), "Allow", false},
	} {
		t.Run(sentence, func(t *testing.T) {
			loaded, err := loader.Load(path.Join(root, "deploy", "charts", "hub-agent"))
			require.NoError(t, err)
			given := required()["hub-agent"]
			given["approvals"] = map[string]any{"unverified": test.value}
			all, err := util.ToRenderValues(loaded, given, common.ReleaseOptions{Name: release, Namespace: namespace, IsInstall: true, Revision: 1}, test.hub)
			require.NoError(t, err)
			strict := engine.Engine{Strict: true}
			rendered, err := strict.Render(loaded, all)
			require.NoError(t, err)
			policy := named[*admissionv1.ValidatingAdmissionPolicy](t, objects(t, rendered), release+"-clusterapprovalrequests")
			problems, _ := problemsOf(t, policy)
			assert.Empty(t, problems)
			last := policy.Spec.Validations[len(policy.Spec.Validations)-1]
			assert.Equal(t, test.taken, strings.Contains(last.Expression, "variables.record.size() == 0 ||"))
		})
	}
}
