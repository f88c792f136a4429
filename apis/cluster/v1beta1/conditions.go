package v1beta1

// Condition types of MemberCluster. Joined and Healthy are also those of its agents.
const (
	// ConditionTypeReadyToJoin tells whether the hub has everything in place for the member.
	ConditionTypeReadyToJoin = "ReadyToJoin"
	// ConditionTypeJoined tells whether the cluster, or an agent, has joined the fleet.
	ConditionTypeJoined = "Joined"
	// ConditionTypeHealthy tells whether the cluster, or an agent, works.
	ConditionTypeHealthy = "Healthy"
	// ConditionTypeClusterPropertyProviderStarted tells whether properties can be collected.
	ConditionTypeClusterPropertyProviderStarted = "ClusterPropertyProviderStarted"
	// ConditionTypeClusterPropertyCollectionSucceeded tells whether properties were collected.
	ConditionTypeClusterPropertyCollectionSucceeded = "ClusterPropertyCollectionSucceeded"
	// ConditionTypeNamespaceCollectionSucceeded tells whether the namespaces in the status are
	// all that there are; it is there only if the member reports them.
	ConditionTypeNamespaceCollectionSucceeded = "NamespaceCollectionSucceeded"
	// ConditionTypeHubTokenRenewed is False while the member's token for the hub is due and not renewed, and True after that.
	ConditionTypeHubTokenRenewed = "HubTokenRenewed"
	// ConditionTypeBusy is True while nothing begins on the cluster because its owner has asked for that. It is there only once the
	// owner has asked.
	ConditionTypeBusy = "Busy"

	// ConditionTypeReplaced is True once nothing is placed on the cluster any more, and what another cluster has taken over is
	// available there. It is there only once a user has asked to replace the cluster.
	ConditionTypeReplaced = "Replaced"
	// ConditionTypeAgentAsRequested tells what has become of the request in spec.agent; it is there only while there is one.
	ConditionTypeAgentAsRequested = "AgentAsRequested"
)

// Reasons of AgentAsRequested.
const (
	// ReasonAgentRequestDone means the agent has reported with what was asked for.
	ReasonAgentRequestDone = "AgentRequestDone"
	// ReasonAgentRequestUnderWay means the agent is about it.
	ReasonAgentRequestUnderWay = "AgentRequestUnderWay"
	// ReasonAgentRequestRefused means the owner of the cluster does not allow it, or it cannot be done there.
	ReasonAgentRequestRefused = "AgentRequestRefused"
	// ReasonAgentRequestFailed means the new agent did not report in time and the old one is back, or the agent was changed on
	// its cluster meanwhile.
	ReasonAgentRequestFailed = "AgentRequestFailed"
)

// Reasons of Busy.
const (
	// ReasonMemberClusterReplaced means that nothing is left on the cluster, and that what was taken over is available.
	ReasonMemberClusterReplaced = "MemberClusterReplaced"
	// ReasonMemberClusterReplacing means that placements are still on the cluster, or that what was taken over is not available: the message names them.
	ReasonMemberClusterReplacing = "MemberClusterReplacing"
	// ReasonMemberClusterReplacementRefused means that the cluster cannot be replaced by that which is named.
	ReasonMemberClusterReplacementRefused = "ReplacementRefused"
	// ReasonMemberClusterTakenOverUnknown means that it is not known whether what was taken over is available.
	ReasonMemberClusterTakenOverUnknown = "TakenOverUnknown"

	// ReasonBusyAsked means that the owner has asked, and that it counts.
	ReasonBusyAsked = "BusyAsked"
	// ReasonBusyNotGranted means that the owner asks for what does not count: without an end, or for longer than a cluster may.
	ReasonBusyNotGranted = "BusyNotGranted"
	// ReasonResolved means that the owner does not ask any more.
	ReasonResolved = "Resolved"
)

// Reasons of HubTokenRenewed.
const (
	// ReasonHubTokenRenewed means that nothing is wrong any more.
	ReasonHubTokenRenewed = "HubTokenRenewed"
	// ReasonHubTokenRenewalRefused means the hub does not let the member's account renew its token.
	ReasonHubTokenRenewalRefused = "HubTokenRenewalRefused"
	// ReasonHubTokenNotRenewed means another failure: to reach the hub, or to write the token on the member.
	ReasonHubTokenNotRenewed = "HubTokenNotRenewed"
)

// Reasons on MemberCluster.
const (
	// ReasonMemberClusterReadyToJoin means namespace, access and mailbox are in place.
	ReasonMemberClusterReadyToJoin = "MemberClusterReadyToJoin"
	// ReasonMemberClusterNotReadyToJoin means something is still missing, or the cluster leaves.
	ReasonMemberClusterNotReadyToJoin = "MemberClusterNotReadyToJoin"
	// ReasonMemberClusterJoined means every agent has joined.
	ReasonMemberClusterJoined = "MemberClusterJoined"
	// ReasonMemberClusterLeft means every agent has left.
	ReasonMemberClusterLeft = "MemberClusterLeft"
	// ReasonMemberClusterJoinStateUnknown means not every agent has reported.
	ReasonMemberClusterJoinStateUnknown = "MemberClusterJoinStateUnknown"
)

// Reasons of ConditionTypeNamespaceCollectionSucceeded.
const (
	// ReasonNamespaceCollectionSucceeded means every namespace is reported.
	ReasonNamespaceCollectionSucceeded = "NamespaceCollectionSucceeded"
	// ReasonNamespaceCollectionDegraded means there are more than are reported.
	ReasonNamespaceCollectionDegraded = "NamespaceCollectionDegraded"
)

// Reasons an agent reports on InternalMemberCluster.
const (
	// ReasonInternalMemberClusterJoined means the agent has joined.
	ReasonInternalMemberClusterJoined = "InternalMemberClusterJoined"
	// ReasonInternalMemberClusterLeft means the agent has left.
	ReasonInternalMemberClusterLeft = "InternalMemberClusterLeft"
	// ReasonInternalMemberClusterHealthy means the cluster's API server says it is ready.
	ReasonInternalMemberClusterHealthy = "InternalMemberClusterHealthy"
	// ReasonInternalMemberClusterUnhealthy means the cluster's API server is not ready.
	ReasonInternalMemberClusterUnhealthy = "InternalMemberClusterUnhealthy"
)

// ReasonMemberClusterHeartbeatMissed means that the agent of a member has not reported for too long. It is the reason of Healthy
// on the MemberCluster, and of every condition that rests on what the member reports.
const ReasonMemberClusterHeartbeatMissed = "MemberClusterHeartbeatMissed"

// ReasonMemberClusterOutOfReach means that the agent of a member reports, and that it has not found its cluster healthy for too long, as
// when the API server there is away. It is the reason of Healthy on the MemberCluster, and of conditions that rest on what the agent sees.
const ReasonMemberClusterOutOfReach = "MemberClusterOutOfReach"
