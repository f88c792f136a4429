//go:build integration

package integration

import (
	"fmt"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// uidsOfValues are the UIDs that the spec's ConfigMap has on the members.
func (s *spec) uidsOfValues() map[string]types.UID {
	s.Helper()
	uids := map[string]types.UID{}
	for _, member := range s.members {
		found := s.configMap("")
		require.NoError(s, member.Get(s.Context(), keyOf(found), found))
		uids[member.name] = found.UID
	}
	return uids
}

// endTeam deletes the spec's namespace on the hub, and waits until the placement in it is held, and the condition, an event of the
// namespace and the command line say so with the command that accepts it, which endTeam returns.
func (s *spec) endTeam() (accept string) {
	s.Helper()
	s.delete(s.hub, s.namespaceNamed(""))
	accept = "kubectl fleet migrate accept web -n " + s.name
	held := await(s, s.hub, s.teamPlacement(), "to be held", func(p *placementv1beta1.ResourcePlacement) error {
		c := meta.FindStatusCondition(p.Status.Conditions, placementv1beta1.ConditionTypeRemovalsHeld)
		if c == nil || c.Status != metav1.ConditionTrue || c.Reason != placementv1beta1.ReasonNamespaceDeleted {
			return fmt.Errorf("its conditions are %s", spoken(p.Status.Conditions))
		}
		return nil
	})
	message := meta.FindStatusCondition(held.Status.Conditions, placementv1beta1.ConditionTypeRemovalsHeld).Message
	require.Contains(s, message, accept)
	s.awaitWarning("RemovalsHeld", message)
	status := s.steer("status", "rp/web", "-n", s.name)
	require.Contains(s, status, accept)
	require.Contains(s, status, "Waiting")
	return accept
}

func namespaceOfAPlacementThatIsDeletedStays(s *spec) {
	s.namespaceWithConfigMap()
	s.placeNamespaceAlone()
	s.placeInTeam()
	s.awaitTeamPlacement(placementv1beta1.ConditionTypeAvailable, "0")
	before := s.uidsOfValues()

	s.endTeam()
	awaitGone(s, s.hub, s.configMap(""))
	s.requireQuiet()
	require.Equal(s, before, s.uidsOfValues())
	require.NoError(s, s.hub.Get(s.Context(), client.ObjectKey{Name: s.name}, &corev1.Namespace{}), "it ends with the placement")

	require.Contains(s, s.steer("migrate", "accept", "web", "-n", s.name, "--yes"), "3 removal(s) of placement web accepted")
	for _, member := range s.members {
		awaitGone(s, member, s.configMap(""))
	}
	awaitGone(s, s.hub, s.namespaceNamed(""))
}

func namespaceOfAPlacementThatIsDeletedCanLeaveWhatWasPlaced(s *spec) {
	s.namespaceWithConfigMap()
	s.placeNamespaceAlone()
	s.placeInTeam()
	s.awaitTeamPlacement(placementv1beta1.ConditionTypeAvailable, "0")
	before := s.uidsOfValues()
	s.endTeam()
	update(s, s.hub, s.teamPlacement(), func(p *placementv1beta1.ResourcePlacement) {
		if p.Spec.Strategy == nil {
			p.Spec.Strategy = &placementv1beta1.RolloutStrategy{}
		}
		p.Spec.Strategy.DeleteStrategy = &placementv1beta1.DeleteStrategy{PropagationPolicy: placementv1beta1.DeletePropagationPolicyAbandon}
	})
	s.awaitHeldOfPresent()
	s.steer("migrate", "accept", "web", "-n", s.name, "--yes")
	awaitGone(s, s.hub, s.namespaceNamed(""))
	require.Equal(s, before, s.uidsOfValues())
}

// awaitHeldOfPresent waits until what is held of the placement in the spec's namespace is held as the placement is now.
func (s *spec) awaitHeldOfPresent() {
	s.Helper()
	await(s, s.hub, s.teamPlacement(), "to be held as it is now", func(p *placementv1beta1.ResourcePlacement) error {
		if rules.HeldRemovalsOf(p) == nil {
			return fmt.Errorf("generation %d, held: %s", p.Generation, p.Annotations[placementv1beta1.RemovalsHeldAnnotation])
		}
		return nil
	})
}

func placementThatIsDeletedBeforeItsNamespaceGoesAtOnce(s *spec) {
	s.namespaceWithConfigMap()
	s.placeNamespaceAlone()
	placement := s.placeInTeam()
	s.awaitTeamPlacement(placementv1beta1.ConditionTypeAvailable, "0")
	s.delete(s.hub, placement)
	awaitGone(s, s.hub, s.teamPlacement())
	s.delete(s.hub, s.namespaceNamed(""))
	awaitGone(s, s.hub, s.namespaceNamed(""))
	for _, member := range s.members {
		awaitGone(s, member, s.configMap(""))
	}
}

func namespaceThatIsDeletedGoesAtOnceWhereThePlacementInItSaysSo(s *spec) {
	s.namespaceWithConfigMap()
	s.placeNamespaceAlone()
	placement := s.teamPlacement()
	placement.Annotations = map[string]string{placementv1beta1.AcceptRemovalsAnnotation: "true"}
	s.create(placement)
	s.awaitTeamPlacement(placementv1beta1.ConditionTypeAvailable, "0")
	s.delete(s.hub, s.namespaceNamed(""))
	awaitGone(s, s.hub, s.namespaceNamed(""))
	for _, member := range s.members {
		awaitGone(s, member, s.configMap(""))
	}
}
