//go:build integration

package integration

import (
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
)

// newClusterDiesInBetween has member-3 replaced by member-2, on which no Pods start at first. Before they do, the agent of member-2 is stopped and
// the hub agent dies: what is on member-3 stays, also once the Pods on member-2 run, of which the hub does not know. It goes when the agent is
// back and says so.
func newClusterDiesInBetween(s *spec) {
	const old, by = "member-3", "member-2"
	s.divisible(2)
	s.place(pickSome(1, nil))
	s.awaitBound(old)
	s.awaitRunningOn(old, 2)
	s.cordon(by, true)
	defer s.cordon(by, false)
	s.replace(old, by)
	defer s.replace(old, "")
	await(s, s.member(by), s.deployment(), "to be there", func(*appsv1.Deployment) error { return nil })
	s.awaitReplacement(old, metav1.ConditionFalse, clusterv1beta1.ReasonMemberClusterReplacing, "to go: "+s.name)

	s.stop(by + "/agent")
	killHubAgent(s)
	s.awaitReplacement(old, metav1.ConditionFalse, clusterv1beta1.ReasonMemberClusterReplacing, by+" is not known to be healthy")
	s.cordon(by, false)
	s.awaitRunningOn(by, 2)
	s.awaitRunningOn(old, 2)
	s.awaitReplacement(old, metav1.ConditionFalse, clusterv1beta1.ReasonMemberClusterReplacing, "to go: "+s.name)

	s.start(by + "/agent")
	awaitGone(s, s.member(old), s.deployment())
	s.awaitRunningOn(by, 2)
	s.awaitReplacement(old, metav1.ConditionTrue, clusterv1beta1.ReasonMemberClusterReplaced, "has taken over 1 placement(s)")
}

// replace has a member replaced by another; by none if that is empty.
func (s *spec) replace(member, by string) {
	s.Helper()
	update(s, s.hub, &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: member}}, func(m *clusterv1beta1.MemberCluster) {
		if metav1.SetMetaDataAnnotation(&m.ObjectMeta, clusterv1beta1.ReplacedByAnnotation, by); by == "" {
			delete(m.Annotations, clusterv1beta1.ReplacedByAnnotation)
		}
	})
}

// awaitReplacement waits until a member says how far its replacement is.
func (s *spec) awaitReplacement(member string, status metav1.ConditionStatus, reason, message string) {
	s.Helper()
	await(s, s.hub, &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: member}}, "to say how far its replacement is",
		func(m *clusterv1beta1.MemberCluster) error {
			said := meta.FindStatusCondition(m.Status.Conditions, clusterv1beta1.ConditionTypeReplaced)
			if said == nil || said.Status != status || said.Reason != reason || !strings.Contains(said.Message, message) {
				return fmt.Errorf("its conditions are %s", spoken(m.Status.Conditions))
			}
			return nil
		})
}
