package plan

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	clusterrules "github.com/fleetflow/fleetflow/apis/cluster/rules"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	"github.com/fleetflow/fleetflow/apis/placement/updaterun"
)

// noteUnserved says which kinds of some objects clusters do not serve, by what they have reported: none is asked. Of clusters that have
// not reported their kinds it says nothing. Kinds whose definition is one of the objects come with them.
func noteUnserved(members []clusterv1beta1.MemberCluster, clusters []string, objects []unstructured.Unstructured) []string {
	kinds := rules.NeededKinds(func(yield func(schema.GroupVersionKind, string) bool) {
		for i := range objects {
			if !yield(objects[i].GroupVersionKind(), objects[i].GetName()) {
				return
			}
		}
	})
	lacking := map[schema.GroupVersionKind][]string{}
	for i := range members {
		member := &members[i]
		served, known := clusterrules.ServedKindsOf(member)
		if !known || !slices.Contains(clusters, member.Name) {
			continue
		}
		for _, kind := range kinds {
			if !served.Serves(kind) {
				lacking[kind] = append(lacking[kind], member.Name)
			}
		}
	}
	var notes []string
	for _, kind := range kinds {
		if names := lacking[kind]; len(names) > 0 {
			slices.Sort(names)
			notes = append(notes, fmt.Sprintf("%d of %d clusters do not serve %s of %s, by what they report: its objects cannot be applied on %s",
				len(names), len(clusters), kind.Kind, kind.GroupVersion(), updaterun.ListNames(names)))
		}
	}
	return notes
}
