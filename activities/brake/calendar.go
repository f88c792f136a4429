package brake

import (
	"time"
)

// Calendar is the openings of a window. Occurrences that overlap or touch are one opening.
type Calendar struct {
	zone    *zone
	entries []entry
	// single are occurrences that do not recur, as wall times.
	single []span
	// except are the days on which nothing begins, as wall times in order.
	except []int64
	// deny is set if the end of an opening is the second of two times.
	deny bool
	// lastStart is how many seconds before its end an opening counts as closed.
	lastStart int64
}

type span struct{ start, end int64 }

// Opening is a time from Start until Close. End is later than Close if the opening goes on without starts. Both are zero if the
// opening ends at no time that is known.
type Opening struct{ Start, Close, End time.Time }

// endless is the end of an opening that goes on without an end in sight.
const endless = int64(1)<<62 - 1

const (
	// maxJoined is how many occurrences are joined to one opening before it counts as endless.
	maxJoined = 10_000
	// maxSkipped is how many openings too short for a start are skipped before the window counts as closed for good.
	maxSkipped = 1000
)

// IsOpen reports whether the window is open at a time.
func (c *Calendar) IsOpen(at time.Time) bool { return c.isOpen(at.Unix()) }

func (c *Calendar) isOpen(at int64) bool {
	end, is := c.covered(at)
	for is && end <= at+c.lastStart {
		if end, is = c.covered(end); !is {
			return false
		}
	}
	return is
}

// Closes returns when a window that is open closes. It is zero if it never does.
func (c *Calendar) Closes(at time.Time) Opening {
	return c.opening(time.Time{}, c.ends(at.Unix()))
}

// Next returns the first opening that begins after a time; if the window is open then, the next one.
func (c *Calendar) Next(at time.Time) (Opening, bool) {
	from := c.ends(at.Unix())
	for range maxSkipped {
		if from == endless {
			break
		}
		start, is := c.starts(from)
		if !is {
			break
		}
		from = start
		if _, is := c.covered(start); !is {
			continue // the clock skips all of it
		}
		if from = c.ends(start); from-start > c.lastStart {
			return c.opening(c.time(start), from), true
		}
	}
	return Opening{}, false
}

// Openings returns the next openings after a time, at most so many.
func (c *Calendar) Openings(after time.Time, limit int) []Opening {
	var openings []Opening
	for len(openings) < limit {
		next, is := c.Next(after)
		if !is {
			break
		}
		openings = append(openings, next)
		if next.End.IsZero() {
			break
		}
		after = next.End
	}
	return openings
}

// Changes returns when the window opens or closes next. It is zero if it never does.
func (c *Calendar) Changes(at time.Time) time.Time {
	if c.IsOpen(at) {
		return c.Closes(at).Close
	}
	next, _ := c.Next(at)
	return next.Start
}

func (c *Calendar) opening(start time.Time, end int64) Opening {
	if end == endless {
		return Opening{Start: start}
	}
	return Opening{Start: start, Close: c.time(end - c.lastStart), End: c.time(end)}
}

// time shows an instant as the clock of the window does.
func (c *Calendar) time(instant int64) time.Time { return time.Unix(instant, 0).In(c.zone.location) }

// covered reports whether an occurrence lasts at an instant, and when the longest of them ends.
func (c *Calendar) covered(at int64) (int64, bool) {
	latest := c.zone.latest(at)
	end := at
	for i := range c.entries {
		if start, is := c.entries[i].before(latest, c.except); is {
			end = max(end, c.entries[i].end(c.zone, start, c.deny))
		}
	}
	for _, s := range c.single {
		if s.start <= latest {
			end = max(end, c.zone.instant(s.end, c.deny))
		}
	}
	return end, end > at
}

// ends returns when the opening that lasts at an instant ends; the instant itself if there is none.
func (c *Calendar) ends(at int64) int64 {
	for range maxJoined {
		end, is := c.covered(at)
		if !is {
			return at
		}
		at = end
	}
	return endless
}

// starts returns when the first occurrence after an instant begins.
func (c *Calendar) starts(after int64) (int64, bool) {
	latest := c.zone.latest(after)
	first := int64(0)
	found := false
	for i := range c.entries {
		if start, is := c.entries[i].after(latest, c.except); is && (!found || start < first) {
			first = start
			found = true
		}
	}
	for _, s := range c.single {
		if s.start > latest && (!found || s.start < first) {
			first = s.start
			found = true
		}
	}
	if !found {
		return 0, false
	}
	return c.zone.instant(first, false), true
}
