package web

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fleetflow/fleetflow/apis/placement/updaterun"
	"github.com/fleetflow/fleetflow/cmd/fleet-dashboard/parts"
	"github.com/fleetflow/fleetflow/cmd/fleet-dashboard/picture"
	"github.com/fleetflow/fleetflow/cmd/internal/fleetview"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
)

func TestAHistoryChangesWhereSomethingHappens(t *testing.T) {
	const page, most = 300 << 10, 5 << 10
	now := time.Date(2026, 11, 23, 12, 5, 0, 0, time.UTC)
	placement := func(i int) hub.Ref { return hub.Ref{Kind: hub.KindPlacement, Name: fmt.Sprintf("placement-%02d", i)} }
	happened := func(i int, at time.Time, text string) fleetview.Happening {
		of := placement(i)
		return fleetview.Happening{Entry: fleetview.Entry{At: at, What: "run", Name: of.Name + "-1", Text: text}, Of: of, Path: of.Path()}
	}
	var all []fleetview.Happening
	for i := range 1000 {
		all = append(all, happened(i%40, now.Add(-time.Duration(i)*time.Minute), "stage production succeeded, 40 of 40 clusters, after 2m"))
	}
	ran := []picture.Ran{{Run: hub.Ref{Kind: hub.KindRun, Name: "placement-03-1"}, Of: placement(3), Phase: updaterun.PhaseRunning, Began: now.Add(-time.Hour)}}
	sent := parts.Since("")
	draw := func(now time.Time) string {
		period := fleetview.PeriodOf(url.Values{}, now)
		lanes, err := writePart("lanes", "lanes", picture.AxisOf(period.From, period.Until).Draw(all, ran, period.Until))
		require.NoError(t, err)
		l := list[fleetview.Happening]{Rows: all[:historyRows], Total: len(all), Pages: 1}
		table := sortable("", "", fleetview.HappeningColumns, l)
		table.IDs = fleetview.IDsOf(l.Rows)
		rows, err := writePart("happened", "happened", struct {
			list[fleetview.Happening]
			Table sortedTable
		}{l, table})
		require.NoError(t, err)
		return sent.Changes(lanes) + sent.Changes(rows)
	}
	whole := draw(now)
	assert.Less(t, len(whole), page)
	assert.Equal(t, 30, strings.Count(whole, `<li id="lane-`))
	assert.Empty(t, draw(now))

	all = append([]fleetview.Happening{happened(7, now, "failed: no")}, all...)
	came := draw(now)
	assert.Less(t, len(came), most)
	assert.Contains(t, came, `hx-swap="afterend"><tbody id="at-`)
	assert.Equal(t, 1, strings.Count(came, `hx-swap="delete"`), "the oldest row has no room any more")
	assert.Equal(t, 1, strings.Count(came, `<li id="lane-`), "the other lanes stay as they are")

	later := draw(now.Add(5 * time.Minute))
	assert.Less(t, len(later), most)
	assert.Contains(t, later, `<svg id="now" hx-swap-oob`)
	assert.Equal(t, 1, strings.Count(later, `<li id="lane-`), "where now is moves all lanes at once, and the one with a run under way")
	assert.NotContains(t, later, "<tbody")
}
