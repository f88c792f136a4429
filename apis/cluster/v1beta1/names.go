package v1beta1

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Labels, finalizers and names that belong to members.
const (
	// fleetPrefix starts the labels, annotations and finalizers that KubeFleet defines.
	fleetPrefix = "kubernetes-fleet.io/"
	// OwnPrefix starts those that fleetflow adds. KubeFleet may define any key in its own domain.
	OwnPrefix = "fleetflow.io/"

	// MemberClusterFinalizer holds a MemberCluster until the cluster has left the fleet.
	MemberClusterFinalizer = fleetPrefix + "membercluster-finalizer"
	// ProfileFinalizer is on MemberClusters for which KubeFleet has made a ClusterProfile. It goes with the other one.
	ProfileFinalizer = fleetPrefix + "cluster-profile-cleanup"

	// MemberNameLabel carries a MemberCluster's own name, so that a label selector can
	// pick a cluster by name.
	MemberNameLabel = fleetPrefix + "member-name"

	// FleetResourceLabel marks objects the fleet made for itself; they are never placed.
	FleetResourceLabel = fleetPrefix + "is-fleet-resource"

	// FleetResourceLabelValue is the value of FleetResourceLabel.
	FleetResourceLabelValue = "true"

	// ProviderLabel is who provides the nodes of a cluster. ZoneLabelPrefix and the name of a zone make the label of a cluster with nodes
	// in it; a cluster with nodes in one zone only has Kubernetes' label of that, too.
	ProviderLabel   = OwnPrefix + "provider"
	ZoneLabelPrefix = "zone." + OwnPrefix

	// LocationLabelsAnnotation on a MemberCluster are the labels that the hub agent has made of what the member reports of where it
	// is, in JSON. Those that are set by hand are not among them, and stay.
	LocationLabelsAnnotation = OwnPrefix + "location-labels"

	// ValueAnnotationPrefix begins the annotations of a MemberCluster that overrides may ask for: who may write an override
	// reads no others by it.
	ValueAnnotationPrefix = "value." + OwnPrefix

	// ClusterAliasLabel on a MemberCluster is a name of what the cluster is for, by which policies and overrides choose it and that values
	// of overrides can have: kubectl fleet replace gives it to the cluster that replaces it.
	ClusterAliasLabel = OwnPrefix + "cluster-alias"

	// ReplacedByAnnotation on a MemberCluster names the cluster that is to replace it: placements move there, each once its new copy
	// is available, and nothing new is placed on it.
	ReplacedByAnnotation = OwnPrefix + "replaced-by"

	// KeepPlacedAnnotation on a MemberCluster, set to KeepPlacedValue, leaves what the
	// fleet placed on the cluster in place when it leaves. By default it is removed. The
	// InternalMemberCluster carries it too, so that the member's agent knows.
	KeepPlacedAnnotation = OwnPrefix + "keep-placed-resources"

	// KeepPlacedValue is the value of KeepPlacedAnnotation that counts.
	KeepPlacedValue = "true"

	// TaintsSinceAnnotation on a MemberCluster has when the hub first saw the taints with effect NoExecute that do not tell
	// since when they are there: times by taint, as JSON.
	TaintsSinceAnnotation = OwnPrefix + "taints-since"

	// ClusterUIDAnnotation on a MemberCluster has the uid of the cluster's namespace kube-system, by which a user who joins
	// a cluster tells it from another that is to get the same name by mistake.
	ClusterUIDAnnotation = OwnPrefix + "cluster-uid"

	// AgentRequestAnnotation on the Deployment of a member agent has what has become of the request that the agent took up last.
	AgentRequestAnnotation = OwnPrefix + "agent-request"

	// TemporalLease is the name of the Lease, in the namespace of the hub agent, that is renewed with each answer of Temporal, or note of why there
	// is none. The latter is in TemporalProblemAnnotation.
	TemporalLease = "hub-agent-temporal.fleetflow.io"

	// TemporalProblemAnnotation on that Lease has why the hub agent does not reach Temporal; it is there only then.
	TemporalProblemAnnotation = OwnPrefix + "temporal-problem"

	// ApprovalsProblemAnnotation on that Lease has why no approval through Temporal is taken; it is there only then.
	ApprovalsProblemAnnotation = OwnPrefix + "approvals-problem"

	// TemporalModeAnnotation on that Lease has the TemporalMode.
	TemporalModeAnnotation = OwnPrefix + "temporal-mode"

	// SystemNamespace is where the agents run and keep what concerns no single member.
	SystemNamespace = "fleet-system"

	// FleetNamespacePrefix starts the names of the fleet's own namespaces; they are never placed.
	FleetNamespacePrefix = "fleet-"

	// KubeNamespacePrefix starts the names of Kubernetes' own namespaces; they are never placed.
	KubeNamespacePrefix = "kube-"

	// DefaultNamespace is never placed either.
	DefaultNamespace = "default"

	memberNamespacePrefix   = "fleet-member-"
	memberRolePrefix        = "fleet-role-"
	memberRoleBindingPrefix = "fleet-rolebinding-"
)

// Names of the properties every member reports, and of the resource figures that
// placements can select and rank clusters by.
const (
	// NodeCountProperty is the number of nodes.
	NodeCountProperty PropertyName = fleetPrefix + "node-count"

	// KubernetesVersionProperty is the version of the cluster's API server.
	KubernetesVersionProperty PropertyName = "k8s.io/k8s-version"

	// ProviderProperty is who provides the nodes, as their provider IDs begin; a cluster with nodes of several has none.
	ProviderProperty PropertyName = OwnPrefix + "provider"

	// RegionProperty is the region of the nodes; a cluster with nodes in several has none.
	RegionProperty PropertyName = OwnPrefix + "region"

	// ZonesProperty are the zones of the nodes, at most MaxReportedZones of them, in order and with commas between.
	ZonesProperty PropertyName = OwnPrefix + "zones"

	// ZoneCountProperty is in how many zones the nodes are.
	ZoneCountProperty PropertyName = OwnPrefix + "zone-count"

	// LargestPodPropertyPrefix starts the names of how much of a resource a single pod can request at most so that it still
	// fits on a node: it is followed by the resource, with a dot for a slash.
	LargestPodPropertyPrefix = OwnPrefix + "largest-pod-"

	// AgentVersionProperty is the version of the member agent.
	AgentVersionProperty PropertyName = OwnPrefix + "agent-version"

	// AgentImageProperty is the image that the member agent runs.
	AgentImageProperty PropertyName = OwnPrefix + "agent-image"

	// AgentHubProperty is the address by which the member agent reaches the hub.
	AgentHubProperty PropertyName = OwnPrefix + "agent-hub-address"

	// AgentTokenEndProperty is when the token ends that the member agent has for the hub.
	AgentTokenEndProperty PropertyName = OwnPrefix + "agent-token-end"

	// AgentPullsImagesProperty is "true" if the member agent pulls images before a change, as the owner of the cluster lets it.
	AgentPullsImagesProperty PropertyName = OwnPrefix + "agent-pulls-images"

	// AgentRequestProperty is when the request was made that the condition AgentAsRequested is about.
	AgentRequestProperty PropertyName = OwnPrefix + "agent-request"

	// ServedKindsProperty are the kinds that can be created in the cluster. Package apis/cluster/rules writes and reads its value.
	ServedKindsProperty PropertyName = OwnPrefix + "served-kinds"

	// ClusterEntryPointProperty is the address of the cluster's API server.
	ClusterEntryPointProperty PropertyName = "k8s.io/cluster-entrypoint"

	// ClusterCertificateAuthorityProperty is the CA bundle of the cluster's API server.
	ClusterCertificateAuthorityProperty PropertyName = "k8s.io/cluster-certificate-authority-data"

	// ResourcePropertyPrefix starts the names under which placements refer to resource
	// figures: it is followed by total-, allocatable- or available- and the resource.
	ResourcePropertyPrefix = "resources.kubernetes-fleet.io/"
)

// MaxReportedZones is how many zones a member names. Those beyond are counted.
const MaxReportedZones = 32

// LargestPodProperty is the property that tells how much of a resource a single pod can request.
func LargestPodProperty(resource corev1.ResourceName) PropertyName {
	return PropertyName(LargestPodPropertyPrefix + strings.ReplaceAll(string(resource), "/", "."))
}

// IsLasting reports whether a property stays as it is for long. What each report may change, the kinds of the cluster, and what is
// about the agent rather than the cluster, is not.
func IsLasting(name PropertyName) bool {
	return !strings.HasPrefix(string(name), LargestPodPropertyPrefix) && !strings.HasPrefix(string(name), OwnPrefix+"agent-") &&
		name != ServedKindsProperty
}

// MemberNamespace returns the namespace on the hub that belongs to a member alone.
func MemberNamespace(cluster string) string { return memberNamespacePrefix + cluster }

// MemberRoleName returns the name of the Role that lets a member into its namespace.
func MemberRoleName(cluster string) string { return memberRolePrefix + cluster }

// MemberRoleBindingName returns the name of the RoleBinding that grants a member its Role.
func MemberRoleBindingName(cluster string) string { return memberRoleBindingPrefix + cluster }

// MemberOfNamespace returns the member a namespace belongs to, and whether it belongs to one.
func MemberOfNamespace(namespace string) (string, bool) {
	if len(namespace) <= len(memberNamespacePrefix) || namespace[:len(memberNamespacePrefix)] != memberNamespacePrefix {
		return "", false
	}
	return namespace[len(memberNamespacePrefix):], true
}

// TemporalMode says which Temporal a hub agent uses.
type TemporalMode string

// The modes.
const (
	// TemporalBundled is a server beside each hub agent, for it alone.
	TemporalBundled TemporalMode = "Bundled"
	// TemporalExternal is a server, or a service, that all hub agents share.
	TemporalExternal TemporalMode = "External"
)
