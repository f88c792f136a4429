package workmodel

import (
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// ClusterState says how far a cluster is with what its binding asks for.
type ClusterState struct {
	// Synced says that every Work the binding needs carries its revision, and was made with the replicas in force.
	Synced bool
	// Applied says that the member has applied all of them as they are now.
	Applied bool
	// Available says that, in addition, all of them are available. With ReportDiff nothing is applied, and Available says that
	// the diff has been reported.
	Available bool
	// NotTrackable says that the availability of some resource is unknown; the cluster then counts as available only some time
	// after AvailableSince.
	NotTrackable bool
	// Failed says that the member tried the Works as they are now and could not
	// apply them.
	Failed bool
	// HeldBack says that overrides could not be applied to some resources, which stay as they
	// were; the rest of the state is about what is there.
	HeldBack bool
	// Scaling says that, of what is Available, not all replicas are there yet: only their number changes.
	Scaling bool
	// AvailableSince is when the last Work became available in this revision;
	// zero unless Available.
	AvailableSince time.Time
	// Stalled is what makes no progress or has failed for good, as it says itself; nil if nothing says so, or the cluster is
	// Available.
	Stalled *Stall
}

// StateOf returns how far a binding is from the Works in its member's namespace.
// Works of other bindings, of an earlier binding of the same name and of other
// revisions count for nothing.
func StateOf(binding placementv1beta1.BindingObject, works []placementv1beta1.Work) ClusterState {
	current, synced := currentWorks(binding, works)
	if !synced {
		return ClusterState{}
	}
	state := ClusterState{Synced: true, Applied: true, Available: true}
	if !isDividedAs(binding, current) {
		state.Synced = false
		state.Scaling = true
	}
	var counted []placementv1beta1.Work
	for i := range current {
		if !isAvailable(&current[i]) && isScaledEnough(&current[i]) && !isScalingOver(binding) {
			state.Scaling = true
			continue
		}
		state = state.withWork(&current[i], reportsDiff(binding.GetBindingSpec()))
		state.HeldBack = state.HeldBack || current[i].Annotations[HeldBackAnnotation] != ""
		counted = append(counted, current[i])
	}
	if !state.Available {
		state.AvailableSince = time.Time{}
		state.Scaling = false
		if state.Synced { // what is divided anew is not as it is to be yet
			state.Stalled = findStall(counted)
		}
	}
	return state
}

// ReadyAt returns when a cluster whose resources are available counts as available, and whether that is known: some time after they were
// applied if they cannot be tracked, and once they have been available for minReadySeconds.
func ReadyAt(binding placementv1beta1.BindingObject, state ClusterState, strategy *placementv1beta1.RolloutStrategy) (at time.Time, known bool) {
	at, known = rules.ReadyAt(binding, strategy.MinReady())
	if !state.NotTrackable {
		return at, known
	}
	if tracked := state.AvailableSince.Add(rules.UnavailablePeriodOf(strategy)); tracked.After(at) {
		at = tracked
	}
	return at, known
}

// withWork adds what one more Work says.
func (s ClusterState) withWork(work *placementv1beta1.Work, diffOnly bool) ClusterState {
	appliedType := placementv1beta1.ConditionTypeApplied
	availableType := placementv1beta1.ConditionTypeAvailable
	if diffOnly {
		appliedType = placementv1beta1.ConditionTypeDiffReported
		availableType = placementv1beta1.ConditionTypeDiffReported
	}
	applied := currentCondition(work, appliedType)
	if applied == nil || applied.Status != metav1.ConditionTrue {
		s.Applied = false
	}
	if applied != nil && applied.Status == metav1.ConditionFalse {
		s.Failed = true
	}
	available := currentCondition(work, availableType)
	if !s.Applied || available == nil || available.Status != metav1.ConditionTrue {
		s.Available = false
		return s
	}
	if available.Reason == placementv1beta1.ReasonWorkNotTrackable {
		s.NotTrackable = true
	}
	if since := availableSince(work, available); since.After(s.AvailableSince) {
		s.AvailableSince = since
	}
	return s
}

// Observe returns what is known of what a binding has placed.
func Observe(binding placementv1beta1.BindingObject, works []placementv1beta1.Work) rules.Observation {
	current, synced := currentWorks(binding, works)
	if !synced || reportsDiff(binding.GetBindingSpec()) {
		return rules.ObservedNothing
	}
	if state := StateOf(binding, works); state.Available || state.Scaling {
		return rules.ObservedAvailable
	}
	for i := range current {
		applied := currentCondition(&current[i], placementv1beta1.ConditionTypeApplied)
		available := currentCondition(&current[i], placementv1beta1.ConditionTypeAvailable)
		if applied != nil && applied.Status == metav1.ConditionTrue && available != nil && available.Status == metav1.ConditionFalse {
			return rules.ObservedUnavailable
		}
	}
	return rules.ObservedNothing
}

// availableSince returns the later of when the Work became available and when it was
// brought to its revision: a Work that stays available through an update keeps
// the older of the two in its condition.
func availableSince(work *placementv1beta1.Work, available *metav1.Condition) time.Time {
	since := available.LastTransitionTime.Time
	written, err := time.Parse(time.RFC3339, work.Annotations[RevisionTimeAnnotation])
	if err == nil && written.After(since) {
		return written
	}
	return since
}

// currentCondition returns the condition a Work has for its present spec, or nil.
func currentCondition(work *placementv1beta1.Work, conditionType string) *metav1.Condition {
	condition := meta.FindStatusCondition(work.Status.Conditions, conditionType)
	if condition == nil || condition.ObservedGeneration != work.Generation {
		return nil
	}
	return condition
}

// currentWorks picks the Works that belong to the binding and carry its
// revision, and says whether they are all there. A Work that goes away is none.
func currentWorks(binding placementv1beta1.BindingObject, works []placementv1beta1.Work) ([]placementv1beta1.Work, bool) {
	revision := Revision(binding)
	if revision == "" {
		return nil, false
	}
	var current, unsigned []placementv1beta1.Work
	needed := 0
	for i := range works {
		work := &works[i]
		if !work.DeletionTimestamp.IsZero() || !Owns(binding, work) {
			continue
		}
		if !rules.IsSigned(work) && rules.SaysWhatBindingWants(work, binding) {
			// Nothing says how many there must be. Before long they are signed, and a missing one is written then.
			unsigned = append(unsigned, *work)
			continue
		}
		if work.Annotations[placementv1beta1.RevisionAnnotation] != revision {
			continue
		}
		if count, err := strconv.Atoi(work.Annotations[placementv1beta1.WorkCountAnnotation]); err == nil {
			needed = max(needed, count)
		}
		current = append(current, *work)
	}
	if len(current) < needed || needed == 0 {
		current = append(current, unsigned...)
		needed = max(needed, len(current))
	}
	return current, needed > 0 && len(current) == needed
}

// IsAnyUnsigned says that, of the Works that name a binding, some are to be signed: another author has written them, or they
// name the UID that the binding had before the hub was restored. Once every Work that the binding needs is signed, what else
// names the binding is left over.
func IsAnyUnsigned(binding placementv1beta1.BindingObject, works []placementv1beta1.Work) bool {
	isToSign := func(work placementv1beta1.Work) bool {
		return work.DeletionTimestamp.IsZero() && (!Owns(binding, &work) || !rules.IsSigned(&work))
	}
	current, synced := currentWorks(binding, works)
	return slices.ContainsFunc(works, isToSign) && (!synced || slices.ContainsFunc(current, isToSign))
}

// Owns reports whether a Work was written for exactly this binding, rather than
// for another one or an earlier one of its name.
func Owns(binding placementv1beta1.BindingObject, work *placementv1beta1.Work) bool {
	return rules.IsWorkOf(work, binding)
}

func reportsDiff(spec *placementv1beta1.ResourceBindingSpec) bool {
	return spec.ApplyStrategy != nil && spec.ApplyStrategy.Type == placementv1beta1.ApplyStrategyTypeReportDiff
}
