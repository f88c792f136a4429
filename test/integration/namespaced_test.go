//go:build integration

package integration

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/test/devfleet/state"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// team is the scope of the spec's namespace.
func (s *spec) team() placementv1beta1.Scope { return placementv1beta1.Scope{Namespace: s.name} }

// teamPlacement is a placement, in the spec's namespace, of the ConfigMaps there.
func (s *spec) teamPlacement(options ...placementOption) *placementv1beta1.ResourcePlacement {
	placement := &placementv1beta1.ResourcePlacement{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: s.name},
		Spec: placementv1beta1.PlacementSpec{
			ResourceSelectors: []placementv1beta1.ResourceSelectorTerm{{Version: "v1", Kind: "ConfigMap"}},
			Policy:            &placementv1beta1.PlacementPolicy{PlacementType: placementv1beta1.PickAllPlacementType},
		},
	}
	for _, option := range options {
		option(&placement.Spec)
	}
	return placement
}

// placeInTeam creates the placement of teamPlacement.
func (s *spec) placeInTeam(options ...placementOption) *placementv1beta1.ResourcePlacement {
	s.Helper()
	placement := s.teamPlacement(options...)
	s.create(placement)
	return placement
}

// placeNamespaceAlone has the spec's namespace placed everywhere, without what is in it.
func (s *spec) placeNamespaceAlone() *placementv1beta1.ClusterResourcePlacement {
	s.Helper()
	placement := s.place(selecting(placementv1beta1.ResourceSelectorTerm{
		Version: "v1", Kind: "Namespace", Name: s.name, SelectionScope: placementv1beta1.NamespaceOnly,
	}))
	s.awaitAvailable("0")
	return placement
}

// awaitTeamPlacement waits until a condition of the placement of teamPlacement is true with a resource snapshot.
func (s *spec) awaitTeamPlacement(condition, index string) *placementv1beta1.ResourcePlacement {
	s.Helper()
	return await(s, s.hub, s.teamPlacement(), "to be "+condition+" with resource index "+index, func(p *placementv1beta1.ResourcePlacement) error {
		if p.Status.ObservedResourceIndex != index {
			return fmt.Errorf("it observes resource index %q", p.Status.ObservedResourceIndex)
		}
		return isTrue(p.Status.Conditions, s.team().PlacementConditionType(condition), p.Generation)
	})
}

// inTeam are the words of a cluster-scoped condition for the spec's namespace.
func inTeam(all []said) []said {
	all = slices.Clone(all)
	for i := range all {
		all[i].Type = strings.TrimPrefix(all[i].Type, "Cluster")
	}
	return all
}

func resourcePlacementPlacesItsNamespace(s *spec) {
	s.namespaceWithConfigMap()
	s.create(s.deployment())
	other := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.name + "-other"}}
	s.create(other)
	s.create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: configMapName, Namespace: other.Name}})
	s.placeNamespaceAlone()
	s.placeInTeam(selecting(
		placementv1beta1.ResourceSelectorTerm{Version: "v1", Kind: "ConfigMap"},
		placementv1beta1.ResourceSelectorTerm{Group: "apps", Version: "v1", Kind: "Deployment", Name: "web"},
	))

	placed := s.awaitTeamPlacement(placementv1beta1.ConditionTypeAvailable, "0")
	s.requireConditions(placed.Status.Conditions, placed.Generation, inTeam(availableConditions(members))...)
	require.Len(s, placed.Status.PerClusterPlacementStatuses, members)
	require.ElementsMatch(s, []placementv1beta1.ResourceIdentifier{
		{Version: "v1", Kind: "ConfigMap", Namespace: s.name, Name: configMapName},
		{Group: "apps", Version: "v1", Kind: "Deployment", Namespace: s.name, Name: "web"},
	}, placed.Status.SelectedResources, "what is in its namespace, and not the namespace")
	s.awaitValue(value1, allMembers...)
	for _, m := range s.members {
		var deployment appsv1.Deployment
		require.NoError(s, m.Get(s.Context(), client.ObjectKeyFromObject(s.deployment()), &deployment))
		require.EqualValues(s, 2, deployment.Status.AvailableReplicas, "replicas on %s", m.name)
		require.True(s, apierrors.IsNotFound(m.Get(s.Context(), client.ObjectKeyFromObject(other), &corev1.Namespace{})), "another namespace on %s", m.name)
		var work placementv1beta1.Work
		key := client.ObjectKey{Namespace: placementv1beta1.MemberNamespace(m.name), Name: s.name + ".web-work"}
		require.NoError(s, s.hub.Get(s.Context(), key, &work))
		require.Equal(s, s.name, work.Labels[placementv1beta1.ParentNamespaceLabel])
	}

	s.changeTo(value2)
	s.awaitValue(value2, allMembers...)
	s.awaitTeamPlacement(placementv1beta1.ConditionTypeAvailable, "1")

	s.delete(s.hub, s.teamPlacement())
	awaitGone(s, s.hub, s.teamPlacement())
	for _, m := range s.members {
		require.True(s, apierrors.IsNotFound(m.Get(s.Context(), client.ObjectKeyFromObject(s.configMap("")), &corev1.ConfigMap{})), "the ConfigMap on %s", m.name)
		require.NoError(s, m.Get(s.Context(), client.ObjectKey{Name: s.name}, &corev1.Namespace{}), "the namespace is another placement's")
	}
	for _, list := range []client.ObjectList{
		s.team().NewBindingList(), s.team().NewPolicySnapshotList(), s.team().NewResourceSnapshotList(),
	} {
		require.NoError(s, s.hub.List(s.Context(), list, client.InNamespace(s.name)))
		require.Zero(s, meta.LenList(list), "%T", list)
	}
}

func missingNamespaceOnAMemberHeals(s *spec) {
	s.namespaceWithConfigMap()
	s.placeInTeam()
	await(s, s.hub, s.teamPlacement(), "to say that the namespace is missing", func(p *placementv1beta1.ResourcePlacement) error {
		for _, entry := range p.Status.PerClusterPlacementStatuses {
			if len(entry.FailedPlacements) != 1 {
				return fmt.Errorf("on %s it names %+v", entry.ClusterName, entry.FailedPlacements)
			}
			require.Contains(s, entry.FailedPlacements[0].Condition.Message, fmt.Sprintf("namespaces %q not found", s.name))
		}
		return has(p.Status.Conditions, s.team().PlacementConditionType(placementv1beta1.ConditionTypeApplied), metav1.ConditionFalse, p.Generation)
	})
	s.placeNamespaceAlone()
	s.awaitTeamPlacement(placementv1beta1.ConditionTypeAvailable, "0")
	s.awaitValue(value1, allMembers...)
}

func placementsOfBothKindsDoNotShareAnObject(s *spec) {
	s.namespaceWithConfigMap()
	first := s.place()
	s.awaitAvailable("0")
	s.placeInTeam()
	await(s, s.hub, s.teamPlacement(), "to be refused everywhere", func(p *placementv1beta1.ResourcePlacement) error {
		if len(p.Status.PerClusterPlacementStatuses) != members {
			return fmt.Errorf("it tells of %d clusters", len(p.Status.PerClusterPlacementStatuses))
		}
		for _, entry := range p.Status.PerClusterPlacementStatuses {
			if len(entry.FailedPlacements) != 1 {
				return fmt.Errorf("on %s it names %+v", entry.ClusterName, entry.FailedPlacements)
			}
			require.Equal(s, "ApplyConflictBetweenPlacements", entry.FailedPlacements[0].Condition.Reason)
			require.Contains(s, entry.FailedPlacements[0].Condition.Message, "placement "+s.name)
		}
		return nil
	})
	// The namespace stays, its content is the team's from now on.
	update(s, s.hub, first, func(p *placementv1beta1.ClusterResourcePlacement) {
		p.Spec.ResourceSelectors[0].SelectionScope = placementv1beta1.NamespaceOnly
	})
	s.awaitTeamPlacement(placementv1beta1.ConditionTypeAvailable, "0")
	s.awaitValue(value1, allMembers...)
}

// worksOfOneNameAreToldApart has a ClusterResourcePlacement whose Work has the name that the Work of a ResourcePlacement
// wants.
func worksOfOneNameAreToldApart(s *spec) {
	s.namespaceWithConfigMap()
	alone := s.placement(selecting(placementv1beta1.ResourceSelectorTerm{
		Version: "v1", Kind: "Namespace", Name: s.name, SelectionScope: placementv1beta1.NamespaceOnly,
	}))
	alone.Name = s.name + ".web"
	s.create(alone)
	s.Cleanup(func() { _ = s.hub.Delete(s.Context(), alone) })
	await(s, s.hub, alone.DeepCopy(), "to be available", func(p *placementv1beta1.ClusterResourcePlacement) error {
		return isTrue(p.Status.Conditions, ofPlacement(placementv1beta1.ConditionTypeAvailable), p.Generation)
	})
	s.placeInTeam()
	await(s, s.hub, s.teamPlacement(), "to say that its Work is another's", func(p *placementv1beta1.ResourcePlacement) error {
		for _, entry := range p.Status.PerClusterPlacementStatuses {
			c := meta.FindStatusCondition(entry.Conditions, placementv1beta1.ConditionTypeWorkSynchronized)
			if c == nil || c.Status != metav1.ConditionFalse {
				return fmt.Errorf("on %s: %s", entry.ClusterName, spoken(entry.Conditions))
			}
			require.Contains(s, c.Message, s.name+".web-work belongs to ClusterResourcePlacement "+alone.Name)
		}
		if len(p.Status.PerClusterPlacementStatuses) != members {
			return errors.New("not of all clusters")
		}
		return nil
	})
	for _, m := range s.members {
		require.NoError(s, m.Get(s.Context(), client.ObjectKey{Name: s.name}, &corev1.Namespace{}), "on %s the first keeps what it has placed", m.name)
	}
	s.delete(s.hub, alone)
	awaitGone(s, s.hub, alone.DeepCopy())
	s.place(selecting(alone.Spec.ResourceSelectors...))
	s.awaitTeamPlacement(placementv1beta1.ConditionTypeAvailable, "0")
}

// selectorsBeyondTheNamespace are what a ResourcePlacement cannot select, and what it says then.
var selectorsBeyondTheNamespace = map[string]placementv1beta1.ResourceSelectorTerm{
	"selects ClusterRole (rbac.authorization.k8s.io/v1), which is cluster-scoped": {Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"},
	"selects Work (placement.kubernetes-fleet.io/v1beta1), a kind that is never placed": {
		Group: "placement.kubernetes-fleet.io", Version: "v1beta1", Kind: "Work"},
	"selects ClusterResourceEnvelope (placement.kubernetes-fleet.io/v1beta1), which is cluster-scoped": {
		Group: "placement.kubernetes-fleet.io", Version: "v1beta1", Kind: "ClusterResourceEnvelope"},
}

func resourcePlacementSelectsNothingElse(s *spec) {
	s.namespaceWithConfigMap()
	i := 0
	for message, term := range selectorsBeyondTheNamespace {
		placement := s.teamPlacement(selecting(term))
		i++
		placement.Name = fmt.Sprintf("beyond-%d", i)
		s.create(placement)
		await(s, s.hub, placement, "to be refused: "+message, func(p *placementv1beta1.ResourcePlacement) error {
			c := meta.FindStatusCondition(p.Status.Conditions, s.team().PlacementConditionType(placementv1beta1.ConditionTypeScheduled))
			if c == nil || c.Reason != placementv1beta1.ReasonInvalidResourceSelectors || !strings.Contains(c.Message, message) {
				return fmt.Errorf("it says %+v", c)
			}
			return nil
		})
	}
}

// awaitInTeamOnCluster waits until the placement of teamPlacement says something of a cluster.
func (s *spec) awaitInTeamOnCluster(cluster, what string, ok func(*placementv1beta1.PerClusterPlacementStatus) error) {
	s.Helper()
	await(s, s.hub, s.teamPlacement(), "to say of "+cluster+" "+what, func(p *placementv1beta1.ResourcePlacement) error {
		for i := range p.Status.PerClusterPlacementStatuses {
			if entry := &p.Status.PerClusterPlacementStatuses[i]; entry.ClusterName == cluster {
				return ok(entry)
			}
		}
		return fmt.Errorf("it says nothing of it")
	})
}

// awaitTeamClusters waits until the placement of teamPlacement is available on just these clusters.
func (s *spec) awaitTeamClusters(want ...string) {
	s.Helper()
	await(s, s.hub, s.teamPlacement(), fmt.Sprintf("to be on %v", want), func(p *placementv1beta1.ResourcePlacement) error {
		names := make([]string, len(p.Status.PerClusterPlacementStatuses))
		for i, entry := range p.Status.PerClusterPlacementStatuses {
			names[i] = entry.ClusterName
		}
		if slices.Sort(names); !slices.Equal(names, want) {
			return fmt.Errorf("it is on %v", names)
		}
		return isTrue(p.Status.Conditions, s.team().PlacementConditionType(placementv1beta1.ConditionTypeAvailable), p.Generation)
	})
	s.awaitValue(value1, want...)
}

// namespacedPlacementTellsDrifts has a value of the ConfigMap changed on a member, and the placement compare before it applies,
// then report differences only.
func namespacedPlacementTellsDrifts(s *spec) {
	s.namespaceWithConfigMap()
	s.placeNamespaceAlone()
	s.placeInTeam(applying(placementv1beta1.ApplyStrategy{WhenToApply: placementv1beta1.WhenToApplyTypeIfNotDrifted}))
	s.awaitTeamPlacement(placementv1beta1.ConditionTypeAvailable, "0")
	theirs := placementv1beta1.PatchDetail{Path: "/data/key", ValueInHub: value1, ValueInMember: "theirs"}
	update(s, s.member("member-1"), s.configMap(""), func(c *corev1.ConfigMap) { c.Data["key"] = "theirs" })
	s.awaitInTeamOnCluster("member-1", "that the ConfigMap has drifted", func(entry *placementv1beta1.PerClusterPlacementStatus) error {
		if len(entry.DriftedPlacements) != 1 || len(entry.FailedPlacements) != 1 {
			return fmt.Errorf("it names %+v, %+v", entry.DriftedPlacements, entry.FailedPlacements)
		}
		require.Equal(s, s.name, entry.DriftedPlacements[0].Namespace)
		require.Equal(s, []placementv1beta1.PatchDetail{theirs}, entry.DriftedPlacements[0].ObservedDrifts)
		require.Contains(s, entry.FailedPlacements[0].Condition.Message, foundDrifts)
		return nil
	})

	update(s, s.hub, s.teamPlacement(), func(p *placementv1beta1.ResourcePlacement) { applying(reportDiff)(&p.Spec) })
	s.awaitInTeamOnCluster("member-1", "how the ConfigMap differs", func(entry *placementv1beta1.PerClusterPlacementStatus) error {
		if len(entry.DiffedPlacements) != 1 {
			return fmt.Errorf("it names %+v", entry.DiffedPlacements)
		}
		require.Equal(s, []placementv1beta1.PatchDetail{theirs}, entry.DiffedPlacements[0].ObservedDiffs)
		return nil
	})
	reported := s.awaitTeamPlacement(placementv1beta1.ConditionTypeDiffReported, "0")
	c := meta.FindStatusCondition(reported.Status.Conditions, s.team().PlacementConditionType(placementv1beta1.ConditionTypeDiffReported))
	require.Equal(s, "Diff reporting in 3 cluster(s) has been completed", c.Message)
	s.awaitValue("theirs", "member-1")

	update(s, s.hub, s.teamPlacement(), func(p *placementv1beta1.ResourcePlacement) { applying(placementv1beta1.ApplyStrategy{})(&p.Spec) })
	s.awaitTeamPlacement(placementv1beta1.ConditionTypeAvailable, "0")
	s.awaitValue(value1, allMembers...)
}

// namespacedPlacementPicksSome grows, shrinks, and is deleted with what it placed left behind.
func namespacedPlacementPicksSome(s *spec) {
	s.namespaceWithConfigMap()
	s.placeNamespaceAlone()
	s.placeInTeam(pickN(1, "canary"), func(p *placementv1beta1.PlacementSpec) {
		p.Strategy = &placementv1beta1.RolloutStrategy{DeleteStrategy: &placementv1beta1.DeleteStrategy{
			PropagationPolicy: placementv1beta1.DeletePropagationPolicyAbandon,
		}}
	})
	s.awaitTeamClusters("member-3")
	s.requireLacking("member-1", "member-2")
	resize := func(n int32) {
		update(s, s.hub, s.teamPlacement(), func(p *placementv1beta1.ResourcePlacement) { p.Spec.Policy.NumberOfClusters = &n })
	}
	resize(2)
	s.awaitTeamClusters("member-1", "member-3")
	resize(1)
	s.awaitTeamClusters("member-3")
	awaitGone(s, s.member("member-1"), s.configMap(""))

	s.delete(s.hub, s.teamPlacement())
	awaitGone(s, s.hub, s.teamPlacement())
	left := s.configMap("")
	require.NoError(s, s.member("member-3").Get(s.Context(), client.ObjectKeyFromObject(left), left))
	require.Equal(s, value1, left.Data["key"])
	require.Empty(s, left.OwnerReferences)
}

// longestNamesAreRolledOut has names as long as they may be, in every place that a name is made from.
func longestNamesAreRolledOut(s *spec) {
	fill := func(name string) string { return name + strings.Repeat("x", 63-len(name)) }
	s.name = fill(s.name + "-")
	s.namespaceWithConfigMap()
	s.placeNamespaceAlone()
	placement := s.teamPlacement(external)
	strategy := fill("s")
	run := fill("run-")
	placement.Name = fill("web-")
	s.create(placement)
	s.teamStrategy(strategy, staging(soak(soakTime), approval), canary())
	update := s.teamRun(run, strategy, "0")
	update.Spec.PlacementName = placement.Name
	await(s, s.hub, placement.DeepCopy(), "to have a snapshot", func(p *placementv1beta1.ResourcePlacement) error {
		return isTrue(p.Status.Conditions, s.team().PlacementConditionType(placementv1beta1.ConditionTypeScheduled), p.Generation)
	})
	s.create(update)
	s.eventually("the run asks for an approval", func() error {
		var requests placementv1beta1.ApprovalRequestList
		if err := s.hub.List(s.Context(), &requests, client.InNamespace(s.name)); err != nil || len(requests.Items) == 1 {
			return err
		}
		return fmt.Errorf("there are %d requests", len(requests.Items))
	})
	s.steer("approve", "run/"+run, "--stage", "staging", "-n", s.name)
	s.awaitTeamRunSucceeded(run)
	s.awaitValue(value1, allMembers...)
	require.Contains(s, s.steer("status", "run/"+run, "-n", s.name), placement.Name)
	s.delete(s.hub, placement)
	awaitGone(s, s.hub, placement)
	s.awaitClosed(wf.PlacementID(s.name, placement.Name))
}

// namespacesOfMembersDecide has the agent of a member report its namespaces: from then on a placement in a namespace goes only to
// members that are known to have it.
func namespacesOfMembersDecide(s *spec) {
	s.namespaceWithConfigMap()
	s.placeNamespaceAlone()
	s.stop("member-3/agent")
	token := s.Fleet.HubTokenFile("member-3")
	agent := s.agent("member-3-agent", s.Fleet.Binary("member-agent"), []string{
		"MEMBER_CLUSTER_NAME=member-3", "HUB_SERVER_URL=" + s.Fleet.APIServerURL(state.Hub), "CONFIG_PATH=" + token,
		"HUB_CERTIFICATE_AUTHORITY=" + s.Fleet.CertificateAuthority(state.Hub),
	}, "--kubeconfig="+s.Fleet.MemberAgentKubeconfig("member-3"), "--metrics-bind-address=0", "--health-probe-bind-address=0",
		"--leader-elect=false", "--enable-namespace-collection-in-property-provider")
	reporting := &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "member-3"}}
	await(s, s.hub, reporting, "to report the namespace", func(m *clusterv1beta1.MemberCluster) error {
		if _, there := m.Status.Namespaces[s.name]; !there {
			return fmt.Errorf("it reports %d namespaces", len(m.Status.Namespaces))
		}
		return nil
	})
	s.placeInTeam()
	s.awaitTeamClusters("member-3")
	s.requireLacking("member-1", "member-2")
	policies := &placementv1beta1.SchedulingPolicySnapshotList{}
	require.NoError(s, s.hub.List(s.Context(), policies, client.InNamespace(s.name)))
	require.Len(s, policies.Items, 1)
	for _, decision := range policies.Items[0].Status.ClusterDecisions {
		if decision.ClusterName != "member-3" {
			require.Contains(s, decision.Reason, "cluster has no namespace information available", "on %s", decision.ClusterName)
		}
	}
	require.NoError(s, agent.Process.Signal(syscall.SIGTERM))
	s.start("member-3/agent")
	await(s, s.hub, reporting, "to report no namespaces any more", func(m *clusterv1beta1.MemberCluster) error {
		if len(m.Status.Namespaces) > 0 {
			return fmt.Errorf("it reports %d namespaces", len(m.Status.Namespaces))
		}
		return nil
	})
	s.awaitTeamClusters(allMembers...)
}
