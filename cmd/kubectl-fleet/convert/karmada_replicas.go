package convert

import (
	"cmp"
	"slices"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// readDivision reads how replicas are divided, and over how many clusters.
func (p *clusterReader) readDivision(in Input, placement fields, policy *placementv1beta1.PlacementPolicy) {
	divided := false
	static := false
	if placement.has("replicaScheduling") {
		scheduling := placement.sub("replicaScheduling")
		divided, static = p.readReplicas(in, scheduling, policy)
	}
	if policy.AffinityGroupMode == placementv1beta1.AffinityGroupOverflow && (!divided || static) {
		p.addNote(in, "spec.placement.clusterAffinities[0].overflowAffinities", Ignored,
			"groups overflow only where replicas are divided by dynamic weights or aggregated")
		policy.AffinityGroupMode = ""
		policy.AffinityGroups = policy.AffinityGroups[:1]
	}
	if divided && static && placement.take("spreadConstraints") != nil {
		p.addNote(in, "spec.placement.spreadConstraints", Ignored, "Karmada ignored them beside static weights: they are left out")
	}
	p.readSpread(in, placement, policy)
	if divided && len(policy.SpreadConstraints) > 0 {
		p.addNote(in, "spec.placement.spreadConstraints", Changed, "they choose clusters whether or not these have room for all replicas")
	}
	if placement.take("workloadAffinity") != nil {
		p.addNote(in, "spec.placement.workloadAffinity", Unsupported, "workloads are placed by themselves")
	}
}

// readSpread reads over how many groups clusters are spread.
func (p *clusterReader) readSpread(in Input, placement fields, policy *placementv1beta1.PlacementPolicy) {
	items := placement.list("spreadConstraints")
	if len(items) > 0 && policy.PlacementType == placementv1beta1.PickFixedPlacementType {
		p.addNote(in, "spec.placement.spreadConstraints", Changed, "clusters that are named are all picked: they are left out")
		placement.take("spreadConstraints")
		return
	}
	for _, item := range items {
		made := p.readConstraint(in, item)
		p.noteRest(in, item)
		if slices.ContainsFunc(policy.SpreadConstraints, func(c placementv1beta1.SpreadConstraint) bool { return c.SpreadBy == made.SpreadBy }) {
			p.addNote(in, item.path, Unsupported, "the constraint is left out: there is one for clusters and one for a label, at most")
			continue
		}
		policy.SpreadConstraints = append(policy.SpreadConstraints, made)
	}
	placement.take("spreadConstraints")
}

// readConstraint reads one constraint. Karmada takes no minimum for 1, and no maximum for 0.
func (p *clusterReader) readConstraint(in Input, item fields) (made placementv1beta1.SpreadConstraint) {
	field := item.text("spreadByField")
	made.LabelKey = item.text("spreadByLabel")
	made.SpreadBy = placementv1beta1.SpreadByLabel
	switch {
	case made.LabelKey != "":
	case field == "region":
		made.LabelKey = p.RegionLabel
	case field == "provider":
		made.LabelKey = p.ProviderLabel
	case field == "zone":
		made.LabelKey = p.ZoneLabel
		p.addNote(in, item.path+".spreadByField", Changed, "a cluster is in one zone here, that of its label %s", p.ZoneLabel)
	default:
		made.SpreadBy = placementv1beta1.SpreadByCluster
	}
	made.MinGroups = new(max(takeAs[int32](item, "minGroups"), 1))
	if most := takeAs[int32](item, "maxGroups"); most > 0 {
		made.MaxGroups = &most
	} else {
		p.addNote(in, item.path+".maxGroups", Changed, "there is no limit; Karmada scheduled nothing without one")
	}
	return made
}

// readReplicas makes the rule of a division.
func (p *clusterReader) readReplicas(in Input, scheduling fields, policy *placementv1beta1.PlacementPolicy) (divided, static bool) {
	kind := scheduling.text("replicaSchedulingType")
	preference := scheduling.text("replicaDivisionPreference")
	weights := scheduling.sub("weightPreference")
	dynamic := weights.text("dynamicWeight")
	if kind == "Duplicated" {
		scheduling.take("weightPreference")
		if preference != "" {
			p.addNote(in, scheduling.path+".replicaDivisionPreference", Ignored, "replicas are not divided")
		}
		return false, false
	}
	rule := placementv1beta1.ReplicaSchedulingRule{
		Type: placementv1beta1.ReplicasDivided, Rebalance: placementv1beta1.RebalanceAlways, EmptyClusters: placementv1beta1.EmptyClustersDrop,
	}
	switch {
	case preference == "Aggregated":
		rule.Division = placementv1beta1.DivisionAggregated
		rule.Rebalance = placementv1beta1.RebalanceNever
	case dynamic != "":
		rule.DynamicWeight = placementv1beta1.DynamicWeightAvailableReplicas
		rule.Rebalance = placementv1beta1.RebalanceNever
	default:
		static = true
		rule.Clusters = p.readWeights(in, weights)
	}
	weights.take("staticWeightList")
	policy.ReplicaScheduling = []placementv1beta1.ReplicaSchedulingRule{rule}
	return true, static
}

// readWeights reads static weights, the highest first: of those that match a cluster, the highest counts in Karmada, and the
// first here.
func (p *clusterReader) readWeights(in Input, weights fields) []placementv1beta1.ClusterReplicas {
	var clusters []placementv1beta1.ClusterReplicas
	for _, item := range weights.list("staticWeightList") {
		weight := takeAs[int64](item, "weight")
		terms := p.readTerms(in, item.sub("targetCluster"))
		p.noteRest(in, item)
		clusters = append(clusters, sharesFor(terms, placementv1beta1.ClusterReplicas{Weight: new(int32(min(max(weight, 0), maxWeight)))})...)
	}
	slices.SortStableFunc(clusters, func(a, b placementv1beta1.ClusterReplicas) int { return cmp.Compare(*b.Weight, *a.Weight) })
	all := slices.IndexFunc(clusters, func(c placementv1beta1.ClusterReplicas) bool {
		return len(
			c.ClusterSelector.ClusterSelectorTerms) == 0
	})
	switch {
	case all >= 0 && all < len(clusters)-1:
		p.addNote(in, weights.path+".staticWeightList", Ignored, "entries that weigh less than one that matches all clusters had no effect")
		clusters = clusters[:all+1]
	case all < 0 && len(clusters) > 0:
		p.addNote(in, weights.path+".staticWeightList", Changed, "a cluster that no entry matches gets no replicas; if none matched any, Karmada divided evenly")
	}
	return clusters
}

func matchesAll(terms []placementv1beta1.ClusterSelectorTerm) bool {
	return slices.ContainsFunc(terms, func(t placementv1beta1.ClusterSelectorTerm) bool {
		return t.LabelSelector == nil
	})
}
