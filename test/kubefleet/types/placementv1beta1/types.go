// Package placementv1beta1 has the Go types of KubeFleet's kinds of placement.kubernetes-fleet.io/v1beta1 that users write, for tests of
// what its clients make of objects. Names, types and order of fields are those that were recorded of its package; the tags are by its
// CRDs: what these do not require is left out if it is empty, unless KubeFleet's source says otherwise. Words are strings.
package placementv1beta1

import (
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// ClusterResourcePlacement is a kind of KubeFleet's.
type ClusterResourcePlacement struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              PlacementSpec   `json:"spec"`
	Status            PlacementStatus `json:"status,omitempty"`
}

// PlacementSpec is a part of KubeFleet's kinds.
type PlacementSpec struct {
	ResourceSelectors    []ResourceSelectorTerm `json:"resourceSelectors"`
	Policy               *PlacementPolicy       `json:"policy,omitempty"`
	Strategy             RolloutStrategy        `json:"strategy,omitempty"`
	RevisionHistoryLimit *int32                 `json:"revisionHistoryLimit,omitempty"`
	StatusReportingScope string                 `json:"statusReportingScope,omitempty"`
}

// ResourceSelectorTerm is a part of KubeFleet's kinds.
type ResourceSelectorTerm struct {
	Group          string                `json:"group"`
	Version        string                `json:"version"`
	Kind           string                `json:"kind"`
	Name           string                `json:"name,omitempty"`
	LabelSelector  *metav1.LabelSelector `json:"labelSelector,omitempty"`
	SelectionScope string                `json:"selectionScope,omitempty"`
}

// PlacementPolicy is a part of KubeFleet's kinds.
type PlacementPolicy struct {
	PlacementType             string                     `json:"placementType,omitempty"`
	ClusterNames              []string                   `json:"clusterNames,omitempty"`
	NumberOfClusters          *int32                     `json:"numberOfClusters,omitempty"`
	Affinity                  *Affinity                  `json:"affinity,omitempty"`
	TopologySpreadConstraints []TopologySpreadConstraint `json:"topologySpreadConstraints,omitempty"`
	Tolerations               []Toleration               `json:"tolerations,omitempty"`
}

// Affinity is a part of KubeFleet's kinds.
type Affinity struct {
	ClusterAffinity *ClusterAffinity `json:"clusterAffinity,omitempty"`
}

// ClusterAffinity is a part of KubeFleet's kinds.
type ClusterAffinity struct {
	RequiredDuringSchedulingIgnoredDuringExecution  *ClusterSelector           `json:"requiredDuringSchedulingIgnoredDuringExecution,omitempty"`
	PreferredDuringSchedulingIgnoredDuringExecution []PreferredClusterSelector `json:"preferredDuringSchedulingIgnoredDuringExecution,omitempty"`
}

// ClusterSelector is a part of KubeFleet's kinds.
type ClusterSelector struct {
	ClusterSelectorTerms []ClusterSelectorTerm `json:"clusterSelectorTerms"`
}

// ClusterSelectorTerm is a part of KubeFleet's kinds.
type ClusterSelectorTerm struct {
	LabelSelector    *metav1.LabelSelector `json:"labelSelector,omitempty"`
	PropertySelector *PropertySelector     `json:"propertySelector,omitempty"`
	PropertySorter   *PropertySorter       `json:"propertySorter,omitempty"`
}

// PropertySelector is a part of KubeFleet's kinds.
type PropertySelector struct {
	MatchExpressions []PropertySelectorRequirement `json:"matchExpressions"`
}

// PropertySelectorRequirement is a part of KubeFleet's kinds.
type PropertySelectorRequirement struct {
	Name     string   `json:"name"`
	Operator string   `json:"operator"`
	Values   []string `json:"values"`
}

// PropertySorter is a part of KubeFleet's kinds.
type PropertySorter struct {
	Name      string `json:"name"`
	SortOrder string `json:"sortOrder"`
}

// PreferredClusterSelector is a part of KubeFleet's kinds.
type PreferredClusterSelector struct {
	Weight     int32               `json:"weight"`
	Preference ClusterSelectorTerm `json:"preference"`
}

// TopologySpreadConstraint is a part of KubeFleet's kinds.
type TopologySpreadConstraint struct {
	MaxSkew           *int32 `json:"maxSkew,omitempty"`
	TopologyKey       string `json:"topologyKey"`
	WhenUnsatisfiable string `json:"whenUnsatisfiable,omitempty"`
}

// Toleration is a part of KubeFleet's kinds.
type Toleration struct {
	Key      string                    `json:"key,omitempty"`
	Operator corev1.TolerationOperator `json:"operator,omitempty"`
	Value    string                    `json:"value,omitempty"`
	Effect   corev1.TaintEffect        `json:"effect,omitempty"`
}

// RolloutStrategy is a part of KubeFleet's kinds.
type RolloutStrategy struct {
	Type               string               `json:"type,omitempty"`
	RollingUpdate      *RollingUpdateConfig `json:"rollingUpdate,omitempty"`
	ApplyStrategy      *ApplyStrategy       `json:"applyStrategy,omitempty"`
	DeleteStrategy     *DeleteStrategy      `json:"deleteStrategy,omitempty"`
	ReportBackStrategy *ReportBackStrategy  `json:"reportBackStrategy,omitempty"`
}

// RollingUpdateConfig is a part of KubeFleet's kinds.
type RollingUpdateConfig struct {
	MaxUnavailable           *intstr.IntOrString `json:"maxUnavailable,omitempty"`
	MaxSurge                 *intstr.IntOrString `json:"maxSurge,omitempty"`
	UnavailablePeriodSeconds *int                `json:"unavailablePeriodSeconds,omitempty"`
}

// ApplyStrategy is a part of KubeFleet's kinds.
type ApplyStrategy struct {
	ComparisonOption      string                 `json:"comparisonOption,omitempty"`
	WhenToApply           string                 `json:"whenToApply,omitempty"`
	Type                  string                 `json:"type,omitempty"`
	AllowCoOwnership      bool                   `json:"allowCoOwnership,omitempty"`
	ServerSideApplyConfig *ServerSideApplyConfig `json:"serverSideApplyConfig,omitempty"`
	WhenToTakeOver        string                 `json:"whenToTakeOver,omitempty"`
}

// ServerSideApplyConfig is a part of KubeFleet's kinds.
type ServerSideApplyConfig struct {
	ForceConflicts bool `json:"force"`
}

// DeleteStrategy is a part of KubeFleet's kinds.
type DeleteStrategy struct {
	PropagationPolicy string `json:"propagationPolicy,omitempty"`
}

// ReportBackStrategy is a part of KubeFleet's kinds.
type ReportBackStrategy struct {
	Type        string  `json:"type"`
	Destination *string `json:"destination,omitempty"`
}

// PlacementStatus is a part of KubeFleet's kinds.
type PlacementStatus struct {
	SelectedResources           []ResourceIdentifier        `json:"selectedResources,omitempty"`
	ObservedResourceIndex       string                      `json:"observedResourceIndex,omitempty"`
	PerClusterPlacementStatuses []PerClusterPlacementStatus `json:"placementStatuses,omitempty"`
	Conditions                  []metav1.Condition          `json:"conditions,omitempty"`
}

// ResourceIdentifier is a part of KubeFleet's kinds.
type ResourceIdentifier struct {
	Group     string              `json:"group,omitempty"`
	Version   string              `json:"version"`
	Kind      string              `json:"kind"`
	Name      string              `json:"name"`
	Namespace string              `json:"namespace,omitempty"`
	Envelope  *EnvelopeIdentifier `json:"envelope,omitempty"`
}

// EnvelopeIdentifier is a part of KubeFleet's kinds.
type EnvelopeIdentifier struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace,omitempty"`
	Type      string `json:"type"`
}

// PerClusterPlacementStatus is a part of KubeFleet's kinds.
type PerClusterPlacementStatus struct {
	ClusterName                        string                     `json:"clusterName,omitempty"`
	ObservedResourceIndex              string                     `json:"observedResourceIndex,omitempty"`
	ApplicableResourceOverrides        []NamespacedName           `json:"applicableResourceOverrides,omitempty"`
	ApplicableClusterResourceOverrides []string                   `json:"applicableClusterResourceOverrides,omitempty"`
	FailedPlacements                   []FailedResourcePlacement  `json:"failedPlacements,omitempty"`
	DriftedPlacements                  []DriftedResourcePlacement `json:"driftedPlacements,omitempty"`
	DiffedPlacements                   []DiffedResourcePlacement  `json:"diffedPlacements,omitempty"`
	Conditions                         []metav1.Condition         `json:"conditions,omitempty"`
}

// NamespacedName is a part of KubeFleet's kinds.
type NamespacedName struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
}

// FailedResourcePlacement is a part of KubeFleet's kinds.
type FailedResourcePlacement struct {
	ResourceIdentifier `json:",inline"`
	Condition          metav1.Condition `json:"condition"`
}

// DriftedResourcePlacement is a part of KubeFleet's kinds.
type DriftedResourcePlacement struct {
	ResourceIdentifier              `json:",inline"`
	ObservationTime                 metav1.Time   `json:"observationTime"`
	TargetClusterObservedGeneration int64         `json:"targetClusterObservedGeneration"`
	FirstDriftedObservedTime        metav1.Time   `json:"firstDriftedObservedTime"`
	ObservedDrifts                  []PatchDetail `json:"observedDrifts,omitempty"`
}

// PatchDetail is a part of KubeFleet's kinds.
type PatchDetail struct {
	Path          string `json:"path"`
	ValueInMember string `json:"valueInMember,omitempty"`
	ValueInHub    string `json:"valueInHub,omitempty"`
}

// DiffedResourcePlacement is a part of KubeFleet's kinds.
type DiffedResourcePlacement struct {
	ResourceIdentifier              `json:",inline"`
	ObservationTime                 metav1.Time   `json:"observationTime"`
	TargetClusterObservedGeneration *int64        `json:"targetClusterObservedGeneration,omitempty"`
	FirstDiffedObservedTime         metav1.Time   `json:"firstDiffedObservedTime"`
	ObservedDiffs                   []PatchDetail `json:"observedDiffs,omitempty"`
}

// ResourcePlacement is a kind of KubeFleet's.
type ResourcePlacement struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              PlacementSpec   `json:"spec"`
	Status            PlacementStatus `json:"status,omitempty"`
}

// ClusterStagedUpdateStrategy is a kind of KubeFleet's.
type ClusterStagedUpdateStrategy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              UpdateStrategySpec `json:"spec"`
}

// UpdateStrategySpec is a part of KubeFleet's kinds.
type UpdateStrategySpec struct {
	Stages []StageConfig `json:"stages"`
}

// StageConfig is a part of KubeFleet's kinds.
type StageConfig struct {
	Name             string                `json:"name"`
	LabelSelector    *metav1.LabelSelector `json:"labelSelector,omitempty"`
	SortingLabelKey  *string               `json:"sortingLabelKey,omitempty"`
	MaxConcurrency   *intstr.IntOrString   `json:"maxConcurrency,omitempty"`
	AfterStageTasks  []StageTask           `json:"afterStageTasks,omitempty"`
	BeforeStageTasks []StageTask           `json:"beforeStageTasks,omitempty"`
}

// StageTask is a part of KubeFleet's kinds.
type StageTask struct {
	Type     string           `json:"type"`
	WaitTime *metav1.Duration `json:"waitTime,omitempty"`
}

// StagedUpdateStrategy is a kind of KubeFleet's.
type StagedUpdateStrategy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              UpdateStrategySpec `json:"spec"`
}

// ClusterStagedUpdateRun is a kind of KubeFleet's.
type ClusterStagedUpdateRun struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              UpdateRunSpec   `json:"spec"`
	Status            UpdateRunStatus `json:"status,omitempty"`
}

// UpdateRunSpec is a part of KubeFleet's kinds.
type UpdateRunSpec struct {
	PlacementName            string `json:"placementName"`
	ResourceSnapshotIndex    string `json:"resourceSnapshotIndex"`
	StagedUpdateStrategyName string `json:"stagedRolloutStrategyName"`
	State                    string `json:"state,omitempty"`
}

// UpdateRunStatus is a part of KubeFleet's kinds.
type UpdateRunStatus struct {
	PolicySnapshotIndexUsed    string                `json:"policySnapshotIndexUsed,omitempty"`
	PolicyObservedClusterCount int                   `json:"policyObservedClusterCount,omitempty"`
	ResourceSnapshotIndexUsed  string                `json:"resourceSnapshotIndexUsed,omitempty"`
	ApplyStrategy              *ApplyStrategy        `json:"appliedStrategy,omitempty"`
	UpdateStrategySnapshot     *UpdateStrategySpec   `json:"stagedUpdateStrategySnapshot,omitempty"`
	StagesStatus               []StageUpdatingStatus `json:"stagesStatus,omitempty"`
	DeletionStageStatus        *StageUpdatingStatus  `json:"deletionStageStatus,omitempty"`
	Conditions                 []metav1.Condition    `json:"conditions,omitempty"`
}

// StageUpdatingStatus is a part of KubeFleet's kinds.
type StageUpdatingStatus struct {
	StageName             string                  `json:"stageName"`
	Clusters              []ClusterUpdatingStatus `json:"clusters"`
	AfterStageTaskStatus  []StageTaskStatus       `json:"afterStageTaskStatus,omitempty"`
	BeforeStageTaskStatus []StageTaskStatus       `json:"beforeStageTaskStatus,omitempty"`
	StartTime             *metav1.Time            `json:"startTime,omitempty"`
	EndTime               *metav1.Time            `json:"endTime,omitempty"`
	Conditions            []metav1.Condition      `json:"conditions,omitempty"`
}

// ClusterUpdatingStatus is a part of KubeFleet's kinds.
type ClusterUpdatingStatus struct {
	ClusterName                      string             `json:"clusterName"`
	ResourceOverrideSnapshots        []NamespacedName   `json:"resourceOverrideSnapshots,omitempty"`
	ClusterResourceOverrideSnapshots []string           `json:"clusterResourceOverrideSnapshots,omitempty"`
	Conditions                       []metav1.Condition `json:"conditions,omitempty"`
}

// StageTaskStatus is a part of KubeFleet's kinds.
type StageTaskStatus struct {
	Type                string             `json:"type"`
	ApprovalRequestName string             `json:"approvalRequestName,omitempty"`
	Conditions          []metav1.Condition `json:"conditions,omitempty"`
}

// StagedUpdateRun is a kind of KubeFleet's.
type StagedUpdateRun struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              UpdateRunSpec   `json:"spec"`
	Status            UpdateRunStatus `json:"status,omitempty"`
}

// ClusterResourceOverride is a kind of KubeFleet's.
type ClusterResourceOverride struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              ClusterResourceOverrideSpec `json:"spec"`
}

// ClusterResourceOverrideSpec is a part of KubeFleet's kinds.
type ClusterResourceOverrideSpec struct {
	Placement                *PlacementRef          `json:"placement,omitempty"`
	ClusterResourceSelectors []ResourceSelectorTerm `json:"clusterResourceSelectors"`
	Policy                   *OverridePolicy        `json:"policy"`
}

// PlacementRef is a part of KubeFleet's kinds.
type PlacementRef struct {
	Name  string `json:"name"`
	Scope string `json:"scope,omitempty"`
}

// OverridePolicy is a part of KubeFleet's kinds.
type OverridePolicy struct {
	OverrideRules []OverrideRule `json:"overrideRules"`
}

// OverrideRule is a part of KubeFleet's kinds.
type OverrideRule struct {
	ClusterSelector    *ClusterSelector    `json:"clusterSelector,omitempty"`
	OverrideType       string              `json:"overrideType,omitempty"`
	JSONPatchOverrides []JSONPatchOverride `json:"jsonPatchOverrides,omitempty"`
}

// JSONPatchOverride is a part of KubeFleet's kinds.
type JSONPatchOverride struct {
	Operator string               `json:"op"`
	Path     string               `json:"path"`
	Value    apiextensionsv1.JSON `json:"value,omitempty"`
}

// ResourceOverride is a kind of KubeFleet's.
type ResourceOverride struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              ResourceOverrideSpec `json:"spec"`
}

// ResourceOverrideSpec is a part of KubeFleet's kinds.
type ResourceOverrideSpec struct {
	Placement         *PlacementRef      `json:"placement,omitempty"`
	ResourceSelectors []ResourceSelector `json:"resourceSelectors"`
	Policy            *OverridePolicy    `json:"policy"`
}

// ResourceSelector is a part of KubeFleet's kinds.
type ResourceSelector struct {
	Group   string `json:"group"`
	Version string `json:"version"`
	Kind    string `json:"kind"`
	Name    string `json:"name"`
}

// ClusterApprovalRequest is a kind of KubeFleet's.
type ClusterApprovalRequest struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              ApprovalRequestSpec   `json:"spec"`
	Status            ApprovalRequestStatus `json:"status,omitempty"`
}

// ApprovalRequestSpec is a part of KubeFleet's kinds.
type ApprovalRequestSpec struct {
	TargetUpdateRun string `json:"parentStageRollout"`
	TargetStage     string `json:"targetStage"`
}

// ApprovalRequestStatus is a part of KubeFleet's kinds.
type ApprovalRequestStatus struct {
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ApprovalRequest is a kind of KubeFleet's.
type ApprovalRequest struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              ApprovalRequestSpec   `json:"spec"`
	Status            ApprovalRequestStatus `json:"status,omitempty"`
}

// ClusterResourcePlacementDisruptionBudget is a kind of KubeFleet's.
type ClusterResourcePlacementDisruptionBudget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              PlacementDisruptionBudgetSpec `json:"spec"`
}

// PlacementDisruptionBudgetSpec is a part of KubeFleet's kinds.
type PlacementDisruptionBudgetSpec struct {
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`
	MinAvailable   *intstr.IntOrString `json:"minAvailable,omitempty"`
}

// ClusterResourcePlacementEviction is a kind of KubeFleet's.
type ClusterResourcePlacementEviction struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              PlacementEvictionSpec   `json:"spec"`
	Status            PlacementEvictionStatus `json:"status,omitempty"`
}

// PlacementEvictionSpec is a part of KubeFleet's kinds.
type PlacementEvictionSpec struct {
	PlacementName string `json:"placementName"`
	ClusterName   string `json:"clusterName"`
}

// PlacementEvictionStatus is a part of KubeFleet's kinds.
type PlacementEvictionStatus struct {
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ClusterResourceEnvelope is a kind of KubeFleet's.
type ClusterResourceEnvelope struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Data              map[string]runtime.RawExtension `json:"data"`
}

// ResourceEnvelope is a kind of KubeFleet's.
type ResourceEnvelope struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Data              map[string]runtime.RawExtension `json:"data"`
}
