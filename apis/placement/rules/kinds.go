package rules

import (
	"crypto/sha256"
	"encoding/hex"
	"iter"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// KindsToServe returns the kinds of some objects, which come with their names, that clusters have to serve if the policy asks for that. It
// is nil if the policy does not, and never nil if it does.
func KindsToServe(policy *placementv1beta1.PlacementPolicy, objects iter.Seq2[schema.GroupVersionKind, string]) []schema.GroupVersionKind {
	if policy == nil || policy.UnservedKinds != placementv1beta1.UnservedKindsExclude {
		return nil
	}
	return append([]schema.GroupVersionKind{}, NeededKinds(objects)...)
}

// HashDemand tells apart what clusters are picked for, so that they are picked anew when that changes: what workloads ask for whose
// replicas are divided, and the kinds that clusters have to serve. It is empty if the policy asks for neither.
func HashDemand(demands []ReplicaDemand, kinds []schema.GroupVersionKind) string {
	divided := HashReplicaDemands(demands)
	if kinds == nil {
		return divided
	}
	lines := []string{divided}
	for _, kind := range kinds {
		lines = append(lines, kind.String())
	}
	slices.Sort(lines[1:])
	sum := sha256.Sum256([]byte(strings.Join(lines, "\n")))
	return hex.EncodeToString(sum[:16])
}

// SelectedKinds iterates over the objects that a placement has selected, as its status says.
func SelectedKinds(placement placementv1beta1.PlacementObject) iter.Seq2[schema.GroupVersionKind, string] {
	return func(yield func(schema.GroupVersionKind, string) bool) {
		for _, id := range placement.GetPlacementStatus().SelectedResources {
			if !yield(schema.GroupVersionKind{Group: id.Group, Version: id.Version, Kind: id.Kind}, id.Name) {
				return
			}
		}
	}
}
