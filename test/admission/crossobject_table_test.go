//go:build integration

package admission

const (
	aRole      = `[{group: rbac.authorization.k8s.io, version: v1, kind: ClusterRole, name: secret-reader}]`
	aRoleBeta  = `[{group: rbac.authorization.k8s.io, version: v1beta1, kind: ClusterRole, name: secret-reader}]`
	aNamespace = `[{group: "", version: v1, kind: Namespace, name: secret-reader}]`
	aConfigMap = `[{group: "", version: v1, kind: ConfigMap, name: settings}]`

	held = `, finalizers: [example.com/held]`
)

func clusterOverride(name, selectors string) string {
	return `{apiVersion: placement.kubernetes-fleet.io/v1beta1, kind: ClusterResourceOverride, metadata: {name: ` + name + `}, spec: {clusterResourceSelectors: ` +
		selectors + `, policy: {overrideRules: [{clusterSelector: {clusterSelectorTerms: []}, jsonPatchOverrides: [{op: remove, path: /metadata/labels/a}]}]}}}`
}

func override(namespace, name, selectors string) string {
	return `{apiVersion: placement.kubernetes-fleet.io/v1alpha1, kind: ResourceOverride, metadata: {namespace: ` + namespace + `, name: ` + name + `}, spec: {resourceSelectors: ` +
		selectors + `, policy: {overrideRules: [{clusterSelector: {clusterSelectorTerms: []}, jsonPatchOverrides: [{op: remove, path: /metadata/labels/a}]}]}}}`
}

func clusterRun(name string) string {
	return `{apiVersion: placement.kubernetes-fleet.io/v1, kind: ClusterStagedUpdateRun, metadata: {name: ` + name + `},
		spec: {placementName: web, stagedRolloutStrategyName: gated}}`
}

func placementOf(meta, policy string) string {
	return `{apiVersion: placement.kubernetes-fleet.io/v1beta1, kind: ClusterResourcePlacement, metadata: {` + meta +
		`}, spec: {resourceSelectors: [{group: "", version: v1, kind: Namespace, name: web}]` + policy + `}}`
}

func eviction(version, placement string) string {
	return `{apiVersion: placement.kubernetes-fleet.io/` + version + `, kind: ClusterResourcePlacementEviction, metadata: {name: e}, spec: {placementName: ` +
		placement + `, clusterName: member-1}}`
}

func budget(name, spec string) string {
	return `{apiVersion: placement.kubernetes-fleet.io/v1beta1, kind: ClusterResourcePlacementDisruptionBudget, metadata: {name: ` + name + `}, spec: ` + spec + `}`
}

var contradictions = map[string]contradiction{
	"an object that a cluster-scoped override selects": {
		there:   []standing{{manifest: clusterOverride("mine", aRole)}},
		refused: clusterOverride("theirs", aRoleBeta),
		message: "invalid resource selector rbac.authorization.k8s.io/ClusterRole secret-reader: the resource has been selected by both theirs and mine, " +
			"which is not supported: remove it from one of them",
		admitted: []string{clusterOverride("theirs", aNamespace)},
	},
	"an object that a cluster-scoped override being deleted selects": {
		there: []standing{
			{manifest: clusterOverride("leaving"+held, aRole), deleted: true},
			{manifest: clusterOverride("mine", aNamespace)},
		},
		refused:  clusterOverride("theirs", aNamespace),
		message:  "invalid resource selector Namespace secret-reader: the resource has been selected by both theirs and mine",
		admitted: []string{clusterOverride("theirs", aRole)},
	},
	"an object that a namespaced override selects": {
		there:    []standing{{manifest: override("default", "mine", aConfigMap)}},
		refused:  override("default", "theirs", aConfigMap),
		message:  "invalid resource selector ConfigMap settings: the resource has been selected by both theirs and mine, which is not supported",
		admitted: []string{override("kube-public", "theirs", aConfigMap), override("default", "mine2", `[{group: "", version: v1, kind: Secret, name: settings}]`)},
	},
	"the eviction of a placement on named clusters": {
		there: []standing{
			{manifest: placementOf("name: everywhere", "")},
			{manifest: placementOf("name: pinned", ", policy: {placementType: PickFixed, clusterNames: [member-1]}")},
		},
		refused: eviction("v1alpha1", "pinned"),
		message: "cluster resource placement policy type PickFixed is not supported: remove member-1 from spec.policy.clusterNames of cluster " +
			"resource placement pinned instead",
		admitted: []string{eviction("v1", "everywhere"), eviction("v1beta1", "unknown")},
	},
	"the eviction of a placement that is being deleted": {
		there:    []standing{{manifest: placementOf("name: leaving"+held, ""), deleted: true}},
		refused:  eviction("v1beta1", "leaving"),
		message:  "cluster resource placement leaving is being deleted: it leaves cluster member-1 by itself, an eviction is not needed",
		admitted: []string{eviction("v1beta1", "unknown")},
	},
	"a budget of clusters that may be missing, of a placement on all": {
		there: []standing{
			{manifest: placementOf("name: some", ", policy: {placementType: PickN, numberOfClusters: 2}")},
			{manifest: placementOf("name: everywhere", ", policy: {placementType: PickAll}")},
		},
		refused:  budget("everywhere", "{maxUnavailable: 1}"),
		message:  "cluster resource placement policy type PickAll is not supported with any specified max unavailable 1: use spec.minAvailable with a number of clusters instead",
		admitted: []string{budget("everywhere", "{minAvailable: 2}"), budget("some", "{maxUnavailable: 1}"), budget("some", "{minAvailable: 50%}"), budget("unknown", "{maxUnavailable: 1}")},
	},
	"a budget with a percentage of clusters, of a placement without a policy": {
		there:    []standing{{manifest: placementOf("name: everywhere", "")}},
		refused:  budget("everywhere", "{minAvailable: 50%}"),
		message:  "cluster resource placement policy type PickAll is not supported with min available as a percentage 50%: use a number of clusters instead",
		admitted: []string{budget("everywhere", "{minAvailable: 2}")},
	},
}
