package rules

import (
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// byProductNames are objects that a controller makes in every namespace, by kind and name.
var byProductNames = map[schema.GroupKind]map[string]bool{
	{Kind: "ConfigMap"}: {
		"kube-root-ca.crt":         true, // the root certificate of the cluster, by Kubernetes
		"openshift-service-ca.crt": true, // that of OpenShift's services
		"istio-ca-root-cert":       true, // that of the mesh of the cluster, by Istio
	},
	{Kind: "ServiceAccount"}: {"default": true},
}

// byProductMakers are the field managers of controllers that make objects only in answer to others: what one of them alone has
// written is no wish of a user.
var byProductMakers = map[string]bool{
	"kube-controller-manager":      true,
	"pilot-discovery":              true, // Istio
	"openshift-controller-manager": true,
	"cluster-policy-controller":    true, // OpenShift
}

// byProductOwned are kinds that controllers of workloads make. One that a user makes has no owner.
var byProductOwned = map[schema.GroupKind]bool{
	{Kind: "Pod"}:                               true,
	{Kind: "Endpoints"}:                         true,
	{Group: "apps", Kind: "ReplicaSet"}:         true,
	{Group: "apps", Kind: "ControllerRevision"}: true,
	{Group: "batch", Kind: "Job"}:               true,
	discoveryKind:                               true,
}

var discoveryKind = schema.GroupKind{Group: "discovery.k8s.io", Kind: "EndpointSlice"}

// IsByProduct reports whether an object was made by a controller of its cluster for something else, and not by a user: by its
// owner or by what is known of the controllers. Every cluster makes its own. It does not look at who has written the object, which
// caches leave out: IsMadeByControllers does.
func IsByProduct(kind schema.GroupKind, object metav1.Object) bool {
	switch kind.Group + "/" + kind.Kind {
	case "/Endpoints":
		if _, made := object.GetAnnotations()[corev1.EndpointsLastChangeTriggerTime]; made {
			return true
		}
	case "discovery.k8s.io/EndpointSlice":
		if _, made := object.GetLabels()[discoveryv1.LabelManagedBy]; made {
			return true
		}
	}
	return HasByProductName(kind, object.GetName()) || byProductOwned[kind] && len(object.GetOwnerReferences()) > 0
}

// HasByProductName reports whether a controller makes an object of this name in every namespace.
func HasByProductName(kind schema.GroupKind, name string) bool { return byProductNames[kind][name] }

// IsMadeByControllers reports whether only controllers have written an object, apart from its status. It returns false for Namespaces
// and definitions, which users ask for.
func IsMadeByControllers(kind schema.GroupKind, fields []metav1.ManagedFieldsEntry) bool {
	if kind.Kind == "Namespace" || kind.Kind == "CustomResourceDefinition" {
		return false
	}
	made := false
	for _, entry := range fields {
		if entry.Subresource != "" {
			continue
		}
		if !byProductMakers[entry.Manager] {
			return false
		}
		made = true
	}
	return made
}
