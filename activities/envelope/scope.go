package envelope

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// Scope is where the objects of a kind live.
type Scope int

const (
	// UnknownScope is that of kinds only the members may know. What an object of such
	// a kind says counts: with a metadata.namespace it is namespaced, without one it
	// is cluster-scoped.
	UnknownScope Scope = iota
	// ClusterScope is that of kinds whose objects have no namespace.
	ClusterScope
	// NamespaceScope is that of kinds whose objects are in a namespace.
	NamespaceScope
)

// ScopeOf tells the scope of a kind.
type ScopeOf func(schema.GroupKind) Scope

// BuiltIn tells the scope of the kinds that Kubernetes itself serves. It asks no
// cluster: the hub need not know what members know, and an envelope must not turn
// good or bad by what happens to be installed on the hub.
func BuiltIn(gk schema.GroupKind) Scope {
	kinds, known := builtIn[gk.Group]
	switch {
	case !known:
		return UnknownScope
	case isListed(kinds.cluster, gk.Kind):
		return ClusterScope
	case isListed(kinds.namespaced, gk.Kind):
		return NamespaceScope
	}
	return UnknownScope // newer than this list
}

func isListed(kinds, kind string) bool {
	for name := range strings.FieldsSeq(kinds) {
		if name == kind {
			return true
		}
	}
	return false
}

// builtIn has the kinds of each API group of Kubernetes by their scope.
var builtIn = map[string]struct{ cluster, namespaced string }{
	"": {
		cluster: "ComponentStatus Namespace Node PersistentVolume",
		namespaced: "Binding ConfigMap Endpoints Event LimitRange PersistentVolumeClaim Pod PodTemplate " +
			"ReplicationController ResourceQuota Secret Service ServiceAccount",
	},
	"admissionregistration.k8s.io": {
		cluster: "MutatingAdmissionPolicy MutatingAdmissionPolicyBinding MutatingWebhookConfiguration " +
			"ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding ValidatingWebhookConfiguration",
	},
	"apiextensions.k8s.io":         {cluster: "CustomResourceDefinition"},
	"apiregistration.k8s.io":       {cluster: "APIService"},
	"apps":                         {namespaced: "ControllerRevision DaemonSet Deployment ReplicaSet StatefulSet"},
	"autoscaling":                  {namespaced: "HorizontalPodAutoscaler"},
	"batch":                        {namespaced: "CronJob Job"},
	"certificates.k8s.io":          {cluster: "CertificateSigningRequest ClusterTrustBundle"},
	"coordination.k8s.io":          {namespaced: "Lease LeaseCandidate"},
	"discovery.k8s.io":             {namespaced: "EndpointSlice"},
	"events.k8s.io":                {namespaced: "Event"},
	"flowcontrol.apiserver.k8s.io": {cluster: "FlowSchema PriorityLevelConfiguration"},
	"networking.k8s.io":            {cluster: "IPAddress IngressClass ServiceCIDR", namespaced: "Ingress NetworkPolicy"},
	"node.k8s.io":                  {cluster: "RuntimeClass"},
	"policy":                       {namespaced: "PodDisruptionBudget"},
	"rbac.authorization.k8s.io":    {cluster: "ClusterRole ClusterRoleBinding", namespaced: "Role RoleBinding"},
	"resource.k8s.io":              {cluster: "DeviceClass ResourceSlice", namespaced: "ResourceClaim ResourceClaimTemplate"},
	"scheduling.k8s.io":            {cluster: "PriorityClass"},
	"storage.k8s.io": {
		cluster: "CSIDriver CSINode StorageClass VolumeAttachment VolumeAttributesClass", namespaced: "CSIStorageCapacity",
	},
}

// checkNamespace checks that an object may be in its envelope as far as its namespace goes.
// An object that has to be in a namespace and names none gets the envelope's.
func checkNamespace(object *unstructured.Unstructured, id placementv1beta1.EnvelopeIdentifier, scope ScopeOf) (rule string) {
	lives := scope(object.GroupVersionKind().GroupKind())
	known := lives != UnknownScope
	if !known {
		lives = apparentScope(object)
	}
	switch {
	case lives == NamespaceScope && id.Type == placementv1beta1.ClusterResourceEnvelopeType:
		return fmt.Sprintf("%s is namespaced, and a ClusterResourceEnvelope holds cluster-scoped objects only: put it into a ResourceEnvelope in its namespace", KeyOf(object))
	case lives == NamespaceScope:
		return settleInNamespace(object, id.Namespace)
	case object.GetNamespace() != "":
		return fmt.Sprintf("%s is cluster-scoped and has a namespace: remove metadata.namespace", KeyOf(object))
	case id.Type != placementv1beta1.ResourceEnvelopeType:
		return ""
	case known:
		return fmt.Sprintf("%s is cluster-scoped, and a ResourceEnvelope holds namespaced objects only: put it into a ClusterResourceEnvelope", KeyOf(object))
	}
	return fmt.Sprintf("%s has no namespace, so it counts as cluster-scoped, and a ResourceEnvelope holds namespaced objects only: set metadata.namespace to %q, or put it into a ClusterResourceEnvelope",
		KeyOf(object), id.Namespace)
}

// apparentScope is the scope that an object itself makes one think of.
func apparentScope(object *unstructured.Unstructured) Scope {
	if object.GetNamespace() == "" {
		return ClusterScope
	}
	return NamespaceScope
}

func settleInNamespace(object *unstructured.Unstructured, namespace string) (rule string) {
	switch object.GetNamespace() {
	case "":
		object.SetNamespace(namespace)
	case namespace:
	default:
		return fmt.Sprintf("%s is not in the namespace of the envelope: set metadata.namespace to %q, or use an envelope in namespace %q",
			KeyOf(object), namespace, object.GetNamespace())
	}
	return ""
}
