package work

import (
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/controllers/member/availability"
	"github.com/fleetflow/fleetflow/controllers/member/cause"
)

// failing is what is found out about an object that is not available.
type failing struct {
	// why is why the object has failed for good or makes no progress, if it says so itself.
	why string
	// since is since when it is not; zero if it is.
	since time.Time
	// subject is what is looked at, and looks whether that takes requests.
	subject cause.Subject
	looks   bool
	// isLookedAt is whether it has been looked at.
	isLookedAt bool
	// told is the cause that is reported, since when in these words.
	told   cause.Cause
	toldAt time.Time
}

// failingOf returns what is known by the object itself, as it was read. An object that was not available before keeps the time and
// the cause.
func failingOf(live *unstructured.Unstructured, status availability.Status, before outcome, now time.Time) failing {
	if status != availability.NotYet && status != availability.Failed {
		return failing{}
	}
	found := failing{since: now}
	if before.version.uid == live.GetUID() && !before.failing.since.IsZero() {
		found = before.failing
	}
	found.subject, found.looks = cause.SubjectOf(live)
	return found
}

// lookFrom returns from when the cause is looked for.
func (f failing) lookFrom() time.Time { return f.since.Add(cause.Patience) }

// causeBy returns the cause as it is known at a time; what is not looked for yet stays as it is.
func (f failing) causeBy(finder *cause.Finder, now time.Time) cause.Cause {
	switch {
	case f.since.IsZero() || finder == nil || now.Before(f.lookFrom()):
		return f.told
	case f.looks && !f.isLookedAt:
		return f.told
	case f.looks:
		found, looked := finder.CauseOf(f.subject.UID)
		if !looked {
			return f.told
		}
		return found
	}
	return f.subject.Own
}

// next returns what is to be reported at a time. Other words for the same are reported once in a while: a controller may count in them.
func (f failing) next(finder *cause.Finder, now time.Time) cause.Cause {
	found := f.causeBy(finder, now)
	if found.Reason == f.told.Reason && now.Before(f.toldAt.Add(cause.Renewal)) {
		return f.told
	}
	return found
}

// isCurrent reports whether what is reported of why an object is not available still holds.
func (f failing) isCurrent(finder *cause.Finder, now time.Time) bool {
	if finder == nil || f.since.IsZero() || now.Before(f.lookFrom()) {
		return true
	}
	return f.isLookedAt && f.next(finder, now) == f.told
}

// recallCauses takes up what an agent before this one has reported of objects that are still not available: it holds until it is looked
// for again.
func recallCauses(steps []*step, reported placementv1beta1.WorkStatus) {
	before := findPrevious(reported)
	for _, s := range steps {
		said := placementv1beta1.FindTrue(before(s.outcome.id).Conditions, placementv1beta1.ConditionTypeFailing)
		if f := &s.outcome.failing; said != nil && !f.since.IsZero() && f.told.Reason == "" {
			f.told = cause.Cause{Reason: said.Reason, Message: said.Message}
		}
	}
}

// findCauses has the objects of a Work looked at that are not available for longer than they may, and takes up what was found out.
func findCauses(finder *cause.Finder, work string, steps []*step, now time.Time) {
	if finder == nil {
		return
	}
	var subjects []cause.Subject
	for _, s := range steps {
		f := &s.outcome.failing
		if s.outcome.problem != nil {
			*f = failing{}
		}
		if f.since.IsZero() || now.Before(f.lookFrom()) {
			continue
		}
		f.isLookedAt = true
		if f.looks {
			subjects = append(subjects, f.subject)
		}
	}
	finder.SetInterest(work, subjects)
	for _, s := range steps {
		f := &s.outcome.failing
		if found := f.next(finder, now); found != f.told {
			f.told = found
			f.toldAt = now
		}
	}
}

// countReasons counts for which reasons objects fail, as it is reported.
func countReasons(steps []*step) map[string]int {
	reasons := map[string]int{}
	for _, s := range steps {
		if told := s.outcome.failing.told; told.Reason != "" {
			reasons[told.Reason]++
		}
	}
	return reasons
}

// forgetCauses ends the looks at the objects of a Work.
func forgetCauses(work string, o Options) {
	o.Causes.SetInterest(work, nil)
	o.Metrics.replaceFailing(work, nil)
}

// earliestCause returns when the first object is to be looked at that was not, or is to be reported in other words; zero if none is.
func earliestCause(outcomes []outcome, finder *cause.Finder, now time.Time) time.Time {
	if finder == nil {
		return time.Time{}
	}
	return earliestOf(outcomes, func(o outcome) (time.Time, bool) {
		f := o.failing
		if f.isLookedAt {
			return f.toldAt.Add(cause.Renewal), f.causeBy(finder, now) != f.told
		}
		return f.lookFrom(), !f.since.IsZero()
	})
}
