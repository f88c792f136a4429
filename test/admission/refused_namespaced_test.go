//go:build integration

package admission

// The namespaced twins of what never changes.

var namespacedSnapshotTable = table{
	base: `
apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: ResourceSnapshot
metadata: {name: refused, namespace: default}
spec: {selectedResources: [{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: web}, data: {a: b}}]}
`,
	updated: map[string]change{
		"a snapshot of a namespace stays": {
			edit:    spec("selectedResources: [{apiVersion: v1, kind: ConfigMap, metadata: {name: b, namespace: web}}]"),
			fine:    "metadata: {labels: {a: b}}",
			message: immutable},
	},
}

var namespacedPolicyTable = table{
	base: `
apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: SchedulingPolicySnapshot
metadata: {name: refused, namespace: default}
spec: {policyHash: aGFzaA==, policy: {placementType: PickN, numberOfClusters: 1}}
`,
	updated: map[string]change{
		"a policy of a namespace stays": {
			edit: spec("policy: {numberOfClusters: 2}"), fine: "metadata: {labels: {a: b}}", message: immutable},
	},
}

var namespacedOverrideSnapshotTable = table{
	base: `
apiVersion: placement.kubernetes-fleet.io/v1
kind: ResourceOverrideSnapshot
metadata: {name: refused, namespace: default}
spec:
  overrideHash: aGFzaA==
  overrideSpec:
    resourceSelectors: [{group: apps, version: v1, kind: Deployment, name: web}]
    policy: {overrideRules: [{clusterSelector: {clusterSelectorTerms: []}, overrideType: Delete}]}
`,
	updated: map[string]change{
		"a snapshot of a ResourceOverride stays": {
			edit: spec("overrideHash: b3RoZXI="), fine: "metadata: {labels: {a: b}}", message: immutable},
	},
}

var namespacedApprovalTable = table{
	base: `
apiVersion: placement.kubernetes-fleet.io/v1
kind: ApprovalRequest
metadata: {name: refused, namespace: default}
spec: {parentStageRollout: run, targetStage: canary}
`,
	created: map[string]refusal{
		"a request of a namespace names its stage": {edit: spec("targetStage: null"), message: "spec.targetStage: Required value"},
	},
	updated: map[string]change{
		"a request of a namespace keeps its stage": {
			edit: spec("targetStage: production"), fine: "metadata: {labels: {a: b}}", message: immutable},
	},
}
