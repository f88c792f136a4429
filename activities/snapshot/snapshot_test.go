package snapshot_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/fleetflow/fleetflow/activities/snapshot"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

func object(t *testing.T, document string) *unstructured.Unstructured {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(document))
	require.NoError(t, err)
	o := &unstructured.Unstructured{}
	require.NoError(t, o.UnmarshalJSON(data))
	return o
}

func TestStrip(t *testing.T) {
	cases := map[string]struct{ from, want string }{
		"a Namespace keeps its labels and finalizers, as printed in the documents": {
			from: `{apiVersion: v1, kind: Namespace, metadata: {name: test, uid: u, resourceVersion: "7", creationTimestamp: "2024-01-01T00:00:00Z",
			        labels: {kubernetes.io/metadata.name: test}, managedFields: [{manager: kubectl}]}, spec: {finalizers: [kubernetes]}, status: {phase: Active}}`,
			want: `{apiVersion: v1, kind: Namespace, metadata: {name: test, labels: {kubernetes.io/metadata.name: test}}, spec: {finalizers: [kubernetes]}}`,
		},
		"the annotations of kubectl and of the Deployment controller go, others stay": {
			from: `{apiVersion: apps/v1, kind: Deployment, metadata: {name: d, namespace: ns, generation: 3, annotations:
			        {kubectl.kubernetes.io/last-applied-configuration: "{}", deployment.kubernetes.io/revision: "2", mine: "1"}}, spec: {replicas: 1}}`,
			want: `{apiVersion: apps/v1, kind: Deployment, metadata: {name: d, namespace: ns, annotations: {mine: "1"}}, spec: {replicas: 1}}`,
		},
		"annotations that become empty disappear": {
			from: `{apiVersion: v1, kind: ConfigMap, metadata: {name: c, annotations: {kubectl.kubernetes.io/last-applied-configuration: "{}"}, ownerReferences: [{name: o}]}}`,
			want: `{apiVersion: v1, kind: ConfigMap, metadata: {name: c}}`,
		},
		"a Service loses what the hub allocated": {
			from: `{apiVersion: v1, kind: Service, metadata: {name: s}, spec: {type: LoadBalancer, clusterIP: 10.0.0.1, clusterIPs: [10.0.0.1],
			        healthCheckNodePort: 30001, ports: [{port: 80, nodePort: 30000}]}, status: {loadBalancer: {}}}`,
			want: `{apiVersion: v1, kind: Service, metadata: {name: s}, spec: {type: LoadBalancer, ports: [{port: 80}]}}`,
		},
		"a headless Service stays headless": {
			from: `{apiVersion: v1, kind: Service, metadata: {name: s}, spec: {clusterIP: None, clusterIPs: [None], ports: [{port: 80}]}}`,
			want: `{apiVersion: v1, kind: Service, metadata: {name: s}, spec: {clusterIP: None, clusterIPs: [None], ports: [{port: 80}]}}`,
		},
		"a Job loses what ties its pods to the Job on the hub": {
			from: `{apiVersion: batch/v1, kind: Job, metadata: {name: j}, spec: {selector: {matchLabels: {batch.kubernetes.io/controller-uid: u}},
			        template: {metadata: {labels: {app: a, controller-uid: u, batch.kubernetes.io/controller-uid: u, job-name: j, batch.kubernetes.io/job-name: j}}}}}`,
			want: `{apiVersion: batch/v1, kind: Job, metadata: {name: j}, spec: {template: {metadata: {labels: {app: a}}}}}`,
		},
		"a Job loses them from its own labels too, and what is left out with others": {
			from: `{apiVersion: batch/v1, kind: Job, metadata: {name: j, uid: u, labels: {job-name: j}, annotations: {kubectl.kubernetes.io/last-applied-configuration: "{}", mine: "1"}},
			        spec: {template: {metadata: {labels: {controller-uid: u}}}}, status: {active: 1}}`,
			want: `{apiVersion: batch/v1, kind: Job, metadata: {name: j, annotations: {mine: "1"}}, spec: {template: {metadata: {}}}}`,
		},
		"finalizers are not placed: they are for controllers of the hub": {
			from: `{apiVersion: v1, kind: Service, metadata: {name: s, finalizers: [service.kubernetes.io/load-balancer-cleanup, example.com/mine]}, spec: {type: ExternalName, externalName: example.com}}`,
			want: `{apiVersion: v1, kind: Service, metadata: {name: s}, spec: {type: ExternalName, externalName: example.com}}`,
		},
		"a DaemonSet loses the count of its templates": {
			from: `{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: d, annotations: {deprecated.daemonset.template.generation: "3"}}, spec: {}}`,
			want: `{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: d}, spec: {}}`,
		},
		"an autoscaler of the old version loses the status among its annotations": {
			from: `{apiVersion: autoscaling/v1, kind: HorizontalPodAutoscaler, metadata: {name: h, annotations: {autoscaling.alpha.kubernetes.io/conditions: "[]",
			        autoscaling.alpha.kubernetes.io/current-metrics: "[]", autoscaling.alpha.kubernetes.io/metrics: "[]"}}, spec: {maxReplicas: 3}}`,
			want: `{apiVersion: autoscaling/v1, kind: HorizontalPodAutoscaler, metadata: {name: h, annotations: {autoscaling.alpha.kubernetes.io/metrics: "[]"}}, spec: {maxReplicas: 3}}`,
		},
		"a claim loses the volume the hub has bound it to": {
			from: `{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: c, finalizers: [kubernetes.io/pvc-protection], annotations: {pv.kubernetes.io/bind-completed: "yes",
			        pv.kubernetes.io/bound-by-controller: "yes", volume.kubernetes.io/storage-provisioner: p, volume.kubernetes.io/selected-node: n}}, spec: {volumeName: pvc-1, storageClassName: fast}}`,
			want: `{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: c}, spec: {storageClassName: fast}}`,
		},
		"a claim keeps the volume the user has chosen": {
			from: `{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: c, annotations: {pv.kubernetes.io/bind-completed: "yes"}}, spec: {volumeName: mine}}`,
			want: `{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: c}, spec: {volumeName: mine}}`,
		},
		"a volume loses the claim the hub has bound it to": {
			from: `{apiVersion: v1, kind: PersistentVolume, metadata: {name: v, annotations: {pv.kubernetes.io/bound-by-controller: "yes"}}, spec: {claimRef: {name: c, namespace: ns, uid: u}, capacity: {storage: 1Gi}}}`,
			want: `{apiVersion: v1, kind: PersistentVolume, metadata: {name: v}, spec: {capacity: {storage: 1Gi}}}`,
		},
		"a volume that is reserved for a claim stays so": {
			from: `{apiVersion: v1, kind: PersistentVolume, metadata: {name: v}, spec: {claimRef: {name: c, namespace: ns, uid: u, resourceVersion: "3"}}}`,
			want: `{apiVersion: v1, kind: PersistentVolume, metadata: {name: v}, spec: {claimRef: {name: c, namespace: ns}}}`,
		},
		"a ServiceAccount loses the tokens made for it, not other secrets": {
			from: `{apiVersion: v1, kind: ServiceAccount, metadata: {name: app}, secrets: [{name: app-token-x7k2p}, {name: mine}], imagePullSecrets: [{name: pull}]}`,
			want: `{apiVersion: v1, kind: ServiceAccount, metadata: {name: app}, secrets: [{name: mine}], imagePullSecrets: [{name: pull}]}`,
		},
		"a custom resource of a kind named like one of Kubernetes is not touched": {
			from: `{apiVersion: serving.knative.dev/v1, kind: Service, metadata: {name: s}, spec: {clusterIP: 1.2.3.4, ports: [{nodePort: 1}]}}`,
			want: `{apiVersion: serving.knative.dev/v1, kind: Service, metadata: {name: s}, spec: {clusterIP: 1.2.3.4, ports: [{nodePort: 1}]}}`,
		},
		"fields of another shape than expected are left alone": {
			from: `{apiVersion: v1, kind: Service, metadata: {name: s, annotations: none}, spec: {ports: none}}`,
			want: `{apiVersion: v1, kind: Service, metadata: {name: s, annotations: none}, spec: {ports: none}}`,
		},
		"a role that is gathered from others has no rules of its own": {
			from: `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: c}, aggregationRule: {clusterRoleSelectors: [{}]}, rules: [{verbs: [get]}]}`,
			want: `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: c}, aggregationRule: {clusterRoleSelectors: [{}]}}`,
		},
		"a webhook loses the certificate that was injected": {
			from: `{apiVersion: admissionregistration.k8s.io/v1, kind: MutatingWebhookConfiguration, metadata: {name: c, annotations: {cert-manager.io/inject-ca-from: n/c}}, webhooks: [{name: w, clientConfig: {caBundle: eA==}}]}`,
			want: `{apiVersion: admissionregistration.k8s.io/v1, kind: MutatingWebhookConfiguration, metadata: {name: c, annotations: {cert-manager.io/inject-ca-from: n/c}}, webhooks: [{name: w, clientConfig: {}}]}`,
		},
		"a CloneSet keeps how it scales, not which pods are to go": {
			from: `{apiVersion: apps.kruise.io/v1beta1, kind: CloneSet, metadata: {name: c}, spec: {scaleStrategy: {maxUnavailable: 1, podsToDelete: [c-1]}}}`,
			want: `{apiVersion: apps.kruise.io/v1beta1, kind: CloneSet, metadata: {name: c}, spec: {scaleStrategy: {maxUnavailable: 1}}}`,
		},
		"a Job with a selector of its own keeps it": {
			from: `{apiVersion: batch/v1, kind: Job, metadata: {name: j}, spec: {manualSelector: true, selector: {matchLabels: {controller-uid: mine}}}}`,
			want: `{apiVersion: batch/v1, kind: Job, metadata: {name: j}, spec: {manualSelector: true, selector: {matchLabels: {controller-uid: mine}}}}`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			from := object(t, tc.from)
			before := from.DeepCopy()
			assert.Empty(t, cmp.Diff(object(t, tc.want), snapshot.Strip(from)))
			assert.Equal(t, before, from, "the original is not changed")
		})
	}
}

func TestWhatIsPlacedOfWhatIsSelected(t *testing.T) {
	cases := map[string]struct {
		object string
		placed bool
	}{
		"a ConfigMap of the user":                       {`{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: ns}}`, true},
		"the root certificate":                          {`{apiVersion: v1, kind: ConfigMap, metadata: {name: kube-root-ca.crt, namespace: ns}}`, false},
		"the default ServiceAccount":                    {`{apiVersion: v1, kind: ServiceAccount, metadata: {name: default, namespace: ns}}`, false},
		"the certificate of a mesh":                     {`{apiVersion: v1, kind: ConfigMap, metadata: {name: istio-ca-root-cert, namespace: ns}}`, false},
		"the certificate of OpenShift":                  {`{apiVersion: v1, kind: ConfigMap, metadata: {name: openshift-service-ca.crt, namespace: ns}}`, false},
		"a ConfigMap that Istio alone has written":      {`{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: ns, managedFields: [{manager: pilot-discovery, operation: Update}]}}`, false},
		"a claim that only Kubernetes has written":      {`{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data-db-0, namespace: ns, managedFields: [{manager: kube-controller-manager, operation: Update}, {manager: kube-controller-manager, operation: Update, subresource: status}]}}`, false},
		"a claim of the user that Kubernetes has bound": {`{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: c, namespace: ns, managedFields: [{manager: kubectl, operation: Update}, {manager: kube-controller-manager, operation: Update}]}}`, true},
		"a claim with an owner":                         {`{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: c, namespace: ns, ownerReferences: [{name: s, kind: StatefulSet, apiVersion: apps/v1, uid: u}]}}`, false},
		"a namespace that a controller made":            {`{apiVersion: v1, kind: Namespace, metadata: {name: n, managedFields: [{manager: kube-controller-manager, operation: Update}]}}`, true},
		"another ServiceAccount":                        {`{apiVersion: v1, kind: ServiceAccount, metadata: {name: app, namespace: ns}}`, true},
		"a token of a ServiceAccount":                   {`{apiVersion: v1, kind: Secret, type: kubernetes.io/service-account-token, metadata: {name: t, namespace: ns}}`, false},
		"an opaque Secret":                              {`{apiVersion: v1, kind: Secret, type: Opaque, metadata: {name: t, namespace: ns}}`, true},
		"a ReplicaSet of a Deployment":                  {`{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: r, namespace: ns, ownerReferences: [{name: d, kind: Deployment, apiVersion: apps/v1, uid: u}]}}`, false},
		"a ReplicaSet of the user":                      {`{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: r, namespace: ns}}`, true},
		"a revision of a StatefulSet":                   {`{apiVersion: apps/v1, kind: ControllerRevision, metadata: {name: r, namespace: ns, ownerReferences: [{name: s, kind: StatefulSet, apiVersion: apps/v1, uid: u}]}}`, false},
		"a Job of a CronJob":                            {`{apiVersion: batch/v1, kind: Job, metadata: {name: j, namespace: ns, ownerReferences: [{name: c, kind: CronJob, apiVersion: batch/v1, uid: u}]}}`, false},
		"an EndpointSlice of a Service":                 {`{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {name: e, namespace: ns, labels: {endpointslice.kubernetes.io/managed-by: endpointslice-controller.k8s.io}}}`, false},
		"an object that is being deleted":               {`{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: ns, deletionTimestamp: "2024-01-01T00:00:00Z"}}`, false},
		"a role of Kubernetes":                          {`{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: "system:node"}}`, false},
		"a role that Kubernetes keeps as it is":         {`{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: view, labels: {kubernetes.io/bootstrapping: rbac-defaults}}}`, false},
		"a role of the user":                            {`{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: view-more}}`, true},
		"an object the fleet made for itself":           {`{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: ns, labels: {kubernetes-fleet.io/is-fleet-resource: "true"}}}`, false},
		"a reserved namespace, matched by labels":       {`{apiVersion: v1, kind: Namespace, metadata: {name: kube-system}}`, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := object(t, tc.object)
			placed := snapshot.Candidate(o.GroupVersionKind().GroupKind(), o) && len(contentOf(t, o).Manifests) == 1
			assert.Equal(t, tc.placed, placed)
		})
	}
}

func TestTheClaimsOfAStatefulSetAreKnownByTheirNames(t *testing.T) {
	maker := snapshot.NewClaimMaker(object(t, `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: db, namespace: ns}, spec: {volumeClaimTemplates: [{metadata: {name: data}}, {metadata: {name: log}}]}}`))
	for name, made := range map[string]bool{
		"data-db-0": true, "log-db-12": true,
		"data-db": false, "data-db-": false, "data-db-x": false, "data-db-0-copy": false, "other-db-0": false, "data-dbx-0": false, "data-db--1": false,
	} {
		item, err := snapshot.Encode(object(t, `{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: `+name+`, namespace: ns}}`))
		require.NoError(t, err)
		assert.Equal(t, made, maker.Makes(item), name)
	}
	elsewhere, err := snapshot.Encode(object(t, `{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data-db-0, namespace: other}}`))
	require.NoError(t, err)
	assert.False(t, maker.Makes(elsewhere), "another namespace has claims of its own")
}

func TestDisabled(t *testing.T) {
	cases := map[schema.GroupKind]bool{
		{Kind: "Pod"}:                                             true,
		{Kind: "Node"}:                                            true,
		{Kind: "Event"}:                                           true,
		{Kind: "ConfigMap"}:                                       false,
		{Group: "events.k8s.io", Kind: "Event"}:                   true,
		{Group: "coordination.k8s.io", Kind: "Lease"}:             true,
		{Group: "metrics.k8s.io", Kind: "PodMetrics"}:             true,
		{Group: "custom.metrics.k8s.io", Kind: "MetricValueList"}: true,
		{Group: "external.metrics.k8s.io", Kind: "ExternalMetricValueList"}:       true,
		{Group: "cluster.kubernetes-fleet.io", Kind: "MemberCluster"}:             true,
		{Group: "placement.kubernetes-fleet.io", Kind: "Work"}:                    true,
		{Group: "placement.kubernetes-fleet.io", Kind: "ResourceEnvelope"}:        false,
		{Group: "placement.kubernetes-fleet.io", Kind: "ClusterResourceEnvelope"}: false,
		{Group: "networking.fleet.azure.com", Kind: "ServiceImport"}:              true,
		{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"}:                 false,
		{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}:         false,
	}
	for gk, disabled := range cases {
		assert.Equal(t, disabled, snapshot.Disabled(gk), gk.String())
	}
}

func TestContentIsTheSameInAnyOrder(t *testing.T) {
	objects := []*unstructured.Unstructured{
		object(t, `{apiVersion: v1, kind: Namespace, metadata: {name: ns}}`),
		object(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: ns}}`),
		object(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: b, namespace: ns}}`),
		object(t, `{apiVersion: v1, kind: Service, metadata: {name: a, namespace: ns}}`),
		object(t, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, namespace: ns}}`),
		object(t, `{apiVersion: placement.kubernetes-fleet.io/v1beta1, kind: ResourceEnvelope, metadata: {name: a, namespace: ns}}`),
		object(t, `{apiVersion: example.com/v1, kind: Widget, metadata: {name: a, namespace: ns}}`),
	}
	content := contentOf(t, objects...)
	var kinds []string
	for _, manifest := range content.Manifests {
		o := object(t, string(manifest))
		kinds = append(kinds, o.GetKind()+"/"+o.GetName())
	}
	assert.Equal(t, []string{"Namespace/ns", "ConfigMap/a", "ConfigMap/b", "Service/a", "Deployment/a", "Widget/a", "ResourceEnvelope/a"}, kinds)
	assert.Equal(t, 1, content.Envelopes)
	assert.Len(t, content.Hash, 64)

	reversed := make([]*unstructured.Unstructured, 0, len(objects))
	for _, object := range slices.Backward(objects) {
		reversed = append(reversed, object)
	}
	assert.Equal(t, content, contentOf(t, reversed...))

	less := contentOf(t, objects[1:]...)
	assert.NotEqual(t, content.Hash, less.Hash)
}

func TestSplit(t *testing.T) {
	manifests := func(sizes ...int) (all [][]byte) {
		for _, size := range sizes {
			all = append(all, []byte(strings.Repeat("x", size)))
		}
		return all
	}
	cases := map[string]struct {
		manifests [][]byte
		want      []int
	}{
		"nothing is one empty part":                          {nil, []int{0}},
		"what fits stays together":                           {manifests(4, 6), []int{2}},
		"what does not fit begins a part":                    {manifests(4, 7), []int{1, 1}},
		"an object above the limit gets a part of its own":   {manifests(2, 20, 2), []int{1, 1, 1}},
		"a large first object does not leave an empty part":  {manifests(20, 2), []int{1, 1}},
		"the order is kept, so a gap is not filled up later": {manifests(6, 6, 2, 2), []int{1, 3}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var sizes []int
			var joined [][]byte
			for _, part := range snapshot.Split(tc.manifests, 10) {
				sizes = append(sizes, len(part))
				joined = append(joined, part...)
			}
			assert.Equal(t, tc.want, sizes)
			assert.Equal(t, tc.manifests, joined)
		})
	}
}

func TestGroup(t *testing.T) {
	placement := &placementv1beta1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: "crp-1", UID: "757f"}}
	big := []byte(`"` + strings.Repeat("x", snapshot.PartLimit-100) + `"`)
	group := snapshot.Group(placement, 4, snapshot.Content{Manifests: [][]byte{big, big}, Hash: "e092", Envelopes: 2})
	require.Len(t, group, 2)
	yes := true
	owner := []metav1.OwnerReference{{
		APIVersion: "placement.kubernetes-fleet.io/v1beta1", Kind: "ClusterResourcePlacement", Name: "crp-1", UID: "757f",
		Controller: &yes, BlockOwnerDeletion: &yes,
	}}
	assert.Empty(t, cmp.Diff(metav1.ObjectMeta{
		Name: "crp-1-4-snapshot",
		Labels: map[string]string{
			"kubernetes-fleet.io/is-latest-snapshot": "true",
			"kubernetes-fleet.io/parent-CRP":         "crp-1",
			"kubernetes-fleet.io/resource-index":     "4",
		},
		Annotations: map[string]string{
			"kubernetes-fleet.io/number-of-enveloped-object":   "2",
			"kubernetes-fleet.io/number-of-resource-snapshots": "2",
			"kubernetes-fleet.io/resource-hash":                "e092",
		},
		OwnerReferences: owner,
	}, group[0].(*placementv1beta1.ClusterResourceSnapshot).ObjectMeta))
	assert.Equal(t, "crp-1-4-1", group[1].GetName())
	assert.Equal(t, "1", group[1].GetAnnotations()["kubernetes-fleet.io/subindex-of-resource-snapshot"])
	assert.NotContains(t, group[1].GetAnnotations(), "kubernetes-fleet.io/resource-hash", "by this annotation readers know the master")
	assert.NotContains(t, group[1].GetLabels(), "kubernetes-fleet.io/is-latest-snapshot")

	empty := snapshot.Group(placement, 0, snapshot.Content{Hash: "none"})
	require.Len(t, empty, 1)
	assert.NotNil(t, empty[0].GetResourceSnapshotSpec().SelectedResources)
}

func TestFingerprint(t *testing.T) {
	id := func(name, version string) snapshot.Identity {
		return snapshot.Identity{GroupKind: schema.GroupKind{Kind: "ConfigMap"}, Namespace: "n", Name: name, UID: types.UID("u" + name), Version: version}
	}
	a := snapshot.Fingerprint([]snapshot.Identity{id("a", "1"), id("b", "2")})
	assert.Equal(t, a, snapshot.Fingerprint([]snapshot.Identity{id("b", "2"), id("a", "1")}), "order does not matter")
	assert.NotEqual(t, a, snapshot.Fingerprint([]snapshot.Identity{id("a", "1"), id("b", "3")}), "a version does")
	assert.NotEqual(t, a, snapshot.Fingerprint([]snapshot.Identity{id("a", "1")}), "absence does")
}

func TestVersion(t *testing.T) {
	deployment := `{apiVersion: apps/v1, kind: Deployment, metadata: {name: d, generation: 2, resourceVersion: "%RV%", labels: {a: "%LABEL%"}, annotations: {deployment.kubernetes.io/revision: "%RV%"}}}`
	version := func(document string, rv, label string) string {
		o := object(t, strings.NewReplacer("%RV%", rv, "%LABEL%", label).Replace(document))
		return snapshot.Version(o.GroupVersionKind().GroupKind(), o)
	}
	assert.Equal(t, version(deployment, "1", "x"), version(deployment, "2", "x"), "a change of status is none")
	assert.NotEqual(t, version(deployment, "1", "x"), version(deployment, "1", "y"), "a change of labels is one")
	assert.NotEqual(t, version(deployment, "1", "x"), version(strings.Replace(deployment, "generation: 2", "generation: 3", 1), "1", "x"))
	finalized := strings.Replace(deployment, "generation: 2", "generation: 2, finalizers: [f]", 1)
	assert.NotEqual(t, version(deployment, "1", "x"), version(finalized, "1", "x"), "a version covers all metadata that users set")
	configMap := `{apiVersion: v1, kind: ConfigMap, metadata: {name: c, resourceVersion: "%RV%"}}`
	assert.NotEqual(t, version(configMap, "1", ""), version(configMap, "2", ""), "without a generation every write counts")
	for _, of := range []string{"{apiVersion: example.com/v1, kind: Widget, ", "{apiVersion: networking.k8s.io/v1, kind: Ingress, ", "{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, "} {
		counted := of + `metadata: {name: o, generation: 1, resourceVersion: "%RV%"}}`
		assert.Equal(t, version(counted, "1", ""), version(counted, "2", ""), of)
	}
	for of, why := range map[string]string{
		"{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, ":               "its generation never moves",
		"{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, ": "its status says what the hub serves",
	} {
		written := of + `metadata: {name: o, generation: 1, resourceVersion: "%RV%"}}`
		assert.NotEqual(t, version(written, "1", ""), version(written, "2", ""), why)
	}
}

func TestVersionOfKindsThatCountNothing(t *testing.T) {
	version := func(document string) string {
		o := object(t, document)
		return snapshot.Version(o.GroupVersionKind().GroupKind(), o)
	}
	kinds := map[string]string{ // what is wanted, once more, and what a controller reports
		"apiVersion: v1, kind: Service":                             `spec: {ports: [{port: %d}]}, status: {loadBalancer: {ingress: [{ip: 1.2.3.%d}]}}`,
		"apiVersion: v1, kind: ResourceQuota":                       `spec: {hard: {pods: "%d"}}, status: {used: {pods: "%d"}}`,
		"apiVersion: v1, kind: PersistentVolumeClaim":               `spec: {storageClassName: c%d}, status: {phase: p%d}`,
		"apiVersion: v1, kind: PersistentVolume":                    `spec: {storageClassName: c%d}, status: {phase: p%d}`,
		"apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler": `spec: {maxReplicas: %d}, status: {currentReplicas: %d}`,
		"apiVersion: apiregistration.k8s.io/v1, kind: APIService":   `spec: {groupPriorityMinimum: %d}, status: {conditions: [{type: c%d}]}`,
		"apiVersion: resource.k8s.io/v1, kind: ResourceClaim":       `spec: {devices: {requests: [{name: r%d}]}}, status: {reservedFor: [{name: p%d}]}`,
		"apiVersion: storage.k8s.io/v1, kind: VolumeAttachment":     `spec: {attacher: a%d}, status: {attached: a%d}`,
	}
	for kind, content := range kinds {
		t.Run(kind, func(t *testing.T) {
			of := func(rv string, wanted, reported int) string {
				return version("{" + kind + `, metadata: {name: o, resourceVersion: "` + rv + `"}, ` + fmt.Sprintf(content, wanted, reported) + "}")
			}
			assert.Equal(t, of("1", 1, 1), of("2", 1, 2), "a change of status is none")
			assert.NotEqual(t, of("1", 1, 1), of("2", 2, 1), "a change of what is wanted is one")
			o := object(t, "{"+kind+", metadata: {name: o}}")
			assert.True(t, snapshot.Uncounted(o.GroupVersionKind().GroupKind()))
			counted := object(t, "{"+kind+`, metadata: {name: o, generation: 3, resourceVersion: "7"}}`)
			metadata := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "o", Generation: 3}}
			gk := o.GroupVersionKind().GroupKind()
			assert.Equal(t, snapshot.Version(gk, metadata), snapshot.Version(gk, counted), "should it count one day, its metadata is enough")
		})
	}
}

// contentOf is the content of a snapshot of objects.
func contentOf(t testing.TB, objects ...*unstructured.Unstructured) snapshot.Content {
	t.Helper()
	items := make([]snapshot.Item, 0, len(objects))
	for _, object := range objects {
		item, err := snapshot.Encode(object)
		require.NoError(t, err)
		items = append(items, item)
	}
	return snapshot.NewContent(items)
}

func TestAnObjectThatNoSnapshotCanHold(t *testing.T) {
	fits := object(t, `{apiVersion: example.com/v1, kind: Widget, metadata: {name: w, namespace: ns}, spec: {text: "`+strings.Repeat("x", snapshot.ObjectLimit-200)+`"}, status: {text: "`+strings.Repeat("x", 10_000)+`"}}`)
	assert.Len(t, snapshot.Group(&placementv1beta1.ClusterResourcePlacement{}, 0, contentOf(t, fits)), 1)
	small, err := snapshot.Encode(fits)
	require.NoError(t, err)
	assert.False(t, small.IsTooLarge(), "its status is no part of it")

	for _, namespace := range []string{"ns", ""} {
		large := object(t, `{apiVersion: example.com/v1, kind: Widget, metadata: {name: w, namespace: "`+namespace+`"}, spec: {text: "`+strings.Repeat("x", snapshot.ObjectLimit)+`"}}`)
		item, err := snapshot.Encode(large)
		require.NoError(t, err)
		require.True(t, item.IsTooLarge())
		again := item
		sentence := item.KeepFormer(nil)
		assert.Contains(t, sentence, `Widget (example.com/v1) "`+strings.TrimPrefix(namespace+"/w", "/")+`" has 1500`)
		assert.Contains(t, sentence, "may have 1500000 at most: make it smaller, or split it into several; until then it is not placed")
		assert.Empty(t, snapshot.NewContent([]snapshot.Item{item}).Manifests)
		assert.Contains(t, again.KeepFormer([]byte("{}")), "until then it stays placed as it was before")
		assert.Equal(t, [][]byte{[]byte("{}")}, snapshot.NewContent([]snapshot.Item{again}).Manifests)
	}
}

func TestNote(t *testing.T) {
	kind := snapshot.Kind{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}}
	missing := func(n int) (all []string) {
		for i := range n {
			all = append(all, snapshot.Rule{Index: i, Kind: kind, Name: "ns"}.Missing(i == 1))
		}
		return all
	}
	assert.Empty(t, snapshot.NoteOf(nil, false))
	assert.Equal(t, "nothing on the hub matches the resource selectors", snapshot.NoteOf(nil, true))
	assert.Equal(t, `resourceSelectors[0] selects Namespace (v1) "ns", which does not exist on the hub; it is placed as soon as it does`, snapshot.NoteOf(missing(1), true))
	assert.Contains(t, snapshot.NoteOf(missing(2), false), `; resourceSelectors[1] selects Namespace (v1) "ns", which is being deleted, or is none that is placed`)
	many := snapshot.NoteOf(missing(100), false)
	assert.Contains(t, many, "resourceSelectors[2]")
	assert.NotContains(t, many, "resourceSelectors[3]")
	assert.True(t, strings.HasSuffix(many, "; and 97 more are missing"), many)
}

func TestVerdict(t *testing.T) {
	verdict := snapshot.Verdict{Generation: 3, Snapshot: "crp-0-snapshot", Inputs: "i", Note: "n", Due: time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)}
	decoded, err := snapshot.DecodeVerdict(verdict.Encode())
	require.NoError(t, err)
	assert.Equal(t, verdict, decoded)
	none, err := snapshot.DecodeVerdict("")
	require.NoError(t, err)
	assert.Zero(t, none)
	_, err = snapshot.DecodeVerdict("{")
	assert.ErrorContains(t, err, "selection verdict")
}
