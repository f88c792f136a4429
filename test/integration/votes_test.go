//go:build integration

package integration

import (
	"fmt"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// twoUsersVoteForAStage has a stage wait for the votes of two users, which neither the condition alone, nor a signal, nor the second vote of
// one of them opens.
func twoUsersVoteForAStage(s *spec) {
	s.externalPlacement()
	voted := approval
	voted.Approval = &placementv1beta1.ApprovalConfig{Required: new(int32(2))}
	s.strategy(staging(voted), canary())
	run := s.startRun("run", "0")
	request := &placementv1beta1.ClusterApprovalRequest{ObjectMeta: metav1.ObjectMeta{Name: run.Name + "-staging"}}
	awaitTally := func(tally string) *placementv1beta1.ClusterApprovalRequest {
		return await(s, s.hub, request.DeepCopy(), "to have "+tally+" votes", func(r *placementv1beta1.ClusterApprovalRequest) error {
			if r.Status.Tally != tally || r.Status.Vote != nil {
				return fmt.Errorf("it has %q, and %v is cast", r.Status.Tally, r.Status.Vote)
			}
			return nil
		})
	}
	awaitTally("0/2")
	out, err := s.command(s.Context(), "kubectl", "patch", "clusterapprovalrequests", request.Name, "--type=merge", "--subresource=status", "-p",
		`{"status":{"conditions":[{"type":"Approved","status":"True","reason":"lgtm","message":"lgtm","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`)
	require.Error(s, err, out)
	require.Contains(s, out, "the stage takes votes, and it lacks some: vote with kubectl fleet approve")
	require.ErrorContains(s, s.sendUpdate(run, wf.Approval{Stage: "staging"}), "stage staging takes votes of users that the hub's API server knows")

	vote := func(user, said string) {
		out, err := s.command(s.Context(), "kubectl", "fleet", "approve", "run/"+run.Name, "--comment", "lgtm", "--as", user, "--as-group", "system:masters")
		require.NoError(s, err, out)
		require.Contains(s, out, said)
	}
	vote("ada", "with it, the stage waits for 1 more approval")
	awaitTally("1/2")
	vote("ada", "with it, the stage waits for 1 more approval")
	awaitTally("1/2")
	vote("grace", "with it, the stage has the votes that it needs")
	s.awaitSucceeded(run)
	require.Len(s, awaitTally("2/2").Status.Votes, 2)
	s.awaitClosed(workflowOf(run))
}
