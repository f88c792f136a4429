package kubefleet

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetflow/fleetflow/test/kubefleet/types/clusterv1"
	"github.com/fleetflow/fleetflow/test/kubefleet/types/clusterv1beta1"
	"github.com/fleetflow/fleetflow/test/kubefleet/types/placementv1"
	"github.com/fleetflow/fleetflow/test/kubefleet/types/placementv1beta1"
)

// typed creates an object of KubeFleet's Go type, by kind and version.
var typed = map[string]func() metav1.Object{
	"MemberCluster v1":                    func() metav1.Object { return &clusterv1.MemberCluster{} },
	"MemberCluster v1beta1":               func() metav1.Object { return &clusterv1beta1.MemberCluster{} },
	"ClusterResourcePlacement v1":         func() metav1.Object { return &placementv1.ClusterResourcePlacement{} },
	"ClusterResourcePlacement v1beta1":    func() metav1.Object { return &placementv1beta1.ClusterResourcePlacement{} },
	"ResourcePlacement v1":                func() metav1.Object { return &placementv1.ResourcePlacement{} },
	"ResourcePlacement v1beta1":           func() metav1.Object { return &placementv1beta1.ResourcePlacement{} },
	"ClusterStagedUpdateStrategy v1":      func() metav1.Object { return &placementv1.ClusterStagedUpdateStrategy{} },
	"ClusterStagedUpdateStrategy v1beta1": func() metav1.Object { return &placementv1beta1.ClusterStagedUpdateStrategy{} },
	"StagedUpdateStrategy v1":             func() metav1.Object { return &placementv1.StagedUpdateStrategy{} },
	"StagedUpdateStrategy v1beta1":        func() metav1.Object { return &placementv1beta1.StagedUpdateStrategy{} },
	"ClusterStagedUpdateRun v1":           func() metav1.Object { return &placementv1.ClusterStagedUpdateRun{} },
	"ClusterStagedUpdateRun v1beta1":      func() metav1.Object { return &placementv1beta1.ClusterStagedUpdateRun{} },
	"StagedUpdateRun v1":                  func() metav1.Object { return &placementv1.StagedUpdateRun{} },
	"StagedUpdateRun v1beta1":             func() metav1.Object { return &placementv1beta1.StagedUpdateRun{} },
	"ClusterResourceOverride v1":          func() metav1.Object { return &placementv1.ClusterResourceOverride{} },
	"ClusterResourceOverride v1beta1":     func() metav1.Object { return &placementv1beta1.ClusterResourceOverride{} },
	"ResourceOverride v1":                 func() metav1.Object { return &placementv1.ResourceOverride{} },
	"ResourceOverride v1beta1":            func() metav1.Object { return &placementv1beta1.ResourceOverride{} },
	"ClusterApprovalRequest v1":           func() metav1.Object { return &placementv1.ClusterApprovalRequest{} },
	"ClusterApprovalRequest v1beta1":      func() metav1.Object { return &placementv1beta1.ClusterApprovalRequest{} },
	"ApprovalRequest v1":                  func() metav1.Object { return &placementv1.ApprovalRequest{} },
	"ApprovalRequest v1beta1":             func() metav1.Object { return &placementv1beta1.ApprovalRequest{} },
	"ClusterResourcePlacementDisruptionBudget v1beta1": func() metav1.Object {
		return &placementv1beta1.ClusterResourcePlacementDisruptionBudget{}
	},
	"ClusterResourcePlacementEviction v1beta1": func() metav1.Object { return &placementv1beta1.ClusterResourcePlacementEviction{} },
	"ClusterResourceEnvelope v1beta1":          func() metav1.Object { return &placementv1beta1.ClusterResourceEnvelope{} },
	"ResourceEnvelope v1beta1":                 func() metav1.Object { return &placementv1beta1.ResourceEnvelope{} },
}

// NewTyped returns an empty object of KubeFleet's Go type of a kind in a version; nil if there is no such type.
func NewTyped(kind, version string) metav1.Object {
	if create := typed[kind+" "+version]; create != nil {
		return create()
	}
	return nil
}
