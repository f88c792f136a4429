//go:build integration

package admission

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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
	logDryRuns(t, "server-side dry-run of a ClusterResourcePlacement", parse(t, richPlacement))
}

// TestDryRunOfARunTakesNoTimeForWhatIsThere prints how long the door takes beside few and many runs and placements; the aim is a
// median of 2 ms on an idle machine, and the same beside many.
func TestDryRunOfARunTakesNoTimeForWhatIsThere(t *testing.T) {
	made := 0
	for _, there := range []int{5, 61} {
		for ; made < there; made++ {
			standing{manifest: clusterRun(fmt.Sprintf("dry-run-%d", made))}.create(t)
			standing{manifest: placementOf(fmt.Sprintf("name: dry-run-%d", made), "")}.create(t)
		}
		logDryRuns(t, fmt.Sprintf("server-side dry-run of a ClusterStagedUpdateRun beside %d runs and placements", there), parse(t, clusterRun("dry-run")))
	}
	policies := &admissionv1.ValidatingAdmissionPolicyList{}
	require.NoError(t, admin.List(t.Context(), policies))
	for i := range policies.Items {
		policy := &policies.Items[i]
		for _, rule := range policy.Spec.MatchConstraints.ResourceRules {
			if policy.Spec.ParamKind != nil {
				assert.NotContains(t, rule.Resources, "clusterstagedupdateruns", "%s is evaluated once for each parameter", policy.Name)
				assert.NotContains(t, rule.Resources, "stagedupdateruns", "%s is evaluated once for each parameter", policy.Name)
			}
		}
	}
}

func logDryRuns(t *testing.T, what string, object *unstructured.Unstructured) {
	t.Helper()
	took := make([]time.Duration, dryRuns)
	for i := range took {
		begin := time.Now()
		_, err := admin.try(t.Context(), object, metav1.DryRunAll)
		took[i] = time.Since(begin)
		require.NoError(t, err)
	}
	slices.Sort(took)
	t.Logf("%s, %d requests: p50 %s, p99 %s", what, dryRuns, took[dryRuns/2], took[dryRuns*99/100])
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
