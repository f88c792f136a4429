package brake

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
)

func specOf(t testing.TB, text string) *fleetflowv1alpha1.RolloutWindowSpec {
	t.Helper()
	spec := &fleetflowv1alpha1.RolloutWindowSpec{}
	require.NoError(t, yaml.UnmarshalStrict([]byte(text), spec))
	return spec
}

func compiled(t testing.TB, text string) *Calendar {
	t.Helper()
	c, fault := CompileCalendar(specOf(t, text))
	require.Nil(t, fault)
	return c
}

func at(t testing.TB, text string) time.Time {
	t.Helper()
	parsed, err := time.Parse("2006-01-02T15:04Z", text)
	require.NoError(t, err)
	return parsed
}

// The numbers are those of the design's acceptance list.
func TestOpenings(t *testing.T) {
	const berlin = "timeZone: Europe/Berlin\n"
	for name, tc := range map[string]struct {
		spec, after string
		want        []string // start, close and, if it is another time, end; - is none
	}{
		"B7.1 an hour that the clock skips is missing": {
			spec:  berlin + `weekly: [{days: [Sun], start: "01:30", end: "04:00"}]`,
			after: "2027-03-27T00:00Z", want: []string{"2027-03-28T00:30Z 2027-03-28T02:00Z"},
		},
		"B7.1 an hour that the clock shows twice is there twice": {
			spec:  berlin + `weekly: [{days: [Sun], start: "01:30", end: "04:00"}]`,
			after: "2027-10-30T00:00Z", want: []string{"2027-10-30T23:30Z 2027-10-31T03:00Z"},
		},
		"B7.2 a start that the clock skips is the first instant after": {
			spec:  berlin + `weekly: [{days: [Sun], start: "02:30", end: "03:30"}]`,
			after: "2027-03-27T00:00Z", want: []string{"2027-03-28T01:00Z 2027-03-28T01:30Z"},
		},
		"B7.2 an Allow ends at the first of two times": {
			spec:  berlin + `weekly: [{days: [Sun], start: "02:15", end: "02:45"}]`,
			after: "2027-10-30T00:00Z", want: []string{"2027-10-31T00:15Z 2027-10-31T00:45Z"},
		},
		"B7.2 a Deny ends at the second of two times": {
			spec:  berlin + "type: Deny\n" + `weekly: [{days: [Sun], start: "02:15", end: "02:45"}]`,
			after: "2027-10-30T00:00Z", want: []string{"2027-10-31T00:15Z 2027-10-31T01:45Z"},
		},
		"B7.2 midnight can be skipped": {
			spec:  "timeZone: Africa/Cairo\n" + `weekly: [{days: [Fri], start: "00:00", end: "04:00"}]`,
			after: "2027-04-29T12:00Z", want: []string{"2027-04-29T22:00Z 2027-04-30T01:00Z"},
		},
		"an opening that the clock skips does not take place": {
			spec:  berlin + `weekly: [{days: [Sun], start: "02:15", end: "02:45"}]`,
			after: "2027-03-27T00:00Z", want: []string{"2027-04-04T00:15Z 2027-04-04T00:45Z"},
		},
		"an end that is not later than the start is on the next day": {
			spec:  berlin + `weekly: [{days: [Thu], start: "22:00", end: "06:00"}]`,
			after: "2026-11-23T00:00Z", want: []string{"2026-11-26T21:00Z 2026-11-27T05:00Z"},
		},
		"openings that touch are one": {
			spec:  `{timeZone: UTC, weekly: [{days: [Mon, Tue, Wed, Thu], start: "00:00", end: "24:00"}]}`,
			after: "2026-11-20T00:00Z", want: []string{"2026-11-23T00:00Z 2026-11-27T00:00Z", "2026-11-30T00:00Z 2026-12-04T00:00Z"},
		},
		"openings that overlap are one": {
			spec:  `{timeZone: UTC, weekly: [{days: [Mon], start: "10:00", end: "12:00"}], cron: [{expression: "30 11 * * 1", duration: 2h}]}`,
			after: "2026-11-22T00:00Z", want: []string{"2026-11-23T10:00Z 2026-11-23T13:30Z"},
		},
		"the day after the second Tuesday": {
			spec:  `{timeZone: UTC, monthly: [{week: Second, day: Tue, offsetDays: 1, start: "20:00", end: "23:00"}]}`,
			after: "2026-11-12T00:00Z", want: []string{"2026-12-09T20:00Z 2026-12-09T23:00Z", "2027-01-13T20:00Z 2027-01-13T23:00Z"},
		},
		"some days after the last Sunday can be in the next month": {
			spec:  `{timeZone: UTC, monthly: [{week: Last, day: Sun, offsetDays: 6, start: "00:00", end: "24:00"}]}`,
			after: "2026-12-01T00:00Z", want: []string{"2026-12-05T00:00Z 2026-12-06T00:00Z", "2027-01-02T00:00Z 2027-01-03T00:00Z"},
		},
		"dates are single openings": {
			spec:  berlin + `dates: [{start: "2026-12-18T00:00", end: "2027-01-05T00:00"}]`,
			after: "2026-11-23T00:00Z", want: []string{"2026-12-17T23:00Z 2027-01-04T23:00Z", "-"},
		},
		"what is past does not open again": {
			spec:  berlin + `dates: [{start: "2025-12-18T00:00", end: "2026-01-05T00:00"}]`,
			after: "2026-11-23T00:00Z", want: []string{"-"},
		},
		"a cron entry lasts by the time that passes": {
			spec:  berlin + `cron: [{expression: "0 22 * * 6", duration: 8h}]`,
			after: "2027-03-26T00:00Z", want: []string{"2027-03-27T21:00Z 2027-03-28T05:00Z"},
		},
		"a day that comes every four years": {
			spec:  `{timeZone: UTC, cron: [{expression: "0 0 29 2 *", duration: 1h}]}`,
			after: "2026-11-23T00:00Z", want: []string{"2028-02-29T00:00Z 2028-02-29T01:00Z", "2032-02-29T00:00Z 2032-02-29T01:00Z"},
		},
		"what begins on an excepted date does not take place, the day after does": {
			spec:  `{timeZone: UTC, weekly: [{days: [Thu, Fri, Sat], start: "22:00", end: "02:00"}], except: ["2026-12-24", "2026-12-25"]}`,
			after: "2026-12-23T00:00Z", want: []string{"2026-12-26T22:00Z 2026-12-27T02:00Z"},
		},
		"starts end before the opening does": {
			spec:  `{timeZone: UTC, lastStartBefore: 30m, weekly: [{days: [Mon], start: "10:00", end: "12:00"}]}`,
			after: "2026-11-22T00:00Z", want: []string{"2026-11-23T10:00Z 2026-11-23T11:30Z 2026-11-23T12:00Z"},
		},
		"an opening that is shorter than lastStartBefore is none": {
			spec:  `{timeZone: UTC, lastStartBefore: 1h, weekly: [{days: [Mon], start: "10:00", end: "11:00"}, {days: [Tue], start: "10:00", end: "12:00"}]}`,
			after: "2026-11-22T00:00Z", want: []string{"2026-11-24T10:00Z 2026-11-24T11:00Z 2026-11-24T12:00Z"},
		},
		"a window that is always open has no next opening": {
			spec:  `{timeZone: UTC, weekly: [{days: [Mon, Tue, Wed, Thu, Fri, Sat, Sun], start: "00:00", end: "24:00"}]}`,
			after: "2026-11-22T12:00Z", want: []string{"-"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			openings := compiled(t, tc.spec).Openings(at(t, tc.after), len(tc.want))
			var got []string
			for _, o := range openings {
				text := o.Start.UTC().Format("2006-01-02T15:04Z") + " " + o.Close.UTC().Format("2006-01-02T15:04Z")
				if !o.End.Equal(o.Close) {
					text += " " + o.End.UTC().Format("2006-01-02T15:04Z")
				}
				got = append(got, text)
			}
			if len(got) < len(tc.want) {
				got = append(got, "-")
			}
			assert.Equal(t, tc.want, got)
		})
	}
}

func TestAWindowIsOpenFromItsStartUntilStartsEnd(t *testing.T) {
	c := compiled(t, `{timeZone: UTC, lastStartBefore: 30m, weekly: [{days: [Mon], start: "10:00", end: "12:00"}, {days: [Tue], start: "23:00", end: "00:20"}, {days: [Wed], start: "00:20", end: "01:00"}]}`)
	for instant, want := range map[string]struct {
		open    bool
		changes string
	}{
		"2026-11-23T09:59Z": {false, "2026-11-23T10:00Z"},
		"2026-11-23T10:00Z": {true, "2026-11-23T11:30Z"},
		"2026-11-23T11:29Z": {true, "2026-11-23T11:30Z"},
		"2026-11-23T11:30Z": {false, "2026-11-24T23:00Z"},
		"2026-11-23T11:59Z": {false, "2026-11-24T23:00Z"},
		"2026-11-25T00:10Z": {true, "2026-11-25T00:30Z"}, // the opening goes on into Wednesday
		"2026-11-25T00:30Z": {false, "2026-11-30T10:00Z"},
	} {
		assert.Equal(t, want.open, c.IsOpen(at(t, instant)), instant)
		assert.Equal(t, at(t, want.changes), c.Changes(at(t, instant)).UTC(), instant)
	}
	always := compiled(t, `{timeZone: UTC, cron: [{expression: "* * * * *", duration: 1m}]}`)
	assert.True(t, always.IsOpen(at(t, "2026-11-23T09:59Z")))
	assert.Zero(t, always.Changes(at(t, "2026-11-23T09:59Z")))
}

func TestFaults(t *testing.T) {
	const never, invalid, unknown = fleetflowv1alpha1.ReasonNeverOpens, fleetflowv1alpha1.ReasonInvalidEntry, fleetflowv1alpha1.ReasonUnknownTimeZone
	for spec, want := range map[string]string{
		`{timeZone: Europe/Nowhere, weekly: [{days: [Mon], start: "10:00", end: "12:00"}]}`:                      unknown + `: timeZone "Europe/Nowhere" is not`,
		`{timeZone: Local, weekly: [{days: [Mon], start: "10:00", end: "12:00"}]}`:                               unknown,
		`{weekly: [{days: [Mon], start: "10:00", end: "12:00"}]}`:                                                unknown,
		`{timeZone: UTC, cron: [{expression: "0 0 31 2 *", duration: 1h}]}`:                                      never + `: cron[0]: there is no day as "0 0 31 2 *" says`,
		`{timeZone: UTC, dates: [{start: "2026-12-24T00:00", end: "2026-12-25T00:00"}], except: ["2026-12-24"]}`: never,
		`{timeZone: UTC, lastStartBefore: 2h, weekly: [{days: [Mon], start: "10:00", end: "12:00"}]}`:            never,
		`{timeZone: UTC}`: never,
		`{timeZone: UTC, cron: [{expression: "TZ=UTC 0 0 1 1 *", duration: 1h}]}`:                                 invalid + ": cron[0]: ",
		`{timeZone: UTC, cron: [{expression: "CRON_TZ=UTC 0 0 1 1 *", duration: 1h}]}`:                            invalid,
		`{timeZone: UTC, cron: [{expression: "@every 1h", duration: 1h}]}`:                                        invalid,
		`{timeZone: UTC, cron: [{expression: "@reboot", duration: 1h}]}`:                                          invalid,
		`{timeZone: UTC, cron: [{expression: "0 0 1 1", duration: 1h}]}`:                                          invalid,
		`{timeZone: UTC, cron: [{expression: "61 0 1 1 *", duration: 1h}]}`:                                       invalid,
		`{timeZone: UTC, cron: [{expression: "0 0 1 1 *", duration: 0s}]}`:                                        invalid,
		`{timeZone: UTC, weekly: [{days: [Monday], start: "10:00", end: "12:00"}]}`:                               invalid + `: weekly[0]: "Monday"`,
		`{timeZone: UTC, weekly: [{days: [Mon], start: "10:00", end: "10:00"}]}`:                                  invalid,
		`{timeZone: UTC, weekly: [{days: [Mon], start: "24:00", end: "10:00"}]}`:                                  invalid,
		`{timeZone: UTC, weekly: [{days: [Mon], start: "1:00", end: "10:00"}]}`:                                   invalid,
		`{timeZone: UTC, weekly: [{days: [Mon], start: "10:00", end: "24:01"}]}`:                                  invalid,
		`{timeZone: UTC, monthly: [{week: Fifth, day: Mon, start: "10:00", end: "12:00"}]}`:                       invalid,
		`{timeZone: UTC, monthly: [{week: First, day: Mon, start: "10:00", end: "12"}]}`:                          invalid,
		`{timeZone: UTC, dates: [{start: "2026-02-30T00:00", end: "2026-12-25T00:00"}]}`:                          invalid,
		`{timeZone: UTC, dates: [{start: "2026-02-20T00:00", end: "2026-12-32T00:00"}]}`:                          invalid,
		`{timeZone: UTC, dates: [{start: "2026-12-26T00:00", end: "2026-12-25T00:00"}]}`:                          invalid,
		`{timeZone: UTC, dates: [{start: "2026-12-24T00:00", end: "2026-12-25T00:00"}], except: ["24 December"]}`: invalid,
	} {
		c, fault := CompileCalendar(specOf(t, spec))
		if assert.NotNil(t, fault, spec) {
			assert.Nil(t, c, spec)
			assert.True(t, strings.HasPrefix(fault.Reason+": "+fault.Message, want), "%s\n%s: %s", spec, fault.Reason, fault.Message)
		}
	}
}

// B7.9 is 200 windows for 1,000 clusters in 20 ms; windows are evaluated once for all clusters.
func BenchmarkIsOpen(b *testing.B) {
	var calendars []*Calendar
	for i := range 200 {
		calendars = append(calendars, compiled(b, fmt.Sprintf(`{timeZone: Europe/Berlin, lastStartBefore: 30m,
  weekly: [{days: [Mon, Tue, Wed, Thu], start: "22:%02d", end: "06:00"}],
  monthly: [{week: Second, day: Tue, offsetDays: 1, start: "20:00", end: "23:00"}],
  cron: [{expression: "0 22 * * 1-5", duration: 8h}], except: ["2026-12-24", "2026-12-25"]}`, i%60)))
	}
	now := time.Date(2026, time.November, 23, 12, 0, 0, 0, time.UTC)
	b.ReportAllocs()
	for b.Loop() {
		for _, c := range calendars {
			_ = c.IsOpen(now)
		}
	}
}
