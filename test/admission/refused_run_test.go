//go:build integration

package admission

import "strings"

const runBase = `
apiVersion: placement.kubernetes-fleet.io/v1
kind: ClusterStagedUpdateRun
metadata: {name: refused}
spec: {placementName: web, stagedRolloutStrategyName: three}
`

// spec is an edit of the fields of a spec.
func spec(fields string) string { return "spec: {" + fields + "}" }

var runTable = table{
	base: runBase,
	created: map[string]refusal{
		"a run names its placement": {
			edit: spec("placementName: null"), message: "spec.placementName: Required value"},
		"a placement's name is not empty": {
			edit: spec("placementName: ''"), message: "spec.placementName in body should be at least 1 chars long"},
		"a placement's name is at most 255 long": {
			edit: spec("placementName: " + strings.Repeat("a", 256)), fine: spec("placementName: " + strings.Repeat("a", 255)),
			message: "spec.placementName: Too long: may not be more than 255"},
		"a run names its strategy": {
			edit: spec("stagedRolloutStrategyName: null"), message: "spec.stagedRolloutStrategyName: Required value"},
		"a strategy's name is not empty": {
			edit: spec("stagedRolloutStrategyName: ''"), message: "spec.stagedRolloutStrategyName in body should be at least 1 chars long"},
		"a snapshot's index is a number": {
			edit: spec("resourceSnapshotIndex: latest"), fine: spec("resourceSnapshotIndex: '1'"), message: badIndex("latest")},
		"a snapshot's index is not negative": {
			edit: spec("resourceSnapshotIndex: '-1'"), fine: spec("resourceSnapshotIndex: '0'"), message: badIndex("-1")},
		"a snapshot's index is not its name": {
			edit: spec("resourceSnapshotIndex: web-1-snapshot"), message: badIndex("web-1-snapshot")},
		"a snapshot's index is text": {
			edit: spec("resourceSnapshotIndex: 1"), message: `spec.resourceSnapshotIndex in body must be of type string: "integer"`},
		"a state is one of three": {
			edit: spec("state: Pause"), fine: spec("state: Stop"),
			message: `spec.state: Unsupported value: "Pause": supported values: "Initialize", "Run", "Stop"`},
		"a run's name has at most 63 characters": {
			edit: "metadata: {name: " + strings.Repeat("a", 64) + "}", fine: "metadata: {name: " + strings.Repeat("a", 63) + "}",
			message: "metadata.name max length is 63: choose a shorter name"},
		"a run does not roll itself back": {
			edit: spec("rollbackOf: refused"), fine: spec("rollbackOf: other"), message: "spec.rollbackOf names the run itself"},
		"a rollback has no snapshot of its own": {
			edit: spec("rollbackOf: other, resourceSnapshotIndex: '1'"), message: "leave resourceSnapshotIndex out"},
		"a plan that was reviewed has a whole hash": {
			edit: spec("expectedPlanHash: 'sha256:0123456789ab'"), fine: spec("expectedPlanHash: 'sha256:" + strings.Repeat("0", 64) + "'"),
			message: "spec.expectedPlanHash"},
		"an action is one of two": {
			edit: spec("clusterActions: [{cluster: a, action: Stop}]"), fine: spec("clusterActions: [{cluster: a, action: Skip}]"),
			message: `Unsupported value: "Stop": supported values: "Skip", "Retry"`},
		"a cluster has one action": {
			edit: spec("clusterActions: [{cluster: a, action: Skip}, {cluster: a, action: Retry}]"), message: "spec.clusterActions[1]: Duplicate value"},
		"a run has no stages of its own": {
			edit: spec("stages: [{name: a}]"), message: `unknown field "spec.stages"`},
	},
	updated: map[string]change{
		"a placement stays": {
			edit: spec("placementName: api"), message: "placementName is immutable: create another run for another placement"},
		"a strategy stays": {
			edit:    spec("stagedRolloutStrategyName: two"),
			message: "stagedRolloutStrategyName is immutable: create another run to use another strategy"},
		"a snapshot stays": {
			before: spec("resourceSnapshotIndex: '1'"), edit: spec("resourceSnapshotIndex: '2'"), message: snapshotStays},
		"what is rolled back stays": {
			edit: spec("rollbackOf: other"), message: "rollbackOf is immutable: create another run to roll back"},
		"the plan that was reviewed is not added": {
			edit: spec("expectedPlanHash: 'sha256:" + strings.Repeat("0", 64) + "'"), message: "expectedPlanHash is immutable: create another run"},
		"the plan that was reviewed is not removed": {
			before: spec("expectedPlanHash: 'sha256:" + strings.Repeat("0", 64) + "'"), edit: spec("expectedPlanHash: null"),
			message: "expectedPlanHash is immutable: create another run"},
		"a snapshot is not added": {edit: spec("resourceSnapshotIndex: '2'"), message: snapshotStays},
		"a snapshot is not removed": {
			before: spec("resourceSnapshotIndex: '1'"), edit: spec("resourceSnapshotIndex: null"), message: snapshotStays},
		"a run that initializes does not stop": {
			before: spec("state: Initialize"), edit: spec("state: Stop"), fine: spec("state: Run"),
			message: "invalid state transition: cannot transition from Initialize to Stop"},
		"a run that runs does not initialize": {
			before: spec("state: Run"), edit: spec("state: Initialize"), fine: spec("state: Stop"),
			message: "invalid state transition: cannot transition from Run to Initialize"},
		"a run without a state runs": {
			edit: spec("state: Initialize"), fine: spec("state: Stop"),
			message: "invalid state transition: cannot transition from Run to Initialize"},
		"a run that stopped does not initialize": {
			before: spec("state: Stop"), edit: spec("state: Initialize"), fine: spec("state: Run"),
			message: "invalid state transition: cannot transition from Stop to Initialize"},
	},
	status: map[string]refusal{
		"a stage has at most four tasks before it": {
			edit:    "stagesStatus: [{stageName: a, clusters: [], beforeStageTaskStatus: [{type: Approval}, {type: Analysis}, {type: Rehearsal}, {type: PrePull}, {type: Approval}]}]",
			fine:    "stagesStatus: [{stageName: a, clusters: [], beforeStageTaskStatus: [{type: Approval}, {type: Analysis}, {type: Rehearsal}, {type: PrePull}]}]",
			message: "beforeStageTaskStatus: Too many: 5: must have at most 4 items"},
		"a stage has a name": {
			edit: "stagesStatus: [{clusters: []}]", message: "status.stagesStatus[0].stageName: Required value"},
	},
}

const snapshotStays = "resourceSnapshotIndex is immutable: create another run to roll out another snapshot"

func badIndex(index string) string {
	return "invalid resource snapshot index " + index + " provided, expected an integer >= 0: use the label kubernetes-fleet.io/resource-index of a ClusterResourceSnapshot, or leave it out for the latest"
}

var namespacedRunTable = table{
	base: `
apiVersion: placement.kubernetes-fleet.io/v1
kind: StagedUpdateRun
metadata: {name: refused, namespace: default}
spec: {placementName: web, stagedRolloutStrategyName: three}
`,
	created: map[string]refusal{
		"a namespaced run's state is one of three": {
			edit: spec("state: Pause"), message: `spec.state: Unsupported value: "Pause": supported values: "Initialize", "Run", "Stop"`},
		"a namespaced run's name has at most 63 characters": {
			edit:    "metadata: {name: " + strings.Repeat("a", 64) + "}",
			message: "metadata.name max length is 63: choose a shorter name"},
	},
	updated: map[string]change{
		"a namespaced run keeps its placement": {
			edit: spec("placementName: api"), message: "placementName is immutable: create another run for another placement"},
		"a namespaced run that runs does not initialize": {
			before: spec("state: Run"), edit: spec("state: Initialize"),
			message: "invalid state transition: cannot transition from Run to Initialize"},
	},
}

// stage is an edit that leaves a strategy one stage, named canary.
func stage(fields string) string { return "spec: {stages: [{name: canary, " + fields + "}]}" }

var strategyTable = table{
	base: `
apiVersion: placement.kubernetes-fleet.io/v1
kind: ClusterStagedUpdateStrategy
metadata: {name: refused}
spec: {stages: [{name: canary}]}
`,
	created: map[string]refusal{
		"a strategy has the list of stages": {edit: "spec: {stages: null}", message: "spec.stages: Required value"},
		"a strategy has a stage":            {edit: "spec: {stages: []}", message: "spec.stages in body should have at least 1 items"},
		"a strategy has at most 31 stages": {
			edit: "spec: {stages: [" + many(32, "{name: s#}") + "]}", fine: "spec: {stages: [" + many(31, "{name: s#}") + "]}",
			message: "spec.stages: Too many: 32: must have at most 31 items"},
		"stages have names of their own": {
			edit: "spec: {stages: [{name: a}, {name: b}, {name: a}]}", fine: "spec: {stages: [{name: a}, {name: b}]}",
			message: "the names of stages must be unique: rename the repeated stage"},
		"a stage has a name": {edit: "spec: {stages: [{}]}", message: "spec.stages[0].name: Required value"},
		"a stage's name has letters and digits only": {
			edit: "spec: {stages: [{name: canary-1}]}", fine: "spec: {stages: [{name: canary1}]}",
			message: "spec.stages[0].name in body should match '^[a-z0-9]+$'"},
		"a stage's name has at most 63 characters": {
			edit:    "spec: {stages: [{name: " + strings.Repeat("a", 64) + "}]}",
			fine:    "spec: {stages: [{name: " + strings.Repeat("a", 63) + "}]}",
			message: "spec.stages[0].name: Too long: may not be more than 63"},
		"clusters are sorted by a label": {
			edit: stage("sortingLabelKey: 'a b'"), fine: stage("sortingLabelKey: example.com/order"),
			message: "sortingLabelKey must be the key of a cluster label"},
		"a stage has one order": {
			edit:    stage("sortingLabelKey: order, order: {priority: {labels: [{key: wave}]}}"),
			fine:    stage("order: {priority: {labels: [{key: wave}]}, scatter: [{key: region}]}"),
			message: "order and sortingLabelKey exclude each other in a stage: remove sortingLabelKey, order.priority.labels with order Ascending does the same"},
		"a stage is bounded by its concurrency": {
			edit:    stage("order: {scatter: [{key: region, maxInFlight: 1}]}"),
			message: "maxInFlight is for rolling updates: remove it, maxConcurrency bounds the clusters of a stage"},
		"at least one cluster is updated at a time": {
			edit: stage("maxConcurrency: 0"), fine: stage("maxConcurrency: 1"), message: "maxConcurrency must be at least 1"},
		"more than no percent are updated at a time": {
			edit: stage("maxConcurrency: 0%"), fine: stage("maxConcurrency: 1%"), message: concurrency},
		"no more than all are updated at a time": {
			edit: stage("maxConcurrency: 101%"), fine: stage("maxConcurrency: 100%"), message: concurrency},
		"a number of clusters is in no quotes": {
			edit: stage("maxConcurrency: '5'"), fine: stage("maxConcurrency: 5"), message: concurrency},
		"a deadline is a second or more": {
			edit: stage("clusterDeadlineSeconds: 0"), fine: stage("clusterDeadlineSeconds: 10"),
			message: "clusterDeadlineSeconds in body should be greater than or equal to 1"},
		"a budget is not negative": {
			edit: stage("failureBudget: {maxFailures: -1}"), fine: stage("failureBudget: {maxFailures: 0}"),
			message: "maxFailures must be at least 0"},
		"beyond the budget there are four ways": {
			edit: stage("failureBudget: {onExceeded: Skip}"), fine: stage("failureBudget: {onExceeded: Rollback}"),
			message: `Unsupported value: "Skip": supported values: "Wait", "Pause", "Abort", "Rollback"`},
		"a run ends or goes on when members change": {
			edit: "spec: {stages: [{name: a}], onMembershipChange: Ignore}", fine: "spec: {stages: [{name: a}], onMembershipChange: Continue}",
			message: `Unsupported value: "Ignore": supported values: "Abort", "Continue"`},
		"held clusters are skipped or waited for": {
			edit: "spec: {stages: [{name: a}], heldClusters: Pass}", fine: "spec: {stages: [{name: a}], heldClusters: Skip}",
			message: `Unsupported value: "Pass": supported values: "Skip", "Wait"`},
		"clusters in no stage go one of three ways": {
			edit: "spec: {stages: [{name: a}], unassignedClusters: First}", fine: "spec: {stages: [{name: a}], unassignedClusters: Last}",
			message: `Unsupported value: "First": supported values: "Fail", "Ignore", "Last"`},
		"the stage that is added has a name of its own": {
			edit:    "spec: {stages: [{name: unassigned}], unassignedClusters: Last}",
			message: "unassignedClusters Last adds a stage called unassigned: rename the stage of that name"},
		"a rollback keeps approvals or skips them": {
			edit: "spec: {stages: [{name: a}], rollbackApprovals: Never}", fine: "spec: {stages: [{name: a}], rollbackApprovals: Skip}",
			message: `Unsupported value: "Never": supported values: "Keep", "Skip"`},
		"only an approval has approvers": {
			edit:    stage("afterStageTasks: [{type: TimedWait, waitTime: 1h, approval: {excludedApprovers: [Creator]}}]"),
			fine:    stage("afterStageTasks: [{type: Approval, approval: {excludedApprovers: [Creator]}}]"),
			message: "approval is only valid for tasks of type Approval: remove approval, or set type to Approval"},
		"only the creator can be excluded": {
			edit: stage("beforeStageTasks: [{type: Approval, approval: {excludedApprovers: [Approver]}}]"), fine: stage("beforeStageTasks: [{type: Approval, approval: {excludedApprovers: [Creator]}}]"),
			message: `Unsupported value: "Approver": supported values: "Creator"`},
		"an approval has no time": {
			edit: stage("afterStageTasks: [{type: Approval, waitTime: 1h}]"), fine: stage("afterStageTasks: [{type: Approval}]"),
			message: "AfterStageTaskType is Approval, waitTime is not allowed: remove waitTime, or set type to TimedWait"},
		"a wait ends": {
			edit: stage("afterStageTasks: [{type: TimedWait, waitTime: 99999999h}]"), fine: stage("afterStageTasks: [{type: TimedWait, waitTime: 8760h}]"),
			message: noWaitTime},
		"as many clusters at once as can be counted": {
			edit: stage("maxConcurrency: 3000000000"), fine: stage("maxConcurrency: 2147483647"),
			message: "maxConcurrency in body should be less than or equal to 2147483647"},
		"a timed wait has a time": {
			edit: stage("afterStageTasks: [{type: TimedWait}]"), fine: stage("afterStageTasks: [{type: TimedWait, waitTime: 1h}]"),
			message: "AfterStageTaskType is TimedWait, waitTime is required: add waitTime, for example 1h"},
		"a task of a type is there once": {
			edit:    stage("afterStageTasks: [{type: Approval}, {type: Approval}]"),
			fine:    stage("afterStageTasks: [{type: Approval}, {type: TimedWait, waitTime: 1m}]"),
			message: "afterStageTasks can have at most one task of each type: remove one, or give the other type"},
		"a stage has at most three tasks after it": {
			edit:    stage("afterStageTasks: [{type: Approval}, {type: TimedWait, waitTime: 1m}, {type: Approval}, {type: TimedWait, waitTime: 1m}]"),
			message: "spec.stages[0].afterStageTasks: Too many: 4: must have at most 3 items"},
		"a task has a type": {
			edit: stage("afterStageTasks: [{waitTime: 1h}]"), message: "spec.stages[0].afterStageTasks[0].type: Required value"},
		"a task is one of three": {
			edit: stage("afterStageTasks: [{type: Test}]"), message: `Unsupported value: "Test": supported values: "TimedWait", "Approval", "Analysis"`},
		"a stage does not begin with a wait": {
			edit: stage("beforeStageTasks: [{type: TimedWait, waitTime: 1h}]"), fine: stage("beforeStageTasks: [{type: Approval}]"),
			message: "BeforeStageTaskType cannot be TimedWait: use type Approval, or a TimedWait after the stage before"},
		"an approval before a stage has no time": {
			edit:    stage("beforeStageTasks: [{type: Approval, waitTime: 1h}]"),
			message: "BeforeStageTaskType is Approval, waitTime is not allowed: remove waitTime"},
		"a stage begins with one approval": {
			edit:    stage("beforeStageTasks: [{type: Approval}, {type: Approval}]"),
			message: "beforeStageTasks can have at most one task of each type: remove one, or give the other type"},
		"a stage has at most four tasks before it": {
			edit:    stage("beforeStageTasks: [{type: Approval}, {type: Approval}, {type: Approval}, {type: Approval}, {type: Approval}]"),
			message: "spec.stages[0].beforeStageTasks: Too many: 5: must have at most 4 items"},
		"a time has a unit": {
			edit: stage("afterStageTasks: [{type: TimedWait, waitTime: '10'}]"), fine: stage("afterStageTasks: [{type: TimedWait, waitTime: 10s}]"),
			message: noWaitTime},
		"a day is 24h": {
			edit: stage("afterStageTasks: [{type: TimedWait, waitTime: 1d}]"), fine: stage("afterStageTasks: [{type: TimedWait, waitTime: 24h}]"),
			message: noWaitTime},
		"a time is not negative": {
			edit: stage("afterStageTasks: [{type: TimedWait, waitTime: -1m}]"), message: noWaitTime},
		"a stage's labels have operators that exist": {
			edit:    stage("labelSelector: {matchExpressions: [{key: a, values: [b]}]}"),
			message: "labelSelector.matchExpressions[0].operator: Required value"},
	},
	updated: map[string]change{
		"a strategy that is changed is checked again": {
			edit: "spec: {stages: [{name: a}, {name: a}]}", fine: "spec: {stages: [{name: a}]}",
			message: "the names of stages must be unique: rename the repeated stage"},
	},
}

const noWaitTime = "waitTime must be 0, or 1ms to 292 years: write it like 30s, 15m or 1h30m"

const concurrency = "spec.stages[0].maxConcurrency in body should match '^(100|[1-9][0-9]?)%$'"

var namespacedStrategyTable = table{
	base: `
apiVersion: placement.kubernetes-fleet.io/v1
kind: StagedUpdateStrategy
metadata: {name: refused, namespace: default}
spec: {stages: [{name: canary}]}
`,
	created: map[string]refusal{
		"stages of a namespaced strategy have names of their own": {
			edit:    "spec: {stages: [{name: a}, {name: a}]}",
			message: "the names of stages must be unique: rename the repeated stage"},
		"a timed wait of a namespaced strategy has a time": {
			edit:    stage("afterStageTasks: [{type: TimedWait}]"),
			message: "AfterStageTaskType is TimedWait, waitTime is required: add waitTime, for example 1h"},
	},
}

var approvalTable = table{
	base: `
apiVersion: placement.kubernetes-fleet.io/v1
kind: ClusterApprovalRequest
metadata: {name: refused}
spec: {parentStageRollout: run, targetStage: canary}
`,
	created: map[string]refusal{
		"a request names its run":   {edit: spec("parentStageRollout: null"), message: "spec.parentStageRollout: Required value"},
		"a request names its stage": {edit: spec("targetStage: null"), message: "spec.targetStage: Required value"},
	},
	updated: map[string]change{
		"a request's stage stays": {edit: spec("targetStage: production"), message: immutable},
		"a request's run stays":   {edit: spec("parentStageRollout: other"), message: immutable},
	},
	status: map[string]refusal{
		"an approval has the word Approved as its type": {
			edit:    "conditions: [{type: '', status: 'True', reason: lgtm, message: lgtm, lastTransitionTime: '2025-01-01T00:00:00Z'}]",
			fine:    "conditions: [{type: Approved, status: 'True', reason: lgtm, message: lgtm, lastTransitionTime: '2025-01-01T00:00:00Z'}]",
			message: "status.conditions[0].type: Invalid value: \"\": conditions[0].type in body should match"},
		"an approval says when": {
			edit:    "conditions: [{type: Approved, status: 'True', reason: lgtm, message: lgtm}]",
			message: "status.conditions[0].lastTransitionTime: Required value"},
		"a record of an approval names its channel": {
			edit:    "approval: {at: '2025-01-01T00:00:00Z', verified: true, channel: window}",
			message: `status.approval.channel: Unsupported value: "window": supported values: "Kubectl", "TemporalSignal", "TemporalUpdate"`},
	},
}

// immutable is how the answer begins where a spec never changes.
const immutable = "The spec field is immutable"
