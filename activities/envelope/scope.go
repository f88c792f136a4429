package envelope

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fleetflow/fleetflow/activities/snapshot"
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

// Rules are what a hub lets envelopes hold. The zero value has no filter, knows the kinds of
// Kubernetes, and lets ConfigMaps hold namespaced objects only.
type Rules struct {
	// Scope tells where the objects of a kind live; BuiltIn if nil.
	Scope ScopeOf
	// Filter is what the operator of the hub keeps from being placed.
	Filter snapshot.Filter
	// ClusterScopedInConfigMaps lets a ConfigMap hold cluster-scoped objects too. The hub's
	// admission has to see to it, then, that only those write such ConfigMaps who may create
	// ClusterResourceEnvelopes.
	ClusterScopedInConfigMaps bool
}

// In returns the rules for the envelopes that a placement of a scope brings: those of a placement in a namespace hold nothing
// that is cluster-scoped, regardless of their author.
func (r Rules) In(scope placementv1beta1.Scope) Rules {
	r.ClusterScopedInConfigMaps = r.ClusterScopedInConfigMaps && !scope.Namespaced()
	return r
}

func (r Rules) scopeOf(gk schema.GroupKind) Scope {
	if r.Scope == nil {
		return BuiltIn(gk)
	}
	return r.Scope(gk)
}

// onlyNamespaced reports whether an envelope holds objects of its own namespace only.
func (r Rules) onlyNamespaced(id placementv1beta1.EnvelopeIdentifier) bool {
	return id.Type == placementv1beta1.ResourceEnvelopeType ||
		id.Type == placementv1beta1.ConfigMapEnvelopeType && !r.ClusterScopedInConfigMaps
}

// Served tells the scope of the kinds that a hub serves, and of those that Kubernetes itself serves
// somewhere. A kind of neither may be known to members; they refuse what contradicts its scope there.
func Served(catalog *snapshot.Catalog) ScopeOf {
	return func(gk schema.GroupKind) Scope {
		switch namespaced, served := catalog.Namespaced(gk); {
		case !served:
			return BuiltIn(gk)
		case namespaced:
			return NamespaceScope
		default:
			return ClusterScope
		}
	}
}

// BuiltIn tells the scope of the kinds that Kubernetes itself serves.
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
func checkNamespace(object *unstructured.Unstructured, id placementv1beta1.EnvelopeIdentifier, rules Rules) (rule string) {
	lives := rules.scopeOf(object.GroupVersionKind().GroupKind())
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
	case !rules.onlyNamespaced(id):
		return ""
	}
	holder := "a ResourceEnvelope"
	if id.Type == placementv1beta1.ConfigMapEnvelopeType {
		holder = "on this hub a ConfigMap"
	}
	if known {
		return fmt.Sprintf("%s is cluster-scoped, and %s holds namespaced objects only: put it into a ClusterResourceEnvelope",
			KeyOf(object), holder)
	}
	return fmt.Sprintf("%s has no namespace, so it counts as cluster-scoped, and %s holds namespaced objects only: set metadata.namespace to %q, or put it into a ClusterResourceEnvelope",
		KeyOf(object), holder, id.Namespace)
}

// apparentScope returns the scope that an object itself makes one think of.
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
