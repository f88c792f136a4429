//go:build integration

package integration

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protojson"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// updateHistories asks to record the histories that the replay test replays anew.
const updateHistories = "UPDATE_HISTORIES"

// stories are what histories are recorded of.
var stories = []promise{
	{"a placement that rolls out, and a change of it", recordRollingPlacement},
	{"a placement under External", recordExternalPlacement},
	{"a run without gates", recordPlainRun},
	{"a run with both gates", recordGatedRun},
	{"a run with a gate before a stage and a cluster to clear", recordClearingRun},
	{"a run that is stopped, cancelled and resumed", recordStoppedRun},
	{"a run that is cancelled with a cluster in flight", recordCancelledInFlight},
	{"a run that goes on without clusters, and is rolled back", recordRolledBackRun},
	{"a run whose stage is cancelled", recordCancelledStage},
	{"a run that cannot begin", recordRefusedRun},
	{"a run whose placement is deleted while a cluster is in flight", recordAbandonedRun},
	{"a run that is rebuilt after the loss of Temporal's database", recordRebuiltRun},
	{"a placement that is rebuilt after the loss of Temporal's database", recordRebuiltPlacement},
}

// TestRecordHistories writes histories into test/histories:
//
//	UPDATE_HISTORIES=1 go test -tags integration -run TestRecordHistories ./test/integration
func TestRecordHistories(t *testing.T) {
	if os.Getenv(updateHistories) == "" {
		t.Skipf("set %s=1 to record the histories anew", updateHistories)
	}
	for _, story := range stories {
		t.Run(story.sentence, func(t *testing.T) { story.keep(newSpec(t)) })
	}
}

// save writes the history of the newest execution of a workflow once it has ended.
func (s *spec) save(file, id string) {
	s.Helper()
	s.awaitClosed(id)
	s.write(file, id)
}

// write writes the history of the newest execution of a workflow as it is now.
func (s *spec) write(file, id string) {
	s.Helper()
	content, err := protojson.Marshal(s.history(id))
	require.NoError(s, err)
	// protojson varies its white space on purpose; a recorded file shall change only with what is recorded.
	var indented bytes.Buffer
	require.NoError(s, json.Indent(&indented, content, "", "  "))
	indented.WriteByte('\n')
	dir := filepath.Join(root, "test", "histories")
	require.NoError(s, os.MkdirAll(dir, 0o755))
	require.NoError(s, os.WriteFile(filepath.Join(dir, file+".json"), indented.Bytes(), 0o644))
}

func (s *spec) placementWorkflow() string { return wf.PlacementID("", s.name) }

func stageWorkflow(run *placementv1beta1.ClusterStagedUpdateRun, stage string) string {
	return wf.StageID(workflowOf(run), stage)
}

func recordRollingPlacement(s *spec) {
	s.namespaceWithConfigMap()
	s.place()
	s.awaitAvailable("0")
	s.save("placement-created", s.placementWorkflow())
	s.changeTo(value2)
	s.awaitAvailable("1")
	s.save("placement-changed", s.placementWorkflow())
	update(s, s.hub, s.placement(), func(p *placementv1beta1.ClusterResourcePlacement) {
		p.Spec.Policy.Affinity = s.placement(pickN(1, "canary")).Spec.Policy.Affinity
	})
	s.awaitCleared("member-2")
	s.save("placement-shrunk", s.placementWorkflow())
}

func recordExternalPlacement(s *spec) {
	s.externalPlacement()
	s.save("placement-external", s.placementWorkflow())
}

func recordPlainRun(s *spec) {
	s.externalPlacement()
	s.strategy(staging(), canary())
	run := s.awaitSucceeded(s.startRun("run", ""))
	s.save("updaterun-plain", workflowOf(run))
	s.save("stage-one-cluster", stageWorkflow(run, "staging"))
	s.save("stage-two-clusters", stageWorkflow(run, "canary"))
}

func recordGatedRun(s *spec) {
	s.externalPlacement()
	s.strategy(staging(soak(soakTime), approval), canary(approval))
	run := s.startRun("run", "0")
	s.awaitRequest(run, "staging")
	signalChannel.approve(s, run, "canary")
	signalChannel.approve(s, run, "staging")
	s.awaitRequest(run, "canary")
	updateChannel.approve(s, run, "canary")
	s.awaitSucceeded(run)
	s.save("updaterun-gates", workflowOf(run))
}

func recordClearingRun(s *spec) {
	s.externalPlacement(pickFixed(allMembers...))
	stage := everywhere()
	stage.BeforeStageTasks = []placementv1beta1.StageTask{approval}
	s.strategy(stage)
	first := s.startRun("first", "0")
	s.awaitWaiting(first, "everywhere", "before-everywhere")
	signalChannel.approve(s, first, "everywhere")
	s.awaitSucceeded(first)
	s.save("updaterun-before-gate", workflowOf(first))

	s.shrinkTo("member-1", "member-2")
	second := s.startRun("second", "0")
	s.awaitWaiting(second, "everywhere", "before-everywhere")
	updateChannel.approve(s, second, "everywhere")
	s.awaitSucceeded(second)
	s.save("updaterun-clearing", workflowOf(second))
}

func recordStoppedRun(s *spec) {
	s.externalPlacement()
	s.strategy(staging(approval), canary())
	run := s.startRun("run", "0")
	s.awaitWaiting(run, "staging", "staging")
	s.setState(run, placementv1beta1.StateStop)
	s.awaitStopped(run)
	s.save("updaterun-stopped", workflowOf(run))

	s.setState(run, placementv1beta1.StateRun)
	s.awaitWaiting(run, "staging", "staging")
	require.NoError(s, s.Temporal.CancelWorkflow(s.Context(), workflowOf(run), ""))
	s.awaitStopped(run)
	for _, e := range s.ownExecutions() {
		s.awaitEndOf(e)
	}
	s.write("updaterun-cancelled", workflowOf(run))
	s.setState(run, placementv1beta1.StateRun)
	s.awaitWaiting(run, "staging", "staging")
	updateChannel.approve(s, run, "staging")
	s.awaitSucceeded(run)
	s.save("updaterun-resumed", workflowOf(run))
}

func recordCancelledInFlight(s *spec) {
	s.externalPlacement()
	s.strategy(everywhere())
	s.stop("member-2/agent")
	run := s.startRun("run", "0")
	s.awaitStarted(run, "member-2")
	require.NoError(s, s.Temporal.CancelWorkflow(s.Context(), workflowOf(run), ""))
	s.awaitStopping(run)
	s.start("member-2/agent")
	s.awaitStopped(run)
	for _, e := range s.ownExecutions() {
		s.awaitEndOf(e)
	}
	s.write("updaterun-cancelled-in-flight", workflowOf(run))
	s.write("stage-stopped", stageWorkflow(run, "everywhere"))
}

// recordRolledBackRun records a stage that goes on without one cluster, is over its budget with the next, and is paused, and
// then a rollback of the run while it stands still.
func recordRolledBackRun(s *spec) {
	stage := budget(everywhere(), 1, placementv1beta1.FailureBudgetPause)
	s.obstructed("member-1", stage)
	require.NoError(s, s.member("member-2").Create(s.Context(), s.latecomer()))
	run := s.startRun("run", "")
	s.awaitStopped(run)
	s.save("updaterun-paused", workflowOf(run))
	s.save("stage-over-budget", stageWorkflow(run, "everywhere"))

	update(s, s.hub, run.DeepCopy(), func(r *placementv1beta1.ClusterStagedUpdateRun) {
		r.Spec.State = placementv1beta1.StateRun
		r.Spec.ClusterActions = []placementv1beta1.ClusterAction{
			{Cluster: "member-2", Action: placementv1beta1.ClusterActionRetry}, {Cluster: "member-3", Action: placementv1beta1.ClusterActionSkip},
		}
	})
	s.awaitStopped(run)
	s.save("stage-retried", stageWorkflow(run, "everywhere"))
	back := s.run("back", "")
	back.Spec.RollbackOf = run.Name
	s.create(back)
	s.awaitSucceeded(back)
	s.save("updaterun-rolled-back", workflowOf(run))
	s.save("updaterun-rollback", workflowOf(back))
}

func recordCancelledStage(s *spec) {
	s.externalPlacement()
	s.strategy(everywhere())
	s.stop("member-2/agent")
	run := s.startRun("run", "0")
	s.awaitStarted(run, "member-2")
	require.NoError(s, s.Temporal.CancelWorkflow(s.Context(), stageWorkflow(run, "everywhere"), ""))
	s.awaitStopping(run)
	s.start("member-2/agent")
	s.awaitStopped(run)
	s.save("updaterun-stage-cancelled", workflowOf(run))
}

func recordRefusedRun(s *spec) {
	s.externalPlacement()
	run := s.startRun("run", "0")
	s.awaitEnd(run)
	s.save("updaterun-refused", workflowOf(run))
}

func recordAbandonedRun(s *spec) {
	placement := s.externalPlacement()
	s.strategy(everywhere())
	s.stop("member-2/agent")
	run := s.startRun("run", "0")
	s.awaitStarted(run, "member-2")
	s.delete(s.hub, placement)
	s.awaitEnd(run)
	s.save("updaterun-abandoned", workflowOf(run))
	s.save("stage-abandoned", stageWorkflow(run, "everywhere"))
	s.start("member-2/agent")
	awaitGone(s, s.hub, placement)
}

func recordRebuiltRun(s *spec) {
	s.externalPlacement()
	s.strategy(staging(soak(soakTime)), everywhereElse(approval))
	s.stop("member-1/agent")
	run := s.startRun("run", "0")
	s.awaitStarted(run, "member-1")
	wipeTemporal(s)
	s.start("member-1/agent")
	s.awaitRequest(run, "others")
	signalChannel.approve(s, run, "others")
	s.awaitSucceeded(run)
	s.save("updaterun-rebuilt", workflowOf(run))
	s.save("stage-rebuilt", stageWorkflow(run, "others"))
}

// everywhereElse is the stage of the clusters that are not staging.
func everywhereElse(tasks ...placementv1beta1.StageTask) placementv1beta1.StageConfig {
	return placementv1beta1.StageConfig{Name: "others", LabelSelector: in("canary"), AfterStageTasks: tasks}
}

func recordRebuiltPlacement(s *spec) {
	s.namespaceWithConfigMap()
	s.place()
	s.awaitAvailable("0")
	s.stop("member-1/agent")
	s.changeTo(value2)
	s.awaitIndex("1")
	wipeTemporal(s)
	s.start("member-1/agent")
	s.awaitAvailable("1")
	s.save("placement-rebuilt", s.placementWorkflow())
}
