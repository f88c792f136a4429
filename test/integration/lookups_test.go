//go:build integration

package integration

import (
	"strings"

	"github.com/stretchr/testify/require"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// everyLookUpOfTheGuidesWorks runs the commands that KubeFleet's troubleshooting guides print.
func everyLookUpOfTheGuidesWorks(s *spec) {
	s.namespaceWithConfigMap()
	s.place(pickN(2, "canary"))
	s.awaitAvailable("0")
	s.changeTo(value2)
	s.awaitAvailable("1")
	mine := "kubernetes-fleet.io/parent-CRP=" + s.name
	latest := "kubernetes-fleet.io/is-latest-snapshot=true," + mine
	cluster := s.bindings()[0].Spec.TargetCluster
	for command, rows := range map[string]int{
		"get clusterschedulingpolicysnapshot -l " + latest:                                    1,
		"get clusterresourcebinding -l " + mine:                                               2,
		"get clusterresourcesnapshot -l " + latest:                                            1,
		"get work -n fleet-member-" + cluster + " -l " + mine:                                 1,
		"get ClusterResourceSnapshot --selector=kubernetes-fleet.io/resource-index=1," + mine: 1,
		"get crp " + s.name: 1,
	} {
		out, err := s.command(s.Context(), "kubectl", append(strings.Fields(command), "--no-headers")...)
		require.NoError(s, err, "kubectl %s: %s", command, out)
		require.Len(s, strings.Split(strings.TrimSpace(out), "\n"), rows, "kubectl %s: %s", command, out)
		require.Contains(s, out, s.name, "kubectl %s", command)
	}
	out, err := s.command(s.Context(), "kubectl", "describe", "clusterresourceplacement", s.name)
	require.NoError(s, err, out)
	require.Contains(s, out, "ClusterResourcePlacementAvailable")

	var policies placementv1beta1.ClusterSchedulingPolicySnapshotList
	require.NoError(s, s.hub.List(s.Context(), &policies, s.mine()))
	require.Len(s, policies.Items, 1)
	require.Equal(s, "2", policies.Items[0].Annotations[placementv1beta1.NumberOfClustersAnnotation], "the number that the guide compares")
}
