package brake_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/fleetflow/fleetflow/activities/brake"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	"github.com/fleetflow/fleetflow/workflows/rollout"
)

// windowOf is a window with a spec in YAML; without a time zone it is in UTC.
func windowOf(t testing.TB, name, spec string) fleetflowv1alpha1.RolloutWindow {
	t.Helper()
	w := fleetflowv1alpha1.RolloutWindow{ObjectMeta: metav1.ObjectMeta{Name: name}}
	require.NoError(t, yaml.UnmarshalStrict([]byte(spec), &w.Spec))
	if w.Spec.TimeZone == "" {
		w.Spec.TimeZone = "UTC"
	}
	return w
}

const (
	workdays   = `{type: Allow, scope: Fleet, weekly: [{days: [Mon, Tue, Wed, Thu], start: "00:00", end: "24:00"}]}`
	westNights = `{type: Allow, scope: Cluster, clusterSelector: {matchLabels: {region: west}}, weekly: [{days: [Mon, Tue, Wed, Thu, Fri, Sat, Sun], start: "22:00", end: "06:00"}]}`
	lunch      = `{type: Allow, scope: Cluster, clusterSelector: {matchLabels: {region: west}}, weekly: [{days: [Mon, Tue, Wed, Thu, Fri, Sat, Sun], start: "12:00", end: "13:00"}]}`
	freeze     = `{type: Deny, scope: Fleet, message: the year ends, dates: [{start: "2026-12-18T00:00", end: "2027-01-05T00:00"}]}`
	always     = `weekly: [{days: [Mon, Tue, Wed, Thu, Fri, Sat, Sun], start: "00:00", end: "24:00"}]`
)

func TestWhatWindowsClose(t *testing.T) {
	const outside, closed = fleetflowv1alpha1.ReasonOutsideAllowedWindow, fleetflowv1alpha1.ReasonWindowClosed
	for sentence, test := range map[string]struct {
		windows []string
		of      brake.Subject
		start   brake.Start
		cluster *brake.Cluster
		at      string
		// by is the window that closes the cluster, until when it does; empty if the cluster is open.
		by, reason, until string
	}{
		"no window closes anything":                     {at: "2026-11-24T12:00:00Z"},
		"B7.3 closed by the clusters' nights":           {windows: []string{workdays, westNights}, at: "2026-11-24T12:00:00Z", by: "w1", reason: outside, until: "2026-11-24T22:00:00Z"},
		"B7.3 open in both scopes":                      {windows: []string{workdays, westNights}, at: "2026-11-24T23:00:00Z"},
		"B7.3 an opening of Thursday ends with the day": {windows: []string{workdays, westNights}, at: "2026-11-27T01:00:00Z", by: "w0", reason: outside, until: "2026-11-30T00:00:00Z"},
		"of several scopes the one that opens last":     {windows: []string{workdays, westNights}, at: "2026-11-27T12:00:00Z", by: "w0", reason: outside, until: "2026-11-30T00:00:00Z"},
		"of one scope any is enough":                    {windows: []string{westNights, lunch}, at: "2026-11-24T12:00:00Z"},
		"of one scope the one that opens first":         {windows: []string{westNights, lunch}, at: "2026-11-24T11:00:00Z", by: "w1", reason: outside, until: "2026-11-24T12:00:00Z"},
		"windows of other clusters":                     {windows: []string{westNights}, cluster: &east, at: "2026-11-24T12:00:00Z"},
		"a Deny closes whatever allows":                 {windows: []string{workdays, freeze}, at: "2026-12-22T12:00:00Z", by: "w1", reason: closed, until: "2027-01-05T00:00:00Z"},
		"a stage that names it": {windows: []string{`{type: Deny, scope: Stage, ` + always + `}`}, of: brake.Subject{Stage: "prod", Windows: []string{"w0"}},
			at: "2026-12-22T12:00:00Z", by: "w0", reason: closed},
		"a stage that names another": {windows: []string{`{type: Deny, scope: Stage, ` + always + `}`, `{type: Allow, scope: Stage, ` + always + `}`},
			of: brake.Subject{Stage: "prod", Windows: []string{"w1"}}, at: "2026-12-22T12:00:00Z"},
		"a window that a stage names and that is gone": {windows: []string{`{type: Allow, scope: Stage, ` + always + `}`},
			of: brake.Subject{Stage: "prod", Windows: []string{"w0", "w1"}}, at: "2026-12-22T12:00:00Z", by: "w1", reason: closed},
		"the only one, which is gone": {of: brake.Subject{Stage: "prod", Windows: []string{"w0"}}, at: "2026-12-22T12:00:00Z", by: "w0", reason: closed},
		"one that is gone holds rollbacks, too": {of: brake.Subject{Rollback: true, Stage: "prod", Windows: []string{"w0"}},
			at: "2026-12-22T12:00:00Z", by: "w0", reason: closed},
		"a Deny that is not open": {windows: []string{freeze}, at: "2026-11-24T12:00:00Z"},
		"evictions, as all other starts": {windows: []string{freeze}, start: fleetflowv1alpha1.StartEvictions, at: "2026-12-22T12:00:00Z",
			by: "w0", reason: closed, until: "2027-01-05T00:00:00Z"},
		"evictions alone": {windows: []string{`{type: Deny, scope: Fleet, starts: [Evictions], ` + always + `}`},
			start: fleetflowv1alpha1.StartEvictions, at: "2026-12-22T12:00:00Z", by: "w0", reason: closed},
		"other starts than those it names": {windows: []string{`{type: Deny, scope: Fleet, starts: [Evictions], ` + always + `}`}, at: "2026-12-22T12:00:00Z"},
		"rollbacks wait": {windows: []string{freeze}, of: brake.Subject{Rollback: true}, at: "2026-12-22T12:00:00Z",
			by: "w0", reason: closed, until: "2027-01-05T00:00:00Z"},
		"rollbacks go, if a window says so": {windows: []string{`{type: Deny, scope: Fleet, rollbacks: Exempt, ` + always + `}`},
			of: brake.Subject{Rollback: true}, at: "2026-12-22T12:00:00Z"},
		"a stage by its name": {windows: []string{`{type: Deny, scope: Stage, stages: [prod], ` + always + `}`},
			of: brake.Subject{Stage: "prod"}, at: "2026-12-22T12:00:00Z", by: "w0", reason: closed},
		"another stage": {windows: []string{`{type: Deny, scope: Stage, stages: [prod], ` + always + `}`},
			of: brake.Subject{Stage: "canary"}, at: "2026-12-22T12:00:00Z"},
		"a stage of other placements": {windows: []string{`{type: Deny, scope: Stage, stages: [prod], placementSelector: {matchLabels: {team: b}}, ` + always + `}`},
			of: brake.Subject{Stage: "prod", PlacementLabels: map[string]string{"team": "a"}}, at: "2026-12-22T12:00:00Z"},
		"a placement by its labels": {windows: []string{`{type: Deny, scope: Placement, placementSelector: {matchLabels: {team: a}}, ` + always + `}`},
			of: brake.Subject{PlacementLabels: map[string]string{"team": "a"}}, at: "2026-12-22T12:00:00Z", by: "w0", reason: closed},
		"a placement by the labels of its Namespace": {windows: []string{`{type: Deny, scope: Placement, namespaceSelector: {matchLabels: {team: a}}, ` + always + `}`},
			of: brake.Subject{NamespaceLabels: map[string]string{"team": "a"}}, at: "2026-12-22T12:00:00Z", by: "w0", reason: closed},
		"not by labels of its own that the Namespace does not have": {windows: []string{`{type: Deny, scope: Placement, namespaceSelector: {matchLabels: {team: a}}, ` + always + `}`},
			of: brake.Subject{PlacementLabels: map[string]string{"team": "a"}}, at: "2026-12-22T12:00:00Z"},
		"starts end before the opening": {windows: []string{`{type: Allow, scope: Fleet, lastStartBefore: 30m, weekly: [{days: [Tue], start: "10:00", end: "12:00"}]}`},
			at: "2026-11-24T11:30:00Z", by: "w0", reason: outside, until: "2026-12-01T10:00:00Z"},
		"an Allow that can not be followed is closed": {windows: []string{`{type: Allow, scope: Fleet, timeZone: Europe/Nowhere, ` + always + `}`},
			at: "2026-11-24T11:30:00Z", by: "w0", reason: outside},
		"a Deny that can not be followed is open": {windows: []string{`{type: Deny, scope: Fleet, timeZone: Europe/Nowhere, ` + always + `}`},
			at: "2026-11-24T11:30:00Z", by: "w0", reason: closed},
		"what never opens closes longest": {windows: []string{`{type: Allow, scope: Fleet, timeZone: Europe/Nowhere, ` + always + `}`, westNights},
			at: "2026-11-24T12:00:00Z", by: "w0", reason: outside},
		"a selector that can not be read selects all": {windows: []string{`{type: Deny, scope: Cluster, clusterSelector: {matchExpressions: [{key: a, operator: Near}]}, ` + always + `}`},
			at: "2026-11-24T12:00:00Z", by: "w0", reason: closed},
	} {
		t.Run(sentence, func(t *testing.T) {
			var windows []fleetflowv1alpha1.RolloutWindow
			for i, spec := range test.windows {
				windows = append(windows, windowOf(t, fmt.Sprintf("w%d", i), spec))
			}
			start := fleetflowv1alpha1.StartUpdates
			cluster := west
			if test.start != "" {
				start = test.start
			}
			if test.cluster != nil {
				cluster = *test.cluster
			}
			now, err := time.Parse(time.RFC3339, test.at)
			require.NoError(t, err)
			closure, is := brake.NewChain(brake.Windows(windows, test.of)).Closed(cluster, start, now)
			assert.Equal(t, test.by != "", is)
			assert.Equal(t, test.by, closure.Object)
			assert.Equal(t, test.reason, closure.Reason)
			until := ""
			if !closure.Until.IsZero() {
				until = closure.Until.UTC().Format(time.RFC3339)
			}
			assert.Equal(t, test.until, until)
		})
	}
}

func TestWindowsChangeAtTheirBounds(t *testing.T) {
	source := brake.Windows([]fleetflowv1alpha1.RolloutWindow{windowOf(t, "freeze", freeze), windowOf(t, "nights", westNights)}, brake.Subject{})
	for now, want := range map[string]string{
		"2026-11-24T12:00:00Z": "2026-11-24T22:00:00Z", "2026-11-24T22:00:00Z": "2026-11-25T06:00:00Z",
		"2026-12-17T23:00:00Z": "2026-12-18T00:00:00Z", "2027-01-04T23:00:00Z": "2027-01-05T00:00:00Z",
	} {
		at, err := time.Parse(time.RFC3339, now)
		require.NoError(t, err)
		assert.Equal(t, want, source.NextChange(at).UTC().Format(time.RFC3339), now)
	}
	assert.Nil(t, brake.Windows(nil, brake.Subject{}))
}

func TestWindowsBeyondTheLimitAreNotFollowed(t *testing.T) {
	var windows []fleetflowv1alpha1.RolloutWindow
	for i := range fleetflowv1alpha1.MaxRolloutWindows + 1 {
		w := windowOf(t, fmt.Sprintf("w%03d", i), `{type: Allow, scope: Fleet, `+always+`}`)
		w.CreationTimestamp = metav1.Unix(int64(1000-i), 0)
		windows = append(windows, w)
	}
	compiled := brake.CompileWindows(windows)
	last := compiled[len(compiled)-1]
	assert.Equal(t, "w000", last.Name, "the newest")
	if assert.NotNil(t, last.Fault) {
		assert.Equal(t, fleetflowv1alpha1.ReasonTooManyWindows, last.Fault.Reason)
	}
	assert.Nil(t, compiled[len(compiled)-2].Fault)
}

func TestWhatIsToldOfAWindow(t *testing.T) {
	now, err := time.Parse(time.RFC3339, "2026-11-22T12:00:00Z")
	require.NoError(t, err)
	told := func(spec string) string {
		closure, closed := brake.NewChain(brake.Windows([]fleetflowv1alpha1.RolloutWindow{windowOf(t, "eu-nights", spec)}, brake.Subject{})).
			Closed(west, fleetflowv1alpha1.StartUpdates, now)
		require.True(t, closed)
		var tally rollout.Tally
		tally.Add(closure)
		tally.Add(closure)
		return tally.Text(12, "stage prod")
	}
	assert.Equal(t, "2 of 12 cluster(s) of stage prod wait for window eu-nights (CAB-17): opens 2026-11-23T22:00:00+01:00",
		told(`{type: Allow, scope: Fleet, message: CAB-17, timeZone: Europe/Berlin, weekly: [{days: [Mon], start: "22:00", end: "23:00"}]}`))
	assert.Equal(t, "2 of 12 cluster(s) of stage prod wait for window eu-nights (CAB-17): ends 2026-11-23T00:00:00Z",
		told(`{type: Deny, scope: Fleet, message: CAB-17, weekly: [{days: [Sun], start: "00:00", end: "24:00"}]}`))
}

// B7.9: 200 windows for 1,000 clusters in less than 20 ms, without a piece of memory for any cluster.
func BenchmarkWindows(b *testing.B) {
	var windows []fleetflowv1alpha1.RolloutWindow
	for i := range 200 {
		windows = append(windows, windowOf(b, fmt.Sprintf("w%03d", i), fmt.Sprintf(`{type: Allow, scope: Cluster, clusterSelector: {matchLabels: {region: r%d}},
  timeZone: Europe/Berlin, lastStartBefore: 30m, weekly: [{days: [Mon, Tue, Wed, Thu], start: "22:00", end: "06:00"}], except: ["2026-12-24"]}`, i%20)))
	}
	var clusters []brake.Cluster
	for i := range 1000 {
		clusters = append(clusters, brake.Cluster{Name: fmt.Sprintf("c%d", i), Labels: map[string]string{"region": fmt.Sprintf("r%d", i%20), "zone": "a"}})
	}
	source := brake.Windows(windows, brake.Subject{})
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		now := noon.Add(time.Duration(i) * 12 * time.Hour) // other states each time
		for _, cluster := range clusters {
			source.Closed(cluster, fleetflowv1alpha1.StartUpdates, now)
		}
	}
}

func TestAWindowFromWhichARunIsExempt(t *testing.T) {
	const never = `dates: [{start: "2020-01-01T00:00", end: "2020-01-02T00:00"}]`
	const always = `weekly: [{days: [Mon, Tue, Wed, Thu, Fri, Sat, Sun], start: "00:00", end: "24:00"}]`
	windows := []fleetflowv1alpha1.RolloutWindow{
		windowOf(t, "nights", `{type: Allow, scope: Fleet, `+never+`}`),
		windowOf(t, "weekends", `{type: Allow, scope: Fleet, `+never+`}`),
		windowOf(t, "freeze", `{type: Deny, scope: Fleet, `+always+`}`),
	}
	from := func(names ...string) (froms []fleetflowv1alpha1.ExemptFrom) {
		for _, name := range names {
			froms = append(froms, fleetflowv1alpha1.ExemptFrom{Kind: fleetflowv1alpha1.ExemptFromWindow, Name: name})
		}
		return froms
	}
	for sentence, test := range map[string]struct {
		from []fleetflowv1alpha1.ExemptFrom
		by   string
	}{
		"an Allow counts as open, and the Deny holds it": {from("nights"), "freeze"},
		"a Deny counts as not there":                     {from("freeze"), "nights"},
		"both are named":                                 {from("nights", "freeze"), ""},
		"without a name, all of them":                    {from(""), ""},
	} {
		t.Run(sentence, func(t *testing.T) {
			of := brake.Subject{Run: "web-17"}
			e := exemption("e", func(e *fleetflowv1alpha1.RolloutExemption) { e.Spec.ExemptFrom = test.from })
			of.Exemptions = brake.ExemptionsOf([]fleetflowv1alpha1.RolloutExemption{e}, of, true)
			gate := brake.NewChain(brake.Windows(windows, of))
			closure, closed := gate.Closed(west, fleetflowv1alpha1.StartUpdates, noon)
			assert.Equal(t, test.by, closure.Object)
			assert.Equal(t, test.by != "", closed)
			assert.True(t, gate.NextChange(noon).Equal(noon.Add(time.Hour)) || test.by == "nights" && !gate.NextChange(noon).IsZero(), gate.NextChange(noon))
			_, closed = gate.Closed(west, fleetflowv1alpha1.StartUpdates, noon.Add(time.Hour))
			assert.True(t, closed, "the exemption has ended")
		})
	}
}

// B7.6: a rollback goes during a Deny that exempts rollbacks, waits during a hold, and goes with an exemption that names the hold.
func TestARollbackDuringADenyAndDuringAHold(t *testing.T) {
	of := brake.Subject{Run: "web-17", Rollback: true}
	december := []fleetflowv1alpha1.RolloutWindow{windowOf(t, "freeze", `{type: Deny, scope: Fleet, rollbacks: Exempt, dates: [{start: "2026-11-01T00:00", end: "2026-12-31T00:00"}]}`)}
	holds := []fleetflowv1alpha1.RolloutHold{hold("h", nil)}
	waitsFor := func(of brake.Subject, holds []fleetflowv1alpha1.RolloutHold) string {
		closure, _ := brake.NewChain(brake.Holds(holds, of), brake.Windows(december, of)).Closed(west, fleetflowv1alpha1.StartUpdates, noon)
		return closure.Object
	}
	assert.Equal(t, "freeze", waitsFor(brake.Subject{Run: "web-17"}, nil), "what is no rollback waits")
	assert.Empty(t, waitsFor(of, nil))
	assert.Equal(t, "h", waitsFor(of, holds))
	of.Exemptions = brake.ExemptionsOf([]fleetflowv1alpha1.RolloutExemption{exemption("e", nil)}, of, true)
	assert.Empty(t, waitsFor(of, holds))
	assert.Contains(t, of.Exemptions.From(fleetflowv1alpha1.ExemptFromHold, "h").Record(), "jane exempts run/web-17 from hold/h until 2026-11-22T13:00:00Z: CVE")
}

// B7.7: a process that starts in mid-window finds it open, and one that starts before it the same instant to wait for.
func TestAProcessThatStartsLaterKnowsTheSame(t *testing.T) {
	windows := []fleetflowv1alpha1.RolloutWindow{windowOf(t, "nights", `{type: Allow, scope: Fleet, weekly: [{days: [Sun], start: "11:00", end: "18:00"}]}`)}
	early := brake.NewChain(brake.Windows(windows, brake.Subject{}))
	first, closed := early.Closed(west, fleetflowv1alpha1.StartUpdates, noon.Add(-3*time.Hour))
	assert.True(t, closed)
	again, closed := brake.NewChain(brake.Windows(windows, brake.Subject{})).Closed(west, fleetflowv1alpha1.StartUpdates, noon.Add(-2*time.Hour))
	assert.True(t, closed)
	assert.True(t, first.Until.Equal(again.Until), "%s and %s", first.Until, again.Until)
	_, closed = brake.NewChain(brake.Windows(windows, brake.Subject{})).Closed(west, fleetflowv1alpha1.StartUpdates, noon)
	assert.False(t, closed, "it is open, though nothing has seen it open")
}
