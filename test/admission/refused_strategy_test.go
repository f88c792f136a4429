//go:build integration

package admission

// rollout is an edit of the strategy of a placement, rolling one of its limits, apply one of how it applies.
func rollout(fields string) string { return "spec: {strategy: {" + fields + "}}" }

func rolling(fields string) string { return rollout("rollingUpdate: {" + fields + "}") }

func apply(fields string) string { return rollout("applyStrategy: {" + fields + "}") }

const percentage = "^((100|[0-9]{1,2})%|[0-9]+)$"

var rolloutTable = table{
	base: placementBase + "  strategy: {type: RollingUpdate}\n",
	created: map[string]refusal{
		"a strategy is one of two": {
			edit: rollout("type: Recreate"), message: `spec.strategy.type: Unsupported value: "Recreate": supported values: "RollingUpdate", "External"`},
		"External has no limits": {
			edit: rollout("type: External, rollingUpdate: {maxUnavailable: 1}"), fine: rollout("type: External"),
			message: "rollingUpdateConfig is not valid for External rollout strategy type: remove strategy.rollingUpdate, the stages of an update run set the pace"},
		"what runs may do is for External": {
			edit: rollout("external: {allowedStrategies: [gated]}"), fine: rollout("type: External, external: {allowedStrategies: [gated]}"),
			message: "external is only valid for External rollout strategy type: remove strategy.external, or set type to External"},
		"a list of allowed strategies is not empty": {
			edit: rollout("type: External, external: {allowedStrategies: []}"), fine: rollout("type: External, external: {}"),
			message: "spec.strategy.external.allowedStrategies in body should have at least 1 items"},
		"runs that start by themselves have a strategy": {
			edit: rollout("type: External, external: {trigger: OnChange}"), fine: rollout("type: External, external: {trigger: OnChange, strategyName: gated}"),
			message: "trigger OnChange creates update runs: name their strategy in strategyName"},
		"that strategy is an allowed one": {
			edit:    rollout("type: External, external: {strategyName: gated, allowedStrategies: [careful]}"),
			fine:    rollout("type: External, external: {strategyName: gated, allowedStrategies: [careful, gated]}"),
			message: "strategyName is not among allowedStrategies, so that no run could use it: add it there, or name one of them"},
		"only runs that start by themselves supersede each other": {
			edit:    rollout("type: External, external: {strategyName: gated, whenRunning: Supersede}"),
			fine:    rollout("type: External, external: {strategyName: gated, trigger: OnChange, whenRunning: Supersede}"),
			message: "whenRunning says what trigger OnChange does while a run is under way: set trigger to OnChange, or remove whenRunning"},
		"a trigger is one of two": {
			edit:    rollout("type: External, external: {trigger: Always}"),
			message: `spec.strategy.external.trigger: Unsupported value: "Always": supported values: "Manual", "OnChange"`},
		"what comes of an earlier run is one of two": {
			edit:    rollout("type: External, external: {strategyName: gated, trigger: OnChange, whenRunning: Abort}"),
			message: `spec.strategy.external.whenRunning: Unsupported value: "Abort": supported values: "Finish", "Supersede"`},
		"an allowed strategy has a name": {
			edit: rollout("type: External, external: {allowedStrategies: ['']}"), message: "spec.strategy.external.allowedStrategies[0] in body should be at least 1 chars long"},
		"an allowed strategy is named once": {
			edit: rollout("type: External, external: {allowedStrategies: [a, a]}"), message: "spec.strategy.external.allowedStrategies[1]: Duplicate value"},
		"not both limits are 0": {
			edit: rolling("maxUnavailable: 0, maxSurge: 0"), fine: rolling("maxUnavailable: 0, maxSurge: 1"), message: bothZero},
		"not both limits are 0 percent": {
			edit: rolling("maxUnavailable: 0%, maxSurge: 0%"), fine: rolling("maxUnavailable: 1%, maxSurge: 0%"), message: bothZero},
		"not one limit is 0 and the other 0 percent": {
			edit: rolling("maxUnavailable: 0, maxSurge: 00%"), message: bothZero},
		"not both limits are 0 in quotes": {
			edit: rolling("maxUnavailable: '0', maxSurge: '0'"), fine: rolling("maxUnavailable: '1', maxSurge: '0'"), message: bothZero},
		"no less than none are unavailable": {
			edit: rolling("maxUnavailable: -1"), fine: rolling("maxUnavailable: 0"),
			message: "maxUnavailable must be greater than or equal to 0"},
		"no less than none are added": {
			edit: rolling("maxSurge: -1"), fine: rolling("maxSurge: 0"), message: "maxSurge must be greater than or equal to 0"},
		"no more than all are unavailable": {
			edit: rolling("maxUnavailable: 101%"), fine: rolling("maxUnavailable: 100%"),
			message: "spec.strategy.rollingUpdate.maxUnavailable in body should match '" + percentage + "'"},
		"a limit is no part of a percentage": {
			edit:    rolling("maxSurge: 2.5%"),
			message: "spec.strategy.rollingUpdate.maxSurge in body should match '" + percentage + "'"},
		"a limit is no word": {
			edit: rolling("maxSurge: many"), message: "spec.strategy.rollingUpdate.maxSurge in body should match '" + percentage + "'"},
		"a limit is a number or text": {
			edit:    rolling("maxSurge: true"),
			message: `spec.strategy.rollingUpdate.maxSurge in body must be of type integer,string: "boolean"`, reasons: 3},
		"no less than none are held back": {
			edit: rolling("partition: -1"), fine: rolling("partition: 0"),
			message: "partition must be greater than or equal to 0: give a number of clusters, or a percentage such as 25%"},
		"no more than all are held back": {
			edit: rolling("partition: 101%"), fine: rolling("partition: 100%"),
			message: "spec.strategy.rollingUpdate.partition in body should match '^(100|[0-9]{1,2})%$'"},
		"a partition in quotes is a percentage": {
			edit: rolling("partition: '99'"), fine: rolling("partition: 99"),
			message: "spec.strategy.rollingUpdate.partition in body should match '^(100|[0-9]{1,2})%$'"},
		"External has no partition": {
			edit:    rollout("type: External, rollingUpdate: {partition: 1}"),
			message: "rollingUpdateConfig is not valid for External rollout strategy type: remove strategy.rollingUpdate, the stages of an update run set the pace"},
		"a priority is by weights or by labels": {
			edit:    rolling("order: {priority: {weights: [{weight: 1, clusterSelector: {clusterSelectorTerms: []}}], labels: [{key: wave}]}}"),
			fine:    rolling("order: {priority: {labels: [{key: wave, order: Ascending}]}, scatter: [{key: region, maxInFlight: 1}]}"),
			message: "weights and labels exclude each other in a priority: remove one of them"},
		"a weight is at most 100": {
			edit:    rolling("order: {priority: {weights: [{weight: 101, clusterSelector: {clusterSelectorTerms: []}}]}}"),
			fine:    rolling("order: {priority: {weights: [{weight: 100, clusterSelector: {clusterSelectorTerms: [{labelSelector: {matchLabels: {env: a}}}]}}]}}"),
			message: "spec.strategy.rollingUpdate.order.priority.weights[0].weight in body should be less than or equal to 100"},
		"an order looks at labels": {
			edit:    rolling("order: {priority: {weights: [{weight: 1, clusterSelector: {clusterSelectorTerms: [{propertySorter: {name: a/b, sortOrder: Ascending}}]}}]}}"),
			message: `unknown field "spec.strategy.rollingUpdate.order.priority.weights[0].clusterSelector.clusterSelectorTerms[0].propertySorter"`},
		"an order by a label needs its key": {
			edit:    rolling("order: {priority: {labels: [{key: not a key}]}}"),
			message: "key must be the key of a cluster label"},
		"clusters are scattered over one label": {
			edit:    rolling("order: {scatter: [{key: a}, {key: b}]}"),
			message: "spec.strategy.rollingUpdate.order.scatter: Too many: 2: must have at most 1 item", reasons: 2},
		"at least one cluster is in flight": {
			edit:    rolling("order: {scatter: [{key: a, maxInFlight: 0}]}"),
			message: "spec.strategy.rollingUpdate.order.scatter[0].maxInFlight in body should be greater than or equal to 1"},
		"a wait is not negative": {
			edit: rolling("unavailablePeriodSeconds: -1"), fine: rolling("unavailablePeriodSeconds: 0"),
			message: "unavailablePeriodSeconds in body should be greater than or equal to 0"},
		"what is deleted goes or stays": {
			edit: rollout("deleteStrategy: {propagationPolicy: Orphan}"), fine: rollout("deleteStrategy: {propagationPolicy: Abandon}"),
			message: `Unsupported value: "Orphan": supported values: "Delete", "Abandon"`},
		"what is mirrored goes somewhere": {
			edit: rollout("reportBackStrategy: {type: Mirror}"), fine: rollout("reportBackStrategy: {type: Mirror, destination: WorkAPI}"),
			message: "when reportBackStrategy.type is 'Mirror', a destination must be specified: OriginalResource or WorkAPI"},
		"what is mirrored goes to one of two": {
			edit:    rollout("reportBackStrategy: {type: Mirror, destination: Hub}"),
			message: `Unsupported value: "Hub": supported values: "OriginalResource", "WorkAPI"`},
		"a status is mirrored or not": {
			edit:    rollout("reportBackStrategy: {type: Copy}"),
			message: `Unsupported value: "Copy": supported values: "Disabled", "Mirror"`},
		"limits go below rollingUpdate": {
			edit: rollout("maxUnavailable: 1"), fine: rolling("maxUnavailable: 1"), message: `unknown field "spec.strategy.maxUnavailable"`},
	},
}

const bothZero = "maxUnavailable and maxSurge cannot both be 0, nothing could ever change: set one of them to at least 1 or 1%"

var applyTable = table{
	base: placementBase + "  strategy: {applyStrategy: {type: ClientSideApply}}\n",
	created: map[string]refusal{
		"a way to apply is one of three, and RollingUpdate is none": {
			edit:    apply("type: RollingUpdate"),
			message: `Unsupported value: "RollingUpdate": supported values: "ClientSideApply", "ServerSideApply", "ReportDiff"`},
		"settings of server-side apply are for it only": {
			edit: apply("serverSideApplyConfig: {force: true}"), fine: apply("type: ServerSideApply, serverSideApplyConfig: {force: true}"),
			message: "serverSideApplyConfig is only valid for ServerSideApply strategy type: remove it, or set type to ServerSideApply"},
		"settings of server-side apply are not for reports": {
			edit: apply("type: ReportDiff, serverSideApplyConfig: {force: true}"), fine: apply("type: ReportDiff"),
			message: "serverSideApplyConfig is only valid for ServerSideApply strategy type: remove it, or set type to ServerSideApply"},
		"fullComparison is called FullComparison": {
			edit: apply("comparisonOption: fullComparison"), fine: apply("comparisonOption: FullComparison"),
			message: `Unsupported value: "fullComparison": supported values: "PartialComparison", "FullComparison"`},
		"applying again is one of two": {
			edit: apply("whenToApply: Never"), fine: apply("whenToApply: IfNotDrifted"),
			message: `Unsupported value: "Never": supported values: "Always", "IfNotDrifted"`},
		"taking over is one of three": {
			edit: apply("whenToTakeOver: IfNotDrifted"), fine: apply("whenToTakeOver: IfNoDiff"),
			message: `Unsupported value: "IfNotDrifted": supported values: "Always", "IfNoDiff", "Never"`},
		"co-ownership is allowed or not": {
			edit: apply("allowCoOwnership: 'yes'"), fine: apply("allowCoOwnership: true"),
			message: `spec.strategy.applyStrategy.allowCoOwnership in body must be of type boolean: "string"`},
		"force is yes or no": {
			edit:    apply("type: ServerSideApply, serverSideApplyConfig: {force: always}"),
			message: `serverSideApplyConfig.force in body must be of type boolean: "string"`},
	},
}
