//go:build integration

package differential

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// testPairsOnceFound tries the pairs of manifests that drawn trials have found and that are told apart by no other test.
func testPairsOnceFound(t *testing.T) {
	found, err := readList("testdata/found.yaml")
	require.NoError(t, err)
	w, err := newWorker(parallel+1, cluster, nil)
	require.NoError(t, err)
	for _, pair := range found {
		t.Run(pair["name"].(string), func(t *testing.T) {
			var steps []step
			var manifests []map[string]any
			namespace, name := "", ""
			for _, item := range pair["steps"].([]any) {
				said := item.(map[string]any)
				manifest := said["manifest"].(map[string]any)
				if name == "" {
					namespace, name = w.where(manifest["kind"].(string))
				}
				put(manifest, namespace, name)
				manifests = append(manifests, manifest)
				s := step{Way: placementv1beta1.ApplyStrategyType(said["by"].(string)), When: placementv1beta1.WhenToApplyTypeAlways}
				if when, ok := said["when"].(string); ok {
					s.When = placementv1beta1.WhenToApplyType(when)
				}
				s.Restored, _ = said["restored"].(bool)
				s.Held, _ = said["held"].(bool)
				steps = append(steps, s)
			}
			judged := w.of(manifests[0]["kind"].(string)).judged
			fault, err := w.runAll(t.Context(), pair["prior"].(string), steps, manifests)
			require.NoError(t, err)
			assert.Empty(t, fault)
			assert.Greater(t, w.of(manifests[0]["kind"].(string)).judged, judged, "it is compared with what is right")
		})
	}
}
