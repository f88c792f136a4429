package snapshot

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// Candidate reports whether an object may be placed as far as its metadata tells.
// The watcher, which has metadata only, and the selection, which reads content, agree on it.
func Candidate(gk schema.GroupKind, object metav1.Object) bool {
	switch {
	case object.GetDeletionTimestamp() != nil, gk == NamespaceKind && ReservedNamespace(object.GetName()),
		rules.IsByProduct(gk, object), rules.IsBootstrapRBAC(gk, object):
		return false
	}
	return object.GetLabels()[placementv1beta1.FleetResourceLabel] != placementv1beta1.LabelValueTrue
}

// envelopes are the only kinds of the placement group that can be placed.
var envelopes = map[string]bool{
	string(placementv1beta1.ClusterResourceEnvelopeType): true,
	string(placementv1beta1.ResourceEnvelopeType):        true,
}

// EnvelopeType returns which type of envelope an object is, by its kind and
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
