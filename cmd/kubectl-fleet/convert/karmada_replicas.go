package convert

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

func toleration(operator string) corev1.TolerationOperator {
	return corev1.TolerationOperator(operator)
}

func taintEffect(effect string) corev1.TaintEffect { return corev1.TaintEffect(effect) }

// readDivision reads how replicas are divided, and over how many clusters.
func (p *propagation) readDivision(in Input, placement fields, policy *placementv1beta1.PlacementPolicy) error {
	divided, static := false, false
	if placement.has("replicaScheduling") {
		scheduling, err := placement.sub("replicaScheduling")
		if err != nil {
			return err
		}
		if divided, static, err = p.readReplicas(in, scheduling, policy); err != nil {
			return err
		}
	}
	if policy.AffinityGroupMode == placementv1beta1.AffinityGroupOverflow && (!divided || static) {
		p.note(in, "spec.placement.clusterAffinities[0].overflowAffinities", Ignored, "groups overflow only where replicas are divided by dynamic weights or aggregated")
		policy.AffinityGroupMode, policy.AffinityGroups = "", policy.AffinityGroups[:1]
	}
	if divided && static && placement.take("spreadConstraints") != nil {
		p.note(in, "spec.placement.spreadConstraints", Ignored, "Karmada ignored them beside static weights: they are left out")
	}
	if err := p.readSpread(in, placement, policy); err != nil {
		return err
	}
	if divided && len(policy.SpreadConstraints) > 0 {
		p.note(in, "spec.placement.spreadConstraints", Changed, "they choose clusters whether or not these have room for all replicas")
	}
	if placement.take("workloadAffinity") != nil {
		p.note(in, "spec.placement.workloadAffinity", Unsupported, "workloads are placed by themselves")
	}
	return nil
}

// readSpread reads over how many groups clusters are spread.
func (p *propagation) readSpread(in Input, placement fields, policy *placementv1beta1.PlacementPolicy) error {
	items, err := placement.list("spreadConstraints")
	if err != nil {
		return err
	}
	if len(items) > 0 && policy.PlacementType == placementv1beta1.PickFixedPlacementType {
		p.note(in, "spec.placement.spreadConstraints", Changed, "clusters that are named are all picked: they are left out")
		placement.take("spreadConstraints")
		return nil
	}
	for _, item := range items {
		made, err := p.readConstraint(in, item)
		if err != nil {
			return err
		}
		p.noteRest(in, item)
		if slices.ContainsFunc(policy.SpreadConstraints, func(c placementv1beta1.SpreadConstraint) bool { return c.SpreadBy == made.SpreadBy }) {
			p.note(in, item.path, Unsupported, "the constraint is left out: there is one for clusters and one for a label, at most")
			continue
		}
		policy.SpreadConstraints = append(policy.SpreadConstraints, made)
	}
	placement.take("spreadConstraints")
	return nil
}

// readConstraint reads one constraint. Karmada takes no minimum for 1, and no maximum for 0.
func (p *propagation) readConstraint(in Input, item fields) (made placementv1beta1.SpreadConstraint, err error) {
	field, err := item.text("spreadByField")
	if err != nil {
		return made, err
	}
	if made.LabelKey, err = item.text("spreadByLabel"); err != nil {
		return made, err
	}
	made.SpreadBy = placementv1beta1.SpreadByLabel
	switch {
	case made.LabelKey != "":
	case field == "region":
		made.LabelKey = p.RegionLabel
	case field == "provider":
		made.LabelKey = p.ProviderLabel
	case field == "zone":
		made.LabelKey = p.ZoneLabel
		p.note(in, item.path+".spreadByField", Changed, "a cluster is in one zone here, that of its label %s", p.ZoneLabel)
	default:
		made.SpreadBy = placementv1beta1.SpreadByCluster
	}
	var least, most int32
	if _, err := item.decode("minGroups", &least); err != nil {
		return made, err
	}
	if _, err := item.decode("maxGroups", &most); err != nil {
		return made, err
	}
	made.MinGroups = new(max(least, 1))
	if most > 0 {
		made.MaxGroups = &most
	} else {
		p.note(in, item.path+".maxGroups", Changed, "there is no limit; Karmada scheduled nothing without one")
	}
	return made, nil
}

// readReplicas makes the rule of a division.
func (p *propagation) readReplicas(in Input, scheduling fields, policy *placementv1beta1.PlacementPolicy) (divided, static bool, err error) {
	kind, err := scheduling.text("replicaSchedulingType")
	if err != nil {
		return false, false, err
	}
	preference, err := scheduling.text("replicaDivisionPreference")
	if err != nil {
		return false, false, err
	}
	weights, err := scheduling.sub("weightPreference")
	if err != nil {
		return false, false, err
	}
	dynamic, err := weights.text("dynamicWeight")
	if err != nil {
		return false, false, err
	}
	if kind == "Duplicated" {
		scheduling.take("weightPreference")
		if preference != "" {
			p.note(in, scheduling.path+".replicaDivisionPreference", Ignored, "replicas are not divided")
		}
		return false, false, nil
	}
	rule := placementv1beta1.ReplicaSchedulingRule{
		Type: placementv1beta1.ReplicasDivided, Rebalance: placementv1beta1.RebalanceAlways, EmptyClusters: placementv1beta1.EmptyClustersDrop,
	}
	switch {
	case preference == "Aggregated":
		rule.Division, rule.Rebalance = placementv1beta1.DivisionAggregated, placementv1beta1.RebalanceNever
	case dynamic != "":
		rule.DynamicWeight, rule.Rebalance = placementv1beta1.DynamicWeightAvailableReplicas, placementv1beta1.RebalanceNever
	default:
		static = true
		if rule.Clusters, err = p.readWeights(in, weights); err != nil {
			return false, false, err
		}
	}
	weights.take("staticWeightList")
	policy.ReplicaScheduling = []placementv1beta1.ReplicaSchedulingRule{rule}
	return true, static, nil
}

// readWeights reads static weights, the highest first: of those that match a cluster, the highest counts in Karmada, and the
// first here.
func (p *propagation) readWeights(in Input, weights fields) ([]placementv1beta1.ClusterReplicas, error) {
	items, err := weights.list("staticWeightList")
	if err != nil {
		return nil, err
	}
	var clusters []placementv1beta1.ClusterReplicas
	for _, item := range items {
		var weight int64
		if _, err := item.decode("weight", &weight); err != nil {
			return nil, err
		}
		target, err := item.sub("targetCluster")
		if err != nil {
			return nil, err
		}
		terms, err := p.readTerms(in, target)
		if err != nil {
			return nil, err
		}
		p.noteRest(in, item)
		clusters = append(clusters, sharesFor(terms, placementv1beta1.ClusterReplicas{Weight: new(int32(min(max(weight, 0), maxWeight)))})...)
	}
	slices.SortStableFunc(clusters, func(a, b placementv1beta1.ClusterReplicas) int { return cmp.Compare(*b.Weight, *a.Weight) })
	all := slices.IndexFunc(clusters, func(c placementv1beta1.ClusterReplicas) bool { return len(c.ClusterSelector.ClusterSelectorTerms) == 0 })
	switch {
	case all >= 0 && all < len(clusters)-1:
		p.note(in, weights.path+".staticWeightList", Ignored, "entries that weigh less than one that matches all clusters had no effect")
		clusters = clusters[:all+1]
	case all < 0 && len(clusters) > 0:
		p.note(in, weights.path+".staticWeightList", Changed, "a cluster that no entry matches gets no replicas; if none matched any, Karmada divided evenly")
	}
	return clusters, nil
}

func matchesAll(terms []placementv1beta1.ClusterSelectorTerm) bool {
	return slices.ContainsFunc(terms, func(t placementv1beta1.ClusterSelectorTerm) bool {
		return t.LabelSelector == nil
	})
}
