package brake

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/robfig/cron/v3"
	"github.com/stretchr/testify/require"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
)

// The oracle knows two years minute by minute, and a margin before and after.
const (
	marginDays = 20
	oracleDays = 730 + 2*marginDays
	minutes    = oracleDays * 24 * 60
)

var oracleStart = time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC).AddDate(0, 0, -marginDays)

// clock is what the wall clock of a zone shows, found by asking for each minute. Times of the wall are minutes since the
// start of the oracle too, two days later, so that none is negative.
type clock struct{ first, last []int32 }

const shift = 2 * 24 * 60

func newClock(location *time.Location) *clock {
	c := &clock{make([]int32, minutes+2*shift), make([]int32, minutes+2*shift)}
	for i := range c.first {
		c.first[i] = -1
	}
	for i := range int32(minutes) {
		_, offset := oracleStart.Add(time.Duration(i) * time.Minute).In(location).Zone()
		wall := int(i) + offset/60 + shift
		if c.first[wall] < 0 {
			c.first[wall] = i
		}
		c.last[wall] = i
	}
	return c
}

// instant is the minute at which the clock shows a wall time. It is false beyond what the oracle knows.
func (c *clock) instant(wall int, second bool) (int, bool) {
	for wall += shift; wall >= 0 && wall < len(c.first); wall++ {
		if c.first[wall] >= 0 && second {
			// A time that it skips has no second.
			return int(c.last[wall]), true
		}
		if c.first[wall] >= 0 {
			return int(c.first[wall]), true
		}
	}
	return 0, false
}

// openMinutes marks the minutes at which a window is open, from its definition.
func openMinutes(t *testing.T, spec *fleetflowv1alpha1.RolloutWindowSpec, c *clock) []bool {
	t.Helper()
	open := make([]bool, minutes)
	deny := spec.Type == fleetflowv1alpha1.WindowDeny
	mark := func(start, end time.Time, elapsed time.Duration) {
		if slices.Contains(spec.Except, fleetflowv1alpha1.Date(start.Format(time.DateOnly))) {
			return
		}
		wall := int(start.Sub(oracleStart) / time.Minute)
		if wall < -shift || wall >= minutes {
			return
		}
		from, is := c.instant(wall, false)
		if !is {
			return
		}
		to := from + int(elapsed/time.Minute)
		if elapsed == 0 {
			wallEnd := int(end.Sub(oracleStart) / time.Minute)
			if to, is = c.instant(wallEnd, deny && c.shows(wallEnd)); !is {
				to = minutes
			}
		}
		for i := from; i < min(to, minutes); i++ {
			open[i] = true
		}
	}
	for date := oracleStart.AddDate(0, 0, -1); date.Before(oracleStart.AddDate(0, 0, oracleDays)); date = date.AddDate(0, 0, 1) {
		for _, weekly := range spec.Weekly {
			if slices.Contains(weekly.Days, fleetflowv1alpha1.Weekday(date.Format("Mon"))) {
				start, end := hoursOn(t, date, weekly.DailyHours)
				mark(start, end, 0)
			}
		}
		for _, monthly := range spec.Monthly {
			if naiveMonthly(date.AddDate(0, 0, -int(monthly.OffsetDays)), monthly) {
				start, end := hoursOn(t, date, monthly.DailyHours)
				mark(start, end, 0)
			}
		}
	}
	for _, dated := range spec.Dates {
		start, err := time.Parse("2006-01-02T15:04", dated.Start)
		require.NoError(t, err)
		end, err := time.Parse("2006-01-02T15:04", dated.End)
		require.NoError(t, err)
		mark(start, end, 0)
	}
	for _, entry := range spec.Cron {
		schedule, err := cron.ParseStandard(entry.Expression)
		require.NoError(t, err)
		for start := schedule.Next(oracleStart.Add(-time.Second)); start.Before(oracleStart.AddDate(0, 0, oracleDays)); start = schedule.Next(start) {
			if start.IsZero() {
				break
			}
			mark(start, time.Time{}, entry.Duration.Duration)
		}
	}
	if spec.LastStartBefore == nil {
		return open
	}
	left := 0 // minutes until the opening ends
	for i := minutes - 1; i >= 0; i-- {
		if !open[i] {
			left = 0
			continue
		}
		left++
		open[i] = left > int(spec.LastStartBefore.Duration/time.Minute)
	}
	return open
}

func (c *clock) shows(wall int) bool {
	return wall+shift >= 0 && wall+shift < len(c.first) && c.first[wall+shift] >= 0
}

func naiveMonthly(date time.Time, monthly fleetflowv1alpha1.MonthlyOpening) bool {
	if date.Format("Mon") != string(monthly.Day) {
		return false
	}
	var same []int // the days of the month with this name
	for d := 1; d <= 31; d++ {
		other := time.Date(date.Year(), date.Month(), d, 0, 0, 0, 0, time.UTC)
		if other.Month() == date.Month() && other.Weekday() == date.Weekday() {
			same = append(same, d)
		}
	}
	week := map[fleetflowv1alpha1.WeekOfMonth]int{"First": 0, "Second": 1, "Third": 2, "Fourth": 3, "Last": len(same) - 1}[monthly.Week]
	return same[week] == date.Day()
}

func hoursOn(t *testing.T, date time.Time, hours fleetflowv1alpha1.DailyHours) (start, end time.Time) {
	t.Helper()
	read := func(text string) time.Duration {
		length, err := time.ParseDuration(strings.Replace(text, ":", "h", 1) + "m")
		require.NoError(t, err)
		return length
	}
	start = date.Add(read(hours.Start))
	end = date.Add(read(hours.End))
	if hours.End <= hours.Start {
		end = end.AddDate(0, 0, 1)
	}
	return start, end
}

var oracleZones = []string{
	"UTC", "Europe/Berlin", "Europe/London", "Europe/Dublin", "Europe/Lisbon", "Europe/Chisinau", "America/New_York", "America/Los_Angeles",
	"America/St_Johns", "America/Santiago", "America/Asuncion", "America/Havana", "America/Sao_Paulo", "America/Nuuk", "America/Scoresbysund",
	"Africa/Cairo", "Africa/Casablanca", "Africa/El_Aaiun", "Asia/Beirut", "Asia/Jerusalem", "Asia/Kolkata", "Asia/Kathmandu", "Asia/Tokyo",
	"Asia/Gaza", "Australia/Sydney", "Australia/Lord_Howe", "Pacific/Auckland", "Pacific/Chatham", "Pacific/Kiritimati", "Antarctica/Troll",
}

func pick[T any](random *rand.Rand, from ...T) T { return from[random.IntN(len(from))] }

// randomSpec prefers the hours in which clocks change.
func randomSpec(random *rand.Rand) *fleetflowv1alpha1.RolloutWindowSpec {
	weekdays := []fleetflowv1alpha1.Weekday{"Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"}
	spec := &fleetflowv1alpha1.RolloutWindowSpec{
		Type: pick(random, fleetflowv1alpha1.WindowAllow, fleetflowv1alpha1.WindowDeny), TimeZone: pick(random, oracleZones...),
	}
	date := func() string {
		return time.Date(2026, time.January, 1+random.IntN(730), 0, 0, 0, 0, time.UTC).Format(time.DateOnly)
	}
	clockTime := func() string {
		return fmt.Sprintf("%02d:%02d", pick(random, 0, 0, 1, 1, 2, 2, 3, random.IntN(24)), pick(random, 0, 30, random.IntN(60)))
	}
	hours := func() fleetflowv1alpha1.DailyHours {
		h := fleetflowv1alpha1.DailyHours{Start: clockTime(), End: pick(random, clockTime(), clockTime(), "24:00")}
		if h.Start == h.End {
			h = fleetflowv1alpha1.DailyHours{Start: "00:00", End: "24:00"}
		}
		return h
	}
	for range 1 + random.IntN(3) {
		switch random.IntN(4) {
		case 0:
			days := slices.Clone(weekdays)
			random.Shuffle(len(days), func(i, j int) { days[i], days[j] = days[j], days[i] })
			spec.Weekly = append(spec.Weekly, fleetflowv1alpha1.WeeklyOpening{Days: days[:1+random.IntN(7)], DailyHours: hours()})
		case 1:
			spec.Monthly = append(spec.Monthly, fleetflowv1alpha1.MonthlyOpening{
				Week: pick[fleetflowv1alpha1.WeekOfMonth](random, "First", "Second", "Third", "Fourth", "Last"), Day: pick(random, weekdays...),
				OffsetDays: int32(random.IntN(7)), DailyHours: hours(),
			})
		case 2:
			a := date() + "T" + clockTime()
			b := date() + "T" + clockTime()
			if a > b {
				a, b = b, a
			}
			if a != b {
				spec.Dates = append(spec.Dates, fleetflowv1alpha1.DatedOpening{Start: a, End: b})
			}
		default:
			expression := fmt.Sprintf("%s %s %s %s %s", pick(random, "0", "30", "*/20", "15,45", strconv.Itoa(random.IntN(60))), pick(random, "0", "1", "2", "1-3", "*", "22"),
				pick(random, "*", "*", "1", "*/2", "28-31"), pick(random, "*", "*", "3", "10", "3-11/2"), pick(random, "*", "*", "0", "1-5", "SUN", "*/3"))
			length := time.Duration(pick(random, 1, 20, 30, 60, 480, 1+random.IntN(7*24*60))) * time.Minute
			spec.Cron = append(spec.Cron, fleetflowv1alpha1.CronOpening{Expression: expression, Duration: fleetflowv1alpha1.Duration{Duration: length}})
		}
	}
	for range random.IntN(4) {
		spec.Except = append(spec.Except, fleetflowv1alpha1.Date(date()))
	}
	if spec.Type == fleetflowv1alpha1.WindowAllow && random.IntN(3) == 0 {
		spec.LastStartBefore = &fleetflowv1alpha1.Duration{Duration: time.Duration(pick(random, 1, 30, 90)) * time.Minute}
	}
	return spec
}

// B7.8. FLEETFLOW_WINDOWS asks for more windows than every test run tries.
func TestTheCalendarIsWhatAClockOnTheWallShows(t *testing.T) {
	windows := 150
	if text := os.Getenv("FLEETFLOW_WINDOWS"); text != "" {
		asked, err := strconv.Atoi(text)
		require.NoError(t, err)
		windows = asked
	}
	clocks := map[string]*clock{}
	compared := 0
	edges := 0
	for seed := range uint64(windows) {
		spec := randomSpec(rand.New(rand.NewPCG(seed, 22)))
		c, fault := CompileCalendar(spec)
		if fault != nil {
			require.Equal(t, fleetflowv1alpha1.ReasonNeverOpens, fault.Reason, "%d: %+v", seed, spec)
			continue
		}
		if clocks[spec.TimeZone] == nil {
			location, err := time.LoadLocation(spec.TimeZone)
			require.NoError(t, err)
			clocks[spec.TimeZone] = newClock(location)
		}
		compared++
		edges += compareTwoYears(t, seed, spec, c, openMinutes(t, spec, clocks[spec.TimeZone]))
	}
	t.Logf("%d windows, %d changes", compared, edges)
	require.Positive(t, compared)
}

// compareTwoYears goes from change to change, and asks for the minutes on both sides of each.
func compareTwoYears(t *testing.T, seed uint64, spec *fleetflowv1alpha1.RolloutWindowSpec, c *Calendar, open []bool) (edges int) {
	t.Helper()
	// Of what is beyond the margin, the oracle does not know whether it is joined.
	const from, to = marginDays * 24 * 60, minutes - marginDays*24*60
	instant := func(i int) time.Time { return oracleStart.Add(time.Duration(i) * time.Minute) }
	for i := from; i < to; {
		require.Equal(t, open[i], c.IsOpen(instant(i)), "%d: at %s: %+v", seed, instant(i), spec)
		next := i + 1
		for next < minutes && open[next] == open[i] {
			next++
		}
		if next < to {
			require.Equal(t, open[i], c.IsOpen(instant(next-1).Add(59*time.Second)), "%d: before %s: %+v", seed, instant(next), spec)
			if changes := c.Changes(instant((i + next) / 2)); !changes.IsZero() || next-i < maxSkipped {
				require.Equal(t, instant(next), changes.UTC(), "%d: from %s: %+v", seed, instant(i), spec)
			}
		}
		i = next
		edges++
	}
	return edges
}
