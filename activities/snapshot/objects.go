package snapshot

import (
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// rootCAConfigMap is what Kubernetes puts into every namespace.
const rootCAConfigMap = "kube-root-ca.crt"

// generatedWhenOwned are kinds that workload controllers create. The owner is
// placed instead; its controller on the member creates them there.
var generatedWhenOwned = map[schema.GroupKind]bool{
	{Kind: "Pod"}:                               true,
	{Group: "apps", Kind: "ReplicaSet"}:         true,
	{Group: "apps", Kind: "ControllerRevision"}: true,
	{Group: "batch", Kind: "Job"}:               true,
}

// managedBy names the label by which Kubernetes' own controllers mark what they
// generate, by kind.
var managedBy = map[schema.GroupKind]string{
	{Kind: "Endpoints"}: "endpoints.kubernetes.io/managed-by",
	{Group: "discovery.k8s.io", Kind: "EndpointSlice"}: discoveryv1.LabelManagedBy,
}

// Candidate says whether an object may be placed as far as its metadata tells.
// Whoever watches metadata only and whoever reads content agree on it.
func Candidate(gk schema.GroupKind, object metav1.Object) bool {
	switch {
	case object.GetDeletionTimestamp() != nil,
		generatedWhenOwned[gk] && len(object.GetOwnerReferences()) > 0,
		gk == schema.GroupKind{Kind: "ConfigMap"} && object.GetName() == rootCAConfigMap,
		gk == schema.GroupKind{Kind: "ServiceAccount"} && object.GetName() == "default",
		gk == NamespaceKind && ReservedNamespace(object.GetName()),
		object.GetLabels()[placementv1beta1.FleetResourceLabel] == placementv1beta1.LabelValueTrue:
		return false
	}
	if label, ok := managedBy[gk]; ok {
		_, managed := object.GetLabels()[label]
		return !managed
	}
	return true
}

// Placeable removes from candidates what only content reveals as generated:
// tokens of service accounts, and Endpoints that belong to a Service.
func Placeable(objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	services := map[string]bool{}
	for _, object := range objects {
		if gk := object.GroupVersionKind().GroupKind(); gk == (schema.GroupKind{Kind: "Service"}) {
			services[object.GetNamespace()+"/"+object.GetName()] = true
		}
	}
	var kept []*unstructured.Unstructured
	for _, object := range objects {
		switch object.GroupVersionKind().GroupKind() {
		case schema.GroupKind{Kind: "Secret"}:
			kind, _, _ := unstructured.NestedString(object.Object, "type")
			if kind == string(corev1.SecretTypeServiceAccountToken) {
				continue
			}
		case schema.GroupKind{Kind: "Endpoints"}:
			if services[object.GetNamespace()+"/"+object.GetName()] {
				continue
			}
		}
		kept = append(kept, object)
	}
	return kept
}
