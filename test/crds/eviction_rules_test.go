package crds

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestRulesOfEvictions(t *testing.T) {
	spec := func(placement, cluster string) string {
		return "{placementName: " + placement + ", clusterName: " + cluster + "}"
	}
	run(t, "ClusterResourcePlacementEviction", map[string]ruleCase{
		"names a placement and a cluster": {spec: spec("test-crp", "kind-cluster-1")},
		"may stay":                        {old: spec("a", "b"), spec: spec("a", "b")},
	})
}

func TestEvictionsReportWhatIsPrinted(t *testing.T) {
	_, errs := loadKind(t, "ClusterResourcePlacementEviction").admit(t, `
apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: ClusterResourcePlacementEviction
metadata: {name: test-eviction}
spec: {placementName: test-crp, clusterName: kind-cluster-1}
status:
  conditions:
  - {type: Valid, status: "True", reason: ClusterResourcePlacementEvictionValid, message: Eviction is valid,
    lastTransitionTime: "2025-01-21T15:52:29Z", observedGeneration: 1}
  - {type: Executed, status: "False", reason: ClusterResourcePlacementEvictionNotExecuted, message: Eviction is blocked,
    lastTransitionTime: "2025-01-21T15:52:29Z", observedGeneration: 1}
`, "")
	assert.Empty(t, texts(errs))
}

func TestRulesOfDisruptionBudgets(t *testing.T) {
	cases := map[string]ruleCase{
		"may change from one limit to the other": {old: "{maxUnavailable: 1}", spec: "{minAvailable: 50%}"},
	}
	for _, field := range []string{"maxUnavailable", "minAvailable"} {
		for _, value := range []string{"0", "1", "1000", "0%", "1%", "09%", "99%", "100%"} {
			cases[field+" may be "+value] = ruleCase{spec: "{" + field + ": " + value + "}"}
		}
		for _, value := range []string{"'1'", "101%", "-1%", "1.5%", "'%'", "all", "'50 %'", "1.5", "true", "[]"} {
			cases[field+" is not "+value] = ruleCase{spec: "{" + field + ": " + value + "}", refusal: field}
		}
		cases[field+" is not negative"] = ruleCase{spec: "{" + field + ": -1}", refusal: field + " must be at least 0"}
	}
	run(t, "ClusterResourcePlacementDisruptionBudget", cases)
}

func TestABudgetNeedsASpec(t *testing.T) {
	_, errs := loadKind(t, "ClusterResourcePlacementDisruptionBudget").admit(t,
		"apiVersion: placement.kubernetes-fleet.io/v1beta1\nkind: ClusterResourcePlacementDisruptionBudget\nmetadata: {name: test-crp}\n", "")
	assert.Contains(t, texts(errs), "spec: Required value")
}
