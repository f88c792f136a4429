package brake

import (
	"slices"
	"sync"
	"time"
	_ "time/tzdata" // images have no data base of time zones of their own, and every program should have the same
)

const (
	minute = int64(60)
	day    = 24 * 60 * minute
	// reach is more than any time zone is away from UTC, in seconds.
	reach = 15 * 60 * minute
)

// zone maps between instants and the wall clock of a time zone. Both are seconds since 1970; a wall time is what the clock
// shows, read as if it were UTC.
type zone struct {
	location *time.Location
	periods  []period
}

// period is the time from an instant on in which the clock is an offset ahead of UTC. The first one has always begun.
type period struct{ start, offset int64 }

// zones are those that were asked for, by name.
var zones sync.Map

// From and until these years, clock changes are known.
const zoneFrom, zoneTo = 1970, 2150

// loadZone finds a time zone by its name in the data base. A name that means something else on each machine is unknown.
func loadZone(name string) (*zone, bool) {
	if known, is := zones.Load(name); is {
		z, is := known.(*zone)
		return z, is
	}
	location, err := time.LoadLocation(name)
	if err != nil || name == "" || name == time.Local.String() {
		return nil, false
	}
	at := time.Date(zoneFrom, time.January, 1, 0, 0, 0, 0, time.UTC).In(location)
	_, offset := at.Zone()
	z := &zone{location, []period{{at.Unix() - 1<<40, int64(offset)}}}
	for at.Year() < zoneTo {
		_, next := at.ZoneBounds()
		if next.IsZero() {
			break
		}
		if !next.After(at) {
			next = at.Add(24 * time.Hour) // on the last day of leap years, the bound that is told is not later
		}
		at = next
		if _, offset := at.Zone(); int64(offset) != z.periods[len(z.periods)-1].offset {
			z.periods = append(z.periods, period{at.Unix(), int64(offset)})
		}
	}
	zones.Store(name, z)
	return z, true
}

// periodAt returns the place of the period in which an instant is.
func (z *zone) periodAt(instant int64) int {
	i, is := slices.BinarySearchFunc(z.periods, instant, func(p period, instant int64) int { return int(p.start - instant) })
	if is {
		return i
	}
	return max(i-1, 0)
}

// instant returns when the clock shows a time: the first time that it does, or the second if it shows it twice and second is
// set. A time that it skips is the first instant after the gap.
func (z *zone) instant(wall int64, second bool) int64 {
	found := int64(0)
	is := false
	for i := z.periodAt(wall - reach); i < len(z.periods) && z.periods[i].start <= wall+reach; i++ {
		shown := wall - z.periods[i].offset
		if shown < z.periods[i].start {
			if !is {
				return z.periods[i].start
			}
			break
		}
		if i+1 == len(z.periods) || shown < z.periods[i+1].start {
			found = shown
			is = true
			if !second {
				break
			}
		}
	}
	return found
}

// latest returns the latest time in the floating calendar that begins at an instant or before it. While the clock goes through
// an hour for the second time, all of that hour has begun.
func (z *zone) latest(instant int64) int64 {
	i := z.periodAt(instant)
	if i == 0 {
		return instant + z.periods[i].offset
	}
	return max(instant+z.periods[i].offset, z.periods[i].start+z.periods[i-1].offset-1)
}
