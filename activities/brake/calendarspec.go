package brake

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/robfig/cron/v3"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
)

// CalendarFault is why a window can not be followed: a reason of the condition Accepted, and a sentence.
type CalendarFault struct{ Reason, Message string }

// CompileCalendar reads the entries of a window. It returns a fault instead if one of them can not be followed.
func CompileCalendar(spec *fleetflowv1alpha1.RolloutWindowSpec) (*Calendar, *CalendarFault) {
	clock, is := loadZone(spec.TimeZone)
	if !is {
		return nil, &CalendarFault{fleetflowv1alpha1.ReasonUnknownTimeZone,
			fmt.Sprintf("timeZone %q is not in the data base of time zones: name one such as Europe/Berlin, or UTC", spec.TimeZone)}
	}
	c := &Calendar{zone: clock, deny: spec.Type == fleetflowv1alpha1.WindowDeny}
	if spec.LastStartBefore != nil {
		c.lastStart = int64(spec.LastStartBefore.Duration / time.Second)
	}
	if err := c.read(spec); err != nil {
		return nil, &CalendarFault{fleetflowv1alpha1.ReasonInvalidEntry, err.Error()}
	}
	if why := c.neverOpens(spec); why != "" {
		return nil, &CalendarFault{fleetflowv1alpha1.ReasonNeverOpens, why}
	}
	return c, nil
}

// read takes the entries over. What it refuses, the rules of the CRD refuse as well.
func (c *Calendar) read(spec *fleetflowv1alpha1.RolloutWindowSpec) error {
	for _, date := range spec.Except {
		at, err := time.Parse(time.DateOnly, string(date))
		if err != nil {
			return fmt.Errorf("except %q is not a date such as 2026-12-24", date)
		}
		c.except = append(c.except, at.Unix())
	}
	slices.Sort(c.except)
	for i, weekly := range spec.Weekly {
		var on weekdays
		for _, name := range weekly.Days {
			weekday, is := weekdayNames[name]
			if !is {
				return fmt.Errorf("weekly[%d]: %q is no day of the week", i, name)
			}
			on |= 1 << weekday
		}
		if err := c.daily(on, weekly.DailyHours); err != nil {
			return fmt.Errorf("weekly[%d]: %w", i, err)
		}
	}
	for i, monthly := range spec.Monthly {
		weekday, isDay := weekdayNames[monthly.Day]
		week, isWeek := weekNames[monthly.Week]
		if !isDay || !isWeek {
			return fmt.Errorf("monthly[%d]: %q %q is no day of a month", i, monthly.Week, monthly.Day)
		}
		if err := c.daily(monthday{weekday, week, int(monthly.OffsetDays)}, monthly.DailyHours); err != nil {
			return fmt.Errorf("monthly[%d]: %w", i, err)
		}
	}
	for i, dated := range spec.Dates {
		if err := c.dated(dated); err != nil {
			return fmt.Errorf("dates[%d]: %w", i, err)
		}
	}
	for i, expression := range spec.Cron {
		if err := c.cron(expression); err != nil {
			return fmt.Errorf("cron[%d]: %w", i, err)
		}
	}
	return nil
}

// daily adds an entry that begins and ends at times of the day.
func (c *Calendar) daily(on days, hours fleetflowv1alpha1.DailyHours) error {
	start, err := secondOfDay(hours.Start)
	if err != nil {
		return err
	}
	end, err := secondOfDay(hours.End)
	if err != nil {
		return err
	}
	if start == end || start == day {
		return fmt.Errorf("it can not open from %s to %s: a whole day is 00:00 to 24:00", hours.Start, hours.End)
	}
	if end < start {
		end += day
	}
	c.entries = append(c.entries, entry{days: on, starts: []int64{start}, length: end - start})
	return nil
}

// dated adds an occurrence, unless it begins on a day that is excepted.
func (c *Calendar) dated(dated fleetflowv1alpha1.DatedOpening) error {
	const layout = "2006-01-02T15:04"
	start, err := time.Parse(layout, dated.Start)
	if err != nil {
		return fmt.Errorf("%q is not a time such as 2026-12-18T00:00", dated.Start)
	}
	end, err := time.Parse(layout, dated.End)
	if err != nil {
		return fmt.Errorf("%q is not a time such as 2026-12-18T00:00", dated.End)
	}
	if !start.Before(end) {
		return fmt.Errorf("it ends at %s, not after %s", dated.End, dated.Start)
	}
	if _, excepted := slices.BinarySearch(c.except, start.Truncate(24*time.Hour).Unix()); !excepted {
		c.single = append(c.single, span{start.Unix(), end.Unix()})
	}
	return nil
}

// cron adds an entry that begins as an expression of cron says.
func (c *Calendar) cron(opening fleetflowv1alpha1.CronOpening) error {
	if strings.ContainsAny(opening.Expression, "@=") || len(strings.Fields(opening.Expression)) != 5 {
		return fmt.Errorf("%q needs the five fields minute, hour, day of the month, month and day of the week", opening.Expression)
	}
	schedule, err := cron.ParseStandard(opening.Expression)
	if err != nil {
		return fmt.Errorf("%q: %w", opening.Expression, err)
	}
	fields, is := schedule.(*cron.SpecSchedule)
	length := int64(opening.Duration.Duration / time.Second)
	if !is || length <= 0 {
		return fmt.Errorf("%q opens for %s", opening.Expression, opening.Duration.Duration)
	}
	var starts []int64
	for at := int64(0); at < day; at += minute {
		if fields.Hour&(1<<(at/3600)) != 0 && fields.Minute&(1<<(at%3600/minute)) != 0 {
			starts = append(starts, at)
		}
	}
	c.entries = append(c.entries, entry{days: cronDays{fields.Dom, fields.Month, fields.Dow}, starts: starts, length: length, elapsed: true})
	return nil
}

// neverOpens returns why the window opens at no time, past ones included; nothing if it does.
func (c *Calendar) neverOpens(spec *fleetflowv1alpha1.RolloutWindowSpec) string {
	if len(spec.Weekly)+len(spec.Monthly)+len(spec.Dates)+len(spec.Cron) == 0 {
		return "there is no entry in weekly, monthly, dates or cron"
	}
	crons := c.entries[len(c.entries)-len(spec.Cron):]
	for i := range crons {
		if _, is := crons[i].after(0, nil); !is {
			return fmt.Sprintf("cron[%d]: there is no day as %q says", i, spec.Cron[i].Expression)
		}
	}
	for i := range c.entries {
		if c.entries[i].length > c.lastStart {
			return ""
		}
	}
	for _, s := range c.single {
		if s.end-s.start > c.lastStart {
			return ""
		}
	}
	if _, is := c.Next(time.Unix(0, 0)); is {
		return "" // several of them together are longer
	}
	return "each opening begins on a date in except, or is not longer than lastStartBefore"
}

var weekdayNames = map[fleetflowv1alpha1.Weekday]time.Weekday{
	"Sun": time.Sunday, "Mon": time.Monday, "Tue": time.Tuesday, "Wed": time.Wednesday, "Thu": time.Thursday, "Fri": time.Friday,
	"Sat": time.Saturday,
}

const lastWeek = 4

var weekNames = map[fleetflowv1alpha1.WeekOfMonth]int{"First": 0, "Second": 1, "Third": 2, "Fourth": 3, "Last": lastWeek}

// secondOfDay reads a time such as 22:00; 24:00 is the end of the day.
func secondOfDay(text string) (int64, error) {
	hour, minutes, is := strings.Cut(text, ":")
	h, errHour := strconv.Atoi(hour)
	m, errMinute := strconv.Atoi(minutes)
	at := int64(h)*3600 + int64(m)*minute
	if !is || errHour != nil || errMinute != nil || len(text) != len("22:00") || h < 0 || m < 0 || m > 59 || at > day {
		return 0, fmt.Errorf("%q is not a time such as 22:00", text)
	}
	return at, nil
}
