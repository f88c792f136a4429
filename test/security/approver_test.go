//go:build integration

package security

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/test/devfleet/access"
)

// gatedRequest names the approval request of the run that waits.
var gatedRequest = fmt.Sprintf(ofFleet, "ClusterApprovalRequest", gated+"-staging")

func TestApproverAndRunner(t *testing.T) {
	attempt(t, attacks{
		"an approver writes down that another has approved": refused(approver,
			patches(gatedRequest, `{status: {approval: {username: alice, at: "2026-01-01T00:00:00Z", channel: Kubectl, verified: true}}}`, "status"),
			"status.approval says who approved and is written together with the condition Approved"),
		"an approver approves in the name of another":                  approvalNamesItsSender,
		"an approver has a request mean another stage":                 forbidden(approver, patches(gatedRequest, `{spec: {targetStage: canary}}`)),
		"an approver changes a run":                                    forbidden(approver, patches(fmt.Sprintf(ofFleet, "ClusterStagedUpdateRun", gated), `{spec: {state: Stop}}`)),
		"a runner approves its own run":                                forbidden(runner, approves),
		"a runner writes the approval request of its run itself":       forbidden(runner, creates(earlyRequest)),
		"a runner declares a stage done":                               forbidden(runner, patches(fmt.Sprintf(ofFleet, "ClusterStagedUpdateRun", gated), `{status: {conditions: []}}`, "status")),
		"a fleet administrator approves a stage before there is a run": refused(statusWriter, creates(earlyRequest), "approval requests are made"),
		"a runner changes which placement a run rolls out":             refused(runner, patches(fmt.Sprintf(ofFleet, "ClusterStagedUpdateRun", gated), `{spec: {placementName: bank}}`), "immutable"),
		"a runner uses another strategy beside a run that is not over": neverBegins("hasty", hastyRun, "all concurrent runs of a placement must use the same strategy"),
		"a user who may annotate approval requests gives the approval of an earlier run to a new one": refused(annotator,
			patches(gatedRequest, `{metadata: {annotations: {fleetflow.io/update-run-uid: another}}}`), "approval requests are made"),
		"a runner takes the approval out of the strategy of a run underway": strategyOfARunStays,
		"a runner uses a strategy that the placement does not allow": neverBegins("disallowed",
			`{apiVersion: placement.kubernetes-fleet.io/v1beta1, kind: ClusterStagedUpdateRun, metadata: {name: disallowed},
				spec: {placementName: limited, stagedRolloutStrategyName: hasty}}`,
			"clusterResourcePlacement `limited` does not allow runs with clusterStagedUpdateStrategy `hasty`: create the run with one of gated"),
		"a runner who may approve, too, approves a run that it has created": creatorDoesNotApprove,
		"a runner says that another has created its run": refused(soloist,
			creates(`{apiVersion: placement.kubernetes-fleet.io/v1beta1, kind: ClusterStagedUpdateRun,
				metadata: {name: hasty, annotations: {fleetflow.io/creator: alice}}, spec: {placementName: gated, stagedRolloutStrategyName: gated}}`),
			"the annotation fleetflow.io/creator says who has created the run"),
		"a runner takes clusters back without the approvals that they wait for":                        rollbackKeepsApprovals,
		"a runner rolls a rollback back, so that what was taken back comes again":                      rollbackStaysRolledBack,
		"a runner makes another run of a name for which there is an exemption":                         exemptionStaysWithItsRun,
		"a runner rolls back to what never succeeded, past a hold that exempts rollbacks":              relapseWaits,
		"a runner has a run without clusters succeed, so that what it names seems to have proved good": emptyRunProvesNothing,
		"a placer labels its placement out of a hold":                                                  labelsLeadOutOfNoHold,
		"a runner makes a run whose approval request would have the name of one of another run":        requestsDoNotCollide,
		"a runner gives a run a name that does not fit into labels":                                    refused(runner, creates(runOf(gated, strings.Repeat("a", 64))), "metadata.name max length is 63"),
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
	if err != nil {
		found := &placementv1beta1.ClusterStagedUpdateRun{}
		require.NoError(s, s.hub.Get(s.Context(), client.ObjectKey{Name: run}, found), "%v", err)
		require.NoError(s, err, "the run says: %+v, and of its stages: %+v", found.Status.Conditions, found.Status.StagesStatus)
	}
	return request
}

// awaitNextSecond returns once the second is over in which a run was created. Of two runs of the same second the one with the greater UID
// counts as the later one, which keeps its clusters.
func (s *spec) awaitNextSecond(run string) {
	s.Helper()
	found := &placementv1beta1.ClusterStagedUpdateRun{}
	require.NoError(s, s.hub.Get(s.Context(), client.ObjectKey{Name: run}, found))
	<-time.After(time.Until(found.CreationTimestamp.Add(time.Second)))
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
		approval: {username: alice, at: "2026-01-01T00:00:00Z", channel: Kubectl, verified: true}}}`, "status")(s.Context(), approver.session(s))
	require.NoError(s, err)
	accepted := s.awaitRequest("forged", func(r *placementv1beta1.ClusterApprovalRequest) bool {
		return meta.IsStatusConditionTrue(r.Status.Conditions, placementv1beta1.ConditionTypeApprovalAccepted)
	})
	assert.Equal(s, "system:serviceaccount:attackers:approver", accepted.Status.Approval.Username)
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

// creatorDoesNotApprove creates a run whose strategy asks for another approver, and approves it.
func creatorDoesNotApprove(s *spec) {
	s.create(`{apiVersion: v1, kind: Namespace, metadata: {name: separate}}`)
	s.create(placementManifest("separate", "External"))
	ctx, cancel := context.WithTimeout(s.Context(), patience)
	defer cancel()
	require.NoError(s, s.awaitPlacement(ctx, "separate", "ClusterResourcePlacementScheduled"))
	s.createAs(soloist.session(s), strings.Replace(runOf("separate", "separate"), "stagedRolloutStrategyName: "+gated, "stagedRolloutStrategyName: separate", 1))
	s.awaitRequest("separate", madeByARun)
	_, err := patches(fmt.Sprintf(ofFleet, "ClusterApprovalRequest", "separate-staging"),
		`{status: {conditions: [{type: Approved, status: "True", reason: lgtm, message: "", lastTransitionTime: "2026-01-01T00:00:00Z"}]}}`, "status")(s.Context(), soloist.session(s))
	require.NoError(s, err)
	request := s.awaitRequest("separate", func(r *placementv1beta1.ClusterApprovalRequest) bool {
		approved := meta.FindStatusCondition(r.Status.Conditions, placementv1beta1.ConditionTypeApproved)
		return approved != nil && approved.Reason == placementv1beta1.ReasonApproverNotAllowed
	})
	assert.False(s, meta.IsStatusConditionTrue(request.Status.Conditions, placementv1beta1.ConditionTypeApprovalAccepted))
	assert.Equal(s, "system:serviceaccount:attackers:soloist has created run separate and may not approve it: another user has to",
		meta.FindStatusCondition(request.Status.Conditions, placementv1beta1.ConditionTypeApproved).Message)
}

// rollbackKeepsApprovals rolls a run back that waits for its approval: the rollback has the same tasks.
func rollbackKeepsApprovals(s *spec) {
	s.startRun("undone")
	s.awaitRequest("undone", madeByARun)
	s.createAs(runner.session(s), `{apiVersion: placement.kubernetes-fleet.io/v1beta1, kind: ClusterStagedUpdateRun, metadata: {name: undoing},
		spec: {placementName: undone, stagedRolloutStrategyName: `+gated+`, rollbackOf: undone}}`)
	ctx, cancel := context.WithTimeout(s.Context(), patience)
	defer cancel()
	run, err := access.Await(ctx, s.hub, client.ObjectKey{Name: "undoing"}, func(r *placementv1beta1.ClusterStagedUpdateRun) string {
		if r == nil || !meta.IsStatusConditionTrue(r.Status.Conditions, "Initialized") {
			return "not initialized yet"
		}
		return ""
	})
	require.NoError(s, err)
	stages := run.Status.UpdateStrategySnapshot.Stages
	require.Len(s, stages, 2)
	assert.Equal(s, "staging", stages[1].Name)
	require.Len(s, stages[1].AfterStageTasks, 1)
	assert.Equal(s, placementv1beta1.StageTaskTypeApproval, stages[1].AfterStageTasks[0].Type)
}

// neverBegins creates a run, which says in a sentence that it must not begin.
func neverBegins(name, manifest, sentence string) func(*spec) {
	return func(s *spec) {
		s.createAs(runner.session(s), manifest)
		ctx, cancel := context.WithTimeout(s.Context(), patience)
		defer cancel()
		_, err := access.Await(ctx, s.hub, client.ObjectKey{Name: name}, func(r *placementv1beta1.ClusterStagedUpdateRun) string {
			if r == nil {
				return "missing"
			}
			if said := meta.FindStatusCondition(r.Status.Conditions, "Initialized"); said == nil || said.Status != "False" || !strings.Contains(said.Message, sentence) {
				return "does not say that it must not begin"
			}
			return ""
		})
		require.NoError(s, err)
	}
}

// rollbackStaysRolledBack rolls a rollback back.
func rollbackStaysRolledBack(s *spec) {
	rollback := func(name, of string) string {
		return `{apiVersion: placement.kubernetes-fleet.io/v1beta1, kind: ClusterStagedUpdateRun, metadata: {name: ` + name + `},
			spec: {placementName: retaken, stagedRolloutStrategyName: ` + gated + `, rollbackOf: ` + of + `}}`
	}
	s.startRun("retaken")
	s.awaitRequest("retaken", madeByARun)
	s.createAs(runner.session(s), rollback("retaking", "retaken"))
	neverBegins("again", rollback("again", "retaking"), "is a rollback itself, of ")(s)
}

// exemptionStaysWithItsRun puts another run in the place of one that somebody has looked at to exempt it from a hold.
func exemptionStaysWithItsRun(s *spec) {
	s.create(`{apiVersion: fleetflow.io/v1alpha1, kind: RolloutHold, metadata: {name: storm}, spec: {message: storm}}`)
	s.startRun("swapped")
	key := client.ObjectKey{Name: "swapped"}
	seen := &placementv1beta1.ClusterStagedUpdateRun{}
	require.NoError(s, s.hub.Get(s.Context(), key, seen))
	ctx, cancel := context.WithTimeout(s.Context(), patience)
	defer cancel()
	require.NoError(s, runner.session(s).Delete(ctx, seen.DeepCopy()))
	_, err := access.Await(ctx, s.hub, key, func(r *placementv1beta1.ClusterStagedUpdateRun) string {
		if r != nil {
			return "not gone yet"
		}
		return ""
	})
	require.NoError(s, err)
	s.createAs(runner.session(s), runOf("swapped", "swapped"))
	s.create(fmt.Sprintf(`{apiVersion: fleetflow.io/v1alpha1, kind: RolloutExemption, metadata: {name: swapped}, spec: {targetRef: {kind: ClusterStagedUpdateRun, name: swapped, uid: %s},
		exemptFrom: [{kind: RolloutHold, name: storm}], message: looked at, expirationTime: %q}}`, seen.UID, time.Now().Add(time.Hour).UTC().Format(time.RFC3339)))
	_, err = access.Await(ctx, s.hub, key, func(e *fleetflowv1alpha1.RolloutExemption) string {
		if e == nil || !meta.IsStatusConditionFalse(e.Status.Conditions, fleetflowv1alpha1.ConditionTypeEffective) {
			return "the exemption does not say that it has no effect"
		}
		return ""
	})
	require.NoError(s, err)
	s.awaitHeld("swapped")
}

// awaitHeld waits until a run says that something holds it.
func (s *spec) awaitHeld(run string) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), patience)
	defer cancel()
	_, err := access.Await(ctx, s.hub, client.ObjectKey{Name: run}, func(r *placementv1beta1.ClusterStagedUpdateRun) string {
		if r == nil || !meta.IsStatusConditionTrue(r.Status.Conditions, fleetflowv1alpha1.ConditionTypeHeld) {
			return "not held yet"
		}
		return ""
	})
	require.NoError(s, err)
}

// labelsLeadOutOfNoHold has the writer of a placement label it as another, and start a run.
func labelsLeadOutOfNoHold(s *spec) {
	const name = "relabelled"
	s.create(`{apiVersion: fleetflow.io/v1alpha1, kind: RolloutHold, metadata: {name: named}, spec: {message: storm,
		placementSelector: {matchLabels: {fleetflow.io/placement-name: ` + name + `}}}}`)
	s.create(`{apiVersion: v1, kind: Namespace, metadata: {name: ` + name + `}}`)
	s.create(placementManifest(name, "External"))
	ctx, cancel := context.WithTimeout(s.Context(), patience)
	defer cancel()
	require.NoError(s, s.awaitPlacement(ctx, name, "ClusterResourcePlacementScheduled"))
	_, err := patches(fmt.Sprintf(ofFleet, "ClusterResourcePlacement", name), `{metadata: {labels: {fleetflow.io/placement-name: another}}}`)(ctx, placer.session(s))
	require.NoError(s, err)
	s.createAs(runner.session(s), runOf(name, name))
	s.awaitHeld(name)
}

// relapseWaits replaces a version that is on one cluster, and rolls that back while a hold lets rollbacks go.
func relapseWaits(s *spec) {
	const name = "relapsed"
	s.startRun(name)
	s.awaitRequest(name, madeByARun)
	s.awaitNextSecond(name)
	s.create(`{apiVersion: v1, kind: ConfigMap, metadata: {namespace: ` + name + `, name: better}}`)
	s.createAs(runner.session(s), strings.Replace(runOf(name, "replaced"), `, resourceSnapshotIndex: "0"`, "", 1))
	s.awaitRequest("replaced", madeByARun)
	s.create(`{apiVersion: fleetflow.io/v1alpha1, kind: RolloutHold, metadata: {name: forgiving}, spec: {message: storm, rollbacks: Exempt,
		placementSelector: {matchLabels: {fleetflow.io/placement-name: ` + name + `}}}}`)
	s.createAs(runner.session(s), `{apiVersion: placement.kubernetes-fleet.io/v1beta1, kind: ClusterStagedUpdateRun, metadata: {name: relapsing},
		spec: {placementName: `+name+`, stagedRolloutStrategyName: `+gated+`, rollbackOf: replaced}}`)
	s.awaitHeld("relapsing")
}

// emptyRunProvesNothing does the same after a run of that version that succeeds, as its only stage has no cluster.
func emptyRunProvesNothing(s *spec) {
	const name = "unproved"
	s.create(`{apiVersion: placement.kubernetes-fleet.io/v1beta1, kind: ClusterStagedUpdateStrategy, metadata: {name: nowhere},
		spec: {unassignedClusters: Ignore, stages: [{name: none, labelSelector: {matchLabels: {no: cluster}}}]}}`)
	s.create(`{apiVersion: v1, kind: Namespace, metadata: {name: ` + name + `}}`)
	s.create(placementManifest(name, "External"))
	ctx, cancel := context.WithTimeout(s.Context(), patience)
	defer cancel()
	require.NoError(s, s.awaitPlacement(ctx, name, "ClusterResourcePlacementScheduled"))
	s.createAs(runner.session(s), strings.Replace(runOf(name, "empty"), "stagedRolloutStrategyName: "+gated, "stagedRolloutStrategyName: nowhere", 1))
	_, err := access.Await(ctx, s.hub, client.ObjectKey{Name: "empty"}, func(r *placementv1beta1.ClusterStagedUpdateRun) string {
		if r == nil || !meta.IsStatusConditionTrue(r.Status.Conditions, placementv1beta1.ConditionTypeSucceeded) {
			return "not succeeded yet"
		}
		return ""
	})
	require.NoError(s, err)
	s.createAs(runner.session(s), runOf(name, name))
	s.awaitRequest(name, madeByARun)
	s.awaitNextSecond(name)
	s.create(`{apiVersion: v1, kind: ConfigMap, metadata: {namespace: ` + name + `, name: better}}`)
	s.createAs(runner.session(s), strings.Replace(runOf(name, "improved"), `, resourceSnapshotIndex: "0"`, "", 1))
	s.awaitRequest("improved", madeByARun)
	s.create(`{apiVersion: fleetflow.io/v1alpha1, kind: RolloutHold, metadata: {name: lenient}, spec: {message: storm, rollbacks: Exempt,
		placementSelector: {matchLabels: {fleetflow.io/placement-name: ` + name + `}}}}`)
	s.createAs(runner.session(s), `{apiVersion: placement.kubernetes-fleet.io/v1beta1, kind: ClusterStagedUpdateRun, metadata: {name: unproving},
		spec: {placementName: `+name+`, stagedRolloutStrategyName: `+gated+`, rollbackOf: improved}}`)
	s.awaitHeld("unproving")
}

// requestsDoNotCollide makes a run whose name ends as that of the request of another run before its stage.
func requestsDoNotCollide(s *spec) {
	s.startRun("twin-before")
	ctx, cancel := context.WithTimeout(s.Context(), patience)
	defer cancel()
	_, err := access.Await(ctx, s.hub, client.ObjectKey{Name: "twin-before-after-staging"}, func(r *placementv1beta1.ClusterApprovalRequest) string {
		if r == nil {
			return "missing"
		}
		return ""
	})
	require.NoError(s, err)
	err = s.hub.Get(ctx, client.ObjectKey{Name: "twin-before-staging"}, &placementv1beta1.ClusterApprovalRequest{})
	require.Error(s, err, "that is the name of the request of run twin before stage staging")
	require.NoError(s, client.IgnoreNotFound(err))
}
