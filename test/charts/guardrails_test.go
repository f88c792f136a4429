package charts

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
)

// The policies of the hub chart, without the name of the release.
var (
	guardRails  = []string{"analyses", "analysis-sources", "definitions", "envelopes", "internal-kinds", "member-accounts", "member-clusters", "member-identities", "member-replacements", "rehearsals", "reserved-namespaces", "update-run-triggers"}
	crossObject = []string{
		"clusterresourceoverrides", "disruption-budgets", "evictions", "resourceoverrides",
	}
)

// warnings are the policies that refuse nothing.
var warnings = []string{"max-unavailable", "status-reporting", "lost-member-fields", "lost-placement-fields", "lost-run-fields", "lost-strategy-fields", "override-placement", "run-states"}

// records are the policies that no switch turns off.
var records = []string{"approvalrequests", "changed-by", "clusterapprovalrequests", "creators", "exemptions", "frozen-votes", "member-reports", "origins", "own-writes", "votes"}

// policiesOf renders the hub chart with additional values and returns its validating policies that refuse something and
// have a switch, by their short names.
func policiesOf(t *testing.T, additional map[string]any) map[string]*admissionv1.ValidatingAdmissionPolicy {
	t.Helper()
	values := required()["hub-agent"]
	maps.Copy(values, additional)
	rendered, err := render(t, "hub-agent", values)
	require.NoError(t, err)
	policies := map[string]*admissionv1.ValidatingAdmissionPolicy{}
	bindings := map[string]*admissionv1.ValidatingAdmissionPolicyBinding{}
	for _, object := range objects(t, rendered) {
		switch object := object.(type) {
		case *admissionv1.ValidatingAdmissionPolicy:
			policies[strings.TrimPrefix(object.Name, release+"-")] = object
			problems, _ := problemsOf(t, object)
			assert.Empty(t, problems)
		case *admissionv1.ValidatingAdmissionPolicyBinding:
			bindings[strings.TrimPrefix(object.Spec.PolicyName, release+"-")] = object
		}
	}
	for name, policy := range policies {
		require.Contains(t, bindings, name)
		action := admissionv1.Deny
		if slices.Contains(warnings, name) {
			action = admissionv1.Warn
		}
		if action == admissionv1.Warn || slices.Contains(records, name) {
			delete(policies, name)
		}
		assert.Equal(t, []admissionv1.ValidationAction{action}, bindings[name].Spec.ValidationActions, name)
		assert.Equal(t, policy.Spec.ParamKind != nil, bindings[name].Spec.ParamRef != nil, name)
	}
	assert.Len(t, bindings, len(policies)+len(warnings)+len(records))
	return policies
}

func names(policies map[string]*admissionv1.ValidatingAdmissionPolicy) []string {
	return slices.Sorted(maps.Keys(policies))
}

func sorted(lists ...[]string) []string {
	all := slices.Concat(lists...)
	slices.Sort(all)
	return all
}

func TestSwitchesChooseThePolicies(t *testing.T) {
	workloads := []string{"definitions-kept", "workloads"}
	kept := []string{"definitions-kept"}
	tests := map[string]struct {
		values map[string]any
		want   []string
	}{
		"defaults":           {nil, sorted(guardRails, crossObject, workloads)},
		"no guard rails":     {map[string]any{"enableGuardRail": false}, sorted(crossObject, workloads)},
		"workloads":          {map[string]any{"enableWorkload": true}, sorted(guardRails, crossObject, kept)},
		"no budgets of pods": {map[string]any{"enablePdbs": false}, sorted(guardRails, crossObject, workloads, []string{"pod-disruption-budgets"})},
		"restricted labels":  {map[string]any{"denyModifyMemberClusterLabels": true}, sorted(guardRails, crossObject, workloads)},
		"named users":        {map[string]any{"guardRail": map[string]any{"allowedUsers": []any{"o'hara", `a"b\c`}, "allowedGroups": []any{"<g>"}}}, sorted(guardRails, crossObject, workloads)},
		"no cross-object checks": {
			map[string]any{"crossObjectChecks": map[string]any{"overrides": false, "placements": false}}, sorted(guardRails, workloads),
		},
		"no checks of placements": {
			map[string]any{"crossObjectChecks": map[string]any{"placements": false}},
			sorted(guardRails, workloads, []string{"clusterresourceoverrides", "resourceoverrides"}),
		},
		"nothing at all": {map[string]any{
			"enableGuardRail": false, "enableWorkload": true, "keepDefinitions": false,
			"crossObjectChecks": map[string]any{"overrides": false, "placements": false},
		}, nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, tt.want, names(policiesOf(t, tt.values)))
		})
	}
}

func TestGuardRailsFailClosedAndChecksFailOpen(t *testing.T) {
	for name, policy := range policiesOf(t, nil) {
		want := admissionv1.Fail
		if slices.Contains(crossObject, name) {
			want = admissionv1.Ignore
		}
		assert.Equal(t, want, *policy.Spec.FailurePolicy, name)
	}
}

// condition returns an expression by which a policy is left out of a request.
func condition(t *testing.T, policy *admissionv1.ValidatingAdmissionPolicy, name string) string {
	t.Helper()
	i := slices.IndexFunc(policy.Spec.MatchConditions, func(c admissionv1.MatchCondition) bool { return c.Name == name })
	require.GreaterOrEqual(t, i, 0, "%s has no condition %s", policy.Name, name)
	return policy.Spec.MatchConditions[i].Expression
}

func TestNamedUsersAndGroupsPassTheGuardRails(t *testing.T) {
	policies := policiesOf(t, map[string]any{"guardRail": map[string]any{
		"allowedUsers": []any{"jane@example.com"}, "allowedGroups": []any{"platform"},
	}})
	for _, name := range guardRails {
		if slices.Contains([]string{"member-identities", "member-accounts", "member-replacements"}, name) {
			continue // only the verbs join and replace let pass
		}
		senders := condition(t, policies[name], "sender-does-not-pass")
		for _, part := range []string{
			`username == "system:serviceaccount:fleet-system:agent"`, `username == "jane@example.com"`, `g == "platform"`,
			`"system:masters"`, `g == "system:serviceaccounts:fleet-system"`,
		} {
			assert.Contains(t, senders, part, name)
		}
	}
}

func TestMemberClusterLabelsAreRestrictedOnRequest(t *testing.T) {
	free := policiesOf(t, nil)["member-clusters"]
	restricted := policiesOf(t, map[string]any{"denyModifyMemberClusterLabels": true})["member-clusters"]
	require.Len(t, restricted.Spec.Validations, len(free.Spec.Validations)+1)
	assert.Contains(t, restricted.Spec.Validations[len(free.Spec.Validations)].Expression, "metadata.labels")
}

func TestPodsRunWhereRolloutsNeedThem(t *testing.T) {
	tests := map[string]struct {
		values map[string]any
		want   string
	}{
		"Temporal elsewhere":                 {nil, `["fleet-system"]`},
		"Temporal in a namespace of the hub": {map[string]any{"temporal": map[string]any{"address": "frontend.temporal:7233"}}, `["fleet-system", "temporal"]`},
		"Temporal by the long name":          {map[string]any{"temporal": map[string]any{"address": "frontend.temporal.svc.cluster.local:7233"}}, `["fleet-system", "temporal"]`},
		"Temporal by its address":            {map[string]any{"temporal": map[string]any{"address": "10.1.2.3:7233"}}, `["fleet-system"]`},
		"Temporal in the agent's namespace":  {map[string]any{"temporal": map[string]any{"address": "frontend:7233"}}, `["fleet-system"]`},
		"other namespaces with pods":         {map[string]any{"workloadNamespaces": []any{"argocd", "cert-manager"}}, `["fleet-system", "argocd", "cert-manager"]`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			additional := map[string]any{"enablePdbs": false}
			maps.Copy(additional, tt.values)
			policies := policiesOf(t, additional)
			for _, policy := range []string{"workloads", "pod-disruption-budgets"} {
				assert.Contains(t, condition(t, policies[policy], "may-not-run-here"), "in "+tt.want+")")
			}
		})
	}
}
