package rules

import (
	"cmp"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// Rank is what a placement says of which placement has an object that several select.
type Rank struct {
	Priority int32
	// Preempts says that it takes over what a placement of a lower priority has.
	Preempts bool
	// Namespaced says that it is a ResourcePlacement.
	Namespaced bool
}

// namespacedCeiling is the highest priority that a ResourcePlacement has against ClusterResourcePlacements. Teams write what priority
// theirs have: a higher one must not be enough to get what a placement of the cluster is to have.
const namespacedCeiling = 0

// TakesFrom reports whether a placement of the rank takes over what one of the other rank has.
func (r Rank) TakesFrom(other Rank) bool {
	if !r.Preempts {
		return false
	}
	if r.Namespaced == other.Namespaced {
		return r.Priority > other.Priority
	}
	return r.acrossScopes() > other.acrossScopes()
}

// Compare is less than 0 if a placement of the rank gets an object rather than one of the other rank, and neither has it; 0 if the
// ranks do not decide it. It orders all ranks in one line, in which each is before those that it may take from.
func (r Rank) Compare(other Rank) int {
	return cmp.Or(
		-cmp.Compare(r.acrossScopes(), other.acrossScopes()),
		-cmp.Compare(r.scope(), other.scope()),
		-cmp.Compare(r.Priority, other.Priority),
	)
}

// acrossScopes returns the priority that counts between a ResourcePlacement and a ClusterResourcePlacement.
func (r Rank) acrossScopes() int32 {
	if r.Namespaced {
		return min(r.Priority, namespacedCeiling)
	}
	return r.Priority
}

func (r Rank) scope() int {
	if r.Namespaced {
		return 1
	}
	return 0
}

// RankOf returns the rank of a placement; false if it has none, and shares no object by agreement.
func RankOf(placement placementv1beta1.PlacementObject) (Rank, bool) {
	spec := placement.GetPlacementSpec()
	if spec.Priority == nil {
		return Rank{}, false
	}
	return Rank{Priority: *spec.Priority, Preempts: spec.Preemption == placementv1beta1.PreemptionAlways, Namespaced: placement.GetNamespace() != ""}, true
}

// RankOfWork reads the rank of the placement of a Work; false if it has none.
func RankOfWork(work metav1.Object) (Rank, bool) {
	priority, err := strconv.ParseInt(work.GetAnnotations()[placementv1beta1.PriorityAnnotation], 10, 32)
	if err != nil {
		return Rank{}, false
	}
	return Rank{
		Priority: int32(priority), Preempts: work.GetAnnotations()[placementv1beta1.PreemptionAnnotation] == string(placementv1beta1.PreemptionAlways),
		Namespaced: work.GetLabels()[placementv1beta1.ParentNamespaceLabel] != "",
	}, true
}
