package work

import (
	"time"

	"github.com/fleetflow/fleetflow/controllers/member/apply"
)

const (
	// contestedFrom is from how many repairs on an object counts as contested: a handful may be one user's attempts.
	contestedFrom = 8
	// contestRenewal is how long the report on a contested object stays as it is although the values change.
	contestRenewal = time.Minute
)

// contest is what is reported about an object that another client keeps overwriting, as it was read last. It neither changes with
// each repair nor ends with one: the object would be reported as well each time that this agent had the last word.
type contest struct {
	told       apply.Differences
	generation int64
	since      time.Time
}

// isTold reports whether the report says that the object is contested.
func (c contest) isTold() bool { return c.told.Message != "" }

// isContested reports whether another client keeps overwriting an object: it was repaired often, and not long ago.
func (r repairs) isContested(now time.Time) bool {
	return r.count >= contestedFrom && !now.After(r.quietAt())
}

// quietAt returns when an object has needed no repair for long enough, if it needs none until then.
func (r repairs) quietAt() time.Time { return r.last.Add(repairResetPeriod) }

// tellContest makes the outcome of an attempt at a contested object say so. overwritten is in what the object differed when it was
// read.
func (o *outcome) tellContest(before contest, overwritten apply.Differences, now time.Time) {
	o.struggle.contest = contest{}
	if !o.struggle.repairs.isContested(now) {
		return
	}
	o.struggle.contest = before
	switch {
	case !overwritten.Empty() && (!before.isTold() || now.Sub(before.since) >= contestRenewal && before.told.Message != overwritten.Message):
		o.struggle.contest = contest{told: overwritten, generation: o.generation, since: now}
	case !before.isTold():
		o.struggle.contest = contest{generation: o.generation, told: apply.JudgeUnmarked()}
	}
	o.findings = apply.Findings{}
	o.differences = o.struggle.contest.told
	o.generation = o.struggle.contest.generation
}

// earliestQuiet returns when the first contested object is reported as well again, if no client overwrites it until then; zero if none
// is.
func earliestQuiet(outcomes []outcome) time.Time {
	return earliestOf(outcomes, func(o outcome) (time.Time, bool) {
		return o.struggle.repairs.quietAt().Add(time.Nanosecond), o.struggle.contest.isTold()
	})
}

// struggle is how far the repairs of an object are.
type struggle struct {
	repairs repairs
	// held is whether the object was only read, because it is repaired too often.
	held bool
	// contest is what is told if another client keeps overwriting the object.
	contest contest
}

// isOver reports whether a contested object has been left alone for long enough to be reported as well again.
func (s struggle) isOver(now time.Time) bool {
	return s.contest.isTold() && !s.repairs.isContested(now)
}

// keptStruggle is a struggle over what a manifest says.
type keptStruggle struct {
	hash string
	struggle
}

// struggles are those of the manifests of one generation of a Work.
type struggles struct {
	generation int64
	byKey      map[apply.Key]keptStruggle
}

// recall adds them to what the last pass that succeeded has left.
func (s struggles) recall(generation int64, manifests []apply.Manifest, last map[int]outcome) {
	if s.generation != generation {
		return
	}
	for _, m := range manifests {
		if known, ok := s.byKey[apply.KeyOf(m.Identifier)]; ok && known.hash == m.Hash {
			o := last[m.Identifier.Ordinal]
			o.struggle.repairs = known.repairs
			o.struggle.contest = known.contest
			last[m.Identifier.Ordinal] = o
		}
	}
}

// keep adds those of a pass, whether that succeeded or not.
func (s *struggles) keep(generation int64, steps []*step) {
	if s.generation != generation || s.byKey == nil {
		*s = struggles{generation: generation, byKey: map[apply.Key]keptStruggle{}}
	}
	for _, step := range steps {
		key := apply.KeyOf(step.outcome.id)
		now := step.outcome.struggle
		if _, known := s.byKey[key]; known && now.repairs.count > 0 || now.repairs.count > 1 {
			s.byKey[key] = keptStruggle{step.outcome.hash, now}
		}
	}
}
