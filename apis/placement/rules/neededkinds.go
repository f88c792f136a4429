package rules

import (
	"iter"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// NeededKinds returns the kinds of some objects, which come with their names, that a cluster has to serve for it to take them. Kinds of a
// group of which a definition is one of the objects come with them, and envelopes are not created on clusters.
func NeededKinds(objects iter.Seq2[schema.GroupVersionKind, string]) []schema.GroupVersionKind {
	var kinds []schema.GroupVersionKind
	comes := map[string]bool{placementv1beta1.GroupVersion.Group: true}
	for kind, name := range objects {
		if kind.Kind == "CustomResourceDefinition" {
			_, group, _ := strings.Cut(name, ".")
			comes[group] = true
		}
		if !slices.Contains(kinds, kind) {
			kinds = append(kinds, kind)
		}
	}
	return slices.DeleteFunc(kinds, func(kind schema.GroupVersionKind) bool { return comes[kind.Group] })
}
