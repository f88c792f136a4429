package brake

import (
	"slices"
	"time"
)

// entry recurs: on some days, at some times of the day.
type entry struct {
	days days
	// starts are seconds of the day, in order.
	starts []int64
	// length is how long an occurrence takes: on the wall clock or, if elapsed is set, by the time that passes.
	length  int64
	elapsed bool
}

// days are the days on which an entry occurs.
type days interface {
	include(date time.Time) bool
}

// weekdays has a bit for each day of the week, from Sunday on.
type weekdays uint8

func (w weekdays) include(date time.Time) bool { return w&(1<<date.Weekday()) != 0 }

// monthday is a day of the week of one week of the month, and some days on.
type monthday struct {
	weekday time.Weekday
	week    int // from 0; 4 is the last
	offset  int
}

func (m monthday) include(date time.Time) bool {
	counted := date.AddDate(0, 0, -m.offset)
	if counted.Weekday() != m.weekday {
		return false
	}
	if m.week == lastWeek {
		return counted.AddDate(0, 0, 7).Month() != counted.Month()
	}
	return (counted.Day()-1)/7 == m.week
}

// cronDays are the fields of an expression of cron that choose days, a bit for each value.
type cronDays struct{ dom, month, dow uint64 }

// starred is the bit by which the parser tells that a field was left open.
const starred = 1 << 63

func (c cronDays) include(date time.Time) bool {
	if c.month&(1<<date.Month()) == 0 {
		return false
	}
	dom := c.dom&(1<<date.Day()) != 0
	dow := c.dow&(1<<date.Weekday()) != 0
	if (c.dom|c.dow)&starred != 0 {
		return dom && dow
	}
	return dom || dow
}

// horizon is how many days an entry is looked for: the 29th of February comes back after eight years at the latest.
const horizon = 8*366 + 1

// before returns the start of the last occurrence that begins at a wall time or before it, and may still last then.
func (e *entry) before(wall int64, except []int64) (int64, bool) {
	today := wall - mod(wall, day)
	for date := today; date >= today-e.length-2*day; date -= day {
		if !e.occurs(date, except) {
			continue
		}
		for _, start := range slices.Backward(e.starts) {
			if date+start <= wall {
				return date + start, true
			}
		}
	}
	return 0, false
}

// after returns the start of the first occurrence that begins after a wall time.
func (e *entry) after(wall int64, except []int64) (int64, bool) {
	today := wall - mod(wall, day)
	for date := today; date <= today+horizon*day; date += day {
		if !e.occurs(date, except) {
			continue
		}
		at, _ := slices.BinarySearch(e.starts, wall-date+1)
		if at < len(e.starts) {
			return date + e.starts[at], true
		}
	}
	return 0, false
}

// occurs reports whether the entry occurs on the day that begins at a wall time.
func (e *entry) occurs(date int64, except []int64) bool {
	if !e.days.include(time.Unix(date, 0).UTC()) {
		return false
	}
	_, excepted := slices.BinarySearch(except, date)
	return !excepted
}

// end returns when an occurrence that starts at a wall time ends, as an instant.
func (e *entry) end(z *zone, start int64, second bool) int64 {
	if e.elapsed {
		return z.instant(start, false) + e.length
	}
	return z.instant(start+e.length, second)
}

func mod(a, b int64) int64 { return ((a % b) + b) % b }
