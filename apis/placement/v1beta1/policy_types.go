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
	// +kubebuilder:validation:items:MaxLength=63
	// +optional
	ClusterNames []string `json:"clusterNames,omitempty"`

	// NumberOfClusters is how many clusters to pick. Only for PickN.
	// +kubebuilder:validation:Minimum=0
	// +optional
	NumberOfClusters *int32 `json:"numberOfClusters,omitempty"`

	// Affinity says which clusters fit and which are liked best. Only for PickAll and PickN.
	// +optional
	Affinity *Affinity `json:"affinity,omitempty"`

	// AffinityGroups are groups of clusters in order. Unless they overflow, clusters are picked from one group only: from
	// the first that has enough of them, which is the number of clusters for PickN, and one for
	// PickAll. The placement stays with its group while that has enough; if no group has, nothing
	// is moved. What affinity requires is required in every group. Only for PickAll and PickN.
	// An addition of fleetflow; without it, all clusters are one group, as in KubeFleet. It goes once it is an empty list.
	// +kubebuilder:validation:MaxItems=10
	// +listType=map
	// +listMapKey=name
	// +optional
	AffinityGroups []AffinityGroup `json:"affinityGroups,omitempty"`

	// AffinityGroupMode is Fallback, also if it is absent: a group is taken only if those before it
	// have not enough clusters. With Overflow, all clusters of the groups are picked, and replicas that
	// are divided by the room of clusters go to a group only if those before it have no room for
	// them; a cluster is in the first group that matches it. Only with affinityGroups. An addition of
	// fleetflow.
	// +kubebuilder:validation:Enum=Fallback;Overflow
	// +optional
	AffinityGroupMode AffinityGroupMode `json:"affinityGroupMode,omitempty"`

	// Failback is Never, also if it is absent, to stay with a group while it has enough clusters,
	// or Automatic to go back to a group before it that has had enough clusters for some time.
	// Only with affinityGroups. An addition of fleetflow.
	// +kubebuilder:validation:Enum=Never;Automatic
	// +optional
	Failback Failback `json:"failback,omitempty"`

	// FailbackAfterSeconds is for how long a group must have had enough clusters, without a break,
	// before the placement goes back to it; 600 if it is absent. Only with failback Automatic.
	// An addition of fleetflow.
	// +kubebuilder:validation:Minimum=0
	// +optional
	FailbackAfterSeconds *int32 `json:"failbackAfterSeconds,omitempty"`

	// SpreadConstraints bound how many clusters are picked, and over how many groups of clusters they are
	// spread; all of them have to hold, else nothing is moved. Only for PickAll.
	// An addition of fleetflow; without it, every cluster that fits is picked, as in KubeFleet. It goes once it is an empty list.
	// +kubebuilder:validation:MaxItems=4
	// +kubebuilder:validation:XValidation:rule=`self.filter(c, c.spreadBy == "Cluster").size() < 2 && self.filter(c, c.spreadBy == "Label").size() < 2`,message="there is at most one spread constraint by Cluster and one by Label: keep one of each"
	// +kubebuilder:validation:XValidation:rule=`self.all(c, c.spreadBy != "Cluster" || !has(c.maxGroups) || self.all(l, l.spreadBy != "Label" || (has(l.minGroups) ? l.minGroups : 1) <= c.maxGroups))`,message="maxGroups of the spread constraint by Cluster must not be less than minGroups of that by Label: every group needs a cluster"
	// +optional
	SpreadConstraints []SpreadConstraint `json:"spreadConstraints,omitempty"`

	// TopologySpreadConstraints spread the picked clusters over groups of clusters; every
	// one of them has to hold. Only for PickN.
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:XValidation:rule=`self.all(c, self.exists_one(d, d.topologyKey == c.topologyKey && d.whenUnsatisfiable == c.whenUnsatisfiable))`,message="topology spread constraints must differ in topologyKey or whenUnsatisfiable: keep the one with the smaller maxSkew"
	// +optional
	TopologySpreadConstraints []TopologySpreadConstraint `json:"topologySpreadConstraints,omitempty"`

	// ScaleDownOrder is Scores, also if it is absent, to have those clusters go first, once fewer are wanted, that scored lowest
	// when they were picked; or Spread to have those go first without which the rest is spread best, as topologySpreadConstraints
	// say. What is marked, is not available or has a lower deletion cost goes before either. Only with topologySpreadConstraints.
	// An addition of fleetflow.
	// +kubebuilder:validation:Enum=Scores;Spread
	// +optional
	ScaleDownOrder ScaleDownOrder `json:"scaleDownOrder,omitempty"`

	// Tolerations let tainted clusters be picked. They can be added, not changed or
	// removed. Only for PickAll and PickN.
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:XValidation:rule=`self.all(t, self.exists_one(u, u == t))`,message="tolerations must be unique: remove the repeated toleration"
	// +optional
	Tolerations []Toleration `json:"tolerations,omitempty"`

	// UnservedKinds is Ignore, also if it is absent, to pick clusters whatever kinds they serve; or Exclude to pick none that does not
	// serve a kind of what is placed, by what the cluster reports; kinds within envelopes count, too. A cluster that reports no kinds
	// can be picked, and what is placed on a cluster stays there. It has no effect with PickFixed. An addition of fleetflow.
	// +kubebuilder:validation:Enum=Ignore;Exclude
	// +optional
	UnservedKinds UnservedKinds `json:"unservedKinds,omitempty"`

	// ReplicaScheduling divides the replicas of selected workloads over the picked clusters. Of the rules that select a
	// workload the first counts; a workload that none selects runs with all its replicas everywhere. Deployments, ReplicaSets,
	// StatefulSets, Jobs and CloneSets can be divided, and at most 1,000 workloads of a placement. A rule can be changed at any
	// time: it moves replicas, not clusters. An addition of fleetflow. It goes once it is an empty list.
	// +kubebuilder:validation:MaxItems=20
	// +kubebuilder:validation:XValidation:rule=`self.all(r, self.exists_one(s, has(r.selector) ? has(s.selector) && (has(r.selector.group) ? has(s.selector.group) && r.selector.group == s.selector.group : !has(s.selector.group)) && (has(r.selector.kind) ? has(s.selector.kind) && r.selector.kind == s.selector.kind : !has(s.selector.kind)) && (has(r.selector.__namespace__) ? has(s.selector.__namespace__) && r.selector.__namespace__ == s.selector.__namespace__ : !has(s.selector.__namespace__)) && (has(r.selector.name) ? has(s.selector.name) && r.selector.name == s.selector.name : !has(s.selector.name)) : !has(s.selector)))`,message="two rules of replicaScheduling have the same selector, of which only the first has an effect: remove one"
	// +optional
	ReplicaScheduling []ReplicaSchedulingRule `json:"replicaScheduling,omitempty"`

	// Activation is Immediate, also if it is absent, or Lazy to have a changed policy wait until the selected resources change
	// next, that is for the next resource snapshot. The first policy of a placement acts at once, and so does what is no other
	// policy: numberOfClusters, scaleDownOrder, failback, tolerationSeconds, replicaScheduling and the fields below. An addition of fleetflow.
	// +kubebuilder:validation:Enum=Immediate;Lazy
	// +optional
	Activation Activation `json:"activation,omitempty"`

	// SchedulerName is the scheduler that picks the clusters; empty is the built-in one. Another one writes the clusters into
	// status.targetClusters of the latest policy snapshot, and then the generation of the placement into
	// status.observedCRPGeneration; they are taken as they are, and until then what is placed stays. An addition of fleetflow.
	// It goes once it is empty.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule=`self == "" || self.matches("^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$")`,message="schedulerName is the name of a scheduler in lower case letters, digits, '-' and '.': correct it, or remove policy.schedulerName for the built-in scheduler"
	// +optional
	SchedulerName string `json:"schedulerName,omitempty"`

	// QueuePriorityClassName is a PriorityClass of the hub. Its value says which placement is worked on first if many wait: those of
	// 1,000,000,000 or more, those above 0, those of 0 or without a class, those below 0. A placement in a namespace is at most among
	// the second. It changes nothing about which clusters are picked. An addition of fleetflow.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule=`self == "" || self.matches("^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$")`,message="queuePriorityClassName is the name of a PriorityClass in lower case letters, digits, '-' and '.': correct it, or remove policy.queuePriorityClassName"
	// +optional
	QueuePriorityClassName string `json:"queuePriorityClassName,omitempty"`
}

// ScaleDownOrder says which clusters go first once fewer are wanted.
type ScaleDownOrder string

const (
	// ScaleDownByScores goes by the scores as they were when clusters were picked.
	ScaleDownByScores ScaleDownOrder = "Scores"
	// ScaleDownBySpread goes by how what remains is spread.
	ScaleDownBySpread ScaleDownOrder = "Spread"
)

// Activation says when a changed policy acts.
type Activation string

const (
	// ActivationImmediate has it act at once.
	ActivationImmediate Activation = "Immediate"
	// ActivationLazy has it wait until the selected resources change next.
	ActivationLazy Activation = "Lazy"
)

// AffinityGroup is a group of clusters that a placement may be in.
type AffinityGroup struct {
	// Name of the group, by which decisions tell it.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern="^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
	Name string `json:"name"`

	// ClusterSelector says which clusters are in the group.
	// +required
	// +kubebuilder:validation:XValidation:rule=`self.clusterSelectorTerms.all(t, has(t.labelSelector) || has(t.propertySelector) || has(t.propertySorter))`,message="a term of affinityGroups needs a labelSelector or a propertySelector: for a group of all clusters set clusterSelectorTerms to []"
	// +kubebuilder:validation:XValidation:rule=`self.clusterSelectorTerms.all(t, !has(t.propertySorter))`,message="propertySorter is not allowed in affinityGroups: use propertySelector, or a preferred term of the affinity"
	ClusterSelector ClusterSelector `json:"clusterSelector"`
}

// AffinityGroupMode says how groups of clusters follow each other.
type AffinityGroupMode string

const (
	// AffinityGroupFallback takes a group if those before it have not enough clusters.
	AffinityGroupFallback AffinityGroupMode = "Fallback"
	// AffinityGroupOverflow takes all groups, and divides replicas over a group for which those before it have no room.
	AffinityGroupOverflow AffinityGroupMode = "Overflow"
)

// UnservedKinds says whether clusters are picked that do not serve a kind of what is placed.
type UnservedKinds string

const (
	// UnservedKindsIgnore picks clusters whatever kinds they serve.
	UnservedKindsIgnore UnservedKinds = "Ignore"
	// UnservedKindsExclude picks no cluster that does not serve a kind of what is placed.
	UnservedKindsExclude UnservedKinds = "Exclude"
)

// Failback says whether a placement goes back to an earlier group.
type Failback string

const (
	// FailbackNever stays with a group while it has enough clusters.
	FailbackNever Failback = "Never"
	// FailbackAutomatic goes back to an earlier group that has had enough clusters for some time.
	FailbackAutomatic Failback = "Automatic"
)

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
	// +kubebuilder:validation:XValidation:rule=`self.clusterSelectorTerms.all(t, !has(t.propertySelector) || t.propertySelector.matchExpressions.all(a, t.propertySelector.matchExpressions.all(b, a.name != b.name || size(a.values) != 1 || size(b.values) != 1 || !a.values[0].matches("^[+-]?([0-9]+([.][0-9]*)?|[.][0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]{1,2})?$") || !b.values[0].matches("^[+-]?([0-9]+([.][0-9]*)?|[.][0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]{1,2})?$") || !isQuantity(a.values[0]) || !isQuantity(b.values[0]) || !(quantity(a.values[0]).isLessThan(quantity(b.values[0])) ? a.operator == "Eq" && b.operator in ["Eq", "Gt", "Ge"] : quantity(a.values[0]).isGreaterThan(quantity(b.values[0])) ? (a.operator == "Eq" && b.operator in ["Lt", "Le"]) || (a.operator in ["Gt", "Ge"] && b.operator in ["Lt", "Le"]) : (a.operator == "Eq" && b.operator in ["Ne", "Gt", "Lt"]) || (a.operator in ["Gt", "Ge"] && b.operator in ["Lt", "Le"] && (a.operator == "Gt" || b.operator == "Lt"))))))`,message="inconsistent requirements on property: two requirements on one property exclude each other, so that no cluster can match; change or remove one"
	// +kubebuilder:validation:XValidation:rule=`self.clusterSelectorTerms.all(t, !has(t.propertySorter))`,message="PropertySorter is not allowed for RequiredDuringSchedulingIgnoredDuringExecution affinity: move it to a preferred term, or use propertySelector"
	// +optional
	RequiredDuringSchedulingIgnoredDuringExecution *ClusterSelector `json:"requiredDuringSchedulingIgnoredDuringExecution,omitempty"`

	// PreferredDuringSchedulingIgnoredDuringExecution ranks the clusters that fit: the
	// weights of all terms a cluster matches add up. Only for PickN.
	// +kubebuilder:validation:MaxItems=64
	// +optional
	PreferredDuringSchedulingIgnoredDuringExecution []PreferredClusterSelector `json:"preferredDuringSchedulingIgnoredDuringExecution,omitempty"`
}

// ClusterSelector matches a cluster if any one of its terms does, or if it has none.
type ClusterSelector struct {
	// ClusterSelectorTerms are the alternatives. An empty list, [], matches every cluster.
	// +required
	// +kubebuilder:validation:MaxItems=10
	ClusterSelectorTerms []ClusterSelectorTerm `json:"clusterSelectorTerms"`
}

// ClusterSelectorTerm matches a cluster if everything that is set in it does.
type ClusterSelectorTerm struct {
	// LabelSelector is matched against the labels of the MemberCluster. The label
	// kubernetes-fleet.io/member-name of each MemberCluster is its name.
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
	// +required
	// +kubebuilder:validation:MaxItems=16
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
//
// +kubebuilder:validation:XValidation:rule=`size(self.values) == 1`,messageExpression=`"operator " + self.operator + " needs exactly one value: give values one quantity such as 5 or 10Gi"`
// +kubebuilder:validation:XValidation:rule=`self.values.all(v, v.matches("^[+-]?([0-9]+([.][0-9]*)?|[.][0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]{1,2})?$") && isQuantity(v))`,messageExpression=`"value " + self.values[0] + " is not a Kubernetes quantity: write it like 5, 500m or 10Gi"`
type PropertySelectorRequirement struct {
	// Name of the property.
	// +required
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:XValidation:rule=`self.matches("^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$")`,message="the name of a property must be a label name, such as kubernetes-fleet.io/node-count or resources.kubernetes-fleet.io/total-cpu"
	Name string `json:"name"`

	// Operator is Gt, Ge, Eq, Ne, Lt or Le.
	// +kubebuilder:validation:Enum=Gt;Ge;Eq;Ne;Lt;Le
	// +required
	Operator PropertySelectorOperator `json:"operator"`

	// Values holds the one value to compare with, a Kubernetes quantity such as 5 or 10Gi.
	// +kubebuilder:validation:MaxItems=1
	// +kubebuilder:validation:items:MaxLength=64
	// +required
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
	// +required
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:XValidation:rule=`self.matches("^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$")`,message="the name of a property must be a label name, such as kubernetes-fleet.io/node-count or resources.kubernetes-fleet.io/total-cpu"
	Name string `json:"name"`

	// SortOrder is Descending if high values are liked best, Ascending if low ones are.
	// +kubebuilder:validation:Enum=Descending;Ascending
	// +required
	SortOrder PropertySortOrder `json:"sortOrder"`
}

// PreferredClusterSelector adds its weight to the score of the clusters it matches.
type PreferredClusterSelector struct {
	// Weight to add; a negative weight makes matching clusters less liked.
	// +required
	// +kubebuilder:validation:Minimum=-100
	// +kubebuilder:validation:Maximum=100
	Weight int32 `json:"weight"`

	// Preference is the one term to match, an object and not a list.
	// +required
	// +kubebuilder:validation:XValidation:rule=`!has(self.propertySelector)`,message="PropertySelector is not allowed for PreferredDuringSchedulingIgnoredDuringExecution affinity: move it to a required term, or use propertySorter"
	// +kubebuilder:validation:XValidation:rule=`has(self.labelSelector) || has(self.propertySelector) || has(self.propertySorter)`,message="preference needs a labelSelector or a propertySorter (metricSorter is not a field, use propertySorter)"
	Preference ClusterSelectorTerm `json:"preference"`
}

// SpreadBy says what makes the groups of a spread.
type SpreadBy string

const (
	// SpreadByCluster has every cluster be a group of its own.
	SpreadByCluster SpreadBy = "Cluster"
	// SpreadByLabel has the values of a label make groups of clusters.
	SpreadByLabel SpreadBy = "Label"
)

// SpreadConstraint bounds over how many groups the picked clusters are spread.
//
// +kubebuilder:validation:XValidation:rule=`(self.spreadBy == "Label") == has(self.labelKey)`,message="labelKey says which label makes the groups: set it with spreadBy Label, remove it with spreadBy Cluster",reason=FieldValueInvalid,fieldPath=".labelKey"
// +kubebuilder:validation:XValidation:rule=`!has(self.maxGroups) || (has(self.minGroups) ? self.minGroups : 1) <= self.maxGroups`,message="maxGroups must not be less than minGroups",reason=FieldValueInvalid,fieldPath=".maxGroups"
type SpreadConstraint struct {
	// SpreadBy is Cluster to count clusters, Label to count the values of a label.
	// +required
	// +kubebuilder:validation:Enum=Cluster;Label
	SpreadBy SpreadBy `json:"spreadBy"`

	// LabelKey is the label of clusters whose values make the groups, for Label. A cluster without
	// the label is not picked.
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:XValidation:rule=`self.matches("^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$")`,message="labelKey must be the key of a cluster label, such as region or topology.kubernetes.io/zone"
	// +optional
	LabelKey string `json:"labelKey,omitempty"`

	// MinGroups is how many groups have to be picked from, at least; 1 if it is absent.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	// +optional
	MinGroups *int32 `json:"minGroups,omitempty"`

	// MaxGroups is how many groups are picked from, at most; without it, there is no limit.
	// +kubebuilder:validation:Minimum=1
	// +optional
	MaxGroups *int32 `json:"maxGroups,omitempty"`
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
	// +required
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:XValidation:rule=`self.matches("^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$")`,message="topologyKey must be the key of a cluster label, such as region or topology.kubernetes.io/zone"
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
// +kubebuilder:validation:XValidation:rule=`!(has(self.operator) && self.operator == 'Exists' && has(self.value) && self.value != "")`,message="value must be empty when operator is Exists: remove value, or set operator to Equal"
// +kubebuilder:validation:XValidation:rule=`(has(self.key) && self.key != "") || (has(self.operator) && self.operator == 'Exists')`,message="operator must be Exists when key is empty: set key, or set operator to Exists to tolerate every taint"
// +kubebuilder:validation:XValidation:rule=`!has(self.tolerationSeconds) || (has(self.effect) && self.effect == "NoExecute")`,message="tolerationSeconds is only for effect NoExecute, as no other taint moves what is placed: set effect to NoExecute, or remove tolerationSeconds",reason=FieldValueForbidden,fieldPath=".tolerationSeconds"
type Toleration struct {
	// Key of the taint; empty, with operator Exists, for every taint.
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:XValidation:rule=`self == "" || self.matches("^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$")`,message="the key of a toleration must have the form of a label key, such as example.com/dedicated"
	// +optional
	Key string `json:"key,omitempty"`

	// Operator is Equal to compare key and value, Exists to look at the key only.
	// +kubebuilder:default=Equal
	// +kubebuilder:validation:Enum=Equal;Exists
	// +optional
	Operator corev1.TolerationOperator `json:"operator,omitempty"`

	// Value of the taint, for Equal.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule=`self == "" || self.matches("^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$")`,message="the value of a toleration must have the form of a label value: letters, digits, '-', '_' and '.', beginning and ending with a letter or digit"
	// +optional
	Value string `json:"value,omitempty"`

	// Effect of the taint: NoSchedule, PreferNoSchedule or NoExecute; empty for every effect.
	// +kubebuilder:validation:Enum=NoSchedule;PreferNoSchedule;NoExecute
	// +optional
	Effect corev1.TaintEffect `json:"effect,omitempty"`

	// TolerationSeconds is for how long what is placed stays on a cluster that has the taint, if the placement fails over
	// (strategy.failover.cluster); of several tolerations of a taint the first counts. Without it, what is placed stays. It can be
	// changed at any time. Only with effect NoExecute. An addition of fleetflow.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=31536000
	// +optional
	TolerationSeconds *int64 `json:"tolerationSeconds,omitempty"`
}
