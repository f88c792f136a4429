//go:build integration

package integration

import (
	"fmt"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// externalInTeam places the spec's namespace everywhere, creates an External placement of the ConfigMaps in it, and waits
// until resource snapshot 0 exists and the clusters are picked.
func (s *spec) externalInTeam(options ...placementOption) {
	s.Helper()
	s.namespaceWithConfigMap()
	s.placeNamespaceAlone()
	s.placeInTeam(append([]placementOption{external}, options...)...)
	s.awaitTeamPlacement(placementv1beta1.ConditionTypeScheduled, "0")
}

// teamStrategy creates a strategy in the spec's namespace.
func (s *spec) teamStrategy(name string, stages ...placementv1beta1.StageConfig) {
	s.Helper()
	s.create(&placementv1beta1.StagedUpdateStrategy{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: s.name}, Spec: placementv1beta1.UpdateStrategySpec{Stages: stages},
	})
}

// teamRun is a run, in the spec's namespace, of the placement of teamPlacement.
func (s *spec) teamRun(name, strategy, index string) *placementv1beta1.StagedUpdateRun {
	return &placementv1beta1.StagedUpdateRun{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: s.name},
		Spec:       placementv1beta1.UpdateRunSpec{PlacementName: "web", ResourceSnapshotIndex: index, StagedUpdateStrategyName: strategy},
	}
}

// awaitTeamRun waits until a condition of a run in the spec's namespace has a status and a reason.
func (s *spec) awaitTeamRun(name, condition string, status metav1.ConditionStatus, reason string) *placementv1beta1.StagedUpdateRun {
	s.Helper()
	return await(s, s.hub, s.teamRun(name, "", ""), fmt.Sprintf("to be %s=%s (%s)", condition, status, reason), func(r *placementv1beta1.StagedUpdateRun) error {
		c := meta.FindStatusCondition(r.Status.Conditions, condition)
		if c == nil || c.Status != status || c.Reason != reason {
			return fmt.Errorf("its conditions are %s", spoken(r.Status.Conditions))
		}
		return nil
	})
}

func (s *spec) awaitTeamRunSucceeded(name string) *placementv1beta1.StagedUpdateRun {
	s.Helper()
	return s.awaitTeamRun(name, placementv1beta1.ConditionTypeSucceeded, metav1.ConditionTrue, placementv1beta1.ReasonUpdateRunSucceeded)
}

// awaitTeamRequest waits until a stage of a run in the spec's namespace asks for an approval.
func (s *spec) awaitTeamRequest(name, run, stage string) *placementv1beta1.ApprovalRequest {
	s.Helper()
	request := &placementv1beta1.ApprovalRequest{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: s.name}}
	return await(s, s.hub, request, "to be made", func(r *placementv1beta1.ApprovalRequest) error {
		require.Equal(s, run, r.Spec.TargetUpdateRun)
		require.Equal(s, stage, r.Spec.TargetStage)
		return nil
	})
}

// requireLacking asserts that members have no ConfigMap of the spec.
func (s *spec) requireLacking(names ...string) {
	s.Helper()
	for _, name := range names {
		err := s.member(name).Get(s.Context(), client.ObjectKeyFromObject(s.configMap("")), &corev1.ConfigMap{})
		require.NoError(s, client.IgnoreNotFound(err))
		require.Error(s, err, "the ConfigMap must not be on %s", name)
	}
}

func namespacedRunIsSteered(s *spec) {
	s.externalInTeam()
	s.teamStrategy("gated", staging(soak(soakTime), approval), canary())
	bindings := s.record(s.hub, &placementv1beta1.ResourceBinding{}, client.InNamespace(s.name))
	in := []string{"-n", s.name}
	steer := func(args ...string) string {
		s.Helper()
		return s.steer(append(args, in...)...)
	}
	require.Contains(s, steer("run", "rp/web", "--strategy", "gated", "--index", "0"), "web-1 created")
	request := s.awaitTeamRequest("web-1-staging", "web-1", "staging")
	require.Equal(s, "web-1", request.Labels[placementv1beta1.TargetUpdateRunLabel])
	s.awaitValue(value1, "member-2")
	s.requireLacking("member-1", "member-3")
	require.Contains(s, steer("status", "run/web-1"), "staging")

	steer("stop", "run/web-1")
	s.awaitTeamRun("web-1", placementv1beta1.ConditionTypeProgressing, metav1.ConditionFalse, placementv1beta1.ReasonUpdateRunStopped)
	require.Contains(s, steer("approve", "run/web-1", "--stage", "staging", "--comment", "lgtm"), "approved")
	s.requireLacking("member-1", "member-3")
	steer("resume", "run/web-1")
	ended := s.awaitTeamRunSucceeded("web-1")
	s.awaitClosed(wf.UpdateRunID(s.name, "web-1"))
	require.Equal(s, "updaterun/"+s.name+"/web-1", wf.UpdateRunID(s.name, "web-1"))
	s.awaitValue(value1, allMembers...)
	initialized := meta.FindStatusCondition(ended.Status.Conditions, placementv1beta1.ConditionTypeInitialized)
	require.Equal(s, "StagedUpdateRun initialized successfully", initialized.Message)
	await(s, s.hub, request.DeepCopy(), "to say who approved", func(r *placementv1beta1.ApprovalRequest) error {
		if r.Status.Approval == nil || !meta.IsStatusConditionTrue(r.Status.Conditions, placementv1beta1.ConditionTypeApprovalAccepted) {
			return fmt.Errorf("it says %+v, %s", r.Status.Approval, spoken(r.Status.Conditions))
		}
		return nil
	})
	newest := uint64(0)
	for _, b := range s.teamBindings() {
		newest = max(newest, revisionOf(b))
	}
	started := writes(bindings.upTo(s, newest), bindings.initial)
	require.Equal(s, []string{"member-2", "member-3", "member-1"}, started, "order of the clusters")
	s.awaitTeamPlacement(placementv1beta1.ConditionTypeAvailable, "0")

	s.changeTo(value2)
	await(s, s.hub, &placementv1beta1.ResourceSnapshot{ObjectMeta: metav1.ObjectMeta{Name: "web-1-snapshot", Namespace: s.name}}, "to be taken",
		func(*placementv1beta1.ResourceSnapshot) error { return nil })
	s.teamStrategy("at-once", everywhere())
	steer("run", "rp/web", "--strategy", "at-once", "--name", "second")
	s.awaitTeamRunSucceeded("second")
	s.awaitValue(value2, allMembers...)
	steer("rollback", "run/second", "--yes")
	s.awaitTeamRunSucceeded("second-rollback")
	s.awaitValue(value1, allMembers...)
	require.Contains(s, s.steer("get", "runs", "-n", s.name), "second-rollback")
	require.Contains(s, s.steer("get", "runs", "-A"), "second-rollback")

	s.delete(s.hub, s.teamRun("web-1", "", ""))
	awaitGone(s, s.hub, s.teamRun("web-1", "", ""))
	awaitGone(s, s.hub, request)
}

func (s *spec) teamBindings() []*placementv1beta1.ResourceBinding {
	s.Helper()
	list := &placementv1beta1.ResourceBindingList{}
	require.NoError(s, s.hub.List(s.Context(), list, client.InNamespace(s.name)))
	all := make([]*placementv1beta1.ResourceBinding, len(list.Items))
	for i := range list.Items {
		all[i] = &list.Items[i]
	}
	return all
}

// namespacedRunSkipsAndRetries has a ConfigMap on member-2 that the placement may not take over.
func namespacedRunSkipsAndRetries(s *spec) {
	s.externalInTeam(func(p *placementv1beta1.PlacementSpec) {
		p.Strategy.ApplyStrategy = &placementv1beta1.ApplyStrategy{WhenToTakeOver: placementv1beta1.WhenToTakeOverTypeNever}
	})
	require.NoError(s, s.member("member-2").Create(s.Context(), s.configMap("theirs")))
	s.teamStrategy("two", staging(), canary())
	s.create(s.teamRun("web-1", "two", "0"))
	await(s, s.hub, s.teamRun("web-1", "", ""), "to have started member-2", func(r *placementv1beta1.StagedUpdateRun) error {
		if len(r.Status.StagesStatus) == 0 || !meta.IsStatusConditionTrue(r.Status.StagesStatus[0].Clusters[0].Conditions, placementv1beta1.ConditionTypeStarted) {
			return fmt.Errorf("its stages are %+v", r.Status.StagesStatus)
		}
		return nil
	})
	s.steer("retry", "run/web-1", "member-2", "-n", s.name)
	s.steer("skip", "run/web-1", "member-2", "--yes", "-n", s.name)
	s.awaitTeamRunSucceeded("web-1")
	s.awaitValue(value1, "member-1", "member-3")
	s.awaitValue("theirs", "member-2")
}

func namespacedRunNamesItsOwn(s *spec) {
	s.externalInTeam()
	other := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.name + "-other"}}
	s.create(other)
	foreign := &placementv1beta1.StagedUpdateStrategy{
		ObjectMeta: metav1.ObjectMeta{Name: "foreign", Namespace: other.Name},
		Spec:       placementv1beta1.UpdateStrategySpec{Stages: []placementv1beta1.StageConfig{everywhere()}},
	}
	s.create(foreign)
	s.strategy(everywhere()) // a cluster-scoped one
	for name, bad := range map[string]struct{ placement, strategy, message string }{
		"of-another-namespace": {"web", "foreign", "referenced stagedUpdateStrategy not found: `foreign`"},
		"by-its-path":          {"web", other.Name + "/foreign", "referenced stagedUpdateStrategy not found: `" + other.Name + "/foreign`"},
		"cluster-scoped":       {"web", s.name, "referenced stagedUpdateStrategy not found: `" + s.name + "`"},
		"of-a-cluster-scoped":  {s.name, "foreign", "parent resourcePlacement not found"},
		"by-path":              {"../" + s.name, "foreign", "parent resourcePlacement not found"},
	} {
		run := s.teamRun(name, bad.strategy, "0")
		run.Spec.PlacementName = bad.placement
		s.create(run)
		ended := s.awaitTeamRun(name, placementv1beta1.ConditionTypeInitialized, metav1.ConditionFalse, placementv1beta1.ReasonUpdateRunInitializedFailed)
		c := meta.FindStatusCondition(ended.Status.Conditions, placementv1beta1.ConditionTypeInitialized)
		require.Contains(s, c.Message, "cannot continue the StagedUpdateRun: failed to initialize the stagedUpdateRun")
		require.Contains(s, c.Message, bad.message)
	}
	s.requireLacking(allMembers...)
}

func namespaceDeletedInTheMiddleOfARun(s *spec) {
	s.externalInTeam()
	s.teamStrategy("gated", staging(approval), canary())
	s.create(s.teamRun("web-1", "gated", "0"))
	s.awaitTeamRequest("web-1-staging", "web-1", "staging")
	s.endTeam()
	s.awaitClosed(wf.UpdateRunID(s.name, "web-1"))
	s.awaitValue(value1, "member-2")
	s.steer("migrate", "accept", "web", "-n", s.name, "--yes")
	awaitGone(s, s.hub, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.name}})
	s.requireLacking(allMembers...)
	s.awaitClosed(wf.PlacementID(s.name, "web"))
	works := &placementv1beta1.WorkList{}
	require.NoError(s, s.hub.List(s.Context(), works, client.MatchingLabels{placementv1beta1.ParentNamespaceLabel: s.name}))
	require.Empty(s, works.Items)
}

func memberLosesTheNamespaceInTheMiddleOfARun(s *spec) {
	s.externalInTeam()
	s.teamStrategy("gated", staging(approval), canary())
	s.create(s.teamRun("web-1", "gated", "0"))
	s.awaitTeamRequest("web-1-staging", "web-1", "staging")
	s.delete(s.member("member-2"), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.name}})
	s.awaitValue(value1, "member-2") // the namespace comes back with its placement, and the ConfigMap with its own
	s.steer("approve", "run/web-1", "--stage", "staging", "-n", s.name)
	s.awaitTeamRunSucceeded("web-1")
	s.awaitValue(value1, allMembers...)
}

func statusIsCopiedIntoTheNamespace(s *spec) {
	s.namespaceWithConfigMap()
	s.place(func(p *placementv1beta1.PlacementSpec) { p.StatusReportingScope = placementv1beta1.NamespaceAccessible })
	copied := &placementv1beta1.ClusterResourcePlacementStatus{ObjectMeta: metav1.ObjectMeta{Name: s.name, Namespace: s.name}}
	inStep := func(index string) {
		s.Helper()
		placed := s.awaitAvailable(index)
		await(s, s.hub, copied.DeepCopy(), "to be in step", func(c *placementv1beta1.ClusterResourcePlacementStatus) error {
			if err := isTrue(c.SourceStatus.Conditions, ofPlacement(placementv1beta1.ConditionTypeAvailable), placed.Generation); err != nil {
				return err
			}
			if c.SourceStatus.ObservedResourceIndex != index {
				return fmt.Errorf("it has index %s", c.SourceStatus.ObservedResourceIndex)
			}
			return nil
		})
		synced := meta.FindStatusCondition(placed.Status.Conditions, ofPlacement("StatusSynced"))
		require.NotNil(s, synced)
		require.Equal(s, "StatusSyncSucceeded", synced.Reason)
	}
	inStep("0")
	s.changeTo(value2)
	inStep("1")

	s.delete(s.hub, copied)
	inStep("1") // one that is deleted comes back

	update(s, s.hub, s.placement(), func(p *placementv1beta1.ClusterResourcePlacement) {
		p.Spec.ResourceSelectors[0].Name = s.name + "-other"
	})
	await(s, s.hub, s.placement(), "to refuse another namespace", func(p *placementv1beta1.ClusterResourcePlacement) error {
		c := meta.FindStatusCondition(p.Status.Conditions, ofPlacement("Scheduled"))
		if c == nil || c.Reason != placementv1beta1.ReasonInvalidResourceSelectors {
			return fmt.Errorf("it says %+v", c)
		}
		require.Contains(s, c.Message, "the selected namespace cannot change")
		return nil
	})
	s.delete(s.hub, s.placement())
	awaitGone(s, s.hub, copied)
}
