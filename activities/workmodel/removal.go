package workmodel

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// RemovalPending rolls up what the Works of a binding say of objects that are still to be removed, and why they are there; nil if they
// say nothing.
func RemovalPending(works []placementv1beta1.Work) *metav1.Condition {
	var messages []string
	reason := ""
	for i := range works {
		said := meta.FindStatusCondition(works[i].Status.Conditions, placementv1beta1.ConditionTypeRemovalPending)
		if said == nil || said.Status != metav1.ConditionTrue {
			continue
		}
		if reason == "" || said.Reason == placementv1beta1.ReasonRemovalRefused {
			reason = said.Reason
		}
		messages = append(messages, said.Message)
	}
	if len(messages) == 0 {
		return nil
	}
	slices.Sort(messages)
	pending := newCondition(placementv1beta1.ConditionTypeRemovalPending, metav1.ConditionTrue, reason, strings.Join(messages, "; "))
	return &pending
}

// WithRemoval returns conditions of a binding with what its Works say of objects that are still to be removed, and nothing older.
func WithRemoval(binding placementv1beta1.BindingObject, works []placementv1beta1.Work, now metav1.Time) []metav1.Condition {
	before := binding.GetBindingStatus().Conditions
	out := make([]metav1.Condition, 0, len(before)+1)
	for _, c := range before {
		if c.Type != placementv1beta1.ConditionTypeRemovalPending {
			out = append(out, c)
		}
	}
	if pending := RemovalPending(works); pending != nil {
		pending.ObservedGeneration = binding.GetGeneration()
		out = append(out, placementv1beta1.KeepTransitionTimes(before, []metav1.Condition{*pending}, now)...)
	}
	return placementv1beta1.WithResolved(before, out, binding.GetGeneration(), now)
}
