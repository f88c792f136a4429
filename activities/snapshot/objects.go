package snapshot

import (
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// Candidate says whether an object may be placed as far as its metadata tells.
// The watcher, which has metadata only, and the selection, which reads content, agree on it.
func Candidate(gk schema.GroupKind, object metav1.Object) bool {
	switch {
	case object.GetDeletionTimestamp() != nil,
		generatedWhenOwned[gk] && len(object.GetOwnerReferences()) > 0,
		gk == schema.GroupKind{Kind: "ConfigMap"} && object.GetName() == rootCAConfigMap,
		gk == schema.GroupKind{Kind: "ServiceAccount"} && object.GetName() == "default",
		gk == NamespaceKind && ReservedNamespace(object.GetName()),
		placementv1beta1.IsBootstrapRBAC(gk, object),
		object.GetLabels()[placementv1beta1.FleetResourceLabel] == placementv1beta1.LabelValueTrue:
		return false
	}
	if gk == (schema.GroupKind{Group: "discovery.k8s.io", Kind: "EndpointSlice"}) {
		_, managed := object.GetLabels()[discoveryv1.LabelManagedBy]
		return !managed
	}
	return true
}

// envelopes are the only kinds of the placement group that can be placed.
var envelopes = map[string]bool{
	string(placementv1beta1.ClusterResourceEnvelopeType): true,
	string(placementv1beta1.ResourceEnvelopeType):        true,
}

// EnvelopeType says which type of envelope an object is, by its kind and
// annotations; false if it is none. Any other ConfigMap is just a ConfigMap.
func EnvelopeType(gk schema.GroupKind, annotations map[string]string) (placementv1beta1.EnvelopeType, bool) {
	switch {
	case gk.Group == placementv1beta1.GroupVersion.Group && envelopes[gk.Kind]:
		return placementv1beta1.EnvelopeType(gk.Kind), true
	case gk == schema.GroupKind{Kind: "ConfigMap"} && annotations[placementv1beta1.EnvelopeConfigMapAnnotation] == placementv1beta1.LabelValueTrue:
		return placementv1beta1.ConfigMapEnvelopeType, true
	}
	return "", false
}
