//go:build integration

package integration

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
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
	require.Len(s, placed.Status.PlacementStatuses, members)
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
		for _, entry := range p.Status.PlacementStatuses {
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
		if len(p.Status.PlacementStatuses) != members {
			return fmt.Errorf("it tells of %d clusters", len(p.Status.PlacementStatuses))
		}
		for _, entry := range p.Status.PlacementStatuses {
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
		for _, entry := range p.Status.PlacementStatuses {
			c := meta.FindStatusCondition(entry.Conditions, placementv1beta1.ConditionTypeWorkSynchronized)
			if c == nil || c.Status != metav1.ConditionFalse {
				return fmt.Errorf("on %s: %s", entry.ClusterName, spoken(entry.Conditions))
			}
			require.Contains(s, c.Message, s.name+".web-work belongs to ClusterResourcePlacement "+alone.Name)
		}
		if len(p.Status.PlacementStatuses) != members {
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
