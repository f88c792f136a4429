package scheduler

import (
	"github.com/fleetflow/fleetflow/activities/scheduler/framework"
	"github.com/fleetflow/fleetflow/activities/scheduler/plugins/clusteraffinity"
	"github.com/fleetflow/fleetflow/activities/scheduler/plugins/clustereligibility"
	"github.com/fleetflow/fleetflow/activities/scheduler/plugins/failover"
	"github.com/fleetflow/fleetflow/activities/scheduler/plugins/namespaceaffinity"
	"github.com/fleetflow/fleetflow/activities/scheduler/plugins/sameplacement"
	"github.com/fleetflow/fleetflow/activities/scheduler/plugins/servedkinds"
	"github.com/fleetflow/fleetflow/activities/scheduler/plugins/spreadgroups"
	"github.com/fleetflow/fleetflow/activities/scheduler/plugins/tainttoleration"
	"github.com/fleetflow/fleetflow/activities/scheduler/plugins/topologyspread"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// profile makes the plug-ins of a cycle, in the order in which they filter: of several
// reasons against a cluster the first is told.
type profile []func() framework.Plugin

// profiles are the plug-ins by placement type.
var profiles = map[placementv1beta1.PlacementType]profile{
	placementv1beta1.PickAllPlacementType: {
		sameplacement.New,
		clusteraffinity.NewGroup,
		clustereligibility.New,
		clusteraffinity.New,
		namespaceaffinity.New,
		tainttoleration.New,
		servedkinds.New,
		failover.New,
		spreadgroups.New,
	},
	placementv1beta1.PickNPlacementType: {
		sameplacement.New,
		clusteraffinity.NewGroup,
		clustereligibility.New,
		clusteraffinity.New,
		namespaceaffinity.New,
		tainttoleration.New,
		servedkinds.New,
		failover.New,
		topologyspread.New,
	},
	// Who names clusters means them: neither taints nor affinity matter.
	placementv1beta1.PickFixedPlacementType: {
		sameplacement.New,
		clustereligibility.New,
	},
}

// typeOf returns the placement type of a policy; none picks all clusters.
func typeOf(policy *placementv1beta1.PlacementPolicy) placementv1beta1.PlacementType {
	if policy == nil || policy.PlacementType == "" {
		return placementv1beta1.PickAllPlacementType
	}
	return policy.PlacementType
}

// overflowingGroups returns the groups of a policy, which may be nil, if clusters are picked from all of them.
func overflowingGroups(policy *placementv1beta1.PlacementPolicy) []placementv1beta1.AffinityGroup {
	if policy == nil || policy.AffinityGroupMode != placementv1beta1.AffinityGroupOverflow {
		return nil
	}
	return policy.AffinityGroups
}

// orEmpty returns a policy that is never nil.
func orEmpty(policy *placementv1beta1.PlacementPolicy) *placementv1beta1.PlacementPolicy {
	if policy == nil {
		return &placementv1beta1.PlacementPolicy{}
	}
	return policy
}
