package picture

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fleetflow/fleetflow/apis/placement/stagetask"
	"github.com/fleetflow/fleetflow/apis/placement/updaterun"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/plan"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/status"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/tree"
)

var noon = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

// stageOf is a stage with some clusters, the first of which are in the phases that are given.
func stageOf(name string, clusters int, atOnce string, phases ...updaterun.Phase) updaterun.Stage {
	stage := updaterun.Stage{Name: name, Phase: updaterun.PhasePending, MaxConcurrency: atOnce}
	for i := range clusters {
		phase := updaterun.PhasePending
		if i < len(phases) {
			phase = phases[i]
		}
		stage.Clusters = append(stage.Clusters, updaterun.Cluster{Name: fmt.Sprintf("%s-%d", name, i), Phase: phase})
		stage.Count(phase)
	}
	return stage
}

func runOf(stages ...updaterun.Stage) updaterun.State {
	run := updaterun.State{Phase: updaterun.PhaseRunning, Stages: stages}
	for _, stage := range stages {
		run.Total += stage.Total
	}
	return run
}

func nobody(string) (path, refusal string) { return "", "" }

func TestFewClustersHaveATileEachInWaves(t *testing.T) {
	p := PipelineOf(runOf(stageOf("a", 5, "2", updaterun.PhaseSucceeded, updaterun.PhaseFailed), stageOf("b", 3, ""), stageOf("none", 0, "")), tree.Node{}, "/runs/web", nobody)
	require.Len(t, p.Stages, 3)
	assert.Equal(t, 2, p.Stages[0].AtOnce)
	require.Len(t, p.Stages[0].Waves, 3)
	assert.Equal(t, Tile{ID: "stage0t1", Name: "a-1", Phase: updaterun.PhaseFailed}, p.Stages[0].Waves[0][1])
	assert.Equal(t, "stage0t4", p.Stages[0].Waves[2][0].ID)
	assert.Len(t, p.Stages[1].Waves, 1, "one after the other is no wave")
	assert.Empty(t, p.Stages[2].Waves)
	assert.Contains(t, PipelineOf(updaterun.State{}, tree.Node{}, "", nobody).None, "Not planned yet")
}

func TestManyClustersAreBlocksWithCounts(t *testing.T) {
	var phases []updaterun.Phase
	for i := range 170 {
		phases = append(phases, map[bool]updaterun.Phase{true: updaterun.PhaseSucceeded, false: updaterun.PhaseRunning}[i < 150])
	}
	phases[10] = updaterun.PhaseFailed
	p := PipelineOf(runOf(stageOf("few", 3, ""), stageOf("all & more", 4990, "10%", phases...)), tree.Node{}, "/runs/web", nobody)
	assert.NotEmpty(t, p.Stages[0].Waves, "a stage of few shows them all the same")
	blocks := p.Stages[1].Blocks
	require.Len(t, blocks, 50)
	assert.Equal(t, 499, p.Stages[1].AtOnce)
	assert.Equal(t, updaterun.PhaseFailed, blocks[0].Phase, "what failed stands out")
	assert.Equal(t, []Share{{updaterun.PhaseSucceeded, 0, 99}, {updaterun.PhaseFailed, 99, 1}}, blocks[0].Shares)
	assert.Equal(t, updaterun.PhaseRunning, blocks[1].Phase)
	assert.Equal(t, []Share{{updaterun.PhaseSucceeded, 0, 50}, {updaterun.PhaseRunning, 50, 20}}, blocks[1].Shares, "the rest is to come")
	assert.Equal(t, 4990, blocks[49].Last)
	assert.Equal(t, "/runs/web/clusters?page=25&stage=all+%26+more", blocks[49].Path)
}

func TestAGateSaysHowItEndsAndWhoMayEndIt(t *testing.T) {
	stage := stageOf("canary", 1, "")
	stage.After = []stagetask.State{
		{Title: "wait", Timed: true, Duration: time.Hour, WaitsSince: noon, Due: noon.Add(time.Hour)},
		{Title: "approval", Subject: "web-canary", Approvable: true, WaitsSince: noon},
	}
	stage.Before = []stagetask.State{{Title: "analysis", DoneAt: noon}}
	root := tree.Node{Children: []tree.Node{{Kind: status.KindHold}, {Kind: status.KindStage, State: updaterun.PhaseWaiting, Children: []tree.Node{
		{Kind: status.KindGate, Name: "analysis before", State: updaterun.PhaseSucceeded}, {Kind: status.KindCluster},
		{Kind: status.KindGate, Name: "wait 1h", State: updaterun.PhaseWaiting, Due: noon.Add(time.Hour)},
		{Kind: status.KindGate, Name: "approval after", State: updaterun.PhaseWaiting, Detail: "kubectl fleet approve web --stage canary"},
	}}}}
	p := PipelineOf(runOf(stage), root, "", func(stage string) (path, refusal string) { return "/approve/" + stage, "" })
	drawn := p.Stages[0]
	assert.Equal(t, updaterun.PhaseWaiting, drawn.Phase, "as the tree has it")
	require.Len(t, drawn.Before, 1)
	assert.False(t, drawn.Before[0].Waits)
	require.Len(t, drawn.After, 2)
	assert.Equal(t, "ends by itself", drawn.After[0].Ends)
	approval := drawn.After[1]
	assert.Contains(t, approval.Ends, "who may update the status of approval requests")
	assert.Equal(t, []string{"kubectl fleet approve web --stage canary", "web-canary", "/approve/canary", "Approve canary"},
		[]string{approval.Command, approval.Detail, approval.Path, approval.Label})
}

func TestALineOfTimeShowsWhatWasAndWhatIsToComeAtTheEarliest(t *testing.T) {
	canary := stageOf("canary", 1, "", updaterun.PhaseSucceeded)
	canary.Phase = updaterun.PhaseWaiting
	canary.Started = noon
	canary.Clusters[0].Ended = noon.Add(2 * time.Minute)
	canary.After = []stagetask.State{{Title: "wait", Timed: true, Duration: 30 * time.Minute, WaitsSince: noon.Add(2 * time.Minute), Due: noon.Add(32 * time.Minute)}}
	run := runOf(canary, stageOf("production", 2, ""))
	run.Stages[0].During = []stagetask.State{{Title: "analysis", Begun: noon}}
	ends := noon.Add(92 * time.Minute)
	ahead := plan.Plan{Stages: []plan.Stage{
		{Name: "canary", Earliest: plan.Earliest{Begins: noon.Add(10 * time.Minute), Opened: noon.Add(10 * time.Minute), Ends: noon.Add(32 * time.Minute)}},
		{Name: "production", Earliest: plan.Earliest{Begins: noon.Add(32 * time.Minute), Opened: noon.Add(32 * time.Minute), Ends: ends}},
	}}
	drawn := TimelineOf(run, noon, time.Time{}, ahead, &Held{noon.Add(8 * time.Minute), "hold storm"}, noon.Add(10*time.Minute))
	assert.Equal(t, noon, drawn.Start)
	assert.Equal(t, noon.Add(2*time.Hour), drawn.End, "whole steps")
	assert.Equal(t, ends, drawn.Ends)
	assert.Equal(t, 80, drawn.Now)
	require.Len(t, drawn.Rows, 3)
	assert.Equal(t, []Bar{
		{"clusters", false, 0, 16, "1 of 1 clusters, from Nov 23 12:00:00 UTC to Nov 23 12:02:00 UTC"},
		{"gate", false, 0, 80, "analysis, since Nov 23 12:00:00 UTC"},
		{"soak", false, 16, 250, "wait 30m, from Nov 23 12:02:00 UTC to Nov 23 12:32:00 UTC"},
	}, drawn.Rows[0].Bars)
	assert.Equal(t, []Bar{{"soak", true, 266, 500, "soak at the earliest, from Nov 23 12:32:00 UTC to Nov 23 13:32:00 UTC at the earliest"}}, drawn.Rows[1].Bars)
	assert.Contains(t, drawn.Rows[2].Text, "hold storm")

	later := TimelineOf(run, noon, time.Time{}, ahead, nil, noon.Add(10*time.Minute+5*time.Second))
	assert.Equal(t, drawn.Rows[:2], later.Rows, "what has not changed is drawn the same")
	again := TimelineOf(run, noon, noon.Add(time.Hour), plan.Plan{}, nil, noon.Add(10*time.Minute))
	assert.Equal(t, "it has no plan that can be seen", again.Unsure)
}

func TestALineOfTimeSaysWhyAnEndIsNotKnown(t *testing.T) {
	run := runOf(stageOf("all", 1, ""), stageOf("rest", 1, ""))
	ahead := plan.Plan{Stages: []plan.Stage{{Name: "all", Openings: []plan.Opening{{Wave: 1, For: "hold storm (r)"}}}, {Name: "rest"}}}
	assert.Equal(t, "time alone does not open stage all: hold storm (r)", TimelineOf(run, noon, time.Time{}, ahead, nil, noon).Unsure)
	ahead = plan.Plan{Stages: []plan.Stage{{Name: "all"}, {Name: "rest"}}, Notes: []string{"you may not list holds and windows"}}
	assert.Equal(t, "you may not list holds and windows", TimelineOf(run, noon, time.Time{}, ahead, nil, noon).Unsure)
	over := runOf(stageOf("all", 1, ""))
	over.Phase = updaterun.PhaseSucceeded
	drawn := TimelineOf(over, noon, noon.Add(time.Hour), plan.Plan{}, nil, noon.Add(48*time.Hour))
	assert.Equal(t, -1, drawn.Now)
	assert.Equal(t, noon.Add(time.Hour), drawn.Ends)
	assert.Less(t, drawn.End.Sub(noon), 3*time.Hour, "it ends where the run has")
}

func TestAnAxisTakesInAnyTimeInFewSteps(t *testing.T) {
	for _, length := range []time.Duration{0, time.Second, time.Minute, 50 * time.Minute, 26 * time.Hour, 90 * 24 * time.Hour, 10000 * time.Hour} {
		axis := Timeline{}
		axis.setAxis(noon.Add(7*time.Second), noon.Add(7*time.Second+length))
		assert.LessOrEqual(t, len(axis.Marks), maxTicks+1, length)
		assert.False(t, axis.End.Before(noon.Add(7*time.Second+length)), length)
	}
	run := runOf()
	for i := range 31 {
		run.Stages = append(run.Stages, stageOf(strings.Repeat("n", 253)+fmt.Sprint(i), 0, ""))
	}
	assert.Len(t, TimelineOf(run, noon, time.Time{}, plan.Plan{}, nil, noon).Rows, 31)
}
