//go:build integration

package admission

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// selectable are the fields by which objects are listed, beside their name and namespace.
var selectable = map[string][]string{
	"clusterresourcebindings.placement.kubernetes-fleet.io":           {"spec.targetCluster", "spec.state"},
	"resourcebindings.placement.kubernetes-fleet.io":                  {"spec.targetCluster", "spec.state"},
	"clusterstagedupdateruns.placement.kubernetes-fleet.io":           {"spec.placementName", "spec.stagedRolloutStrategyName", "spec.state"},
	"stagedupdateruns.placement.kubernetes-fleet.io":                  {"spec.placementName", "spec.stagedRolloutStrategyName", "spec.state"},
	"clusterapprovalrequests.placement.kubernetes-fleet.io":           {"spec.parentStageRollout", "spec.targetStage"},
	"approvalrequests.placement.kubernetes-fleet.io":                  {"spec.parentStageRollout", "spec.targetStage"},
	"clusterresourceplacementevictions.placement.kubernetes-fleet.io": {"spec.placementName", "spec.clusterName"},
	"rolloutexemptions.fleetflow.io":                                  {"spec.targetRef.kind", "spec.targetRef.namespace", "spec.targetRef.name"},
	"metricsources.fleetflow.io":                                      {"spec.type"},
	"auditsinks.fleetflow.io":                                         {"spec.type"},
	"notificationchannels.fleetflow.io":                               {"spec.type"},
	"clusterstageanalysisruns.fleetflow.io":                           {"spec.runRef.name", "spec.stage"},
	"stageanalysisruns.fleetflow.io":                                  {"spec.runRef.name", "spec.stage"},
	"clusterrehearsals.fleetflow.io":                                  {"spec.placementName"},
	"auditrecords.fleetflow.io":                                       {"spec.type", "spec.placementName", "spec.updateRunName", "status.complete"},
	"rehearsals.fleetflow.io":                                         {"spec.placementName"},
}

// list returns the names of what kubectl lists by a field selector.
func list(t *testing.T, resource, selector string) []string {
	t.Helper()
	command := exec.CommandContext(t.Context(), hub.Tools["kubectl"], "get", resource, "--all-namespaces", "--field-selector", selector, "--output", "name")
	command.Env = administrator()
	out, err := command.CombinedOutput()
	require.NoError(t, err, "%s by %s: %s", resource, selector, out)
	var names []string
	for line := range strings.Lines(string(out)) {
		if _, name, named := strings.Cut(strings.TrimSpace(line), "/"); named {
			names = append(names, name)
		}
	}
	return names
}

func TestObjectsAreListedByWhatTheyAreAbout(t *testing.T) {
	for name, about := range map[string]string{
		"listed-1": "placementName: listed-web, clusterName: member-1", "listed-2": "placementName: listed-web, clusterName: member-2",
		"listed-3": "placementName: listed-api, clusterName: member-1",
	} {
		admin.create(t, "{apiVersion: placement.kubernetes-fleet.io/v1, kind: ClusterResourcePlacementEviction, metadata: {name: "+name+"}, spec: {"+about+"}}")
	}
	const evictions = "clusterresourceplacementevictions.placement.kubernetes-fleet.io"
	assert.ElementsMatch(t, []string{"listed-1", "listed-2"}, list(t, evictions, "spec.placementName=listed-web"))
	assert.Equal(t, []string{"listed-2"}, list(t, evictions, "spec.placementName=listed-web,spec.clusterName=member-2"))
	for resource, fields := range selectable {
		for _, field := range fields {
			assert.Empty(t, list(t, resource, field+"=nothing-has-this"))
		}
	}
}
