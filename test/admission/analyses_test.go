//go:build integration

package admission

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const looksAt = `{apiVersion: fleetflow.io/v1alpha1, kind: StageAnalysis, metadata: {name: %s}, spec: {metrics: [
	{name: a, objects: {from: %s, apiVersion: %s, kind: %s, namespace: a, name: a}, %s success: "object.data.a == 'b'"}]}}`

// TestWhoWritesTemplatesReadsNoObjectsByThem has authors of templates ask for objects, which the hub agent would read with its rights.
func TestWhoWritesTemplatesReadsNoObjectsByThem(t *testing.T) {
	for user, roles := range map[string][]string{
		"an author":           {"hub-agent-analysis-author"},
		"a privileged author": {"hub-agent-analysis-author", "hub-agent-analysis-objects"},
	} {
		for _, role := range roles {
			require.NoError(t, admin.Create(t.Context(), &rbacv1.ClusterRoleBinding{
				ObjectMeta: metav1.ObjectMeta{GenerateName: "tests-analyses-"},
				RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
				Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
			}))
		}
	}
	author := granted(t, "an author")
	privileged := granted(t, "a privileged author")
	author.awaitRole(t, "hub-agent-analysis-author")
	privileged.awaitRole(t, "hub-agent-analysis-author")
	privileged.awaitRole(t, "hub-agent-analysis-objects")
	refusal := func(s *session, name, from, version, kind, more string) string {
		err := creates(fmt.Sprintf(looksAt, name, from, version, kind, more))(t, s)
		if err == nil {
			return ""
		}
		return err.Error()
	}
	assert.Contains(t, refusal(author, "refused", "Hub", "v1", "ConfigMap", ""), "it takes the verb measure-objects on stageanalyses.fleetflow.io, which the user lacks")
	assert.Contains(t, refusal(author, "refused", "Works", "v1", "ConfigMap", "perCluster: {},"), "it takes the verb measure-objects")
	assert.Empty(t, refusal(privileged, "allowed", "Works", "v1", "ConfigMap", "perCluster: {},"))
	privileged.create(t, fmt.Sprintf(looksAt, "allowed", "Hub", "v1", "ConfigMap", ""))
	assert.Contains(t, refusal(privileged, "refused", "Hub", "v1", "Secret", ""), "no metric reads a Secret")
	assert.Contains(t, refusal(privileged, "refused", "Works", "v1", "Secret", "perCluster: {},"), "no metric reads a Secret")

	const analysis = `{apiVersion: fleetflow.io/v1alpha1, kind: StageAnalysis}`
	assert.NoError(t, changes(analysis, "", "allowed", `{metadata: {labels: {team: web}}}`)(t, author), "what is read stays what it was")
	err := changes(analysis, "", "allowed", `{spec: {metrics: [{name: a, objects: {from: Hub, apiVersion: v1, kind: ConfigMap, namespace: a, name: other}, success: "true"}]}}`)(t, author)
	assert.ErrorContains(t, err, "it takes the verb measure-objects")
	err = changes(analysis, "", "allowed", `{spec: {args: [{name: a, default: b}]}}`)(t, author)
	assert.ErrorContains(t, err, "it takes the verb measure-objects", "arguments say what is looked at, too")
	err = changes(analysis, "", "allowed", `{spec: {metrics: [{name: smoke, job: {namespace: jobs, fromCronJob: smoke}}]}}`)(t, author)
	assert.NoError(t, err, "what looks at no object is an author's")
}

// TestWhoWritesTemplatesUsesNoSourceByThem has authors of templates name sources, which the hub agent would ask with their credentials.
func TestWhoWritesTemplatesUsesNoSourceByThem(t *testing.T) {
	const some = "uses-ours"
	require.NoError(t, admin.Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: some}, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{"fleetflow.io"}, Resources: []string{"metricsources"}, ResourceNames: []string{"ours", "hook"}, Verbs: []string{"use"},
	}}}))
	authors := map[string]*session{}
	for user, more := range map[string]string{"nobody's": "", "ours'": some, "everybody's": "hub-agent-analysis-sources"} {
		authors[user] = granted(t, user)
		for _, role := range []string{"hub-agent-analysis-author", more} {
			if role == "" {
				continue
			}
			require.NoError(t, admin.Create(t.Context(), &rbacv1.ClusterRoleBinding{
				ObjectMeta: metav1.ObjectMeta{GenerateName: "tests-sources-"},
				RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
				Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
			}))
			authors[user].awaitRole(t, role)
		}
	}
	metric := func(name, source string) string {
		return `{name: ` + name + `, prometheus: {sourceRef: {name: ` + source + `}, query: up}, success: result > 0.0}`
	}
	const hook = `{name: hook, webhook: {sourceRef: {name: hook}}}`
	template := func(name string, metrics ...string) string {
		return `{apiVersion: fleetflow.io/v1alpha1, kind: StageAnalysis, metadata: {name: ` + name + `}, spec: {metrics: [` + strings.Join(metrics, ", ") + `]}}`
	}
	err := creates(template("refused", metric("a", "ours"), hook))(t, authors["nobody's"])
	assert.ErrorContains(t, err, "its metrics are measured at MetricSource ours: it takes the verb use on that metricsources.fleetflow.io, which the user lacks")
	err = creates(template("refused", metric("a", "ours"), hook, metric("b", "theirs"), metric("c", "theirs")))(t, authors["ours'"])
	assert.ErrorContains(t, err, "measured at MetricSource theirs: it takes the verb use")
	authors["ours'"].create(t, template("measured", metric("a", "ours"), metric("b", "ours"), hook))
	assert.NoError(t, creates(template("measured-everywhere", metric("a", "theirs")))(t, authors["everybody's"]))

	many := make([]string, 20)
	for i := range many {
		many[i] = metric(fmt.Sprintf("a%d", i), fmt.Sprintf("theirs-%d", i))
	}
	assert.NoError(t, creates(template("many", many...))(t, authors["everybody's"]), "as many sources as a template can name are asked for")
	assert.ErrorContains(t, creates(template("refused", many...))(t, authors["ours'"]), "theirs-0: it takes the verb use")

	const analysis = `{apiVersion: fleetflow.io/v1alpha1, kind: StageAnalysis}`
	assert.NoError(t, changes(analysis, "", "measured", `{metadata: {labels: {team: web}}}`)(t, authors["nobody's"]), "what is asked stays what it was")
	err = changes(analysis, "", "measured", `{spec: {args: [{name: a, default: b}]}}`)(t, authors["nobody's"])
	assert.ErrorContains(t, err, "it takes the verb use", "arguments say what is asked, too")
	assert.NoError(t, changes(analysis, "", "measured", `{spec: {args: [{name: a, default: b}]}}`)(t, authors["ours'"]))
	err = changes(analysis, "", "measured", `{spec: {metrics: [`+metric("a", "theirs")+`]}}`)(t, authors["ours'"])
	assert.ErrorContains(t, err, "measured at MetricSource theirs: it takes the verb use")
}
