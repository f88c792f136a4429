package scheduler_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/fleetflow/fleetflow/activities/scheduler"
	"github.com/fleetflow/fleetflow/activities/scheduler/framework"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

func amounts(pairs ...string) corev1.ResourceList {
	list := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		list[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return list
}

func byRoom() placementv1beta1.ReplicaSchedulingRule {
	return placementv1beta1.ReplicaSchedulingRule{DynamicWeight: placementv1beta1.DynamicWeightAvailableReplicas}
}

// requesting is a workload whose pods request half a CPU each.
func requesting(replicas int32) rules.ReplicaDemand {
	demand := front(replicas)
	demand.Requests = amounts("cpu", "500m")
	demand.CountsRoom = true
	return demand
}

// reports lets a cluster report, right now, that so many CPUs and places for pods are available.
func (d *divided) reports(name, cpu, pods string) {
	for i := range d.facts.Clusters {
		if c := &d.facts.Clusters[i]; c.Name == name {
			c.Status.ResourceUsage = clusterv1beta1.ResourceUsage{Available: amounts("cpu", cpu, "pods", pods), ObservationTime: metav1.NewTime(d.facts.Now)}
			for j := range c.Status.AgentStatus {
				c.Status.AgentStatus[j].LastReceivedHeartbeat = metav1.NewTime(d.facts.Now)
			}
		}
	}
}

// passes lets time pass.
func (d *divided) passes(by time.Duration) {
	d.facts.Now = d.facts.Now.Add(by)
	for i := range d.facts.Clusters {
		for j := range d.facts.Clusters[i].Status.AgentStatus { // the clusters stay in reach
			d.facts.Clusters[i].Status.AgentStatus[j].LastReceivedHeartbeat = metav1.NewTime(d.facts.Now)
		}
	}
}

// short lets a member tell how many pods of the workload no node takes.
func (d *divided) short(cluster string, replicas, unschedulable int32) {
	for i := range d.facts.Bindings {
		if b := &d.facts.Bindings[i]; b.Cluster == cluster {
			b.Short = map[rules.Workload]placementv1beta1.ReplicaStatus{front(0).Workload: {Replicas: replicas, Unschedulable: unschedulable}}
			if unschedulable == 0 {
				b.Short = nil
			}
		}
	}
}

func TestReplicasFollowTheRoomThatClustersHave(t *testing.T) {
	d := newDivided(t, byRoom(), requesting(12), "A", "B", "C")
	d.reports("A", "9", "100")
	d.reports("B", "100", "12")
	d.reports("C", "3100m", "100")
	decision := d.decide()
	assert.Equal(t, []string{"A 6", "B 4", "C 2"}, d.assigned(), "R2: there is room for 18, 12 and 6")
	assert.Equal(t, map[string]string{"A": "18 of 36 free", "B": "12 of 36 free", "C": "6 of 36 free"}, d.reasons())
	assert.Empty(t, decision.Unplaced)
	assert.Zero(t, decision.WakeAt)

	d.reports("A", "0", "0")
	before := slices.Clone(d.facts.Bindings)
	d.decide()
	assert.Equal(t, before, d.facts.Bindings, "what runs stays, and so does the reason for it")
}

// says lets a cluster report how much CPU a single pod can request there.
func (d *divided) says(name, largestPod string) {
	for i := range d.facts.Clusters {
		if c := &d.facts.Clusters[i]; c.Name == name {
			c.Status.Properties = map[clusterv1beta1.PropertyName]clusterv1beta1.PropertyValue{clusterv1beta1.LargestPodProperty("cpu"): {Value: largestPod}}
		}
	}
}

func TestAClusterOnNoNodeOfWhichAPodFitsHasNoRoom(t *testing.T) {
	d := newDivided(t, byRoom(), requesting(12), "A", "B")
	d.reports("A", "100", "100")
	d.reports("B", "6", "100")
	d.says("A", "400m")
	d.says("B", "500m")
	d.decide()
	assert.Equal(t, []string{"A 0", "B 12"}, d.assigned(), "a pod requests 500m")
	assert.Equal(t, "0 of 12 free", d.reasons()["A"])

	d.facts.Demands[0].Replicas = 20
	assert.Equal(t, []string{"8 more replicas of apps/Deployment web/front wanted, 0 fit"}, d.decide().Unplaced)
	d.says("A", "4")
	d.reports("B", "0", "100")
	assert.Empty(t, d.decide().Unplaced)
	assert.Equal(t, []string{"A 8", "B 12"}, d.assigned())
	d.says("A", "much")
	d.facts.Demands[0].Replicas = 21
	d.reports("A", "100", "100")
	assert.Empty(t, d.decide().Unplaced, "what cannot be read limits nothing")
}

func TestWhereThereIsNoRoomForAllNothingIsMoved(t *testing.T) {
	d := newDivided(t, byRoom(), requesting(12), "A", "B", "C")
	for _, name := range []string{"A", "B", "C"} {
		d.reports(name, "1", "100")
	}
	decision := d.decide()
	assert.Equal(t, []string{"A 0", "B 0", "C 0"}, d.assigned())
	assert.Equal(t, []string{"12 more replicas of apps/Deployment web/front wanted, 6 fit"}, decision.Unplaced)
	assert.True(t, decision.Satisfied, "of clusters, there are enough")
	assert.Equal(t, "there is no room for all that are wanted, so nothing is moved", d.reasons()["A"])
	d.reports("B", "100", "100")
	assert.Empty(t, d.decide().Unplaced)
	assert.Equal(t, []string{"A 0", "B 12", "C 0"}, d.assigned())
	assert.Equal(t, map[string]string{"A": "2 of 104 free", "B": "100 of 104 free", "C": "2 of 104 free"}, d.reasons(), "none waits any more")
}

func TestReportsThatAreOldOrMissingTellOfNoRoom(t *testing.T) {
	d := newDivided(t, byRoom(), requesting(4), "A", "B")
	d.reports("A", "8", "100")
	d.passes(5*time.Minute + time.Second)
	d.reports("B", "8", "100")
	d.decide()
	assert.Equal(t, []string{"A 0", "B 4"}, d.assigned())
	assert.Equal(t, "0 of 16 free, as no report of the last 5 minutes has room", d.reasons()["A"])

	d.passes(5*time.Minute + time.Second)
	d.facts.Demands[0].Replicas = 3
	assert.Empty(t, d.decide().Unplaced, "for fewer, no room is needed")
	assert.Equal(t, []string{"A 0", "B 3"}, d.assigned())
}

func TestAReportFromTheFutureCountsFromWhenTheHubHeardOfTheMember(t *testing.T) {
	d := newDivided(t, byRoom(), requesting(4), "A", "B")
	d.reports("A", "8", "100")
	d.reports("B", "8", "100")
	for i := range d.facts.Clusters {
		d.facts.Clusters[i].Status.ResourceUsage.ObservationTime = metav1.NewTime(d.facts.Now.Add(time.Hour))
	}
	d.decide()
	d.passes(5 * time.Second)
	d.facts.Demands[0].Replicas = 32
	assert.Empty(t, d.decide().Unplaced, "no more than what was added before is subtracted")
	d.facts.Demands[0].Replicas = 33
	assert.Equal(t, []string{"1 more replicas of apps/Deployment web/front wanted, 0 fit"}, d.decide().Unplaced, "what was added is not forgotten")
}

func TestPodsWithoutRequestsNeedAPlaceOnANode(t *testing.T) {
	demand := front(6)
	demand.CountsRoom = true
	d := newDivided(t, byRoom(), demand, "A", "B")
	d.reports("A", "0", "10")
	d.reports("B", "0", "20")
	d.decide()
	assert.Equal(t, []string{"A 2", "B 4"}, d.assigned())
	d.facts.Clusters[0].Status.ResourceUsage.Available = amounts("cpu", "8")
	d.facts.Demands[0].Replicas = 30
	assert.Equal(t, []string{"24 more replicas of apps/Deployment web/front wanted, 16 fit"}, d.decide().Unplaced, "A tells of no places")
}

func TestWhatWasAddedSinceTheReportTakesRoom(t *testing.T) {
	d := newDivided(t, byRoom(), requesting(10), "A", "B")
	other := requesting(10)
	other.Name = "other"
	d.facts.Demands = append(d.facts.Demands, other)
	d.reports("A", "5", "100")
	d.reports("B", "5", "100")
	assert.Empty(t, d.decide().Unplaced)
	assert.ElementsMatch(t, []string{"A 5", "B 5", "A 5", "B 5"}, d.assigned(), "the second finds what the first has left")

	d.passes(10 * time.Second)
	d.facts.Demands[0].Replicas = 14
	decision := d.decide()
	assert.Equal(t, []string{"4 more replicas of apps/Deployment web/front wanted, 0 fit"}, decision.Unplaced)
	assert.Equal(t, d.facts.Now.Add(30*time.Second), decision.WakeAt, "then there are reports that count what was added")

	d.passes(11 * time.Second)
	d.reports("A", "4", "90")
	d.reports("B", "4", "90")
	decision = d.decide()
	assert.Empty(t, decision.Unplaced, "the reports count what was added before")
	assert.Zero(t, decision.WakeAt)
	assert.ElementsMatch(t, []string{"A 7", "B 7", "A 5", "B 5"}, d.assigned())
}

func TestAggregatedReplicasFillFewClusters(t *testing.T) {
	d := newDivided(t, placementv1beta1.ReplicaSchedulingRule{Division: placementv1beta1.DivisionAggregated, EmptyClusters: placementv1beta1.EmptyClustersDrop}, requesting(12), "A", "B", "C")
	d.reports("A", "3", "100")
	d.reports("B", "4", "100")
	d.reports("C", "5", "100")
	d.decide()
	assert.Equal(t, []string{"A 0 dropped", "B 5", "C 7"}, d.assigned(), "R4")
	assert.Equal(t, map[string]string{"A": "6 of 24 free, and others have room for all", "B": "8 of 24 free", "C": "10 of 24 free"}, d.reasons())
}

func TestGroupsOverflowIntoTheNext(t *testing.T) {
	d := newDivided(t, byRoom(), requesting(5), "A", "B", "C", "D")
	group := func(name string, clusters ...string) placementv1beta1.AffinityGroup {
		return placementv1beta1.AffinityGroup{Name: name, ClusterSelector: placementv1beta1.ClusterSelector{
			ClusterSelectorTerms: []placementv1beta1.ClusterSelectorTerm{{LabelSelector: clusterv1beta1.SelectNames(clusters...)}},
		}}
	}
	d.facts.Policy.AffinityGroupMode = placementv1beta1.AffinityGroupOverflow
	d.facts.Policy.AffinityGroups = []placementv1beta1.AffinityGroup{group("local", "A"), group("cloud", "A", "B", "C")}
	d.reports("A", "1", "100")
	d.reports("B", "5", "100")
	d.reports("C", "0", "100")
	decision := d.decide()
	assert.Equal(t, []string{"A 2", "B 3", "C 0"}, d.assigned(), "R6; D is in no group")
	assert.True(t, decision.Satisfied)
	groups := map[string]string{}
	for _, selected := range decision.Selected {
		groups[selected.ClusterName] = selected.AffinityGroup
	}
	assert.Equal(t, map[string]string{"A": "local", "B": "cloud", "C": "cloud"}, groups)

	again := d.decide()
	assert.Empty(t, again.Create)
	assert.Empty(t, again.Unschedule)
	assert.Equal(t, []string{"A 2", "B 3", "C 0"}, d.assigned())
	d.facts.Demands[0].Replicas = 2
	d.decide()
	assert.Equal(t, []string{"A 2", "B 0", "C 0"}, d.assigned(), "the last group loses first")
	assert.Equal(t, "3 of 5 running, and others have room for all", d.reasons()["B"])

	d.facts.Policy.AffinityGroups[1].ClusterSelector.ClusterSelectorTerms = nil
	d.facts.PolicySnapshot = "p-2"
	d.decide()
	assert.Equal(t, []string{"A 2", "B 0", "C 0", "D 0"}, d.assigned(), "a group without terms has every cluster")
}

func TestALimitThatIsLearntMovesWhatNoNodeTakes(t *testing.T) {
	d := newDivided(t, placementv1beta1.ReplicaSchedulingRule{Rebalance: placementv1beta1.RebalanceAlways}, front(50), "A", "B", "C")
	d.decide()
	d.short("C", 17, 7)
	assert.Equal(t, []string{"C apps/Deployment web/front 10"}, scheduler.UnlearntLimits(d.facts.Bindings))
	decision := d.decide()
	assert.Equal(t, []string{"A 20", "B 20", "C 10"}, d.assigned(), "K9")
	assert.Equal(t, "weight 1 of 3, at 10, as no node takes more", d.reasons()["C"])
	assert.Empty(t, scheduler.UnlearntLimits(d.facts.Bindings), "it is learnt")
	assert.Equal(t, d.facts.Now.Add(30*time.Minute), decision.WakeAt, "no report tells of pods that request nothing")

	d.passes(29 * time.Minute)
	d.short("C", 10, 0)
	before := slices.Clone(d.facts.Bindings)
	d.decide()
	assert.Equal(t, before, d.facts.Bindings, "no pod is made to see whether there is a node")
	d.passes(time.Minute)
	d.decide()
	assert.NotContains(t, d.assigned(), "C 10", "it is forgotten")
}

func TestWhatIsReadyHasRoomWhileAWorkloadChanges(t *testing.T) {
	d := newDivided(t, placementv1beta1.ReplicaSchedulingRule{}, front(20), "A", "B")
	d.decide()
	d.facts.Bindings[0].Short = map[rules.Workload]placementv1beta1.ReplicaStatus{front(0).Workload: {Replicas: 10, Ready: 8, Unschedulable: 5}}
	d.decide()
	assert.ElementsMatch(t, []string{"A 8", "B 12"}, d.assigned(), "two of the old pods are gone, and five new ones wait")
}

func TestALimitIsForgottenWhenTheClusterReportsMoreRoom(t *testing.T) {
	d := newDivided(t, placementv1beta1.ReplicaSchedulingRule{Rebalance: placementv1beta1.RebalanceAlways}, requesting(30), "A", "B")
	d.facts.Demands[0].CountsRoom = false
	d.reports("A", "100", "100")
	d.reports("B", "2", "100")
	d.decide()
	d.short("B", 15, 5)
	decision := d.decide()
	assert.Equal(t, []string{"A 20", "B 10"}, d.assigned())
	assert.Zero(t, decision.WakeAt, "a report tells")
	assert.JSONEq(t, `[{"cpu":"500m"}]`, scheduler.RequestsToWatch(d.facts, decision))

	d.passes(time.Minute)
	d.short("B", 10, 0)
	d.reports("B", "2400m", "100")
	d.decide()
	assert.Equal(t, []string{"A 20", "B 10"}, d.assigned(), "there was room for 4 that no single node had")
	d.passes(time.Minute)
	d.reports("B", "2500m", "100")
	decision = d.decide()
	assert.Equal(t, []string{"A 15", "B 15"}, d.assigned())
	assert.Empty(t, scheduler.RequestsToWatch(d.facts, decision), "room counts for nothing")
}

func TestAJobForWhichThereIsNoRoomWaits(t *testing.T) {
	demand := job(6, ptr.To[int32](60))
	demand.Requests = amounts("cpu", "1")
	demand.CountsRoom = true
	d := newDivided(t, byRoom(), demand, "A", "B")
	d.reports("A", "1", "100")
	d.reports("B", "2", "100")
	assert.Equal(t, []string{"6 more replicas of batch/Job web/front wanted, 3 fit"}, d.decide().Unplaced)
	assert.Equal(t, []string{"A 0 dropped", "B 0 dropped"}, d.assigned(), "with nothing to complete, it would end")
	d.reports("B", "8", "100")
	d.decide()
	assert.Equal(t, []string{"A 1/10", "B 5/50"}, d.assigned())
	d.reports("A", "100", "100")
	d.decide()
	assert.Equal(t, []string{"A 1/10", "B 5/50"}, d.assigned(), "it is divided once")
}

func TestRoomIsWatchedWhereReplicasAreDivided(t *testing.T) {
	assert.Contains(t, scheduler.Interests("", &placementv1beta1.PlacementPolicy{ReplicaScheduling: []placementv1beta1.ReplicaSchedulingRule{{}}}), framework.Room)
	assert.NotContains(t, scheduler.Interests("", &placementv1beta1.PlacementPolicy{}), framework.Room)
	for sentence, test := range map[string]struct {
		change func(c *clusterv1beta1.MemberCluster)
		want   bool
	}{
		"nothing":           {change: func(*clusterv1beta1.MemberCluster) {}},
		"more is available": {change: func(c *clusterv1beta1.MemberCluster) { c.Status.ResourceUsage.Available = amounts("cpu", "2") }, want: true},
		"there is more":     {change: func(c *clusterv1beta1.MemberCluster) { c.Status.ResourceUsage.Capacity = amounts("cpu", "9") }},
		"the report is observed later": {change: func(c *clusterv1beta1.MemberCluster) {
			c.Status.ResourceUsage.ObservationTime = metav1.NewTime(now)
		}},
		"it is the first report for long": {change: func(c *clusterv1beta1.MemberCluster) {
			c.Status.ResourceUsage.ObservationTime = metav1.NewTime(now.Add(-time.Hour))
		}, want: true},
	} {
		t.Run(sentence, func(t *testing.T) {
			before := cluster("A")
			before.Status.ResourceUsage = clusterv1beta1.ResourceUsage{Available: amounts("cpu", "1"), ObservationTime: metav1.NewTime(now.Add(-time.Minute))}
			after := before.DeepCopy()
			test.change(after)
			assert.Equal(t, test.want, slices.Contains(scheduler.Changes(after, &before, now), framework.Room))
		})
	}
}
