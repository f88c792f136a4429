package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
)

func TestATrialIsPassedByAnAgentThatHasJoinedAndReports(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	box := func(state clusterv1beta1.ClusterState, joined metav1.ConditionStatus, silent time.Duration) *clusterv1beta1.InternalMemberCluster {
		return &clusterv1beta1.InternalMemberCluster{
			ObjectMeta: metav1.ObjectMeta{Name: "member-1"},
			Spec:       clusterv1beta1.InternalMemberClusterSpec{State: state, HeartbeatPeriodSeconds: 15},
			Status: clusterv1beta1.InternalMemberClusterStatus{AgentStatus: []clusterv1beta1.AgentStatus{{
				Type: clusterv1beta1.MemberAgent, LastReceivedHeartbeat: metav1.NewTime(now.Add(-silent)),
				Conditions: []metav1.Condition{{Type: clusterv1beta1.ConditionTypeJoined, Status: joined}},
			}}},
		}
	}
	said, err := judge(box(clusterv1beta1.ClusterStateJoin, metav1.ConditionTrue, 20*time.Second), now)
	assert.NoError(t, err)
	assert.Equal(t, "member-1 has joined; its agent reported 20s ago", said)

	unheard := box(clusterv1beta1.ClusterStateJoin, metav1.ConditionTrue, 0)
	unheard.Status.AgentStatus = nil
	for want, refused := range map[string]*clusterv1beta1.InternalMemberCluster{
		"its agent has never reported":             unheard,
		"its agent has not joined":                 box(clusterv1beta1.ClusterStateJoin, metav1.ConditionFalse, 0),
		"its agent has not reported for 46s, with": box(clusterv1beta1.ClusterStateJoin, metav1.ConditionTrue, 46*time.Second),
		"it leaves the fleet":                      box(clusterv1beta1.ClusterStateLeave, metav1.ConditionTrue, 0),
	} {
		_, err := judge(refused, now)
		assert.ErrorContains(t, err, want)
	}
}
