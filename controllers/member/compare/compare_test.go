package compare

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	require.NoError(t, err)
	out := &unstructured.Unstructured{}
	require.NoError(t, out.UnmarshalJSON(data))
	return out
}

// configMap is one with this further content.
func configMap(rest string) string {
	return "{apiVersion: v1, kind: ConfigMap, " + rest + "}"
}

func kind(apiVersion, kind, rest string) string {
	return fmt.Sprintf("{apiVersion: %s, kind: %s, %s}", apiVersion, kind, rest)
}

type detail = placementv1beta1.PatchDetail

func TestObjects(t *testing.T) {
	tests := map[string]struct {
		hub, member string
		want        []detail
	}{
		"objects that agree do not differ": {configMap("data: {x: '1'}"), configMap("data: {x: '1'}"), nil},
		"a label that somebody changed is told by its path and both values": {
			configMap("metadata: {labels: {owner: redfield}}"), configMap("metadata: {labels: {owner: wesker}}"),
			[]detail{{Path: "/metadata/labels/owner", ValueInHub: "redfield", ValueInMember: "wesker"}},
		},
		"each label and annotation is told by its path, also if the hub sets none": {
			configMap("metadata: {name: a}"), configMap("metadata: {name: a, labels: {owner: leon, team: b}, annotations: {note: x}}"),
			[]detail{
				{Path: "/metadata/annotations/note", ValueInMember: "x"},
				{Path: "/metadata/labels/owner", ValueInMember: "leon"}, {Path: "/metadata/labels/team", ValueInMember: "b"},
			},
		},
		"and if the cluster has none": {
			configMap("metadata: {name: a, labels: {owner: leon, team: b}, annotations: {note: x}}"), configMap("metadata: {name: a, labels: null}"),
			[]detail{
				{Path: "/metadata/annotations/note", ValueInHub: "x"},
				{Path: "/metadata/labels/owner", ValueInHub: "leon"}, {Path: "/metadata/labels/team", ValueInHub: "b"},
			},
		},
		"a field that only the cluster has has no value on the hub": {
			configMap("data: {x: '1'}"), configMap("data: {x: '1', w: '2'}"), []detail{{Path: "/data/w", ValueInMember: "2"}},
		},
		"a field that only the hub has has no value on the cluster": {
			configMap("data: {x: '1', w: '2'}"), configMap("data: {x: '1'}"), []detail{{Path: "/data/w", ValueInHub: "2"}},
		},
		"a whole part that is missing is told at its top": {
			configMap("data: {x: '1'}"), configMap("immutable: true"),
			[]detail{{Path: "/data", ValueInHub: `{"x":"1"}`}, {Path: "/immutable", ValueInMember: "true"}},
		},
		"slashes and tildes in keys are escaped": {
			configMap("metadata: {labels: {example.com/a: '1'}}, data: {a~b: '1'}"), configMap("metadata: {labels: {example.com/a: '2'}}, data: {a~b: '2'}"),
			[]detail{
				{Path: "/data/a~0b", ValueInHub: "1", ValueInMember: "2"},
				{Path: "/metadata/labels/example.com~1a", ValueInHub: "1", ValueInMember: "2"},
			},
		},
		"items of lists are told by their position": {
			kind("example.com/v1", "Widget", "spec: {list: [{size: 1}, {size: 2}]}"), kind("example.com/v1", "Widget", "spec: {list: [{size: 3}]}"),
			[]detail{{Path: "/spec/list/0/size", ValueInHub: "1", ValueInMember: "3"}, {Path: "/spec/list/1", ValueInHub: `{"size":2}`}},
		},
		"a value of another kind is a difference": {
			kind("example.com/v1", "Widget", "spec: {a: [1], b: {x: 1}, c: 1, d: false}"), kind("example.com/v1", "Widget", "spec: {a: {x: 1}, b: 7, c: [1], d: 'false'}"),
			[]detail{
				{Path: "/spec/a", ValueInHub: "[1]", ValueInMember: `{"x":1}`},
				{Path: "/spec/b", ValueInHub: `{"x":1}`, ValueInMember: "7"},
				{Path: "/spec/c", ValueInHub: "1", ValueInMember: "[1]"},
				{Path: "/spec/d", ValueInHub: "false", ValueInMember: "false"},
			},
		},
		"one and one point nought are the same": {kind("example.com/v1", "Widget", "spec: {a: 1}"), kind("example.com/v1", "Widget", "spec: {a: 1.0}"), nil},
		"a null is the same as nothing": {
			kind("example.com/v1", "Widget", "spec: {a: null, list: [{b: null}]}"), kind("example.com/v1", "Widget", "spec: {list: [{}]}"), nil,
		},
		"what only the cluster may say is no difference": {
			configMap("metadata: {name: a}"),
			configMap("metadata: {name: a, uid: u, resourceVersion: '7', generation: 2, creationTimestamp: '2026-01-01T00:00:00Z', " +
				"managedFields: [{}], ownerReferences: [{}], finalizers: [a/b]}, status: {x: 1}"), nil,
		},
		"nor are the labels and annotations of Kubernetes and of the fleet": {
			configMap("metadata: {name: a}"),
			configMap("metadata: {name: a, labels: {kubernetes.io/metadata.name: a, topology.k8s.io/zone: z}, " +
				"annotations: {kubernetes-fleet.io/spec-hash: x, kubectl.kubernetes.io/last-applied-configuration: x}}"), nil,
		},
		"unless the hub sets them": {
			configMap("metadata: {labels: {app.kubernetes.io/name: a}}"), configMap("metadata: {labels: {app.kubernetes.io/name: b}}"),
			[]detail{{Path: "/metadata/labels/app.kubernetes.io~1name", ValueInHub: "a", ValueInMember: "b"}},
		},
		"a domain that only looks like theirs is somebody else's": {
			configMap(""), configMap("metadata: {labels: {notkubernetes.io/a: b}}"),
			[]detail{{Path: "/metadata/labels/notkubernetes.io~1a", ValueInMember: "b"}},
		},
		"what a cluster gives a Service is no difference": {
			kind("v1", "Service", "spec: {ports: [{port: 80}]}"),
			kind("v1", "Service", "spec: {clusterIP: 10.0.0.1, clusterIPs: [10.0.0.1], ipFamilies: [IPv4], ipFamilyPolicy: SingleStack, ports: [{port: 80, nodePort: 30001}]}"), nil,
		},
		"unless the hub asks for it": {
			kind("v1", "Service", "spec: {clusterIP: None, ports: [{port: 80, nodePort: 30000}]}"),
			kind("v1", "Service", "spec: {clusterIP: 10.0.0.1, ports: [{port: 80, nodePort: 30001}]}"),
			[]detail{
				{Path: "/spec/clusterIP", ValueInHub: "None", ValueInMember: "10.0.0.1"},
				{Path: "/spec/ports/0/nodePort", ValueInHub: "30000", ValueInMember: "30001"},
			},
		},
		"a Service that was headless and is not to be any more": {
			kind("v1", "Service", "spec: {ports: [{port: 80}]}"), kind("v1", "Service", "spec: {clusterIP: None, clusterIPs: [None], ports: [{port: 80}]}"),
			[]detail{{Path: "/spec/clusterIP", ValueInMember: "None"}},
		},
		"one that is an alias instead": {
			kind("v1", "Service", "spec: {type: ExternalName, externalName: a}"),
			kind("v1", "Service", "spec: {type: ExternalName, externalName: a, clusterIP: None}"), nil,
		},
		"the pods that a user of the cluster wants a CloneSet to be rid of are no difference": {
			kind("apps.kruise.io/v1beta1", "CloneSet", "spec: {replicas: 3}"),
			kind("apps.kruise.io/v1beta1", "CloneSet", "spec: {replicas: 3, scaleStrategy: {podsToDelete: [a-1]}}"), nil,
		},
		"a volume that has a source and is to have none is told once": {
			kind("v1", "Pod", "spec: {volumes: [{name: a}]}"), kind("v1", "Pod", "spec: {volumes: [{name: a, secret: {secretName: a}}]}"),
			[]detail{{Path: "/spec/volumes/0/secret", ValueInMember: `{"secretName":"a"}`}},
		},
		"the secrets a cluster gives a ServiceAccount are no difference": {
			kind("v1", "ServiceAccount", ""), kind("v1", "ServiceAccount", "secrets: [{name: token}]"), nil,
		},
		"what a cluster gives a Job is no difference": {
			kind("batch/v1", "Job", "spec: {template: {spec: {}}}"),
			kind("batch/v1", "Job", "metadata: {labels: {controller-uid: u, job-name: j}}, spec: {selector: {}, template: {metadata: {labels: {controller-uid: u, batch.kubernetes.io/job-name: j}}, spec: {}}}"), nil,
		},
		"which template a DaemonSet or a Deployment has is for the cluster to say": {
			kind("apps/v1", "DaemonSet", "metadata: {annotations: {a: b}}"),
			kind("apps/v1", "DaemonSet", "metadata: {annotations: {a: b, deprecated.daemonset.template.generation: '1', deployment.kubernetes.io/revision: '2'}}"), nil,
		},
		"nor are the rules that a cluster gathers for a role": {
			kind("rbac.authorization.k8s.io/v1", "ClusterRole", "aggregationRule: {clusterRoleSelectors: [{}]}"),
			kind("rbac.authorization.k8s.io/v1", "ClusterRole", "aggregationRule: {clusterRoleSelectors: [{}]}, rules: [{verbs: [get]}]"), nil,
		},
		"replicas that the clusters decide on are no difference": {
			kind("apps/v1", "Deployment", "metadata: {annotations: {fleetflow.io/retain-replicas: 'true'}}, spec: {replicas: 1}"),
			kind("apps/v1", "Deployment", "metadata: {annotations: {fleetflow.io/retain-replicas: 'true'}}, spec: {replicas: 5}"), nil,
		},
		"copies in annotations of a Secret are never shown": {
			kind("v1", "Secret", "metadata: {name: a, annotations: {a: secret}}"), kind("v1", "Secret", "metadata: {name: a, annotations: {a: other, b: secret}}"), []placementv1beta1.PatchDetail{
				{Path: "/metadata/annotations/a", ValueInHub: Redacted, ValueInMember: Redacted}, {Path: "/metadata/annotations/b", ValueInMember: Redacted},
			},
		},
		"what a Secret keeps is never shown": {
			kind("v1", "Secret", "type: a, data: {k: c2VjcmV0, l: bW9yZQ==}"), kind("v1", "Secret", "type: b, data: {k: b3RoZXI=}, stringData: {m: clear}"),
			[]detail{
				{Path: "/data/k", ValueInHub: Redacted, ValueInMember: Redacted},
				{Path: "/data/l", ValueInHub: Redacted},
				{Path: "/stringData", ValueInMember: Redacted},
				{Path: "/type", ValueInHub: "a", ValueInMember: "b"},
			},
		},
		"a long value is cut": {
			configMap("data: {x: " + strings.Repeat("a", 600) + "}"), configMap("data: {x: b}"),
			[]detail{{Path: "/data/x", ValueInHub: strings.Repeat("a", MaxValue) + "… (600 bytes)", ValueInMember: "b"}},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			hub := object(t, tc.hub)
			member := object(t, tc.member)
			report := Objects(hub, hub, member)
			assert.Empty(t, cmp.Diff(tc.want, report.Details))
			assert.Zero(t, report.Omitted)
			assert.Equal(t, len(tc.want) == 0, report.Empty())
			assert.Empty(t, cmp.Diff(object(t, tc.hub), hub), "the objects are left as they are")
			assert.Empty(t, cmp.Diff(object(t, tc.member), member))
		})
	}
}

func TestObjectsTellsNoMoreThanAHundredFields(t *testing.T) {
	hub := object(t, configMap(""))
	member := object(t, configMap(""))
	for i := range 250 {
		require.NoError(t, unstructured.SetNestedField(hub.Object, "1", "data", fmt.Sprintf("k%03d", i)))
		require.NoError(t, unstructured.SetNestedField(member.Object, "2", "data", fmt.Sprintf("k%03d", i)))
	}
	report := Objects(hub, hub, member)
	assert.Len(t, report.Details, MaxDetails)
	assert.Equal(t, 150, report.Omitted)
	assert.Equal(t, "/data/k000", report.Details[0].Path)
}

func TestAbsent(t *testing.T) {
	assert.Equal(t, []detail{{Path: "/", ValueInHub: "(the whole object)"}}, Absent().Details)
}
