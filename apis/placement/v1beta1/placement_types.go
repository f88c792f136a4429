package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ClusterResourcePlacement selects cluster-scoped resources on the hub, with everything
// inside a selected namespace, and places them on the member clusters its policy picks.
//
// +kubebuilder:object:root=true
// +genclient:noStatus
// +kubebuilder:subresource:status
// +kubebuilder:metadata:annotations="versions=v1,v1beta1"
// +kubebuilder:resource:scope=Cluster,shortName=crp,categories={fleet,fleet-placement}
// +kubebuilder:printcolumn:name="Gen",type=string,JSONPath=`.metadata.generation`
// +kubebuilder:printcolumn:name="Type",type=string,priority=1,JSONPath=`.spec.policy.placementType`
// +kubebuilder:printcolumn:name="Scheduled",type=string,JSONPath=`.status.conditions[?(@.type=="ClusterResourcePlacementScheduled")].status`
// +kubebuilder:printcolumn:name="Scheduled-Gen",type=string,JSONPath=`.status.conditions[?(@.type=="ClusterResourcePlacementScheduled")].observedGeneration`
// +kubebuilder:printcolumn:name="Work-Synchronized",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="ClusterResourcePlacementWorkSynchronized")].status`
// +kubebuilder:printcolumn:name="Work-Synchronized-Gen",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="ClusterResourcePlacementWorkSynchronized")].observedGeneration`
// +kubebuilder:printcolumn:name="Applied",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="ClusterResourcePlacementApplied")].status`
// +kubebuilder:printcolumn:name="Applied-Gen",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="ClusterResourcePlacementApplied")].observedGeneration`
// +kubebuilder:printcolumn:name="Available",type=string,JSONPath=`.status.conditions[?(@.type=="ClusterResourcePlacementAvailable")].status`
// +kubebuilder:printcolumn:name="Available-Gen",type=string,JSONPath=`.status.conditions[?(@.type=="ClusterResourcePlacementAvailable")].observedGeneration`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Updated",type=string,JSONPath=`.status.clusters.progress`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) < 64",message="the name field cannot have length exceeding 63: choose a shorter metadata.name"
type ClusterResourcePlacement struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec says what to place, where, and how a change rolls out.
	// +required
	// +kubebuilder:validation:XValidation:rule=`!has(self.statusReportingScope) || self.statusReportingScope != "NamespaceAccessible" || self.resourceSelectors.filter(s, s.group == "" && s.kind == "Namespace").size() == 1`,message="when statusReportingScope is NamespaceAccessible, exactly one resourceSelector with kind 'Namespace' is required: the status is copied into that namespace"
	// +kubebuilder:validation:XValidation:rule=`!has(self.statusReportingScope) || !has(oldSelf.statusReportingScope) || self.statusReportingScope == oldSelf.statusReportingScope`,message="statusReportingScope is immutable: create another placement to report elsewhere"
	Spec PlacementSpec `json:"spec"`

	// Status says what was selected, which clusters were picked and how far they are.
	// +optional
	Status PlacementStatus `json:"status,omitempty"`
}

// PlacementSpec says what to place, where, and how a change rolls out.
//
// +kubebuilder:validation:XValidation:rule="!(has(oldSelf.policy) && !has(self.policy))",message="policy cannot be removed once set: to pick every cluster, create another placement"
// +kubebuilder:validation:XValidation:rule="!has(self.policy) || (has(self.policy.placementType) ? self.policy.placementType : 'PickAll') == (has(oldSelf.policy) && has(oldSelf.policy.placementType) ? oldSelf.policy.placementType : 'PickAll')",message="placement type is immutable: create another placement to pick clusters in another way"
// +kubebuilder:validation:XValidation:rule="!(has(oldSelf.strategy) && has(oldSelf.strategy.type) && oldSelf.strategy.type == 'External') || (has(self.strategy) && has(self.strategy.type) && self.strategy.type == 'External')",message="cannot change rollout strategy type from 'External' to other types: create another placement to roll out by RollingUpdate"
// +kubebuilder:validation:XValidation:rule=`self.resourceSelectors.filter(s, s.group == "" && s.kind == "Namespace" && has(s.selectionScope) && s.selectionScope == "NamespaceWithResourceSelectors").size() < 2`,message="only one namespace selector with NamespaceWithResourceSelectors mode is allowed: use one placement per namespace"
// +kubebuilder:validation:XValidation:rule=`self.resourceSelectors.all(s, s.group != "" || s.kind != "Namespace" || !has(s.selectionScope) || s.selectionScope != "NamespaceWithResourceSelectors" || (has(s.name) && s.name != ""))`,message="namespace selector with NamespaceWithResourceSelectors mode must select by name (not by label): set name and remove labelSelector"
// +kubebuilder:validation:XValidation:rule=`!self.resourceSelectors.exists(s, s.group == "" && s.kind == "Namespace" && has(s.selectionScope) && s.selectionScope == "NamespaceWithResourceSelectors") || self.resourceSelectors.filter(s, s.group == "" && s.kind == "Namespace").size() == 1`,message="when using NamespaceWithResourceSelectors mode, only one namespace selector is allowed (cannot mix with other namespace selectors): move the others to another placement"
// +kubebuilder:validation:XValidation:rule=`!has(self.strategy) || !has(self.strategy.failover) || (has(self.policy) && (self.policy.placementType == "PickN" || (has(self.policy.affinityGroups) && size(self.policy.affinityGroups) > 0 && self.policy.placementType != "PickFixed" && !(has(self.policy.affinityGroupMode) && self.policy.affinityGroupMode == "Overflow")) || (self.policy.placementType == "PickAll" && has(self.policy.replicaScheduling) && self.policy.replicaScheduling.exists(r, !has(r.type) || r.type == "Divided"))))`,message="strategy.failover needs clusters to go to: set policy.placementType to PickN, or policy.affinityGroups that do not overflow, or divide replicas with policy.replicaScheduling, or remove strategy.failover",reason=FieldValueInvalid,fieldPath=".strategy.failover"
// +kubebuilder:validation:XValidation:rule=`!has(self.strategy) || !has(self.strategy.failover) || !has(self.policy) || self.policy.placementType != "PickAll" || (has(self.policy.affinityGroups) && size(self.policy.affinityGroups) > 0 && !(has(self.policy.affinityGroupMode) && self.policy.affinityGroupMode == "Overflow")) || ((!has(self.strategy.failover.application) || (!has(self.strategy.failover.application.gracePeriodSeconds) && (!has(self.strategy.failover.application.purgeMode) || self.strategy.failover.application.purgeMode == "Gracefully"))) && (!has(self.strategy.failover.cluster) || (!has(self.strategy.failover.cluster.gracePeriodSeconds) && (!has(self.strategy.failover.cluster.purgeMode) || self.strategy.failover.cluster.purgeMode == "Gracefully"))))`,message="replicas go from a cluster of PickAll only as others of them are ready elsewhere, however long that takes: remove purgeMode and gracePeriodSeconds from strategy.failover, or set policy.placementType to PickN",reason=FieldValueInvalid,fieldPath=".strategy.failover"
// +kubebuilder:validation:XValidation:rule=`!has(self.strategy) || !has(self.strategy.failover) || !((has(self.strategy.failover.application) && has(self.strategy.failover.application.statePreservation)) || (has(self.strategy.failover.cluster) && has(self.strategy.failover.cluster.statePreservation))) || (has(self.policy) && self.policy.placementType == "PickN" && has(self.policy.numberOfClusters) && self.policy.numberOfClusters == 1)`,message="statePreservation of strategy.failover needs exactly one cluster whose values count: set policy.placementType to PickN and policy.numberOfClusters to 1, or remove statePreservation",reason=FieldValueInvalid,fieldPath=".strategy.failover"
// +kubebuilder:validation:XValidation:rule=`!has(self.preemption) || has(self.priority)`,message="preemption says what to do about placements of a lower priority: set spec.priority, or remove spec.preemption",reason=FieldValueForbidden,fieldPath=".preemption"
// +kubebuilder:validation:XValidation:rule=`!has(self.strategy) || !has(self.strategy.failover) || !has(self.policy) || !has(self.policy.schedulerName) || self.policy.schedulerName == ""`,message="strategy.failover is carried out by the built-in scheduler: remove strategy.failover, or policy.schedulerName",reason=FieldValueForbidden,fieldPath=".strategy.failover"
// +kubebuilder:validation:XValidation:rule=`!has(oldSelf.policy) || !has(oldSelf.policy.affinityGroups) || size(oldSelf.policy.affinityGroups) == 0 || !has(self.policy) || has(self.policy.affinityGroups)`,message="policy.affinityGroups is missing, as in an update by a client that does not know the field, and without it more clusters are picked: patch the placement instead, or set policy.affinityGroups to [] to do without it",reason=FieldValueRequired,fieldPath=".policy.affinityGroups"
// +kubebuilder:validation:XValidation:rule=`!has(oldSelf.policy) || !has(oldSelf.policy.spreadConstraints) || size(oldSelf.policy.spreadConstraints) == 0 || !has(self.policy) || has(self.policy.spreadConstraints)`,message="policy.spreadConstraints is missing, as in an update by a client that does not know the field, and without it more clusters are picked: patch the placement instead, or set policy.spreadConstraints to [] to do without it",reason=FieldValueRequired,fieldPath=".policy.spreadConstraints"
// +kubebuilder:validation:XValidation:rule=`!has(oldSelf.policy) || !has(oldSelf.policy.unservedKinds) || oldSelf.policy.unservedKinds != "Exclude" || !has(self.policy) || has(self.policy.unservedKinds)`,message="policy.unservedKinds is missing, as in an update by a client that does not know the field, and without it more clusters are picked: patch the placement instead, or set policy.unservedKinds to Ignore to do without it",reason=FieldValueRequired,fieldPath=".policy.unservedKinds"
// +kubebuilder:validation:XValidation:rule=`!has(oldSelf.policy) || !has(oldSelf.policy.schedulerName) || oldSelf.policy.schedulerName == "" || !has(self.policy) || has(self.policy.schedulerName)`,message="policy.schedulerName is missing, as in an update by a client that does not know the field, and without it the built-in scheduler picks: patch the placement instead, or set policy.schedulerName to an empty string to do without it",reason=FieldValueRequired,fieldPath=".policy.schedulerName"
// +kubebuilder:validation:XValidation:rule=`!has(oldSelf.policy) || !has(oldSelf.policy.replicaScheduling) || size(oldSelf.policy.replicaScheduling) == 0 || !has(self.policy) || has(self.policy.replicaScheduling)`,message="policy.replicaScheduling is missing, as in an update by a client that does not know the field, and without it every cluster runs all replicas: patch the placement instead, or set policy.replicaScheduling to [] to do without it",reason=FieldValueRequired,fieldPath=".policy.replicaScheduling"
type PlacementSpec struct {
	// ResourceSelectors pick the resources to place. A resource is placed if any one of
	// them picks it.
	// +required
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	ResourceSelectors []ResourceSelectorTerm `json:"resourceSelectors"`

	// Policy picks the member clusters. Without a policy, every joined cluster is picked.
	// +kubebuilder:validation:XValidation:rule=`!has(self.clusterNames) || size(self.clusterNames) == 0 || self.placementType == "PickFixed"`,messageExpression=`"cluster names needs to be empty for policy type " + self.placementType + ", only valid for PickFixed: remove policy.clusterNames"`
	// +kubebuilder:validation:XValidation:rule=`!has(self.clusterNames) || self.clusterNames.all(n, self.clusterNames.exists_one(m, m == n))`,message="cluster names must be unique for policy type PickFixed: remove the repeated name"
	// +kubebuilder:validation:XValidation:rule=`!has(self.clusterNames) || self.clusterNames.all(n, n.matches("^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))`,messageExpression=`"PickFixed cluster name " + self.clusterNames.filter(n, !n.matches("^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))[0] + " is not a valid member name: use the metadata.name of a MemberCluster"`
	// +kubebuilder:validation:XValidation:rule=`!has(self.numberOfClusters) || self.placementType == "PickN"`,messageExpression=`"number of clusters must be nil for policy type " + self.placementType + ", only valid for PickN: remove policy.numberOfClusters"`
	// +kubebuilder:validation:XValidation:rule=`!has(self.affinity) || self.placementType != "PickFixed"`,message="affinity must be nil for policy type PickFixed, only valid for PickAll/PickN: remove policy.affinity"
	// +kubebuilder:validation:XValidation:rule=`self.placementType != "PickAll" || !has(self.affinity) || !has(self.affinity.clusterAffinity) || !has(self.affinity.clusterAffinity.preferredDuringSchedulingIgnoredDuringExecution) || size(self.affinity.clusterAffinity.preferredDuringSchedulingIgnoredDuringExecution) == 0`,message="preferredDuringSchedulingIgnoredDuringExecution may not be used with policy type PickAll: every cluster that fits is picked, so there is nothing to prefer; use requiredDuringSchedulingIgnoredDuringExecution, or policy type PickN"
	// +kubebuilder:validation:XValidation:rule=`!has(self.topologySpreadConstraints) || size(self.topologySpreadConstraints) == 0 || self.placementType == "PickN"`,messageExpression=`"topology spread constraints needs to be empty for policy type " + self.placementType + ", only valid for PickN: remove policy.topologySpreadConstraints"`
	// +kubebuilder:validation:XValidation:rule=`!has(self.scaleDownOrder) || (has(self.topologySpreadConstraints) && size(self.topologySpreadConstraints) > 0)`,message="scaleDownOrder says how clusters that are spread go: set policy.topologySpreadConstraints, or remove policy.scaleDownOrder",reason=FieldValueRequired,fieldPath=".topologySpreadConstraints"
	// +kubebuilder:validation:XValidation:rule=`!has(self.spreadConstraints) || self.placementType == "PickAll"`,messageExpression=`"spreadConstraints needs to be empty for policy type " + self.placementType + ", only valid for PickAll: remove policy.spreadConstraints; PickN has topologySpreadConstraints"`
	// +kubebuilder:validation:XValidation:rule=`!has(self.affinityGroups) || self.placementType != "PickFixed"`,message="affinityGroups needs to be empty for policy type PickFixed, only valid for PickAll/PickN: remove policy.affinityGroups",reason=FieldValueForbidden,fieldPath=".affinityGroups"
	// +kubebuilder:validation:XValidation:rule=`has(self.affinityGroups) || !(has(self.affinityGroupMode) || has(self.failback) || has(self.failbackAfterSeconds))`,message="affinityGroupMode, failback and failbackAfterSeconds say how affinityGroups follow each other: set policy.affinityGroups, or remove them",reason=FieldValueRequired,fieldPath=".affinityGroups"
	// +kubebuilder:validation:XValidation:rule=`!has(self.affinityGroupMode) || self.affinityGroupMode != "Overflow" || ((!has(self.placementType) || self.placementType == "PickAll") && has(self.replicaScheduling) && self.replicaScheduling.exists(r, has(r.dynamicWeight) || (has(r.division) && r.division == "Aggregated")))`,message="affinityGroupMode Overflow divides replicas by the room of clusters: set placementType to PickAll, and dynamicWeight or division Aggregated in a rule of policy.replicaScheduling",reason=FieldValueInvalid,fieldPath=".affinityGroupMode"
	// +kubebuilder:validation:XValidation:rule=`!has(self.affinityGroupMode) || self.affinityGroupMode != "Overflow" || !has(self.failback)`,message="groups that overflow take replicas back by themselves: remove policy.failback, or set policy.affinityGroupMode to Fallback",reason=FieldValueForbidden,fieldPath=".failback"
	// +kubebuilder:validation:XValidation:rule=`!has(self.failbackAfterSeconds) || (has(self.failback) && self.failback == "Automatic")`,message="failbackAfterSeconds is only for failback Automatic: set policy.failback to Automatic, or remove policy.failbackAfterSeconds",reason=FieldValueForbidden,fieldPath=".failbackAfterSeconds"
	// +kubebuilder:validation:XValidation:rule=`!has(self.tolerations) || size(self.tolerations) == 0 || self.placementType != "PickFixed"`,message="tolerations needs to be empty for policy type PickFixed, only valid for PickAll/PickN: remove policy.tolerations, clusters picked by name are placed on whatever their taints"
	// +kubebuilder:validation:XValidation:rule=`!has(oldSelf.tolerations) || oldSelf.tolerations.all(t, has(self.tolerations) && self.tolerations.exists(n, n.operator == t.operator && (has(n.key) ? n.key : "") == (has(t.key) ? t.key : "") && (has(n.value) ? n.value : "") == (has(t.value) ? t.value : "") && (has(n.effect) ? n.effect : "") == (has(t.effect) ? t.effect : "")))`,message="tolerations have been updated/deleted, only additions to tolerations are allowed: keep the old ones as they are"
	// +kubebuilder:validation:XValidation:rule=`has(self.numberOfClusters) || self.placementType != "PickN"`,message="number of cluster cannot be nil for policy type PickN: set policy.numberOfClusters"
	// +kubebuilder:validation:XValidation:rule=`!has(self.activation) || self.activation != "Lazy" || !has(self.schedulerName) || self.schedulerName == ""`,message="when a changed policy acts is up to the scheduler that picks the clusters: remove policy.activation, or policy.schedulerName",reason=FieldValueForbidden,fieldPath=".activation"
	// +optional
	Policy *PlacementPolicy `json:"policy,omitempty"`

	// Strategy says how a change reaches the clusters. Without one, changes roll out as a
	// rolling update with the default limits.
	// +optional
	Strategy *RolloutStrategy `json:"strategy,omitempty"`

	// Priority lets placements that select the same object agree which of them has it: those that have a priority, on this
	// field, share no object. One that has an object keeps it; the others leave it out and say so. If none has it yet, the
	// highest priority gets it; then the placement that selects it by name rather than by label, and by label rather than by
	// kind; then the lower name. That of a ResourcePlacement counts as 0 at most against a ClusterResourcePlacement, which comes after
	// it if both are the same then. An addition of fleetflow; without it, two placements may both select an
	// object, and a cluster refuses it to the later one, as in KubeFleet.
	// +optional
	Priority *int32 `json:"priority,omitempty"`

	// Preemption is Never, also if it is absent, or Always to take over what a placement of a lower priority has. The object
	// stays on the clusters of both; from the other clusters of the placement that had it, it is removed. Only with priority.
	// An addition of fleetflow.
	// +kubebuilder:validation:Enum=Never;Always
	// +optional
	Preemption Preemption `json:"preemption,omitempty"`

	// RequiredOverrides are overrides that the placement cannot do without: nothing is written to clusters before all of them
	// exist and are valid. What was written before stays. A staged update run does not begin without them.
	// An addition of fleetflow.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=50
	// +kubebuilder:validation:XValidation:rule=`self.all(o, self.exists_one(p, p == o))`,message="requiredOverrides must be unique: remove the repeated override"
	// +optional
	RequiredOverrides []RequiredOverride `json:"requiredOverrides,omitempty"`

	// RevisionHistoryLimit is how many old policy snapshots and resource snapshots to keep.
	// +kubebuilder:default=10
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	// +optional
	RevisionHistoryLimit *int32 `json:"revisionHistoryLimit,omitempty"`

	// PropagateDeps also places what the pod templates and Ingresses among the selected resources
	// name in their namespace, wherever they go: ConfigMaps, Secrets, service accounts other than
	// default, volume claims that no template makes, Secrets of TLS. Envelopes are not opened. The
	// condition DependenciesMissing says what is missing, which keeps nothing back. An addition of
	// fleetflow.
	// +optional
	PropagateDeps bool `json:"propagateDeps,omitempty"`

	// StatusReportingScope says where the status can be read: ClusterScopeOnly keeps it on
	// this object, NamespaceAccessible copies it into the one selected namespace. It has no
	// effect on a ResourcePlacement, whose status is in its namespace already.
	// +kubebuilder:default=ClusterScopeOnly
	// +kubebuilder:validation:Enum=ClusterScopeOnly;NamespaceAccessible
	// +optional
	StatusReportingScope StatusReportingScope `json:"statusReportingScope,omitempty"`
}

// RequiredOverride names an override that a placement cannot do without.
type RequiredOverride struct {
	// Name of the override.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// Namespace of a ResourceOverride; a ClusterResourceOverride has none.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Namespace string `json:"namespace,omitempty"`
}

// Preemption says whether a placement takes over objects that one of a lower priority has.
type Preemption string

const (
	// PreemptionNever leaves an object to the placement that has it.
	PreemptionNever Preemption = "Never"
	// PreemptionAlways takes an object over from a placement of a lower priority.
	PreemptionAlways Preemption = "Always"
)

// StatusReportingScope says where the status of a placement can be read.
type StatusReportingScope string

const (
	// ClusterScopeOnly keeps the status on the placement itself.
	ClusterScopeOnly StatusReportingScope = "ClusterScopeOnly"
	// NamespaceAccessible also copies the status into the selected namespace.
	NamespaceAccessible StatusReportingScope = "NamespaceAccessible"
)

// ResourceSelectorTerm picks resources of one kind; a resource has to match every field
// that is set. With neither name nor labelSelector, every object of the kind is picked.
//
// +kubebuilder:validation:XValidation:rule=`!(has(self.labelSelector) && has(self.name) && self.name != "")`,message="name and labelSelector are mutually exclusive in a resource selector: remove one of them"
type ResourceSelectorTerm struct {
	// Group of the resource; empty for the core group.
	// +required
	// +kubebuilder:validation:MaxLength=253
	Group string `json:"group"`

	// Version of the resource.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Version string `json:"version"`

	// Kind of the resource. A selected Namespace is placed with what is inside it; see
	// selectionScope.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind"`

	// Name of the one resource to pick.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Name string `json:"name,omitempty"`

	// LabelSelector picks every resource of the kind whose labels match.
	// +optional
	LabelSelector *metav1.LabelSelector `json:"labelSelector,omitempty"`

	// SelectionScope says how much of a selected Namespace to take: NamespaceWithResources
	// is all of it, NamespaceOnly only the Namespace object, and
	// NamespaceWithResourceSelectors the Namespace and those of its objects that the other
	// selectors pick. Other kinds ignore it.
	// +kubebuilder:default=NamespaceWithResources
	// +kubebuilder:validation:Enum=NamespaceOnly;NamespaceWithResources;NamespaceWithResourceSelectors
	// +optional
	SelectionScope SelectionScope `json:"selectionScope,omitempty"`
}

// SelectionScope says how much of a selected Namespace to take.
type SelectionScope string

const (
	// NamespaceOnly takes the Namespace object alone.
	NamespaceOnly SelectionScope = "NamespaceOnly"
	// NamespaceWithResources takes the Namespace and everything in it.
	NamespaceWithResources SelectionScope = "NamespaceWithResources"
	// NamespaceWithResourceSelectors takes the Namespace and those of its objects that the
	// other selectors of the same placement pick.
	NamespaceWithResourceSelectors SelectionScope = "NamespaceWithResourceSelectors"
)

// PlacementStatus says what was selected, which clusters were picked and how far they are.
type PlacementStatus struct {
	// SelectedResources are the resources the selectors picked.
	// +optional
	SelectedResources []ResourceIdentifier `json:"selectedResources,omitempty"`

	// ObservedResourceIndex is the index of the resource snapshot that the conditions talk
	// about. The snapshot carries it in the label kubernetes-fleet.io/resource-index.
	// +optional
	ObservedResourceIndex string `json:"observedResourceIndex,omitempty"`

	// ResourceSnapshots are the resource snapshots of the placement that are complete, by
	// index; the latest 100 of them. They name what a run can roll out, for those who may not
	// read snapshots, which hold Secrets. An addition of fleetflow.
	// +optional
	// +listType=map
	// +listMapKey=index
	// +kubebuilder:validation:MaxItems=100
	ResourceSnapshots []ResourceSnapshotSummary `json:"resourceSnapshots,omitempty"`

	// PerClusterPlacementStatuses (placementStatuses in YAML) has one entry per picked cluster, and one without a cluster name
	// per cluster that was asked for and could not be found.
	// +optional
	PerClusterPlacementStatuses []PerClusterPlacementStatus `json:"placementStatuses,omitempty"`

	// UnlistedClusters is how many picked clusters have no entry, as there is no room for them: their
	// bindings say how they are. Clusters that are not done are listed first.
	// An addition of fleetflow.
	// +optional
	UnlistedClusters int32 `json:"unlistedClusters,omitempty"`

	// Clusters counts the picked clusters. Absent before there is a resource snapshot. An addition of fleetflow.
	// +optional
	Clusters *ClusterCounts `json:"clusters,omitempty"`

	// Conditions sum up all clusters; the order of evaluation is Scheduled,
	// RolloutStarted, Overridden, WorkSynchronized, Applied, Available (or DiffReported).
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ClusterCounts counts clusters by how far they are. An addition of fleetflow.
type ClusterCounts struct {
	// Progress is updatedAvailable of selected, as in 97/100; with ReportDiff it is updated of selected.
	// +required
	Progress string `json:"progress"`

	// Selected is how many clusters the placement picked, or the run updates.
	// +required
	Selected int32 `json:"selected"`

	// Updated is how many of them have applied the resources that the status is about, or have compared them with
	// ReportDiff; of a run how many have had their turn.
	// +required
	Updated int32 `json:"updated"`

	// Available is how many of them have what they were given available, be it the observed resources or older ones.
	// Absent with ReportDiff, and of a run, which looks only at the clusters that it updates.
	// +optional
	Available *int32 `json:"available,omitempty"`

	// UpdatedAvailable is how many of them have the observed resources available; of a run how many have been updated.
	// +required
	UpdatedAvailable int32 `json:"updatedAvailable"`

	// Held is how many of them wait for a person or for a time: under a suspension, the partition, a pause, a
	// lifecycle hook, a hold or a window; of a run how many it has begun with and cannot write.
	// +required
	Held int32 `json:"held"`

	// Failed is how many of them could not be given the resources, or could not apply or compare them; of a run how
	// many were not updated.
	// +required
	Failed int32 `json:"failed"`
}

// ResourceSnapshotSummary says which resource snapshot there is, and nothing of what is in it. It
// has no hash either: by that of a snapshot with a Secret, guesses at the Secret could be tried.
// An addition of fleetflow.
type ResourceSnapshotSummary struct {
	// Index of the snapshot, as spec.resourceSnapshotIndex of a run names it.
	// +required
	// +kubebuilder:validation:MinLength=1
	Index string `json:"index"`

	// Name of its first part.
	// +required
	// +kubebuilder:validation:MinLength=1
	Name string `json:"name"`

	// CreationTime is when it was taken.
	// +required
	CreationTime metav1.Time `json:"creationTime"`
}

// PerClusterPlacementStatus is how far a placement is on one cluster.
type PerClusterPlacementStatus struct {
	// ClusterName of the picked cluster; empty if a cluster that was asked for could not
	// be found.
	// +optional
	ClusterName string `json:"clusterName,omitempty"`

	// ObservedResourceIndex is the index of the resource snapshot this cluster is to run.
	// +optional
	ObservedResourceIndex string `json:"observedResourceIndex,omitempty"`

	// ApplicableResourceOverrides are the ResourceOverride snapshots that change what this
	// cluster gets.
	// +optional
	ApplicableResourceOverrides []NamespacedName `json:"applicableResourceOverrides,omitempty"`

	// ApplicableClusterResourceOverrides are the ClusterResourceOverride snapshots that
	// change what this cluster gets.
	// +optional
	ApplicableClusterResourceOverrides []string `json:"applicableClusterResourceOverrides,omitempty"`

	// FailedPlacements are the resources that could not be applied or are not available;
	// the first 100 of them.
	// +kubebuilder:validation:MaxItems=100
	// +optional
	FailedPlacements []FailedResourcePlacement `json:"failedPlacements,omitempty"`

	// DriftedPlacements are the resources that were changed on the cluster after they were
	// applied; the first 100 of them.
	// +kubebuilder:validation:MaxItems=100
	// +optional
	DriftedPlacements []DriftedResourcePlacement `json:"driftedPlacements,omitempty"`

	// DiffedPlacements are the resources on the cluster that differ from the hub's and were
	// left alone; the first 100 of them.
	// +kubebuilder:validation:MaxItems=100
	// +optional
	DiffedPlacements []DiffedResourcePlacement `json:"diffedPlacements,omitempty"`

	// Conditions of the placement on this cluster.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ResourcePlacement selects resources in its own namespace on the hub and places them on the
// member clusters its policy picks. The namespace itself has to be on the clusters already;
// a ClusterResourcePlacement that selects it with selectionScope NamespaceOnly brings it.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:metadata:annotations="versions=v1,v1beta1"
// +kubebuilder:resource:scope=Namespaced,shortName=rp,categories={fleet,fleet-placement}
// +kubebuilder:printcolumn:name="Gen",type=string,JSONPath=`.metadata.generation`
// +kubebuilder:printcolumn:name="Type",type=string,priority=1,JSONPath=`.spec.policy.placementType`
// +kubebuilder:printcolumn:name="Scheduled",type=string,JSONPath=`.status.conditions[?(@.type=="ResourcePlacementScheduled")].status`
// +kubebuilder:printcolumn:name="Scheduled-Gen",type=string,JSONPath=`.status.conditions[?(@.type=="ResourcePlacementScheduled")].observedGeneration`
// +kubebuilder:printcolumn:name="Work-Synchronized",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="ResourcePlacementWorkSynchronized")].status`
// +kubebuilder:printcolumn:name="Work-Synchronized-Gen",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="ResourcePlacementWorkSynchronized")].observedGeneration`
// +kubebuilder:printcolumn:name="Applied",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="ResourcePlacementApplied")].status`
// +kubebuilder:printcolumn:name="Applied-Gen",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="ResourcePlacementApplied")].observedGeneration`
// +kubebuilder:printcolumn:name="Available",type=string,JSONPath=`.status.conditions[?(@.type=="ResourcePlacementAvailable")].status`
// +kubebuilder:printcolumn:name="Available-Gen",type=string,JSONPath=`.status.conditions[?(@.type=="ResourcePlacementAvailable")].observedGeneration`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Updated",type=string,JSONPath=`.status.clusters.progress`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) < 64",message="the name field cannot have length exceeding 63: choose a shorter metadata.name"
type ResourcePlacement struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec says what to place, where, and how a change rolls out.
	// +required
	// +kubebuilder:validation:XValidation:rule=`self.resourceSelectors.all(s, s.group != "" || s.kind != "Namespace")`,message="a ResourcePlacement selects resources in its own namespace, not a Namespace: select the Namespace with a ClusterResourcePlacement"
	Spec PlacementSpec `json:"spec"`

	// Status says what was selected, which clusters were picked and how far they are.
	// +optional
	Status PlacementStatus `json:"status,omitempty"`
}
