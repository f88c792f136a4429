//go:build integration

package integration

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/test/devfleet/control"
)

// matrixEnv asks for every cell of the crash matrix: it takes a quarter of an hour. Without it, some cells are specs of
// their own, and every call of a run is made to fail on Temporal's test environment (workflows/stagedupdate).
const matrixEnv = "CRASH_MATRIX"

// crash is what is done to the fleet in the middle of a run.
type crash struct {
	name string
	// prepare changes the fleet for the spec and returns what is done at the moment.
	prepare func(s *spec) disturbance
}

// as is a crash that needs no preparation.
func as(name string, do disturbance) crash {
	return crash{name, func(*spec) disturbance { return do }}
}

var crashes = []crash{
	as("the hub agent", killHubAgent),
	{"the workers", splitRoles},
	as("Temporal", restartTemporal),
	as("Temporal's database", wipeTemporal),
	as("the hub's API server", killAPIServer),
	as("a member's agent", killMemberAgent),
}

func killAPIServer(s *spec) {
	s.blinded = true
	s.controlled(func(ctx context.Context) error { return s.Control.Do(ctx, control.Kill, "hub/apiserver") })
	s.controlled(func(ctx context.Context) error { return s.Control.WaitReady(ctx, "hub/apiserver") })
	s.controlled(func(ctx context.Context) error { return s.Control.WaitReady(ctx, hubAgent) })
}

func killMemberAgent(s *spec) {
	s.controlled(func(ctx context.Context) error { return s.Control.Do(ctx, control.Kill, "member-1/agent") })
	s.controlled(func(ctx context.Context) error { return s.Control.WaitReady(ctx, "member-1/agent") })
}

// splitRoles has controllers and workers run in processes of their own, of which only the workers are killed.
func splitRoles(s *spec) disturbance {
	s.stop(hubAgent)
	s.role("controllers")
	worker := s.workers("worker-1")
	return func(s *spec) {
		require.NoError(s, worker.Process.Kill())
		s.workers("worker-2")
	}
}

// workers starts a hub agent that runs workers only.
func (s *spec) workers(name string) *exec.Cmd {
	s.Helper()
	return s.agent(name, s.Fleet.Binary(hubAgent), nil,
		"--role=worker", "--kubeconfig="+s.Fleet.HubAgentKubeconfig(), "--temporal-address="+s.Fleet.Address("temporal"), "--temporal-approvals=any",
		"--metrics-bind-address=0", "--health-probe-bind-address="+s.freeAddress())
}

// story is a kind of run, disturbed at one moment.
type story struct {
	name string
	tell func(d disturbance) func(*spec)
}

var crashStories = []story{
	{"right after its creation", func(d disturbance) func(*spec) { return survives(d, rightAfterCreation, kubectlChannel) }},
	{"during the first stage", func(d disturbance) func(*spec) { return survives(d, duringFirstStage, signalChannel) }},
	{"during the soak", func(d disturbance) func(*spec) { return survives(d, duringSoak, updateChannel) }},
	{"while it waits for an approval", func(d disturbance) func(*spec) { return survives(d, waitingForApproval, kubectlChannel) }},
	{"in its deletion stage", survivesInDeletionStage},
	{"while it rolls back", survivesInRollback},
}

// survivesInDeletionStage is a run that is disturbed while it clears two clusters, of which the agent of one is away.
func survivesInDeletionStage(disturb disturbance) func(*spec) {
	return func(s *spec) {
		s.externalPlacement(pickFixed(allMembers...))
		s.strategy(everywhere())
		s.awaitSucceeded(s.startRun("first", "0"))
		s.shrinkTo("member-1")
		s.requireUnscheduled("member-2", "member-3")
		s.stop("member-3/agent")
		second := s.startRun("second", "0")
		await(s, s.hub, second.DeepCopy(), "to have cleared member-2", func(r *placementv1beta1.ClusterStagedUpdateRun) error {
			if r.Status.DeletionStageStatus == nil || len(r.Status.DeletionStageStatus.Clusters) != 2 {
				return errors.New("nothing is to be cleared yet")
			}
			return isTrue(r.Status.DeletionStageStatus.Clusters[0].Conditions, placementv1beta1.ConditionTypeSucceeded, r.Generation)
		})
		disturb(s)
		s.start("member-3/agent")
		ended := s.awaitSucceeded(second)
		s.requireClustersDone(ended.Status.DeletionStageStatus, ended.Generation)
		s.awaitClosed(workflowOf(second))
		require.Less(s, len(s.history(workflowOf(second)).GetEvents()), 120, "to wait for the other is no reason to look without end")
		s.requireNothingOn("member-2", "member-3")
		s.awaitValue(value1, "member-1")
		require.Len(s, s.bindings(), 1)
	}
}

// survivesInRollback is a run that takes another one back and is disturbed while it waits for a cluster.
func survivesInRollback(disturb disturbance) func(*spec) {
	return func(s *spec) {
		s.externalPlacement()
		s.strategy(staging(), canary())
		s.awaitSucceeded(s.startRun("first", "0"))
		s.changeTo(value2)
		forward := s.awaitSucceeded(s.startRun("forward", ""))
		s.awaitValue(value2, allMembers...)

		bindings := s.record(s.hub, &placementv1beta1.ClusterResourceBinding{}, s.mine())
		s.stop("member-3/agent")
		back := s.run("back", "")
		back.Spec.RollbackOf = forward.Name
		s.create(back)
		s.awaitStarted(back, "member-3")
		disturb(s)
		s.start("member-3/agent")
		s.awaitSucceeded(back)
		s.awaitValue(value1, allMembers...)
		if !s.blinded {
			changes := bindings.upTo(s, newestOf(s.bindings()))
			require.Equal(s, []string{"member-1", "member-3", "member-2"}, writes(changes, bindings.initial), "the last goes first, each cluster once")
		}
	}
}

// TestCrashMatrix loses everything that can be lost at every moment of a run.
func TestCrashMatrix(t *testing.T) {
	if os.Getenv(matrixEnv) == "" {
		t.Skipf("set %s=1, or run make test-crash", matrixEnv)
	}
	for _, c := range crashes {
		for _, st := range crashStories {
			t.Run("a run survives the loss of "+c.name+" "+st.name, func(t *testing.T) {
				leaveAsFound(t, shared)
				s := newSpec(t)
				st.tell(c.prepare(s))(s)
			})
		}
	}
}
