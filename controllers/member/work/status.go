package work

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/controllers/member/apply"
	"github.com/fleetflow/fleetflow/controllers/member/availability"
)

// buildApplyStatus makes the status of a Work from the outcomes of its manifests. A condition whose
// status has not changed keeps the time of its last transition. It is pure.
func buildApplyStatus(
	generation int64, outcomes []outcome, previous placementv1beta1.WorkStatus, now metav1.Time,
) placementv1beta1.WorkStatus {
	before := findPrevious(previous)
	status := placementv1beta1.WorkStatus{}
	var t tally
	for _, o := range outcomes {
		t.countManifest(o)
		last := before(o.id)
		manifest := placementv1beta1.ManifestCondition{
			Identifier: o.id,
			Conditions: placementv1beta1.KeepTransitionTimes(last.Conditions, manifestConditions(o), now),
		}
		if o.isDrift() {
			manifest.DriftDetails = driftDetails(o, last.DriftDetails, now)
		} else {
			manifest.DiffDetails = diffDetails(o, last.DiffDetails, now)
		}
		status.ManifestConditions = append(status.ManifestConditions, manifest)
	}
	wanted := []metav1.Condition{t.appliedCondition(), t.availableCondition()}
	for i := range wanted {
		wanted[i].ObservedGeneration = generation
		keepWords(&wanted[i], previous.Conditions)
	}
	status.Conditions = placementv1beta1.KeepTransitionTimes(previous.Conditions, wanted, now)
	return status
}

// keepWords lets a condition that is still True have the message that it has: another author may have worded it, and a Work
// is not written for the sake of words.
func keepWords(condition *metav1.Condition, before []metav1.Condition) {
	said := meta.FindStatusCondition(before, condition.Type)
	if said != nil && said.Status == metav1.ConditionTrue && condition.Status == said.Status && condition.Reason == said.Reason &&
		condition.ObservedGeneration == said.ObservedGeneration && said.Message != "" {
		condition.Message = said.Message
	}
}

// findPrevious returns a function that finds the previous conditions of a manifest. It finds
// manifests by their object, and those of the same object by their order, because ordinals change
// whenever a manifest is added or removed. Each manifest is to be asked for once, in order.
func findPrevious(previous placementv1beta1.WorkStatus) func(placementv1beta1.WorkResourceIdentifier) placementv1beta1.ManifestCondition {
	byKey := map[apply.Key][]placementv1beta1.ManifestCondition{}
	for _, m := range previous.ManifestConditions {
		key := apply.KeyOf(m.Identifier)
		byKey[key] = append(byKey[key], m)
	}
	return func(id placementv1beta1.WorkResourceIdentifier) placementv1beta1.ManifestCondition {
		key := apply.KeyOf(id)
		if len(byKey[key]) == 0 {
			return placementv1beta1.ManifestCondition{}
		}
		next := byKey[key][0]
		byKey[key] = byKey[key][1:]
		return next
	}
}

// stalls begins what is said of an object that makes no progress.
const stalls = "The object says that it makes no progress: "

func manifestConditions(o outcome) []metav1.Condition {
	conditions := []metav1.Condition{{
		Type: placementv1beta1.ConditionTypeApplied, Status: metav1.ConditionTrue,
		Reason: placementv1beta1.ReasonApplied, Message: "Manifest has been applied successfully",
	}, manifestAvailableCondition(o)}
	if o.availability == availability.NotYet && o.availabilityError == "" && o.failing.why != "" {
		conditions = append(conditions, metav1.Condition{
			Type: placementv1beta1.ConditionTypeStalled, Status: metav1.ConditionTrue, Reason: placementv1beta1.ReasonStalled, Message: stalls + o.failing.why,
		})
	}
	if o.failing.told.Reason != "" {
		conditions = append(conditions, metav1.Condition{
			Type: placementv1beta1.ConditionTypeFailing, Status: metav1.ConditionTrue, Reason: o.failing.told.Reason, Message: o.failing.told.Message,
		})
	}
	if o.problem == nil && o.differences.Message != "" {
		conditions[0].Reason = placementv1beta1.ReasonAppliedWithDifference
		conditions[0].Message = o.differences.Message
	}
	if o.problem != nil {
		conditions = []metav1.Condition{{
			Type: placementv1beta1.ConditionTypeApplied, Status: metav1.ConditionFalse, Reason: o.problem.Reason, Message: o.problem.Message,
		}}
	}
	for i := range conditions {
		conditions[i].ObservedGeneration = o.generation // 0 if the object was not seen on the cluster
	}
	return conditions
}

func manifestAvailableCondition(o outcome) metav1.Condition {
	c := metav1.Condition{Type: placementv1beta1.ConditionTypeAvailable}
	switch {
	case o.availabilityError != "":
		c.Status = metav1.ConditionFalse
		c.Reason = placementv1beta1.ReasonFailed
		c.Message = "Failed to tell whether the manifest is available: " + o.availabilityError
	case o.availability == availability.Available:
		c.Status = metav1.ConditionTrue
		c.Reason = placementv1beta1.ReasonAvailable
		c.Message = "Manifest is available"
	case o.availability == availability.NotTrackable:
		c.Status = metav1.ConditionTrue
		c.Reason = placementv1beta1.ReasonNotTrackable
		c.Message = "Manifest's availability is not trackable; Fleet assumes that the applied manifest is available"
	case o.availability == availability.Failed:
		c.Status = metav1.ConditionFalse
		c.Reason = placementv1beta1.ReasonManifestFailed
		c.Message = "The object has failed for good and is not available until its manifest changes: " + o.failing.why
		if o.failing.told.Reason != "" {
			c.Message += ". " + o.failing.told.Message
		}
	default:
		c.Status = metav1.ConditionFalse
		c.Reason = placementv1beta1.ReasonManifestNotAvailableYet
		c.Message = "Manifest is not yet available; Fleet will check again later"
		if o.failing.told.Reason != "" {
			c.Message += ". " + o.failing.told.Message
		}
		if o.failing.why != "" {
			c.Message += ". " + stalls + o.failing.why
		}
	}
	return c
}

// tally counts the manifests of a Work.
type tally struct{ all, appliedCount, availableCount, untrackable int }

func (t *tally) countManifest(o outcome) {
	t.all++
	if o.problem != nil {
		return
	}
	t.appliedCount++
	if o.availabilityError != "" {
		return
	}
	switch o.availability {
	case availability.Available:
		t.availableCount++
	case availability.NotTrackable:
		t.availableCount++
		t.untrackable++
	}
}

func (t *tally) appliedCondition() metav1.Condition {
	c := metav1.Condition{Type: placementv1beta1.ConditionTypeApplied}
	if t.appliedCount < t.all {
		c.Status = metav1.ConditionFalse
		c.Reason = placementv1beta1.ReasonSomeManifestsAreNotApplied
		c.Message = fmt.Sprintf("Failed to apply all manifests (%d of %d manifests are applied)", t.appliedCount, t.all)
		return c
	}
	c.Status = metav1.ConditionTrue
	c.Reason = placementv1beta1.ReasonAllManifestsApplied
	c.Message = "All the specified manifests have been applied"
	return c
}

func (t *tally) availableCondition() metav1.Condition {
	c := metav1.Condition{Type: placementv1beta1.ConditionTypeAvailable}
	switch {
	case t.availableCount < t.all:
		c.Status = metav1.ConditionFalse
		c.Reason = placementv1beta1.ReasonSomeManifestsAreNotAvailable
		c.Message = fmt.Sprintf("Some manifests are not available (%d of %d manifests are available)", t.availableCount, t.all)
	case t.untrackable > 0:
		c.Status = metav1.ConditionTrue
		c.Reason = placementv1beta1.ReasonWorkNotTrackable
		c.Message = fmt.Sprintf("The availability of some manifests is not trackable (%d of %d); Fleet assumes that they are available",
			t.untrackable, t.all)
	default:
		c.Status = metav1.ConditionTrue
		c.Reason = placementv1beta1.ReasonAllManifestsAvailable
		c.Message = "All the manifests are available"
	}
	return c
}
