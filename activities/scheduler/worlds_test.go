package scheduler_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetflow/fleetflow/activities/scheduler"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// updateWorlds records what is decided in random worlds anew.
var updateWorlds = flag.Bool("update", false, "record what is decided in random worlds anew")

// maxWorlds is how many random worlds are recorded.
const maxWorlds = 600

// worldFacts are random facts in which everything meets that a decision rests on.
func (d dice) worldFacts() scheduler.Facts {
	facts := oneOf(d, dice.facts, dice.facts, dice.groupFacts, dice.spreadFacts)(d)
	if policy := facts.Policy; policy != nil && len(policy.AffinityGroups) > 0 && d.one(3) {
		policy.AffinityGroupMode = placementv1beta1.AffinityGroupOverflow
	}
	if facts.Policy != nil && facts.Policy.PlacementType != placementv1beta1.PickFixedPlacementType && d.one(24) {
		requiring(facts.Policy, nodes("In", "3"))
	}
	facts.Resources = "s-1"
	facts.Afresh = d.one(12)
	facts.Groups.Last = oneOf(d, "", "", "g1")
	if d.one(30) {
		facts.Undecided = "another scheduler has not picked yet"
	}
	for i := range facts.Clusters {
		d.changeCluster(&facts.Clusters[i])
	}
	if d.one(5) && len(facts.Bindings) > 0 {
		twin := d.binding(facts.Bindings[0].Cluster)
		twin.Name += "-twin"
		facts.Bindings = append(facts.Bindings, twin)
	}
	if !d.one(3) {
		facts.Failover = &placementv1beta1.FailoverStrategy{}
		if !d.one(3) {
			facts.Failover.Application = &placementv1beta1.ApplicationFailover{}
		}
		if !d.one(3) {
			facts.Failover.Cluster = &placementv1beta1.ClusterFailover{NotReadySeconds: oneOf(d, nil, new(int32(60)), new(int32(600)))}
		}
	}
	if d.one(2) {
		d.divideFacts(&facts)
	}
	d.changeBindings(&facts)
	return facts
}

// changeCluster has something about a cluster change, as time passes.
func (d dice) changeCluster(c *clusterv1beta1.MemberCluster) {
	ago := now.Add(-time.Duration(d.IntN(900)) * time.Second)
	switch d.IntN(10) {
	case 0:
		evictedSince(ago)(c)
	case 1:
		unhealthySince(ago)(c)
	case 2:
		c.Spec.Taints = nil
		c.Status.Conditions = nil
	}
	if d.one(2) {
		c.Status.ResourceUsage.Available = amounts("cpu", oneOf(d, "0", "1", "4500m", "20"), "pods", fmt.Sprint(d.IntN(30)))
		c.Status.ResourceUsage.ObservationTime = metav1.NewTime(oneOf(d, now, ago))
	}
}

// changeBindings has health, marks and the like of bindings change.
func (d dice) changeBindings(facts *scheduler.Facts) {
	epidemic := d.one(6)
	for i := range facts.Bindings {
		b := &facts.Bindings[i]
		ago := facts.Now.Add(-time.Duration(d.IntN(900)) * time.Second)
		b.Created = ago
		b.Placed = d.one(2)
		b.Runs = d.one(2)
		b.Marked = d.one(8)
		b.Available = d.one(2)
		b.DeletionCost = oneOf(d, nil, nil, new(int32(d.IntN(3))))
		b.Health = oneOf(d, nil, healthy(), ill(ago), ill(facts.Now))
		if epidemic {
			b.Health = ill(facts.Now.Add(-5 * time.Minute))
		}
		b.AvailableSince = time.Time{}
		if rules.IsWell(b.Health) && d.one(2) {
			b.AvailableSince = ago
		}
		if b.State == placementv1beta1.BindingStateUnscheduled && b.LeftAt.IsZero() && d.one(2) {
			b.LeftAt = ago
			b.LeftBecause = oneOf(d, placementv1beta1.CauseApplication, placementv1beta1.CauseCluster)
		}
		b.Short = nil
		if d.one(6) {
			b.Short = map[rules.Workload]placementv1beta1.ReplicaStatus{front(0).Workload: {Replicas: 5, Ready: int32(d.IntN(4)), Unschedulable: 2}}
		}
		if d.one(4) {
			if facts.Bars == nil {
				facts.Bars = map[string]scheduler.Bar{}
			}
			facts.Bars[b.Cluster] = scheduler.Bar{Since: ago, Resources: oneOf(d, "s-0", "s-1")}
		}
	}
}

// divideFacts has the replicas of two workloads divided.
func (d dice) divideFacts(facts *scheduler.Facts) {
	if facts.Policy == nil {
		facts.Policy = pickAll()
	}
	rule := placementv1beta1.ReplicaSchedulingRule{
		Rebalance:     oneOf(d, placementv1beta1.RebalanceNever, placementv1beta1.RebalanceAlways),
		EmptyClusters: oneOf(d, "", placementv1beta1.EmptyClustersDrop),
	}
	switch d.IntN(4) {
	case 0:
		rule.DynamicWeight = placementv1beta1.DynamicWeightAvailableReplicas
	case 1:
		rule.Division = placementv1beta1.DivisionAggregated
	case 2:
		for i := range d.IntN(9) {
			entry := weighing(int32(d.IntN(4)), fmt.Sprint("c", i))
			entry.MinReplicas = oneOf(d, nil, nil, new(int32(d.IntN(3))))
			entry.MaxReplicas = oneOf(d, nil, nil, new(int32(3+d.IntN(6))))
			rule.Clusters = append(rule.Clusters, entry)
		}
	}
	facts.Policy.ReplicaScheduling = append(facts.Policy.ReplicaScheduling, rule)
	demand := front(int32(d.IntN(30)))
	if d.one(2) {
		demand = requesting(demand.Replicas)
	}
	if d.one(16) {
		demand.Obstacle = "it cannot be read"
	}
	facts.Demands = []rules.ReplicaDemand{demand, job(int32(d.IntN(9)), oneOf(d, nil, new(int32(d.IntN(20)))))}
	if d.one(12) {
		facts.Demands = nil
	}
}

// follow are the facts once a decision has been carried out, and other things have happened.
func (d dice) follow(facts scheduler.Facts, decision scheduler.Decision) scheduler.Facts {
	facts.Clusters = slices.Clone(facts.Clusters)
	facts.Bindings = applied(facts, decision).Bindings
	slices.SortFunc(facts.Bindings, func(a, b scheduler.Binding) int { return strings.Compare(a.Name, b.Name) })
	for i := range facts.Bindings {
		if b := &facts.Bindings[i]; decision.FailedOver[b.Name] != "" {
			b.LeftAt = facts.Now
			b.LeftBecause = placementv1beta1.CauseCluster
			if decision.Ill[b.Name] {
				b.LeftBecause = placementv1beta1.CauseApplication
			}
		}
	}
	facts.Bars = decision.Bars
	facts.Groups.FitSince = decision.FitSince
	facts.Now = facts.Now.Add(time.Duration(d.IntN(400)) * time.Second)
	facts.Undecided = ""
	if d.one(5) {
		facts.PolicySnapshot += "'"
	}
	for i := range facts.Clusters {
		facts.Clusters[i] = *facts.Clusters[i].DeepCopy()
		d.changeCluster(&facts.Clusters[i])
	}
	d.changeBindings(&facts)
	if d.one(2) {
		d.recoverLeft(&facts)
	}
	return facts
}

// recoverLeft has what was left recover before anything is written to what was picked in its place.
func (d dice) recoverLeft(facts *scheduler.Facts) {
	for i := range facts.Bindings {
		switch b := &facts.Bindings[i]; {
		case !b.LeftAt.IsZero():
			b.LeftAt = b.Created
			b.LeftBecause = placementv1beta1.CauseApplication
			b.Previous = placementv1beta1.BindingStateBound
			b.Health = healthy()
			b.Available = true
			b.Marked = false
		case b.State == placementv1beta1.BindingStateScheduled:
			b.Placed = false
			b.Created = facts.Now
		}
	}
}

// describeWorld is all that is decided and explained in a world, step by step.
func describeWorld(t *testing.T, seed int) string {
	d := throw(seed)
	facts := d.worldFacts()
	var told strings.Builder
	for range 4 {
		decision := scheduler.Decide(facts)
		text, err := json.MarshalIndent(map[string]any{
			"decision": decision, "why": scheduler.Explain(facts), "unexplained": scheduler.Unexplained(facts, decision, false),
			"tooMany": scheduler.TooManyAtOnce(facts, decision), "requests": scheduler.RequestsToWatch(facts, decision),
		}, "", " ")
		require.NoError(t, err)
		told.WriteString(strings.ReplaceAll(string(text), "[]", "null"))
		facts = d.follow(facts, decision)
	}
	return told.String()
}

// What is decided in random worlds, with every reason and message, is what was recorded: whoever changes it, does so on purpose.
func TestInRandomWorldsItIsDecidedAsRecorded(t *testing.T) {
	file := filepath.Join("testdata", "worlds.txt")
	var got []string
	for seed := range maxWorlds {
		hash := fnv.New64a()
		_, _ = hash.Write([]byte(describeWorld(t, seed))) // writing to a hash never fails
		got = append(got, fmt.Sprintf("%d %016x", seed, hash.Sum64()))
	}
	if *updateWorlds {
		require.NoError(t, os.WriteFile(file, []byte(strings.Join(got, "\n")+"\n"), 0o644))
	}
	recorded, err := os.ReadFile(file)
	require.NoError(t, err)
	want := strings.Split(strings.TrimSpace(string(recorded)), "\n")
	require.Len(t, want, len(got))
	for seed := range got {
		if !assert.Equal(t, want[seed], got[seed], "this is decided now:\n%s", describeWorld(t, seed)) {
			return
		}
	}
}
