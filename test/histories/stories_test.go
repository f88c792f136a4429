//go:build integration

package histories_test

import (
	"maps"
	"slices"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"github.com/fleetflow/fleetflow/workflows/call"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

const (
	canceled  = enums.WORKFLOW_EXECUTION_STATUS_CANCELED
	completed = enums.WORKFLOW_EXECUTION_STATUS_COMPLETED
	failed    = enums.WORKFLOW_EXECUTION_STATUS_FAILED
)

// stories are all that histories are recorded of. The coverage test says what is missing.
func stories() []story {
	return slices.Concat(placementStories(), batchStories(), runStories(), gateStories(), stageStories())
}

var (
	cluster    = wf.Ref{Kind: wf.KindClusterResourcePlacement}
	namespaced = wf.Ref{Kind: wf.KindResourcePlacement, Namespace: "team"}
	clusterRun = wf.Ref{Kind: wf.KindClusterStagedUpdateRun}
	teamRun    = wf.Ref{Kind: wf.KindStagedUpdateRun, Namespace: "team"}

	found    = wf.PlacementState{Found: true, UID: "uid-1"}
	snapshot = wf.SelectResult{Snapshot: "web-0-snapshot"}
	picked   = wf.ScheduleResult{PolicySnapshot: "web-0", Selected: 2, Created: 2}
	settled  = wf.AdvanceResult{Settled: true}
	next     = wf.AdvanceResult{Epoch: 1, Basis: "1abc", Blocked: 1, Next: []wf.Change{
		{Cluster: "a", Op: wf.OpUpdate, UID: "11111111", FromState: "Bound", FromRevision: "5ca1ab1e"},
		{Cluster: "b", Op: wf.OpUpdate, UID: "22222222", FromState: "Bound", FromRevision: "5ca1ab1e"},
	}}
)

// rollsOut are answers of a placement that rolls out, with some of them replaced.
func rollsOut(other map[string][]any) map[string][]any {
	answers := map[string][]any{
		wf.LoadPlacement: {found}, wf.SelectResources: {snapshot}, wf.ScheduleClusters: {picked}, wf.AdvancePlacement: {next, settled},
		wf.ScaleReplicas: {wf.ScaleResult{Scaled: 1}}, wf.RefuseEvictions: {true},
	}
	maps.Copy(answers, other)
	return answers
}

// played is a placement that is poked once and ends by itself.
func played(name string, ref wf.Ref, other map[string][]any) story {
	return story{name: name, ref: ref, answers: rollsOut(other), drive: func(s *session) {
		s.start(wf.CauseSpec)
		s.completes()
	}}
}

func placementStories() []story {
	return []story{
		played("placement-created", cluster, nil),
		played("placement-divides", cluster, map[string][]any{
			wf.LoadPlacement: {wf.PlacementState{Found: true, UID: "uid-1", Divides: true}}, wf.SelectResources: {wf.SelectResult{Snapshot: "web-0-snapshot", Demand: "3"}},
		}),
		played("placement-external-evicts", cluster, map[string][]any{
			wf.LoadPlacement: {wf.PlacementState{Found: true, UID: "uid-1", External: true, Evictions: true}},
			wf.AdvancePlacement: {wf.AdvanceResult{Epoch: 1, Next: []wf.Change{{Cluster: "a", Op: wf.OpConclude, Eviction: "off", EvictionUID: "e",
				Verdict: &wf.Verdict{Code: "NotPlaced"}}}}, settled},
		}),
		played("placement-gone-refuses-evictions", cluster, map[string][]any{wf.LoadPlacement: {wf.PlacementState{Evictions: true}}}),
		played("placement-invalid", cluster, map[string][]any{wf.SelectResources: {wf.SelectResult{Invalid: true}}}),
		played("placement-successor", cluster, map[string][]any{
			wf.LoadPlacement: {found, wf.PlacementState{Found: true, UID: "uid-2"}}, wf.ScheduleClusters: {wf.ScheduleResult{Gone: true}, picked},
		}),
		played("placement-collects", namespaced, map[string][]any{
			wf.SelectResources: {soon(func(at time.Time) any {
				return wf.SelectResult{Snapshot: "web-0-snapshot", WakeAt: at.Add(time.Second)}
			}), snapshot},
		}),
		played("placement-goes-back", cluster, map[string][]any{
			wf.ScheduleClusters: {soon(func(at time.Time) any { return wf.ScheduleResult{PolicySnapshot: "web-0", WakeAt: at} }), picked},
		}),
		played("placement-held-until", cluster, map[string][]any{
			wf.AdvancePlacement: {soon(func(at time.Time) any {
				return wf.AdvanceResult{Settled: true, Closed: 2, ClosedBy: "window nights", OpensAt: at.Add(time.Second)}
			}), settled},
		}),
		played("placement-tried-again", cluster, map[string][]any{wf.SelectResources: {errOfNow, snapshot}, wf.AdvancePlacement: {errOfNow, next, settled}}),
		{name: "placement-failed", ref: cluster, answers: rollsOut(map[string][]any{wf.LoadPlacement: {errForUser}}), drive: func(s *session) {
			s.start(wf.CauseSpec)
			s.awaitEnd(s.ref.ID(), failed)
			s.save(s.name, s.ref.ID(), "")
		}},
	}
}

func batchStories() []story {
	batches := slices.Repeat([]any{takes{600 * time.Millisecond, next}}, 6)
	return []story{
		{name: "placement-changed-while-it-rolls-out", ref: cluster, answers: rollsOut(map[string][]any{
			wf.LoadPlacement:    {wf.PlacementState{Found: true, UID: "uid-1", Divides: true}},
			wf.AdvancePlacement: {next, hold{wf.AdvanceResult{Changed: true, Reschedule: true}}, settled},
		}), drive: func(s *session) {
			s.start(wf.CauseSpec)
			s.awaitHeld(wf.AdvancePlacement)
			for i, cause := range []string{wf.CauseResources, wf.CauseClusters, wf.CauseOverrides, wf.CauseBindings, wf.CauseEvictions, wf.CauseGates,
				wf.CauseAudit, wf.CauseApproval} {
				s.poke(cause)
				s.awaitCalls(wf.SelectResources, i+2)
			}
			s.poke(wf.CauseAvailability)
			scaled := s.countOf(wf.ScaleReplicas)
			s.poke(wf.CauseReplicas)
			s.awaitCalls(wf.ScaleReplicas, scaled+1)
			s.letGo()
			s.completes()
		}},
		{name: "placement-looked-at-while-it-rolls-out", ref: cluster, answers: rollsOut(map[string][]any{
			wf.AdvancePlacement: {next, hold{next}, settled},
		}), drive: func(s *session) {
			s.start(wf.CauseSpec)
			s.awaitHeld(wf.AdvancePlacement)
			s.poke(wf.CauseGates)
			s.awaitCalls(wf.SelectResources, 2)
			s.letGo()
			s.completes()
		}},
		{name: "placement-cancelled", ref: cluster, answers: rollsOut(map[string][]any{wf.AdvancePlacement: {hold{settled}}}), drive: func(s *session) {
			s.start(wf.CauseSpec)
			s.awaitHeld(wf.AdvancePlacement)
			require.NoError(s, s.CancelWorkflow(s.Context(), s.ref.ID(), ""))
			s.awaitEnd(s.ref.ID(), canceled)
			s.save(s.name, s.ref.ID(), "")
		}},
		{name: "placement-goes-on", long: true, ref: cluster, answers: rollsOut(map[string][]any{wf.AdvancePlacement: append(batches, settled)}), drive: func(s *session) {
			s.start(wf.CauseSpec)
			s.awaitCalls(wf.AdvancePlacement, 7)
			s.awaitEnd(s.ref.ID(), completed)
			s.save("placement-continued", s.ref.ID(), s.firstRun(s.ref.ID()))
			s.save(s.name, s.ref.ID(), "")
		}},
		{name: "placement-continued-within-a-batch", long: true, ref: cluster, answers: rollsOut(map[string][]any{
			wf.AdvancePlacement: {hold{settled}, settled},
		}), drive: func(s *session) {
			s.start(wf.CauseSpec)
			s.awaitHeld(wf.AdvancePlacement)
			<-time.After(call.Youth)
			s.poke(wf.CauseAvailability)
			s.awaitEnd(s.ref.ID(), completed)
			s.save(s.name, s.ref.ID(), s.firstRun(s.ref.ID()))
		}},
	}
}

func (s *session) countOf(name string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[name]
}

// begun is a run that is initialized, at a stage.
func begun(change func(*wf.RunState)) wf.RunState {
	state := wf.RunState{Found: true, UID: "uid-1", Placement: "web", DesiredState: "Run", Initialized: true, SnapshotIndex: "0",
		Stages: []wf.StageState{{Name: "one", Phase: wf.PhasePending, Clusters: 2}}}
	if change != nil {
		change(&state)
	}
	return state
}

func stopped(s *wf.RunState) { s.DesiredState = "Stop" }

// runs are answers of a run with one stage and no tasks, with some of them replaced.
func runs(other map[string][]any) map[string][]any {
	answers := map[string][]any{
		wf.LoadRun: {begun(nil)}, wf.LoadStage: {wf.StagePlan{Clusters: []string{"a", "b"}, MaxConcurrency: 1, NextAt: "0"}},
		wf.AdvanceStage: {wf.StageDelta{Recorded: []string{"a"}, NextAt: "1"}, wf.StageDelta{Recorded: []string{"b"}}},
		wf.CheckGates:   {wf.GateState{Open: true}}, wf.AdvanceDeletion: {wf.DeletionResult{Done: true}}, wf.StopRun: {true}, wf.PauseRun: {true},
		wf.ReportSignal: {true}, wf.RecordApproval: {wf.ApprovalResult{Request: "web-one", By: "ada"}},
	}
	maps.Copy(answers, other)
	return answers
}

func run(name string, ref wf.Ref, other map[string][]any) story {
	return story{name: name, ref: ref, answers: runs(other), drive: func(s *session) {
		s.start(wf.CauseSpec)
		s.completes()
	}}
}

func runStories() []story {
	fresh := wf.RunState{Found: true, UID: "uid-1"}
	return []story{
		{name: "updaterun-plain", ref: clusterRun, answers: runs(map[string][]any{wf.LoadRun: {fresh}, wf.InitializeRun: {wf.InitializeResult{State: begun(nil)}}}),
			drive: func(s *session) {
				s.start(wf.CauseSpec)
				s.completes()
				s.save("stage-plain", s.stageID(), "")
			}},
		run("updaterun-of-a-team", teamRun, nil),
		run("updaterun-refused", clusterRun, map[string][]any{wf.LoadRun: {fresh}, wf.InitializeRun: {wf.InitializeResult{State: wf.RunState{Found: true, Terminal: true}}}}),
		run("updaterun-stopped", clusterRun, map[string][]any{wf.LoadRun: {begun(stopped)}}),
		run("updaterun-over", clusterRun, map[string][]any{wf.LoadRun: {wf.RunState{}}}),
		run("updaterun-clears-at-last", clusterRun, map[string][]any{
			wf.LoadRun: {begun(func(s *wf.RunState) { s.Stages[0].Phase = wf.PhaseSucceeded })}, wf.AdvanceDeletion: {wf.DeletionResult{}, wf.DeletionResult{Done: true}},
		}),
		{name: "updaterun-clearing-held", ref: clusterRun, answers: runs(map[string][]any{
			wf.LoadRun:         {begun(func(s *wf.RunState) { s.Stages[0].Phase = wf.PhaseSucceeded })},
			wf.AdvanceDeletion: {wf.DeletionResult{Held: []wf.TaskWait{{Type: "RolloutHold", Title: "hold incident", Phase: "Held"}}}, wf.DeletionResult{Done: true}},
		}), drive: func(s *session) {
			s.start(wf.CauseSpec)
			s.awaitCalls(wf.AdvanceDeletion, 1)
			s.poke(wf.CauseGates)
			s.completes()
		}},
		{name: "updaterun-continued", long: true, ref: clusterRun, answers: runs(map[string][]any{
			wf.LoadRun:    {begun(func(s *wf.RunState) { s.Stages[0].TasksBefore = []string{"Approval"} })},
			wf.CheckGates: append(slices.Repeat([]any{takes{500 * time.Millisecond, waitsForAda}}, 4), wf.GateState{Ended: true}),
		}), drive: func(s *session) {
			s.start(wf.CauseSpec)
			for i := range 4 {
				s.awaitCalls(wf.CheckGates, i+1)
				s.poke(wf.CauseApproval)
			}
			s.answersOf(wf.LoadRun, wf.RunState{})
			s.poke(wf.CauseSpec)
			s.awaitEnd(s.ref.ID(), completed)
			s.save(s.name, s.ref.ID(), s.firstRun(s.ref.ID()))
			s.save("updaterun-goes-on", s.ref.ID(), "")
		}},
	}
}

// answersOf has an activity answer otherwise from now on.
func (s *session) answersOf(name string, answer any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answers[name] = []any{answer}
}

var (
	waitsForAda = wf.GateState{Waits: []wf.TaskWait{{Type: "Approval", Title: "approval", Subject: "web-one", Phase: "WaitingApproval", Approvable: true}}}
	soaks       = soon(func(at time.Time) any {
		return wf.GateState{Waits: []wf.TaskWait{{Type: "TimedWait", Title: "soak", Phase: "Soaking", Until: at.Add(time.Second), CheckAt: at.Add(time.Second)}}}
	})
)

func (s *session) approveBySignal(stage string) {
	s.Helper()
	require.NoError(s, s.SignalWorkflow(s.Context(), s.ref.ID(), "", wf.ApproveSignal, wf.Approval{Stage: stage}))
}

// approveByUpdate returns what the sender is told.
func (s *session) approveByUpdate(stage string) (answer string, err error) {
	s.Helper()
	handle, err := s.UpdateWorkflow(s.Context(), client.UpdateWorkflowOptions{
		WorkflowID: s.ref.ID(), UpdateName: wf.ApproveUpdate, Args: []any{wf.Approval{Stage: stage, Comment: "lgtm"}}, WaitForStage: client.WorkflowUpdateStageCompleted,
	})
	if err != nil {
		return "", err
	}
	err = handle.Get(s.Context(), &answer)
	return answer, err
}

func gateStories() []story {
	before := begun(func(s *wf.RunState) { s.Stages[0].TasksBefore = []string{"Approval"} })
	measures := wf.GateState{Waits: []wf.TaskWait{{Type: "Analysis", Title: "analysis", Phase: "Analyzing"}}, Measure: &wf.MeasureRequest{Analysis: "web-one", Stage: "one"}}
	return []story{
		{name: "updaterun-approved", ref: clusterRun, answers: runs(map[string][]any{
			wf.LoadRun: {before}, wf.CheckGates: {waitsForAda}, wf.AdvanceStage: {hold{wf.StageDelta{Recorded: []string{"a", "b"}}}},
		}), drive: func(s *session) {
			s.start(wf.CauseSpec)
			s.awaitPhase("WaitingApproval")
			s.approveBySignal("nothing")
			s.awaitCalls(wf.ReportSignal, 1)
			_, err := s.approveByUpdate("nothing")
			require.Error(s, err)
			s.approveBySignal("one")
			s.awaitCalls(wf.RecordApproval, 1)
			s.answersOf(wf.CheckGates, wf.GateState{Open: true})
			s.poke(wf.CauseApproval)
			s.awaitHeld(wf.AdvanceStage)
			s.answersOf(wf.CheckGates, waitsForAda)
			s.letGo()
			s.awaitPhase("WaitingApproval")
			_, err = s.approveByUpdate("one")
			require.NoError(s, err)
			s.answersOf(wf.CheckGates, wf.GateState{Open: true})
			s.poke(wf.CauseApproval)
			s.completes()
		}},
		{name: "updaterun-approval-refused", ref: clusterRun, answers: runs(map[string][]any{
			wf.LoadRun: {before}, wf.CheckGates: {waitsForAda, wf.GateState{Open: true}}, wf.RecordApproval: {wf.ApprovalResult{Refused: "not by its creator"}},
		}), drive: func(s *session) {
			s.start(wf.CauseSpec)
			s.awaitPhase("WaitingApproval")
			_, err := s.approveByUpdate("one")
			require.ErrorContains(s, err, "creator")
			s.poke(wf.CauseApproval)
			s.completes()
		}},
		run("updaterun-soaked", clusterRun, map[string][]any{wf.CheckGates: {soaks, wf.GateState{Open: true}}}),
		run("updaterun-measured", clusterRun, map[string][]any{
			wf.CheckGates: {measures, wf.GateState{Open: true}}, wf.MeasureAnalysis: {wf.MeasureResult{Again: true}, wf.MeasureResult{Phase: "Successful"}},
		}),
		{name: "updaterun-cancelled", ref: clusterRun, answers: runs(map[string][]any{
			wf.LoadRun: {before, begun(stopped)}, wf.CheckGates: {measures}, wf.MeasureAnalysis: {hold{wf.MeasureResult{}}},
		}), drive: func(s *session) {
			s.start(wf.CauseSpec)
			s.awaitHeld(wf.MeasureAnalysis)
			require.NoError(s, s.CancelWorkflow(s.Context(), s.ref.ID(), ""))
			s.awaitEnd(s.ref.ID(), canceled)
			s.save(s.name, s.ref.ID(), "")
		}},
	}
}

// awaitPhase waits until the run says that it waits for something.
func (s *session) awaitPhase(phase string) {
	s.Helper()
	require.Eventually(s, func() bool {
		value, err := s.QueryWorkflow(s.Context(), s.ref.ID(), "", wf.StatusQuery)
		var status struct {
			Phase    string `json:"phase"`
			WaitsFor string `json:"waitsFor"`
		}
		return err == nil && value.Get(&status) == nil && status.Phase == phase && status.WaitsFor != ""
	}, patience, 50*time.Millisecond, "phase %s", phase)
}

func stageStories() []story {
	heldByIncident := wf.StageDelta{NotStarted: []string{"a"}, Held: []wf.TaskWait{{Type: "RolloutHold", Title: "hold incident", Phase: "Held"}}}
	measures := wf.GateState{Measure: &wf.MeasureRequest{Analysis: "web-one", Stage: "one"}}
	return []story{
		{name: "updaterun-held", ref: clusterRun, answers: runs(map[string][]any{
			wf.AdvanceStage: {heldByIncident, wf.StageDelta{Recorded: []string{"a"}, NextAt: "1"}, wf.StageDelta{Recorded: []string{"b"}}},
		}), drive: func(s *session) {
			s.start(wf.CauseSpec)
			s.awaitPhase("Held")
			s.poke(wf.CauseGates)
			s.completes()
		}},
		{name: "updaterun-watched", ref: clusterRun, answers: runs(map[string][]any{
			wf.LoadStage:       {wf.StagePlan{Clusters: []string{"a", "b"}, MaxConcurrency: 1, NextAt: "0", Watched: true}},
			wf.CheckGates:      {measures, wf.GateState{Open: true}},
			wf.MeasureAnalysis: {wf.MeasureResult{Phase: "Successful"}},
			wf.AdvanceStage:    {wf.StageDelta{Recorded: []string{"a"}, NextAt: "1"}, hold{wf.StageDelta{Recorded: []string{"b"}}}},
		}), drive: func(s *session) {
			s.start(wf.CauseSpec)
			s.awaitHeld(wf.AdvanceStage)
			s.awaitCalls(wf.CheckGates, 2)
			s.letGo()
			s.completes()
			s.save("stage-watched", s.stageID(), "")
		}},
		{name: "updaterun-stage-ends", ref: clusterRun, answers: runs(map[string][]any{
			wf.LoadRun: {begun(nil), wf.RunState{}}, wf.AdvanceStage: {errOfNow, wf.StageDelta{Ended: true}},
		}), drive: func(s *session) {
			s.start(wf.CauseSpec)
			s.completes()
			s.save("stage-ended", s.stageID(), "")
		}},
		{name: "updaterun-stops-in-a-stage", ref: clusterRun, answers: runs(map[string][]any{
			wf.LoadRun: {begun(nil), begun(stopped)}, wf.AdvanceStage: {wf.StageDelta{Stopping: true, NotStarted: []string{"a"}}},
		}), drive: func(s *session) {
			s.start(wf.CauseSpec)
			s.completes()
			s.save("stage-stopped", s.stageID(), "")
		}},
		{name: "updaterun-stage-cancelled", ref: clusterRun, answers: runs(map[string][]any{
			wf.LoadRun: {begun(nil), begun(stopped)}, wf.AdvanceStage: {hold{wf.StageDelta{}}},
		}), drive: func(s *session) {
			s.start(wf.CauseSpec)
			s.awaitHeld(wf.AdvanceStage)
			require.NoError(s, s.CancelWorkflow(s.Context(), s.stageID(), ""))
			s.completes()
			s.save("stage-cancelled", s.stageID(), "")
		}},
		{name: "updaterun-stage-terminated", ref: clusterRun, answers: runs(map[string][]any{
			wf.AdvanceStage: {hold{wf.StageDelta{}}, wf.StageDelta{Recorded: []string{"a", "b"}}},
		}), drive: func(s *session) {
			s.start(wf.CauseSpec)
			s.awaitHeld(wf.AdvanceStage)
			require.NoError(s, s.TerminateWorkflow(s.Context(), s.stageID(), "", "by a test"))
			s.completes()
		}},
		{name: "updaterun-stage-open", ref: clusterRun, answers: runs(map[string][]any{
			wf.AdvanceStage: {hold{wf.StageDelta{Ended: true}}, wf.StageDelta{Recorded: []string{"a", "b"}}},
		}), drive: func(s *session) {
			_, err := s.ExecuteWorkflow(s.Context(), client.StartWorkflowOptions{ID: s.stageID(), TaskQueue: wf.TaskQueue}, wf.StageWorkflow,
				wf.StageRequest{Run: s.ref, Stage: "one"})
			require.NoError(s, err)
			s.awaitHeld(wf.AdvanceStage)
			s.start(wf.CauseAudit)
			s.awaitCalls(wf.LoadRun, 2)
			s.letGo()
			s.completes()
		}},
		{name: "updaterun-stage-failed", ref: clusterRun, answers: runs(map[string][]any{wf.AdvanceStage: {errForUser}}), drive: func(s *session) {
			s.start(wf.CauseSpec)
			s.awaitEnd(s.ref.ID(), failed)
			s.save(s.name, s.ref.ID(), "")
			s.save("stage-failed", s.stageID(), "")
		}},
		{name: "updaterun-stage-goes-on", long: true, ref: clusterRun, answers: runs(map[string][]any{
			wf.LoadRun:   {begun(nil), begun(func(s *wf.RunState) { s.Stages[0].Phase = wf.PhaseSucceeded })},
			wf.LoadStage: {wf.StagePlan{Clusters: []string{"a", "b", "c", "d", "e", "f"}, MaxConcurrency: 1, NextAt: "0"}},
			wf.AdvanceStage: {takes{600 * time.Millisecond, wf.StageDelta{Recorded: []string{"a"}, NextAt: "1"}}, takes{600 * time.Millisecond, wf.StageDelta{Recorded: []string{"b"}, NextAt: "2"}},
				takes{600 * time.Millisecond, wf.StageDelta{Recorded: []string{"c"}, NextAt: "3"}}, wf.StageDelta{Recorded: []string{"a", "b", "c", "d", "e", "f"}}},
		}), drive: func(s *session) {
			s.start(wf.CauseSpec)
			s.completes()
			s.save("stage-continued", s.stageID(), s.firstRun(s.stageID()))
			s.save("stage-goes-on", s.stageID(), "")
		}},
		{name: "updaterun-continued-in-a-stage", long: true, ref: clusterRun, answers: runs(map[string][]any{
			wf.AdvanceStage: {hold{wf.StageDelta{}}, wf.StageDelta{Recorded: []string{"a", "b"}}},
		}), drive: func(s *session) {
			s.start(wf.CauseSpec)
			s.awaitHeld(wf.AdvanceStage)
			<-time.After(call.Youth)
			for i := range 2 {
				s.approveBySignal("nothing")
				s.awaitCalls(wf.ReportSignal, i+1)
			}
			s.awaitEnd(s.ref.ID(), completed)
			s.save(s.name, s.ref.ID(), s.firstRun(s.ref.ID()))
		}},
	}
}
