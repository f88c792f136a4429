//go:build integration

package security

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/cmd/devfleet/access"
)

// gatedRequest names the approval request of the run that waits.
var gatedRequest = fmt.Sprintf(ofFleet, "ClusterApprovalRequest", gated+"-staging")

func TestApproverAndRunner(t *testing.T) {
	attempt(t, attacks{
		"an approver writes down that another has approved": refused(approver,
			patches(gatedRequest, `{status: {approval: {by: alice, at: "2026-01-01T00:00:00Z", door: kubectl, verified: true}}}`, "status"),
			"status.approval says who approved and is written together with the condition Approved"),
		"an approver approves in the name of another":                  approvalNamesItsSender,
		"an approver has a request mean another stage":                 forbidden(approver, patches(gatedRequest, `{spec: {targetStage: canary}}`)),
		"an approver changes a run":                                    forbidden(approver, patches(fmt.Sprintf(ofFleet, "ClusterStagedUpdateRun", gated), `{spec: {state: Stop}}`)),
		"a runner approves its own run":                                forbidden(runner, approves),
		"a runner writes the approval request of its run itself":       forbidden(runner, creates(earlyRequest)),
		"a runner declares a stage done":                               forbidden(runner, patches(fmt.Sprintf(ofFleet, "ClusterStagedUpdateRun", gated), `{status: {conditions: []}}`, "status")),
		"a fleet administrator approves a stage before there is a run": refused(statusWriter, creates(earlyRequest), "approval requests are made"),
		"a runner changes which placement a run rolls out":             refused(runner, patches(fmt.Sprintf(ofFleet, "ClusterStagedUpdateRun", gated), `{spec: {placementName: bank}}`), "immutable"),
		"a runner uses another strategy beside a run that is not over": refused(runner, creates(hastyRun), "strategy"),
		"a user who may annotate approval requests gives the approval of an earlier run to a new one": refused(annotator,
			patches(gatedRequest, `{metadata: {annotations: {kubernetes-fleet.io/update-run-uid: another}}}`), "approval requests are made"),
		"a runner takes the approval out of the strategy of a run underway": strategyOfARunStays,
	})
}

const (
	earlyRequest = `{apiVersion: placement.kubernetes-fleet.io/v1beta1, kind: ClusterApprovalRequest, metadata: {name: early-staging},
		spec: {parentStageRollout: early, targetStage: staging}}`
	hastyRun = `{apiVersion: placement.kubernetes-fleet.io/v1beta1, kind: ClusterStagedUpdateRun, metadata: {name: hasty},
		spec: {placementName: gated, stagedRolloutStrategyName: hasty, resourceSnapshotIndex: "0"}}`
)

// startRun creates a namespace, a placement of it and a run that will wait for an approval after stage staging, all of a
// name, for the time of the spec.
func (s *spec) startRun(name string) {
	s.Helper()
	s.create(`{apiVersion: v1, kind: Namespace, metadata: {name: ` + name + `}}`)
	s.create(placementManifest(name, "External"))
	ctx, cancel := context.WithTimeout(s.Context(), patience)
	defer cancel()
	require.NoError(s, s.awaitPlacement(ctx, name, "ClusterResourcePlacementScheduled"))
	s.create(runOf(name, name))
}

// awaitRequest waits until a run has made its approval request, and ok says of it that nothing is missing.
func (s *spec) awaitRequest(run string, ok func(*placementv1beta1.ClusterApprovalRequest) bool) *placementv1beta1.ClusterApprovalRequest {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), patience)
	defer cancel()
	request, err := access.Await(ctx, s.hub, client.ObjectKey{Name: run + "-staging"}, func(r *placementv1beta1.ClusterApprovalRequest) string {
		if r == nil || !ok(r) {
			return "not as wanted yet"
		}
		return ""
	})
	require.NoError(s, err)
	return request
}

func madeByARun(r *placementv1beta1.ClusterApprovalRequest) bool {
	return r.Annotations[placementv1beta1.ApprovalRunUIDAnnotation] != ""
}

// approvalNamesItsSender approves with a record that names somebody else: the API server replaces it.
func approvalNamesItsSender(s *spec) {
	s.startRun("forged")
	s.awaitRequest("forged", madeByARun)
	_, err := patches(fmt.Sprintf(ofFleet, "ClusterApprovalRequest", "forged-staging"), `{status: {
		conditions: [{type: Approved, status: "True", reason: lgtm, message: "", lastTransitionTime: "2026-01-01T00:00:00Z"}],
		approval: {by: alice, at: "2026-01-01T00:00:00Z", door: kubectl, verified: true}}}`, "status")(s.Context(), approver.session(s))
	require.NoError(s, err)
	accepted := s.awaitRequest("forged", func(r *placementv1beta1.ClusterApprovalRequest) bool {
		return meta.IsStatusConditionTrue(r.Status.Conditions, placementv1beta1.ConditionTypeApprovalAccepted)
	})
	assert.Equal(s, "system:serviceaccount:attackers:approver", accepted.Status.Approval.By)
}

// strategyOfARunStays changes the strategy while the run waits: the run has its own copy.
func strategyOfARunStays(s *spec) {
	strategy := fmt.Sprintf(ofFleet, "ClusterStagedUpdateStrategy", gated)
	change := func(tasks string) {
		_, err := patches(strategy, `{spec: {stages: [{name: staging, labelSelector: {matchLabels: {environment: staging}}, afterStageTasks: `+tasks+`},
			{name: canary, labelSelector: {matchLabels: {environment: canary}}}]}}`)(s.Context(), runner.session(s))
		require.NoError(s, err)
	}
	change(`[]`)
	s.Cleanup(func() {
		_, err := patches(strategy, `{spec: {stages: [{name: staging, labelSelector: {matchLabels: {environment: staging}}, afterStageTasks: [{type: Approval}]},
			{name: canary, labelSelector: {matchLabels: {environment: canary}}}]}}`)(context.WithoutCancel(s.Context()), s.hub)
		require.NoError(s, err)
	})
	s.awaitMarker(placed) // the hub agent has seen the change by then
	s.requireGated()
}
