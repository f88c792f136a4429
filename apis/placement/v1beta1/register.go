package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupName is the API group of the kinds in this package.
const GroupName = "placement.kubernetes-fleet.io"

var (
	// GroupVersion is the group and version of the kinds in this package.
	GroupVersion = schema.GroupVersion{Group: GroupName, Version: "v1beta1"}

	// SchemeBuilder collects the registration functions of this package.
	SchemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)

	// AddToScheme registers every kind of this package with a scheme.
	AddToScheme = SchemeBuilder.AddToScheme
)

// Resource returns the group-qualified name of a resource of this group, for API errors.
func Resource(resource string) schema.GroupResource {
	return GroupVersion.WithResource(resource).GroupResource()
}

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion,
		&ClusterResourcePlacement{}, &ClusterResourcePlacementList{},
		&ClusterSchedulingPolicySnapshot{}, &ClusterSchedulingPolicySnapshotList{},
		&ClusterResourceSnapshot{}, &ClusterResourceSnapshotList{},
		&ClusterResourceBinding{}, &ClusterResourceBindingList{},
		&Work{}, &WorkList{},
		&AppliedWork{}, &AppliedWorkList{},
		&ClusterStagedUpdateStrategy{}, &ClusterStagedUpdateStrategyList{},
		&ClusterStagedUpdateRun{}, &ClusterStagedUpdateRunList{},
		&ClusterApprovalRequest{}, &ClusterApprovalRequestList{},
		&ClusterResourcePlacementStatus{}, &ClusterResourcePlacementStatusList{},
	)
	// The namespaced twins.
	scheme.AddKnownTypes(GroupVersion,
		&ResourcePlacement{}, &ResourcePlacementList{},
		&SchedulingPolicySnapshot{}, &SchedulingPolicySnapshotList{},
		&ResourceSnapshot{}, &ResourceSnapshotList{},
		&ResourceBinding{}, &ResourceBindingList{},
		&StagedUpdateStrategy{}, &StagedUpdateStrategyList{},
		&StagedUpdateRun{}, &StagedUpdateRunList{},
		&ApprovalRequest{}, &ApprovalRequestList{},
		&ClusterResourceOverride{}, &ClusterResourceOverrideList{},
		&ResourceOverride{}, &ResourceOverrideList{},
		&ClusterResourceOverrideSnapshot{}, &ClusterResourceOverrideSnapshotList{},
		&ResourceOverrideSnapshot{}, &ResourceOverrideSnapshotList{},
		&ClusterResourceEnvelope{}, &ClusterResourceEnvelopeList{},
		&ResourceEnvelope{}, &ResourceEnvelopeList{},
		&ClusterResourcePlacementEviction{}, &ClusterResourcePlacementEvictionList{},
		&ClusterResourcePlacementDisruptionBudget{}, &ClusterResourcePlacementDisruptionBudgetList{},
	)
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
