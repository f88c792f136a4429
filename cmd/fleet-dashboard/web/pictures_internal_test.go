package web

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fleetflow/fleetflow/apis/placement/updaterun"
	"github.com/fleetflow/fleetflow/cmd/fleet-dashboard/parts"
	"github.com/fleetflow/fleetflow/cmd/fleet-dashboard/picture"
	"github.com/fleetflow/fleetflow/cmd/internal/fleetview"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/plan"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/tree"
)

// drawnRun is a run of some stages with some clusters each.
func drawnRun(stages, clusters int, name string) updaterun.State {
	run := updaterun.State{Phase: updaterun.PhaseRunning}
	for i := range stages {
		stage := updaterun.Stage{Name: fmt.Sprint(name, i), Phase: updaterun.PhaseRunning, MaxConcurrency: "10%"}
		for j := range clusters {
			phase := updaterun.PhaseSucceeded
			if j%3 == 0 {
				phase = updaterun.PhaseRunning
			}
			stage.Clusters = append(stage.Clusters, updaterun.Cluster{Name: fmt.Sprint(name, j), Phase: phase})
			stage.Count(phase)
		}
		run.Total += clusters
		run.Stages = append(run.Stages, stage)
	}
	return run
}

func pipelineOf(t *testing.T, run updaterun.State) parts.Part {
	t.Helper()
	drawn := picture.PipelineOf(run, tree.Node{}, "/runs/web", func(string) (path, refusal string) { return "", "" })
	made, err := writePart("pipeline", "pipeline", drawn)
	require.NoError(t, err)
	assert.NotContains(t, made.HTML, parts.Apart)
	return made
}

func TestAPictureChangesWhereTheRunDoes(t *testing.T) {
	const most = 5 << 10
	for sentence, test := range map[string]struct{ stages, clusters, page int }{
		"tiles": {3, 60, 60 << 10}, "blocks": {1, 5000, 30 << 10}, "stages": {31, 160, 60 << 10},
	} {
		t.Run(sentence, func(t *testing.T) {
			run := drawnRun(test.stages, test.clusters, "edge-")
			first := parts.Since("")
			whole := first.Changes(pipelineOf(t, run))
			assert.Less(t, len(whole), test.page)
			assert.Empty(t, first.Changes(pipelineOf(t, run)))
			id := first.ID("")

			cluster := &run.Stages[0].Clusters[3]
			cluster.Phase = updaterun.PhaseFailed
			changed := first.Changes(pipelineOf(t, run))
			assert.Less(t, len(changed), most)
			assert.Equal(t, 1, strings.Count(changed, ` hx-swap-oob="outerMorph"`), changed)
			assert.Contains(t, changed, "failed")

			again := parts.Since(id)
			assert.Greater(t, len(again.Changes(pipelineOf(t, run))), len(changed), "of one that was away it is not known what it has in it")
			cluster.Phase = updaterun.PhaseSucceeded
			assert.Less(t, len(again.Changes(pipelineOf(t, run))), most)

			back := parts.Since(again.ID(""))
			assert.Empty(t, back.Changes(pipelineOf(t, run)), "it has all of it")
			cluster.Phase = updaterun.PhaseFailed
			assert.Less(t, len(back.Changes(pipelineOf(t, run))), most, "and goes on from there")
		})
	}
}

func TestNamesStayTextInPictures(t *testing.T) {
	hostile := strings.Repeat("n", 253) + `"><img src=x onerror="x">` + "\u202e\x00"
	made := pipelineOf(t, drawnRun(2, 3, hostile))
	assert.NotContains(t, made.HTML, "<img")
	assert.NotContains(t, made.HTML, "\u202e")
	assert.Equal(t, 2*3, strings.Count(string(made.HTML), `class="tile s-`))
	run := drawnRun(2, 3, hostile)
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	run.Stages[0].Started = now
	line, err := writePart("timeline", "timeline", picture.TimelineOf(run, now, time.Time{}, plan.Plan{}, &picture.Held{Since: now, Text: hostile}, now.Add(time.Hour)))
	require.NoError(t, err)
	assert.NotContains(t, line.HTML, "<img")
	none, err := writePart("pipeline", "pipeline", picture.PipelineOf(updaterun.State{}, tree.Node{}, "", nil))
	require.NoError(t, err)
	assert.Contains(t, none.HTML, "Not planned yet")
}

func TestAMapOfALargeFleetIsSmall(t *testing.T) {
	const page, most = 200 << 10, 5 << 10
	var members []picture.Member
	var placed []picture.Placed
	for i := range 5000 {
		members = append(members, picture.Member{Member: fleetview.Member{Name: fmt.Sprintf("edge-%04d", i), Healthy: "True", Labels: map[string]string{"region": fmt.Sprint("r", i%20)}}})
	}
	for i := range versionsShown {
		one := picture.Placed{Name: fmt.Sprint("p", i), Latest: 3, Has: map[string]int{}}
		for j := range members {
			one.Has[members[j].Name] = j % 4
		}
		placed = append(placed, one)
	}
	sent := parts.Since("")
	draw := func() string {
		drawn := picture.MapOf(members, "", nil)
		ofMap, err := writePart("map", "map", struct {
			picture.Map
			Query, State, Is string
			One              bool
			States           []string
		}{Map: drawn})
		require.NoError(t, err)
		versions, err := writePart("versions", "versions", struct {
			list[picture.Placed]
			picture.Versions
			By string
		}{list[picture.Placed]{}, picture.VersionsOf(placed, members, drawn.By), drawn.By})
		require.NoError(t, err)
		return sent.Changes(ofMap) + sent.Changes(versions)
	}
	assert.Less(t, len(draw()), page)
	assert.Empty(t, draw())
	placed[3].Has["edge-0007"] = 1
	changed := draw()
	assert.NotEmpty(t, changed)
	assert.Less(t, len(changed), most)
}
