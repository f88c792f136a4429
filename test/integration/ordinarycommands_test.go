//go:build integration

package integration

import (
	"context"
	"strings"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// deletionsRefused are commands that take away what the fleet keeps for itself. NAME is the placement. They are dry runs, which admission refuses as it does others: a spec that fails must not take the fleet along.
var deletionsRefused = []string{
	"delete internalmemberclusters --all -n fleet-member-member-1",
	"delete namespace fleet-member-member-1",
	"delete namespace fleet-system",
	"delete crd works.placement.kubernetes-fleet.io",
	"delete crd memberclusters.cluster.kubernetes-fleet.io",
	"delete crd clusterresourceplacements.placement.kubernetes-fleet.io",
	"delete works -n fleet-member-member-2 -l " + placementv1beta1.ParentPlacementLabel + "=NAME",
	"delete clusterresourcebindings -l " + placementv1beta1.ParentPlacementLabel + "=NAME",
	"delete clusterresourcesnapshots -l " + placementv1beta1.ParentPlacementLabel + "=NAME",
	"delete clusterschedulingpolicysnapshots -l " + placementv1beta1.ParentPlacementLabel + "=NAME",
	"delete clusterapprovalrequests NAME-run-staging",
}

// deletionsAreRefused has a user with all rights, but none of those that pass the guard rails, delete by kubectl.
func deletionsAreRefused(s *spec) {
	s.externalPlacement()
	s.strategy(staging(approval), canary())
	run := s.startRun("run", "0")
	s.awaitRequest(run, "staging")
	s.awaitValue(value1, "member-2")
	user := "jane-" + s.name
	grant := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: s.name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}
	s.create(grant)
	s.Cleanup(func() { _ = s.hub.Delete(context.Background(), grant) }) // the spec's own context is over by then
	require.Eventually(s, func() bool {
		_, err := s.command(s.Context(), "kubectl", "auth", "can-i", "*", "*", "--as="+user)
		return err == nil
	}, patience, visibilityEvery, "the rights of %s are in force", user)
	for _, line := range deletionsRefused {
		args := strings.Fields(strings.ReplaceAll(line, "NAME", s.name))
		out, err := s.command(s.Context(), "kubectl", append(args, "--dry-run=server", "--as="+user)...)
		require.Error(s, err, "kubectl %s: %s", line, out)
		require.Contains(s, out, "denied request", "kubectl %s", line)
	}
	s.awaitValue(value1, "member-2")
}
