package stagedupdate_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// The objects of the how-to.

func placementObject() *placementv1beta1.ClusterResourcePlacement {
	return &placementv1beta1.ClusterResourcePlacement{
		ObjectMeta: metav1.ObjectMeta{Name: "example-placement", UID: "crp-uid", Generation: 1},
		Spec: placementv1beta1.PlacementSpec{Strategy: &placementv1beta1.RolloutStrategy{
			Type: placementv1beta1.ExternalRolloutStrategyType,
		}},
	}
}

func policyObject(clusters ...string) *placementv1beta1.ClusterSchedulingPolicySnapshot {
	policy := &placementv1beta1.ClusterSchedulingPolicySnapshot{ObjectMeta: metav1.ObjectMeta{
		Name: "example-placement-0", UID: "policy-uid", Generation: 1,
		Labels: map[string]string{
			placementv1beta1.ParentPlacementLabel: "example-placement", placementv1beta1.IsLatestSnapshotLabel: "true", placementv1beta1.PolicyIndexLabel: "0",
		},
	}}
	policy.Status.ObservedCRPGeneration = 1
	for _, name := range clusters {
		policy.Status.ClusterDecisions = append(policy.Status.ClusterDecisions, placementv1beta1.ClusterDecision{ClusterName: name, Selected: true})
	}
	policy.Status.Conditions = []metav1.Condition{{
		Type: placementv1beta1.ConditionTypeScheduled, Status: metav1.ConditionTrue, Reason: placementv1beta1.ReasonSchedulingPolicyFulfilled,
		ObservedGeneration: 1, LastTransitionTime: metav1.NewTime(begin),
	}}
	return policy
}

func snapshotObject(index int) *placementv1beta1.ClusterResourceSnapshot {
	return &placementv1beta1.ClusterResourceSnapshot{ObjectMeta: metav1.ObjectMeta{
		Name: placementv1beta1.ResourceSnapshotName("example-placement", index, 0),
		Labels: map[string]string{
			placementv1beta1.ParentPlacementLabel: "example-placement", placementv1beta1.ResourceIndexLabel: fmt.Sprint(index),
		},
	}}
}

func bindingObject(cluster string, state placementv1beta1.BindingState, snapshot string) *placementv1beta1.ClusterResourceBinding {
	return &placementv1beta1.ClusterResourceBinding{
		ObjectMeta: metav1.ObjectMeta{
			Name: placementv1beta1.BindingName("example-placement", "crp-uid", cluster), UID: types.UID("binding-" + cluster), Generation: 1,
			Labels: map[string]string{placementv1beta1.ParentPlacementLabel: "example-placement"},
		},
		Spec: placementv1beta1.ResourceBindingSpec{State: state, TargetCluster: cluster, ResourceSnapshotName: snapshot, SchedulingPolicySnapshotName: "example-placement-0"},
	}
}

func clusterObject(name string, labels ...string) *clusterv1beta1.MemberCluster {
	c := &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{}}}
	for i := 0; i < len(labels); i += 2 {
		c.Labels[labels[i]] = labels[i+1]
	}
	return c
}

func strategyObject() *placementv1beta1.ClusterStagedUpdateStrategy {
	key := "order"
	return &placementv1beta1.ClusterStagedUpdateStrategy{
		ObjectMeta: metav1.ObjectMeta{Name: "example-strategy"},
		Spec: placementv1beta1.UpdateStrategySpec{Stages: []placementv1beta1.StageConfig{
			{
				Name: "staging", LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"environment": "staging"}},
				AfterStageTasks: []placementv1beta1.StageTask{{Type: placementv1beta1.StageTaskTypeTimedWait, WaitTime: &metav1.Duration{Duration: time.Minute}}},
			},
			{
				Name: "canary", LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"environment": "canary"}}, SortingLabelKey: &key,
				AfterStageTasks: []placementv1beta1.StageTask{{Type: placementv1beta1.StageTaskTypeApproval}},
			},
		}},
	}
}

func runObject(name, index string) *placementv1beta1.ClusterStagedUpdateRun {
	return &placementv1beta1.ClusterStagedUpdateRun{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name), Generation: 1, CreationTimestamp: metav1.NewTime(begin)},
		Spec: placementv1beta1.UpdateRunSpec{
			PlacementName: "example-placement", ResourceSnapshotIndex: index, StagedUpdateStrategyName: "example-strategy",
		},
	}
}

// howTo is the hub of the documents after the first run: three clusters at
// snapshot 1, and a second run that rolls back to 0.
func howTo(t *testing.T, further ...client.Object) *hub {
	t.Helper()
	const one = "example-placement-1-snapshot"
	return newHub(t, slices.Concat([]client.Object{
		placementObject(), policyObject("member1", "member2", "member3"), snapshotObject(0), snapshotObject(1), strategyObject(),
		clusterObject("member1", "environment", "canary", "order", "2"),
		clusterObject("member2", "environment", "staging"),
		clusterObject("member3", "environment", "canary", "order", "1"),
		bindingObject("member1", placementv1beta1.BindingStateBound, one),
		bindingObject("member2", placementv1beta1.BindingStateBound, one),
		bindingObject("member3", placementv1beta1.BindingStateBound, one),
		runObject("example-run-2", "0"),
	}, further)...)
}

func refOf(run string) wf.Ref {
	return wf.Ref{Kind: wf.KindClusterStagedUpdateRun, Name: run, UID: "uid-" + run}
}

func stageOf(run, stage string, index int) wf.StageRequest {
	return wf.StageRequest{Run: refOf(run), Stage: stage, Index: index}
}

// conditionOf is a condition as "Type=Status Reason: message", empty if absent.
func conditionOf(conditions []metav1.Condition, kind string) string {
	c := meta.FindStatusCondition(conditions, kind)
	if c == nil {
		return ""
	}
	return fmt.Sprintf("%s=%s %s: %s", c.Type, c.Status, c.Reason, c.Message)
}
