//go:build integration

package admission

import "strings"

// policy is an edit of the policy of a placement.
func policy(fields string) string { return "spec: {policy: {" + fields + "}}" }

// required is an edit that requires clusters to match a term, preferred one that prefers those that match.
func required(terms string) string {
	return policy("affinity: {clusterAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {clusterSelectorTerms: [" + terms + "]}}}")
}

func preferred(items string) string {
	return policy("affinity: {clusterAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [" + items + "]}}")
}

// property is a required term with requirements on properties.
func property(requirements string) string {
	return required("{propertySelector: {matchExpressions: [" + requirements + "]}}")
}

const (
	labels     = "{labelSelector: {matchLabels: {region: east}}}"
	preference = "{weight: 10, preference: " + labels + "}"
	nodeCount  = "name: kubernetes-fleet.io/node-count"
)

var pickAllTable = table{
	base: placementBase + "  policy: {placementType: PickAll}\n",
	created: map[string]refusal{
		"a placement type is one of three": {
			edit:    policy("placementType: PickSome"),
			message: `spec.policy.placementType: Unsupported value: "PickSome": supported values: "PickAll", "PickN", "PickFixed"`},
		"activation is one of two": {
			edit: policy("activation: Later"), fine: policy("activation: Lazy"),
			message: `spec.policy.activation: Unsupported value: "Later": supported values: "Immediate", "Lazy"`},
		"a lazy policy is of the built-in scheduler": {
			edit: policy("activation: Lazy, schedulerName: theirs"), fine: policy("activation: Immediate, schedulerName: theirs"),
			message: "when a changed policy acts is up to the scheduler that picks the clusters: remove policy.activation, or policy.schedulerName"},
		"a scheduler has the name of one": {
			edit: policy("schedulerName: Theirs!"), fine: policy("schedulerName: ''"),
			message: "schedulerName is the name of a scheduler in lower case letters, digits, '-' and '.': correct it, or remove policy.schedulerName for the built-in scheduler"},
		"a scheduler's name is not too long": {
			edit:    policy("schedulerName: " + strings.Repeat("a", 254)),
			fine:    policy("schedulerName: " + strings.Repeat("a", 253)),
			message: "spec.policy.schedulerName: Too long: may not be more than 253"},
		"a PriorityClass has the name of one": {
			edit: policy("queuePriorityClassName: High!"), fine: policy("queuePriorityClassName: ''"),
			message: "queuePriorityClassName is the name of a PriorityClass in lower case letters, digits, '-' and '.': correct it, or remove policy.queuePriorityClassName"},
		"a PriorityClass's name is not too long": {
			edit:    policy("queuePriorityClassName: " + strings.Repeat("a", 254)),
			fine:    policy("queuePriorityClassName: " + strings.Repeat("a", 253)),
			message: "spec.policy.queuePriorityClassName: Too long: may not be more than 253"},
		"only the built-in scheduler fails over": {
			edit:    "spec: {policy: {schedulerName: theirs, affinityGroups: [{name: a, clusterSelector: {clusterSelectorTerms: []}}]}, strategy: {failover: {cluster: {}}}}",
			fine:    "spec: {policy: {affinityGroups: [{name: a, clusterSelector: {clusterSelectorTerms: []}}]}, strategy: {failover: {cluster: {}}}}",
			message: "strategy.failover is carried out by the built-in scheduler: remove strategy.failover, or policy.schedulerName"},
		"state goes along from one cluster only": {
			edit:    "spec: {policy: {placementType: PickN, numberOfClusters: 2}, strategy: {failover: {cluster: {purgeMode: Directly, statePreservation: {rules: [{aliasLabelName: job, jsonPath: '{.job}'}]}}}}}",
			fine:    "spec: {policy: {placementType: PickN, numberOfClusters: 1}, strategy: {failover: {cluster: {purgeMode: Directly, statePreservation: {rules: [{aliasLabelName: job, jsonPath: '{.job}'}]}}}}}",
			message: "statePreservation of strategy.failover needs exactly one cluster whose values count: set policy.placementType to PickN and policy.numberOfClusters to 1, or remove statePreservation"},
		"PickAll names no clusters": {
			edit:    policy("clusterNames: [a]"),
			message: "cluster names needs to be empty for policy type PickAll, only valid for PickFixed: remove policy.clusterNames"},
		"PickAll has no number of clusters": {
			edit:    policy("numberOfClusters: 3"),
			message: "number of clusters must be nil for policy type PickAll, only valid for PickN: remove policy.numberOfClusters"},
		"PickAll spreads nothing": {
			edit:    policy("topologySpreadConstraints: [{topologyKey: region}]"),
			message: "topology spread constraints needs to be empty for policy type PickAll, only valid for PickN: remove policy.topologySpreadConstraints"},
		"PickAll prefers nothing": {
			edit: preferred(preference), fine: required(labels),
			message: "preferredDuringSchedulingIgnoredDuringExecution may not be used with policy type PickAll: every cluster that fits is picked, so there is nothing to prefer; use requiredDuringSchedulingIgnoredDuringExecution, or policy type PickN"},
		"a policy without a type is of PickAll": {
			edit:    policy("placementType: null, numberOfClusters: 3"),
			message: "number of clusters must be nil for policy type PickAll, only valid for PickN: remove policy.numberOfClusters"},
	},
}

const pickN = placementBase + "  policy: {placementType: PickN, numberOfClusters: 3}\n"

var pickNTable = table{
	base: pickN,
	created: map[string]refusal{
		"PickN names no clusters": {
			edit:    policy("clusterNames: [a]"),
			message: "cluster names needs to be empty for policy type PickN, only valid for PickFixed: remove policy.clusterNames"},
		"PickN says how many": {
			edit:    policy("numberOfClusters: null"),
			message: "number of cluster cannot be nil for policy type PickN: set policy.numberOfClusters"},
		"PickN does not pick less than nothing": {
			edit: policy("numberOfClusters: -1"), fine: policy("numberOfClusters: 0"),
			message: "spec.policy.numberOfClusters in body should be greater than or equal to 0"},
		"PickN picks whole clusters": {
			edit: policy("numberOfClusters: 1.5"), message: "spec.policy.numberOfClusters in body must be of type int32", reasons: 2},
		"PickN counts with a number": {
			edit: policy("numberOfClusters: '3'"), message: `spec.policy.numberOfClusters in body must be of type integer: "string"`},
	},
}

var pickFixedTable = table{
	base: placementBase + "  policy: {placementType: PickFixed, clusterNames: [a, b]}\n",
	created: map[string]refusal{
		"PickFixed has no number of clusters": {
			edit:    policy("numberOfClusters: 2"),
			message: "number of clusters must be nil for policy type PickFixed, only valid for PickN: remove policy.numberOfClusters"},
		"PickFixed has no affinity": {
			edit: required(labels), message: "affinity must be nil for policy type PickFixed, only valid for PickAll/PickN: remove policy.affinity"},
		"PickFixed spreads nothing": {
			edit:    policy("topologySpreadConstraints: [{topologyKey: region}]"),
			message: "topology spread constraints needs to be empty for policy type PickFixed, only valid for PickN: remove policy.topologySpreadConstraints"},
		"PickFixed tolerates nothing": {
			edit:    policy("tolerations: [{operator: Exists}]"),
			message: "tolerations needs to be empty for policy type PickFixed, only valid for PickAll/PickN: remove policy.tolerations, clusters picked by name are placed on whatever their taints"},
		"PickFixed names a cluster once": {
			edit:    policy("clusterNames: [a, b, a]"),
			message: "cluster names must be unique for policy type PickFixed: remove the repeated name"},
		"PickFixed names clusters as they can be called": {
			edit: policy("clusterNames: [a, Member_1]"), fine: policy("clusterNames: [a, member-1]"),
			message: "PickFixed cluster name Member_1 is not a valid member name: use the metadata.name of a MemberCluster"},
		"PickFixed names no cluster without a name": {
			edit:    policy("clusterNames: [a, '']"),
			message: "PickFixed cluster name  is not a valid member name: use the metadata.name of a MemberCluster"},
		"PickFixed names at most 100 clusters": {
			edit: policy("clusterNames: [" + many(101, "m#") + "]"), fine: policy("clusterNames: [" + many(100, "m#") + "]"),
			message: "spec.policy.clusterNames: Too many: 101: must have at most 100 items"},
	},
}

var affinityTable = table{
	base: pickN,
	created: map[string]refusal{
		"a required affinity has terms": {
			edit:    policy("affinity: {clusterAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {}}}"),
			message: "clusterSelectorTerms: Required value"},
		"a required affinity has at most ten terms": {
			edit: required(many(11, labels)), fine: required(many(10, labels)),
			message: "clusterSelectorTerms: Too many: 11: must have at most 10 items"},
		"a required term does not sort": {
			edit: required("{propertySorter: {" + nodeCount + ", sortOrder: Descending}}"), fine: required(labels),
			message: "PropertySorter is not allowed for RequiredDuringSchedulingIgnoredDuringExecution affinity: move it to a preferred term, or use propertySelector"},
		"a preferred term does not select by property": {
			edit:    preferred("{weight: 10, preference: {propertySelector: {matchExpressions: [{" + nodeCount + ", operator: Ge, values: ['5']}]}}}"),
			fine:    preferred("{weight: 10, preference: {propertySorter: {" + nodeCount + ", sortOrder: Descending}}}"),
			message: "PropertySelector is not allowed for PreferredDuringSchedulingIgnoredDuringExecution affinity: move it to a required term, or use propertySorter"},
		"a weight is at most 100": {
			edit: preferred("{weight: 101, preference: " + labels + "}"), fine: preferred("{weight: 100, preference: " + labels + "}"),
			message: "weight in body should be less than or equal to 100"},
		"a weight is at least -100": {
			edit: preferred("{weight: -101, preference: " + labels + "}"), fine: preferred("{weight: -100, preference: " + labels + "}"),
			message: "weight in body should be greater than or equal to -100"},
		"a preference has a weight": {
			edit: preferred("{preference: " + labels + "}"), message: "[0].weight: Required value"},
		"a weight has a preference": {
			edit: preferred("{weight: 1}"), message: "[0].preference: Required value"},
		"a preference is one term and no list": {
			edit: preferred("{weight: 10, preference: [" + labels + "]}"), fine: preferred(preference), lenient: true,
			message: `preference in body must be of type object: "array"`},
		"a preference that is a list has no first": {
			edit:    preferred("{weight: 10, preference: [" + labels + "]}"),
			message: `unknown field "spec.policy.affinity.clusterAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].preference[0].labelSelector"`},
		"a preference prefers something": {
			edit:    preferred("{weight: 10, preference: {}}"),
			message: "preference needs a labelSelector or a propertySorter (metricSorter is not a field, use propertySorter)"},
		"metricSorter is called propertySorter": {
			edit:    preferred("{weight: 10, preference: {metricSorter: {" + nodeCount + ", sortOrder: Descending}}}"),
			fine:    preferred("{weight: 10, preference: {propertySorter: {" + nodeCount + ", sortOrder: Descending}}}"),
			message: `unknown field "spec.policy.affinity.clusterAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].preference.metricSorter"`},
		"metricSorter is called propertySorter, also where unknown fields are left out": {
			edit:    preferred("{weight: 10, preference: {metricSorter: {" + nodeCount + ", sortOrder: Descending}}}"),
			lenient: true,
			message: "preference needs a labelSelector or a propertySorter (metricSorter is not a field, use propertySorter)"},
		"a sorter knows two orders": {
			edit:    preferred("{weight: 10, preference: {propertySorter: {" + nodeCount + ", sortOrder: Down}}}"),
			message: `Unsupported value: "Down": supported values: "Descending", "Ascending"`},
		"a sorter has an order": {
			edit:    preferred("{weight: 10, preference: {propertySorter: {" + nodeCount + "}}}"),
			message: "propertySorter.sortOrder: Required value"},
		"a sorter names a property": {
			edit:    preferred("{weight: 10, preference: {propertySorter: {name: 'node count', sortOrder: Descending}}}"),
			message: "the name of a property must be a label name, such as kubernetes-fleet.io/node-count or resources.kubernetes-fleet.io/total-cpu"},
		"properties are compared by six operators, and NotExists is none": {
			edit:    property("{" + nodeCount + ", operator: NotExists, values: ['5']}"),
			message: `Unsupported value: "NotExists": supported values: "Gt", "Ge", "Eq", "Ne", "Lt", "Le"`},
		"operators are not those of labels": {
			edit:    property("{" + nodeCount + ", operator: In, values: ['5']}"),
			message: `Unsupported value: "In": supported values: "Gt", "Ge", "Eq", "Ne", "Lt", "Le"`},
		"a property is compared with something": {
			edit: property("{" + nodeCount + ", operator: Ge, values: []}"), fine: property("{" + nodeCount + ", operator: Ge, values: ['5']}"),
			message: "operator Ge needs exactly one value: give values one quantity such as 5 or 10Gi"},
		"a property is compared with one value": {
			edit: property("{" + nodeCount + ", operator: Ge, values: ['5', '6']}"), message: "values: Too many: 2: must have at most 1 item"},
		"a value is a quantity": {
			edit: property("{" + nodeCount + ", operator: Ge, values: [many]}"), fine: property("{" + nodeCount + ", operator: Ge, values: [10Gi]}"),
			message: "value many is not a Kubernetes quantity: write it like 5, 500m or 10Gi"},
		"a value is text": {
			edit: property("{" + nodeCount + ", operator: Ge, values: [5]}"), message: `values[0] in body must be of type string: "integer"`},
		"a property has the name of a label": {
			edit:    property("{name: '-nodes', operator: Ge, values: ['5']}"),
			message: "the name of a property must be a label name, such as kubernetes-fleet.io/node-count or resources.kubernetes-fleet.io/total-cpu"},
		"a property selector has requirements": {
			edit: required("{propertySelector: {}}"), message: "propertySelector.matchExpressions: Required value"},
		"a property equals one value": {
			edit:    property("{" + nodeCount + ", operator: Eq, values: ['5']}, {" + nodeCount + ", operator: Eq, values: ['6']}"),
			fine:    property("{" + nodeCount + ", operator: Eq, values: ['5']}, {name: other, operator: Eq, values: ['6']}"),
			message: inconsistent},
		"a property does not both equal and differ": {
			edit:    property("{" + nodeCount + ", operator: Eq, values: ['5']}, {" + nodeCount + ", operator: Ne, values: ['5']}"),
			fine:    property("{" + nodeCount + ", operator: Eq, values: ['5']}, {" + nodeCount + ", operator: Ne, values: ['6']}"),
			message: inconsistent},
		"a property lies between its bounds": {
			edit:    property("{" + nodeCount + ", operator: Ge, values: [1Gi]}, {" + nodeCount + ", operator: Le, values: [1Mi]}"),
			fine:    property("{" + nodeCount + ", operator: Ge, values: [1Mi]}, {" + nodeCount + ", operator: Le, values: [1Gi]}"),
			message: inconsistent},
		"bounds leave something between them": {
			edit:    property("{" + nodeCount + ", operator: Gt, values: ['5']}, {" + nodeCount + ", operator: Le, values: ['5']}"),
			fine:    property("{" + nodeCount + ", operator: Ge, values: ['5']}, {" + nodeCount + ", operator: Le, values: ['5']}"),
			message: inconsistent},
		"a value keeps the lower bound": {
			edit:    property("{" + nodeCount + ", operator: Eq, values: ['5']}, {" + nodeCount + ", operator: Gt, values: ['5']}"),
			fine:    property("{" + nodeCount + ", operator: Eq, values: ['6']}, {" + nodeCount + ", operator: Gt, values: ['5']}"),
			message: inconsistent},
	},
}

const inconsistent = "inconsistent requirements on property: two requirements on one property exclude each other, so that no cluster can match; change or remove one"

var tolerationTable = table{
	base: pickN,
	created: map[string]refusal{
		"a value is not compared by Exists": {
			edit: policy("tolerations: [{key: a, operator: Exists, value: b}]"), fine: policy("tolerations: [{key: a, operator: Equal, value: b}]"),
			message: "value must be empty when operator is Exists: remove value, or set operator to Equal"},
		"every key is tolerated by Exists only": {
			edit: policy("tolerations: [{operator: Equal, value: b}]"), fine: policy("tolerations: [{operator: Exists}]"),
			message: "operator must be Exists when key is empty: set key, or set operator to Exists to tolerate every taint"},
		"without an operator it is Equal": {
			edit: policy("tolerations: [{value: b}]"), fine: policy("tolerations: [{key: a, value: b}]"),
			message: "operator must be Exists when key is empty: set key, or set operator to Exists to tolerate every taint"},
		"an operator is one of two": {
			edit: policy("tolerations: [{key: a, operator: In}]"), message: `Unsupported value: "In": supported values: "Equal", "Exists"`},
		"an effect is one of three": {
			edit: policy("tolerations: [{key: a, effect: Evict}]"), fine: policy("tolerations: [{key: a, effect: NoExecute}]"),
			message: `Unsupported value: "Evict": supported values: "NoSchedule", "PreferNoSchedule", "NoExecute"`},
		"a toleration is there once": {
			edit: policy("tolerations: [{key: a}, {key: a}]"), fine: policy("tolerations: [{key: a}, {key: b}]"),
			message: "tolerations must be unique: remove the repeated toleration"},
		"a key is one of a label": {
			edit: policy("tolerations: [{key: 'a b'}]"), fine: policy("tolerations: [{key: example.com/a}]"),
			message: "the key of a toleration must have the form of a label key, such as example.com/dedicated"},
		"a tolerated value is one of a label": {
			edit:    policy("tolerations: [{key: a, value: 'b c'}]"),
			message: "the value of a toleration must have the form of a label value: letters, digits, '-', '_' and '.', beginning and ending with a letter or digit"},
		"there are at most 100": {
			edit: policy("tolerations: [" + many(101, "{key: k#}") + "]"), fine: policy("tolerations: [" + many(100, "{key: k#}") + "]"),
			message: "spec.policy.tolerations: Too many: 101: must have at most 100 items"},
	},
	updated: map[string]change{
		"a toleration is not removed": {
			before: policy("tolerations: [{key: a}, {key: b}]"), edit: policy("tolerations: [{key: a}]"),
			fine: policy("tolerations: [{key: c}, {key: b}, {key: a}]"), message: onlyAdditions},
		"a toleration is not changed": {
			before: policy("tolerations: [{key: a}]"), edit: policy("tolerations: [{key: a, operator: Exists}]"), message: onlyAdditions},
		"all tolerations are not removed": {
			before: policy("tolerations: [{key: a}]"), edit: policy("tolerations: null"), message: onlyAdditions},
	},
}

const onlyAdditions = "tolerations have been updated/deleted, only additions to tolerations are allowed: keep the old ones as they are"

// spread is an edit that spreads the picked clusters.
func spread(items string) string { return policy("topologySpreadConstraints: [" + items + "]") }

var spreadTable = table{
	base: pickN,
	created: map[string]refusal{
		"a spread has a key": {edit: spread("{maxSkew: 1}"), fine: spread("{topologyKey: region}"), message: "topologyKey: Required value"},
		"a spread's key is one of a label": {
			edit:    spread("{topologyKey: ''}"),
			message: "topologyKey must be the key of a cluster label, such as region or topology.kubernetes.io/zone"},
		"a spread's key is not too long": {
			edit:    spread("{topologyKey: " + strings.Repeat("a", 64) + "}"),
			fine:    spread("{topologyKey: " + strings.Repeat("a", 63) + "}"),
			message: "topologyKey must be the key of a cluster label, such as region or topology.kubernetes.io/zone"},
		"a skew is at least one": {
			edit: spread("{topologyKey: region, maxSkew: 0}"), fine: spread("{topologyKey: region, maxSkew: 1}"),
			message: "maxSkew in body should be greater than or equal to 1"},
		"a spread is strict or not": {
			edit:    spread("{topologyKey: region, whenUnsatisfiable: Ignore}"),
			message: `Unsupported value: "Ignore": supported values: "DoNotSchedule", "ScheduleAnyway"`},
		"a spread over a key is there once": {
			edit:    spread("{topologyKey: region, maxSkew: 1}, {topologyKey: region, maxSkew: 2}"),
			fine:    spread("{topologyKey: region}, {topologyKey: region, whenUnsatisfiable: ScheduleAnyway}"),
			message: "topology spread constraints must differ in topologyKey or whenUnsatisfiable: keep the one with the smaller maxSkew"},
	},
}
