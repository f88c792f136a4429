package rules

import (
	"encoding/json"
	"iter"

	"k8s.io/apimachinery/pkg/runtime/schema"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// KindsToServe returns the kinds of some objects, which come with their names, that clusters have to serve if the policy asks for that; nil
// if it does not.
func KindsToServe(policy *placementv1beta1.PlacementPolicy, objects iter.Seq2[schema.GroupVersionKind, string]) []schema.GroupVersionKind {
	if policy == nil || policy.UnservedKinds != placementv1beta1.UnservedKindsExclude {
		return nil
	}
	return NeededKinds(objects)
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

// KindsIn iterates over the objects of manifests. What cannot be read is passed over.
func KindsIn(manifests [][]byte) iter.Seq2[schema.GroupVersionKind, string] {
	return func(yield func(schema.GroupVersionKind, string) bool) {
		for _, raw := range manifests {
			var object struct {
				APIVersion string `json:"apiVersion"`
				Kind       string `json:"kind"`
				Metadata   struct {
					Name string `json:"name"`
				} `json:"metadata"`
			}
			if json.Unmarshal(raw, &object) != nil {
				continue
			}
			if !yield(schema.FromAPIVersionAndKind(object.APIVersion, object.Kind), object.Metadata.Name) {
				return
			}
		}
	}
}
