package compare

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestUnmet(t *testing.T) {
	container := func(fields string) string {
		return kind("apps/v1", "Deployment", "spec: {template: {spec: {containers: [{name: c, "+fields+"}]}}}")
	}
	for name, tc := range map[string]struct {
		manifest, answer string
		want             []detail
	}{
		"the same": {configMap("data: {x: '1'}"), configMap("data: {x: '1'}"), nil},
		"what the cluster adds": {
			container("image: i"),
			kind("apps/v1", "Deployment", "spec: {replicas: 1, template: {spec: {dnsPolicy: ClusterFirst, containers: [{name: sidecar}, {name: c, image: i, terminationMessagePath: /dev}]}}}"), nil,
		},
		"another way to write it": {
			container("resources: {limits: {cpu: 1000m, memory: 1024Mi}}, env: [{name: e, value: ''}], tty: false, args: []"),
			container("resources: {limits: {cpu: '1', memory: 1Gi}}, env: [{name: e}]"), nil,
		},
		"an empty field that the cluster fills in": {
			kind("batch/v1", "CronJob", "spec: {concurrencyPolicy: ''}"), kind("batch/v1", "CronJob", "spec: {concurrencyPolicy: Allow}"), nil,
		},
		"an empty field that its type always writes, and that the cluster fills in": {
			kind("rbac.authorization.k8s.io/v1", "RoleBinding", "roleRef: {kind: Role, name: r, apiGroup: ''}"),
			kind("rbac.authorization.k8s.io/v1", "RoleBinding", "roleRef: {kind: Role, name: r, apiGroup: rbac.authorization.k8s.io}"), nil,
		},
		"an empty value of a free key": {configMap("data: {x: ''}"), configMap("data: {x: a}"), []detail{{Path: "/data/x", ValueInMember: "a"}}},
		"a zero that counts": {
			kind("apps/v1", "Deployment", "spec: {replicas: 0}"), kind("apps/v1", "Deployment", "spec: {replicas: 1}"),
			[]detail{{Path: "/spec/replicas", ValueInHub: "0", ValueInMember: "1"}},
		},
		"a port without a protocol": {kind("v1", "Service", "spec: {ports: [{port: 53}]}"), kind("v1", "Service", "spec: {ports: [{port: 53, protocol: TCP, targetPort: 53}]}"), nil},
		"a text that looks like a quantity is none": {
			configMap("data: {x: 1000m}"), configMap("data: {x: '1'}"), []detail{{Path: "/data/x", ValueInHub: "1000m", ValueInMember: "1"}},
		},
		"a time": {
			kind("coordination.k8s.io/v1", "Lease", "spec: {renewTime: '2026-01-01T01:00:00.500000+01:00'}"),
			kind("coordination.k8s.io/v1", "Lease", "spec: {renewTime: '2026-01-01T00:00:00.500000Z'}"), nil,
		},
		"a null is for the cluster to decide": {kind("example.com/v1", "Widget", "spec: {a: null}"), kind("example.com/v1", "Widget", "spec: {a: 1}"), nil},
		"an empty field of a custom resource is not left out": {
			kind("example.com/v1", "Widget", "spec: {a: []}"), kind("example.com/v1", "Widget", "spec: {}"), []detail{{Path: "/spec/a", ValueInHub: "[]"}},
		},
		"a field that the cluster drops": {
			container("fromTheFuture: 1"), container("image: i"), []detail{{Path: "/spec/template/spec/containers/0/fromTheFuture", ValueInHub: "1"}},
		},
		"a port that is lost": {
			kind("v1", "Service", "spec: {ports: [{name: tcp, port: 53}, {name: udp, port: 53, protocol: UDP}]}"),
			kind("v1", "Service", "spec: {ports: [{name: tcp, port: 53, protocol: TCP}]}"),
			[]detail{{Path: "/spec/ports/1", ValueInHub: `{"name":"udp","port":53,"protocol":"UDP"}`}},
		},
		"a Service that stays headless": {
			kind("v1", "Service", "spec: {ports: [{port: 53}]}"), kind("v1", "Service", "spec: {clusterIP: None, ports: [{port: 53, protocol: TCP}]}"),
			[]detail{{Path: "/spec/clusterIP", ValueInMember: "None"}},
		},
		"one that is headless by its manifest":  {kind("v1", "Service", "spec: {clusterIP: None}"), kind("v1", "Service", "spec: {clusterIP: None}"), nil},
		"one that is headless by the new field": {kind("v1", "Service", "spec: {clusterIPs: [None]}"), kind("v1", "Service", "spec: {clusterIP: None, clusterIPs: [None]}"), nil},
		"one that has got an address":           {kind("v1", "Service", "spec: {ports: []}"), kind("v1", "Service", "spec: {clusterIP: 10.0.0.1, ports: []}"), nil},
		"a volume that keeps a source although the manifest names none": {
			kind("apps/v1", "Deployment", "spec: {template: {spec: {volumes: [{name: a}, {name: b, secret: null}, {name: c, configMap: {name: c}}]}}}"),
			kind("apps/v1", "Deployment", "spec: {template: {spec: {volumes: [{name: x, hostPath: {path: /x}}, {name: a, configMap: {name: a}}, {name: b, secret: {secretName: b}}, {name: c, configMap: {name: c, defaultMode: 420}}]}}}"),
			[]detail{
				{Path: "/spec/template/spec/volumes/1/configMap", ValueInMember: `{"name":"a"}`},
				{Path: "/spec/template/spec/volumes/2/secret", ValueInMember: `{"secretName":"b"}`},
			},
		},
		"a volume without a source, which is an empty directory": {
			kind("v1", "Pod", "spec: {volumes: [{name: a}]}"), kind("v1", "Pod", "spec: {volumes: [{name: a, emptyDir: {}}]}"), nil,
		},
		"a volume of a custom resource, which has no defaults": {
			kind("example.com/v1", "Widget", "spec: {volumes: [{name: a}]}"), kind("example.com/v1", "Widget", "spec: {volumes: [{name: a, secret: {}}]}"), nil,
		},
		"another order": {
			container("args: [a, b]"), container("args: [b, a]"), []detail{{Path: "/spec/template/spec/containers/0/args/1", ValueInHub: "b"}},
		},
		"an item that is changed, behind one that was added": {
			container("env: [{name: a, value: '1'}]"), container("env: [{name: x}, {name: a, value: '2'}]"),
			[]detail{{Path: "/spec/template/spec/containers/0/env/0/value", ValueInHub: "1", ValueInMember: "2"}},
		},
		"a whole number with other digits": {
			kind("example.com/v1", "Widget", "spec: {a: 9007199254740993}"), kind("example.com/v1", "Widget", "spec: {a: 9007199254740992}"),
			[]detail{{Path: "/spec/a", ValueInHub: "9007199254740993", ValueInMember: "9007199254740992"}},
		},
		"replicas that are left to the cluster": {
			kind("apps/v1", "Deployment", "metadata: {annotations: {fleetflow.io/retain-replicas: 'true'}}, spec: {replicas: 1}"),
			kind("apps/v1", "Deployment", "metadata: {annotations: {fleetflow.io/retain-replicas: 'true'}}, spec: {replicas: 5}"), nil,
		},
		"the values of a Secret are not told": {
			kind("v1", "Secret", "data: {k: c2VjcmV0}"), kind("v1", "Secret", "data: {k: b3RoZXI=}"),
			[]detail{{Path: "/data/k", ValueInHub: Redacted, ValueInMember: Redacted}},
		},
		"Endpoints, which the API server groups anew": {
			kind("v1", "Endpoints", "subsets: [{ports: [{port: 1}]}]"), kind("v1", "Endpoints", "subsets: []"), nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			manifest := object(t, tc.manifest)
			answer := object(t, tc.answer)
			assert.Empty(t, cmp.Diff(tc.want, Unmet(manifest, answer, nil).Details))
			assert.Empty(t, cmp.Diff(object(t, tc.manifest), manifest), "the objects are left as they are")
			assert.Empty(t, cmp.Diff(object(t, tc.answer), answer))
		})
	}
}

func TestUnmetOfALongListEndsSoon(t *testing.T) {
	list := func(value string) *unstructured.Unstructured {
		items := make([]any, 20_000)
		for i := range items {
			items[i] = map[string]any{"name": fmt.Sprint(i), "value": value}
		}
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Widget", "spec": map[string]any{"list": items}}}
	}
	assert.Equal(t, 20_000-MaxDetails, Unmet(list("a"), list("b"), nil).Omitted)
	assert.True(t, Unmet(list("a"), list("a"), nil).Empty())
}

func TestAListThatIsToBeEmptyHasNoItemsOfOthers(t *testing.T) {
	const text = `{"apiVersion":"v1","kind":"Service","metadata":{"name":"a"},"spec":{"ports":[]}}`
	const stays = `{"apiVersion":"v1","kind":"Service","metadata":{"name":"a"},"spec":{"clusterIP":"10.0.0.1","ports":[{"port":80}]}}`
	var asked []string
	held := func(path string) bool {
		asked = append(asked, path)
		return true
	}
	told := Unmet(object(t, text), object(t, stays), held)
	assert.Empty(t, cmp.Diff([]detail{{Path: "/spec/ports", ValueInHub: "[]", ValueInMember: `[{"port":80}]`}}, told.Details))
	assert.Contains(t, asked, "/spec/ports")
	ours := func(string) bool { return false }
	assert.Empty(t, Unmet(object(t, text), object(t, stays), ours).Details, "the cluster has added them")
	one := `{"apiVersion":"v1","kind":"Service","metadata":{"name":"a"},"spec":{"ports":[{"port":81}]}}`
	both := `{"apiVersion":"v1","kind":"Service","metadata":{"name":"a"},"spec":{"ports":[{"port":80},{"port":81}]}}`
	assert.Empty(t, Unmet(object(t, one), object(t, both), held).Details, "items of others beside ours")
}
