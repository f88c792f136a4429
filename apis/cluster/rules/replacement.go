package rules

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/validation"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
)

// ReplacedBy returns the name of the cluster that a user wants to replace a cluster; empty if it stays.
func ReplacedBy(cluster *clusterv1beta1.MemberCluster) string {
	return cluster.Annotations[clusterv1beta1.ReplacedByAnnotation]
}

// RefuseReplacement returns why a cluster cannot be replaced by another one of the fleet; empty if it can. A cluster takes part in one
// replacement at a time, so that no copy waits for one that is itself about to go; what leaves the fleet is not replaced any more. The reason is
// for the user.
func RefuseReplacement(cluster *clusterv1beta1.MemberCluster, by string, fleet []clusterv1beta1.MemberCluster) string {
	if len(validation.IsDNS1123Label(by)) > 0 {
		return fmt.Sprintf("%q is not the name of a cluster", by)
	}
	if by == cluster.Name {
		return "a cluster cannot replace itself"
	}
	var newer *clusterv1beta1.MemberCluster
	for i := range fleet {
		other := &fleet[i]
		switch wanted := ReplacedBy(other); {
		case other.Name == by:
			newer = other
		case other.Name == cluster.Name, wanted == "", other.DeletionTimestamp != nil:
		case wanted == cluster.Name:
			return fmt.Sprintf("%s is itself to replace %s: wait until that is replaced, or give that up", cluster.Name, other.Name)
		case wanted == by:
			return fmt.Sprintf("%s is to replace %s already: one cluster replaces one other at a time", by, other.Name)
		}
	}
	switch {
	case newer == nil:
		return fmt.Sprintf("there is no member cluster %s", by)
	case ReplacedBy(newer) != "":
		return fmt.Sprintf("%s is itself to be replaced by %s", by, ReplacedBy(newer))
	case newer.DeletionTimestamp != nil:
		return fmt.Sprintf("%s is leaving the fleet", by)
	case !meta.IsStatusConditionTrue(newer.Status.Conditions, clusterv1beta1.ConditionTypeJoined):
		return fmt.Sprintf("%s has not joined the fleet", by)
	}
	return ""
}

// IsFit reports whether a cluster is known to be a healthy member that stays: what it has said of its copies counts.
func IsFit(cluster *clusterv1beta1.MemberCluster) bool {
	return cluster.DeletionTimestamp == nil &&
		meta.IsStatusConditionTrue(cluster.Status.Conditions, clusterv1beta1.ConditionTypeJoined) &&
		meta.IsStatusConditionTrue(cluster.Status.Conditions, clusterv1beta1.ConditionTypeHealthy)
}
