package scheduler

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// taintToleration is the filter for taints the policy does not tolerate. Taints
// keep new placements off; what is on the cluster stays.
type taintToleration struct{}

func (taintToleration) reject(c *cycle, cluster *clusterv1beta1.MemberCluster) string {
	if c.held(cluster.Name) {
		return ""
	}
	for _, taint := range cluster.Spec.Taints {
		if !tolerated(c.facts.Policy, taint) {
			return fmt.Sprintf("taint %+v cannot be tolerated", taint)
		}
	}
	return ""
}

func tolerated(policy *placementv1beta1.PlacementPolicy, taint clusterv1beta1.Taint) bool {
	if policy == nil {
		return false
	}
	for _, toleration := range policy.Tolerations {
		if tolerates(toleration, taint) {
			return true
		}
	}
	return false
}

// tolerates follows the rules of Kubernetes: an empty key with Exists tolerates
// every key, an empty effect every effect.
func tolerates(toleration placementv1beta1.Toleration, taint clusterv1beta1.Taint) bool {
	if toleration.Effect != "" && toleration.Effect != taint.Effect {
		return false
	}
	if toleration.Key != "" && toleration.Key != taint.Key {
		return false
	}
	if toleration.Operator == corev1.TolerationOpExists {
		return true
	}
	return toleration.Key != "" && toleration.Value == taint.Value
}
