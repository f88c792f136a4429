package hub

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// ReplicaShare is what a cluster has of the replicas of a divided workload.
type ReplicaShare struct {
	Workload string `json:"workload"`
	Cluster  string `json:"cluster"`
	// Wanted is what the cluster was assigned, Of what all clusters were together.
	Wanted int32 `json:"wanted"`
	Of     int32 `json:"of"`
	// InForce is what the hub asks the cluster for now; nil if that is nothing yet.
	InForce *int32 `json:"inForce,omitempty"`
	// Ready is how many are ready there; nil if that is not known.
	Ready *int32 `json:"ready,omitempty"`
	// Completions of a Job, if it counts them.
	Completions *int32 `json:"completions,omitempty"`
	// Dropped says that the cluster is not to have the workload.
	Dropped bool `json:"dropped,omitempty"`
	// Reason for the number.
	Reason string `json:"reason,omitempty"`
	// Free is how many more the cluster had room for when that was decided, where it counts; Capacity is how many it has been
	// seen to have room for, since no node took more.
	Free     *int32 `json:"free,omitempty"`
	Capacity *int32 `json:"capacity,omitempty"`

	workload rules.Workload
}

// String returns the share in words, such as "weight 2 of 6: 34 of 100".
func (s ReplicaShare) String() string { return fmt.Sprintf("%s: %d of %d", s.Reason, s.Wanted, s.Of) }

// ReplicaShares returns the shares that bindings of a placement report, by workload and cluster. works are the Works of the placement
// by cluster, as far as they are known.
func ReplicaShares(bindings []Binding, works map[string][]placementv1beta1.Work) []ReplicaShare {
	var shares []ReplicaShare
	totals := map[rules.Workload]int32{}
	for _, binding := range bindings {
		cluster := binding.Spec.TargetCluster
		live := rules.IsLiveBinding(binding.Object)
		ready := readyReplicas(works[cluster])
		assigned := map[rules.Workload]*ReplicaShare{}
		shareOf := func(a *placementv1beta1.ReplicaAssignment) *ReplicaShare {
			workload := rules.AssignedWorkload(a)
			if assigned[workload] == nil {
				assigned[workload] = &ReplicaShare{Workload: workload.String(), Cluster: cluster, Ready: ready[workload], workload: workload}
			}
			return assigned[workload]
		}
		for i := range binding.Spec.ClusterDecision.Assignments {
			if a := &binding.Spec.ClusterDecision.Assignments[i]; live {
				share := shareOf(a)
				share.Wanted = a.Replicas
				share.Completions = a.Completions
				share.Dropped = a.Dropped
				share.Reason = a.Reason
				share.Free = a.Free
				share.Capacity = a.Capacity
				totals[share.workload] += a.Replicas
			}
		}
		for i := range binding.Spec.ReplicaAssignments {
			a := &binding.Spec.ReplicaAssignments[i]
			shareOf(a).InForce = new(a.Replicas)
		}
		for _, share := range assigned {
			shares = append(shares, *share)
		}
	}
	for i := range shares {
		shares[i].Of = totals[shares[i].workload]
	}
	slices.SortFunc(shares, func(a, b ReplicaShare) int {
		return cmp.Or(a.workload.Compare(b.workload), cmp.Compare(a.Cluster, b.Cluster))
	})
	return shares
}

// readyReplicas returns the ready replicas of workloads that the Works of a cluster report.
func readyReplicas(works []placementv1beta1.Work) map[rules.Workload]*int32 {
	ready := map[rules.Workload]*int32{}
	for i := range works {
		for _, manifest := range works[i].Status.ManifestConditions {
			if manifest.ReplicaStatus == nil {
				continue
			}
			id := manifest.Identifier
			workload := rules.Workload{Group: id.Group, Kind: id.Kind, Namespace: id.Namespace, Name: id.Name}
			if ready[workload] == nil {
				ready[workload] = new(int32)
			}
			*ready[workload] += manifest.ReplicaStatus.Ready
		}
	}
	return ready
}

// ReplicaDemands reads what the workloads in the latest snapshot ask for whose replicas the policy divides; nil if it divides none.
func (r PlacementReader) ReplicaDemands(ctx context.Context, policy *placementv1beta1.PlacementPolicy) ([]rules.ReplicaDemand, error) {
	if !rules.DividesReplicas(policy) {
		return nil, nil
	}
	all, err := r.ResourceSnapshotIndexes(ctx)
	if err != nil {
		return nil, err
	}
	parts, err := r.ResourceSnapshots(ctx, LatestIndex(all))
	if err != nil {
		return nil, err
	}
	var manifests [][]byte
	var counts string
	for _, part := range parts {
		counts += part.GetAnnotations()[placementv1beta1.ReplicaCountsAnnotation] // only the master has it
		for _, resource := range part.Spec.SelectedResources {
			manifests = append(manifests, resource.Raw)
		}
	}
	demands, err := rules.ReadReplicaDemands(policy, manifests)
	if err != nil {
		return nil, err
	}
	return rules.WithReplicaCounts(demands, counts), nil
}

// AllWorks returns the Works by cluster, of those that bindings name.
func (r PlacementReader) AllWorks(ctx context.Context, bindings []Binding) (map[string][]placementv1beta1.Work, error) {
	list, err := r.listWorks(ctx, r.Placement.String())
	if err != nil {
		return nil, err
	}
	clusters := map[string]string{}
	for _, binding := range bindings {
		clusters[placementv1beta1.MemberNamespace(binding.Spec.TargetCluster)] = binding.Spec.TargetCluster
	}
	works := map[string][]placementv1beta1.Work{}
	for i := range list {
		work := &list[i]
		if _, namespaced := work.Labels[placementv1beta1.ParentNamespaceLabel]; namespaced == (r.Placement.Namespace == "") {
			continue // of a placement of the same name in another scope
		}
		if cluster := clusters[work.Namespace]; cluster != "" {
			works[cluster] = append(works[cluster], *work)
		}
	}
	return works, nil
}
