//go:build integration

package admission

import (
	"strconv"
	"strings"
)

const (
	aRole      = `[{group: rbac.authorization.k8s.io, version: v1, kind: ClusterRole, name: secret-reader}]`
	aRoleBeta  = `[{group: rbac.authorization.k8s.io, version: v1beta1, kind: ClusterRole, name: secret-reader}]`
	aNamespace = `[{group: "", version: v1, kind: Namespace, name: secret-reader}]`
	aConfigMap = `[{group: "", version: v1, kind: ConfigMap, name: settings}]`

	held        = `, finalizers: [example.com/held]`
	statusOfEnd = `{status: {conditions: [{type: TYPE, status: STATUS, reason: Ended, message: "", lastTransitionTime: "2026-01-02T03:04:05Z"}]}}`
)

func clusterOverride(name, selectors string) string {
	return `{apiVersion: placement.kubernetes-fleet.io/v1beta1, kind: ClusterResourceOverride, metadata: {name: ` + name + `}, spec: {clusterResourceSelectors: ` +
		selectors + `, policy: {overrideRules: [{clusterSelector: {clusterSelectorTerms: []}, jsonPatchOverrides: [{op: remove, path: /metadata/labels/a}]}]}}}`
}

func override(namespace, name, selectors string) string {
	return `{apiVersion: placement.kubernetes-fleet.io/v1alpha1, kind: ResourceOverride, metadata: {namespace: ` + namespace + `, name: ` + name + `}, spec: {resourceSelectors: ` +
		selectors + `, policy: {overrideRules: [{clusterSelector: {clusterSelectorTerms: []}, jsonPatchOverrides: [{op: remove, path: /metadata/labels/a}]}]}}}`
}

func endedAs(condition, status string) string {
	return strings.NewReplacer("TYPE", condition, "STATUS", strconv.Quote(status)).Replace(statusOfEnd)
}

func runOf(kind, meta, placement, strategy string) string {
	return `{apiVersion: placement.kubernetes-fleet.io/v1, kind: ` + kind + `, metadata: {` + meta + `}, spec: {placementName: ` + placement +
		`, stagedRolloutStrategyName: ` + strategy + `}}`
}

func clusterRun(meta, placement, strategy string) string {
	return runOf("ClusterStagedUpdateRun", meta, placement, strategy)
}

func namespacedRun(meta, placement, strategy string) string {
	return runOf("StagedUpdateRun", meta, placement, strategy)
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

// rollbackOf is a run of a kind that takes back another run of placement web with strategy gated.
func rollbackOf(kind, metadata, of string) string {
	return `{apiVersion: placement.kubernetes-fleet.io/v1beta1, kind: ` + kind + `, metadata: {` + metadata + `},
		spec: {placementName: web, stagedRolloutStrategyName: gated, rollbackOf: ` + of + `}}`
}

var contradictions = map[string]contradiction{
	"an object that a cluster-scoped override selects": {
		there:   []standing{{manifest: clusterOverride("mine", aRole)}},
		refused: clusterOverride("theirs", aRoleBeta),
		message: "invalid resource selector rbac.authorization.k8s.io/ClusterRole secret-reader: the resource has been selected by both theirs and mine, " +
			"which is not supported: remove it from one of them",
		admitted: []string{clusterOverride("theirs", aNamespace)},
	},
	"a run with a strategy that its placement does not allow": {
		there: []standing{
			{manifest: placementOf("name: limited", ", strategy: {type: External, external: {allowedStrategies: [gated, careful]}}")},
			{manifest: placementOf("name: open", ", strategy: {type: External}")},
		},
		refused: clusterRun("name: hasty", "limited", "hasty"),
		message: "clusterResourcePlacement `limited` does not allow runs with clusterStagedUpdateStrategy `hasty`: create the run with one of gated, careful, " +
			"or have a user who may change the placement add it to spec.strategy.external.allowedStrategies",
		admitted: []string{clusterRun("name: hasty", "limited", "careful"), clusterRun("name: hasty", "open", "hasty"), clusterRun("name: hasty", "elsewhere", "hasty")},
	},
	"a namespaced run with a strategy that its placement does not allow": {
		there: []standing{{manifest: `{apiVersion: placement.kubernetes-fleet.io/v1beta1, kind: ResourcePlacement, metadata: {namespace: default, name: limited},
			spec: {resourceSelectors: [{group: "", version: v1, kind: ConfigMap, name: web}], strategy: {type: External, external: {allowedStrategies: [gated]}}}}`}},
		refused:  namespacedRun("namespace: default, name: hasty", "limited", "hasty"),
		message:  "resourcePlacement `limited` does not allow runs with stagedUpdateStrategy `hasty`: create the run with one of gated",
		admitted: []string{namespacedRun("namespace: default, name: hasty", "limited", "gated"), namespacedRun("namespace: default, name: hasty", "open", "hasty")},
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
	"another strategy than that of an unfinished run": {
		there: []standing{
			{manifest: clusterRun("name: succeeded", "web", "s-succeeded"), status: endedAs("Succeeded", "True")},
			{manifest: clusterRun("name: failed", "web", "s-failed"), status: endedAs("Succeeded", "False")},
			{manifest: clusterRun("name: refused", "web", "s-refused"), status: endedAs("Initialized", "False")},
			{manifest: clusterRun("name: deleted"+held, "web", "s-deleted"), deleted: true},
			{manifest: clusterRun("name: elsewhere", "other", "s-other")},
			{manifest: clusterRun("name: running", "web", "three-stages"), status: endedAs("Initialized", "True")},
		},
		refused: clusterRun("name: rollback", "web", "at-once"),
		message: "invalid stagedRolloutStrategyName at-once for placement web: all concurrent runs of a placement must use the same strategy: " +
			"use three-stages, or wait for run running to end, or delete it",
		admitted: []string{clusterRun("name: rollback", "web", "three-stages"), clusterRun("name: rollback", "third", "at-once")},
	},
	"another strategy than that of an unfinished namespaced run": {
		there:    []standing{{manifest: namespacedRun("namespace: default, name: running", "web", "three-stages")}},
		refused:  namespacedRun("namespace: default, name: rollback", "web", "at-once"),
		message:  "all concurrent runs of a placement must use the same strategy: use three-stages, or wait for run running to end, or delete it",
		admitted: []string{namespacedRun("namespace: kube-public, name: rollback", "web", "at-once"), clusterRun("name: rollback", "web", "at-once")},
	},
	"a rollback of a rollback": {
		there: []standing{
			{manifest: clusterRun("name: bad", "web", "gated")},
			{manifest: rollbackOf("ClusterStagedUpdateRun", "name: bad-rollback", "bad"), status: endedAs("Succeeded", "True")},
		},
		refused: rollbackOf("ClusterStagedUpdateRun", "name: again", "bad-rollback"),
		message: "invalid rollbackOf bad-rollback: that run is a rollback itself, of bad: create a run with the resourceSnapshotIndex that the clusters are to have, " +
			"without rollbackOf",
		admitted: []string{rollbackOf("ClusterStagedUpdateRun", "name: again", "bad"), rollbackOf("ClusterStagedUpdateRun", "name: again", "nobody"), clusterRun("name: again", "web", "gated")},
	},
	"a rollback of a namespaced rollback": {
		there: []standing{
			{manifest: namespacedRun("namespace: default, name: bad", "web", "gated")},
			{manifest: rollbackOf("StagedUpdateRun", "namespace: default, name: bad-rollback", "bad"), status: endedAs("Succeeded", "True")},
		},
		refused:  rollbackOf("StagedUpdateRun", "namespace: default, name: again", "bad-rollback"),
		message:  "invalid rollbackOf bad-rollback: that run is a rollback itself, of bad",
		admitted: []string{rollbackOf("StagedUpdateRun", "namespace: default, name: again", "bad"), rollbackOf("StagedUpdateRun", "namespace: kube-public, name: again", "bad-rollback")},
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
