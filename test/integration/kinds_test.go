//go:build integration

package integration

import (
	"fmt"
	"strings"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// kindsHeld says whether conditions name the ConfigMaps as held, as they shall.
func kindsHeld(conditions []metav1.Condition, want bool) error {
	held := meta.FindStatusCondition(conditions, placementv1beta1.ConditionTypeKindsHeld)
	if is := held != nil && strings.HasPrefix(held.Message, "1 kind held: configmaps."); is != want {
		return fmt.Errorf("its conditions are %s", spoken(conditions))
	}
	return nil
}

// disabledKindStaysOnMembers is acceptance T1, T2 and T3: a ConfigMap is changed, deleted and created while ConfigMaps are disabled.
func disabledKindStaysOnMembers(s *spec) {
	named := func(name string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: s.name}}
	}
	s.namespaceWithConfigMap()
	s.create(named("retired"))
	s.create(s.deployment())
	s.place()
	s.awaitAvailable("0")
	team := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.name + "-team"}}
	s.create(team)
	inTeam := s.teamPlacement()
	inTeam.Namespace = team.Name
	s.create(inTeam)
	disabled := &fleetflowv1alpha1.PropagatedType{
		ObjectMeta: metav1.ObjectMeta{Name: "configmaps"}, Spec: fleetflowv1alpha1.PropagatedTypeSpec{Propagation: fleetflowv1alpha1.PropagationDisabled},
	}
	s.create(disabled)
	await(s, s.hub, disabled.DeepCopy(), "to be observed", func(p *fleetflowv1alpha1.PropagatedType) error {
		if p.Status.Placements < 2 {
			return fmt.Errorf("it concerns %d placements", p.Status.Placements)
		}
		return isTrue(p.Status.Conditions, fleetflowv1alpha1.ConditionTypeAccepted, p.Generation)
	})
	await(s, s.hub, s.placement(), "to name the kind", func(p *placementv1beta1.ClusterResourcePlacement) error {
		return kindsHeld(p.Status.Conditions, true)
	})
	await(s, s.hub, inTeam.DeepCopy(), "to name the kind", func(p *placementv1beta1.ResourcePlacement) error {
		return kindsHeld(p.Status.Conditions, true)
	})

	s.changeTo(value2)
	s.delete(s.hub, named("retired"))
	s.create(named("added"))
	update(s, s.hub, s.deployment(), func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(3)) })
	s.awaitAvailable("1")
	for _, m := range s.members {
		var deployment appsv1.Deployment
		require.NoError(s, m.Get(s.Context(), client.ObjectKeyFromObject(s.deployment()), &deployment))
		require.EqualValues(s, 3, *deployment.Spec.Replicas, "other kinds go on, on %s", m.name)
		require.NoError(s, m.Get(s.Context(), client.ObjectKeyFromObject(named("retired")), &corev1.ConfigMap{}), "on %s", m.name)
		require.True(s, apierrors.IsNotFound(m.Get(s.Context(), client.ObjectKeyFromObject(named("added")), &corev1.ConfigMap{})), "on %s", m.name)
	}
	s.awaitValue(value1, allMembers...)

	update(s, s.hub, disabled.DeepCopy(), func(p *fleetflowv1alpha1.PropagatedType) {
		p.Spec.Propagation = fleetflowv1alpha1.PropagationEnabled
	})
	placed := s.awaitAvailable("2")
	require.NoError(s, kindsHeld(placed.Status.Conditions, false))
	s.awaitValue(value2, allMembers...)
	for _, m := range s.members {
		require.NoError(s, m.Get(s.Context(), client.ObjectKeyFromObject(named("added")), &corev1.ConfigMap{}), "on %s", m.name)
		awaitGone(s, m, named("retired"))
	}
	s.delete(s.hub, disabled)
	s.delete(s.hub, s.placement())
	s.delete(s.hub, inTeam)
}
