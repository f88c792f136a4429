package command

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
)

func frontWith(replicas int32, reason string) placementv1beta1.ReplicaAssignment {
	return placementv1beta1.ReplicaAssignment{Group: "apps", Kind: "Deployment", Namespace: "web", Name: "front", Replicas: replicas, Reason: reason}
}

// dividedPlacement divides nine replicas over member-1, which is up, and member-2, which has not been asked for its share yet.
func dividedPlacement() []client.Object {
	one := bindingTo("member-1")
	two := bindingTo("member-2")
	one.Spec.ClusterDecision.Assignments = []placementv1beta1.ReplicaAssignment{frontWith(3, "weight 1 of 3")}
	one.Spec.ReplicaAssignments = []placementv1beta1.ReplicaAssignment{frontWith(5, "weight 1 of 1")}
	two.Spec.ClusterDecision.Assignments = []placementv1beta1.ReplicaAssignment{frontWith(6, "weight 2 of 3")}
	work := &placementv1beta1.Work{
		ObjectMeta: metav1.ObjectMeta{Name: "web-work", Namespace: placementv1beta1.MemberNamespace("member-1"), Labels: map[string]string{placementv1beta1.ParentPlacementLabel: "web"}},
		Status: placementv1beta1.WorkStatus{ManifestConditions: []placementv1beta1.ManifestCondition{{
			Identifier:    placementv1beta1.WorkResourceIdentifier{Group: "apps", Version: "v1", Kind: "Deployment", Namespace: "web", Name: "front"},
			ReplicaStatus: &placementv1beta1.ReplicaStatus{Replicas: 5, Ready: 4},
		}}},
	}
	twin := work.DeepCopy()
	twin.Name = "shop.web-work"
	twin.Labels[placementv1beta1.ParentNamespaceLabel] = "shop"
	weights := []placementv1beta1.ClusterReplicas{
		{ClusterSelector: placementv1beta1.ReplicaClusterSelector{ClusterSelectorTerms: []placementv1beta1.ClusterLabelTerm{
			{ClusterNameFilter: placementv1beta1.ClusterNameFilter{ClusterNames: []string{"member-2"}}},
		}}, Weight: new(int32(2))}, {},
	}
	return []client.Object{
		member("member-1", time.Second), member("member-2", time.Second), one, two, work, twin,
		&placementv1beta1.ClusterResourcePlacement{
			ObjectMeta: metav1.ObjectMeta{Name: "web", Generation: 1},
			Spec: placementv1beta1.PlacementSpec{Policy: &placementv1beta1.PlacementPolicy{
				ReplicaScheduling: []placementv1beta1.ReplicaSchedulingRule{{Clusters: weights, Rebalance: placementv1beta1.RebalanceAlways}},
			}},
		},
		&placementv1beta1.ClusterResourceSnapshot{
			ObjectMeta: metav1.ObjectMeta{
				Name: "web-0-snapshot", Annotations: map[string]string{placementv1beta1.ResourceGroupHashAnnotation: "a"},
				Labels: map[string]string{
					placementv1beta1.ParentPlacementLabel: "web", placementv1beta1.IsLatestSnapshotLabel: "true", placementv1beta1.ResourceIndexLabel: "0",
				}},
			Spec: placementv1beta1.ResourceSnapshotSpec{SelectedResources: []placementv1beta1.ResourceContent{{RawExtension: runtime.RawExtension{
				Raw: []byte(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"front","namespace":"web"},"spec":{"replicas":9}}`),
			}}}},
		},
	}
}

func TestGetReplicasShowsWhatIsWantedInForceAndReady(t *testing.T) {
	c := newConsole(t, dividedPlacement()...)
	require.NoError(t, c.run("get", "replicas", "web", "-o", "wide"))
	assert.Equal(t, `WORKLOAD                    CLUSTER    WANTED   IN FORCE   READY   COMPLETIONS   REASON
apps/Deployment web/front   member-1   3        5          4       -             weight 1 of 3
apps/Deployment web/front   member-2   6        -          -       -             weight 2 of 3
`, c.Out.String())
}

func TestGetReplicasPrintsSharesForPrograms(t *testing.T) {
	c := newConsole(t, dividedPlacement()...)
	require.NoError(t, c.run("get", "replicas", "placement/web", "-o", "json"))
	shares := *object[[]hub.ReplicaShare](t, c.Out.String())
	require.Len(t, shares, 2)
	assert.EqualValues(t, []int32{3, 9, 5, 4}, []int32{shares[0].Wanted, shares[0].Of, *shares[0].InForce, *shares[0].Ready})
	assert.Nil(t, shares[1].InForce)
}

func TestGetReplicasOfAPlacementThatDividesNone(t *testing.T) {
	c := newConsole(t, smallFleet()...)
	require.NoError(t, c.run("get", "replicas", "config", "-n", "shop"))
	assert.Empty(t, c.Out.String())
	assert.Contains(t, c.Err.String(), "policy.replicaScheduling")
	assert.ErrorContains(t, c.run("get", "replicas"), "say of which placement to show the replicas")
	assert.ErrorContains(t, c.run("get", "replicas", "nothing"), "nothing")
}

func TestWhyExplainsShares(t *testing.T) {
	c := newConsole(t, dividedPlacement()...)
	require.NoError(t, c.run("why", "member-2", "--placement", "web"))
	assert.Contains(t, c.Out.String(), "\nReplicas:\n  apps/Deployment web/front: weight 2 of 3: 6 of 9\n")
}

func TestPlanTellsSharesThatHoldWithoutTheRun(t *testing.T) {
	c := newConsole(t, dividedPlacement()...)
	_ = c.run("plan", "--placement", "web", "--strategy", "none", "--no-diff")
	assert.Contains(t, c.Out.String(), "  member-1  apps/Deployment web/front  weight 1 of 3: 3 of 9\n")
}

func TestWhyCountsWhatWorkloadsAskForNow(t *testing.T) {
	objects := dividedPlacement()
	snapshot := objects[len(objects)-1].(*placementv1beta1.ClusterResourceSnapshot)
	// A workload that is scaled gets no new snapshot: the one that there is says what is asked for.
	snapshot.Annotations[placementv1beta1.ReplicaCountsAnnotation] = rules.EncodeReplicaCounts([]rules.ReplicaDemand{{
		Workload: rules.Workload{Group: "apps", Kind: "Deployment", Namespace: "web", Name: "front"}, Replicas: 12,
	}})
	c := newConsole(t, objects...)
	require.NoError(t, c.run("why", "member-2", "--placement", "web"))
	assert.Contains(t, c.Out.String(), "\nReplicas:\n  apps/Deployment web/front: weight 2 of 3: 8 of 12\n")
}
