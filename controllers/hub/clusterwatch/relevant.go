package clusterwatch

import (
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/fleetflow/fleetflow/activities/scheduler"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// Relevance is how much a change of a cluster means to placements.
type Relevance int

const (
	// Irrelevant changes nobody's choice: nearly every heartbeat.
	Irrelevant Relevance = iota
	// Figures are properties and resource usage: they matter to policies that select
	// by them.
	Figures
	// Standing is what matters to every policy: labels, taints, whether the cluster
	// can take anything, whether it leaves.
	Standing
)

// Relevant says what a change of a cluster means to placements. It is pure.
func Relevant(before, after *clusterv1beta1.MemberCluster, now time.Time) Relevance {
	switch {
	case before.UID != after.UID,
		before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero(),
		(scheduler.Ineligible(before, now) == "") != (scheduler.Ineligible(after, now) == ""),
		!maps.Equal(before.Labels, after.Labels),
		!equality.Semantic.DeepEqual(before.Spec.Taints, after.Spec.Taints):
		return Standing
	case !maps.EqualFunc(before.Status.Properties, after.Status.Properties, sameValue),
		!equality.Semantic.DeepEqual(figures(before), figures(after)):
		return Figures
	}
	return Irrelevant
}

func sameValue(a, b clusterv1beta1.PropertyValue) bool { return a.Value == b.Value }

// figures is the resource usage without the time of its observation.
func figures(cluster *clusterv1beta1.MemberCluster) clusterv1beta1.ResourceUsage {
	usage := cluster.Status.ResourceUsage
	return clusterv1beta1.ResourceUsage{Capacity: usage.Capacity, Allocatable: usage.Allocatable, Available: usage.Available}
}

// Stake is what a placement has to do with one cluster.
type Stake struct {
	Policy *placementv1beta1.PlacementPolicy
	// Bound says that a live binding holds the cluster, Terminating that one is being
	// cleaned up there.
	Bound, Terminating bool
	// Picked is how many clusters the placement has.
	Picked int
}

// Cares says whether a placement would decide anew about a cluster as it is now; nil
// if the cluster is gone. It is pure.
func Cares(stake Stake, cluster *clusterv1beta1.MemberCluster, now time.Time) bool {
	gone := cluster == nil || cluster.DeletionTimestamp != nil
	switch {
	case stake.Bound || gone:
		return stake.Bound && gone
	case stake.Terminating:
		return false // the end of the clean-up will tell
	}
	policy := stake.Policy
	if policy != nil && policy.PlacementType == placementv1beta1.PickNPlacementType &&
		(policy.NumberOfClusters == nil || stake.Picked >= int(*policy.NumberOfClusters)) {
		return false
	}
	return scheduler.NewTaker(policy).Takes(cluster, now)
}

// selectsByFigures says whether a policy looks at properties.
func selectsByFigures(policy *placementv1beta1.PlacementPolicy) bool {
	if policy == nil || policy.Affinity == nil || policy.Affinity.ClusterAffinity == nil {
		return false
	}
	required := policy.Affinity.ClusterAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	if required == nil {
		return false
	}
	for i := range required.ClusterSelectorTerms {
		if required.ClusterSelectorTerms[i].PropertySelector != nil {
			return true
		}
	}
	return false
}
