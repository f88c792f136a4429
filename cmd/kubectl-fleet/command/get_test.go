package command

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/cmd/internal/fleetview"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/base"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/cli"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
)

// condition is a condition as of a while ago.
func condition(kind string, status metav1.ConditionStatus, reason string, age time.Duration) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: reason, LastTransitionTime: ago(age), ObservedGeneration: 1}
}

func ok(kind string) metav1.Condition { return condition(kind, metav1.ConditionTrue, "Ok", time.Hour) }

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
				PerClusterPlacementStatuses: []placementv1beta1.PerClusterPlacementStatus{
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
	c.Golden("get.txt")
}

func TestGetWideShowsWhatElseThereIs(t *testing.T) {
	c := newConsole(t, append(smallFleet(), soakingRun())...)
	require.NoError(t, c.run("get", "members,placements,runs", "-o", "wide"))
	c.Golden("get-wide.txt")
}

func TestGetOfANamespaceLeavesClusterScopedPlacementsOut(t *testing.T) {
	c := newConsole(t, smallFleet()...)
	require.NoError(t, c.run("get", "placements", "-n", "shop"))
	assert.Contains(t, c.Out.String(), "shop/config")
	assert.NotContains(t, c.Out.String(), "web")
}

func TestGetPrintsObjectsForPrograms(t *testing.T) {
	c := newConsole(t, smallFleet()...)
	require.NoError(t, c.run("get", "placements", "web", "-o", "yaml"))
	list := object[metav1.List](t, c.Out.String())
	require.Len(t, list.Items, 1)
	assert.Contains(t, string(list.Items[0].Raw), `"kind":"ClusterResourcePlacement"`)
}

func TestGetMissesWhatIsNamedAndNotThere(t *testing.T) {
	c := newConsole(t, smallFleet()...)
	assert.EqualError(t, c.run("get", "members", "member-9"), `there is no member named "member-9"; kubectl fleet get lists what there is`)
	assert.EqualError(t, c.run("get", "pods"), `"pods" is not something to get: use members, placements, runs, approvals, replicas, strategies, overrides, evictions, windows, holds, exemptions, channels or rules`)
	assert.EqualError(t, c.run("get", "-o", "xml"), `--output "xml" is not a format: use one of table, wide, json, yaml, jsonpath=TEMPLATE, name, custom-columns=SPEC`)
}

func TestGetOfAnEmptyFleetSaysSo(t *testing.T) {
	c := newConsole(t)
	require.NoError(t, c.run("get"))
	assert.Equal(t, "MEMBERS\nNo members.\n\nPLACEMENTS\nNo placements.\n\nRUNS\nNo runs.\n", c.Out.String())
}

func TestThatTheHubDoesNotKnowHowAMemberIsIsNotHiddenByWhatItSaidLast(t *testing.T) {
	silent := member("member-1", 20*time.Minute)
	unjudged := member("member-2", time.Second)
	silent.Status.Conditions[2].Status, silent.Status.Conditions[2].Reason = metav1.ConditionUnknown, "MemberClusterHeartbeatMissed"
	unjudged.Status.Conditions = unjudged.Status.Conditions[:2]
	c := newConsole(t, silent, unjudged)
	require.NoError(t, c.run("get", "members", "--no-headers"))
	lines := strings.Split(c.Out.String(), "\n")
	assert.Equal(t, []string{"member-1", "True", "Unknown", "20m", "!"}, strings.Fields(lines[0])[:5])
	assert.Equal(t, []string{"member-2", "True", "True"}, strings.Fields(lines[1])[:3])
}

func TestThatNobodyLooksAtAClusterIsNotCalledStartingUp(t *testing.T) {
	for _, reason := range []string{clusterv1beta1.ReasonMemberClusterHeartbeatMissed, clusterv1beta1.ReasonMemberClusterOutOfReach} {
		c := newConsole(t, &placementv1beta1.ClusterResourcePlacement{
			ObjectMeta: metav1.ObjectMeta{Name: "web", Generation: 1},
			Status: placementv1beta1.PlacementStatus{
				Conditions: []metav1.Condition{
					ok("ClusterResourcePlacementScheduled"), ok("ClusterResourcePlacementApplied"),
					{Type: "ClusterResourcePlacementAvailable", Status: metav1.ConditionUnknown, ObservedGeneration: 1},
				},
				PerClusterPlacementStatuses: []placementv1beta1.PerClusterPlacementStatus{
					{ClusterName: "member-1", Conditions: []metav1.Condition{ok("Applied"), condition("Available", metav1.ConditionUnknown, reason, time.Minute)}},
				},
			},
		})
		require.NoError(t, c.run("get", "placements", "--no-headers"))
		assert.Regexp(t, `^web +PickAll +1 +1/1 +0/1 +not known`, c.Out.String())
	}
}

func TestGetSaysWhatWaitsForTemporal(t *testing.T) {
	away := metav1.Condition{Type: placementv1beta1.ConditionTypeEngineReachable, Status: metav1.ConditionFalse, Reason: placementv1beta1.ReasonTemporalUnreachable}
	over := soakingRun()
	over.Name = "web-4"
	over.Status.Conditions = append(over.Status.Conditions, ok(placementv1beta1.ConditionTypeSucceeded), away)
	c := newConsole(t, over,
		&placementv1beta1.ClusterStagedUpdateRun{ObjectMeta: metav1.ObjectMeta{Name: "web-6", CreationTimestamp: ago(time.Minute)}, Status: placementv1beta1.UpdateRunStatus{Conditions: []metav1.Condition{away}}},
		&placementv1beta1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: "shop"}, Status: placementv1beta1.PlacementStatus{Conditions: []metav1.Condition{away}}})
	require.NoError(t, c.run("get", "runs,placements"))
	assert.Regexp(t, `(?m)^web-6 .* Stuck .* Temporal, which the hub agent does not reach `, c.Out.String())
	assert.Regexp(t, `(?m)^web-4 .* Succeeded `, c.Out.String())
	assert.Regexp(t, `(?m)^shop .* waits for Temporal `, c.Out.String())
}

func TestThatNoHubAgentWorksIsSaidBesideWhatIsShown(t *testing.T) {
	died := metav1.NewMicroTime(ago(3 * time.Minute).Time)
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet-system", Name: "hub-agent.fleetflow.io"}, Spec: coordinationv1.LeaseSpec{RenewTime: &died}}
	c := newConsole(t, append(smallFleet(), soakingRun(), lease)...)
	for _, command := range [][]string{{"get"}, {"get", "placements"}, {"status", "web-5"}, {"status", "crp/web"}} {
		require.NoError(t, c.run(command...))
		assert.Equal(t, "Warning: no hub agent has worked for 3m: this is what the hub knew then, and how it is now is not known; kubectl fleet check says more\n", c.Err.String())
	}
	require.NoError(t, c.run("get", "-o", "json"))
	assert.Empty(t, c.Err.String(), "a program asks kubectl fleet check")
}

func TestGetSelectsByLabelsAndShowsThem(t *testing.T) {
	west := member("member-1", time.Second)
	east := member("member-2", time.Second)
	west.Labels, east.Labels = map[string]string{"region": "west", "example.com/tier": "gold"}, map[string]string{"region": "east"}
	c := newConsole(t, west, east)
	require.NoError(t, c.run("get", "members", "-l", "region=west", "-L", "region,example.com/tier"))
	assert.Contains(t, c.Out.String(), "REGION")
	assert.Regexp(t, `member-1 .* west +gold\n$`, c.Out.String())
	assert.NotContains(t, c.Out.String(), "member-2")
	assert.NotContains(t, c.Out.String(), "LABELS")
	require.NoError(t, c.run("get", "members", "-o", "wide"))
	assert.Regexp(t, `LABELS\nmember-1 .*example\.com/tier=gold,region=west\nmember-2 .* region=east\n`, c.Out.String())
	require.NoError(t, c.run("get", "members", "--show-labels"))
	assert.Contains(t, c.Out.String(), "example.com/tier=gold,region=west")
	require.NoError(t, c.run("get", "members", "-l", "region=north"))
	assert.Equal(t, "No members with labels region=north.\n", c.Err.String())
	require.EqualError(t, c.run("get", "members", "member-2", "-l", "region=west"), `there is no member named "member-2"; kubectl fleet get lists what there is`)
}

func TestGetPrintsAsKubectlCan(t *testing.T) {
	c := newConsole(t, append(smallFleet(), soakingRun())...)
	for format, want := range map[string]string{
		"name": "membercluster.cluster.kubernetes-fleet.io/member-1\nmembercluster.cluster.kubernetes-fleet.io/member-2\nmembercluster.cluster.kubernetes-fleet.io/member-3\n",
		`jsonpath={range .items[*]}{.metadata.name}{"\n"}{end}`:                 "member-1\nmember-2\nmember-3\n",
		"custom-columns=NAME:.metadata.name,TAINT:{.spec.taints[*].key},NO:a.b": "NAME       TAINT         NO\nmember-1   <none>        <none>\nmember-2   maintenance   <none>\nmember-3   <none>        <none>\n",
	} {
		require.NoError(t, c.run("get", "members", "-o", format), format)
		assert.Equal(t, want, c.Out.String(), format)
	}
	require.NoError(t, c.run("status", "web-5", "-o", "jsonpath={.children[*].name}"))
	assert.Equal(t, "staging canary", c.Out.String())
	require.ErrorContains(t, c.run("status", "web-5", "-o", "name"), `--output "name" is not a format`)
}

func TestWhatIsWatchedIsToldOnceAndThenAsItChanges(t *testing.T) {
	now := now
	c := newConsole(t)
	o := &getOptions{lists: lists{Viewing: base.Viewing{Output: cli.Output{Objects: true}, Factory: &cli.Factory{}, Streams: genericiooptions.IOStreams{Out: &c.Out, ErrOut: &c.Err}}}, watch: true}
	o.wanted = fleetview.Wanted{Kinds: []hub.Kind{hub.KindMember, hub.KindRun}, Selects: o.Selects}
	require.NoError(t, o.Parse())
	one := member("member-1", 5*time.Second)
	run := soakingRun()
	rows := &changedRows{began: now, before: map[string]string{}}
	events := &watchEvents{known: map[types.UID]client.Object{}}
	tell := func(objects ...client.Object) (told, json string) {
		c.Out.Reset()
		require.NoError(t, rows.printChanges(o, o.wanted.Sort(objects), now))
		told = c.Out.String()
		c.Out.Reset()
		require.NoError(t, events.printChanges(o, o.wanted.Objects(o.wanted.Sort(objects))))
		return told, c.Out.String()
	}
	told, json := tell(one, run)
	assert.Contains(t, told, "MEMBERS\nNAME ")
	assert.Equal(t, 2, strings.Count(json, "\n"), json)
	assert.Regexp(t, `^\{"type":"ADDED","object":\{"kind":"MemberCluster",.*\}\}\n\{"type":"ADDED"`, json)

	beat := one.DeepCopy()
	beat.ResourceVersion = "2"
	beat.Status.AgentStatus[0].LastReceivedHeartbeat = metav1.NewTime(now)
	now = now.Add(time.Minute)
	told, json = tell(beat, run)
	assert.Empty(t, told, "a heartbeat and the time that passes are no news")
	assert.Regexp(t, `^\{"type":"MODIFIED".*"member-1".*\n$`, json)

	sick := beat.DeepCopy()
	sick.Status.Conditions[2].Status = metav1.ConditionFalse
	told, _ = tell(sick, run)
	assert.Regexp(t, `^member/member-1 +True +False +60s `, told)
	assert.Equal(t, 1, strings.Count(told, "\n"))

	told, json = tell(run)
	assert.Equal(t, "member/member-1 deleted\n", told)
	assert.Regexp(t, `^\{"type":"DELETED"`, json)
}
