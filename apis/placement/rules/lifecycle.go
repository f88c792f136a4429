package rules

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// Names of the hooks, as the fields are called.
const (
	hookPreUpdate    = "preUpdate"
	hookPreRemove    = "preRemove"
	hookPreAvailable = "preAvailable"
)

// HookWait is what a cluster waits for because of a lifecycle hook.
type HookWait struct {
	// Hook has the name of the field.
	Hook string
	// Binding has the name of the cluster's binding.
	Binding string
	// Marks are the labels and finalizers to be taken off the binding, or put on it if
	// PutOn says so; none if the wait is for something else.
	Marks []string
	PutOn bool
	// Until is the end of the grace period, if that is all that is waited for.
	Until time.Time
	// Since is when the cluster came to the state in which it waits; zero if it is not in it yet.
	Since time.Time
}

// Need says in words what the wait is for.
func (w *HookWait) Need() string {
	switch {
	case len(w.Marks) > 0 && w.PutOn:
		return fmt.Sprintf("%s to be put on binding %s", strings.Join(w.Marks, ", "), w.Binding)
	case len(w.Marks) > 0:
		return fmt.Sprintf("%s to be taken off binding %s", strings.Join(w.Marks, ", "), w.Binding)
	case !w.Until.IsZero():
		return "the end of the grace period at " + w.Until.UTC().Format(time.RFC3339)
	}
	return "its turn"
}

// LifecycleOf returns the hooks of a placement; nil if it has none. Where differences are only reported, nothing is
// taken out of service.
func LifecycleOf(placement placementv1beta1.PlacementObject) *placementv1beta1.ClusterLifecycle {
	strategy := StrategyOf(placement)
	if strategy.ApplyStrategy != nil && strategy.ApplyStrategy.Type == placementv1beta1.ApplyStrategyTypeReportDiff {
		return nil
	}
	return strategy.Lifecycle
}

// LifecycleStateOf reads where a cluster stands, and since when. Without a label it stands where it waits for no hook.
func LifecycleStateOf(b placementv1beta1.BindingObject) (state placementv1beta1.LifecycleState, since time.Time) {
	state = placementv1beta1.LifecycleState(b.GetLabels()[placementv1beta1.LifecycleStateLabel])
	since, _ = time.Parse(time.RFC3339, b.GetAnnotations()[placementv1beta1.LifecycleSinceAnnotation]) // one that cannot be read is not known
	return state, since
}

// HoldsUpdate returns what a cluster that has resources waits for before it may be updated; nil if it may be.
func HoldsUpdate(l *placementv1beta1.ClusterLifecycle, b placementv1beta1.BindingObject, now time.Time) *HookWait {
	if l == nil {
		return nil
	}
	return waitBefore(l.PreUpdate, b, hookPreUpdate, placementv1beta1.LifecyclePreparingUpdate, now)
}

// HoldsRemoval returns what a cluster waits for before its resources may be removed; nil if they may be.
func HoldsRemoval(l *placementv1beta1.ClusterLifecycle, b placementv1beta1.BindingObject, now time.Time) *HookWait {
	if l == nil {
		return nil
	}
	return waitBefore(l.PreRemove, b, hookPreRemove, placementv1beta1.LifecyclePreparingRemove, now)
}

// waitBefore returns what a cluster waits for before the change that the hook is about. The grace period counts from the
// condition that the hook has set, so it is over for no cluster that was not prepared.
func waitBefore(h *placementv1beta1.ClusterDrainHook, b placementv1beta1.BindingObject, name string,
	prepared placementv1beta1.LifecycleState, now time.Time) *HookWait {
	if h == nil {
		return nil
	}
	state, since := LifecycleStateOf(b)
	w := &HookWait{Hook: name, Binding: b.GetName()}
	if state == prepared {
		w.Since = since
	}
	if w.Marks, _ = sortMarks(&h.ClusterHook, b); len(w.Marks) > 0 {
		return w
	}
	if !h.MarkNotServing || state != prepared {
		return nil
	}
	serving := meta.FindStatusCondition(b.GetBindingStatus().Conditions, placementv1beta1.ConditionTypeServing)
	if serving == nil || serving.Status != metav1.ConditionFalse {
		return w
	}
	if end := serving.LastTransitionTime.Add(time.Duration(h.GracePeriodSeconds) * time.Second); now.Before(end) {
		w.Until = end
		return w
	}
	return nil
}

// HoldsAvailable returns why a cluster does not count as available whatever its resources are; nil if it may.
func HoldsAvailable(l *placementv1beta1.ClusterLifecycle, b placementv1beta1.BindingObject, now time.Time) *HookWait {
	if l == nil {
		return nil
	}
	state, since := LifecycleStateOf(b)
	switch {
	case state == placementv1beta1.LifecyclePreparingUpdate && l.PreUpdate != nil:
		if w := HoldsUpdate(l, b, now); w != nil {
			return w
		}
		return &HookWait{Hook: hookPreUpdate, Binding: b.GetName(), Since: since}
	case state == placementv1beta1.LifecyclePreparingRemove && l.PreRemove != nil:
		if w := HoldsRemoval(l, b, now); w != nil {
			return w
		}
		return &HookWait{Hook: hookPreRemove, Binding: b.GetName(), Since: since}
	}
	if name, missing := missingAfter(l, b, state); len(missing) > 0 {
		return &HookWait{Hook: name, Binding: b.GetName(), Marks: missing, PutOn: true, Since: since}
	}
	return nil
}

// missingAfter returns the labels and finalizers that a binding needs to leave a state after a change, with the name of the hook.
func missingAfter(l *placementv1beta1.ClusterLifecycle, b placementv1beta1.BindingObject, state placementv1beta1.LifecycleState) (name string,
	missing []string) {
	switch {
	case (state == placementv1beta1.LifecycleUpdating || state == placementv1beta1.LifecycleUpdated) && l.PreUpdate != nil:
		_, missing = sortMarks(&l.PreUpdate.ClusterHook, b)
		return hookPreUpdate, missing
	case state == placementv1beta1.LifecyclePreparingAvailable && l.PreAvailable != nil:
		_, missing = sortMarks(l.PreAvailable, b)
		return hookPreAvailable, missing
	}
	return "", nil
}

// sortMarks sorts the labels and finalizers of a hook by whether a binding has them. A label with another value is
// missing.
func sortMarks(h *placementv1beta1.ClusterHook, b placementv1beta1.BindingObject) (present, missing []string) {
	add := func(has bool, mark string) {
		if has {
			present = append(present, mark)
		} else {
			missing = append(missing, mark)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(h.LabelsHandler)) {
		value, has := b.GetLabels()[key]
		add(has && value == string(h.LabelsHandler[key]), "label "+key+"="+string(h.LabelsHandler[key]))
	}
	for _, finalizer := range h.FinalizersHandler {
		add(slices.Contains(b.GetFinalizers(), finalizer), "finalizer "+finalizer)
	}
	return present, missing
}

// StateWhenWritten returns the state that a cluster has once it is written to; empty if that does not change it.
func StateWhenWritten(l *placementv1beta1.ClusterLifecycle, b placementv1beta1.BindingObject) placementv1beta1.LifecycleState {
	state, _ := LifecycleStateOf(b)
	switch {
	case l == nil:
		return ""
	case b.GetBindingSpec().ResourceSnapshotName == "":
		if l.PreAvailable != nil {
			return placementv1beta1.LifecyclePreparingAvailable
		}
		return ""
	case state == "" || state == placementv1beta1.LifecycleNormal || state == placementv1beta1.LifecyclePreparingAvailable:
		return ""
	case l.PreUpdate == nil:
		return placementv1beta1.LifecycleNormal
	}
	return placementv1beta1.LifecycleUpdating
}

// IsPreparedForEviction reports whether a cluster that its placement wants is out of service, to be evicted.
func IsPreparedForEviction(b placementv1beta1.BindingObject) bool {
	state, _ := LifecycleStateOf(b)
	return state == placementv1beta1.LifecyclePreparingRemove && IsLiveBinding(b)
}

// StateWhenGivenUp returns the state of a cluster that was prepared for a change that is no longer wanted.
func StateWhenGivenUp(l *placementv1beta1.ClusterLifecycle, b placementv1beta1.BindingObject) placementv1beta1.LifecycleState {
	switch state, _ := LifecycleStateOf(b); {
	case state == placementv1beta1.LifecyclePreparingUpdate && l != nil && l.PreUpdate != nil:
		return placementv1beta1.LifecycleUpdated
	case state == placementv1beta1.LifecyclePreparingRemove && l != nil && l.PreAvailable != nil:
		return placementv1beta1.LifecyclePreparingAvailable
	}
	return placementv1beta1.LifecycleNormal
}

// NextState returns the state that follows by itself: the resources of a cluster have become available, or the labels and
// finalizers are back. Without hooks there is none. A cluster that is prepared stays so until it is decided otherwise.
func NextState(l *placementv1beta1.ClusterLifecycle, b placementv1beta1.BindingObject, available bool) placementv1beta1.LifecycleState {
	state, _ := LifecycleStateOf(b)
	if l == nil {
		return ""
	}
	_, missing := missingAfter(l, b, state)
	switch {
	case state == placementv1beta1.LifecycleUpdating && available && len(missing) > 0:
		return placementv1beta1.LifecycleUpdated
	case state == placementv1beta1.LifecycleUpdated && len(missing) == 0,
		(state == placementv1beta1.LifecycleUpdating || state == placementv1beta1.LifecyclePreparingAvailable) && available &&
			len(missing) == 0,
		state == placementv1beta1.LifecyclePreparingUpdate && l.PreUpdate == nil,
		state == placementv1beta1.LifecyclePreparingRemove && l.PreRemove == nil:
		return placementv1beta1.LifecycleNormal
	}
	return state
}

// ServingCondition returns what the binding of a cluster says about traffic; nil if no hook asks for it.
func ServingCondition(l *placementv1beta1.ClusterLifecycle, b placementv1beta1.BindingObject) *metav1.Condition {
	marks := func(hook *placementv1beta1.ClusterDrainHook) bool { return hook != nil && hook.MarkNotServing }
	if l == nil || !marks(l.PreUpdate) && !marks(l.PreRemove) {
		return nil
	}
	state, _ := LifecycleStateOf(b)
	if marks(l.PreUpdate) && (state == placementv1beta1.LifecyclePreparingUpdate || state == placementv1beta1.LifecycleUpdating) || marks(l.PreRemove) &&
		state == placementv1beta1.LifecyclePreparingRemove {
		return &metav1.Condition{Type: placementv1beta1.ConditionTypeServing, Status: metav1.ConditionFalse, Reason: string(state),
			Message: "Send no traffic to the cluster: its resources are to change"}
	}
	return &metav1.Condition{Type: placementv1beta1.ConditionTypeServing, Status: metav1.ConditionTrue, Reason: string(placementv1beta1.LifecycleNormal),
		Message: "No hook keeps traffic away"}
}

// HookFinalizers returns the finalizers that hooks name. Decisions wait for them, and never the end of a binding whose resources are gone.
func HookFinalizers(l *placementv1beta1.ClusterLifecycle) []string {
	if l == nil {
		return nil
	}
	var all []string
	for _, hook := range []*placementv1beta1.ClusterDrainHook{l.PreUpdate, l.PreRemove} {
		if hook != nil {
			all = append(all, hook.FinalizersHandler...)
		}
	}
	if l.PreAvailable != nil {
		all = append(all, l.PreAvailable.FinalizersHandler...)
	}
	return all
}
