package v1beta1

// The names that KubeFleet's Go packages have for what has another one here, so that programs need not be changed. Their values are the
// same. Formats of names are left out: names are made by the agents.

// AgentConditionType is a condition of an agent in the status of a member.
type AgentConditionType string

// Conditions of an agent in the status of a member.
const (
	AgentHealthy AgentConditionType = "Healthy"
	AgentJoined  AgentConditionType = "Joined"
)

// MemberClusterConditionType is a condition of a MemberCluster.
type MemberClusterConditionType string

// Conditions of a MemberCluster.
const (
	ConditionTypeMemberClusterHealthy     MemberClusterConditionType = "Healthy"
	ConditionTypeMemberClusterJoined      MemberClusterConditionType = "Joined"
	ConditionTypeMemberClusterReadyToJoin MemberClusterConditionType = "ReadyToJoin"
)

// Kinds.
const (
	InternalMemberClusterKind = "InternalMemberCluster"
	MemberClusterKind         = "MemberCluster"
)

// Kinds in URLs.
const (
	ClusterResourcePlacementResource = "clusterresourceplacements"
	MemberClusterResource            = "memberclusters"
)
