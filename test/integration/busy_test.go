//go:build integration

package integration

import (
	"fmt"
	"strings"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// busyClusterIsLeftAlone has the owner of a member ask that nothing begins there, for a year: an update run waits for that cluster, also
// after the hub agent has died, the hub grants twelve hours, and once the owner takes it back the run ends.
func busyClusterIsLeftAlone(s *spec) {
	const busy = "member-1"
	s.externalPlacement()
	s.strategy(everywhere())
	own := s.member(busy)
	system := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: clusterv1beta1.SystemNamespace}}
	require.NoError(s, own.Create(s.Context(), system))
	asking := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: clusterv1beta1.SystemNamespace, Name: "member-busy"},
		Data:       map[string]string{"until": time.Now().AddDate(1, 0, 0).UTC().Format(time.RFC3339), "message": "month-end"},
	}
	require.NoError(s, own.Create(s.Context(), asking))
	member := &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: busy}}
	await(s, s.hub, member, "to be busy", func(m *clusterv1beta1.MemberCluster) error {
		if !meta.IsStatusConditionTrue(m.Status.Conditions, clusterv1beta1.ConditionTypeBusy) {
			return fmt.Errorf("its conditions are %s", spoken(m.Status.Conditions))
		}
		require.Equal(s, clusterv1beta1.MaxBusy, m.Status.Busy.Until.Sub(m.Status.Busy.Since.Time))
		return nil
	})

	run := s.startRun("run", "0")
	waits := func(r *placementv1beta1.ClusterStagedUpdateRun) error {
		held := meta.FindStatusCondition(r.Status.Conditions, fleetflowv1alpha1.ConditionTypeHeld)
		if held == nil || held.Reason != fleetflowv1alpha1.ReasonClusterBusy || !strings.Contains(held.Message, "busy cluster "+busy+" (month-end) until ") {
			return fmt.Errorf("its conditions are %s", spoken(r.Status.Conditions))
		}
		return nil
	}
	await(s, s.hub, run.DeepCopy(), "to wait for the busy cluster", waits)
	killHubAgent(s)
	s.requireNothingOn(busy)
	await(s, s.hub, run.DeepCopy(), "to wait for it still", waits)

	s.delete(own, asking)
	s.awaitSucceeded(run)
	s.awaitValue(value1, allMembers...)
	s.delete(own, system)
	awaitGone(s, own, system)
}
