package framework

import (
	"cmp"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// Cycle is what plug-ins know: the facts of one run of the scheduler.
type Cycle struct {
	// Policy of the placement; never nil.
	Policy *placementv1beta1.PlacementPolicy
	// Group is the affinity group that clusters are picked from; nil if the policy has none.
	Group *placementv1beta1.AffinityGroup
	// Namespace of a placement in one; empty for a cluster-scoped placement.
	Namespace string
	// Kinds are those of what is placed that clusters have to serve; nil if they are not known.
	Kinds []schema.GroupVersionKind
	// Fleet are the clusters that are not leaving the fleet, in no order.
	Fleet []*clusterv1beta1.MemberCluster
	// Ranges are those of properties over the fleet, by name, as far as they are known; cycles over the same fleet share them. It
	// may be nil.
	Ranges map[string]Range
	// Has tells by name of the cluster what the placement has there.
	Has map[string]Hold
	// Failover says when the placement leaves a cluster for another; nil if it stays.
	Failover *placementv1beta1.FailoverStrategy
	// Barred says why the placement keeps off clusters that it has left, by name.
	Barred map[string]string
	// Now is when the decision is made.
	Now time.Time
	// supposed is a cluster of which hold counts, whatever Has says.
	supposed string
	hold     Hold
}

// Range is between which values a property is.
type Range struct{ Low, High float64 }

// Hold is what a placement has on a cluster.
type Hold int

const (
	// Nothing is on the cluster that the placement holds on to.
	Nothing Hold = iota
	// Picked clusters were picked by the latest policy.
	Picked
	// Obsolete clusters were picked by an earlier policy and have not been looked at by
	// the latest.
	Obsolete
	// Clearing clusters are those from which an earlier binding is still being removed.
	Clearing
)

// HoldOn returns what the placement has on a cluster.
func (c *Cycle) HoldOn(cluster string) Hold {
	if cluster == c.supposed {
		return c.hold
	}
	return c.Has[cluster]
}

// Supposing returns what plug-ins know if the placement has something else on a cluster.
func (c *Cycle) Supposing(cluster string, hold Hold) *Cycle {
	other := *c
	other.supposed = cluster
	other.hold = hold
	return &other
}

// Holds reports whether the placement is on the cluster, picked by whatever policy.
func (c *Cycle) Holds(cluster string) bool {
	hold := c.HoldOn(cluster)
	return hold == Picked || hold == Obsolete
}

// Score ranks a cluster.
type Score struct {
	// Topology is how well the cluster spreads the placement.
	Topology int32
	// Affinity is how well the cluster matches what is preferred.
	Affinity int32
	// Placed is 1 if the placement is there already, picked by an earlier policy.
	Placed int32
	// Taints is -1 for each taint that has other clusters picked first.
	Taints int32
}

// Add sums two scores up.
func (s Score) Add(other Score) Score {
	return Score{
		Topology: s.Topology + other.Topology,
		Affinity: s.Affinity + other.Affinity,
		Placed:   s.Placed + other.Placed,
		Taints:   s.Taints + other.Taints,
	}
}

// Compare is negative if the score is the higher one: by topology, then by affinity, then
// by what is placed already, at last by taints.
func (s Score) Compare(other Score) int {
	return cmp.Or(
		cmp.Compare(other.Topology, s.Topology),
		cmp.Compare(other.Affinity, s.Affinity),
		cmp.Compare(other.Placed, s.Placed),
		cmp.Compare(other.Taints, s.Taints),
	)
}

// Loss is how uneven what remains is spread if a cluster goes.
type Loss struct {
	// Beyond is by how much constraints that have to hold are exceeded, Skew is the skew by all of them.
	Beyond, Skew int
	// Crowd is how many picked clusters are in the groups of the cluster.
	Crowd int
}

// Add sums two losses up.
func (l Loss) Add(other Loss) Loss {
	return Loss{Beyond: l.Beyond + other.Beyond, Skew: l.Skew + other.Skew, Crowd: l.Crowd + other.Crowd}
}

// Compare is negative if the loss is the smaller one; of equal ones that of a cluster with more others beside it is.
func (l Loss) Compare(other Loss) int {
	return cmp.Or(cmp.Compare(l.Beyond, other.Beyond), cmp.Compare(l.Skew, other.Skew), cmp.Compare(other.Crowd, l.Crowd))
}
