//go:build integration

package integration

import (
	"fmt"
	"maps"
	"strconv"
	"strings"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// uidsOnMembers are the UIDs that the spec's ConfigMaps and namespaces have on the members.
func (s *spec) uidsOnMembers() map[string]types.UID {
	s.Helper()
	uids := map[string]types.UID{}
	for _, member := range s.members {
		for _, list := range []client.ObjectList{&corev1.NamespaceList{}, &corev1.ConfigMapList{}} {
			require.NoError(s, member.List(s.Context(), list))
			_ = eachOf(list, func(object client.Object) {
				if s.owns(object.GetName()) || s.owns(object.GetNamespace()) && strings.HasPrefix(object.GetName(), configMapName) {
					uids[fmt.Sprintf("%s %T %s/%s", member.name, object, object.GetNamespace(), object.GetName())] = object.GetUID()
				}
			})
		}
	}
	return uids
}

// requireKept asserts that the members have all objects that they had, as they were made then, and that nothing goes on with them.
func (s *spec) requireKept(before map[string]types.UID) {
	s.Helper()
	s.requireQuiet()
	now := s.uidsOnMembers()
	maps.DeleteFunc(now, func(key string, _ types.UID) bool { return before[key] == "" })
	require.Equal(s, before, now)
}

// acceptCommand is the command by which a user accepts what is held of the spec's placement.
func (s *spec) acceptCommand() string { return "kubectl fleet migrate accept " + s.name }

// awaitLossHeld waits until what the placement has lost is held for a reason, and the condition, an event and the command line
// say so with what is lost and the command that accepts it.
func (s *spec) awaitLossHeld(reason string, lost ...string) {
	s.Helper()
	placement := s.placement()
	held := await(s, s.hub, placement, "to be held", func(p *placementv1beta1.ClusterResourcePlacement) error {
		c := meta.FindStatusCondition(p.Status.Conditions, placementv1beta1.ConditionTypeRemovalsHeld)
		if c == nil || c.Status != metav1.ConditionTrue || c.Reason != reason {
			return fmt.Errorf("its conditions are %s", spoken(p.Status.Conditions))
		}
		for _, name := range lost {
			if !strings.Contains(c.Message, name) {
				return fmt.Errorf("%q is not in %s", name, c.Message)
			}
		}
		return nil
	})
	message := meta.FindStatusCondition(held.Status.Conditions, placementv1beta1.ConditionTypeRemovalsHeld).Message
	require.Contains(s, message, s.acceptCommand())
	s.awaitWarning("RemovalsHeld", message)
	require.Contains(s, s.steer("status", "crp/"+s.name), s.acceptCommand())
}

// awaitWarning waits for an event of the spec's placement.
func (s *spec) awaitWarning(reason, message string) {
	s.Helper()
	awaitAll(s, s.hub, "to have the event", func(all []*corev1.Event) error {
		for _, event := range all {
			if event.Type == corev1.EventTypeWarning && event.Reason == reason && event.Message == message {
				return nil
			}
		}
		return fmt.Errorf("none of %d events is %s: %s", len(all), reason, message)
	}, client.MatchingFields{"involvedObject.name": s.name})
}

// awaitNoLoss waits until nothing of the placement is held.
func (s *spec) awaitNoLoss() {
	s.Helper()
	await(s, s.hub, s.placement(), "not to be held", func(p *placementv1beta1.ClusterResourcePlacement) error {
		if c := placementv1beta1.FindTrue(p.Status.Conditions, placementv1beta1.ConditionTypeRemovalsHeld); c != nil {
			return fmt.Errorf("%s: %s", c.Reason, c.Message)
		}
		return nil
	})
}

// namespaceNamed is a namespace of the spec's that its placements select by a label.
func (s *spec) namespaceNamed(suffix string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.name + suffix, Labels: map[string]string{"app": s.name}}}
}

func (s *spec) selectingByLabel() placementOption {
	return selecting(placementv1beta1.ResourceSelectorTerm{
		Version: "v1", Kind: "Namespace", LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": s.name}},
	})
}

func deletedNamespaceStaysOnMembers(s *spec) {
	s.create(s.namespaceNamed(""))
	s.create(s.configMap(value1))
	s.create(s.namespaceNamed("-other"))
	s.place(s.selectingByLabel())
	s.awaitAvailable("0")
	before := s.uidsOnMembers()

	s.delete(s.hub, s.namespaceNamed(""))
	s.awaitLossHeld(placementv1beta1.ReasonNamespaceDeleted, "ConfigMap "+s.name+"/"+configMapName, "Namespace "+s.name)
	awaitGone(s, s.hub, s.namespaceNamed(""))
	s.requireKept(before)

	s.delete(s.hub, s.namespaceNamed("-other"))
	s.awaitLossHeld(placementv1beta1.ReasonSelectionEmptied, "Namespace "+s.name, "Namespace "+s.name+"-other")
	awaitGone(s, s.hub, s.namespaceNamed("-other"))
	s.requireKept(before)

	s.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.name + "-new"}})
	edited := update(s, s.hub, s.placement(), func(p *placementv1beta1.ClusterResourcePlacement) {
		p.Spec.ResourceSelectors = append(p.Spec.ResourceSelectors, placementv1beta1.ResourceSelectorTerm{Version: "v1", Kind: "Namespace", Name: s.name + "-new"})
	})
	await(s, s.hub, s.placement(), "to be held as it is now", func(p *placementv1beta1.ClusterResourcePlacement) error {
		return has(p.Status.Conditions, placementv1beta1.ConditionTypeRemovalsHeld, metav1.ConditionTrue, edited.Generation)
	})
	s.requireKept(before)

	require.Contains(s, s.steer("migrate", "accept", s.name, "--yes"), "removal(s) of placement "+s.name+" accepted")
	s.awaitCleared(allMembers...)
	s.awaitNoLoss()
}

func deletedNamespaceGoesAtOnceWhereThePlacementSaysSo(s *spec) {
	s.namespaceWithConfigMap()
	placement := s.placement()
	placement.Annotations = map[string]string{placementv1beta1.AcceptRemovalsAnnotation: "true"}
	s.create(placement)
	s.awaitAvailable("0")
	s.delete(s.hub, s.namespaceNamed(""))
	s.awaitCleared(allMembers...)
	s.awaitNoLoss()
}

func selectionEmptiedByALabelIsHeld(s *spec) {
	s.create(s.namespaceNamed(""))
	s.create(s.configMap(value1))
	s.place(s.selectingByLabel())
	s.awaitAvailable("0")
	before := s.uidsOnMembers()
	label := func(value string) {
		s.Helper()
		update(s, s.hub, s.namespaceNamed(""), func(n *corev1.Namespace) { n.Labels["app"] = value })
	}

	label("another")
	s.awaitLossHeld(placementv1beta1.ReasonSelectionEmptied, "Namespace "+s.name)
	s.requireKept(before)
	label(s.name)
	s.awaitNoLoss()
	s.requireKept(before)

	label("another")
	s.awaitLossHeld(placementv1beta1.ReasonSelectionEmptied, "Namespace "+s.name)
	update(s, s.hub, s.placement(), func(p *placementv1beta1.ClusterResourcePlacement) {
		p.Annotations[placementv1beta1.AcceptRemovalsAnnotation] = "true"
	})
	s.awaitCleared(allMembers...)
	s.awaitNoLoss()
}

func selectionThatShrinksIsHeld(s *spec) {
	const all, kept = 10, 3
	s.namespaceWithConfigMap()
	numbered := func(i int) *corev1.ConfigMap {
		c := s.configMap(value1)
		c.Name = fmt.Sprintf("%s-%d", configMapName, i)
		c.Labels = map[string]string{"kept": strconv.FormatBool(i < kept)}
		return c
	}
	for i := range all {
		s.create(numbered(i))
	}
	s.place()
	s.awaitAvailable("0")
	before := s.uidsOnMembers()
	// At once: a selection in between would lose a few objects twice, which is not held.
	require.NoError(s, s.hub.DeleteAllOf(s.Context(), &corev1.ConfigMap{}, client.InNamespace(s.name), client.MatchingLabels{"kept": "false"}))
	s.awaitLossHeld(placementv1beta1.ReasonSelectionShrunk, fmt.Sprintf("%d of %d objects", all-kept, all+2))
	s.requireKept(before)

	s.steer("migrate", "accept", s.name, "--yes")
	for _, member := range s.members {
		for i := kept; i < all; i++ {
			awaitGone(s, member, numbered(i))
		}
		for i := range kept {
			require.NoError(s, member.Get(s.Context(), keyOf(numbered(i)), &corev1.ConfigMap{}))
		}
	}
	s.awaitNoLoss()
}
