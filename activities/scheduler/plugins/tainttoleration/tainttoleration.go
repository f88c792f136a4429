// Package tainttoleration keeps placements off clusters with a taint that the policy
// does not tolerate, or prefers other clusters. Taints keep new placements off; what is on
// the cluster stays, whatever the effect, unless the placement fails over (package failover).
package tainttoleration

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/fleetflow/fleetflow/activities/scheduler/framework"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

type plugin struct{}

// New returns the plug-in.
func New() framework.Plugin { return plugin{} }

// Name of the plug-in.
func (plugin) Name() string { return "TaintToleration" }

// Filter finds a taint that no toleration covers, and that keeps placements off.
func (plugin) Filter(c *framework.Cycle, cluster *clusterv1beta1.MemberCluster) string {
	if len(cluster.Spec.Taints) == 0 || c.Holds(cluster.Name) {
		return ""
	}
	for _, taint := range cluster.Spec.Taints {
		if taint.Effect != corev1.TaintEffectPreferNoSchedule && !isTolerated(c.Policy.Tolerations, taint) {
			return fmt.Sprintf("taint %s is not tolerated", taint)
		}
	}
	return ""
}

// Score counts the taints that have other clusters picked first.
func (plugin) Score(c *framework.Cycle, cluster *clusterv1beta1.MemberCluster) framework.Score {
	return framework.Score{Taints: -int32(len(avoided(c.Policy.Tolerations, cluster)))}
}

// Details names the taints that have other clusters picked first.
func (plugin) Details(c *framework.Cycle, cluster *clusterv1beta1.MemberCluster) []string {
	var details []string
	for _, taint := range avoided(c.Policy.Tolerations, cluster) {
		details = append(details, fmt.Sprintf("taint %s is not tolerated: of clusters that are otherwise as good, others are picked first (-1)", taint))
	}
	return details
}

// avoided returns the taints of a cluster that rank it lower.
func avoided(tolerations []placementv1beta1.Toleration, cluster *clusterv1beta1.MemberCluster) []clusterv1beta1.Taint {
	var found []clusterv1beta1.Taint
	for _, taint := range cluster.Spec.Taints {
		if taint.Effect == corev1.TaintEffectPreferNoSchedule && !isTolerated(tolerations, taint) {
			found = append(found, taint)
		}
	}
	return found
}

// Watches is interested in taints, unless all are tolerated.
func (plugin) Watches(c *framework.Cycle) []framework.Interest {
	policy := c.Policy
	everything := placementv1beta1.Toleration{Operator: corev1.TolerationOpExists}
	if slices.Contains(policy.Tolerations, everything) {
		return nil
	}
	return []framework.Interest{framework.Taints}
}

func isTolerated(tolerations []placementv1beta1.Toleration, taint clusterv1beta1.Taint) bool {
	return First(tolerations, taint) != nil
}

// First returns the first of the tolerations that tolerates a taint, for however long; nil if none does.
func First(tolerations []placementv1beta1.Toleration, taint clusterv1beta1.Taint) *placementv1beta1.Toleration {
	for i := range tolerations {
		if toleratesTaint(tolerations[i], taint) {
			return &tolerations[i]
		}
	}
	return nil
}

// toleratesTaint follows the rules of Kubernetes: an empty key with Exists tolerates
// every key, an empty effect every effect.
func toleratesTaint(toleration placementv1beta1.Toleration, taint clusterv1beta1.Taint) bool {
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
