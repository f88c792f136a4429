package v1beta1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ReplicaSchedulingType says whether the replicas of a workload are divided.
type ReplicaSchedulingType string

const (
	// ReplicasDuplicated gives every cluster all replicas.
	ReplicasDuplicated ReplicaSchedulingType = "Duplicated"
	// ReplicasDivided gives every cluster a part of the replicas.
	ReplicasDivided ReplicaSchedulingType = "Divided"
)

// ReplicaRebalance says whether replicas move that run already.
type ReplicaRebalance string

const (
	// RebalanceNever keeps replicas where they are as long as the bounds of their cluster let them.
	RebalanceNever ReplicaRebalance = "Never"
	// RebalanceAlways divides all replicas afresh whenever clusters or rules change.
	RebalanceAlways ReplicaRebalance = "Always"
)

// ReplicaDivision says by what replicas are divided.
type ReplicaDivision string

const (
	// DivisionWeighted divides replicas by the weights of the clusters.
	DivisionWeighted ReplicaDivision = "Weighted"
	// DivisionAggregated puts replicas on as few clusters as have room for them.
	DivisionAggregated ReplicaDivision = "Aggregated"
)

// DynamicWeight says what a cluster weighs in place of a weight that a user gives it.
type DynamicWeight string

// DynamicWeightAvailableReplicas lets a cluster weigh as many replicas as it has room for.
const DynamicWeightAvailableReplicas DynamicWeight = "AvailableReplicas"

// EmptyClusters says what a cluster without replicas of a workload has.
type EmptyClusters string

const (
	// EmptyClustersKeep leaves the workload there, with 0 replicas.
	EmptyClustersKeep EmptyClusters = "Keep"
	// EmptyClustersDrop leaves the workload out there.
	EmptyClustersDrop EmptyClusters = "Drop"
)

// ReplicaSchedulingRule says how the replicas of the workloads that it selects are divided over the picked clusters.
//
// +kubebuilder:validation:XValidation:rule=`!has(self.type) || self.type == "Divided" || (!has(self.division) && !has(self.dynamicWeight) && !has(self.clusters) && !has(self.totalReplicas) && !has(self.rebalance) && !has(self.emptyClusters))`,message="a rule of type Duplicated divides nothing: remove division, dynamicWeight, clusters, totalReplicas, rebalance and emptyClusters, or set type to Divided",reason=FieldValueForbidden,fieldPath=".division"
// +kubebuilder:validation:XValidation:rule=`!has(self.dynamicWeight) || !has(self.division) || self.division == "Weighted"`,message="dynamicWeight weighs clusters, which division Aggregated does not: remove dynamicWeight, or set division to Weighted",reason=FieldValueForbidden,fieldPath=".dynamicWeight"
// +kubebuilder:validation:XValidation:rule=`(!has(self.dynamicWeight) && (!has(self.division) || self.division != "Aggregated")) || !has(self.clusters) || self.clusters.all(c, !has(c.weight))`,message="the room that clusters have decides in place of their weights: remove weight of the entries of clusters, or remove dynamicWeight and division Aggregated",reason=FieldValueInvalid,fieldPath=".clusters"
// +kubebuilder:validation:XValidation:rule=`(has(self.type) && self.type == "Duplicated") || !has(self.selector) || !has(self.selector.kind) || self.selector.kind in ["", "Deployment", "ReplicaSet", "StatefulSet", "Job", "CloneSet"]`,messageExpression=`"replicas of kind " + self.selector.kind + " cannot be divided: set selector.kind to Deployment, ReplicaSet, StatefulSet, Job or CloneSet, or type to Duplicated"`,message="replicas of this kind cannot be divided: set selector.kind to Deployment, ReplicaSet, StatefulSet, Job or CloneSet, or type to Duplicated",reason=FieldValueInvalid,fieldPath=".selector.kind"
// +kubebuilder:validation:XValidation:rule=`!has(self.clusters) || self.clusters.exists(c, (has(c.minReplicas) && c.minReplicas > 0) || ((!has(c.weight) || c.weight > 0) && (!has(c.maxReplicas) || c.maxReplicas > 0)))`,message="no cluster could get a replica, as every weight or maxReplicas is 0: set weight or minReplicas of an entry of clusters above 0",reason=FieldValueInvalid,fieldPath=".clusters"
// +kubebuilder:validation:XValidation:rule=`!has(self.totalReplicas) || !has(self.clusters) || self.clusters.map(c, has(c.minReplicas) ? c.minReplicas : 0).sum() <= self.totalReplicas`,message="totalReplicas is less than the sum of minReplicas: raise totalReplicas, or lower minReplicas of entries of clusters",reason=FieldValueInvalid,fieldPath=".totalReplicas"
type ReplicaSchedulingRule struct {
	// Selector says of which workloads. Without it, the rule is for all.
	// +optional
	Selector *WorkloadSelector `json:"selector,omitempty"`

	// Type is Divided if every cluster gets a part of the replicas, Duplicated if every cluster gets all.
	// +kubebuilder:default=Divided
	// +kubebuilder:validation:Enum=Duplicated;Divided
	// +optional
	Type ReplicaSchedulingType `json:"type,omitempty"`

	// Division is Weighted, as without it, if replicas are divided by the weights of clusters; Aggregated if they are put on as
	// few clusters as have room for them.
	// +kubebuilder:validation:Enum=Weighted;Aggregated
	// +optional
	Division ReplicaDivision `json:"division,omitempty"`

	// DynamicWeight is AvailableReplicas if a cluster weighs as many replicas as it has room for, in place of a weight of its own.
	// +kubebuilder:validation:Enum=AvailableReplicas
	// +optional
	DynamicWeight DynamicWeight `json:"dynamicWeight,omitempty"`

	// Clusters are weights and bounds; of those that match a cluster the first counts. Without any, all clusters weigh the
	// same; a cluster that matches none gets nothing.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:XValidation:rule=`self.all(c, size(c.clusterSelector.clusterSelectorTerms) > 0) || (size(self[size(self) - 1].clusterSelector.clusterSelectorTerms) == 0 && self.exists_one(c, size(c.clusterSelector.clusterSelectorTerms) == 0))`,message="an entry of clusters with empty clusterSelectorTerms matches every cluster, so entries behind it have no effect: put it last, and only once"
	// +optional
	Clusters []ClusterReplicas `json:"clusters,omitempty"`

	// TotalReplicas are divided in place of the workload's own replicas.
	// +kubebuilder:validation:Minimum=0
	// +optional
	TotalReplicas *int32 `json:"totalReplicas,omitempty"`

	// Rebalance is Never, as without it, if replicas that run stay where they are, as far as bounds let them; Always if they
	// move when clusters or weights change.
	// +kubebuilder:validation:Enum=Never;Always
	// +optional
	Rebalance ReplicaRebalance `json:"rebalance,omitempty"`

	// EmptyClusters is Keep, as without it, if a cluster without replicas has the workload with 0 replicas; Drop if it does not
	// have it.
	// +kubebuilder:validation:Enum=Keep;Drop
	// +optional
	EmptyClusters EmptyClusters `json:"emptyClusters,omitempty"`
}

// WorkloadSelector selects workloads; an empty field selects any.
//
// +kubebuilder:validation:MinProperties=1
type WorkloadSelector struct {
	// Group of the workload, such as apps.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Group string `json:"group,omitempty"`

	// Kind of the workload, such as Deployment.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Kind string `json:"kind,omitempty"`

	// Namespace of the workload.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// Name of the workload.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Name string `json:"name,omitempty"`
}

// ClusterReplicas is the weight of clusters in a division, and their bounds.
//
// +kubebuilder:validation:XValidation:rule=`!has(self.maxReplicas) || !has(self.minReplicas) || self.minReplicas <= self.maxReplicas`,message="minReplicas must not be above maxReplicas: lower minReplicas, or raise maxReplicas",reason=FieldValueInvalid,fieldPath=".minReplicas"
type ClusterReplicas struct {
	// ClusterSelector says for which clusters, by their labels and names.
	// +required
	ClusterSelector ReplicaClusterSelector `json:"clusterSelector"`

	// Weight is the share of a cluster against the others'; 1 without it. With 0, it gets nothing beyond MinReplicas.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	// +optional
	Weight *int32 `json:"weight,omitempty"`

	// MinReplicas is what a cluster gets before others get more, as far as the replicas last.
	// +kubebuilder:validation:Minimum=0
	// +optional
	MinReplicas *int32 `json:"minReplicas,omitempty"`

	// MaxReplicas is the most that a cluster gets.
	// +kubebuilder:validation:Minimum=0
	// +optional
	MaxReplicas *int32 `json:"maxReplicas,omitempty"`
}

// ReplicaClusterSelector matches a cluster if any one of its terms does, or if it has none. It looks at labels and names only.
type ReplicaClusterSelector struct {
	// ClusterSelectorTerms are the alternatives; for more than two, add entries with the same weight and bounds. An empty list,
	// [], matches every cluster.
	// +required
	// +kubebuilder:validation:MaxItems=2
	// +listType=atomic
	ClusterSelectorTerms []ClusterLabelTerm `json:"clusterSelectorTerms"`
}

// ReplicaAssignment is what one cluster is to run of one divided workload.
type ReplicaAssignment struct {
	// Group of the workload.
	// +optional
	Group string `json:"group,omitempty"`

	// Kind of the workload.
	// +required
	Kind string `json:"kind"`

	// Namespace of the workload.
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// Name of the workload.
	// +required
	Name string `json:"name"`

	// Replicas of the workload on the cluster; of a Job, its parallelism.
	// +required
	Replicas int32 `json:"replicas"`

	// Completions of the Job on the cluster.
	// +optional
	Completions *int32 `json:"completions,omitempty"`

	// Dropped says that the cluster is not to have the workload, as it gets no replicas of it.
	// +optional
	Dropped bool `json:"dropped,omitempty"`

	// Reason for the number, such as "weight 2 of 6".
	// +optional
	Reason string `json:"reason,omitempty"`

	// Free is how many more replicas the cluster had room for when the number was decided, where that counts.
	// +optional
	Free *int32 `json:"free,omitempty"`

	// Grown are those of the replicas that were added last, at GrownAt: a report that the cluster makes before it runs them does
	// not count them.
	// +optional
	Grown int32 `json:"grown,omitempty"`

	// GrownAt is when replicas were added last, where the room that clusters have counts.
	// +optional
	GrownAt *metav1.Time `json:"grownAt,omitempty"`

	// Capacity is how many replicas the cluster has been seen to have room for, since no node took the pods of others.
	// +optional
	Capacity *int32 `json:"capacity,omitempty"`

	// CapacityAt is when Capacity was learnt.
	// +optional
	CapacityAt *metav1.Time `json:"capacityAt,omitempty"`

	// CapacityFree is how many more replicas the cluster reported room for when Capacity was learnt. Capacity is forgotten when
	// it reports more.
	// +optional
	CapacityFree int32 `json:"capacityFree,omitempty"`
}

// ReplicaStatus is how many pods of a divided workload run on a member.
type ReplicaStatus struct {
	// Replicas that the workload asks for there.
	// +optional
	Replicas int32 `json:"replicas"`

	// Ready are the pods that are ready and not terminating.
	// +optional
	Ready int32 `json:"ready"`

	// Unschedulable are the pods that no node has taken for 60 seconds or more.
	// +optional
	Unschedulable int32 `json:"unschedulable,omitempty"`
}
