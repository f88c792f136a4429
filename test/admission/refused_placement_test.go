//go:build integration

package admission

import "strings"

const placementBase = `
apiVersion: placement.kubernetes-fleet.io/v1
kind: ClusterResourcePlacement
metadata: {name: refused}
spec:
  resourceSelectors: [{group: "", version: v1, kind: Namespace, name: web}]
`

// selectors is an edit that gives a placement other resource selectors.
func selectors(items string) string { return "spec: {resourceSelectors: [" + items + "]}" }

// labelled is an edit that lets a placement select by label.
func labelled(fields string) string {
	return selectors("{group: '', version: v1, kind: Namespace, labelSelector: {" + fields + "}}")
}

// inNamespaceMode is a selector of a Namespace of which the other selectors pick what comes along.
const inNamespaceMode = `{group: "", version: v1, kind: Namespace, name: web, selectionScope: NamespaceWithResourceSelectors}`

var selectorTable = table{
	base: placementBase,
	created: map[string]refusal{
		"a placement selects something": {
			edit: selectors(""), message: "spec.resourceSelectors: Invalid value: 0: spec.resourceSelectors in body should have at least 1 items"},
		"preemption goes with a priority": {
			edit: "spec: {preemption: Always}", fine: "spec: {priority: 1, preemption: Always}",
			message: "preemption says what to do about placements of a lower priority: set spec.priority, or remove spec.preemption"},
		"preemption is one of two": {
			edit: "spec: {priority: 1, preemption: Sometimes}", fine: "spec: {priority: 1, preemption: Never}",
			message: `Unsupported value: "Sometimes": supported values: "Never", "Always"`},
		"a required override has a name": {
			edit: "spec: {requiredOverrides: [{namespace: web}]}", fine: "spec: {requiredOverrides: [{name: a}, {name: a, namespace: web}]}",
			message: "spec.requiredOverrides[0].name: Required value"},
		"a required override is named once": {
			edit: "spec: {requiredOverrides: [{name: a}, {name: a}]}", message: "requiredOverrides must be unique: remove the repeated override"},
		"required overrides are some, if the field is there": {
			edit: "spec: {requiredOverrides: []}", message: "spec.requiredOverrides in body should have at least 1 items"},
		"a placement requires at most 50 overrides": {
			edit:    "spec: {requiredOverrides: [" + many(51, "{name: n#}") + "]}",
			fine:    "spec: {requiredOverrides: [" + many(50, "{name: n#}") + "]}",
			message: "spec.requiredOverrides: Too many: 51: must have at most 50 items"},
		"a placement has the list of selectors": {
			edit: "spec: {resourceSelectors: null}", message: "spec.resourceSelectors: Required value"},
		"a placement has at most 100 selectors": {
			edit:    selectors(many(101, "{group: '', version: v1, kind: Namespace, name: n#}")),
			fine:    selectors(many(100, "{group: '', version: v1, kind: Namespace, name: n#}")),
			message: "spec.resourceSelectors: Too many: 101: must have at most 100 items"},
		"a selector names the group, empty for the core group": {
			edit: selectors("{version: v1, kind: Namespace, name: web}"), message: "spec.resourceSelectors[0].group: Required value"},
		"a selector names the version": {
			edit: selectors("{group: '', kind: Namespace, name: web}"), message: "spec.resourceSelectors[0].version: Required value"},
		"a selector names the kind": {
			edit: selectors("{group: '', version: v1, name: web}"), message: "spec.resourceSelectors[0].kind: Required value"},
		"a selector's version is not empty": {
			edit:    selectors("{group: '', version: '', kind: Namespace, name: web}"),
			message: "spec.resourceSelectors[0].version in body should be at least 1 chars long"},
		"a selector's kind is not empty": {
			edit:    selectors("{group: '', version: v1, kind: '', name: web}"),
			message: "spec.resourceSelectors[0].kind in body should be at least 1 chars long"},
		"a selector goes by name or by label": {
			edit:    selectors("{group: '', version: v1, kind: Namespace, name: web, labelSelector: {matchLabels: {a: b}}}"),
			fine:    selectors("{group: '', version: v1, kind: Namespace, labelSelector: {matchLabels: {a: b}}}"),
			message: "name and labelSelector are mutually exclusive in a resource selector: remove one of them"},
		"a selector's scope is one of three": {
			edit:    selectors("{group: '', version: v1, kind: Namespace, name: web, selectionScope: All}"),
			fine:    selectors("{group: '', version: v1, kind: Namespace, name: web, selectionScope: NamespaceOnly}"),
			message: `Unsupported value: "All": supported values: "NamespaceOnly", "NamespaceWithResources", "NamespaceWithResourceSelectors"`},
		"selecting inside a namespace needs its name": {
			edit:    selectors(`{group: "", version: v1, kind: Namespace, labelSelector: {matchLabels: {a: b}}, selectionScope: NamespaceWithResourceSelectors}`),
			fine:    selectors(inNamespaceMode),
			message: "namespace selector with NamespaceWithResourceSelectors mode must select by name (not by label): set name and remove labelSelector"},
		"selecting inside a namespace allows no other namespace": {
			edit:    selectors(inNamespaceMode + ", {group: '', version: v1, kind: Namespace, name: other}"),
			fine:    selectors(inNamespaceMode + ", {group: apps, version: v1, kind: Deployment, name: web}"),
			message: "when using NamespaceWithResourceSelectors mode, only one namespace selector is allowed (cannot mix with other namespace selectors): move the others to another placement"},
		"a requirement has an operator": {
			edit: labelled("matchExpressions: [{key: a}]"), fine: labelled("matchExpressions: [{key: a, operator: Exists}]"),
			message: "spec.resourceSelectors[0].labelSelector.matchExpressions[0].operator: Required value"},
		"a requirement has an operator of four": {
			edit: labelled("matchExpressions: [{key: a, operator: NotExists}]"), fine: labelled("matchExpressions: [{key: a, operator: DoesNotExist}]"),
			message: `Unsupported value: "NotExists": supported values: "In", "NotIn", "Exists", "DoesNotExist"`},
		"In has values": {
			edit: labelled("matchExpressions: [{key: a, operator: In}]"), fine: labelled("matchExpressions: [{key: a, operator: In, values: [b]}]"),
			message: "operators In and NotIn need at least one value: add values"},
		"NotIn has values": {
			edit: labelled("matchExpressions: [{key: a, operator: NotIn, values: []}]"), fine: labelled("matchExpressions: [{key: a, operator: NotIn, values: [b]}]"),
			message: "operators In and NotIn need at least one value: add values"},
		"Exists has no values": {
			edit:    labelled("matchExpressions: [{key: a, operator: Exists, values: [b]}]"),
			message: "operators Exists and DoesNotExist take no values: remove values"},
		"a requirement is about a label": {
			edit:    labelled("matchExpressions: [{key: 'a b', operator: Exists}]"),
			message: "spec.resourceSelectors[0].labelSelector.matchExpressions[0].key in body should match"},
		"a selector looks for labels that there can be": {
			edit: labelled("matchLabels: {'a b': c}"), fine: labelled("matchLabels: {example.com/a-b: c}"),
			message: "a key of matchLabels must have the form of a label key, such as example.com/team"},
		"a label has a value that a label can have": {
			edit: labelled("matchLabels: {a: 'b c'}"), fine: labelled("matchLabels: {a: b-c}"),
			message: "spec.resourceSelectors[0].labelSelector.matchLabels.a in body should match"},
		"a label's value is text": {
			edit:    labelled("matchLabels: {a: true}"),
			message: `spec.resourceSelectors[0].labelSelector.matchLabels.a in body must be of type string: "boolean"`},
		"a selector has no namespace": {
			edit:    selectors("{group: '', version: v1, kind: Namespace, name: web, namespace: other}"),
			message: `unknown field "spec.resourceSelectors[0].namespace"`},
	},
}

var placementTable = table{
	base: placementBase,
	created: map[string]refusal{
		"a placement has a spec": {edit: "spec: null", message: "spec: Required value"},
		"a placement's name has at most 63 characters": {
			edit:    "metadata: {name: " + strings.Repeat("a", 64) + "}",
			fine:    "metadata: {name: " + strings.Repeat("a", 63) + "}",
			message: "the name field cannot have length exceeding 63: choose a shorter metadata.name"},
		"a placement keeps at least one revision": {
			edit: "spec: {revisionHistoryLimit: 0}", fine: "spec: {revisionHistoryLimit: 1}",
			message: "spec.revisionHistoryLimit in body should be greater than or equal to 1"},
		"a placement keeps at most 1000 revisions": {
			edit: "spec: {revisionHistoryLimit: 1001}", fine: "spec: {revisionHistoryLimit: 1000}",
			message: "spec.revisionHistoryLimit in body should be less than or equal to 1000"},
		"a status is reported in one of two scopes": {
			edit: "spec: {statusReportingScope: Namespaced}", fine: "spec: {statusReportingScope: NamespaceAccessible}",
			message: `Unsupported value: "Namespaced": supported values: "ClusterScopeOnly", "NamespaceAccessible"`},
		"a status that is copied into a namespace needs one": {
			edit:    `spec: {statusReportingScope: NamespaceAccessible, resourceSelectors: [{group: rbac.authorization.k8s.io, version: v1, kind: ClusterRole, name: web}]}`,
			message: "when statusReportingScope is NamespaceAccessible, exactly one resourceSelector with kind 'Namespace' is required: the status is copied into that namespace"},
		"a status is copied into one namespace only": {
			edit:    `spec: {statusReportingScope: NamespaceAccessible, resourceSelectors: [` + many(2, "{group: '', version: v1, kind: Namespace, name: n#}") + `]}`,
			fine:    `spec: {statusReportingScope: NamespaceAccessible, resourceSelectors: [` + many(1, "{group: '', version: v1, kind: Namespace, name: n#}") + `]}`,
			message: "when statusReportingScope is NamespaceAccessible, exactly one resourceSelector with kind 'Namespace' is required: the status is copied into that namespace"},
		"a field that does not exist is named": {
			edit: "spec: {placement: web}", message: `unknown field "spec.placement"`},
		"selectors go below the spec": {
			edit: "resourceSelectors: []", message: `unknown field "resourceSelectors"`},
	},
	updated: map[string]change{
		"a policy stays": {
			before: "spec: {policy: {placementType: PickAll}}", edit: "spec: {policy: null}",
			fine:    "spec: {revisionHistoryLimit: 5}",
			message: "policy cannot be removed once set: to pick every cluster, create another placement"},
		"a placement type stays": {
			before: "spec: {policy: {placementType: PickAll}}", edit: "spec: {policy: {placementType: PickN, numberOfClusters: 1}}",
			message: "placement type is immutable: create another placement to pick clusters in another way"},
		"no policy is one of PickAll": {
			edit: "spec: {policy: {placementType: PickFixed, clusterNames: [a]}}", fine: "spec: {policy: {placementType: PickAll}}",
			message: "placement type is immutable: create another placement to pick clusters in another way"},
		"PickFixed stays": {
			before:  "spec: {policy: {placementType: PickFixed, clusterNames: [a]}}",
			edit:    "spec: {policy: {placementType: PickAll, clusterNames: null}}",
			fine:    "spec: {policy: {clusterNames: [a, b]}}",
			message: "placement type is immutable: create another placement to pick clusters in another way"},
		"External stays": {
			before: "spec: {strategy: {type: External}}", edit: "spec: {strategy: {type: RollingUpdate}}",
			fine:    "spec: {strategy: {applyStrategy: {type: ServerSideApply}}}",
			message: "cannot change rollout strategy type from 'External' to other types: create another placement to roll out by RollingUpdate"},
		"External is not dropped with its strategy": {
			before: "spec: {strategy: {type: External}}", edit: "spec: {strategy: null}",
			message: "cannot change rollout strategy type from 'External' to other types: create another placement to roll out by RollingUpdate"},
		"External is not dropped by leaving it out": {
			before: "spec: {strategy: {type: External}}", edit: "spec: {strategy: {type: null}}",
			message: "cannot change rollout strategy type from 'External' to other types: create another placement to roll out by RollingUpdate"},
		"the scope of reports stays": {
			edit:    "spec: {statusReportingScope: NamespaceAccessible}",
			message: "statusReportingScope is immutable: create another placement to report elsewhere"},
		"the scope of reports stays in the namespace": {
			before: "spec: {statusReportingScope: NamespaceAccessible}", edit: "spec: {statusReportingScope: null}",
			message: "statusReportingScope is immutable: create another placement to report elsewhere"},
		"an update is checked as a creation is": {
			edit:    selectors("{group: '', version: v1, kind: Namespace, name: web, labelSelector: {matchLabels: {a: b}}}"),
			message: "name and labelSelector are mutually exclusive in a resource selector: remove one of them"},
	},
	status: map[string]refusal{
		"a condition has a type once": {
			edit:    "conditions: [" + many(2, "{type: A, status: 'True', reason: R, message: '', lastTransitionTime: '2025-01-01T00:00:00Z'}") + "]",
			fine:    "conditions: [" + many(2, "{type: A#, status: 'True', reason: R, message: '', lastTransitionTime: '2025-01-01T00:00:00Z'}") + "]",
			message: `status.conditions[1]: Duplicate value: {"type":"A"}`},
		"a condition's status is one of three": {
			edit:    "conditions: [{type: A, status: Yes!, reason: R, message: '', lastTransitionTime: '2025-01-01T00:00:00Z'}]",
			message: `Unsupported value: "Yes!": supported values: "True", "False", "Unknown"`},
		"a condition has a reason": {
			edit:    "conditions: [{type: A, status: 'True', message: '', lastTransitionTime: '2025-01-01T00:00:00Z'}]",
			message: "status.conditions[0].reason: Required value"},
		"at most 100 failed resources are listed per cluster": {
			edit:    "placementStatuses: [{clusterName: a, failedPlacements: [" + many(101, failedPlacement) + "]}]",
			fine:    "placementStatuses: [{clusterName: a, failedPlacements: [" + many(100, failedPlacement) + "]}]",
			message: "status.placementStatuses[0].failedPlacements: Too many: 101: must have at most 100 items"},
		"at most 100 drifted resources are listed per cluster": {
			edit:    "placementStatuses: [{clusterName: a, driftedPlacements: [" + many(101, driftedPlacement) + "]}]",
			fine:    "placementStatuses: [{clusterName: a, driftedPlacements: [" + many(100, driftedPlacement) + "]}]",
			message: "status.placementStatuses[0].driftedPlacements: Too many: 101: must have at most 100 items"},
		"a drift says when it was first seen": {
			edit:    "placementStatuses: [{clusterName: a, driftedPlacements: [{version: v1, kind: ConfigMap, name: c, observationTime: '2025-01-01T00:00:00Z', targetClusterObservedGeneration: 1}]}]",
			message: "status.placementStatuses[0].driftedPlacements[0].firstDriftedObservedTime: Required value"},
		"a difference has a path": {
			edit:    "placementStatuses: [{clusterName: a, diffedPlacements: [{version: v1, kind: ConfigMap, name: c, observationTime: '2025-01-01T00:00:00Z', firstDiffedObservedTime: '2025-01-01T00:00:00Z', observedDiffs: [{valueInHub: a}]}]}]",
			message: "observedDiffs[0].path: Required value"},
		"an envelope is of a known type": {
			edit:    "selectedResources: [{version: v1, kind: ConfigMap, name: c, envelope: {name: e, type: Secret}}]",
			fine:    "selectedResources: [{version: v1, kind: ConfigMap, name: c, envelope: {name: e, type: ConfigMap}}]",
			message: `envelope.type: Unsupported value: "Secret"`},
		"an override of a namespace is listed with it": {
			edit:    "placementStatuses: [{clusterName: a, applicableResourceOverrides: [{name: o}]}]",
			message: "applicableResourceOverrides[0].namespace: Required value"},
	},
}

const failedPlacement = "{version: v1, kind: ConfigMap, name: c#, condition: {type: Applied, status: 'False', reason: R, message: '', lastTransitionTime: '2025-01-01T00:00:00Z'}}"

const driftedPlacement = "{version: v1, kind: ConfigMap, name: c#, observationTime: '2025-01-01T00:00:00Z', targetClusterObservedGeneration: 1, firstDriftedObservedTime: '2025-01-01T00:00:00Z'}"

var namespacedPlacementTable = table{
	base: `
apiVersion: placement.kubernetes-fleet.io/v1
kind: ResourcePlacement
metadata: {name: refused, namespace: default}
spec:
  resourceSelectors: [{group: apps, version: v1, kind: Deployment, name: web}]
`,
	created: map[string]refusal{
		"a ResourcePlacement selects no Namespace": {
			edit:    selectors("{group: '', version: v1, kind: Namespace, name: web}"),
			message: "a ResourcePlacement selects resources in its own namespace, not a Namespace: select the Namespace with a ClusterResourcePlacement"},
		"a ResourcePlacement's name has at most 63 characters": {
			edit:    "metadata: {name: " + strings.Repeat("a", 64) + "}",
			message: "the name field cannot have length exceeding 63: choose a shorter metadata.name"},
		"a ResourcePlacement goes by the rules of policies": {
			edit:    "spec: {policy: {placementType: PickN}}",
			fine:    "spec: {policy: {placementType: PickN, numberOfClusters: 1}}",
			message: "number of cluster cannot be nil for policy type PickN: set policy.numberOfClusters"},
		"a ResourcePlacement selects by name or by label": {
			edit:    selectors("{group: apps, version: v1, kind: Deployment, name: web, labelSelector: {matchLabels: {a: b}}}"),
			message: "name and labelSelector are mutually exclusive in a resource selector: remove one of them"},
	},
	updated: map[string]change{
		"a ResourcePlacement stays External": {
			before: "spec: {strategy: {type: External}}", edit: "spec: {strategy: {type: RollingUpdate}}",
			message: "cannot change rollout strategy type from 'External' to other types: create another placement to roll out by RollingUpdate"},
		"a ResourcePlacement keeps its placement type": {
			edit:    "spec: {policy: {placementType: PickFixed, clusterNames: [a]}}",
			message: "placement type is immutable: create another placement to pick clusters in another way"},
	},
}
