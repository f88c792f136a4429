package convert

import (
	"fmt"

	"k8s.io/utils/ptr"

	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// purgeModes are Karmada's, by all names that they have had.
var purgeModes = map[string]placementv1beta1.PurgeMode{
	"": "", "Gracefully": placementv1beta1.PurgeGracefully, "Graciously": placementv1beta1.PurgeGracefully,
	"Directly": placementv1beta1.PurgeDirectly, "Immediately": placementv1beta1.PurgeDirectly,
}

// readFailover reads when a policy leaves a cluster.
func (p *policyReader) readFailover(in Input, spec fields, made placing) {
	if !spec.has("failover") {
		return
	}
	failover := spec.sub("failover")
	if preservesState(failover) {
		pickOne(made.policy)
	}
	application := p.readApplicationFailover(in, spec, failover, made)
	cluster := p.readClusterFailover(in, failover, made)
	if onlyReplicasMove(made.policy) {
		p.leaveReplicasTime(in, application, cluster)
	}
	if application != nil || cluster != nil {
		made.strategy.Failover = &placementv1beta1.FailoverStrategy{Application: application, Cluster: cluster}
	}
}

// readApplicationFailover reads when a policy leaves a cluster because a workload is ill there; nil if it does not, or cannot here.
func (p *policyReader) readApplicationFailover(in Input, spec, failover fields, made placing) *placementv1beta1.ApplicationFailover {
	if !failover.has("application") {
		return nil
	}
	application := failover.sub("application")
	rule := &placementv1beta1.ApplicationFailover{
		DecisionConditions: takeAs[*placementv1beta1.FailoverDecisionConditions](application, "decisionConditions"),
		GracePeriodSeconds: takeAs[*int32](application, "gracePeriodSeconds"),
	}
	mode, canGo := p.readPurge(in, application, "application", made)
	if !canGo {
		return nil
	}
	if mode == "Never" {
		rule.PurgeMode = placementv1beta1.PurgeNever
	} else {
		rule.PurgeMode = p.readPurgeMode(in, "application", mode)
	}
	rule.StatePreservation = p.readState(in, application, rule.PurgeMode, made)
	if dependencies, _ := spec.content["propagateDeps"].(bool); !dependencies {
		p.addNote(in, "spec.failover.application", Changed, "Karmada ignored it without propagateDeps; here it acts")
	}
	return rule
}

// readClusterFailover reads when a policy leaves a cluster that is ill; nil if it does not, or cannot here.
func (p *policyReader) readClusterFailover(in Input, failover fields, made placing) *placementv1beta1.ClusterFailover {
	if !failover.has("cluster") {
		return nil
	}
	cluster := failover.sub("cluster")
	mode, canGo := p.readPurge(in, cluster, "cluster", made)
	if !canGo {
		return nil
	}
	purge := p.readPurgeMode(in, "cluster", mode)
	return &placementv1beta1.ClusterFailover{PurgeMode: purge, StatePreservation: p.readState(in, cluster, purge, made)}
}

// readPurge reads what both kinds of failover have in common; canGo is false if there is no cluster to go to.
func (p *policyReader) readPurge(in Input, of fields, name string, made placing) (mode string, canGo bool) {
	mode = of.text("purgeMode")
	if canGo = canFailOver(made.policy); !canGo {
		of.take("statePreservation") // what is not left has nothing to go along
		p.addNote(in, "spec.failover."+name, Unsupported, "every cluster that fits is placed on, so that there is none to go to: pick a number of clusters, use affinityGroups, or divide replicas")
	}
	return mode, canGo
}

// preservesState reports whether state of what is left goes along in Karmada, if there is one cluster.
func preservesState(failover fields) bool {
	for _, name := range []string{"application", "cluster"} {
		of, _ := failover.content[name].(map[string]any)
		mode, _ := of["purgeMode"].(string)
		if of["statePreservation"] != nil && purgeModes[mode] == placementv1beta1.PurgeDirectly {
			return true
		}
	}
	return false
}

// pickOne has a policy that picks one cluster by a constraint pick it by number, which is the same.
func pickOne(policy *placementv1beta1.PlacementPolicy) {
	if policy.PlacementType != placementv1beta1.PickAllPlacementType || len(policy.SpreadConstraints) != 1 ||
		len(policy.ReplicaScheduling) > 0 {
		return
	}
	if only := policy.SpreadConstraints[0]; only.SpreadBy == placementv1beta1.SpreadByCluster && only.MaxGroups != nil &&
		*only.MaxGroups == 1 {
		policy.PlacementType = placementv1beta1.PickNPlacementType
		policy.NumberOfClusters = ptr.To[int32](1)
		policy.SpreadConstraints = nil
	}
}

// readState reads what of the status goes along; nil if nothing does, or can here.
func (p *policyReader) readState(in Input, of fields, mode placementv1beta1.PurgeMode, made placing) *placementv1beta1.StatePreservation {
	if !of.has("statePreservation") {
		return nil
	}
	path := of.pathOf("statePreservation")
	read := takeAs[placementv1beta1.StatePreservation](of, "statePreservation")
	policy := made.policy
	switch {
	case mode != placementv1beta1.PurgeDirectly:
		p.addNote(in, path, Ignored, "Karmada took it for purgeMode Directly only")
		return nil
	case policy.PlacementType != placementv1beta1.PickNPlacementType || policy.NumberOfClusters == nil || *policy.NumberOfClusters != 1:
		p.addNote(in, path, Unsupported, "nothing of the status goes along unless exactly one cluster is picked: set placementType to PickN and numberOfClusters to 1 in the policy of a new placement")
		return nil
	}
	taken := &placementv1beta1.StatePreservation{}
	for i, rule := range read.Rules {
		problem := rules.StateRuleProblem(rule)
		if len(taken.Rules) == maxStateRules {
			problem = fmt.Sprintf("there are more than %d rules", maxStateRules)
		}
		if problem != "" {
			p.addNote(in, fmt.Sprintf("%s.rules[%d]", path, i), Unsupported, "%s", problem)
			continue
		}
		taken.Rules = append(taken.Rules, rule)
	}
	if len(taken.Rules) == 0 {
		return nil
	}
	return taken
}

// readPurgeMode returns Karmada's purge mode here.
func (p *policyReader) readPurgeMode(in Input, of, mode string) placementv1beta1.PurgeMode {
	purge, known := purgeModes[mode]
	if !known {
		p.addNote(in, "spec.failover."+of+".purgeMode", Unsupported, "what is placed goes once its replacement is available")
	}
	return purge
}

// leaveReplicasTime takes away what does not count where only replicas go to other clusters: they go as others are ready there.
func (p *policyReader) leaveReplicasTime(in Input, application *placementv1beta1.ApplicationFailover,
	cluster *placementv1beta1.ClusterFailover) {
	const text = "what is placed stays on every cluster that fits, and its replicas go from an ill one as others are ready elsewhere, however long that takes"
	if application != nil {
		if application.PurgeMode != "" && application.PurgeMode != placementv1beta1.PurgeGracefully {
			p.addNote(in, "spec.failover.application.purgeMode", Changed, text)
		}
		if application.GracePeriodSeconds != nil {
			p.addNote(in, "spec.failover.application.gracePeriodSeconds", Changed, text)
		}
		application.PurgeMode = ""
		application.GracePeriodSeconds = nil
	}
	if cluster != nil {
		if cluster.PurgeMode != "" && cluster.PurgeMode != placementv1beta1.PurgeGracefully {
			p.addNote(in, "spec.failover.cluster.purgeMode", Changed, text)
		}
		cluster.PurgeMode = ""
	}
}

// canFailOver reports whether a policy has other clusters to go to.
func canFailOver(policy *placementv1beta1.PlacementPolicy) bool {
	return policy.PlacementType == placementv1beta1.PickNPlacementType || movesAsAGroup(policy) || onlyReplicasMove(policy)
}

// movesAsAGroup reports whether a policy goes to another group of clusters if one has none.
func movesAsAGroup(policy *placementv1beta1.PlacementPolicy) bool {
	return len(policy.AffinityGroups) > 0 && policy.AffinityGroupMode != placementv1beta1.AffinityGroupOverflow
}

// onlyReplicasMove reports whether what is placed stays on every cluster that fits, and only its replicas go to others.
func onlyReplicasMove(policy *placementv1beta1.PlacementPolicy) bool {
	return policy.PlacementType == placementv1beta1.PickAllPlacementType && rules.DividesReplicas(policy) && !movesAsAGroup(policy)
}
