package availability

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func TestOf(t *testing.T) {
	tests := map[string]struct {
		object string
		want   Verdict
	}{
		"data is available once it exists":         {`{apiVersion: v1, kind: ConfigMap}`, Available},
		"so is a namespace":                        {`{apiVersion: v1, kind: Namespace}`, Available},
		"so is a role":                             {`{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole}`, Available},
		"of a custom resource nothing can be told": {`{apiVersion: example.com/v1, kind: Widget}`, NotTrackable},
		"nor of a kind of the same name elsewhere": {`{apiVersion: example.com/v1, kind: Deployment}`, NotTrackable},

		"a deployment is available with all its pods": {`{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 2}, spec: {replicas: 3},
			status: {observedGeneration: 2, replicas: 3, updatedReplicas: 3, availableReplicas: 3}}`, Available},
		"one that nobody has looked at yet is not": {`{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 1}, spec: {replicas: 3}}`, NotYet},
		"nor one whose controller has not seen the change": {`{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 3}, spec: {replicas: 3},
			status: {observedGeneration: 2, replicas: 3, updatedReplicas: 3, availableReplicas: 3}}`, NotYet},
		"nor one with pods of the old template left": {`{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 2}, spec: {replicas: 3},
			status: {observedGeneration: 2, replicas: 4, updatedReplicas: 3, availableReplicas: 4}}`, NotYet},
		"nor one with old pods only": {`{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 2}, spec: {replicas: 3},
			status: {observedGeneration: 2, replicas: 3, updatedReplicas: 1, availableReplicas: 3, unavailableReplicas: 0}}`, NotYet},
		"without a number it wants one replica": {`{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 1},
			status: {observedGeneration: 1, replicas: 1, updatedReplicas: 1, availableReplicas: 1}}`, Available},
		"with none it is available empty": {`{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 1}, spec: {replicas: 0},
			status: {observedGeneration: 1}}`, Available},

		"a stateful set is available at one revision": {`{apiVersion: apps/v1, kind: StatefulSet, metadata: {generation: 1}, spec: {replicas: 2},
			status: {observedGeneration: 1, availableReplicas: 2, currentReplicas: 2, updatedReplicas: 2, currentRevision: a, updateRevision: a}}`, Available},
		"between two it is not": {`{apiVersion: apps/v1, kind: StatefulSet, metadata: {generation: 1}, spec: {replicas: 2},
			status: {observedGeneration: 1, availableReplicas: 2, currentReplicas: 1, updatedReplicas: 1, currentRevision: a, updateRevision: b}}`, NotYet},

		"a daemon set is available on every node": {`{apiVersion: apps/v1, kind: DaemonSet, metadata: {generation: 1},
			status: {observedGeneration: 1, desiredNumberScheduled: 2, numberAvailable: 2, updatedNumberScheduled: 2}}`, Available},
		"with an old pod on one of them it is not": {`{apiVersion: apps/v1, kind: DaemonSet, metadata: {generation: 1},
			status: {observedGeneration: 1, desiredNumberScheduled: 2, numberAvailable: 2, updatedNumberScheduled: 1}}`, NotYet},

		"a service is available with an address":      {`{apiVersion: v1, kind: Service, spec: {type: ClusterIP, clusterIP: 10.0.0.1}}`, Available},
		"a headless one asks for none":                {`{apiVersion: v1, kind: Service, spec: {clusterIP: None}}`, Available},
		"without an address it is not":                {`{apiVersion: v1, kind: Service, spec: {type: NodePort}}`, NotYet},
		"a load balancer needs an ingress":            {`{apiVersion: v1, kind: Service, spec: {type: LoadBalancer, clusterIP: 10.0.0.1}}`, NotYet},
		"by name":                                     {`{apiVersion: v1, kind: Service, spec: {type: LoadBalancer}, status: {loadBalancer: {ingress: [{hostname: h}]}}}`, Available},
		"or by address":                               {`{apiVersion: v1, kind: Service, spec: {type: LoadBalancer}, status: {loadBalancer: {ingress: [{ip: 1.2.3.4}]}}}`, Available},
		"of an external name nothing can be told":     {`{apiVersion: v1, kind: Service, spec: {type: ExternalName, externalName: h}}`, NotTrackable},
		"a definition is available once it is served": {`{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, status: {conditions: [{type: Established, status: "True"}, {type: NamesAccepted, status: "True"}]}}`, Available},
		"a definition whose names are taken is not":   {`{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, status: {conditions: [{type: Established, status: "True"}, {type: NamesAccepted, status: "False"}]}}`, NotYet},
		"a definition that was just created is not":   {`{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition}`, NotYet},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			object := &unstructured.Unstructured{}
			require.NoError(t, yaml.Unmarshal([]byte(tc.object), &object.Object))
			got, err := Of(object)
			require.NoError(t, err)
			assert.Equal(t, tc.want, got)
		})
	}
}

func TestOfReportsAnObjectThatIsNotOfItsKind(t *testing.T) {
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment", "spec": map[string]any{"replicas": "three"},
	}}
	_, err := Of(object)
	assert.Error(t, err)
}
