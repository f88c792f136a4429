//go:build integration

package admission

// rules is an edit of the rules of an override, rule one that leaves it a single one.
func rules(items string) string { return "spec: {policy: {overrideRules: [" + items + "]}}" }

func rule(fields string) string {
	return rules("{clusterSelector: {clusterSelectorTerms: []}, " + fields + "}")
}

// patch is an edit that leaves an override one operation.
func patch(operation string) string { return rule("jsonPatchOverrides: [" + operation + "]") }

const (
	clusterOverrideBase = `
apiVersion: placement.kubernetes-fleet.io/v1
kind: ClusterResourceOverride
metadata: {name: refused}
spec:
  clusterResourceSelectors: [{group: rbac.authorization.k8s.io, version: v1, kind: ClusterRole, name: reader}]
  policy: {overrideRules: [{clusterSelector: {clusterSelectorTerms: []}, overrideType: Delete}]}
`
	oneRule = "{clusterSelector: {clusterSelectorTerms: []}, overrideType: Delete}"
)

// clusterRoles is an edit of what a ClusterResourceOverride selects.
func clusterRoles(fields ...string) string {
	text := ""
	for i, f := range fields {
		if i > 0 {
			text += ", "
		}
		text += "{group: rbac.authorization.k8s.io, version: v1, kind: ClusterRole, " + f + "}"
	}
	return "spec: {clusterResourceSelectors: [" + text + "]}"
}

var clusterOverrideTable = table{
	base: clusterOverrideBase,
	created: map[string]refusal{
		"an override does not select by label": {
			edit:    clusterRoles("name: reader, labelSelector: {matchLabels: {a: b}}"),
			message: "label selector is not supported for resource selection: remove labelSelector and select each object by its name",
			reasons: 2}, // one more says that a name and labels exclude each other
		"an override selects something": {
			edit: "spec: {clusterResourceSelectors: []}", message: "spec.clusterResourceSelectors in body should have at least 1 items"},
		"an override has the list of selectors": {
			edit: "spec: {clusterResourceSelectors: null}", message: "spec.clusterResourceSelectors: Required value"},
		"an override selects at most 20 resources": {
			edit:    "spec: {clusterResourceSelectors: [" + many(21, "{group: '', version: v1, kind: Namespace, name: n#}") + "]}",
			fine:    "spec: {clusterResourceSelectors: [" + many(20, "{group: '', version: v1, kind: Namespace, name: n#}") + "]}",
			message: "spec.clusterResourceSelectors: Too many: 21: must have at most 20 items"},
		"an override selects by name": {
			edit:    clusterRoles("selectionScope: NamespaceOnly"),
			message: "resource name is required for resource selection: give every selector a name, and every object a selector of its own"},
		"an override selects a resource once": {
			edit: clusterRoles("name: reader", "name: reader"), fine: clusterRoles("name: reader", "name: writer"),
			message: selectedTwice},
		"a resource of another version is the same": {
			edit:    "spec: {clusterResourceSelectors: [{group: '', version: v1, kind: Namespace, name: web}, {group: '', version: v2, kind: Namespace, name: web}]}",
			message: selectedTwice},
		"an override of cluster-scoped resources refers to no namespaced placement": {
			edit: "spec: {placement: {name: web, scope: Namespaced}}", fine: "spec: {placement: {name: web, scope: Cluster}}",
			message: "clusterResourceOverride placement reference cannot be Namespaced scope: remove scope to refer to a ClusterResourcePlacement, or use a ResourceOverride"},
		"a referenced placement has a name": {
			edit: "spec: {placement: {}}", message: "spec.placement.name: Required value"},
		"a referenced placement's name is not empty": {
			edit: "spec: {placement: {name: ''}}", message: "spec.placement.name in body should be at least 1 chars long"},
		"a referenced placement's scope is one of two": {
			edit: "spec: {placement: {name: web, scope: Global}}", message: `Unsupported value: "Global": supported values: "Cluster", "Namespaced"`},
		"an override has a policy":          {edit: "spec: {policy: null}", message: "spec.policy: Required value"},
		"an override has the list of rules": {edit: "spec: {policy: {overrideRules: null}}", message: "spec.policy.overrideRules: Required value"},
		"an override has a rule":            {edit: rules(""), message: "spec.policy.overrideRules in body should have at least 1 items"},
		"an override has at most 20 rules": {
			edit: rules(many(21, oneRule)), fine: rules(many(20, oneRule)),
			message: "spec.policy.overrideRules: Too many: 21: must have at most 20 items"},
		"clusters are not selected by property": {
			edit:    rules("{overrideType: Delete, clusterSelector: {clusterSelectorTerms: [{propertySelector: {matchExpressions: [{name: a, operator: Ge, values: ['1']}]}}]}}"),
			fine:    rules("{overrideType: Delete, clusterSelector: {clusterSelectorTerms: [{labelSelector: {matchLabels: {env: prod}}}]}}"),
			message: "only labelSelector is supported: remove propertySelector and propertySorter, overrides pick clusters by their labels"},
		"clusters are not sorted by property": {
			edit:    rules("{overrideType: Delete, clusterSelector: {clusterSelectorTerms: [{propertySorter: {name: a, sortOrder: Ascending}}]}}"),
			message: "only labelSelector is supported: remove propertySelector and propertySorter, overrides pick clusters by their labels"},
		"an override is of one of two types": {
			edit: rule("overrideType: Merge"), message: `Unsupported value: "Merge": supported values: "JSONPatch", "Delete"`},
		"what is deleted is not patched": {
			edit:    rule("overrideType: Delete, jsonPatchOverrides: [{op: add, path: /metadata/labels/a, value: b}]"),
			message: "JSONPatchOverrides cannot be set when the override type is Delete: remove jsonPatchOverrides, or set overrideType to JSONPatch"},
		"what is patched has a patch": {
			edit: rule("overrideType: JSONPatch"), fine: rule("overrideType: Delete"),
			message: "JSONPatchOverrides cannot be empty when the override type is JSONPatch: add an operation to jsonPatchOverrides, or set overrideType to Delete"},
		"a rule without a type is a patch": {
			edit:    "spec: {policy: {overrideRules: [{clusterSelector: {clusterSelectorTerms: []}}]}}",
			message: "JSONPatchOverrides cannot be empty when the override type is JSONPatch: add an operation to jsonPatchOverrides, or set overrideType to Delete"},
	},
	updated: map[string]change{
		"a referenced placement stays": {
			before: "spec: {placement: {name: web}}", edit: "spec: {placement: {name: api}}", message: placementStays},
		"a referenced placement is not removed": {
			before: "spec: {placement: {name: web}}", edit: "spec: {placement: null}",
			fine: rule("overrideType: Delete"), message: placementStays},
		"a reference is not added": {edit: "spec: {placement: {name: web}}", message: placementStays},
	},
}

const placementStays = "The placement field is immutable: keep it as it was created, with or without a placement, or create another override"

const selectedTwice = "resource selector already exists, and must be unique: two selectors name the same group, kind and name, remove one of them"

// deployments is an edit of what a ResourceOverride selects.
func deployments(items string) string { return "spec: {resourceSelectors: [" + items + "]}" }

var resourceOverrideTable = table{
	base: `
apiVersion: placement.kubernetes-fleet.io/v1
kind: ResourceOverride
metadata: {name: refused, namespace: default}
spec:
  resourceSelectors: [{group: apps, version: v1, kind: Deployment, name: web}]
  policy: {overrideRules: [{clusterSelector: {clusterSelectorTerms: []}, overrideType: Delete}]}
`,
	created: map[string]refusal{
		"a selector of an override has a name": {
			edit: deployments("{group: apps, version: v1, kind: Deployment}"), message: "spec.resourceSelectors[0].name: Required value"},
		"a selector of an override has a name that is not empty": {
			edit:    deployments("{group: apps, version: v1, kind: Deployment, name: ''}"),
			message: "resource name is required for resource selection: give every selector a name, and every object a selector of its own"},
		"a ResourceOverride has no field for labels": {
			edit:    deployments("{group: apps, version: v1, kind: Deployment, name: web, labelSelector: {}}"),
			message: `unknown field "spec.resourceSelectors[0].labelSelector"`},
		"a ResourceOverride selects in its own namespace": {
			edit:    deployments("{group: apps, version: v1, kind: Deployment, name: web, namespace: other}"),
			message: `unknown field "spec.resourceSelectors[0].namespace"`},
		"a ResourceOverride selects a resource once": {
			edit:    deployments("{group: apps, version: v1, kind: Deployment, name: web}, {group: apps, version: v1, kind: Deployment, name: web}"),
			fine:    deployments("{group: apps, version: v1, kind: Deployment, name: web}, {group: apps, version: v1, kind: Deployment, name: api}"),
			message: selectedTwice},
		"a ResourceOverride selects at most 20 resources": {
			edit:    deployments(many(21, "{group: apps, version: v1, kind: Deployment, name: w#}")),
			message: "spec.resourceSelectors: Too many: 21: must have at most 20 items"},
		"a ResourceOverride has no list of cluster-scoped resources": {
			edit: "spec: {clusterResourceSelectors: []}", message: `unknown field "spec.clusterResourceSelectors"`},
		"a ResourceOverride's reference has a scope of two": {
			edit: "spec: {placement: {name: web, scope: Global}}", fine: "spec: {placement: {name: web, scope: Namespaced}}",
			message: `Unsupported value: "Global": supported values: "Cluster", "Namespaced"`},
	},
	updated: map[string]change{
		"a ResourceOverride keeps its placement": {
			before: "spec: {placement: {name: web}}", edit: "spec: {placement: {name: api}}", message: placementStays},
		"a ResourceOverride keeps the scope of its placement": {
			before: "spec: {placement: {name: web}}", edit: "spec: {placement: {scope: Namespaced}}", message: placementStays},
	},
}

var patchTable = table{
	base: clusterOverrideBase,
	created: map[string]refusal{
		"an operation is one of three": {
			edit:    patch("{op: copy, path: /spec/a, value: b}"),
			message: `Unsupported value: "copy": supported values: "add", "remove", "replace"`},
		"an operation has a name": {edit: patch("{path: /spec/a, value: b}"), message: ".op: Required value"},
		"an operation has a path": {edit: patch("{op: add, value: b}"), message: ".path: Required value"},
		"a path is not empty": {
			edit: patch("{op: add, path: '', value: b}"), message: "path cannot be empty: name the field, such as /metadata/labels/team"},
		"a path starts with a slash": {
			edit: patch("{op: add, path: spec/a, value: b}"), fine: patch("{op: add, path: /spec/a, value: b}"),
			message: "path must start with /: write a slash before every name on the way, such as /spec/replicas"},
		"a path is not the whole object": {
			edit: patch("{op: add, path: /, value: b}"), message: "path cannot contain empty string: write one slash between names, and none at the end"},
		"a path has no empty name inside": {
			edit: patch("{op: add, path: /spec//a, value: b}"), message: "path cannot contain empty string: write one slash between names, and none at the end"},
		"a path does not end with a slash": {
			edit: patch("{op: add, path: /spec/a/, value: b}"), message: "path cannot contain empty string: write one slash between names, and none at the end"},
		"the kind stays": {
			edit: patch("{op: replace, path: /kind, value: Role}"), message: typeMeta},
		"the version stays": {
			edit: patch("{op: replace, path: /apiVersion, value: v2}"), message: typeMeta},
		"what only begins like a kind may change": {
			edit: patch("{op: remove, path: /kind}"), fine: patch("{op: remove, path: /kinds}"), message: typeMeta},
		"the status stays": {
			edit: patch("{op: add, path: /status/phase, value: b}"), message: "cannot override status fields: the cluster sets them; override the spec"},
		"the whole status stays": {
			edit: patch("{op: remove, path: /status}"), fine: patch("{op: remove, path: /spec/status}"),
			message: "cannot override status fields: the cluster sets them; override the spec"},
		"the name stays":      {edit: patch("{op: replace, path: /metadata/name, value: b}"), message: metadata},
		"the namespace stays": {edit: patch("{op: replace, path: /metadata/namespace, value: b}"), message: metadata},
		"the metadata stay":   {edit: patch("{op: replace, path: /metadata, value: {name: b}}"), message: metadata},
		"the finalizers stay": {edit: patch("{op: add, path: /metadata/finalizers/0, value: b}"), message: metadata},
		"labels are not labelsX": {
			edit: patch("{op: add, path: /metadata/labelsX, value: b}"), fine: patch("{op: add, path: /metadata/labels/x, value: b}"), message: metadata},
		"annotations are spelled so": {
			edit:    patch("{op: add, path: /metadata/annotation/x, value: b}"),
			fine:    patch("{op: add, path: /metadata/annotations/x, value: b}"),
			message: metadata},
		"a slash in a label's key is written ~1": {
			edit:    patch("{op: add, path: /metadata/labels/example.com/team, value: b}"),
			fine:    patch("{op: add, path: /metadata/labels/example.com~1team, value: b}"),
			message: "path goes on after the key of a label or annotation: write a slash inside the key as ~1, such as /metadata/labels/example.com~1team"},
		"a tilde is written ~0": {
			edit: patch("{op: add, path: /spec/a~b, value: b}"), fine: patch("{op: add, path: /spec/a~0b, value: b}"),
			message: "path has a ~ that is followed by neither 0 nor 1: inside a name, write ~0 for a tilde and ~1 for a slash"},
		"a slash between names is written as it is": {
			edit:    patch("{op: add, path: /spec~1a, value: b}"),
			message: "path starts with a name that has a slash or tilde inside, and no object has such a field: write the slashes between names as they are"},
		"what is removed has no value": {
			edit: patch("{op: remove, path: /spec/a, value: b}"), fine: patch("{op: remove, path: /spec/a}"),
			message: "remove operation cannot have value: remove value, or set op to replace"},
		"what is added has a value": {
			edit: patch("{op: add, path: /spec/a}"), fine: patch("{op: add, path: /spec/a, value: ''}"),
			message: "add operation needs a value, and null is none: set value, or set op to remove to clear the field"},
		"what is replaced has a value": {
			edit: patch("{op: replace, path: /spec/a}"), fine: patch("{op: replace, path: /spec/a, value: {b: [1]}}"),
			message: "replace operation needs a value, and null is none: set value, or set op to remove to clear the field"},
		"a patch has an operation": {
			edit: patch(""), message: "jsonPatchOverrides in body should have at least 1 items"},
		"a patch has at most 20 operations": {
			edit: patch(many(21, "{op: remove, path: /spec/a#}")), fine: patch(many(20, "{op: remove, path: /spec/a#}")),
			message: "jsonPatchOverrides: Too many: 21: must have at most 20 items"},
	},
}

const (
	typeMeta = "cannot override typeMeta fields: take /apiVersion and /kind out; to place another kind of object, place that one"
	metadata = "cannot override metadata fields except annotations and labels: use a path that starts with /metadata/annotations or /metadata/labels"
)

var overrideSnapshotTable = table{
	base: `
apiVersion: placement.kubernetes-fleet.io/v1
kind: ClusterResourceOverrideSnapshot
metadata: {name: refused}
spec:
  overrideHash: aGFzaA==
  overrideSpec:
    clusterResourceSelectors: [{group: rbac.authorization.k8s.io, version: v1, kind: ClusterRole, name: reader}]
    policy: {overrideRules: [{clusterSelector: {clusterSelectorTerms: []}, overrideType: Delete}]}
`,
	created: map[string]refusal{
		"a snapshot of an override has a hash": {edit: spec("overrideHash: null"), message: "spec.overrideHash: Required value"},
		"a snapshot of an override has a spec": {edit: spec("overrideSpec: null"), message: "spec.overrideSpec: Required value"},
	},
	updated: map[string]change{
		"a snapshot of an override stays": {
			edit: spec("overrideSpec: {policy: {overrideRules: [" + many(2, oneRule) + "]}}"), fine: "metadata: {labels: {a: b}}", message: immutable},
		"a snapshot's hash stays": {edit: spec("overrideHash: b3RoZXI="), message: immutable},
	},
}
