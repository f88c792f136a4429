package convert

import (
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// purgeModes are Karmada's, by all names that they have had.
var purgeModes = map[string]placementv1beta1.PurgeMode{
	"": "", "Gracefully": placementv1beta1.PurgeGracefully, "Graciously": placementv1beta1.PurgeGracefully,
	"Directly": placementv1beta1.PurgeDirectly, "Immediately": placementv1beta1.PurgeDirectly,
}

// readFailover reads when a policy leaves a cluster.
func (p *propagation) readFailover(in Input, spec fields, made placing) error {
	if !spec.has("failover") {
		return nil
	}
	failover, err := spec.sub("failover")
	if err != nil {
		return err
	}
	if failover.take("application") != nil {
		p.note(in, "spec.failover.application", Unsupported, "a workload stays where it is while it is ill and its cluster is not: evict it with kubectl fleet evict")
	}
	if !failover.has("cluster") {
		return nil
	}
	cluster, err := failover.sub("cluster")
	if err != nil {
		return err
	}
	mode, err := cluster.text("purgeMode")
	if err != nil {
		return err
	}
	if cluster.take("statePreservation") != nil {
		p.note(in, "spec.failover.cluster.statePreservation", Unsupported, "nothing of the status of what is left goes along")
	}
	if !canFailOver(made.policy) {
		p.note(in, "spec.failover.cluster", Unsupported, "every cluster that fits is placed on, so that there is none to go to: pick a number of clusters, or use affinityGroups")
		return nil
	}
	purge, known := purgeModes[mode]
	if !known {
		p.note(in, "spec.failover.cluster.purgeMode", Unsupported, "what is placed goes once its replacement is available")
	}
	made.strategy.Failover = &placementv1beta1.FailoverStrategy{Cluster: &placementv1beta1.ClusterFailover{PurgeMode: purge}}
	return nil
}

// canFailOver says that a policy has other clusters to go to.
func canFailOver(policy *placementv1beta1.PlacementPolicy) bool {
	return policy.PlacementType == placementv1beta1.PickNPlacementType ||
		len(policy.AffinityGroups) > 0 && policy.AffinityGroupMode != placementv1beta1.AffinityGroupOverflow
}
