//go:build integration

package security

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/test/devfleet/access"
)

const (
	// ofCrew is an object of the fleet in the namespace of the team.
	ofCrew = `{apiVersion: placement.kubernetes-fleet.io/v1beta1, kind: %s, metadata: {namespace: crew, name: %s}}`
	// intruder is a ConfigMap in the namespace of another team.
	intruder = `{apiVersion: v1, kind: ConfigMap, metadata: {namespace: bank, name: intruder}}`
)

// exemption lets a run go despite what holds it.
const exemption = `{apiVersion: fleetflow.io/v1alpha1, kind: RolloutExemption, metadata: {name: mine}, spec: {}}`

// fleetflowObject names an object of a kind of ours.
func fleetflowObject(kind, name string) string {
	return fmt.Sprintf(`{apiVersion: fleetflow.io/v1alpha1, kind: %s, metadata: {name: %s}}`, kind, name)
}

func TestApplicationTeam(t *testing.T) {
	fleetObject := func(kind, name string) string { return fmt.Sprintf(ofCrew, kind, name) }
	attempt(t, attacks{
		"a team creates a placement of the cluster":              forbidden(crewMember, creates(placement("mine", crew))),
		"a team creates a placement in another team's namespace": forbidden(crewMember, creates(teamPlacement(other, "mine", `{group: "", version: v1, kind: Secret}`))),
		"a team selects a cluster-scoped kind":                   teamPlacementFails(`{group: rbac.authorization.k8s.io, version: v1, kind: ClusterRole, name: cluster-admin}`, "which is cluster-scoped, and a ResourcePlacement selects what is in its own namespace"),
		"a team selects the Namespace of another team": refused(crewMember,
			creates(teamPlacement(crew, "grab", `{group: "", version: v1, kind: Namespace, name: bank}`)), "a ResourcePlacement selects resources in its own namespace"),
		"a team selects Works": teamPlacementFails(`{group: placement.kubernetes-fleet.io, version: v1beta1, kind: Work}`, "a kind that is never placed"),
		"a team wraps a ClusterRoleBinding": func(s *spec) {
			s.createAs(crewMember.session(s), teamEnvelope(seize))
			s.placeEnvelopeOfTeam("is cluster-scoped, and a ResourceEnvelope holds namespaced objects only")
			s.requireAbsent(seize)
		},
		"a team wraps an object of another team's namespace": func(s *spec) {
			s.createAs(crewMember.session(s), teamEnvelope(intruder))
			s.placeEnvelopeOfTeam("is not in the namespace of the envelope")
			s.requireAbsent(intruder)
		},
		"a team writes a resource snapshot of its own making": forbidden(crewMember, creates(`{apiVersion: placement.kubernetes-fleet.io/v1beta1, kind: ResourceSnapshot,
			metadata: {namespace: crew, name: web-7-snapshot}, spec: {selectedResources: [`+seize+`]}}`)),
		"a team that may do everything in its namespace writes a resource snapshot": refused(crewOwner, creates(`{apiVersion: placement.kubernetes-fleet.io/v1beta1, kind: ResourceSnapshot,
			metadata: {namespace: crew, name: web-7-snapshot}, spec: {selectedResources: [`+seize+`]}}`), agentsOnly),
		"a team that may do everything in its namespace writes a binding": refused(crewOwner, creates(`{apiVersion: placement.kubernetes-fleet.io/v1beta1, kind: ResourceBinding,
			metadata: {namespace: crew, name: mine}, spec: {state: Bound, resourceSnapshotName: x, schedulingPolicySnapshotName: x, targetCluster: member-1,
			clusterDecision: {clusterName: member-1, selected: true, reason: mine}}}`), agentsOnly),
		"a team that may do everything in its namespace writes the status of its placement": refused(crewOwner,
			patches(fleetObject("ResourcePlacement", "web"), `{status: {conditions: []}}`, "status"), statusIsTheAgents),
		"a team that may do everything in its namespace makes an approval request": refused(crewOwner,
			creates(`{apiVersion: placement.kubernetes-fleet.io/v1beta1, kind: ApprovalRequest, metadata: {namespace: crew, name: mine}, spec: {parentStageRollout: mine, targetStage: all}}`),
			"approval requests are made, labelled and removed by the agents of the fleet"),
		"a team that may do everything in its namespace writes the copy of a status": refused(crewOwner,
			creates(`{apiVersion: placement.kubernetes-fleet.io/v1beta1, kind: ClusterResourcePlacementStatus, metadata: {namespace: crew, name: bank}, lastUpdatedTime: "2026-01-01T00:00:00Z"}`), agentsOnly),
		"a team says that another user has created its run": refused(crewMember,
			creates(`{apiVersion: placement.kubernetes-fleet.io/v1beta1, kind: StagedUpdateRun, metadata: {namespace: crew, name: mine, annotations: {fleetflow.io/creator: somebody}},
				spec: {placementName: web, stagedRolloutStrategyName: none}}`), "the annotation fleetflow.io/creator says who has created the run"),
		"a team overrides what another team places":                       forbidden(crewMember, creates(teamOverride(other, "/data/round"))),
		"a team moves what it places to another namespace by an override": refused(crewMember, creates(teamOverride(crew, "/metadata/namespace")), "cannot override"),
		"a team approves a stage of a run of the cluster": forbidden(crewMember,
			patches(`{apiVersion: placement.kubernetes-fleet.io/v1beta1, kind: ClusterApprovalRequest, metadata: {name: gated-staging}}`, `{status: {conditions: []}}`, "status")),
		"a team reads what it places in snapshots":         forbidden(crewMember, lists(fleetObject("ResourceSnapshot", "x"), crew)),
		"a team reads what another team places":            forbidden(crewMember, lists(fleetObject("ResourcePlacement", "x"), other)),
		"a team reads what was measured for another team":  forbidden(crewMember, lists(fleetflowObject("StageAnalysisRun", "x"), other)),
		"a team reads what was measured for all":           forbidden(crewMember, lists(fleetflowObject("StageAnalysisRun", "x"), "")),
		"a team reads what was measured for the cluster":   forbidden(crewMember, lists(fleetflowObject("ClusterStageAnalysisRun", "x"), "")),
		"a team reads the snapshots of another team":       forbidden(crewMember, lists(fleetObject("ResourceSnapshot", "x"), other)),
		"a team reads what all teams place":                forbidden(crewMember, lists(fleetObject("ResourcePlacement", "x"), "")),
		"a team reads the Works of a member":               forbidden(crewMember, lists(work, "fleet-member-member-1")),
		"a team takes what another placement has":          teamTakesNothing,
		"a team makes the hub agent take notes of its own": teamNotesChangeNothing,

		"a team that reads what holds its runs takes the hold away":              forbidden(watcher, deletes(fleetflowObject("RolloutHold", "incident"))),
		"a team that reads what measured its runs reads where that is measured":  forbidden(watcher, lists(fleetflowObject("MetricSource", "x"), "")),
		"a team that reads what holds its runs exempts them":                     forbidden(watcher, creates(exemption)),
		"a user who stops the line exempts a run of a team":                      forbidden(holder, creates(exemption)),
		"a user who stops the line says in the status that nothing waits for it": forbidden(holder, patches(fleetflowObject("RolloutHold", "incident"), `{status: {heldRuns: 0}}`, "status")),
		"a team names a run as one of the cluster is, and so is its analysis":    analysesDoNotCollide,
		"a team takes the labels off what a hold covers by its namespace":        labelsTakenOffLeaveNoHold,
		"a team fills in a template that is not for its runs":                    templateIsForOthers,
		"a team takes by a priority what the platform has placed, or adds":       priorityTakesNothing,
	})
}

func teamEnvelope(object string) string {
	return `{apiVersion: placement.kubernetes-fleet.io/v1beta1, kind: ResourceEnvelope, metadata: {namespace: crew, name: wrapped}, data: {stolen: ` + object + `}}`
}

func teamOverride(namespace, path string) string {
	return `{apiVersion: placement.kubernetes-fleet.io/v1beta1, kind: ResourceOverride, metadata: {namespace: ` + namespace + `, name: mine},
		spec: {placement: {name: web, scope: Namespaced}, resourceSelectors: [{group: "", version: v1, kind: ConfigMap, name: marker}],
		policy: {overrideRules: [{clusterSelector: {clusterSelectorTerms: []}, jsonPatchOverrides: [{op: add, path: ` + path + `, value: mine}]}]}}}`
}

// awaitTeamFailure waits until the status of a placement of the team says why it does not place something.
func (s *spec) awaitTeamFailure(name, sentence string) {
	s.Helper()
	_, err := access.Await(s.Context(), s.hub, client.ObjectKey{Namespace: crew, Name: name}, func(p *placementv1beta1.ResourcePlacement) string {
		if told, err := json.Marshal(p); err != nil || !strings.Contains(string(told), sentence) {
			return fmt.Sprintf("its status does not say %q: %s", sentence, told)
		}
		return ""
	})
	require.NoError(s, err)
}

// teamPlacementFails has the team place something, and asserts that the placement says why not.
func teamPlacementFails(selector, sentence string) func(*spec) {
	return func(s *spec) {
		name := fmt.Sprintf("grab-%d", rounds.Add(1))
		s.createAs(crewMember.session(s), teamPlacement(crew, name, selector))
		s.awaitTeamFailure(name, sentence)
	}
}

// placeEnvelopeOfTeam places the team's envelope, and asserts that the placement says why not.
func (s *spec) placeEnvelopeOfTeam(sentence string) {
	s.Helper()
	name := fmt.Sprintf("wrap-%d", rounds.Add(1))
	s.createAs(crewMember.session(s), teamPlacement(crew, name, `{group: placement.kubernetes-fleet.io, version: v1beta1, kind: ResourceEnvelope, name: wrapped}`))
	s.awaitTeamFailure(name, sentence)
}

// teamTakesNothing has the team place an object that another placement has on the members.
func teamTakesNothing(s *spec) {
	name := fmt.Sprintf("grab-%d", rounds.Add(1))
	s.createAs(crewMember.session(s), teamPlacement(crew, name, `{group: "", version: v1, kind: ConfigMap, name: marker}`))
	s.awaitTeamFailure(name, "ApplyConflictBetweenPlacements")
	s.awaitMarker(crew)
}

// teamNotesChangeNothing has the team write the annotations that the hub agent keeps on a placement. They are its own to
// break: what the hub does next goes by what it selects.
func teamNotesChangeNothing(s *spec) {
	verdict := `{\"generation\":1,\"snapshot\":\"bank-0-snapshot\",\"overrides\":[\"bank/mine-0\"]}`
	_, err := patches(fmt.Sprintf(ofCrew, "ResourcePlacement", "web"),
		`{metadata: {annotations: {fleetflow.io/selection-verdict: "`+verdict+`", fleetflow.io/rollout-claim: "{}"}}}`)(s.Context(), crewMember.session(s))
	require.NoError(s, err)
	s.awaitMarker(crew)
	s.requireAbsent(intruder)
	placement := &placementv1beta1.ResourcePlacement{}
	require.NoError(s, s.hub.Get(s.Context(), client.ObjectKey{Namespace: crew, Name: "web"}, placement))
	require.Len(s, placement.Status.SelectedResources, 1)
	require.Equal(s, crew, placement.Status.SelectedResources[0].Namespace)
}

// priorityTakesNothing has a team give its placement a higher priority than that of the platform, which has one object of the two and
// gets the other later.
func priorityTakesNothing(s *spec) {
	limit := func(name string) string {
		return `{apiVersion: v1, kind: ConfigMap, metadata: {namespace: ` + ranked + `, name: ` + name + `}, data: {pods: "5"}}`
	}
	s.create(`{apiVersion: v1, kind: Namespace, metadata: {name: ` + ranked + `}}`)
	s.create(limit("limit"))
	s.create(strings.Replace(placementManifest(ranked, "RollingUpdate"), "spec:", "spec:\n  priority: 1000", 1))
	ctx, cancel := context.WithTimeout(s.Context(), patience)
	defer cancel()
	require.NoError(s, s.awaitPlacement(ctx, ranked, "ClusterResourcePlacementAvailable"))
	s.createAs(settler.session(s), strings.Replace(teamPlacement(ranked, "mine",
		`{group: "", version: v1, kind: ConfigMap, name: limit}, {group: "", version: v1, kind: ConfigMap, name: later}`),
		"spec:", "spec:\n  priority: 1000000\n  preemption: Always", 1))
	s.awaitLeftOut("1 of the selected resources are held by other placements and left out here: ConfigMap ranked/limit by ranked (priority 1000)")
	s.create(limit("later"))
	s.awaitLeftOut("2 of the selected resources are held by other placements")
	for member, c := range s.members {
		for _, name := range []string{"limit", "later"} {
			_, err := access.Await(ctx, c, client.ObjectKey{Namespace: ranked, Name: name}, func(m *corev1.ConfigMap) string {
				if m == nil || len(m.OwnerReferences) != 1 || m.OwnerReferences[0].Name != ranked+"-work" {
					return fmt.Sprintf("it is not that of the platform: %+v", m)
				}
				return ""
			})
			require.NoError(s, err, "%s on %s", name, member)
		}
	}
}

// awaitLeftOut waits until the placement of the team says that it leaves something to the platform.
func (s *spec) awaitLeftOut(sentence string) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), patience)
	defer cancel()
	_, err := access.Await(ctx, s.hub, client.ObjectKey{Namespace: ranked, Name: "mine"}, func(p *placementv1beta1.ResourcePlacement) string {
		if p == nil {
			return "missing"
		}
		if left := meta.FindStatusCondition(p.Status.Conditions, placementv1beta1.ConditionTypeResourcesLeftOut); left == nil || !strings.Contains(left.Message, sentence) {
			return fmt.Sprintf("it does not leave out what it should: %+v", p.Status.Conditions)
		}
		return ""
	})
	require.NoError(s, err)
}

// labelsTakenOffLeaveNoHold has the team take the labels of its placement off, and those of its namespace, while a hold covers the
// namespace: what it changes then waits all the same.
func labelsTakenOffLeaveNoHold(s *spec) {
	const frozen = `{apiVersion: v1, kind: ConfigMap, metadata: {namespace: crew, name: frozen}}`
	s.create(`{apiVersion: fleetflow.io/v1alpha1, kind: RolloutHold, metadata: {name: crews}, spec: {message: storm,
		namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: crew}}}}`)
	team := crewMember.session(s)
	s.createAs(team, frozen)
	s.createAs(team, strings.Replace(teamPlacement(crew, "frozen", `{group: "", version: v1, kind: ConfigMap, name: frozen}`),
		"name: frozen}\nspec", "name: frozen, labels: {team: crew}}\nspec", 1))
	s.awaitTeamHeld("frozen", 1)
	s.requireRefusal(crewMember, patches(`{apiVersion: v1, kind: Namespace, metadata: {name: crew}}`, `{metadata: {labels: {kubernetes.io/metadata.name: null}}}`), notAllowed)
	_, err := patches(fmt.Sprintf(ofCrew, "ResourcePlacement", "frozen"),
		`{metadata: {labels: null}, spec: {strategy: {rollingUpdate: {maxUnavailable: 50%}}}}`)(s.Context(), team)
	require.NoError(s, err)
	s.awaitTeamHeld("frozen", 2)
	s.requireAbsent(frozen)
}

// awaitTeamHeld waits until a placement of the team says of a generation that something holds it.
func (s *spec) awaitTeamHeld(name string, generation int64) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), patience)
	defer cancel()
	_, err := access.Await(ctx, s.hub, client.ObjectKey{Namespace: crew, Name: name}, func(p *placementv1beta1.ResourcePlacement) string {
		if p == nil {
			return "missing"
		}
		held := meta.FindStatusCondition(p.Status.Conditions, fleetflowv1alpha1.ConditionTypeHeld)
		if held == nil || held.Status != "True" || held.ObservedGeneration != generation {
			return fmt.Sprintf("not held at generation %d: %+v", generation, held)
		}
		return ""
	})
	require.NoError(s, err)
}

// analysesDoNotCollide has a run of the cluster and one of the team measure, both of a name: each has an analysis of its own, and the team
// reads its own alone.
func analysesDoNotCollide(s *spec) {
	s.measureTwins("twin", "")
	ctx, cancel := context.WithTimeout(s.Context(), 2*patience)
	defer cancel()
	require.NoError(s, s.awaitPlacement(ctx, "twin", "ClusterResourcePlacementScheduled"))
	s.create(`{apiVersion: placement.kubernetes-fleet.io/v1beta1, kind: ClusterStagedUpdateRun, metadata: {name: twin}, spec: {placementName: twin, stagedRolloutStrategyName: measured}}`)
	name := fleetflowv1alpha1.AnalysisRunName("twin", "staging", fleetflowv1alpha1.PositionBefore)
	made := func(there bool) string {
		if !there {
			return "no analysis of the run"
		}
		return ""
	}
	platforms, err := access.Await(ctx, s.hub, client.ObjectKey{Name: name}, func(a *fleetflowv1alpha1.ClusterStageAnalysisRun) string { return made(a != nil) })
	require.NoError(s, err)
	s.createAs(crewMember.session(s), `{apiVersion: placement.kubernetes-fleet.io/v1beta1, kind: StagedUpdateRun, metadata: {namespace: crew, name: twin}, spec: {placementName: twin, stagedRolloutStrategyName: measured}}`)
	teams, err := access.Await(ctx, crewMember.session(s), client.ObjectKey{Namespace: crew, Name: name}, func(a *fleetflowv1alpha1.StageAnalysisRun) string {
		if a != nil && !meta.IsStatusConditionFalse(a.Status.Conditions, fleetflowv1alpha1.ConditionTypeAnalysisRunSucceeded) {
			return fmt.Sprintf("the condition Succeeded is not False, as its source is away: %+v", a.Status.Conditions)
		}
		return made(a != nil)
	})
	require.NoError(s, err, "as the team sees it")
	run := &placementv1beta1.StagedUpdateRun{}
	require.NoError(s, s.hub.Get(ctx, client.ObjectKey{Namespace: crew, Name: "twin"}, run))
	require.True(s, metav1.IsControlledBy(teams, run))
	still := &fleetflowv1alpha1.ClusterStageAnalysisRun{}
	require.NoError(s, s.hub.Get(ctx, client.ObjectKey{Name: name}, still))
	require.Equal(s, platforms.UID, still.UID, "that of the platform is still there")
	err = neighbour.session(s).Get(ctx, client.ObjectKeyFromObject(teams), &fleetflowv1alpha1.StageAnalysisRun{})
	require.True(s, apierrors.IsForbidden(err), "another team reads it: %v", err)
}

// measureTwins creates a placement of the cluster and one of the team, both of a name, and for each a strategy that has the clusters of stage
// staging measured by a template; limits are further fields of that.
func (s *spec) measureTwins(name, limits string) {
	s.Helper()
	s.create(`{apiVersion: fleetflow.io/v1alpha1, kind: MetricSource, metadata: {name: silent}, spec: {type: Prometheus, url: "http://127.0.0.1:9", allowPlainText: true}}`)
	s.create(`{apiVersion: fleetflow.io/v1alpha1, kind: StageAnalysis, metadata: {name: silent}, spec: {metrics: [{name: up, success: "result > 0.0",
		interval: 5s, count: 2, prometheus: {sourceRef: {name: silent}, query: up}}]` + limits + `}}`)
	const spec = `stages: [{name: staging, labelSelector: {matchLabels: {environment: staging}}, beforeStageTasks: [{type: Analysis, analysis: {templates: [{name: silent}]}}]}]`
	s.create(`{apiVersion: placement.kubernetes-fleet.io/v1beta1, kind: ClusterStagedUpdateStrategy, metadata: {name: measured}, spec: {` + spec + `}}`)
	s.create(`{apiVersion: v1, kind: Namespace, metadata: {name: ` + name + `}}`)
	s.create(strings.Replace(placementManifest(name, "External"), "placementType: PickAll", "placementType: PickAll, "+stagingOnly, 1))
	s.createAs(crewMember.session(s), `{apiVersion: v1, kind: ConfigMap, metadata: {namespace: crew, name: `+name+`}}`)
	s.createAs(crewMember.session(s), strings.NewReplacer("placementType: PickAll", "placementType: PickAll, "+stagingOnly,
		"type: RollingUpdate, rollingUpdate: {maxUnavailable: 100%, unavailablePeriodSeconds: 0}", "type: External").Replace(
		teamPlacement(crew, name, `{group: "", version: v1, kind: ConfigMap, name: `+name+`}`)))
	s.createAs(crewMember.session(s), `{apiVersion: placement.kubernetes-fleet.io/v1beta1, kind: StagedUpdateStrategy, metadata: {namespace: crew, name: measured}, spec: {`+spec+`}}`)
}

// templateIsForOthers has the team measure by a template that is for runs of the cluster only.
func templateIsForOthers(s *spec) {
	s.measureTwins("filled", ", allowedNamespaces: []")
	s.createAs(crewMember.session(s), `{apiVersion: placement.kubernetes-fleet.io/v1beta1, kind: StagedUpdateRun, metadata: {namespace: crew, name: filled}, spec: {placementName: filled, stagedRolloutStrategyName: measured}}`)
	ctx, cancel := context.WithTimeout(s.Context(), patience)
	defer cancel()
	_, err := access.Await(ctx, s.hub, client.ObjectKey{Namespace: crew, Name: "filled"}, func(r *placementv1beta1.StagedUpdateRun) string {
		if r == nil {
			return "missing"
		}
		if said := meta.FindStatusCondition(r.Status.Conditions, "Initialized"); said == nil || said.Status != "False" || !strings.Contains(said.Message, "StageAnalysis `silent` is not for runs of namespace crew") {
			return fmt.Sprintf("it does not say that it must not begin: %+v", r.Status.Conditions)
		}
		return ""
	})
	require.NoError(s, err)
}

// stagingOnly has a placement pick the member of stage staging.
const stagingOnly = `affinity: {clusterAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {clusterSelectorTerms: [{labelSelector: {matchLabels: {environment: staging}}}]}}}`
