package apply

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// OwnerReference returns the reference by which an AppliedWork owns its objects. It is the one that
// KubeFleet's agent writes, so that neither writes an object for the sake of the other's reference.
func OwnerReference(name string, uid types.UID) metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion:         placementv1beta1.GroupVersion.String(),
		Kind:               "AppliedWork",
		Name:               name,
		UID:                uid,
		BlockOwnerDeletion: new(true),
	}
}

// IsAppliedWork reports whether an owner reference points to an AppliedWork of any version.
func IsAppliedWork(ref metav1.OwnerReference) bool {
	gv, err := schema.ParseGroupVersion(ref.APIVersion)
	return err == nil && gv.Group == placementv1beta1.GroupName && ref.Kind == "AppliedWork"
}

// Owners are the owners of an object, sorted by their relation to one AppliedWork.
type Owners struct {
	// Mine is whether the AppliedWork is among them.
	Mine bool
	// Former are references to an earlier AppliedWork of the same name. Names are unique, so it
	// does not exist any more, and the object belonged to this Work.
	Former []metav1.OwnerReference
	// Before are the other AppliedWorks listed before ours, or all if ours is not listed.
	Before []metav1.OwnerReference
	// After are the other AppliedWorks listed after ours.
	After []metav1.OwnerReference
	// Foreign are owners that are no AppliedWorks.
	Foreign []metav1.OwnerReference
}

// OwnersOf sorts the owner references of an object by what they are to the AppliedWork me.
func OwnersOf(refs []metav1.OwnerReference, me metav1.OwnerReference) Owners {
	var out Owners
	for _, ref := range refs {
		switch {
		case ref.UID == me.UID:
			out.Mine = true
		case IsAppliedWork(ref) && ref.Name == me.Name:
			out.Former = append(out.Former, ref)
		case !IsAppliedWork(ref):
			out.Foreign = append(out.Foreign, ref)
		case out.Mine:
			out.After = append(out.After, ref)
		default:
			out.Before = append(out.Before, ref)
		}
	}
	return out
}

// Rival is another AppliedWork that owns an object and exists.
type Rival struct {
	// Name of the AppliedWork.
	Name string
	// Placement that it belongs to, if that is known.
	Placement string
	// Yields is whether it gives the object up: its Work ends or has no manifest of the object any more, or the placement of
	// ours comes before its own.
	Yields bool
}

// DecideOwnership decides whether a manifest may be applied to an existing object. The rivals are
// the AppliedWorks before ours that own it and exist. A nil problem means yes. If we do not own the
// object yet, it is to be taken over; if onlyIfSame is true, only if it does not differ from the
// manifest.
func DecideOwnership(owners Owners, rivals []Rival, strategy placementv1beta1.ApplyStrategy) (problem *Problem, onlyIfSame bool) {
	for _, rival := range rivals {
		if !rival.Yields {
			return placementConflictProblem(rival), false
		}
	}
	if owners.Mine || len(owners.Former) > 0 || len(rivals) > 0 {
		return nil, false
	}
	if strategy.WhenToTakeOver == placementv1beta1.WhenToTakeOverTypeNever {
		return &Problem{
			Reason: placementv1beta1.ReasonNotTakenOver,
			Message: notAppliedText + " (error: no ownership of the object in the member cluster; takeover is needed): " +
				"the object exists on the cluster and whenToTakeOver is Never, so it is left alone",
			NoRetry: true, by: theCluster,
		}, false
	}
	if len(owners.Foreign) > 0 && !strategy.AllowCoOwnership {
		return &Problem{
			Reason: placementv1beta1.ReasonFailedToTakeOver,
			Message: fmt.Sprintf("%s (error: cannot take over object: it is owned by %s outside the fleet): set allowCoOwnership to place it nevertheless",
				notAppliedText, describeOwners(owners.Foreign)),
			NoRetry: true, by: describeOwners(owners.Foreign),
		}, false
	}
	return nil, strategy.WhenToTakeOver == placementv1beta1.WhenToTakeOverTypeIfNoDiff
}

// theCluster is who has what no client is known to have.
const theCluster = "the cluster"

func placementConflictProblem(rival Rival) *Problem {
	by := fmt.Sprintf("AppliedWork %s", rival.Name)
	if rival.Placement != "" {
		by = fmt.Sprintf("placement %s (AppliedWork %s)", rival.Placement, rival.Name)
	}
	return &Problem{
		Reason: placementv1beta1.ReasonApplyConflictBetweenPlacements, by: by,
		Message: fmt.Sprintf("The object is already owned by %s; two placements cannot place the same object on a cluster. "+
			"It changes hands, without being deleted, once the other placement ends or no longer selects it; with spec.priority on both, the placement of the higher one has it", by),
	}
}

func describeOwners(refs []metav1.OwnerReference) string {
	names := make([]string, 0, len(refs))
	for _, ref := range refs {
		names = append(names, ref.Kind+" "+ref.Name)
	}
	return strings.Join(names, ", ")
}

// WithOwner returns the owner references with ours added if it is missing, and without those of the
// given UIDs.
func WithOwner(refs []metav1.OwnerReference, mine metav1.OwnerReference, without map[types.UID]bool) []metav1.OwnerReference {
	out := make([]metav1.OwnerReference, 0, len(refs)+1)
	found := false
	for _, ref := range refs {
		if without[ref.UID] && ref.UID != mine.UID {
			continue
		}
		found = found || ref.UID == mine.UID
		out = append(out, ref)
	}
	if !found {
		out = append(out, mine)
	}
	return out
}

// WithoutOwner returns the owner references without that UID.
func WithoutOwner(refs []metav1.OwnerReference, uid types.UID) []metav1.OwnerReference {
	out := make([]metav1.OwnerReference, 0, len(refs))
	for _, ref := range refs {
		if ref.UID != uid {
			out = append(out, ref)
		}
	}
	return out
}
