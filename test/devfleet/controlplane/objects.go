package controlplane

import (
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fleetflow/fleetflow/test/devfleet/state"
)

const (
	nodesPerMember         = 2
	heartbeatPeriodSeconds = 15
	// SystemNamespace is where the hub agent keeps its lease.
	SystemNamespace = "fleet-system"
	// ChecksNamespace is the one of the hub whose ConfigMaps metrics of analyses may read, and in which they may run Jobs.
	ChecksNamespace = "checks"
)

func namespaceNamed(name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name},
	}}
}

// memberCluster returns the hub's object for the i-th member, counted from 1.
func memberCluster(i int) *unstructured.Unstructured {
	name := state.MemberName(i)
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "cluster.kubernetes-fleet.io/v1beta1", "kind": "MemberCluster",
		"metadata": map[string]any{"name": name, "labels": memberLabels(i)},
		"spec": map[string]any{
			"identity": map[string]any{
				"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": name,
			},
			"heartbeatPeriodSeconds": int64(heartbeatPeriodSeconds),
		},
	}}
}

// memberLabels follow the staged update how-to: one staging cluster, two canaries in an order that is not the
// alphabetic one, and the rest in production.
func memberLabels(i int) map[string]any {
	switch i {
	case 1:
		return map[string]any{"environment": "canary", "order": "2"}
	case 2:
		return map[string]any{"environment": "staging"}
	case 3:
		return map[string]any{"environment": "canary", "order": "1"}
	}
	return map[string]any{"environment": "production", "order": strconv.Itoa(i)}
}

// node returns a node with its size; zones differ, so that spreading can be seen.
func node(name string, i int) *unstructured.Unstructured {
	size := map[string]any{"cpu": "8", "memory": "32Gi", "pods": "110"}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Node",
		"metadata": map[string]any{
			"name": name,
			"labels": map[string]any{
				"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64",
				"topology.kubernetes.io/zone": "zone-" + strconv.Itoa(i+1),
			},
		},
		"status": map[string]any{"capacity": size, "allocatable": size},
	}}
}
