package gitops

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// A placement that leaves Git takes what it has placed off every member, so that no sample removes one by itself: neither says so by
// leaving the field out, whose default may change.
func TestNoSamplePrunes(t *testing.T) {
	for file, fields := range map[string][]string{
		"argocd-application.yaml": {"spec", "syncPolicy", "automated", "prune"},
		"flux-kustomization.yaml": {"spec", "prune"},
	} {
		prune, is, err := unstructured.NestedBool(read(t, filepath.Join(samples, file)).Object, fields...)
		require.NoError(t, err, file)
		assert.True(t, is, file)
		assert.False(t, prune, file)
	}
}

// Self-heal writes a run as Git has it, but for what it is told to ignore; which holds for writes only with this sync option.
func TestSelfHealDoesNotResumeWhatAPersonHasStopped(t *testing.T) {
	options, _, err := unstructured.NestedStringSlice(read(t, filepath.Join(samples, "argocd-application.yaml")).Object, "spec", "syncPolicy", "syncOptions")
	require.NoError(t, err)
	assert.Contains(t, options, "RespectIgnoreDifferences=true")
	data, _, err := unstructured.NestedStringMap(read(t, filepath.Join(samples, "argocd-cm.yaml")).Object, "data")
	require.NoError(t, err)
	for _, kind := range []string{"ClusterStagedUpdateRun", "StagedUpdateRun"} {
		var ignored struct {
			JSONPointers []string `json:"jsonPointers"`
		}
		require.NoError(t, yaml.UnmarshalStrict([]byte(data["resource.customizations.ignoreDifferences.placement.kubernetes-fleet.io_"+kind]), &ignored), kind)
		inGit := map[string]any{"placementName": "web", "stagedRolloutStrategyName": "careful", "state": "Run"}
		onHub := map[string]any{"placementName": "web", "stagedRolloutStrategyName": "careful", "state": "Stop",
			"clusterActions": []any{map[string]any{"clusterName": "member-1", "action": "Skip"}}}
		for _, run := range []map[string]any{inGit, onHub} {
			for _, pointer := range ignored.JSONPointers {
				unstructured.RemoveNestedField(map[string]any{"spec": run}, strings.Split(strings.TrimPrefix(pointer, "/"), "/")...)
			}
		}
		assert.Equal(t, inGit, onHub, "%s: there is nothing that self-heal would write", kind)
	}
}
