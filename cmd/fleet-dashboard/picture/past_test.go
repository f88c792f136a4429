package picture_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fleetflow/fleetflow/apis/placement/updaterun"
	"github.com/fleetflow/fleetflow/cmd/fleet-dashboard/picture"
	"github.com/fleetflow/fleetflow/cmd/internal/fleetview"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
)

var midday = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

func refTo(kind hub.Kind, name string) hub.Ref { return hub.Ref{Kind: kind, Name: name} }

func happened(of hub.Ref, ago time.Duration, what, text string) fleetview.Happening {
	return fleetview.Happening{Entry: fleetview.Entry{At: midday.Add(-ago), What: what, Name: of.Name, Text: text}, Of: of}
}

func TestThePastIsDrawnInLanes(t *testing.T) {
	web := refTo(hub.KindPlacement, "web")
	failed := happened(web, 10*time.Minute, "run", "failed: no")
	failed.Bad = true
	all := []fleetview.Happening{
		failed, happened(hub.Ref{}, 20*time.Minute, "hold", "stops the line"), happened(web, 40*time.Minute, "snapshot", "taken"),
		happened(refTo(hub.KindMember, "a"), 50*time.Minute, "member", "joined"), happened(refTo(hub.KindMember, "b"), 50*time.Minute, "member", "joined"),
	}
	axis := picture.AxisOf(midday.Add(-time.Hour), midday)
	assert.Equal(t, midday.Add(-time.Hour), axis.Start)
	drawn := axis.Draw(all, []picture.Ran{
		{Run: refTo(hub.KindRun, "web-2"), Of: web, Phase: updaterun.PhaseFailed, Began: midday.Add(-30 * time.Minute), Ended: midday.Add(-10 * time.Minute)},
		{Run: refTo(hub.KindRun, "web-1"), Of: web, Phase: updaterun.PhaseRunning, Began: midday.Add(-48 * time.Hour)},
	}, midday)
	require.Len(t, drawn.Lanes, 3)
	assert.Equal(t, []string{"The fleet", "Clusters", "web"}, []string{drawn.Lanes[0].Title, drawn.Lanes[1].Title, drawn.Lanes[2].Title})
	lane := drawn.Lanes[2]
	assert.Equal(t, "/placements/web", lane.Path)
	assert.Equal(t, "web: 1 × gone wrong, 1 × snapshot or policy, 2 runs under way", lane.Text)
	require.Len(t, lane.Stretches, 2)
	assert.Equal(t, picture.Stretch{X: lane.Stretches[1].X, W: lane.Stretches[1].W, Phase: updaterun.PhaseRunning, Text: "run/web-1: running"}, lane.Stretches[1])
	assert.Equal(t, "0.0%", lane.Stretches[1].X, "it began before what is drawn")
	require.Len(t, lane.Spots, 2)
	assert.Equal(t, "bad", lane.Spots[0].Kind)
	assert.Contains(t, lane.Spots[0].Text, "Nov 23 11:50:00 UTC run web: failed: no")
	require.Len(t, drawn.Lanes[1].Spots, 1, "what is at one place is one spot")
	assert.Equal(t, 2, strings.Count(drawn.Lanes[1].Spots[0].Text, "joined"))
}

func TestAPictureOfThePastIsBounded(t *testing.T) {
	var all []fleetview.Happening
	for i := range 5000 {
		all = append(all, happened(refTo(hub.KindPlacement, fmt.Sprint("p", i%100)), time.Duration(i)*time.Second, "snapshot", strings.Repeat("x", 100)))
	}
	drawn := picture.AxisOf(midday.Add(-24*time.Hour), midday).Draw(all, nil, midday)
	assert.Len(t, drawn.Lanes, 30)
	assert.Equal(t, 70, drawn.More)
	for _, lane := range drawn.Lanes {
		assert.Less(t, len(lane.Spots), 130)
		for _, spot := range lane.Spots {
			assert.LessOrEqual(t, strings.Count(spot.Text, "\n"), 3)
		}
	}
	assert.Empty(t, picture.AxisOf(midday, midday).Draw(nil, nil, midday).Lanes)
}

func TestEachKindOfHappeningHasAShapeOfItsOwn(t *testing.T) {
	seen := map[string]bool{}
	kinds := map[string]bool{}
	for _, shape := range picture.Shapes {
		assert.False(t, seen[shape.Path], "%s is told apart by its colour alone", shape.Kind)
		seen[shape.Path] = true
		kinds[shape.Kind] = true
	}
	for _, what := range fleetview.About {
		assert.True(t, kinds[picture.KindOf(fleetview.Happening{Entry: fleetview.Entry{What: what}})], what)
	}
}

func TestRunsOfThePastAreChosenLikeTheRest(t *testing.T) {
	ran := []picture.Ran{{Run: refTo(hub.KindRun, "web-2"), Of: refTo(hub.KindPlacement, "web")}}
	for choice, number := range map[fleetview.Choice]int{
		{}: 1, {What: "run"}: 1, {Text: "WEB"}: 1, {Text: "mail"}: 0, {What: "hold"}: 0, {By: "jane"}: 0,
	} {
		assert.Len(t, picture.Chosen(ran, choice), number, "%+v", choice)
	}
}
