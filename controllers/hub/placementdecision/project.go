// Package placementdecision tells programs that know nothing of the fleet where placements go: for every placement it keeps
// PlacementDecisions, the objects of SIG Multicluster that name the ClusterProfiles of the picked clusters.
//
// project.go is pure and says what the decisions of a placement have to be, reconciler.go writes them, setup.go waits for a hub that
// serves the kind.
package placementdecision

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"

	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/controllers/hub/clusterprofile"
)

const (
	// PlacementAnnotation on a PlacementDecision is the placement that it is of: with its namespace and a slash if it is in one.
	PlacementAnnotation = clusterv1beta1.OwnPrefix + "placement"

	// sliceSize is how many clusters a PlacementDecision takes.
	sliceSize = 100
	// longestKey is what the value of a label takes.
	longestKey = 63
)

// KeyOf returns what the decisions of a placement are labelled with. It begins their names.
func KeyOf(scope placementv1beta1.Scope, placement string) string {
	key := "crp-" + placement
	if scope.Namespaced() {
		key = "rp-" + scope.Namespace + "." + placement // no namespace has a dot
	}
	if len(key) <= longestKey {
		return key
	}
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(key)) // writing to a hash never fails
	return fmt.Sprintf("%s-%016x", strings.TrimRight(key[:longestKey-17], ".-"), hash.Sum64())
}

// Project returns the decisions of a placement with these bindings, in order. A placement that is on no cluster has one, without clusters.
func Project(placement placementv1beta1.PlacementObject, bindings []placementv1beta1.BindingObject,
	namespace string) []inventoryv1alpha1.PlacementDecision {
	scope := placementv1beta1.ScopeOf(placement)
	scheduler := clusterprofile.ManagerName
	if policy := placement.GetPlacementSpec().Policy; policy != nil {
		scheduler = cmp.Or(policy.SchedulerName, scheduler)
	}
	clusters := listClusters(bindings)
	key := KeyOf(scope, placement.GetName())
	var slicesOf []inventoryv1alpha1.PlacementDecision
	for i := 0; i == 0 || i*sliceSize < len(clusters); i++ {
		decision := inventoryv1alpha1.PlacementDecision{
			SchedulerName: scheduler,
			Decisions:     append([]inventoryv1alpha1.ClusterDecision{}, clusters[i*sliceSize:min(len(clusters), (i+1)*sliceSize)]...),
		}
		decision.Namespace = namespace
		decision.Name = key + "-" + strconv.Itoa(i)
		decision.Labels = map[string]string{
			inventoryv1alpha1.DecisionKeyLabel: key, inventoryv1alpha1.DecisionIndexLabel: strconv.Itoa(i),
			clusterv1beta1.FleetResourceLabel: clusterv1beta1.FleetResourceLabelValue,
		}
		decision.Annotations = map[string]string{PlacementAnnotation: scope.String() + placement.GetName()}
		slicesOf = append(slicesOf, decision)
	}
	return slicesOf
}

// listClusters returns the clusters that are picked, in the order of their names, which are those of their ClusterProfiles.
func listClusters(bindings []placementv1beta1.BindingObject) []inventoryv1alpha1.ClusterDecision {
	var clusters []inventoryv1alpha1.ClusterDecision
	for _, binding := range bindings {
		if spec := binding.GetBindingSpec(); rules.IsLiveBinding(binding) {
			clusters = append(clusters, inventoryv1alpha1.ClusterDecision{
				ClusterProfileRef: inventoryv1alpha1.ClusterProfileReference{Name: spec.TargetCluster}, Reason: spec.ClusterDecision.Reason,
			})
		}
	}
	slices.SortFunc(clusters, func(a, b inventoryv1alpha1.ClusterDecision) int {
		return cmp.Compare(a.ClusterProfileRef.Name, b.ClusterProfileRef.Name)
	})
	return slices.CompactFunc(clusters, func(a, b inventoryv1alpha1.ClusterDecision) bool { return a.ClusterProfileRef == b.ClusterProfileRef })
}
