//go:build integration

package admission

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// dryRuns is how many requests the median is taken of.
const dryRuns = 200

// richPlacement uses most rules of a placement.
const richPlacement = `
apiVersion: placement.kubernetes-fleet.io/v1
kind: ClusterResourcePlacement
metadata: {name: dry-run}
spec:
  resourceSelectors:
  - {group: "", version: v1, kind: Namespace, name: web}
  - {group: rbac.authorization.k8s.io, version: v1, kind: ClusterRole, labelSelector: {matchLabels: {app: web}}}
  policy:
    placementType: PickN
    numberOfClusters: 3
    affinity:
      clusterAffinity:
        requiredDuringSchedulingIgnoredDuringExecution:
          clusterSelectorTerms:
          - labelSelector: {matchLabels: {region: east}}
            propertySelector:
              matchExpressions:
              - {name: kubernetes-fleet.io/node-count, operator: Ge, values: ["5"]}
        preferredDuringSchedulingIgnoredDuringExecution:
        - weight: 20
          preference: {labelSelector: {matchLabels: {critical: "true"}}}
    topologySpreadConstraints:
    - {maxSkew: 2, topologyKey: region, whenUnsatisfiable: ScheduleAnyway}
    tolerations:
    - {key: dedicated, operator: Equal, value: web, effect: NoSchedule}
  strategy:
    type: RollingUpdate
    rollingUpdate: {maxUnavailable: 25%, maxSurge: 1}
    applyStrategy: {type: ServerSideApply, serverSideApplyConfig: {force: true}}
`

// TestDryRunOfAPlacementIsQuick prints how long the door takes; the aim is a median of 5 ms on an idle machine.
func TestDryRunOfAPlacementIsQuick(t *testing.T) {
	placement := parse(t, richPlacement)
	took := make([]time.Duration, dryRuns)
	for i := range took {
		begin := time.Now()
		_, err := admin.try(t.Context(), placement, metav1.DryRunAll)
		took[i] = time.Since(begin)
		require.NoError(t, err)
	}
	slices.Sort(took)
	t.Logf("server-side dry-run of a ClusterResourcePlacement, %d requests: p50 %s, p99 %s",
		dryRuns, took[dryRuns/2], took[dryRuns*99/100])
}

// BenchmarkDryRunOfAPlacement reports the same as ns/op.
func BenchmarkDryRunOfAPlacement(b *testing.B) {
	resource, err := admin.resource(parse(b, richPlacement))
	require.NoError(b, err)
	placement := parse(b, richPlacement)
	for b.Loop() {
		_, err := resource.Create(context.Background(), placement, strict(metav1.DryRunAll))
		require.NoError(b, err)
	}
}
