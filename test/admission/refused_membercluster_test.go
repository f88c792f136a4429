//go:build integration

package admission

import "strings"

// identity is an edit of who a member's agents are, taint one of its taints.
func identity(fields string) string { return "spec: {identity: {" + fields + "}}" }

func taints(items string) string { return "spec: {taints: [" + items + "]}" }

var memberTable = table{
	base: `
apiVersion: cluster.kubernetes-fleet.io/v1
kind: MemberCluster
metadata: {name: refused}
spec: {identity: {kind: User, apiGroup: rbac.authorization.k8s.io, name: refused}}
`,
	created: map[string]refusal{
		"a member has an identity": {edit: spec("identity: null"), message: "spec.identity: Required value"},
		"an identity is a user, a group or a service account": {
			edit: identity("kind: Robot"), fine: identity("kind: Group"), message: "identity.kind must be User, Group or ServiceAccount"},
		"a service account is in a namespace": {
			edit: identity("kind: ServiceAccount, apiGroup: null"), fine: identity("kind: ServiceAccount, apiGroup: null, namespace: fleet-system"),
			message: "identity.namespace is required for kind ServiceAccount: name the namespace the service account is in"},
		"a user is of the API group of RBAC": {
			edit: identity("apiGroup: example.com"), fine: identity("apiGroup: null, namespace: fleet-system"),
			message: "identity.apiGroup must be rbac.authorization.k8s.io for kinds User and Group, and empty for ServiceAccount"},
		"a service account is of no API group": {
			edit:    identity("kind: ServiceAccount, namespace: fleet-system"),
			message: "identity.apiGroup must be rbac.authorization.k8s.io for kinds User and Group, and empty for ServiceAccount"},
		"an identity has a name": {
			edit: identity("name: ''"), message: "identity.name is required: name the user, group or service account the member's agents log in with"},
		"a service account is no user": {
			edit: identity("name: 'system:serviceaccount:fleet-system:refused'"), fine: identity("kind: ServiceAccount, apiGroup: null, namespace: fleet-system"),
			message: "identity.kind must be ServiceAccount for a service account: of system:serviceaccount:<namespace>:<name>, set identity.namespace and identity.name, and leave identity.apiGroup out"},
		"an identity is no part of Kubernetes": {
			edit: identity("name: 'system:node:n1'"), fine: identity("name: 'systems'"),
			message: "identity.name must not begin with system: for kinds User and Group"},
		"an identity is not every user": {
			edit: identity("kind: Group, name: 'system:authenticated'"), fine: identity("kind: Group, name: members"),
			message: "identity.name must not begin with system: for kinds User and Group"},
		"an identity is not every service account of a namespace": {
			edit:    identity("kind: Group, name: 'system:serviceaccounts:fleet-system'"),
			message: "identity.name must not begin with system: for kinds User and Group"},
		"an identity has the field of a name": {edit: identity("name: null"), message: "spec.identity.name: Required value"},
		"an identity has a kind":              {edit: identity("kind: null"), message: "spec.identity.kind: Required value"},
		"a heartbeat takes at least a second": {
			edit: spec("heartbeatPeriodSeconds: 0"), fine: spec("heartbeatPeriodSeconds: 1"),
			message: "spec.heartbeatPeriodSeconds in body should be greater than or equal to 1"},
		"a heartbeat takes at most ten minutes": {
			edit: spec("heartbeatPeriodSeconds: 601"), fine: spec("heartbeatPeriodSeconds: 600"),
			message: "spec.heartbeatPeriodSeconds in body should be less than or equal to 600"},
		"a member's namespace has a name of 63 characters": {
			edit: "metadata: {name: " + strings.Repeat("a", 51) + "}", fine: "metadata: {name: " + strings.Repeat("a", 50) + "}",
			message: "metadata.name can have 50 characters here: the member's namespace is fleet-member-<name>, and a namespace has at most 63; choose a shorter name"},
		"a member's name has no dots": {
			edit: "metadata: {name: east.1}", fine: "metadata: {name: east-1}",
			message: "metadata.name must be lower case letters, digits and '-' only: the member's namespace is fleet-member-<name>, and a namespace has no dots"},
		"a taint is there once": {
			edit: taints("{key: a, effect: NoSchedule}, {key: a, effect: NoSchedule}"),
			fine: taints("{key: a, effect: NoSchedule}, {key: b, effect: NoSchedule}"), message: "taints must be unique: remove the repeated taint"},
		"a taint has a key":     {edit: taints("{effect: NoSchedule}"), message: "spec.taints[0].key: Required value"},
		"a taint has an effect": {edit: taints("{key: a}"), message: "spec.taints[0].effect: Required value"},
		"a taint's effect is one of three": {
			edit: taints("{key: a, effect: Evict}"), fine: taints("{key: a, effect: NoExecute}"), message: `Unsupported value: "Evict": supported values: "NoSchedule", "PreferNoSchedule", "NoExecute"`},
		"a taint's key is one of a label": {
			edit: taints("{key: 'a b', effect: NoSchedule}"), fine: taints("{key: example.com/a, effect: NoSchedule}"),
			message: "the key of a taint must have the form of a label key, such as example.com/dedicated"},
		"a taint's key is not empty": {
			edit:    taints("{key: '', effect: NoSchedule}"),
			message: "the key of a taint must have the form of a label key, such as example.com/dedicated"},
		"a taint's value is one of a label": {
			edit: taints("{key: a, value: 'b c', effect: NoSchedule}"), fine: taints("{key: a, value: b, effect: NoSchedule}"),
			message: "the value of a taint must have the form of a label value: letters, digits, '-', '_' and '.', beginning and ending with a letter or digit"},
		"there are at most 100 taints": {
			edit: taints(many(101, "{key: k#, effect: NoSchedule}")), fine: taints(many(100, "{key: k#, effect: NoSchedule}")),
			message: "spec.taints: Too many: 101: must have at most 100 items"},
		"leaving is checked or not": {
			edit: spec("deleteOptions: {validationMode: Loose}"), fine: spec("deleteOptions: {validationMode: Skip}"),
			message: `Unsupported value: "Loose": supported values: "Skip", "Strict"`},
		"a state is not for people to set": {
			edit: spec("state: Join"), message: `unknown field "spec.state"`},
	},
	status: map[string]refusal{
		"an agent has a type": {
			edit: "agentStatus: [{conditions: []}]", fine: "agentStatus: [{type: MemberAgent}]",
			message: "status.agentStatus[0].type: Required value"},
		"a property has a time": {
			edit:    "properties: {a: {value: '1'}}",
			fine:    "properties: {a: {value: '1', observationTime: '2025-01-01T00:00:00Z'}}",
			message: "status.properties.a.observationTime: Required value"},
		"a cluster is busy until a time": {
			edit: "busy: {since: '2025-01-01T00:00:00Z', message: month-end}", fine: "busy: {since: '2025-01-01T00:00:00Z', until: '2025-01-01T01:00:00Z'}",
			message: "status.busy.until: Required value"},
		"an amount is a quantity": {
			edit: "resourceUsage: {capacity: {cpu: many}}", fine: "resourceUsage: {capacity: {cpu: 100m}}",
			message: `status.resourceUsage.capacity.cpu: Invalid value: "many": resourceUsage.capacity.cpu in body should match`},
	},
}

var internalMemberTable = table{
	base: `
apiVersion: cluster.kubernetes-fleet.io/v1
kind: InternalMemberCluster
metadata: {name: refused, namespace: default}
spec: {state: Join}
`,
	created: map[string]refusal{
		"an internal member has a state": {edit: spec("state: null"), message: "spec.state: Required value"},
		"an internal member joins or leaves": {
			edit: spec("state: Stay"), fine: spec("state: Leave"), message: `Unsupported value: "Stay": supported values: "Join", "Leave"`},
		"an internal member's heartbeat takes at most ten minutes": {
			edit: spec("heartbeatPeriodSeconds: 601"), message: "spec.heartbeatPeriodSeconds in body should be less than or equal to 600"},
	},
}
