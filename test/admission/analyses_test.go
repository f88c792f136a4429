//go:build integration

package admission

import (
	"fmt"
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
	err = changes(analysis, "", "allowed", `{spec: {metrics: [{name: up, prometheus: {sourceRef: {name: central}, query: up}, success: result > 0.0}]}}`)(t, author)
	assert.NoError(t, err, "what looks at no object is an author's")
}
