//go:build integration

package integration

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/test/devfleet/state"
)

// readAnything are the rights of a hub agent on what placements may select.
var readAnything = rbacv1.PolicyRule{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"get", "list", "watch"}}

// readOnlyIn takes from the hub agent the right to read all of the hub, as the chart does for placeableNamespaces, and lets
// it read what is in one namespace. It gives the right back when the spec ends.
func (s *spec) readOnlyIn(namespace string) {
	s.Helper()
	agent := &rbacv1.ClusterRole{}
	granted := &rbacv1.ClusterRoleBinding{}
	require.NoError(s, s.hub.Get(s.Context(), client.ObjectKey{Name: hubAgent}, agent))
	require.NoError(s, s.hub.Get(s.Context(), client.ObjectKey{Name: hubAgent}, granted))
	before := agent.DeepCopy()
	require.Equal(s, readAnything, agent.Rules[0])
	agent.Rules[0] = rbacv1.PolicyRule{
		APIGroups: []string{"cluster.kubernetes-fleet.io", "placement.kubernetes-fleet.io", "fleetflow.io", "multicluster.x-k8s.io"},
		Resources: []string{"*"}, Verbs: readAnything.Verbs,
	}
	agent.Rules = append(agent.Rules, rbacv1.PolicyRule{
		APIGroups: []string{"", "rbac.authorization.k8s.io", "apiextensions.k8s.io", "coordination.k8s.io", "networking.fleet.azure.com"},
		Resources: []string{"namespaces", "roles", "rolebindings", "customresourcedefinitions", "leases", "internalserviceexports"}, Verbs: readAnything.Verbs,
	})
	require.NoError(s, s.hub.Update(s.Context(), agent))
	s.Cleanup(func() {
		before.ResourceVersion = ""
		require.NoError(s, s.hub.Update(context.WithoutCancel(s.Context()), before))
	})
	own := metav1.ObjectMeta{Name: "hub-agent-placeable", Namespace: namespace}
	s.create(&rbacv1.Role{ObjectMeta: own, Rules: []rbacv1.PolicyRule{readAnything}})
	s.create(&rbacv1.RoleBinding{ObjectMeta: own, Subjects: granted.Subjects, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: own.Name}})
}

// restrictedHubAgentPlacesItsNamespaces is acceptance N2.
func restrictedHubAgentPlacesItsNamespaces(s *spec) {
	s.namespaceWithConfigMap()
	s.stop(hubAgent)
	s.readOnlyIn(s.name)
	s.awaitLeader(s.replica("restricted", "--placeable-namespaces="+s.name))
	s.placeNamespaceAlone()
	s.placeInTeam()
	s.awaitTeamPlacement(placementv1beta1.ConditionTypeAvailable, "0")
	s.changeTo(value2)
	s.awaitValue(value2, allMembers...)
	s.awaitTeamPlacement(placementv1beta1.ConditionTypeAvailable, "1")

	other := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.name + "-other"}}
	s.create(other)
	refused := s.placement(selecting(placementv1beta1.ResourceSelectorTerm{Version: "v1", Kind: "Namespace", Name: other.Name}))
	refused.Name = other.Name
	s.create(refused)
	elsewhere := s.teamPlacement()
	elsewhere.Namespace = other.Name
	s.create(elsewhere)
	refuses := func(conditions []metav1.Condition, conditionType string) error {
		scheduled := meta.FindStatusCondition(conditions, conditionType)
		if scheduled == nil || scheduled.Reason != placementv1beta1.ReasonInvalidResourceSelectors ||
			!strings.Contains(scheduled.Message, fmt.Sprintf("namespace %q, and the hub agent's flag --placeable-namespaces lets placements select from %s only", other.Name, s.name)) {
			return fmt.Errorf("its conditions are %s", spoken(conditions))
		}
		return nil
	}
	await(s, s.hub, refused.DeepCopy(), "to be refused by name", func(p *placementv1beta1.ClusterResourcePlacement) error {
		return refuses(p.Status.Conditions, ofPlacement("Scheduled"))
	})
	await(s, s.hub, elsewhere.DeepCopy(), "to be refused by name", func(p *placementv1beta1.ResourcePlacement) error {
		return refuses(p.Status.Conditions, s.team().PlacementConditionType("Scheduled"))
	})
	for _, placement := range []client.Object{refused, elsewhere, s.teamPlacement(), s.placement()} {
		s.delete(s.hub, placement)
	}
	awaitGone(s, s.hub, s.teamPlacement())
	awaitGone(s, s.hub, s.placement())
}

// writeOnlyIn takes from a member's agent all but the rights that the chart gives one with scope Namespaced. It gives them back
// when the spec ends.
func (s *spec) writeOnlyIn(member *cluster, namespace string) {
	s.Helper()
	agent := &rbacv1.ClusterRole{}
	granted := &rbacv1.ClusterRoleBinding{}
	require.NoError(s, member.Get(s.Context(), client.ObjectKey{Name: "member-agent"}, agent))
	require.NoError(s, member.Get(s.Context(), client.ObjectKey{Name: "member-agent"}, granted))
	before := agent.DeepCopy()
	everything := before.Rules[0]
	require.Equal(s, []string{"*"}, everything.APIGroups)
	agent.Rules = append(slices.DeleteFunc(agent.Rules, func(r rbacv1.PolicyRule) bool { return len(r.NonResourceURLs) == 0 }),
		rbacv1.PolicyRule{APIGroups: []string{"placement.kubernetes-fleet.io"}, Resources: []string{"*"}, Verbs: everything.Verbs},
		rbacv1.PolicyRule{APIGroups: []string{"", "apiextensions.k8s.io"}, Resources: []string{"nodes", "pods", "namespaces", "customresourcedefinitions"}, Verbs: readAnything.Verbs},
		rbacv1.PolicyRule{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: readAnything.Verbs})
	require.NoError(s, member.Update(s.Context(), agent))
	s.Cleanup(func() {
		before.ResourceVersion = ""
		require.NoError(s, member.Update(context.WithoutCancel(s.Context()), before))
	})
	own := metav1.ObjectMeta{Name: "member-agent", Namespace: namespace}
	require.NoError(s, member.Create(s.Context(), &rbacv1.Role{ObjectMeta: own, Rules: []rbacv1.PolicyRule{everything}}))
	require.NoError(s, member.Create(s.Context(), &rbacv1.RoleBinding{
		ObjectMeta: own, Subjects: granted.Subjects, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: own.Name},
	}))
}

// restrictedMemberAgentKeepsToItsNamespaces is acceptance N1.
func restrictedMemberAgentKeepsToItsNamespaces(s *spec) {
	member := s.member("member-2")
	s.namespaceWithConfigMap()
	require.NoError(s, member.Create(s.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.name}}))
	s.stop("member-2/agent")
	s.writeOnlyIn(member, s.name)
	s.agent("restricted", s.Fleet.Binary("member-agent"), []string{
		"MEMBER_CLUSTER_NAME=member-2", "HUB_SERVER_URL=" + s.Fleet.APIServerURL(state.Hub), "CONFIG_PATH=" + s.Fleet.HubTokenFile("member-2"),
		"HUB_CERTIFICATE_AUTHORITY=" + s.Fleet.CertificateAuthority(state.Hub),
	}, "--kubeconfig="+s.Fleet.MemberAgentKubeconfig("member-2"), "--leader-elect=false", "--metrics-bind-address=0",
		"--health-probe-bind-address="+s.freeAddress(), "--scope=Namespaced", "--namespaces="+s.name)

	s.placeInTeam(pickFixed("member-2"))
	s.awaitTeamPlacement(placementv1beta1.ConditionTypeAvailable, "0")
	s.changeTo(value2)
	s.awaitValue(value2, "member-2")
	require.NoError(s, member.Delete(s.Context(), s.configMap("")))
	s.awaitValue(value2, "member-2")

	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: s.name}}
	s.create(role)
	s.place(pickFixed("member-2"), selecting(
		placementv1beta1.ResourceSelectorTerm{Group: rbacv1.GroupName, Version: "v1", Kind: "ClusterRole", Name: role.Name},
		placementv1beta1.ResourceSelectorTerm{Version: "v1", Kind: "Namespace", Name: s.name, SelectionScope: placementv1beta1.NamespaceOnly},
	))
	await(s, s.hub, s.placement(), "to say what is refused", func(p *placementv1beta1.ClusterResourcePlacement) error {
		if len(p.Status.PerClusterPlacementStatuses) != 1 {
			return errors.New("it has no cluster")
		}
		entry := p.Status.PerClusterPlacementStatuses[0]
		for _, failed := range entry.FailedPlacements {
			if failed.Condition.Reason != placementv1beta1.ReasonManifestApplyFailed || !strings.Contains(failed.Condition.Message, "the agent may only write to namespaces "+s.name) {
				return fmt.Errorf("it says %s: %s", failed.Condition.Reason, failed.Condition.Message)
			}
		}
		if len(entry.FailedPlacements) != 2 {
			return fmt.Errorf("%d objects are refused", len(entry.FailedPlacements))
		}
		return has(entry.Conditions, placementv1beta1.ConditionTypeApplied, metav1.ConditionFalse, p.Generation)
	})
	require.True(s, apierrors.IsNotFound(member.Get(s.Context(), client.ObjectKeyFromObject(role), &rbacv1.ClusterRole{})))
	for _, placement := range []client.Object{s.teamPlacement(), s.placement()} {
		s.delete(s.hub, placement)
	}
	awaitGone(s, s.hub, s.teamPlacement())
	awaitGone(s, s.hub, s.placement())
	awaitGone(s, member, s.configMap(""))
	s.delete(member, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.name}})
}
