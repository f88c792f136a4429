//go:build integration

package admission

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetflow/fleetflow/test/devfleet/controlplane"
	"github.com/fleetflow/fleetflow/test/devfleet/state"
)

// switched is the release whose policies are in force besides those of the chart as it is.
const switched = "hub-agent-switched"

// install puts the guard rails of the chart into force with some of its values replaced, as a release of its own.
func install(t *testing.T, values ...string) {
	t.Helper()
	chart := filepath.Join(t.TempDir(), switched)
	require.NoError(t, os.MkdirAll(filepath.Join(chart, "templates"), 0o700))
	source := filepath.Join(root, "deploy", "charts", "hub-agent")
	for _, pattern := range []string{"values.yaml", "templates/_*.tpl", "templates/guardrails-*.yaml"} {
		files, err := filepath.Glob(filepath.Join(source, pattern))
		require.NoError(t, err)
		require.NotEmpty(t, files)
		for _, file := range files {
			content, err := os.ReadFile(file)
			require.NoError(t, err)
			inside, err := filepath.Rel(source, file)
			require.NoError(t, err)
			replaced := strings.NewReplacer(values...).Replace(string(content))
			require.NoError(t, os.WriteFile(filepath.Join(chart, inside), []byte(replaced), 0o600))
		}
	}
	c, err := controlplane.Client(hub, state.Hub)
	require.NoError(t, err)
	require.NoError(t, controlplane.Grant(t.Context(), c, chart, "nobody"))
	t.Cleanup(func() { uninstall(t) })
}

func uninstall(t *testing.T) {
	ctx := context.WithoutCancel(t.Context())
	for _, kind := range []string{"ValidatingAdmissionPolicyBinding", "ValidatingAdmissionPolicy"} {
		resource, err := admin.resource(parse(t, "{apiVersion: admissionregistration.k8s.io/v1, kind: "+kind+"}"))
		require.NoError(t, err)
		assert.NoError(t, resource.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{
			LabelSelector: "app.kubernetes.io/instance=" + switched,
		}))
	}
	pdb := parse(t, podBudget("default"))
	awaitAdmission(t, func(ctx context.Context) error {
		_, err := admin.try(ctx, pdb, metav1.DryRunAll)
		return err
	})
}

func TestSwitchesOfTheGuardRails(t *testing.T) {
	createGuarded(t)
	install(t,
		"denyModifyMemberClusterLabels: false", "denyModifyMemberClusterLabels: true",
		"enablePdbs: true", "enablePdbs: false",
		"workloadNamespaces: []", "workloadNamespaces: [kept]",
		"allowedUsers: []", `allowedUsers: [lara, "o'hara@example.com"]`,
		"allowedGroups: []", "allowedGroups: [platform]",
	)
	relabel := changes(memberCluster, "", "guarded", `{metadata: {labels: {environment: staging}}}`)
	unlabel := changes(memberCluster, "", "guarded", `{metadata: {labels: null}}`)
	label := changes(memberCluster, "", "unmanaged", `{metadata: {labels: {another: one}}}`)
	jane := as(t, "jane", "developers")
	_ = awaitRefusal(t, func(context.Context) error { return relabel(t, jane) })
	_ = awaitRefusal(t, func(context.Context) error { return creates(podBudget("default"))(t, jane) })
	for _, allowed := range []*session{admin, as(t, "lara"), as(t, "o'hara@example.com"), as(t, "mary", "platform")} {
		assert.NoError(t, relabel(t, allowed))
		assert.NoError(t, unlabel(t, allowed))
	}
	for _, do := range []func(*testing.T, *session) error{relabel, unlabel, label} {
		assert.ErrorContains(t, do(t, jane), "the labels of a MemberCluster are not to be changed on this hub: leave them as they are, have "+
			"denyModifyMemberClusterLabels of the hub agent's chart set to false, or have an administrator")
	}
	assert.NoError(t, changes(memberCluster, "", "unmanaged", `{spec: {heartbeatPeriodSeconds: 30}}`)(t, jane), "anything else may change")
	assert.NoError(t, changes(memberCluster, "", "unmanaged", `{}`)(t, jane), "nothing has changed")
	assert.NoError(t, creates(newMember("example.com/a"))(t, jane), "labels are chosen when a member is created")

	assert.ErrorContains(t, creates(podBudget("default"))(t, admin), "PodDisruptionBudget default/p creation is disallowed in the fleet hub cluster: "+
		"put it into a ResourceEnvelope to place it on member clusters, or have enablePdbs of the hub agent's chart set to true")
	assert.NoError(t, creates(podBudget("fleet-system"))(t, admin))
	assert.NoError(t, creates(podBudget("kube-system"))(t, admin))
}
