package v1beta1

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// RolloutStrategyType says who rolls a change out.
type RolloutStrategyType string

const (
	// RollingUpdateRolloutStrategyType updates cluster by cluster within limits.
	RollingUpdateRolloutStrategyType RolloutStrategyType = "RollingUpdate"
	// ExternalRolloutStrategyType leaves it to staged update runs.
	ExternalRolloutStrategyType RolloutStrategyType = "External"
)

// RolloutStrategy says how a change reaches the clusters.
//
// +kubebuilder:validation:XValidation:rule=`!has(self.external) || (has(self.type) && self.type == "External")`,message="external is only valid for External rollout strategy type: remove strategy.external, or set type to External"
// +kubebuilder:validation:XValidation:rule=`!(has(self.type) && self.type == "External" && has(self.rollingUpdate))`,message="rollingUpdateConfig is not valid for External rollout strategy type: remove strategy.rollingUpdate, the stages of an update run set the pace"
// +kubebuilder:validation:XValidation:rule=`!has(self.lifecycle) || !has(self.applyStrategy) || !has(self.applyStrategy.type) || self.applyStrategy.type != "ReportDiff"`,message="lifecycle hooks are not for applyStrategy type ReportDiff, which changes nothing on a cluster: remove strategy.lifecycle, or take another type"
// +kubebuilder:validation:XValidation:rule=`!has(self.failover) || !has(self.type) || self.type != "External"`,message="failover is not for type External, under which update runs decide what is placed where: remove strategy.failover",reason=FieldValueForbidden,fieldPath=".failover"
// +kubebuilder:validation:XValidation:rule=`!has(self.failover) || !has(self.rollingUpdate) || !has(self.rollingUpdate.maxSurge) || !(type(self.rollingUpdate.maxSurge) == int ? self.rollingUpdate.maxSurge == 0 : self.rollingUpdate.maxSurge.matches("^0+%?$")) || ((!has(self.failover.cluster) || has(self.failover.cluster.purgeMode) && self.failover.cluster.purgeMode == "Directly") && (!has(self.failover.application) || has(self.failover.application.purgeMode) && self.failover.application.purgeMode != "Gracefully"))`,message="purgeMode Gracefully of strategy.failover needs room for the replacement: set rollingUpdate.maxSurge to at least 1, or purgeMode to Directly",reason=FieldValueInvalid,fieldPath=".failover"
// +kubebuilder:validation:XValidation:rule=`!has(self.failover) || !has(self.failover.application) || !has(self.applyStrategy) || !has(self.applyStrategy.type) || self.applyStrategy.type != "ReportDiff"`,message="failover.application is not for applyStrategy type ReportDiff, with which nothing is placed that could be ill: remove strategy.failover.application, or take another type",reason=FieldValueForbidden,fieldPath=".failover.application"
type RolloutStrategy struct {
	// Type is RollingUpdate to update cluster by cluster, External to leave it to staged
	// update runs. It cannot change back from External.
	// +kubebuilder:default=RollingUpdate
	// +kubebuilder:validation:Enum=RollingUpdate;External
	// +optional
	Type RolloutStrategyType `json:"type,omitempty"`

	// RollingUpdate has the limits for type RollingUpdate.
	// +optional
	RollingUpdate *RollingUpdateConfig `json:"rollingUpdate,omitempty"`

	// External has the limits for type External.
	// An addition of fleetflow; without it there are none, as in KubeFleet.
	// +optional
	External *ExternalRolloutConfig `json:"external,omitempty"`

	// ApplyStrategy says how the resources are applied on the clusters.
	// +optional
	ApplyStrategy *ApplyStrategy `json:"applyStrategy,omitempty"`

	// DeleteStrategy says what happens to the placed resources when the placement is deleted, or when
	// they leave it.
	// +optional
	DeleteStrategy *DeleteStrategy `json:"deleteStrategy,omitempty"`

	// ReportBackStrategy says whether the status of the placed resources is copied to the hub.
	// +optional
	ReportBackStrategy *ReportBackStrategy `json:"reportBackStrategy,omitempty"`

	// Suspension says which clusters stay as they are: nothing is written for them on the hub, and
	// nothing is removed from them, until they are left out of it.
	// An addition of fleetflow; without it, no cluster is suspended, as in KubeFleet.
	// +optional
	Suspension *Suspension `json:"suspension,omitempty"`

	// Lifecycle has hooks for which clusters wait before they are updated, left, or counted as available.
	// An addition of fleetflow; without it no cluster waits, as in KubeFleet.
	// +optional
	Lifecycle *ClusterLifecycle `json:"lifecycle,omitempty"`

	// Failover says when the placement leaves clusters for others. Only for a policy that picks a number of clusters
	// (PickN), has affinityGroups or divides replicas, and not for type External. Where all clusters stay picked (PickAll), only replicas
	// go to others, each as another is ready there.
	// An addition of fleetflow; without it, what is placed stays where it is, as in KubeFleet.
	// +optional
	Failover *FailoverStrategy `json:"failover,omitempty"`
}

// FailoverStrategy says when a placement leaves clusters for others. Nothing is removed as long as no other cluster can be picked. If
// three clusters or more, and over half of those of a placement, fall due within a minute, nothing is moved until a user accepts that.
//
// +kubebuilder:validation:XValidation:rule=`has(self.application) || has(self.cluster)`,message="failover says nothing without application or cluster: set one of them, or remove strategy.failover",reason=FieldValueRequired,fieldPath=".application"
type FailoverStrategy struct {
	// Application says when a cluster is to be left because what is placed on it is not available.
	// +optional
	Application *ApplicationFailover `json:"application,omitempty"`

	// Cluster says when a cluster itself is to be left.
	// +optional
	Cluster *ClusterFailover `json:"cluster,omitempty"`
}

// ApplicationFailover says when a placement leaves a cluster for another because what is placed there is not available: it has been
// applied, and the member says of a resource that it is not available. What is not known does not count: while the member does
// not report, or has not yet looked at what was applied last, the time stands still. A cluster that was left for that reason is
// picked again only when the resources or the policy change, or when a copy that stays there has been available for the time of toleration.
//
// +kubebuilder:validation:XValidation:rule=`!has(self.gracePeriodSeconds) || !has(self.purgeMode) || self.purgeMode == "Gracefully"`,message="gracePeriodSeconds is only for purgeMode Gracefully: remove it, or set purgeMode to Gracefully",reason=FieldValueForbidden,fieldPath=".gracePeriodSeconds"
// +kubebuilder:validation:XValidation:rule=`!has(self.statePreservation) || (has(self.purgeMode) && self.purgeMode == "Directly")`,message="statePreservation is only for purgeMode Directly, with which what is left is gone before its replacement is there: set purgeMode to Directly, or remove statePreservation",reason=FieldValueForbidden,fieldPath=".statePreservation"
type ApplicationFailover struct {
	// DecisionConditions are for how long it may be unavailable.
	// +optional
	DecisionConditions *FailoverDecisionConditions `json:"decisionConditions,omitempty"`

	// PurgeMode is Gracefully, also if it is absent, to keep what is placed on a cluster that is left until what replaces it is
	// available; Directly to remove it first, and place it elsewhere once it is gone, or after 10 minutes; or Never to keep it
	// there, as it is, until it is evicted: it does not count among the clusters of the placement. Limits and
	// lifecycle hooks apply to all of them.
	// +kubebuilder:validation:Enum=Gracefully;Directly;Never
	// +optional
	PurgeMode PurgeMode `json:"purgeMode,omitempty"`

	// GracePeriodSeconds is for how long purge mode Gracefully waits for a replacement that is applied to become available; 600 if
	// it is absent.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=31536000
	// +optional
	GracePeriodSeconds *int32 `json:"gracePeriodSeconds,omitempty"`

	// StatePreservation says what of the status of what is left goes along to its replacement. Only for purgeMode Directly and a
	// policy that picks one cluster (PickN with numberOfClusters 1).
	// +optional
	StatePreservation *StatePreservation `json:"statePreservation,omitempty"`
}

// FailoverDecisionConditions are for how long what is placed on a cluster may be unavailable before the cluster is left.
type FailoverDecisionConditions struct {
	// TolerationSeconds is for how long, where it has been available before; 300 if it is absent. A change of the resources
	// begins it anew; it does not begin before the change has been available once, or rollingUpdate.unavailablePeriodSeconds are over.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=31536000
	// +optional
	TolerationSeconds *int32 `json:"tolerationSeconds,omitempty"`

	// InitialTolerationSeconds is for how long where it has never been available. Without it, such a cluster is not left.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=31536000
	// +optional
	InitialTolerationSeconds *int32 `json:"initialTolerationSeconds,omitempty"`
}

// ClusterFailover says when a placement leaves a cluster for another: when the cluster has a taint with effect NoExecute that
// the placement does not tolerate, or not any longer (tolerationSeconds), or when it has not been healthy for some time.
//
// +kubebuilder:validation:XValidation:rule=`!has(self.gracePeriodSeconds) || !has(self.purgeMode) || self.purgeMode == "Gracefully"`,message="gracePeriodSeconds is only for purgeMode Gracefully: remove it, or set purgeMode to Gracefully",reason=FieldValueForbidden,fieldPath=".gracePeriodSeconds"
// +kubebuilder:validation:XValidation:rule=`!has(self.statePreservation) || (has(self.purgeMode) && self.purgeMode == "Directly")`,message="statePreservation is only for purgeMode Directly, with which what is left is gone before its replacement is there: set purgeMode to Directly, or remove statePreservation",reason=FieldValueForbidden,fieldPath=".statePreservation"
type ClusterFailover struct {
	// NotReadySeconds is for how long a cluster may be unhealthy, or not report, before it is left. It counts from when
	// the condition Healthy of the MemberCluster ceased to be True. Without it, only taints count.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=31536000
	// +optional
	NotReadySeconds *int32 `json:"notReadySeconds,omitempty"`

	// PurgeMode is Gracefully, also if it is absent, to keep what is placed on a cluster that is left until what replaces it is
	// available, or Directly to remove it first, and place it elsewhere once it is gone, or after 10 minutes.
	// Limits and lifecycle hooks apply to both.
	// +kubebuilder:validation:Enum=Gracefully;Directly
	// +optional
	PurgeMode PurgeMode `json:"purgeMode,omitempty"`

	// GracePeriodSeconds is for how long purge mode Gracefully waits for a replacement that is applied to become available; 600 if
	// it is absent.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=31536000
	// +optional
	GracePeriodSeconds *int32 `json:"gracePeriodSeconds,omitempty"`

	// StatePreservation says what of the status of what is left goes along to its replacement. Only for purgeMode Directly and a
	// policy that picks one cluster (PickN with numberOfClusters 1).
	// +optional
	StatePreservation *StatePreservation `json:"statePreservation,omitempty"`
}

// PurgeMode says when what is placed on a cluster goes that a placement leaves for another.
type PurgeMode string

const (
	// PurgeGracefully keeps it until what replaces it is available.
	PurgeGracefully PurgeMode = "Gracefully"
	// PurgeDirectly removes it before it is placed elsewhere.
	PurgeDirectly PurgeMode = "Directly"
	// PurgeNever keeps it until a user evicts it.
	PurgeNever PurgeMode = "Never"
)

// StatePreservation says what of the status of what a placement leaves goes along to its replacement, as labels.
type StatePreservation struct {
	// Rules say which values of the status become which labels of the same object on the other cluster. An object whose status does
	// not have a value gets no label of it.
	// +required
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=10
	// +listType=map
	// +listMapKey=aliasLabelName
	Rules []StatePreservationRule `json:"rules"`
}

// StatePreservationRule says which value of the status of an object becomes which label.
type StatePreservationRule struct {
	// AliasLabelName is the name of the label.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:XValidation:rule=`self.matches("^([a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$")`,message="aliasLabelName is not the name of a label: write it like state.example.com/job-id"
	// +kubebuilder:validation:XValidation:rule=`!self.matches("^([^/]*[.])?(kubernetes-fleet[.]io|fleetflow[.]io|fleet[.]azure[.]com|kubernetes[.]io|k8s[.]io)/")`,message="aliasLabelName has a prefix that is reserved for the fleet or for Kubernetes: use one of your own, like state.example.com/job-id"
	AliasLabelName string `json:"aliasLabelName"`

	// JSONPath is where the value is below the status of the object, as kubectl takes it, such as {.jobStatus.jobID}. It has to yield
	// one text, number or boolean that can be the value of a label; nothing else is taken.
	// +required
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule=`self.matches("^[{] *[$@]?[.\\[][^{},]*[}]$") && !self.contains("..")`,message="jsonPath is not one path in braces, without .. and commas: write where the value is below the status, like {.jobStatus.jobID}"
	JSONPath string `json:"jsonPath"`
}

// Suspension says which clusters stay as they are. They keep their place among the picked clusters,
// and count as available or not as they are; their agents go on repairing drifts. Evictions from them
// are refused. The end of the placement, or of the membership, does not wait.
//
// +kubebuilder:validation:XValidation:rule=`!has(self.all) || !self.all || !has(self.clusterNames) || size(self.clusterNames) == 0`,message="all suspends every cluster, so that clusterNames say nothing: remove one of the two",reason=FieldValueForbidden,fieldPath=".clusterNames"
type Suspension struct {
	// All suspends every cluster, those that are picked later included.
	// +optional
	All bool `json:"all,omitempty"`

	// ClusterNames are the clusters that are suspended.
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:Pattern="^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
	// +listType=set
	// +optional
	ClusterNames []string `json:"clusterNames,omitempty"`
}

// UpdateRunTrigger says when a run is created for a placement.
type UpdateRunTrigger string

const (
	// UpdateRunTriggerManual leaves it to users.
	UpdateRunTriggerManual UpdateRunTrigger = "Manual"
	// UpdateRunTriggerOnChange creates a run for each new resource snapshot.
	UpdateRunTriggerOnChange UpdateRunTrigger = "OnChange"
)

// WhenRunning says what becomes of a new resource snapshot while an earlier run is under way.
type WhenRunning string

const (
	// WhenRunningFinish lets earlier runs finish first.
	WhenRunningFinish WhenRunning = "Finish"
	// WhenRunningSupersede ends the run of an older snapshot.
	WhenRunningSupersede WhenRunning = "Supersede"
)

// ExternalRolloutConfig says which update runs a placement has.
//
// +kubebuilder:validation:XValidation:rule=`!has(self.trigger) || self.trigger != "OnChange" || has(self.strategyName)`,message="trigger OnChange creates update runs: name their strategy in strategyName",reason=FieldValueRequired,fieldPath=".strategyName"
// +kubebuilder:validation:XValidation:rule=`!has(self.whenRunning) || (has(self.trigger) && self.trigger == "OnChange")`,message="whenRunning says what trigger OnChange does while a run is under way: set trigger to OnChange, or remove whenRunning",reason=FieldValueForbidden,fieldPath=".whenRunning"
// +kubebuilder:validation:XValidation:rule=`!has(self.strategyName) || !has(self.allowedStrategies) || self.strategyName in self.allowedStrategies`,message="strategyName is not among allowedStrategies, so that no run could use it: add it there, or name one of them",reason=FieldValueInvalid,fieldPath=".strategyName"
type ExternalRolloutConfig struct {
	// StrategyName is the ClusterStagedUpdateStrategy (StagedUpdateStrategy for a
	// ResourcePlacement) of the runs that trigger OnChange creates.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +optional
	StrategyName string `json:"strategyName,omitempty"`

	// Trigger is Manual to leave it to users to create update runs, OnChange to have one created
	// for each new resource snapshot, named <placement>-<index of the snapshot>. Only the latest
	// snapshot gets one, and none that a user has created a run for. Clusters that are picked
	// later, and changes of overrides, are no new snapshot. Setting it to OnChange takes the
	// right to create update runs. Without it, Manual.
	// +kubebuilder:validation:Enum=Manual;OnChange
	// +optional
	Trigger UpdateRunTrigger `json:"trigger,omitempty"`

	// WhenRunning is Finish to hold the run of a new snapshot back until earlier runs of the
	// placement are over, Supersede to end the one that was created for an older snapshot: it
	// starts no further clusters. Runs that users have created, roll another back, or stand still
	// because a user or a failure budget has stopped them, are waited for in any case. Without
	// it, Finish.
	// +kubebuilder:validation:Enum=Finish;Supersede
	// +optional
	WhenRunning WhenRunning `json:"whenRunning,omitempty"`

	// AllowedStrategies are the names of the ClusterStagedUpdateStrategies that runs of the
	// placement may use (StagedUpdateStrategies for a ResourcePlacement): a run with another
	// one is not initialized. Without them, runs may use any.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	// +listType=set
	// +optional
	AllowedStrategies []string `json:"allowedStrategies,omitempty"`
}

// RollingUpdateConfig limits how many clusters change at the same time.
//
// +kubebuilder:validation:XValidation:rule=`!has(self.maxUnavailable) || !has(self.maxSurge) || !(type(self.maxUnavailable) == int ? self.maxUnavailable == 0 : self.maxUnavailable.matches("^0+%?$")) || !(type(self.maxSurge) == int ? self.maxSurge == 0 : self.maxSurge.matches("^0+%?$"))`,message="maxUnavailable and maxSurge cannot both be 0, nothing could ever change: set one of them to at least 1 or 1%"
type RollingUpdateConfig struct {
	// MaxUnavailable is how many of the wanted clusters may be unavailable during the
	// update: a number, or a percentage rounded up. With 0, a cluster is never updated in
	// place; resources only move from one cluster to another.
	// +kubebuilder:default="25%"
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=10
	// +kubebuilder:validation:Pattern="^((100|[0-9]{1,2})%|[0-9]+)$"
	// +kubebuilder:validation:XValidation:rule=`type(self) != int || self >= 0`,message="maxUnavailable must be greater than or equal to 0"
	// +optional
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`

	// MaxSurge is how many clusters beyond the wanted number may hold the resources while
	// they move between clusters: a number, or a percentage rounded up.
	// +kubebuilder:default="25%"
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=10
	// +kubebuilder:validation:Pattern="^((100|[0-9]{1,2})%|[0-9]+)$"
	// +kubebuilder:validation:XValidation:rule=`type(self) != int || self >= 0`,message="maxSurge must be greater than or equal to 0"
	// +optional
	MaxSurge *intstr.IntOrString `json:"maxSurge,omitempty"`

	// UnavailablePeriodSeconds is how long to wait before a resource whose availability
	// is unknown counts as available, in seconds after it was applied.
	// +kubebuilder:default=60
	// +kubebuilder:validation:Minimum=0
	// +optional
	UnavailablePeriodSeconds *int32 `json:"unavailablePeriodSeconds,omitempty"`

	// MinReadySeconds is for how long a cluster has to be available without a break, in seconds, until it
	// counts as available in maxUnavailable, maxSurge and maxInFlight. A cluster that becomes unavailable
	// begins anew. Without it, or with 0, a cluster counts as soon as it is available. Resources whose
	// differences are only reported do not wait.
	// An addition of fleetflow.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=604800
	// +optional
	MinReadySeconds *int32 `json:"minReadySeconds,omitempty"`

	// Partition is how many of the wanted clusters stay on an older resource snapshot: a number,
	// or a percentage rounded up; below 100%, of several clusters at least one is updated. The
	// rollout ends when the other clusters have the latest snapshot; a smaller partition takes it
	// on, a larger one takes nothing back. A cluster that is picked while fewer hold an older
	// snapshot gets the older snapshot that most clusters hold.
	// An addition of fleetflow; without it, every cluster is updated, as in KubeFleet.
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=10
	// +kubebuilder:validation:Pattern="^(100|[0-9]{1,2})%$"
	// +kubebuilder:validation:XValidation:rule=`type(self) != int || self >= 0`,message="partition must be greater than or equal to 0: give a number of clusters, or a percentage such as 25%"
	// +optional
	Partition *intstr.IntOrString `json:"partition,omitempty"`

	// Paused stops updates, of clusters that are broken as well. What was begun goes on, and so do
	// removals, evictions and the repair of drifts. A cluster that is picked meanwhile gets the
	// older snapshot that most clusters hold, if any does.
	// An addition of fleetflow.
	// +optional
	Paused bool `json:"paused,omitempty"`

	// Order is the order in which clusters are updated. Clusters that are broken, then others
	// that are not available, come before it; without it, or where it makes no difference, clusters
	// go by name.
	// An addition of fleetflow.
	// +optional
	Order *ClusterOrder `json:"order,omitempty"`
}

// ClusterOrder is an order of clusters by their labels.
type ClusterOrder struct {
	// Priority says which clusters come first.
	// +optional
	Priority *ClusterPriority `json:"priority,omitempty"`

	// Scatter spreads clusters of equal priority over the values of a label, so that those with
	// one value do not follow each other: at most one item.
	// +kubebuilder:validation:MaxItems=1
	// +listType=atomic
	// +optional
	Scatter []ClusterScatter `json:"scatter,omitempty"`
}

// ClusterPriority says which clusters come first, by weights or by labels.
//
// +kubebuilder:validation:XValidation:rule=`!has(self.weights) || !has(self.labels)`,message="weights and labels exclude each other in a priority: remove one of them",reason=FieldValueForbidden,fieldPath=".labels"
type ClusterPriority struct {
	// Weights add up for each cluster; clusters with a higher sum come first.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=20
	// +listType=atomic
	// +optional
	Weights []ClusterWeight `json:"weights,omitempty"`

	// Labels are looked at one after the other: the first that a cluster has tells its place, by
	// the integer at the end of the value, which is 0 if there is none. Clusters that have an
	// earlier label come before those with a later one, and clusters with none of them last.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=5
	// +listType=atomic
	// +optional
	Labels []ClusterOrderLabel `json:"labels,omitempty"`
}

// ClusterWeight is a weight for the clusters that match.
type ClusterWeight struct {
	// Weight is what a matching cluster gets, from 1 to 100.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	// +required
	Weight int32 `json:"weight"`

	// ClusterSelector says which clusters get it, by their labels and names.
	// +required
	ClusterSelector ClusterLabelSelector `json:"clusterSelector"`
}

// ClusterLabelSelector matches a cluster if any one of its terms does, or if it has none. It is a
// ClusterSelector that looks at labels and names only.
type ClusterLabelSelector struct {
	// ClusterSelectorTerms are the alternatives. An empty list, [], matches every cluster.
	// +required
	// +kubebuilder:validation:MaxItems=5
	// +listType=atomic
	ClusterSelectorTerms []ClusterLabelTerm `json:"clusterSelectorTerms"`
}

// ClusterNameFilter lets clusters pass by their names. Without names, every cluster passes. It is only in structs that KubeFleet
// has not: its clients drop a field that they do not know, and a term of theirs without it would match more clusters.
type ClusterNameFilter struct {
	// ClusterNames are the clusters that match, as far as the rest of the term does.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:Pattern="^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
	// +listType=set
	// +optional
	ClusterNames []string `json:"clusterNames,omitempty"`

	// ExcludeClusterNames are clusters that do not match, whatever else is in the term.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:Pattern="^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
	// +listType=set
	// +optional
	ExcludeClusterNames []string `json:"excludeClusterNames,omitempty"`
}

// ClusterLabelTerm matches a cluster by its labels and its name.
type ClusterLabelTerm struct {
	ClusterNameFilter `json:",inline"`

	// LabelSelector is matched against the labels of the MemberCluster.
	// +optional
	LabelSelector *metav1.LabelSelector `json:"labelSelector,omitempty"`
}

// ClusterOrderLabel orders clusters by the integer at the end of a label's value, such as 10 in
// wave-10.
type ClusterOrderLabel struct {
	// Key of the label of clusters.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:XValidation:rule=`self.matches("^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$")`,message="key must be the key of a cluster label"
	Key string `json:"key"`

	// Order is Descending if the highest integer comes first, Ascending if the lowest does.
	// +kubebuilder:default=Descending
	// +kubebuilder:validation:Enum=Descending;Ascending
	// +optional
	Order PropertySortOrder `json:"order,omitempty"`
}

// ClusterScatter spreads clusters over the values of a label.
type ClusterScatter struct {
	// Key of the label of clusters, such as topology.kubernetes.io/region. Clusters without it are
	// spread as if they shared one more value.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:XValidation:rule=`self.matches("^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$")`,message="key must be the key of a cluster label"
	Key string `json:"key"`

	// MaxInFlight is how many clusters with one value of the label may be updated and not yet
	// available again at the same time, also across priorities. Clusters without the label are
	// not bounded. Without it, only maxUnavailable bounds them.
	// +kubebuilder:validation:Minimum=1
	// +optional
	MaxInFlight *int32 `json:"maxInFlight,omitempty"`
}

// ComparisonOptionType says which fields count when a resource is compared.
type ComparisonOptionType string

const (
	// ComparisonOptionTypePartialComparison looks at the fields the hub sets.
	ComparisonOptionTypePartialComparison ComparisonOptionType = "PartialComparison"
	// ComparisonOptionTypeFullComparison looks at every field.
	ComparisonOptionTypeFullComparison ComparisonOptionType = "FullComparison"
)

// WhenToApplyType says when a resource is applied again.
type WhenToApplyType string

const (
	// WhenToApplyTypeAlways overwrites changes made on the cluster.
	WhenToApplyTypeAlways WhenToApplyType = "Always"
	// WhenToApplyTypeIfNotDrifted leaves a resource alone that was changed on the cluster.
	WhenToApplyTypeIfNotDrifted WhenToApplyType = "IfNotDrifted"
)

// ApplyStrategyType says how a resource is applied.
type ApplyStrategyType string

const (
	// ApplyStrategyTypeClientSideApply merges hub, cluster and what was applied last.
	ApplyStrategyTypeClientSideApply ApplyStrategyType = "ClientSideApply"
	// ApplyStrategyTypeServerSideApply lets the cluster's API server merge by field owner.
	ApplyStrategyTypeServerSideApply ApplyStrategyType = "ServerSideApply"
	// ApplyStrategyTypeReportDiff writes nothing and reports how hub and cluster differ.
	ApplyStrategyTypeReportDiff ApplyStrategyType = "ReportDiff"
)

// WhenToTakeOverType says what to do with a resource the cluster already has.
type WhenToTakeOverType string

const (
	// WhenToTakeOverTypeAlways takes it over.
	WhenToTakeOverTypeAlways WhenToTakeOverType = "Always"
	// WhenToTakeOverTypeIfNoDiff takes it over if it equals the hub's.
	WhenToTakeOverTypeIfNoDiff WhenToTakeOverType = "IfNoDiff"
	// WhenToTakeOverTypeNever leaves it alone.
	WhenToTakeOverTypeNever WhenToTakeOverType = "Never"
)

// ApplyStrategy says how resources are applied on a cluster. If two placements place the
// same resource on a cluster, the later one fails with ApplyConflictBetweenPlacements.
//
// +kubebuilder:validation:XValidation:rule=`!has(self.serverSideApplyConfig) || (has(self.type) && self.type == "ServerSideApply")`,message="serverSideApplyConfig is only valid for ServerSideApply strategy type: remove it, or set type to ServerSideApply"
type ApplyStrategy struct {
	// ComparisonOption is PartialComparison to compare the fields the hub sets,
	// FullComparison to compare every field.
	// +kubebuilder:default=PartialComparison
	// +kubebuilder:validation:Enum=PartialComparison;FullComparison
	// +optional
	ComparisonOption ComparisonOptionType `json:"comparisonOption,omitempty"`

	// WhenToApply is Always to overwrite changes made on the cluster, IfNotDrifted to
	// report them and leave the resource alone until the hub's version changes.
	// +kubebuilder:default=Always
	// +kubebuilder:validation:Enum=Always;IfNotDrifted
	// +optional
	WhenToApply WhenToApplyType `json:"whenToApply,omitempty"`

	// Type is ClientSideApply for a three-way merge, ServerSideApply for a merge by field
	// owner, ReportDiff to write nothing and report how hub and cluster differ.
	// +kubebuilder:default=ClientSideApply
	// +kubebuilder:validation:Enum=ClientSideApply;ServerSideApply;ReportDiff
	// +optional
	Type ApplyStrategyType `json:"type,omitempty"`

	// AllowCoOwnership lets resources be applied that have owners outside the fleet. Two
	// placements never share a resource, whatever this says.
	// +optional
	AllowCoOwnership bool `json:"allowCoOwnership,omitempty"`

	// ServerSideApplyConfig has the settings for type ServerSideApply.
	// +optional
	ServerSideApplyConfig *ServerSideApplyConfig `json:"serverSideApplyConfig,omitempty"`

	// WhenToTakeOver says what to do with a resource the cluster already has: Always takes
	// it over, IfNoDiff takes it over if it equals the hub's, Never leaves it alone.
	// +kubebuilder:default=Always
	// +kubebuilder:validation:Enum=Always;IfNoDiff;Never
	// +optional
	WhenToTakeOver WhenToTakeOverType `json:"whenToTakeOver,omitempty"`
}

// ServerSideApplyConfig has the settings for server-side apply.
type ServerSideApplyConfig struct {
	// ForceConflicts (force in YAML) takes fields over from other field managers. Without it, a conflict fails.
	// +optional
	ForceConflicts bool `json:"force,omitempty"`
}

// DeletePropagationPolicy says what happens to placed resources when the placement goes.
type DeletePropagationPolicy string

const (
	// DeletePropagationPolicyDelete removes them from the clusters.
	DeletePropagationPolicyDelete DeletePropagationPolicy = "Delete"
	// DeletePropagationPolicyAbandon leaves them in place.
	DeletePropagationPolicyAbandon DeletePropagationPolicy = "Abandon"
)

// DeleteStrategy says what happens to the placed resources when the placement is deleted, or when they
// leave it.
type DeleteStrategy struct {
	// PropagationPolicy is Delete to remove them from the clusters, Abandon to leave them.
	// +kubebuilder:default=Delete
	// +kubebuilder:validation:Enum=Delete;Abandon
	// +optional
	PropagationPolicy DeletePropagationPolicy `json:"propagationPolicy,omitempty"`

	// RemovedResources is what happens while the placement exists, to what was placed on clusters that
	// leave it, and to resources that leave its selection, or that an override leaves out: Delete removes
	// them from the clusters, Abandon leaves them in place, where they belong to the fleet no more. What
	// happens when a cluster leaves the fleet is said on its MemberCluster.
	// An addition of fleetflow; without it, they are deleted, as in KubeFleet.
	// +kubebuilder:validation:Enum=Delete;Abandon
	// +optional
	RemovedResources DeletePropagationPolicy `json:"removedResources,omitempty"`

	// PrunePropagationPolicy is what happens on a cluster to what depends on an object that is removed there: Background
	// removes it afterwards, Foreground before the object, Orphan leaves it.
	// An addition of fleetflow; without it, what the member agent of the cluster says, which is Background by default.
	// +kubebuilder:validation:Enum=Background;Foreground;Orphan
	// +optional
	PrunePropagationPolicy metav1.DeletionPropagation `json:"prunePropagationPolicy,omitempty"`

	// ReconcileTimeoutSeconds has what leaves the placement removed from a cluster only once all that stays is available
	// there. If it is not after this time, in seconds, the condition RemovalPending says so, and nothing is removed until it
	// is.
	// An addition of fleetflow; without it, what the member agent of the cluster says, which does not wait by default.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=604800
	// +optional
	ReconcileTimeoutSeconds *int32 `json:"reconcileTimeoutSeconds,omitempty"`

	// PruneTimeoutSeconds is how long the removal of an object from a cluster may take, in seconds, until the condition
	// RemovalPending names the object and says why it is still there. It goes on being removed. What an API server refuses
	// to remove is reported at once.
	// An addition of fleetflow; without it, what the member agent of the cluster says, which is 10 by default.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=604800
	// +optional
	PruneTimeoutSeconds *int32 `json:"pruneTimeoutSeconds,omitempty"`
}

// ReportBackStrategyType says whether status is copied to the hub.
type ReportBackStrategyType string

const (
	// ReportBackStrategyTypeDisabled copies nothing.
	ReportBackStrategyTypeDisabled ReportBackStrategyType = "Disabled"
	// ReportBackStrategyTypeMirror copies the status as it is.
	ReportBackStrategyTypeMirror ReportBackStrategyType = "Mirror"
)

// ReportBackDestination says where a copied status goes.
type ReportBackDestination string

const (
	// ReportBackDestinationOriginalResource is the resource on the hub itself.
	ReportBackDestinationOriginalResource ReportBackDestination = "OriginalResource"
	// ReportBackDestinationWorkAPI is the Work object of the cluster.
	ReportBackDestinationWorkAPI ReportBackDestination = "WorkAPI"
)

// ReportBackStrategy says whether the status of the placed resources is copied to the hub.
//
// +kubebuilder:validation:XValidation:rule="self.type != 'Mirror' || has(self.destination)",message="when reportBackStrategy.type is 'Mirror', a destination must be specified: OriginalResource or WorkAPI"
type ReportBackStrategy struct {
	// Type is Disabled to copy nothing, Mirror to copy the status as it is.
	// +kubebuilder:default=Disabled
	// +kubebuilder:validation:Enum=Disabled;Mirror
	// +required
	Type ReportBackStrategyType `json:"type"`

	// Destination is OriginalResource for the resource on the hub (one cluster only),
	// WorkAPI for the Work object of each cluster.
	// +kubebuilder:validation:Enum=OriginalResource;WorkAPI
	// +optional
	Destination *ReportBackDestination `json:"destination,omitempty"`
}

// MinReady returns for how long a cluster has to be available until it counts as available in a rolling update; the strategy may
// be nil.
func (s *RolloutStrategy) MinReady() time.Duration {
	if s == nil || s.RollingUpdate == nil || s.RollingUpdate.MinReadySeconds == nil {
		return 0
	}
	return time.Duration(*s.RollingUpdate.MinReadySeconds) * time.Second
}
