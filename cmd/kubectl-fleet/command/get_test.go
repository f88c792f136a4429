package command

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// condition is a condition as of a while ago.
func condition(kind string, status metav1.ConditionStatus, reason string, age time.Duration) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: reason, LastTransitionTime: ago(age), ObservedGeneration: 1}
}

func ok(kind string) metav1.Condition { return condition(kind, metav1.ConditionTrue, "Ok", time.Hour) }

// member is a healthy member whose agent reported a while ago.
func member(name string, heartbeat time.Duration) *clusterv1beta1.MemberCluster {
	return &clusterv1beta1.MemberCluster{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name), CreationTimestamp: ago(48 * time.Hour), Labels: map[string]string{}},
		Spec:       clusterv1beta1.MemberClusterSpec{HeartbeatPeriodSeconds: 15},
		Status: clusterv1beta1.MemberClusterStatus{
			Conditions: []metav1.Condition{ok(clusterv1beta1.ConditionTypeReadyToJoin), ok(clusterv1beta1.ConditionTypeJoined), ok(clusterv1beta1.ConditionTypeHealthy)},
			Properties: map[clusterv1beta1.PropertyName]clusterv1beta1.PropertyValue{
				clusterv1beta1.NodeCountProperty: {Value: "3"}, clusterv1beta1.KubernetesVersionProperty: {Value: "v1.36.3"},
			},
			ResourceUsage: clusterv1beta1.ResourceUsage{
				Allocatable: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("16"), corev1.ResourceMemory: resource.MustParse("64Gi")},
				Available:   corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("11500m"), corev1.ResourceMemory: resource.MustParse("1200Mi")},
			},
			AgentStatus: []clusterv1beta1.AgentStatus{{
				Type: clusterv1beta1.MemberAgent, LastReceivedHeartbeat: ago(heartbeat),
				Conditions: []metav1.Condition{ok(clusterv1beta1.ConditionTypeJoined), ok(clusterv1beta1.ConditionTypeHealthy)},
			}},
		},
	}
}

func smallFleet() []client.Object {
	tainted := member("member-2", 2*time.Minute)
	tainted.Spec.Taints = []clusterv1beta1.Taint{{Key: "maintenance", Value: "yes", Effect: corev1.TaintEffectNoSchedule}}
	return []client.Object{
		member("member-1", 8*time.Second), tainted,
		&clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "member-3", CreationTimestamp: ago(time.Minute)}},
		&placementv1beta1.ClusterResourcePlacement{
			ObjectMeta: metav1.ObjectMeta{Name: "web", Generation: 1, CreationTimestamp: ago(5 * time.Hour)},
			Status: placementv1beta1.PlacementStatus{
				ObservedResourceIndex: "4", SelectedResources: make([]placementv1beta1.ResourceIdentifier, 3),
				Conditions: []metav1.Condition{
					ok("ClusterResourcePlacementScheduled"), ok("ClusterResourcePlacementApplied"),
					{Type: "ClusterResourcePlacementAvailable", Status: metav1.ConditionFalse, ObservedGeneration: 1, Message: "not up in 1 cluster"},
				},
				PlacementStatuses: []placementv1beta1.PerClusterPlacementStatus{
					{ClusterName: "member-1", Conditions: []metav1.Condition{ok("Applied"), ok("Available")}},
					{ClusterName: "member-2", Conditions: []metav1.Condition{ok("Applied")}},
				},
			},
		},
		&placementv1beta1.ResourcePlacement{
			ObjectMeta: metav1.ObjectMeta{Name: "config", Namespace: "shop", Generation: 2, CreationTimestamp: ago(time.Hour)},
			Status:     placementv1beta1.PlacementStatus{Conditions: []metav1.Condition{ok("ResourcePlacementScheduled")}},
		},
	}
}

func TestGetShowsMembersPlacementsAndRunsInThreeTables(t *testing.T) {
	c := newConsole(t, append(smallFleet(), soakingRun())...)
	require.NoError(t, c.run("get"))
	c.golden("get.txt")
}

func TestGetWideShowsWhatElseThereIs(t *testing.T) {
	c := newConsole(t, append(smallFleet(), soakingRun())...)
	require.NoError(t, c.run("get", "members,placements,runs", "-o", "wide"))
	c.golden("get-wide.txt")
}

func TestGetOfANamespaceLeavesClusterScopedPlacementsOut(t *testing.T) {
	c := newConsole(t, smallFleet()...)
	require.NoError(t, c.run("get", "placements", "-n", "shop"))
	assert.Contains(t, c.out.String(), "shop/config")
	assert.NotContains(t, c.out.String(), "web")
}

func TestGetPrintsObjectsForPrograms(t *testing.T) {
	c := newConsole(t, smallFleet()...)
	require.NoError(t, c.run("get", "placements", "web", "-o", "yaml"))
	list := object[metav1.List](t, c.out.String())
	require.Len(t, list.Items, 1)
	assert.Contains(t, string(list.Items[0].Raw), `"kind":"ClusterResourcePlacement"`)
}

func TestGetMissesWhatIsNamedAndNotThere(t *testing.T) {
	c := newConsole(t, smallFleet()...)
	assert.EqualError(t, c.run("get", "members", "member-9"), `there is no member named "member-9"; kubectl fleet get lists what there is`)
	assert.EqualError(t, c.run("get", "pods"), `"pods" is not something to get: use members, placements, runs, replicas or holds`)
	assert.EqualError(t, c.run("get", "-o", "xml"), `--output "xml" is not a format: use one of table, wide, json, yaml`)
}

func TestGetOfAnEmptyFleetSaysSo(t *testing.T) {
	c := newConsole(t)
	require.NoError(t, c.run("get"))
	assert.Equal(t, "MEMBERS\nNo members.\n\nPLACEMENTS\nNo placements.\n\nRUNS\nNo runs.\n", c.out.String())
}

func TestThatTheHubDoesNotKnowHowAMemberIsIsNotHiddenByWhatItSaidLast(t *testing.T) {
	silent, unjudged := member("member-1", 20*time.Minute), member("member-2", time.Second)
	silent.Status.Conditions[2].Status, silent.Status.Conditions[2].Reason = metav1.ConditionUnknown, "MemberClusterHeartbeatMissed"
	unjudged.Status.Conditions = unjudged.Status.Conditions[:2]
	c := newConsole(t, silent, unjudged)
	require.NoError(t, c.run("get", "members", "--no-headers"))
	lines := strings.Split(c.out.String(), "\n")
	assert.Equal(t, []string{"member-1", "True", "Unknown", "20m", "!"}, strings.Fields(lines[0])[:5])
	assert.Equal(t, []string{"member-2", "True", "True"}, strings.Fields(lines[1])[:3])
}
