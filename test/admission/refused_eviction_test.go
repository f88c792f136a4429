//go:build integration

package admission

var evictionTable = table{
	base: `
apiVersion: placement.kubernetes-fleet.io/v1
kind: ClusterResourcePlacementEviction
metadata: {name: refused}
spec: {placementName: web, clusterName: member-1}
`,
	created: map[string]refusal{
		"an eviction names the placement": {edit: spec("placementName: null"), message: "spec.placementName: Required value"},
		"an eviction names the cluster":   {edit: spec("clusterName: null"), message: "spec.clusterName: Required value"},
		"an eviction's placement is not empty": {
			edit: spec("placementName: ''"), message: "spec.placementName in body should be at least 1 chars long"},
		"an eviction's cluster is not empty": {
			edit: spec("clusterName: ''"), message: "spec.clusterName in body should be at least 1 chars long"},
		"an eviction's placement is at most 255 long": {
			edit: spec("placementName: " + tooLong), message: "spec.placementName: Too long: may not be more than 255"},
		"an eviction's cluster is at most 255 long": {
			edit: spec("clusterName: " + tooLong), message: "spec.clusterName: Too long: may not be more than 255"},
		"an eviction is of one cluster": {
			edit: spec("clusterNames: [a, b]"), message: `unknown field "spec.clusterNames"`},
	},
	updated: map[string]change{
		"an eviction's cluster stays": {
			edit: spec("clusterName: member-2"), fine: "metadata: {labels: {a: b}}", message: evictedOnce},
		"an eviction's placement stays": {edit: spec("placementName: api"), message: evictedOnce},
	},
}

const evictedOnce = "The spec field is immutable: an eviction is tried once; create another eviction, or delete this one and create it anew"

var budgetTable = table{
	base: `
apiVersion: placement.kubernetes-fleet.io/v1
kind: ClusterResourcePlacementDisruptionBudget
metadata: {name: refused}
spec: {maxUnavailable: 1}
`,
	created: map[string]refusal{
		"a budget has one bound": {
			edit: spec("minAvailable: 1"), fine: spec("minAvailable: 1, maxUnavailable: null"),
			message: "Both MaxUnavailable and MinAvailable cannot be specified: remove one of them"},
		"a budget has a bound": {
			edit:    spec("maxUnavailable: null"),
			message: "Either MaxUnavailable or MinAvailable must be specified: add one of them, for example minAvailable: 1"},
		"no less than none may be down": {
			edit: spec("maxUnavailable: -1"), fine: spec("maxUnavailable: 0"), message: "maxUnavailable must be at least 0"},
		"no less than none stay up": {
			edit: spec("maxUnavailable: null, minAvailable: -1"), fine: spec("maxUnavailable: null, minAvailable: 0"),
			message: "minAvailable must be at least 0"},
		"no more than all may be down": {
			edit: spec("maxUnavailable: 101%"), fine: spec("maxUnavailable: 100%"),
			message: "spec.maxUnavailable in body should match '^(100|[0-9]{1,2})%$'"},
		"a bound is in no quotes": {
			edit: spec("maxUnavailable: '1'"), message: "spec.maxUnavailable in body should match '^(100|[0-9]{1,2})%$'"},
		"no more than all stay up": {
			edit: spec("maxUnavailable: null, minAvailable: 101%"), fine: spec("maxUnavailable: null, minAvailable: 100%"),
			message: "spec.minAvailable in body should match '^(100|[0-9]{1,2})%$'"},
		"a bound is no part of a cluster": {
			edit: spec("maxUnavailable: 1.5"), message: "spec.maxUnavailable in body must be of type integer,string", reasons: 4},
		"a budget has the name of its placement, and no field for it": {
			edit: spec("placementName: web"), message: `unknown field "spec.placementName"`},
	},
	updated: map[string]change{
		"a bound is not added to the other": {
			edit: spec("minAvailable: 1"), fine: spec("maxUnavailable: 2"),
			message: "Both MaxUnavailable and MinAvailable cannot be specified: remove one of them"},
	},
}
