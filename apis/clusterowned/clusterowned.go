// Package clusterowned lists what of an object belongs to the cluster that it is on: what the API server and the controllers of a
// cluster write themselves, and would write again. It is neither taken from the hub nor applied, removed or compared on a member.
package clusterowned

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Metadata are the fields of the metadata that only the API server sets, and the owners, which are objects of the same cluster.
var Metadata = []string{
	"uid", "resourceVersion", "generation", "creationTimestamp", "selfLink", "managedFields",
	"ownerReferences", "deletionTimestamp", "deletionGracePeriodSeconds",
}

// Annotations by which the controllers of volumes remember what they have done.
const (
	BoundByController = "pv.kubernetes.io/bound-by-controller"
	BindCompleted     = "pv.kubernetes.io/bind-completed"
)

// Bookkeeping are annotations of kubectl, the API server and controllers about an object of the same cluster.
var Bookkeeping = []string{
	corev1.LastAppliedConfigAnnotation,
	"deployment.kubernetes.io/revision",
	// Which generation a DaemonSet's template has, and the status of an autoscaler as
	// autoscaling/v1 shows it.
	"deprecated.daemonset.template.generation",
	"autoscaling.alpha.kubernetes.io/conditions",
	"autoscaling.alpha.kubernetes.io/current-metrics",
	// Which volume a claim has got, from whom, and for which node.
	BindCompleted, BoundByController, "pv.kubernetes.io/migrated-to",
	"volume.kubernetes.io/storage-provisioner", "volume.beta.kubernetes.io/storage-provisioner",
	"volume.kubernetes.io/selected-node",
}

// JobLabels tie the pods of a Job to its uid or name; the API server of each cluster sets them.
var JobLabels = []string{
	"controller-uid", "job-name", "batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name",
}

// filled are fields that a cluster fills in, unless the manifest sets them, with values that no hub can know.
var filled = map[schema.GroupKind][][]string{
	{Kind: "Namespace"}:      {{"spec", "finalizers"}},
	{Kind: "ServiceAccount"}: {{"secrets"}},
	{Kind: "Service"}: {
		{"spec", "clusterIP"}, {"spec", "clusterIPs"}, {"spec", "healthCheckNodePort"},
		{"spec", "ipFamilies"}, {"spec", "ipFamilyPolicy"},
	},
	{Kind: "PersistentVolumeClaim"}: {{"spec", "volumeName"}},
	{Kind: "PersistentVolume"}: {
		{"spec", "claimRef"}, {"spec", "claimRef", "uid"}, {"spec", "claimRef", "resourceVersion"},
	},
	// The pods that a user of the cluster wants to be rid of. The controller of CloneSets clears the list.
	{Group: "apps.kruise.io", Kind: "CloneSet"}: {{"spec", "scaleStrategy", "podsToDelete"}},
	{Group: "batch", Kind: "Job"}:               fieldsOfJobs(),
}

func fieldsOfJobs() [][]string {
	fields := [][]string{{"spec", "selector"}}
	for _, label := range JobLabels {
		fields = append(fields, []string{"metadata", "labels", label}, []string{"spec", "template", "metadata", "labels", label})
	}
	return fields
}

// Filled returns the fields that a cluster fills in, unless the manifest sets them. They stay if the manifest sets them no longer.
func Filled(kind schema.GroupKind) [][]string { return filled[kind] }

// injections are annotations and labels that ask a controller of the cluster to write the certificate of an authority.
var injections = []string{
	"cert-manager.io/inject-ca-from", "cert-manager.io/inject-ca-from-secret", "cert-manager.io/inject-apiserver-ca",
	"service.beta.openshift.io/inject-cabundle", "config.openshift.io/inject-trusted-cabundle",
}

// certificates are the fields that such a controller writes, by kind. A star stands for each item of a list.
var certificates = map[schema.GroupKind][][]string{
	{Group: "admissionregistration.k8s.io", Kind: "MutatingWebhookConfiguration"}:   {{"webhooks", "*", "clientConfig", "caBundle"}},
	{Group: "admissionregistration.k8s.io", Kind: "ValidatingWebhookConfiguration"}: {{"webhooks", "*", "clientConfig", "caBundle"}},
	{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}: {{"spec", "conversion", "webhook", "clientConfig",
		"caBundle"}},
	{Group: "apiregistration.k8s.io", Kind: "APIService"}: {{"spec", "caBundle"}},
	{Kind: "ConfigMap"}: {{"data", "service-ca.crt"}, {"data", "ca-bundle.crt"}},
}

// Governed returns the fields of an object that a controller of each cluster writes because the object asks for it: the rules of a
// ClusterRole that is gathered from others, and certificates that are injected. Nothing else may set them.
func Governed(object *unstructured.Unstructured) [][]string {
	kind := object.GroupVersionKind().GroupKind()
	if (kind == schema.GroupKind{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"}) && object.Object["aggregationRule"] != nil {
		return [][]string{{"rules"}}
	}
	fields := certificates[kind]
	if len(fields) == 0 {
		return nil
	}
	for _, marks := range []map[string]string{object.GetAnnotations(), object.GetLabels()} {
		for _, key := range injections {
			if value, asked := marks[key]; asked && value != "false" {
				return fields
			}
		}
	}
	return nil
}

// Remove takes fields off an object, in place. A star in a path stands for each item of a list.
func Remove(object map[string]any, fields [][]string) {
	for _, path := range fields {
		removeAt(object, path)
	}
}

func removeAt(value any, path []string) {
	switch v := value.(type) {
	case map[string]any:
		if len(path) == 1 {
			delete(v, path[0])
			return
		}
		removeAt(v[path[0]], path[1:])
	case []any:
		for _, item := range v {
			if path[0] == "*" && len(path) > 1 {
				removeAt(item, path[1:])
			}
		}
	}
}
