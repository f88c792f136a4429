//go:build integration

package admission

import "strings"

var tooLong = strings.Repeat("a", 256)

// data is an edit of what an envelope holds.
func data(items string) string { return "data: {" + items + "}" }

var clusterEnvelopeTable = table{
	base: `
apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: ClusterResourceEnvelope
metadata: {name: refused}
data: {webhook.yaml: {apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: guard}}}
`,
	created: map[string]refusal{
		"an envelope has data": {edit: "data: null", message: "data: Required value"},
		"an envelope is not empty": {
			edit: "data: {webhook.yaml: null}", message: "data cannot be empty: put at least one object into it, under a key such as deployment.yaml"},
		"an envelope has at most 50 objects": {
			edit:    data(many(50, "o#.yaml: {apiVersion: v1, kind: Namespace, metadata: {name: n#}}")),
			fine:    data(many(49, "o#.yaml: {apiVersion: v1, kind: Namespace, metadata: {name: n#}}")),
			message: "data: Too many: 51: must have at most 50 items"},
		"an object in an envelope has a name": {
			edit:    data("webhook.yaml: {metadata: {name: null, generateName: a-}}"),
			message: "the object under webhook.yaml has no name: set its metadata.name, generateName does not work here"},
		"an object in an envelope has a kind": {
			edit: data("webhook.yaml: {kind: null}"), message: "data[webhook.yaml].kind: Required value"},
		"an object in an envelope has a version": {
			edit: data("webhook.yaml: {apiVersion: null}"), message: "data[webhook.yaml].apiVersion: Required value"},
		"an object in an envelope is no text": {
			edit: data("webhook.yaml: 'kind: Namespace'"), message: `data.webhook.yaml in body must be of type object: "string"`},
		"an envelope has no spec": {edit: "spec: {}", message: `unknown field "spec"`},
	},
}

var envelopeTable = table{
	base: `
apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: ResourceEnvelope
metadata: {name: refused, namespace: default}
data: {quota.yaml: {apiVersion: v1, kind: ResourceQuota, metadata: {name: quota}}}
`,
	created: map[string]refusal{
		"an envelope of a namespace is not empty": {
			edit: "data: {quota.yaml: null}", message: "data cannot be empty: put at least one object into it, under a key such as deployment.yaml"},
		"an object in an envelope of a namespace has a name": {
			edit: data("quota.yaml: {metadata: null}"), message: "the object under quota.yaml has no name: set its metadata.name, generateName does not work here"},
	},
}
