package v1alpha1

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// RehearsalObject is a ClusterRehearsal or a Rehearsal.
//
// +kubebuilder:object:generate=false
type RehearsalObject interface {
	metav1.Object
	runtime.Object
	GetConditions() []metav1.Condition
	SetConditions(conditions []metav1.Condition)
	// GetRehearsalSpec returns the spec, which may be changed in place.
	GetRehearsalSpec() *RehearsalSpec
	// GetRehearsalStatus returns the status, which may be changed in place.
	GetRehearsalStatus() *RehearsalStatus
}

// GetRehearsalSpec returns the spec, which may be changed in place.
func (r *ClusterRehearsal) GetRehearsalSpec() *RehearsalSpec { return &r.Spec }

// GetRehearsalStatus returns the status, which may be changed in place.
func (r *ClusterRehearsal) GetRehearsalStatus() *RehearsalStatus { return &r.Status }

// GetRehearsalSpec returns the spec, which may be changed in place.
func (r *Rehearsal) GetRehearsalSpec() *RehearsalSpec { return &r.Spec }

// GetRehearsalStatus returns the status, which may be changed in place.
func (r *Rehearsal) GetRehearsalStatus() *RehearsalStatus { return &r.Status }

// NewRehearsal returns an empty Rehearsal of a namespace, or an empty ClusterRehearsal if there is none.
func NewRehearsal(namespace, name string) RehearsalObject {
	if namespace == "" {
		return &ClusterRehearsal{ObjectMeta: metav1.ObjectMeta{Name: name}}
	}
	return &Rehearsal{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

// RehearsalKind returns the kind of a rehearsal in a namespace, or of one in none.
func RehearsalKind(namespace string) schema.GroupVersionKind {
	if namespace == "" {
		return GroupVersion.WithKind("ClusterRehearsal")
	}
	return GroupVersion.WithKind("Rehearsal")
}

// RehearsalLabel has, on a question, the UID of the rehearsal that asks it.
const RehearsalLabel = GroupName + "/rehearsal"

// RehearsalQuestionName returns the name of the question of a rehearsal, which is the same in the namespaces of all members.
func RehearsalQuestionName(rehearsal types.UID) string { return "rehearsal-" + string(rehearsal) }

// RehearsalName returns the name of the rehearsal before a stage of an update run, of which each attempt has its own. A part of it tells
// stage b of run a-c from stage c-b of run a.
func RehearsalName(run, stage string, attempt string) string {
	sum := sha256.Sum256([]byte(run + "/" + stage))
	return run + "-" + stage + "-rehearsal-" + hex.EncodeToString(sum[:4]) + "-" + strings.ToLower(attempt)
}

// PrePullName returns the name of the rehearsal by which the clusters of a stage of an update run pull images. A part of it tells stage b
// of run a-c from stage c-b of run a.
func PrePullName(run, stage string) string {
	sum := sha256.Sum256([]byte(run + "/" + stage))
	return run + "-" + stage + "-images-" + hex.EncodeToString(sum[:4])
}

// defaultRehearsalTimeout is how long answers are waited for if a rehearsal does not say.
const defaultRehearsalTimeout = time.Minute

// RehearsalTimeout returns how long a rehearsal waits for answers.
func RehearsalTimeout(spec *RehearsalSpec) time.Duration {
	if spec.Timeout == nil || spec.Timeout.Duration <= 0 {
		return defaultRehearsalTimeout
	}
	return spec.Timeout.Duration
}

// IsRehearsalOver reports whether nothing of a rehearsal will change any more.
func IsRehearsalOver(r RehearsalObject) bool {
	completed := meta.FindStatusCondition(r.GetConditions(), ConditionTypeCompleted)
	return completed != nil && (completed.Status == metav1.ConditionTrue || completed.Reason == ReasonRehearsalInvalid)
}

// rehearsalOutcomes are all outcomes, what matters most first.
var rehearsalOutcomes = []RehearsalOutcome{
	RehearsalRefused, RehearsalConflicts, RehearsalUnknown, RehearsalRemoves, RehearsalCreates, RehearsalChanges, RehearsalSame,
	RehearsalPulled,
}

// RehearsalOutcomes returns all outcomes, what matters most first.
func RehearsalOutcomes() []RehearsalOutcome {
	return append([]RehearsalOutcome(nil), rehearsalOutcomes...)
}

// Of returns the count of an outcome, which may be changed in place; nil if there is no such outcome.
func (c *RehearsalCounts) Of(outcome RehearsalOutcome) *int32 {
	switch outcome {
	case RehearsalRefused:
		return &c.Refused
	case RehearsalConflicts:
		return &c.Conflicts
	case RehearsalUnknown:
		return &c.Unknown
	case RehearsalRemoves:
		return &c.Removes
	case RehearsalCreates:
		return &c.Creates
	case RehearsalChanges:
		return &c.Changes
	case RehearsalSame:
		return &c.Same
	case RehearsalPulled:
		return &c.Pulled
	}
	return nil
}

// Total returns the sum of all counts.
func (c *RehearsalCounts) Total() int64 {
	sum := int64(0)
	for _, outcome := range rehearsalOutcomes {
		sum += int64(*c.Of(outcome))
	}
	return sum
}
