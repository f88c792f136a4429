package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PlacementType says how clusters are picked.
type PlacementType string

const (
	// PickAllPlacementType picks every cluster that fits.
	PickAllPlacementType PlacementType = "PickAll"
	// PickNPlacementType picks the given number of clusters, the best ones first.
	PickNPlacementType PlacementType = "PickN"
	// PickFixedPlacementType picks the clusters listed by name.
	PickFixedPlacementType PlacementType = "PickFixed"
)

// PlacementPolicy picks member clusters. Only joined, healthy clusters are considered.
type PlacementPolicy struct {
	// PlacementType is PickAll for every cluster that fits, PickN for a number of them,
	// PickFixed for clusters by name. It cannot change later.
	// +kubebuilder:default=PickAll
	// +kubebuilder:validation:Enum=PickAll;PickN;PickFixed
	// +optional
	PlacementType PlacementType `json:"placementType,omitempty"`

	// ClusterNames are the clusters to pick. Only for PickFixed.
	// +kubebuilder:validation:MaxItems=100
	// +optional
	ClusterNames []string `json:"clusterNames,omitempty"`

	// NumberOfClusters is how many clusters to pick. Only for PickN.
	// +kubebuilder:validation:Minimum=0
	// +optional
	NumberOfClusters *int32 `json:"numberOfClusters,omitempty"`

	// Affinity says which clusters fit and which are liked best. Only for PickAll and PickN.
	// +optional
	Affinity *Affinity `json:"affinity,omitempty"`

	// TopologySpreadConstraints spread the picked clusters over groups of clusters; every
	// one of them has to hold. Only for PickN.
	// +optional
	TopologySpreadConstraints []TopologySpreadConstraint `json:"topologySpreadConstraints,omitempty"`

	// Tolerations let tainted clusters be picked. They can be added, not changed or
	// removed. Only for PickAll and PickN.
	// +kubebuilder:validation:MaxItems=100
	// +optional
	Tolerations []Toleration `json:"tolerations,omitempty"`
}

// Affinity says which clusters fit and which are liked best.
type Affinity struct {
	// ClusterAffinity has the rules over labels and properties of clusters.
	// +optional
	ClusterAffinity *ClusterAffinity `json:"clusterAffinity,omitempty"`
}

// ClusterAffinity has the rules over labels and properties of clusters. They are looked at
// when a cluster is picked; a cluster that stops matching later keeps what it has.
type ClusterAffinity struct {
	// RequiredDuringSchedulingIgnoredDuringExecution says which clusters fit at all.
	// +optional
	RequiredDuringSchedulingIgnoredDuringExecution *ClusterSelector `json:"requiredDuringSchedulingIgnoredDuringExecution,omitempty"`

	// PreferredDuringSchedulingIgnoredDuringExecution ranks the clusters that fit: the
	// weights of all terms a cluster matches add up. Only for PickN.
	// +optional
	PreferredDuringSchedulingIgnoredDuringExecution []PreferredClusterSelector `json:"preferredDuringSchedulingIgnoredDuringExecution,omitempty"`
}

// ClusterSelector matches a cluster if any one of its terms does.
type ClusterSelector struct {
	// ClusterSelectorTerms are the alternatives.
	// +kubebuilder:validation:Required
	// +kubebuilder:validation:MaxItems=10
	ClusterSelectorTerms []ClusterSelectorTerm `json:"clusterSelectorTerms"`
}

// ClusterSelectorTerm matches a cluster if everything that is set in it does.
type ClusterSelectorTerm struct {
	// LabelSelector is matched against the labels of the MemberCluster.
	// +optional
	LabelSelector *metav1.LabelSelector `json:"labelSelector,omitempty"`

	// PropertySelector is matched against the properties the cluster reports. Only in a
	// required term.
	// +optional
	PropertySelector *PropertySelector `json:"propertySelector,omitempty"`

	// PropertySorter ranks clusters by a property they report. Only in a preferred term.
	// +optional
	PropertySorter *PropertySorter `json:"propertySorter,omitempty"`
}

// PropertySelector matches a cluster if all its requirements hold.
type PropertySelector struct {
	// MatchExpressions are the requirements.
	// +kubebuilder:validation:Required
	MatchExpressions []PropertySelectorRequirement `json:"matchExpressions"`
}

// PropertySelectorOperator compares a property with the value in a requirement.
type PropertySelectorOperator string

const (
	// PropertySelectorGreaterThan holds if the property is greater than the value.
	PropertySelectorGreaterThan PropertySelectorOperator = "Gt"
	// PropertySelectorGreaterThanOrEqualTo holds if the property is at least the value.
	PropertySelectorGreaterThanOrEqualTo PropertySelectorOperator = "Ge"
	// PropertySelectorEqualTo holds if the property equals the value.
	PropertySelectorEqualTo PropertySelectorOperator = "Eq"
	// PropertySelectorNotEqualTo holds if the property differs from the value.
	PropertySelectorNotEqualTo PropertySelectorOperator = "Ne"
	// PropertySelectorLessThan holds if the property is less than the value.
	PropertySelectorLessThan PropertySelectorOperator = "Lt"
	// PropertySelectorLessThanOrEqualTo holds if the property is at most the value.
	PropertySelectorLessThanOrEqualTo PropertySelectorOperator = "Le"
)

// PropertySelectorRequirement compares one property of a cluster with a value.
type PropertySelectorRequirement struct {
	// Name of the property.
	// +kubebuilder:validation:Required
	Name string `json:"name"`

	// Operator is Gt, Ge, Eq, Ne, Lt or Le.
	// +kubebuilder:validation:Enum=Gt;Ge;Eq;Ne;Lt;Le
	// +kubebuilder:validation:Required
	Operator PropertySelectorOperator `json:"operator"`

	// Values holds the one value to compare with, a Kubernetes quantity such as 5 or 10Gi.
	// +kubebuilder:validation:MaxItems=1
	// +kubebuilder:validation:Required
	Values []string `json:"values"`
}

// PropertySortOrder says which end of a property's range is liked best.
type PropertySortOrder string

const (
	// Descending likes high values best.
	Descending PropertySortOrder = "Descending"
	// Ascending likes low values best.
	Ascending PropertySortOrder = "Ascending"
)

// PropertySorter ranks clusters by a property: the best value earns the whole weight, the
// worst none, values in between their share.
type PropertySorter struct {
	// Name of the property.
	// +kubebuilder:validation:Required
	Name string `json:"name"`

	// SortOrder is Descending if high values are liked best, Ascending if low ones are.
	// +kubebuilder:validation:Enum=Descending;Ascending
	// +kubebuilder:validation:Required
	SortOrder PropertySortOrder `json:"sortOrder"`
}

// PreferredClusterSelector adds its weight to the score of the clusters it matches.
type PreferredClusterSelector struct {
	// Weight to add; a negative weight makes matching clusters less liked.
	// +kubebuilder:validation:Required
	// +kubebuilder:validation:Minimum=-100
	// +kubebuilder:validation:Maximum=100
	Weight int32 `json:"weight"`

	// Preference is the one term to match, an object and not a list.
	// +kubebuilder:validation:Required
	Preference ClusterSelectorTerm `json:"preference"`
}

// UnsatisfiableConstraintAction says what to do with a cluster that would break a spread.
type UnsatisfiableConstraintAction string

const (
	// DoNotSchedule leaves the cluster out.
	DoNotSchedule UnsatisfiableConstraintAction = "DoNotSchedule"
	// ScheduleAnyway only likes other clusters better.
	ScheduleAnyway UnsatisfiableConstraintAction = "ScheduleAnyway"
)

// TopologySpreadConstraint spreads the picked clusters evenly over groups of clusters.
type TopologySpreadConstraint struct {
	// MaxSkew is how far the fullest group may be ahead of the emptiest one.
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +optional
	MaxSkew *int32 `json:"maxSkew,omitempty"`

	// TopologyKey is the cluster label whose values make the groups.
	// +kubebuilder:validation:Required
	TopologyKey string `json:"topologyKey"`

	// WhenUnsatisfiable is DoNotSchedule to leave out a cluster that would break the
	// spread, ScheduleAnyway to only like others better.
	// +kubebuilder:default=DoNotSchedule
	// +kubebuilder:validation:Enum=DoNotSchedule;ScheduleAnyway
	// +optional
	WhenUnsatisfiable UnsatisfiableConstraintAction `json:"whenUnsatisfiable,omitempty"`
}

// Toleration lets clusters with a matching taint be picked.
//
// +kubebuilder:validation:XValidation:rule=`!(has(self.operator) && self.operator == 'Exists' && has(self.value) && self.value != "")`,message="value must be empty when operator is Exists"
// +kubebuilder:validation:XValidation:rule=`(has(self.key) && self.key != "") || (has(self.operator) && self.operator == 'Exists')`,message="operator must be Exists when key is empty"
type Toleration struct {
	// Key of the taint; empty, with operator Exists, for every taint.
	// +optional
	Key string `json:"key,omitempty"`

	// Operator is Equal to compare key and value, Exists to look at the key only.
	// +kubebuilder:default=Equal
	// +kubebuilder:validation:Enum=Equal;Exists
	// +optional
	Operator corev1.TolerationOperator `json:"operator,omitempty"`

	// Value of the taint, for Equal.
	// +optional
	Value string `json:"value,omitempty"`

	// Effect of the taint; empty for every effect.
	// +kubebuilder:validation:Enum=NoSchedule
	// +optional
	Effect corev1.TaintEffect `json:"effect,omitempty"`
}
