package work

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/log"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/controllers/member/apply"
)

const (
	// removalPatience is how long a removal may take before the status says what it waits for, if nothing else is said.
	removalPatience = 10 * time.Second
	// namedRemnants is how many objects the condition names.
	namedRemnants = 5
)

// remnant is an object that a Work does not want any more and that is still there.
type remnant struct {
	item placementv1beta1.AppliedResourceMeta
	// reason and message say why it is still there; empty if its removal has only begun.
	reason, message string
	// forWorks is whether it waits for other Works of the cluster.
	forWorks bool
	// patience is how long it may be kept until that is told; zero for removalPatience.
	patience time.Duration
}

// severity orders reasons: what a user has to see first comes first.
var severity = []string{
	placementv1beta1.ReasonRemovalRefused, placementv1beta1.ReasonInUse, placementv1beta1.ReasonWaitingForFinalizers,
	placementv1beta1.ReasonRemovalHeldBack, placementv1beta1.ReasonWaitingForHandover,
}

// removalCondition names the objects that are still there, and why; nil if there is nothing to say. It is pure.
func removalCondition(left []remnant, generation int64) *metav1.Condition {
	told := slices.DeleteFunc(slices.Clone(left), func(l remnant) bool { return l.reason == "" })
	if len(told) == 0 {
		return nil
	}
	slices.SortStableFunc(told, func(a, b remnant) int {
		if order := slices.Index(severity, a.reason) - slices.Index(severity, b.reason); order != 0 {
			return order
		}
		return strings.Compare(a.message, b.message)
	})
	var messages []string
	for _, l := range told[:min(len(told), namedRemnants)] {
		messages = append(messages, l.message)
	}
	if more := len(told) - namedRemnants; more > 0 {
		messages = append(messages, fmt.Sprintf("and %d more objects", more))
	}
	return &metav1.Condition{
		Type: placementv1beta1.ConditionTypeRemovalPending, Status: metav1.ConditionTrue, Reason: told[0].reason,
		Message: strings.Join(messages, "; "), ObservedGeneration: generation,
	}
}

// withRemoval adds what is still to be removed to the conditions of a Work, and what is over by now. It is pure.
func withRemoval(conditions, previous []metav1.Condition, left []remnant, generation int64, now metav1.Time) []metav1.Condition {
	out := slices.DeleteFunc(slices.Clone(conditions), func(c metav1.Condition) bool {
		return c.Type == placementv1beta1.ConditionTypeRemovalPending
	})
	if pending := removalCondition(left, generation); pending != nil {
		out = append(out, placementv1beta1.KeepTransitionTimes(previous, []metav1.Condition{*pending}, now)...)
	}
	return placementv1beta1.WithResolved(previous, out, generation, now)
}

// refusedRemnant says that the API server of the member refuses a removal, or does not tell what would go with it; the reason is
// empty if it gave no answer.
func refusedRemnant(item placementv1beta1.AppliedResourceMeta, err error) remnant {
	l := remnant{item: item}
	if away := (*discovery.ErrGroupDiscoveryFailed)(nil); errors.As(err, &away) {
		l.reason = placementv1beta1.ReasonRemovalHeldBack
		l.message = fmt.Sprintf("%s is not removed, as not all kinds of the cluster can be looked at: %v. It is removed once the cluster "+
			"serves these APIs, or has no APIService for them", apply.KeyOf(item.WorkResourceIdentifier), away)
		return l
	}
	if status := apierrors.APIStatus(nil); !errors.As(err, &status) || apierrors.IsConflict(err) {
		return l
	}
	l.reason = placementv1beta1.ReasonRemovalRefused
	l.message = fmt.Sprintf("%s is still there, as the API server of the cluster refuses: %v. It is tried again until it is allowed; "+
		"change what refuses it on the cluster, or remove the object there", apply.KeyOf(item.WorkResourceIdentifier), err)
	return l
}

// heldBackRemnants says that objects stay because a manifest of the same Work fails, or is not available yet.
func heldBackRemnants(items []placementv1beta1.AppliedResourceMeta, why string) []remnant {
	out := make([]remnant, 0, len(items))
	for _, item := range items {
		out = append(out, remnant{item: item, reason: placementv1beta1.ReasonRemovalHeldBack, message: fmt.Sprintf(
			"%s is not removed while %s; it is removed once that is corrected", apply.KeyOf(item.WorkResourceIdentifier), why)})
	}
	return out
}

// postponedRemnants says that objects stay until all others of the Work are available, once that takes too long.
func postponedRemnants(items []placementv1beta1.AppliedResourceMeta, patience time.Duration) []remnant {
	out := heldBackRemnants(items, fmt.Sprintf("not all other manifests of the same Work are available, although %s have passed", patience))
	for i := range out {
		out[i].patience = patience
	}
	return out
}

// describeWaiting returns what an object that is being deleted waits for. It is pure.
func describeWaiting(item placementv1beta1.AppliedResourceMeta, live *unstructured.Unstructured) remnant {
	key := apply.KeyOf(item.WorkResourceIdentifier)
	l := remnant{item: item, reason: placementv1beta1.ReasonWaitingForFinalizers}
	if finalizers := live.GetFinalizers(); len(finalizers) > 0 {
		l.message = fmt.Sprintf("%s is being deleted and waits for its finalizers: %s. The controllers that set them have to run on the cluster; "+
			"if none does, remove the finalizers there", key, strings.Join(finalizers, ", "))
		return l
	}
	l.message = fmt.Sprintf("%s is being deleted on the cluster", key)
	conditions, _, _ := unstructured.NestedSlice(live.Object, "status", "conditions")
	for _, item := range conditions {
		condition, _ := item.(map[string]any)
		if text, _ := condition["message"].(string); condition["status"] == string(metav1.ConditionTrue) && text != "" {
			l.message += "; " + text
		}
	}
	return l
}

// remnantsSince remembers since when objects are to go, so that only what takes long is told. It begins anew when an object that was
// kept is removed.
type remnantsSince map[apply.Key]leftSince

// leftSince is since when an object is kept, or is being removed.
type leftSince struct {
	at   time.Time
	kept bool
}

// note records which objects are left, and returns those that have been for longer than they may, or whose removal is refused, and when
// there are more; the time is zero if time alone adds none.
func (s *remnantsSince) note(left []remnant, patience time.Duration, now time.Time) (told []remnant, more time.Time) {
	next := remnantsSince{}
	for _, l := range left {
		key := apply.KeyOf(l.item.WorkResourceIdentifier)
		kept := l.reason != ""
		since, known := (*s)[key]
		if !known || since.kept != kept {
			since = leftSince{at: now, kept: kept}
		}
		next[key] = since
		at := since.at.Add(patience)
		if kept {
			at = since.at.Add(cmp.Or(l.patience, removalPatience))
		}
		switch {
		case l.reason == placementv1beta1.ReasonRemovalRefused || !now.Before(at):
			told = append(told, l)
		case more.IsZero() || at.Before(more):
			more = at
		}
	}
	*s = next
	return told, more
}

// sinceLongAgo returns that what is left has been for longer than any of it may.
func sinceLongAgo(left []remnant) remnantsSince {
	since := remnantsSince{}
	for _, l := range left {
		since[apply.KeyOf(l.item.WorkResourceIdentifier)] = leftSince{kept: l.reason != ""}
	}
	return since
}

// noteRemnants records what is left of a Work, and returns what is to be reported about it, with what the cluster says about it.
func (r reporter) noteRemnants(ctx context.Context, work *placementv1beta1.Work, mem *memory, left []remnant) []remnant {
	if mem.remnants == nil && meta.IsStatusConditionTrue(mem.lastStatus(work).Conditions, placementv1beta1.ConditionTypeRemovalPending) {
		mem.remnants = sinceLongAgo(left) // an agent before this one has told it
	}
	told, more := mem.remnants.note(left, r.pruning.of(work).patience(), r.clock.Now())
	mem.tellAt = more
	for i, l := range told {
		if l.reason != "" {
			continue
		}
		if live, err := r.engine.Find(ctx, l.item.WorkResourceIdentifier); err == nil && live != nil && live.GetDeletionTimestamp() != nil {
			told[i] = describeWaiting(l.item, live)
		}
	}
	told = slices.DeleteFunc(told, func(l remnant) bool { return l.reason == "" })
	r.metrics.replacePending(mem.told, told)
	if len(told) > 0 && len(mem.told) == 0 {
		log.FromContext(ctx).Info("Objects that are to be removed are still there", "remaining", len(told), "first", told[0].message)
	}
	mem.told = told
	return told
}

// reportRemnants writes what is still there of a Work that is being deleted.
func (r reporter) reportRemnants(ctx context.Context, work *placementv1beta1.Work, mem *memory, left []remnant) error {
	told := r.noteRemnants(ctx, work, mem, left)
	status := mem.lastStatus(work)
	if len(told) == 0 && !meta.IsStatusConditionTrue(status.Conditions, placementv1beta1.ConditionTypeRemovalPending) {
		return nil
	}
	status.Conditions = withRemoval(status.Conditions, status.Conditions, told, work.Generation, metav1.NewTime(r.clock.Now()))
	return r.writeStatus(ctx, work, mem, status)
}

// delayUntilNextLook returns how long to wait before what is left of a Work is looked at again.
func (m *memory) delayUntilNextLook(left int, now time.Time) time.Duration {
	if m.tellAt.IsZero() {
		return delayUntilNextLook(left, m.told, m.remnants, now)
	}
	return min(max(m.tellAt.Sub(now), time.Millisecond), removalResync)
}

// delayUntilNextLook returns how long to wait before what is left is looked at again: the longer it has been left, the longer, as no event
// tells when others have nothing in it any more. It is pure.
func delayUntilNextLook(left int, told []remnant, since remnantsSince, now time.Time) time.Duration {
	if len(told) < left {
		return removalPatience
	}
	wait := removalResync
	for _, began := range since {
		wait = min(wait, now.Sub(began.at)/4)
	}
	return max(removalPatience, wait)
}
