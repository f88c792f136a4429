package migration_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetflow/fleetflow/activities/snapshot"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	"github.com/fleetflow/fleetflow/apis/kubefleet"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	"github.com/fleetflow/fleetflow/apis/placement/stagetask"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/migration"
	"github.com/fleetflow/fleetflow/test/fixture"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// hub has placement crp on two clusters, as either of KubeFleet and fleetflow leaves it.
func hub() *migration.State {
	s := &migration.State{Unknown: map[string][]string{}}
	placement := &placementv1beta1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: "crp", UID: "crp-uid", Generation: 1, Finalizers: []string{placementv1beta1.PlacementCleanupFinalizer}}}
	s.Placements = []placementv1beta1.PlacementObject{placement}
	owned := metav1.ObjectMeta{Name: "crp-0", OwnerReferences: []metav1.OwnerReference{{UID: "crp-uid"}}, Labels: map[string]string{
		placementv1beta1.ParentPlacementLabel: "crp", placementv1beta1.IsLatestSnapshotLabel: "true",
		placementv1beta1.PolicyIndexLabel: "0", placementv1beta1.ResourceIndexLabel: "0",
	}, Annotations: map[string]string{
		placementv1beta1.CRPGenerationAnnotation: "1", placementv1beta1.ResourceGroupHashAnnotation: "h", placementv1beta1.NumberOfResourceSnapshotsAnnotation: "1",
	}}
	s.Policy = []placementv1beta1.PolicySnapshotObject{&placementv1beta1.ClusterSchedulingPolicySnapshot{ObjectMeta: *owned.DeepCopy(), Spec: placementv1beta1.SchedulingPolicySnapshotSpec{
		PolicyHash: []byte("74234e98afe7498fb5daf1f36ac2d78acc339464f950703b8c019892f982b90b"), // of no policy
	}}}
	snapshot := metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{Kind: "ClusterResourceSnapshot"}, ObjectMeta: *owned.DeepCopy()}
	snapshot.Name = "crp-0-snapshot"
	s.Resources = []metav1.PartialObjectMetadata{snapshot}
	for _, cluster := range []string{"a", "b"} {
		s.Members = append(s.Members, clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: cluster}})
		binding := fixture.Binding(cluster, 1)
		binding.Status.Conditions = []metav1.Condition{
			{Type: placementv1beta1.ConditionTypeAvailable, Status: metav1.ConditionTrue, ObservedGeneration: 1},
			{Type: placementv1beta1.ConditionTypeRolloutStarted, Status: metav1.ConditionTrue, ObservedGeneration: 1},
		}
		s.Bindings = append(s.Bindings, binding)
	}
	return s
}

func lease(holder string, at time.Time) *coordinationv1.Lease {
	renewed := metav1.NewMicroTime(at)
	return &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder, RenewTime: &renewed, LeaseDurationSeconds: new(int32(60))}}
}

func wrote(manager string, at time.Time) []metav1.ManagedFieldsEntry {
	return []metav1.ManagedFieldsEntry{{Manager: manager, Time: &metav1.Time{Time: at}}}
}

// reasons are the findings of a report as "weight reason".
func reasons(r *migration.Report) []string {
	found := []string{}
	for _, f := range r.Findings {
		found = append(found, string(f.Weight)+" "+f.Reason)
	}
	return found
}

func binding(s *migration.State, i int) *placementv1beta1.ClusterResourceBinding {
	return s.Bindings[i].(*placementv1beta1.ClusterResourceBinding)
}

func placement(s *migration.State) *placementv1beta1.ClusterResourcePlacement {
	return s.Placements[0].(*placementv1beta1.ClusterResourcePlacement)
}

func TestWhatStandsInTheWayOfAMove(t *testing.T) {
	for sentence, test := range map[string]struct {
		change func(*migration.State)
		want   []string
	}{
		"nothing on a hub that is whole":      {func(*migration.State) {}, []string{}},
		"KubeFleet's hub agent, by its lease": {func(s *migration.State) { s.KubeFleetLease = lease("theirs", now) }, []string{"InTheWay KubeFleetHubAgentRuns"}},
		"not a lease that has expired":        {func(s *migration.State) { s.KubeFleetLease = lease("theirs", now.Add(-time.Hour)) }, []string{}},
		"KubeFleet's hub agent without a lease, by what it wrote lately": {func(s *migration.State) {
			s.Members[1].ManagedFields = wrote(kubefleet.HubAgentManager, now.Add(-2*time.Minute))
		}, []string{"InTheWay KubeFleetHubAgentWrites"}},
		"not what it wrote while it held the lease that it has let go": {func(s *migration.State) {
			s.KubeFleetLease = lease("", now.Add(-2*time.Minute))
			s.Members[1].ManagedFields = wrote(kubefleet.HubAgentManager, now.Add(-2*time.Minute-time.Second))
		}, []string{}},
		"not what it wrote while it held the lease that has expired": {func(s *migration.State) {
			s.KubeFleetLease = lease("theirs", now.Add(-61*time.Second))
			s.Members[1].ManagedFields = wrote(kubefleet.HubAgentManager, now.Add(-50*time.Second))
		}, []string{}},
		"what it wrote after its lease had expired": {func(s *migration.State) {
			s.KubeFleetLease = lease("theirs", now.Add(-2*time.Minute))
			s.Members[1].ManagedFields = wrote(kubefleet.HubAgentManager, now.Add(-30*time.Second))
		}, []string{"InTheWay KubeFleetHubAgentWrites"}},
		"not what it wrote long ago": {func(s *migration.State) {
			s.Members[1].ManagedFields = wrote(kubefleet.HubAgentManager, now.Add(-time.Hour))
		}, []string{}},
		"a webhook that it has left": {func(s *migration.State) { s.Webhooks = []string{"mutatingwebhookconfiguration/fleet"} }, []string{"InTheWay KubeFleetWebhookRemains"}},
		"admission policies that it has left": {func(s *migration.State) {
			s.TheirPolicies = []string{"validatingadmissionpolicy/deny-pods"}
		}, []string{"InTheWay KubeFleetPolicyRemains"}},
		"its member agents are only told of": {func(s *migration.State) {
			s.Mailboxes = []clusterv1beta1.InternalMemberCluster{{ObjectMeta: metav1.ObjectMeta{ManagedFields: wrote(kubefleet.MemberAgentManager, now)}}}
		}, []string{"Note KubeFleetMemberAgentsRun"}},
		"a binding without labels": {func(s *migration.State) { binding(s, 0).Labels = nil }, []string{"InTheWay BindingWithoutPlacement"}},
		"a binding without labels whose policy snapshot tells": {func(s *migration.State) {
			binding(s, 0).Labels = nil
			binding(s, 0).Spec.SchedulingPolicySnapshotName = "crp-0"
		}, []string{}},
		"a binding that another placement owns": {func(s *migration.State) {
			binding(s, 0).OwnerReferences = []metav1.OwnerReference{{APIVersion: placementv1beta1.GroupVersion.String(), Kind: "ClusterResourcePlacement", Name: "other", UID: "other-uid"}}
		}, []string{"InTheWay BindingDisputed"}},
		"a binding of a placement that is gone": {func(s *migration.State) { binding(s, 0).Labels[placementv1beta1.ParentPlacementLabel] = "gone" }, []string{"InTheWay PlacementGone"}},
		"a binding of a cluster that is gone":   {func(s *migration.State) { s.Members = s.Members[1:] }, []string{"InTheWay ClusterGone"}},
		"two bindings of one cluster":           {func(s *migration.State) { binding(s, 0).Spec.TargetCluster = "b" }, []string{"InTheWay TwoBindings"}},
		"a snapshot part that is missing": {func(s *migration.State) {
			s.Resources[0].Annotations[placementv1beta1.NumberOfResourceSnapshotsAnnotation] = "2"
		}, []string{"InTheWay SnapshotIncomplete", "InTheWay SnapshotIncomplete"}},
		"a binding that was let go says nothing": {func(s *migration.State) {
			binding(s, 0).Spec.State, s.Members = placementv1beta1.BindingStateUnscheduled, s.Members[1:]
		}, []string{}},
		"removals that are held": {func(s *migration.State) {
			held := rules.NewHeldRemovals(placement(s), []rules.HeldRemoval{{Binding: "b"}})
			placement(s).Annotations = map[string]string{placementv1beta1.RemovalsHeldAnnotation: held.Encode()}
		}, []string{"InTheWay RemovalsHeld"}},
		"a loss of the selection that is held": {func(s *migration.State) {
			lost := snapshot.NewLoss(placementv1beta1.ReasonSelectionEmptied, 1, []snapshot.Identity{{GroupKind: snapshot.NamespaceKind, Name: "web"}})
			placement(s).Annotations = map[string]string{placementv1beta1.SelectionVerdictAnnotation: snapshot.Verdict{Generation: 1, Lost: lost}.Encode()}
		}, []string{"InTheWay RemovalsHeld"}},
		"a verdict that cannot be read": {func(s *migration.State) {
			placement(s).Annotations = map[string]string{placementv1beta1.SelectionVerdictAnnotation: "{"}
		}, []string{}},
		"a finalizer of others is only told of": {func(s *migration.State) { placement(s).Finalizers = []string{"example.com/keep"} }, []string{"Note UnknownFinalizer"}},
		"a field that the API does not have":    {func(s *migration.State) { s.Unknown["ClusterResourcePlacement/crp"] = []string{"spec.new"} }, []string{"NoCounterpart UnknownFields"}},
		"a kind of KubeFleet's own group": {func(s *migration.State) {
			s.TheirOwn = map[string][]string{"PlacementPolicy": {"team/mine"}}
		}, []string{"NoCounterpart KindUnknown"}},
		"a namespaced placement": {func(s *migration.State) {
			s.Placements = append(s.Placements, &placementv1beta1.ResourcePlacement{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "mine"}})
		}, []string{}},
		"a status in a namespace": {func(s *migration.State) {
			placement(s).Spec.StatusReportingScope = placementv1beta1.NamespaceAccessible
		}, []string{}},
		"a networking agent": {func(s *migration.State) {
			s.Members[0].Status.AgentStatus = []clusterv1beta1.AgentStatus{{Type: "MultiClusterServiceAgent"}}
		}, []string{"NoCounterpart NetworkingAgent"}},
	} {
		t.Run(sentence, func(t *testing.T) {
			state := hub()
			test.change(state)
			assert.Equal(t, test.want, reasons(migration.Check(state, now)))
		})
	}
}

func TestWhatIsUnderWay(t *testing.T) {
	run := func(reason, state string) *placementv1beta1.ClusterStagedUpdateRun {
		made := &placementv1beta1.ClusterStagedUpdateRun{ObjectMeta: metav1.ObjectMeta{Name: "run"}}
		made.Spec.State = placementv1beta1.UpdateRunState(state)
		made.Status.Conditions = []metav1.Condition{
			{Type: placementv1beta1.ConditionTypeInitialized, Status: metav1.ConditionTrue},
			{Type: placementv1beta1.ConditionTypeProgressing, Status: metav1.ConditionFalse, Reason: reason},
		}
		made.Status.StagesStatus = []placementv1beta1.StageUpdatingStatus{{StageName: "canary", Clusters: []placementv1beta1.ClusterUpdatingStatus{{ClusterName: "a"}, {ClusterName: "b"}}}}
		return made
	}
	for sentence, test := range map[string]struct {
		change func(*migration.State)
		want   []string
	}{
		"a run in a stage": {func(s *migration.State) {
			s.Runs = []placementv1beta1.UpdateRunObject{run(placementv1beta1.ReasonUpdateRunStarted, "Run")}
		}, []string{"in stage canary: 0 of 2 cluster(s) updated"}},
		"a run that was stopped": {func(s *migration.State) {
			s.Runs = []placementv1beta1.UpdateRunObject{run(placementv1beta1.ReasonUpdateRunStopped, "Stop")}
		}, []string{"stopped, in stage canary: 0 of 2 cluster(s) updated"}},
		"a run that is being stopped": {func(s *migration.State) {
			s.Runs = []placementv1beta1.UpdateRunObject{run(placementv1beta1.ReasonUpdateRunStopping, "Stop")}
		}, []string{"being stopped, in stage canary: 0 of 2 cluster(s) updated"}},
		"a run that waits for an approval, wherever in its stage": {func(s *migration.State) {
			for _, side := range stagetask.Sides() {
				waits := run(placementv1beta1.ReasonUpdateRunWaiting, "Run")
				task := placementv1beta1.StageTaskStatus{Type: placementv1beta1.StageTaskTypeApproval, ApprovalRequestName: "run-canary-" + string(side),
					Conditions: []metav1.Condition{{Type: placementv1beta1.ConditionTypeApprovalRequestCreated, Status: metav1.ConditionTrue}}}
				stage := &waits.Status.StagesStatus[0]
				switch side {
				case stagetask.Before:
					stage.BeforeStageTaskStatus = []placementv1beta1.StageTaskStatus{task}
				case stagetask.During:
					stage.DuringStageTaskStatus = []placementv1beta1.StageTaskStatus{task}
				case stagetask.After:
					stage.AfterStageTaskStatus = []placementv1beta1.StageTaskStatus{task}
				}
				s.Runs = append(s.Runs, waits)
			}
		}, []string{
			"stage canary waits for approval run-canary-beforeStage", "stage canary waits for approval run-canary-duringStage",
			"stage canary waits for approval run-canary-afterStage",
		}},
		"a cluster that is not available": {func(s *migration.State) { binding(s, 0).Status.Conditions = nil }, []string{"1 cluster(s) are not available yet"}},
		"clusters whose differences are reported are where they should be": {func(s *migration.State) {
			for i := range s.Bindings {
				binding(s, i).Status.Conditions = []metav1.Condition{{Type: placementv1beta1.ConditionTypeDiffReported, Status: metav1.ConditionTrue, ObservedGeneration: 1}}
			}
		}, nil},
	} {
		t.Run(sentence, func(t *testing.T) {
			state := hub()
			test.change(state)
			var said []string
			for _, u := range migration.Check(state, now).UnderWay {
				said = append(said, u.Where)
			}
			assert.Equal(t, test.want, said)
		})
	}
}

func TestFieldsThatKubeFleetDropsAreNamed(t *testing.T) {
	state := hub()
	state.Placements[0].GetPlacementSpec().Strategy = &placementv1beta1.RolloutStrategy{Suspension: &placementv1beta1.Suspension{All: true}}
	state.Placements[0].GetPlacementSpec().Policy = &placementv1beta1.PlacementPolicy{SchedulerName: "theirs"}
	state.Strategies = []placementv1beta1.UpdateStrategyObject{&placementv1beta1.ClusterStagedUpdateStrategy{Spec: placementv1beta1.UpdateStrategySpec{
		OnMembershipChange: "Continue", Stages: []placementv1beta1.StageConfig{{Name: "all", LabelSelector: &metav1.LabelSelector{}, Windows: []string{"night"}, ClusterDeadlineSeconds: new(int32(60))}},
	}}}
	state.Runs = []placementv1beta1.UpdateRunObject{&placementv1beta1.ClusterStagedUpdateRun{Spec: placementv1beta1.UpdateRunSpec{RollbackOf: "other", State: placementv1beta1.StateRun}}}
	var said []string
	for _, finding := range migration.CheckBack(state, now).Findings {
		if finding.Reason == "FieldsDropped" {
			said = append(said, finding.Message)
		}
	}
	assert.ElementsMatch(t, []string{
		"KubeFleet's CRDs drop spec.policy.schedulerName, spec.strategy.suspension",
		"KubeFleet's CRDs drop spec.onMembershipChange, spec.stages[].clusterDeadlineSeconds, spec.stages[].windows",
		"KubeFleet's CRDs drop spec.rollbackOf",
	}, said)
}

func TestWhatKubeFleetWouldNotAccept(t *testing.T) {
	run := &placementv1beta1.ClusterStagedUpdateRun{ObjectMeta: metav1.ObjectMeta{Name: "run"}, Spec: placementv1beta1.UpdateRunSpec{PlacementName: "crp"}}
	for sentence, test := range map[string]struct {
		change func(*migration.State)
		want   []string
	}{
		"nothing of a hub that is whole": {func(*migration.State) {}, []string{}},
		"our hub agent beside its own":   {func(s *migration.State) { s.OurLease = lease("ours", now) }, []string{"InTheWay HubAgentRuns"}},
		"our admission policies":         {func(s *migration.State) { s.Policies = []string{"validatingadmissionpolicy/fleet"} }, []string{"InTheWay PolicyRemains"}},
		"a run under way":                {func(s *migration.State) { s.Runs = []placementv1beta1.UpdateRunObject{run} }, []string{"InTheWay RunUnderWay"}},
		"a stage without a selector": {func(s *migration.State) {
			s.Strategies = []placementv1beta1.UpdateStrategyObject{&placementv1beta1.ClusterStagedUpdateStrategy{Spec: placementv1beta1.UpdateStrategySpec{Stages: []placementv1beta1.StageConfig{{Name: "all"}}}}}
		}, []string{"InTheWay StageWithoutSelector"}},
		"fields of ours": {func(s *migration.State) {
			s.Strategies = []placementv1beta1.UpdateStrategyObject{&placementv1beta1.ClusterStagedUpdateStrategy{Spec: placementv1beta1.UpdateStrategySpec{
				OnMembershipChange: "Continue", Stages: []placementv1beta1.StageConfig{{Name: "all", LabelSelector: &metav1.LabelSelector{}, ClusterDeadlineSeconds: new(int32(60))}},
			}}}
		}, []string{"NoCounterpart FieldsDropped"}},
		"no latest policy snapshot": {func(s *migration.State) { s.Policy[0].GetLabels()[placementv1beta1.IsLatestSnapshotLabel] = "false" }, []string{"InTheWay NotOneLatest"}},
		"two latest resource snapshots": {func(s *migration.State) {
			s.Resources = append(s.Resources, *s.Resources[0].DeepCopy())
		}, []string{"InTheWay NotOneLatest"}},
		"a snapshot without an index": {func(s *migration.State) { delete(s.Resources[0].Labels, placementv1beta1.ResourceIndexLabel) }, []string{"InTheWay SnapshotWithoutIndex"}},
		"a snapshot without a hash": {func(s *migration.State) {
			delete(s.Resources[0].Annotations, placementv1beta1.ResourceGroupHashAnnotation)
		}, []string{"InTheWay NotOneLatest", "InTheWay SnapshotWithoutHash"}},
		"another hash of the policy": {func(s *migration.State) {
			s.Policy[0].GetPolicySnapshotSpec().PolicyHash = []byte("ours")
		}, []string{"Note PolicyHashDiffers"}},
		"another hash of what is selected": {func(s *migration.State) {
			s.Hashes = map[string]string{"/crp-0-snapshot": "other"}
		}, []string{"Note SnapshotHashDiffers"}},
		"the hash of what is selected that it has itself": {func(s *migration.State) {
			s.Hashes = map[string]string{"/crp-0-snapshot": "h"}
		}, []string{}},
		"a state that it does not know":   {func(s *migration.State) { binding(s, 0).Spec.State = "Held" }, []string{"InTheWay StateUnknown"}},
		"a rollout of another generation": {func(s *migration.State) { binding(s, 0).Generation = 2 }, []string{"Note RolloutNotStarted"}},
		"Abandon": {func(s *migration.State) {
			placement(s).Spec.Strategy = &placementv1beta1.RolloutStrategy{DeleteStrategy: &placementv1beta1.DeleteStrategy{PropagationPolicy: placementv1beta1.DeletePropagationPolicyAbandon}}
		}, []string{"NoCounterpart AbandonNotDone"}},
	} {
		t.Run(sentence, func(t *testing.T) {
			state := hub()
			test.change(state)
			assert.Equal(t, test.want, reasons(migration.CheckBack(state, now)))
		})
	}
}

func TestWhatIsWrittenOnTheWayBack(t *testing.T) {
	changed := func(name, fields string) metav1.PartialObjectMetadata {
		return metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: "fleet-member-a", Labels: map[string]string{placementv1beta1.ParentPlacementLabel: "crp"},
			Annotations: map[string]string{
				placementv1beta1.ParentResourceSnapshotNameAnnotation: "crp-0-snapshot", placementv1beta1.ParentClusterResourceOverrideSnapshotHashAnnotation: "h",
			},
			ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "hub-agent", FieldsV1: metav1.NewFieldsV1(fields)}},
		}}
	}
	state := hub()
	for _, binding := range state.Bindings {
		binding.SetFinalizers([]string{placementv1beta1.SchedulerBindingFinalizer})
	}
	placement(state).Finalizers = append(placement(state).Finalizers, placementv1beta1.SchedulerCleanupFinalizer)
	state.Works = []metav1.PartialObjectMetadata{changed("signed", `{"f:metadata":{}}`), changed("changed", `{"f:metadata":{},"f:spec":{}}`)}
	onMembers := migration.Writes{Kind: "work", Count: 1, On: "members", What: "its content was written by fleetflow: its Secrets, what an earlier version has applied, and what is applied server-side with labels or annotations of Kubernetes' domains, are written once more, metadata only"}

	assert.Equal(t, []migration.Writes{onMembers}, migration.CheckBack(state, now).Writes)
	state.Hashes = map[string]string{"/crp-0-snapshot": "other"}
	report := migration.CheckBack(state, now)
	assert.Equal(t, []migration.Writes{
		{Kind: "placement", Count: 1, On: "hub", What: "gets a resource snapshot of KubeFleet's own, with the content that the latest has"},
		{Kind: "binding", Count: 2, On: "hub", What: "rolled out again with that snapshot, as the strategy of its placement has it, and its Works written"},
		onMembers,
	}, report.Writes)
	assert.Equal(t, 2, report.Placements[0].RolledOutAgain)
	assert.Equal(t, 2, report.Total.RolledOutAgain)
	assert.Contains(t, report.Of(migration.Note)[0].Message, "rolls it out to its 2 cluster(s) again")

	placement(state).Spec.Strategy = &placementv1beta1.RolloutStrategy{Type: placementv1beta1.ExternalRolloutStrategyType}
	report = migration.CheckBack(state, now)
	assert.Zero(t, report.Total.RolledOutAgain, "no run takes it to them")
	assert.Contains(t, report.Of(migration.Note)[0].Message, "the next run takes it to its 2 cluster(s)")
}
