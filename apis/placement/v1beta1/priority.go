package v1beta1

import (
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Rank is what a placement says of which placement has an object that several select.
//
// +kubebuilder:object:generate=false
type Rank struct {
	Priority int32
	// Preempts says that it takes over what a placement of a lower priority has.
	Preempts bool
}

// TakesFrom says that a placement of the rank takes over what one of the other rank has.
func (r Rank) TakesFrom(other Rank) bool { return r.Preempts && r.Priority > other.Priority }

// RankOf is the rank of a placement; false if it has none, and shares no object by agreement.
func RankOf(placement PlacementObject) (Rank, bool) {
	spec := placement.GetPlacementSpec()
	if spec.Priority == nil {
		return Rank{}, false
	}
	return Rank{Priority: *spec.Priority, Preempts: spec.Preemption == PreemptionAlways}, true
}

// RankOfWork reads the rank of the placement of a Work; false if it has none.
func RankOfWork(work metav1.Object) (Rank, bool) {
	priority, err := strconv.ParseInt(work.GetAnnotations()[PriorityAnnotation], 10, 32)
	if err != nil {
		return Rank{}, false
	}
	return Rank{Priority: int32(priority), Preempts: work.GetAnnotations()[PreemptionAnnotation] == string(PreemptionAlways)}, true
}
