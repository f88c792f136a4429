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
	application, err := p.readApplicationFailover(in, spec, failover, made)
	if err != nil {
		return err
	}
	cluster, err := p.readClusterFailover(in, failover, made)
	if err != nil {
		return err
	}
	if application != nil || cluster != nil {
		made.strategy.Failover = &placementv1beta1.FailoverStrategy{Application: application, Cluster: cluster}
	}
	return nil
}

// readApplicationFailover reads when a policy leaves a cluster because a workload is ill there; nil if it does not, or cannot here.
func (p *propagation) readApplicationFailover(in Input, spec, failover fields, made placing) (*placementv1beta1.ApplicationFailover, error) {
	if !failover.has("application") {
		return nil, nil
	}
	application, err := failover.sub("application")
	if err != nil {
		return nil, err
	}
	rule := &placementv1beta1.ApplicationFailover{}
	if _, err := application.decode("decisionConditions", &rule.DecisionConditions); err != nil {
		return nil, err
	}
	if _, err := application.decode("gracePeriodSeconds", &rule.GracePeriodSeconds); err != nil {
		return nil, err
	}
	mode, canGo, err := p.readPurge(in, application, "application", made)
	if err != nil || !canGo {
		return nil, err
	}
	if mode == "Never" {
		rule.PurgeMode = placementv1beta1.PurgeNever
	} else {
		rule.PurgeMode = p.readPurgeMode(in, "application", mode)
	}
	if dependencies, _ := spec.content["propagateDeps"].(bool); !dependencies {
		p.note(in, "spec.failover.application", Changed, "Karmada ignored it without propagateDeps; here it acts")
	}
	return rule, nil
}

// readClusterFailover reads when a policy leaves a cluster that is ill; nil if it does not, or cannot here.
func (p *propagation) readClusterFailover(in Input, failover fields, made placing) (*placementv1beta1.ClusterFailover, error) {
	if !failover.has("cluster") {
		return nil, nil
	}
	cluster, err := failover.sub("cluster")
	if err != nil {
		return nil, err
	}
	mode, canGo, err := p.readPurge(in, cluster, "cluster", made)
	if err != nil || !canGo {
		return nil, err
	}
	return &placementv1beta1.ClusterFailover{PurgeMode: p.readPurgeMode(in, "cluster", mode)}, nil
}

// readPurge reads what both kinds of failover have in common; canGo is false if there is no cluster to go to.
func (p *propagation) readPurge(in Input, of fields, name string, made placing) (mode string, canGo bool, err error) {
	if mode, err = of.text("purgeMode"); err != nil {
		return "", false, err
	}
	if of.take("statePreservation") != nil {
		p.note(in, "spec.failover."+name+".statePreservation", Unsupported, "nothing of the status of what is left goes along")
	}
	if canGo = canFailOver(made.policy); !canGo {
		p.note(in, "spec.failover."+name, Unsupported, "every cluster that fits is placed on, so that there is none to go to: pick a number of clusters, or use affinityGroups")
	}
	return mode, canGo, nil
}

// readPurgeMode is Karmada's purge mode here.
func (p *propagation) readPurgeMode(in Input, of, mode string) placementv1beta1.PurgeMode {
	purge, known := purgeModes[mode]
	if !known {
		p.note(in, "spec.failover."+of+".purgeMode", Unsupported, "what is placed goes once its replacement is available")
	}
	return purge
}

// canFailOver says that a policy has other clusters to go to.
func canFailOver(policy *placementv1beta1.PlacementPolicy) bool {
	return policy.PlacementType == placementv1beta1.PickNPlacementType ||
		len(policy.AffinityGroups) > 0 && policy.AffinityGroupMode != placementv1beta1.AffinityGroupOverflow
}
