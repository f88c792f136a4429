//go:build integration

package admission

var policySnapshotTable = table{
	base: `
apiVersion: placement.kubernetes-fleet.io/v1
kind: ClusterSchedulingPolicySnapshot
metadata: {name: refused}
spec: {policyHash: aGFzaA==, policy: {placementType: PickN, numberOfClusters: 1}}
`,
	created: map[string]refusal{
		"a policy snapshot has a hash": {edit: spec("policyHash: null"), message: "spec.policyHash: Required value"},
		"a hash is in base64":          {edit: spec("policyHash: '***'"), message: "spec.policyHash in body must be of type byte"},
	},
	updated: map[string]change{
		"a policy snapshot's policy stays": {edit: spec("policy: {numberOfClusters: 2}"), fine: "metadata: {labels: {a: b}}", message: immutable},
		"a policy snapshot's hash stays":   {edit: spec("policyHash: b3RoZXI="), message: immutable},
	},
	status: map[string]refusal{
		"at most 1000 clusters are listed": {
			edit:    "{observedCRPGeneration: 1, targetClusters: [" + many(1001, "{clusterName: c#, selected: true, reason: picked}") + "]}",
			fine:    "{observedCRPGeneration: 1, targetClusters: [" + many(1000, "{clusterName: c#, selected: true, reason: picked}") + "]}",
			message: "status.targetClusters: Too many: 1001: must have at most 1000 items"},
		"a cluster is picked for a reason": {
			edit:    "{observedCRPGeneration: 1, targetClusters: [{clusterName: a, selected: true}]}",
			message: "status.targetClusters[0].reason: Required value"},
	},
}

var resourceSnapshotTable = table{
	base: `
apiVersion: placement.kubernetes-fleet.io/v1
kind: ClusterResourceSnapshot
metadata: {name: refused}
spec: {selectedResources: [{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: web}, data: {a: b}}]}
`,
	created: map[string]refusal{
		"a resource has a kind": {
			edit:    spec("selectedResources: [{apiVersion: v1, metadata: {name: a}}]"),
			message: "spec.selectedResources[0].kind: Required value"},
		"a resource has a version": {
			edit:    spec("selectedResources: [{kind: ConfigMap, metadata: {name: a}}]"),
			message: "spec.selectedResources[0].apiVersion: Required value"},
		"a resource is an object": {
			edit: spec("selectedResources: [web]"), message: `spec.selectedResources[0] in body must be of type object: "string"`},
	},
	updated: map[string]change{
		"a snapshot's resource stays": {
			edit:    spec("selectedResources: [{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: web}, data: {a: c}}]"),
			fine:    "metadata: {labels: {kubernetes-fleet.io/is-latest-snapshot: 'false'}}",
			message: immutable},
		"a snapshot's resources all stay": {edit: spec("selectedResources: []"), message: immutable},
	},
}

var bindingTable = table{
	base: `
apiVersion: placement.kubernetes-fleet.io/v1
kind: ClusterResourceBinding
metadata: {name: refused}
spec:
  state: Bound
  resourceSnapshotName: web-0-snapshot
  schedulingPolicySnapshotName: web-0
  targetCluster: member-1
  clusterDecision: {clusterName: member-1, selected: true, reason: picked}
`,
	created: map[string]refusal{
		"a binding's state is one of three": {
			edit: spec("state: Unbound"), fine: spec("state: Unscheduled"),
			message: `Unsupported value: "Unbound": supported values: "Scheduled", "Bound", "Unscheduled"`},
		"a binding names its cluster":  {edit: spec("targetCluster: null"), message: "spec.targetCluster: Required value"},
		"a binding names its snapshot": {edit: spec("resourceSnapshotName: null"), message: "spec.resourceSnapshotName: Required value"},
		"a binding names its policy": {
			edit: spec("schedulingPolicySnapshotName: null"), message: "spec.schedulingPolicySnapshotName: Required value"},
		"a binding has a decision":         {edit: spec("clusterDecision: null"), message: "spec.clusterDecision: Required value"},
		"a decision has a reason":          {edit: spec("clusterDecision: {reason: null}"), message: "spec.clusterDecision.reason: Required value"},
		"a binding applies in a known way": {edit: spec("applyStrategy: {type: Replace}"), message: `Unsupported value: "Replace"`},
		"an override of a namespace has one": {
			edit: spec("resourceOverrideSnapshots: [{name: a}]"), fine: spec("resourceOverrideSnapshots: [{name: a, namespace: web}]"),
			message: "spec.resourceOverrideSnapshots[0].namespace: Required value"},
	},
	status: map[string]refusal{
		"at most 100 failed resources are listed": {
			edit: "failedPlacements: [" + many(101, failedPlacement) + "]", message: "status.failedPlacements: Too many: 101: must have at most 100 items"},
	},
}

var workTable = table{
	base: `
apiVersion: placement.kubernetes-fleet.io/v1
kind: Work
metadata: {name: refused, namespace: default}
spec: {workload: {manifests: [{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}]}}
`,
	created: map[string]refusal{
		"a manifest has a version": {
			edit: spec("workload: {manifests: [{data: {}, kind: ConfigMap}]}"), message: "spec.workload.manifests[0].apiVersion: Required value"},
		"a manifest has a kind": {
			edit: spec("workload: {manifests: [{apiVersion: v1, data: {}}]}"), message: "spec.workload.manifests[0].kind: Required value"},
		"a work reports back to somewhere": {
			edit:    spec("reportBackStrategy: {type: Mirror}"),
			message: "when reportBackStrategy.type is 'Mirror', a destination must be specified: OriginalResource or WorkAPI"},
		"a work applies in a known way": {
			edit:    spec("applyStrategy: {serverSideApplyConfig: {force: true}}"),
			message: "serverSideApplyConfig is only valid for ServerSideApply strategy type: remove it, or set type to ServerSideApply"},
	},
}

var appliedWorkTable = table{
	base: `
apiVersion: placement.kubernetes-fleet.io/v1
kind: AppliedWork
metadata: {name: refused}
spec: {workName: web, workNamespace: fleet-member-a}
`,
	created: map[string]refusal{
		"an applied work names its work":             {edit: spec("workName: null"), message: "spec.workName: Required value"},
		"an applied work names its work's namespace": {edit: spec("workNamespace: null"), message: "spec.workNamespace: Required value"},
	},
}

var statusCopyTable = table{
	base: `
apiVersion: placement.kubernetes-fleet.io/v1
kind: ClusterResourcePlacementStatus
metadata: {name: refused, namespace: default}
sourceStatus: {observedResourceIndex: "0"}
lastUpdatedTime: "2025-01-01T00:00:00Z"
`,
	created: map[string]refusal{
		"a copied status says when": {edit: "lastUpdatedTime: yesterday", message: "lastUpdatedTime in body must be of type date-time", reasons: 2},
		"a copied index is text":    {edit: "sourceStatus: {observedResourceIndex: 0}", message: `sourceStatus.observedResourceIndex in body must be of type string: "integer"`},
	},
}

// otherVersionTable shows that the rules hold in every version: they are one schema.
var otherVersionTable = table{
	base: placementBase,
	created: map[string]refusal{
		"a rule holds in v1beta1": {
			edit:    "apiVersion: placement.kubernetes-fleet.io/v1beta1\n" + policy("placementType: PickN"),
			fine:    "apiVersion: placement.kubernetes-fleet.io/v1beta1\n" + policy("placementType: PickN, numberOfClusters: 1"),
			message: "number of cluster cannot be nil for policy type PickN: set policy.numberOfClusters"},
	},
}
