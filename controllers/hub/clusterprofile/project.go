// Package clusterprofile shows members of the fleet to programs that know nothing
// of it: for every MemberCluster that has joined it keeps a ClusterProfile, the
// inventory object of SIG Multicluster. It goes when the member leaves.
//
// project.go is pure and says what a profile has to be, reconciler.go writes it,
// setup.go waits for a hub that serves the kind.
package clusterprofile

import (
	"encoding/base64"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
)

// ManagerName is how the fleet signs its profiles.
const ManagerName = "kubefleet"

// Reasons of the condition ControlPlaneHealthy.
const (
	// ReasonHealthy means that the member's agent finds its API server ready.
	ReasonHealthy = "MemberClusterAPIServerHealthy"
	// ReasonUnhealthy means that it does not.
	ReasonUnhealthy = "MemberClusterAPIServerUnhealthy"
	// ReasonHeartbeatLost means that the agent has not reported for too long.
	ReasonHeartbeatLost = "MemberAgentHeartbeatLost"
	// ReasonNoHealthInfo means that the agent has said nothing about it.
	ReasonNoHealthInfo = "MemberAgentReportedNoHealthInfo"
)

const (
	// conditionJoined is whether the cluster is part of the fleet.
	conditionJoined = "Joined"

	// longestValue is what a profile takes as the value of a property.
	longestValue = 1024
	// observedAfresh is how old the times of observation may become while nothing else changes: a heartbeat without a
	// change is no reason to write.
	observedAfresh = 10 * time.Minute
)

// Wanted reports whether a member has a profile. One that has not joined yet gets
// none; one that has got one keeps it until it leaves.
func Wanted(member *clusterv1beta1.MemberCluster, exists bool) bool {
	if member == nil || !member.DeletionTimestamp.IsZero() {
		return false
	}
	return exists || meta.IsStatusConditionTrue(member.Status.Conditions, clusterv1beta1.ConditionTypeJoined)
}

// Ours reports whether a profile belongs to the fleet. Other managers of clusters may keep theirs in the same namespace.
func Ours(profile *inventoryv1alpha1.ClusterProfile) bool {
	return profile.Spec.ClusterManager.Name == ManagerName
}

// Spec returns the spec of a member's profile.
func Spec(member *clusterv1beta1.MemberCluster) inventoryv1alpha1.ClusterProfileSpec {
	return inventoryv1alpha1.ClusterProfileSpec{
		DisplayName:    member.Name,
		ClusterManager: inventoryv1alpha1.ClusterManager{Name: ManagerName},
	}
}

// Status computes the status of a member's profile, and says whether it is worth writing over the present one.
func Status(member *clusterv1beta1.MemberCluster, profile *inventoryv1alpha1.ClusterProfile) (inventoryv1alpha1.ClusterProfileStatus, bool) {
	status := *profile.Status.DeepCopy()
	for _, condition := range []metav1.Condition{controlPlaneHealthy(member), joinedToFleet(member)} {
		condition.ObservedGeneration = profile.Generation
		meta.SetStatusCondition(&status.Conditions, condition)
	}
	status.Version.Kubernetes = member.Status.Properties[clusterv1beta1.KubernetesVersionProperty].Value
	status.Properties = listProperties(&member.Status)
	status.AccessProviders = accessProviders(&member.Status)
	return status, isWorthWriting(&profile.Status, &status)
}

// isWorthWriting ignores the times of observation until they are old.
func isWorthWriting(before, after *inventoryv1alpha1.ClusterProfileStatus) bool {
	values := func(status *inventoryv1alpha1.ClusterProfileStatus) map[string]string {
		all := make(map[string]string, len(status.Properties))
		for _, p := range status.Properties {
			all[p.Name] = p.Value
		}
		return all
	}
	newest := func(status *inventoryv1alpha1.ClusterProfileStatus) (at time.Time) {
		for _, p := range status.Properties {
			if p.LastObservedTime.After(at) {
				at = p.LastObservedTime.Time
			}
		}
		return at
	}
	return !apiequality.Semantic.DeepEqual(before.Conditions, after.Conditions) || before.Version != after.Version ||
		!apiequality.Semantic.DeepEqual(before.AccessProviders, after.AccessProviders) ||
		!maps.Equal(values(before), values(after)) || newest(after).Sub(newest(before)) >= observedAfresh
}

func controlPlaneHealthy(member *clusterv1beta1.MemberCluster) metav1.Condition {
	condition := metav1.Condition{
		Type: inventoryv1alpha1.ClusterConditionControlPlaneHealthy, Status: metav1.ConditionUnknown,
		Reason: ReasonNoHealthInfo, Message: "The agent of the member cluster has not said how its API server is",
		LastTransitionTime: member.CreationTimestamp,
	}
	said := meta.FindStatusCondition(member.Status.Conditions, clusterv1beta1.ConditionTypeHealthy)
	if said != nil {
		condition.LastTransitionTime = said.LastTransitionTime
	}
	switch {
	case said == nil:
	case said.Status == metav1.ConditionTrue:
		condition.Status = metav1.ConditionTrue
		condition.Reason = ReasonHealthy
		condition.Message = "The API server of the member cluster is healthy"
	case said.Status == metav1.ConditionFalse:
		condition.Status = metav1.ConditionFalse
		condition.Reason = ReasonUnhealthy
		condition.Message = said.Message
	case said.Reason == clusterv1beta1.ReasonMemberClusterHeartbeatMissed:
		condition.Reason = ReasonHeartbeatLost
		condition.Message = said.Message
	}
	return condition
}

func joinedToFleet(member *clusterv1beta1.MemberCluster) metav1.Condition {
	condition := metav1.Condition{
		Type: conditionJoined, Status: metav1.ConditionUnknown,
		Reason: clusterv1beta1.ReasonMemberClusterJoinStateUnknown, Message: "The agent of the member cluster has not reported yet",
		LastTransitionTime: member.CreationTimestamp,
	}
	if said := meta.FindStatusCondition(member.Status.Conditions, clusterv1beta1.ConditionTypeJoined); said != nil {
		condition.Status = said.Status
		condition.Reason = said.Reason
		condition.Message = said.Message
		condition.LastTransitionTime = said.LastTransitionTime
	}
	return condition
}

// listProperties returns the properties of the member, and the capacity of its nodes. The capacity that is available
// at the moment changes with every pod and is left to the MemberCluster.
func listProperties(status *clusterv1beta1.MemberClusterStatus) []inventoryv1alpha1.Property {
	all := map[string]inventoryv1alpha1.Property{}
	put := func(name, value string, at metav1.Time) {
		if value != "" && len(value) <= longestValue {
			all[name] = inventoryv1alpha1.Property{Name: name, Value: value, LastObservedTime: at}
		}
	}
	for name, property := range status.Properties {
		switch name {
		case clusterv1beta1.KubernetesVersionProperty, clusterv1beta1.ClusterEntryPointProperty,
			clusterv1beta1.ClusterCertificateAuthorityProperty:
			// They have fields of their own.
		case clusterv1beta1.ServedKindsProperty:
			// A profile has no room for it.
		default:
			if strings.HasPrefix(string(name), clusterv1beta1.LargestPodPropertyPrefix) {
				continue // it changes with every pod
			}
			put(string(name), property.Value, property.ObservationTime)
		}
	}
	for capacity, list := range map[string]corev1.ResourceList{
		"total-": status.ResourceUsage.Capacity, "allocatable-": status.ResourceUsage.Allocatable,
	} {
		for resource, quantity := range list {
			// The names of extended resources have a slash; that of a property has one already.
			name := clusterv1beta1.ResourcePropertyPrefix + capacity + strings.ReplaceAll(string(resource), "/", ".")
			put(name, quantity.String(), status.ResourceUsage.ObservationTime)
		}
	}
	sorted := make([]inventoryv1alpha1.Property, 0, len(all))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		sorted = append(sorted, all[name])
	}
	return sorted
}

// accessProviders returns the address of the member's API server as its agent knows it. Clients need an identity of
// their own to log in there.
func accessProviders(status *clusterv1beta1.MemberClusterStatus) []inventoryv1alpha1.AccessProvider {
	server := status.Properties[clusterv1beta1.ClusterEntryPointProperty].Value
	if server == "" {
		return nil
	}
	cluster := clientcmdv1.Cluster{Server: server}
	authority := status.Properties[clusterv1beta1.ClusterCertificateAuthorityProperty].Value
	if pem, err := base64.StdEncoding.DecodeString(authority); err == nil && len(pem) > 0 {
		cluster.CertificateAuthorityData = pem
	}
	return []inventoryv1alpha1.AccessProvider{{Name: ManagerName, Cluster: cluster}}
}
