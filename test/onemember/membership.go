package onemember

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/test/devfleet/access"
)

// Namespace is where the hub has the member's Works.
var Namespace = clusterv1beta1.MemberNamespace(Member)

// heartbeat is so long that no heartbeat is among what is counted.
const heartbeat = 600

// invite does what the hub agent does for a member that joins.
func (r *Rig) invite(ctx context.Context) error {
	rights := []rbacv1.PolicyRule{
		{APIGroups: []string{clusterv1beta1.GroupName}, Resources: []string{"internalmemberclusters"}, Verbs: []string{"get", "list", "watch"}},
		{APIGroups: []string{clusterv1beta1.GroupName}, Resources: []string{"internalmemberclusters/status"},
			Verbs: []string{"get", "update", "patch"}},
		{APIGroups: []string{placementv1beta1.GroupName}, Resources: []string{"works"},
			Verbs: []string{"get", "list", "watch", "update", "patch"}},
		{APIGroups: []string{placementv1beta1.GroupName}, Resources: []string{"works/status"}, Verbs: []string{"get", "update", "patch"}},
		{APIGroups: []string{fleetflowv1alpha1.GroupName}, Resources: []string{"memberquestions"}, Verbs: []string{"get", "list", "watch"}},
		{APIGroups: []string{fleetflowv1alpha1.GroupName}, Resources: []string{"memberquestions/status"}, Verbs: []string{"patch"}},
	}
	mine := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: Namespace, Name: name} }
	for _, object := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: Namespace}},
		&rbacv1.Role{ObjectMeta: mine(Member), Rules: rights},
		&rbacv1.RoleBinding{
			ObjectMeta: mine(Member),
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: Member}},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: Member},
		},
		&clusterv1beta1.InternalMemberCluster{
			ObjectMeta: mine(Member),
			Spec:       clusterv1beta1.InternalMemberClusterSpec{State: clusterv1beta1.ClusterStateJoin, HeartbeatPeriodSeconds: heartbeat},
		},
	} {
		if err := r.Hub.Create(ctx, object); err != nil {
			return fmt.Errorf("inviting the member: creating %T: %w", object, err)
		}
	}
	return nil
}

// AwaitJoined returns once the agent has said that it joined.
func (r *Rig) AwaitJoined(ctx context.Context) error {
	_, err := access.Await(ctx, r.Hub, client.ObjectKey{Namespace: Namespace, Name: Member},
		func(box *clusterv1beta1.InternalMemberCluster) string {
			for _, agent := range box.Status.AgentStatus {
				if meta.IsStatusConditionTrue(agent.Conditions, clusterv1beta1.ConditionTypeJoined) {
					return ""
				}
			}
			return "the agent has not joined"
		})
	return err
}
