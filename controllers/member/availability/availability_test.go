package availability

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
)

func TestOf(t *testing.T) {
	tests := map[string]struct {
		object string
		want   Status
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

		"with nothing to wait for, so is a cron job": {`{apiVersion: batch/v1, kind: CronJob}`, Available},
		"so is a webhook": {`{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration}`, Available},
		"a stateful set renews as many as its partition lets": {`{apiVersion: apps/v1, kind: StatefulSet, metadata: {generation: 1}, spec: {replicas: 3, updateStrategy: {rollingUpdate: {partition: 2}}},
			status: {observedGeneration: 1, availableReplicas: 3, currentReplicas: 2, updatedReplicas: 1, currentRevision: a, updateRevision: b}}`, Available},
		"and not fewer": {`{apiVersion: apps/v1, kind: StatefulSet, metadata: {generation: 1}, spec: {replicas: 3, updateStrategy: {rollingUpdate: {partition: 1}}},
			status: {observedGeneration: 1, availableReplicas: 3, currentReplicas: 2, updatedReplicas: 1, currentRevision: a, updateRevision: b}}`, NotYet},
		"a stateful set that is renewed by hand waits for nobody": {`{apiVersion: apps/v1, kind: StatefulSet, metadata: {generation: 1}, spec: {replicas: 1, updateStrategy: {type: OnDelete}},
			status: {observedGeneration: 1, availableReplicas: 1, currentReplicas: 1, currentRevision: a, updateRevision: b}}`, Available},
		"nor does such a daemon set": {`{apiVersion: apps/v1, kind: DaemonSet, metadata: {generation: 1}, spec: {updateStrategy: {type: OnDelete}},
			status: {observedGeneration: 1, desiredNumberScheduled: 2, numberAvailable: 2, updatedNumberScheduled: 1}}`, Available},
		"a replica set is available with all its pods":       {`{apiVersion: apps/v1, kind: ReplicaSet, spec: {replicas: 2}, status: {replicas: 2, availableReplicas: 2}}`, Available},
		"with fewer it is not":                               {`{apiVersion: apps/v1, kind: ReplicaSet, spec: {replicas: 2}, status: {replicas: 2, availableReplicas: 1}}`, NotYet},
		"a replication controller is available with its pod": {`{apiVersion: v1, kind: ReplicationController, status: {replicas: 1, availableReplicas: 1}}`, Available},
		"a pod is available when it is ready":                {`{apiVersion: v1, kind: Pod, status: {phase: Running, conditions: [{type: Ready, status: "True"}]}}`, Available},
		"or has succeeded":                                   {`{apiVersion: v1, kind: Pod, status: {phase: Succeeded, conditions: [{type: Ready, status: "False"}]}}`, Available},
		"a pod that is not ready is not":                     {`{apiVersion: v1, kind: Pod, status: {phase: Running, conditions: [{type: Ready, status: "False"}]}}`, NotYet},
		"nor one that waits for a node":                      {`{apiVersion: v1, kind: Pod, status: {phase: Pending}}`, NotYet},

		"a job is available with one ready pod":       {`{apiVersion: batch/v1, kind: Job, spec: {completions: 5}, status: {active: 3, ready: 1}}`, Available},
		"or one that has succeeded":                   {`{apiVersion: batch/v1, kind: Job, spec: {completions: 5}, status: {succeeded: 1, failed: 3}}`, Available},
		"a job whose pods are not ready is not":       {`{apiVersion: batch/v1, kind: Job, status: {active: 1, ready: 0}}`, NotYet},
		"nor one that only failed":                    {`{apiVersion: batch/v1, kind: Job, status: {failed: 1}}`, NotYet},
		"nor one that nobody has looked at":           {`{apiVersion: batch/v1, kind: Job}`, NotYet},
		"a budget is available once it is looked at":  {`{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {generation: 2}, status: {observedGeneration: 2}}`, Available},
		"a budget of which an earlier generation was": {`{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {generation: 2}, status: {observedGeneration: 1}}`, NotYet},

		"a claim is available with its volume":       {`{apiVersion: v1, kind: PersistentVolumeClaim, status: {phase: Bound}}`, Available},
		"without it is not":                          {`{apiVersion: v1, kind: PersistentVolumeClaim, status: {phase: Pending}}`, NotYet},
		"a volume is available for a claim":          {`{apiVersion: v1, kind: PersistentVolume, status: {phase: Available}}`, Available},
		"one that is to be reclaimed is not":         {`{apiVersion: v1, kind: PersistentVolume, status: {phase: Released}}`, NotYet},
		"an ingress is available with an address":    {`{apiVersion: networking.k8s.io/v1, kind: Ingress, status: {loadBalancer: {ingress: [{hostname: h}]}}}`, Available},
		"without it nobody knows if it will get one": {`{apiVersion: networking.k8s.io/v1, kind: Ingress}`, NotTrackable},
		"an API is available when it is reached":     {`{apiVersion: apiregistration.k8s.io/v1, kind: APIService, status: {conditions: [{type: Available, status: "True"}]}}`, Available},
		"an API nobody serves is not":                {`{apiVersion: apiregistration.k8s.io/v1, kind: APIService, status: {conditions: [{type: Available, status: "False", reason: MissingEndpoints}]}}`, NotYet},
		"an API that was just registered is not":     {`{apiVersion: apiregistration.k8s.io/v1, kind: APIService}`, NotYet},

		"an autoscaler is available with figures to scale by": {`{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler,
			status: {conditions: [{type: AbleToScale, status: "True"}, {type: ScalingActive, status: "True"}]}}`, Available},
		"or when its target is scaled to nothing": {`{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler,
			status: {conditions: [{type: AbleToScale, status: "True"}, {type: ScalingActive, status: "False", reason: ScalingDisabled}]}}`, Available},
		"an autoscaler without figures is not": {`{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler,
			status: {conditions: [{type: AbleToScale, status: "True"}, {type: ScalingActive, status: "False", reason: FailedGetResourceMetric}]}}`, NotYet},
		"nor one whose target is missing": {`{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, status: {conditions: [{type: AbleToScale, status: "False"}]}}`, NotYet},
		"its first version notes conditions elsewhere": {`{apiVersion: autoscaling/v1, kind: HorizontalPodAutoscaler, metadata: {annotations: {
			autoscaling.alpha.kubernetes.io/conditions: '[{"type":"AbleToScale","status":"True"},{"type":"ScalingActive","status":"True"}]'}}}`, Available},

		"a clone set is available with all its pods renewed": {`{apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, metadata: {generation: 2}, spec: {replicas: 5},
			status: {observedGeneration: 2, replicas: 5, readyReplicas: 5, availableReplicas: 5, updatedReplicas: 5, updatedReadyReplicas: 5}}`, Available},
		"with pods of the old template left it is not": {`{apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, metadata: {generation: 2}, spec: {replicas: 5},
			status: {observedGeneration: 2, replicas: 5, readyReplicas: 5, availableReplicas: 5, updatedReplicas: 2, updatedReadyReplicas: 2}}`, NotYet},
		"unless its partition holds them back": {`{apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, metadata: {generation: 2}, spec: {replicas: 5, updateStrategy: {partition: 3}},
			status: {observedGeneration: 2, replicas: 5, readyReplicas: 5, updatedReplicas: 2, updatedReadyReplicas: 2}}`, Available},
		"a percentage lets go of one at least": {`{apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, metadata: {generation: 2}, spec: {replicas: 3, updateStrategy: {partition: 99%}},
			status: {observedGeneration: 2, replicas: 3, readyReplicas: 3, updatedReplicas: 0, updatedReadyReplicas: 0}}`, NotYet},
		"all may be held back": {`{apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, metadata: {generation: 2}, spec: {replicas: 3, updateStrategy: {partition: 100%}},
			status: {observedGeneration: 2, replicas: 3, readyReplicas: 3}}`, Available},
		"what a clone set says it expects counts": {`{apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, metadata: {generation: 2}, spec: {replicas: 5, updateStrategy: {partition: 50%}},
			status: {observedGeneration: 2, replicas: 5, readyReplicas: 5, updatedReplicas: 2, updatedReadyReplicas: 2, expectedUpdatedReplicas: 2}}`, Available},
		"a clone set with more pods than asked for is not": {`{apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, metadata: {generation: 2}, spec: {replicas: 5},
			status: {observedGeneration: 2, replicas: 6, readyReplicas: 5, availableReplicas: 5, updatedReplicas: 5, updatedReadyReplicas: 5}}`, NotYet},
		"nor one whose renewed pods are not ready": {`{apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, metadata: {generation: 2}, spec: {replicas: 2},
			status: {observedGeneration: 2, replicas: 2, readyReplicas: 1, availableReplicas: 1, updatedReplicas: 2, updatedReadyReplicas: 1}}`, NotYet},
		"nor a clone set whose controller has not seen the change": {`{apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, metadata: {generation: 2}, spec: {replicas: 1},
			status: {observedGeneration: 1, replicas: 1, readyReplicas: 1, availableReplicas: 1, updatedReplicas: 1, updatedReadyReplicas: 1}}`, NotYet},

		"a clone set of v1beta1 that holds all its pods back is available": {`{apiVersion: apps.kruise.io/v1beta1, kind: CloneSet, metadata: {generation: 2},
			spec: {replicas: 5, updateStrategy: {type: RollingUpdate, rollingUpdate: {partition: 100%}}},
			status: {observedGeneration: 2, replicas: 5, readyReplicas: 5, availableReplicas: 5}}`, Available},
		"one of v1beta1 renews as many as its partition lets": {`{apiVersion: apps.kruise.io/v1beta1, kind: CloneSet, metadata: {generation: 2},
			spec: {replicas: 5, updateStrategy: {rollingUpdate: {partition: 3}}},
			status: {observedGeneration: 2, replicas: 5, readyReplicas: 5, availableReplicas: 5, updatedReplicas: 2, updatedReadyReplicas: 2}}`, Available},
		"and not fewer than that": {`{apiVersion: apps.kruise.io/v1beta1, kind: CloneSet, metadata: {generation: 2},
			spec: {replicas: 5, updateStrategy: {rollingUpdate: {partition: 3}}},
			status: {observedGeneration: 2, replicas: 5, readyReplicas: 5, availableReplicas: 5, updatedReplicas: 1, updatedReadyReplicas: 1}}`, NotYet},
		"one that is paused with pods left to renew is not available": {`{apiVersion: apps.kruise.io/v1beta1, kind: CloneSet, metadata: {generation: 2},
			spec: {replicas: 5, updateStrategy: {rollingUpdate: {paused: true}}},
			status: {observedGeneration: 2, replicas: 5, readyReplicas: 5, availableReplicas: 5, updatedReplicas: 2, updatedReadyReplicas: 2, expectedUpdatedReplicas: 5}}`, NotYet},
		"one that is paused with none left to renew is": {`{apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, metadata: {generation: 2},
			spec: {replicas: 5, updateStrategy: {paused: true}},
			status: {observedGeneration: 2, replicas: 5, readyReplicas: 5, availableReplicas: 5, updatedReplicas: 5, updatedReadyReplicas: 5}}`, Available},
		"pods that are updated in place count once they are ready again": {`{apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, metadata: {generation: 2},
			spec: {replicas: 3, updateStrategy: {type: InPlaceIfPossible}},
			status: {observedGeneration: 2, replicas: 3, readyReplicas: 3, availableReplicas: 3, updatedReplicas: 3, updatedReadyReplicas: 2}}`, NotYet},
		"with OnDelete old pods count as well": {`{apiVersion: apps.kruise.io/v1beta1, kind: CloneSet, metadata: {generation: 2}, spec: {replicas: 3, updateStrategy: {type: OnDelete}},
			status: {observedGeneration: 2, replicas: 3, readyReplicas: 3, availableReplicas: 3, expectedUpdatedReplicas: 3}}`, Available},

		"a custom resource is available when it says it is ready":   {`{apiVersion: example.com/v1, kind: Widget, status: {conditions: [{type: Ready, status: "True"}]}}`, Available},
		"when it says it is not it is not":                          {`{apiVersion: example.com/v1, kind: Widget, status: {conditions: [{type: Ready, status: "False"}]}}`, NotYet},
		"nor while it does not know":                                {`{apiVersion: example.com/v1, kind: Widget, status: {conditions: [{type: Ready, status: Unknown}]}}`, NotYet},
		"nor while it reconciles":                                   {`{apiVersion: example.com/v1, kind: Widget, status: {conditions: [{type: Ready, status: "True"}, {type: Reconciling, status: "True"}]}}`, NotYet},
		"nor when it has stalled":                                   {`{apiVersion: example.com/v1, kind: Widget, status: {conditions: [{type: Stalled, status: "True"}]}}`, NotYet},
		"it is when it has reconciled":                              {`{apiVersion: example.com/v1, kind: Widget, status: {conditions: [{type: Reconciling, status: "False"}]}}`, Available},
		"a generation its controller has seen is enough":            {`{apiVersion: example.com/v1, kind: Widget, metadata: {generation: 4}, status: {observedGeneration: 4}}`, Available},
		"one it has not seen counts for more than what it once was": {`{apiVersion: example.com/v1, kind: Widget, metadata: {generation: 4}, status: {observedGeneration: 3, conditions: [{type: Ready, status: "True"}]}}`, NotYet},
		"so does one that its condition is not about":               {`{apiVersion: example.com/v1, kind: Widget, metadata: {generation: 4}, status: {conditions: [{type: Ready, status: "True", observedGeneration: 3}]}}`, NotYet},
		"conditions of other names tell nothing":                    {`{apiVersion: example.com/v1, kind: Widget, status: {conditions: [{type: Programmed, status: "False"}]}}`, NotTrackable},
		"nor do conditions of another shape":                        {`{apiVersion: example.com/v1, kind: Widget, status: {conditions: {ready: false}}}`, NotTrackable},
		"nor a generation that is a text":                           {`{apiVersion: example.com/v1, kind: Widget, status: {observedGeneration: "3"}}`, NotTrackable},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			object := &unstructured.Unstructured{}
			content, err := yaml.YAMLToJSON([]byte(tc.object))
			require.NoError(t, err)
			require.NoError(t, json.Unmarshal(content, &object.Object)) // whole numbers stay whole
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
	object.SetAPIVersion("autoscaling/v1")
	object.SetKind("HorizontalPodAutoscaler")
	object.SetAnnotations(map[string]string{autoscalerConditions: "none"})
	_, err = Of(object)
	assert.ErrorContains(t, err, "autoscaling.alpha.kubernetes.io/conditions")
}
