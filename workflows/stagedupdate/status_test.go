package stagedupdate_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	sdkpb "go.temporal.io/api/sdk/v1"

	wf "github.com/fleetflow/fleetflow/workflows/contract"
	"github.com/fleetflow/fleetflow/workflows/stagedupdate"
)

func TestTheStatusQueryAndTheDetailsSayWhereARunStands(t *testing.T) {
	h := newHub(t, &stage{name: "staging", clusters: clusters("member2")},
		&stage{name: "canary", clusters: clusters("member3", "member1"), wait: time.Minute, after: &approvalTask{}})
	var status stagedupdate.Status
	var details string
	signals := map[string]string{}
	h.at(10*time.Second, func() {
		value, err := h.env.QueryWorkflow(wf.StatusQuery)
		require.NoError(t, err)
		require.NoError(t, value.Get(&status))
		value, err = h.env.QueryWorkflow("__temporal_workflow_metadata")
		require.NoError(t, err)
		var metadata sdkpb.WorkflowMetadata
		require.NoError(t, value.Get(&metadata))
		details = metadata.GetCurrentDetails()
		for _, signal := range metadata.GetDefinition().GetSignalDefinitions() {
			signals[signal.GetName()] = signal.GetDescription()
		}
	})
	h.at(2*time.Minute, func() { h.env.SignalWorkflow(wf.ApproveSignal, wf.Approval{Stage: "canary"}) })
	h.run()
	require.NoError(t, h.env.GetWorkflowError())
	assert.Equal(t, map[string]string{
		"poke":    "Look at the object again: for the hub agent, and harmless by hand",
		"approve": `Approve the stage that the run waits for: {"stage":"canary","comment":"lgtm"}`,
	}, signals)
	assert.Equal(t, "WaitingApproval", status.Phase)
	assert.Equal(t, "canary", status.Stage)
	assert.Equal(t, "crp", status.Placement)
	assert.Equal(t, "1", status.Snapshot)
	assert.Equal(t, "approval of example-run-canary and soak until 2026-01-02 03:05:05Z", status.WaitsFor)
	assert.Equal(t, "**example-run** → snapshot 1 of crp: **WaitingApproval**\n\n"+
		"Waits for approval of example-run-canary and soak until 2026-01-02 03:05:05Z.\n\n"+
		"Approve with signal or update `approve` and input `{\"stage\":\"canary\"}`.\n\n"+
		"| stage | clusters | done | phase |\n|---|---|---|---|\n"+
		"| staging | 1 | 1 | Succeeded |\n| canary | 2 | 2 | Waiting |\n", details)
}

func TestWhileAStageUpdatesTheDetailsSayWhereToLook(t *testing.T) {
	h := newHub(t, &stage{name: "staging", clusters: clusters("member2")}, &stage{name: "canary", clusters: clusters("member3", "member1")})
	h.slow(time.Second)
	var details string
	var status stagedupdate.Status
	h.at(1500*time.Millisecond, func() {
		value, err := h.env.QueryWorkflow("__temporal_workflow_metadata")
		require.NoError(t, err)
		var metadata sdkpb.WorkflowMetadata
		require.NoError(t, value.Get(&metadata))
		details = metadata.GetCurrentDetails()
		value, err = h.env.QueryWorkflow(wf.StatusQuery)
		require.NoError(t, err)
		require.NoError(t, value.Get(&status))
	})
	h.run()
	require.NoError(t, h.env.GetWorkflowError())
	assert.Contains(t, details, "| staging | 1 | 1 | Succeeded |\n| canary | 2 | live in `default-test-workflow-id/stage/canary` | Updating |\n")
	assert.Equal(t, wf.PhaseUpdating, status.Stages[1].Phase)
}

func TestSearchAttributesFollowThePhase(t *testing.T) {
	h := howTo(t)
	h.at(2*time.Minute, func() { h.env.SignalWorkflow(wf.ApproveSignal, wf.Approval{Stage: "canary"}) })
	h.run()
	require.NoError(t, h.env.GetWorkflowError())
	assert.Equal(t, []string{
		"Initializing", "Updating staging", "Soaking staging", "Updating canary", "WaitingApproval canary", "Deleting", "Succeeded",
	}, h.phases)
}

func TestARunThatIsGoneIsStillFoundByItsPlacement(t *testing.T) {
	h := newHub(t, canary())
	h.at(10*time.Second, func() {
		h.change(func() { h.missing = true })
		h.poke(wf.CauseSpec)
	})
	h.run()
	require.NoError(t, h.env.GetWorkflowError())
	assert.Equal(t, "Abandoned", h.phases[len(h.phases)-1])
	assert.Equal(t, "crp", h.listedAs)
}
