package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// ClusterStagedUpdateStrategy divides clusters into stages that are updated one after the
// other. Any number of runs can use it; each works with a copy taken when it starts.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +fleetflow:versions=v1,v1beta1,v1alpha1
// +kubebuilder:resource:scope=Cluster,shortName=csus,categories={fleet,fleet-placement}
// +kubebuilder:printcolumn:name="Stages",type=string,priority=1,JSONPath=`.spec.stages[*].name`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ClusterStagedUpdateStrategy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec has the stages.
	// +kubebuilder:validation:Required
	Spec UpdateStrategySpec `json:"spec"`
}

// UpdateStrategySpec has the stages of an update, in their order.
type UpdateStrategySpec struct {
	// Stages are updated one after the other. Every picked cluster has to be in exactly one.
	// +kubebuilder:validation:Required
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=31
	// +kubebuilder:validation:XValidation:rule=`self.all(s, self.exists_one(t, t.name == s.name))`,message="the names of stages must be unique: rename the repeated stage"
	Stages []StageConfig `json:"stages"`
}

// StageConfig is one stage: which clusters, how many at a time, and what has to happen
// before and after.
type StageConfig struct {
	// Name of the stage, unique within the strategy.
	// +kubebuilder:validation:Required
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern="^[a-z0-9]+$"
	Name string `json:"name"`

	// LabelSelector picks the clusters of the stage among those the placement picked.
	// Without one, the stage has all of them.
	// +optional
	LabelSelector *metav1.LabelSelector `json:"labelSelector,omitempty"`

	// SortingLabelKey is a cluster label with a whole number; clusters with lower numbers
	// are updated first. Without it, and among equal numbers, the order is by name.
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:XValidation:rule=`self == "" || self.matches("^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$")`,message="sortingLabelKey must be the key of a cluster label"
	// +optional
	SortingLabelKey *string `json:"sortingLabelKey,omitempty"`

	// MaxConcurrency is how many clusters are updated at the same time: a number, or a
	// percentage of the stage's clusters rounded down, at least one.
	// +kubebuilder:default=1
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern="^(100|[1-9][0-9]?)%$"
	// +kubebuilder:validation:XValidation:rule="type(self) != int || self >= 1",message="maxConcurrency must be at least 1"
	// +optional
	MaxConcurrency *intstr.IntOrString `json:"maxConcurrency,omitempty"`

	// AfterStageTasks all have to be done, once the clusters are updated, before the next
	// stage starts: at most one TimedWait and one Approval.
	// +kubebuilder:validation:MaxItems=2
	// +kubebuilder:validation:XValidation:rule="self.all(t, t.type != 'Approval' || !has(t.waitTime) || t.waitTime in ['0', '0s'])",message="AfterStageTaskType is Approval, waitTime is not allowed: remove waitTime, or set type to TimedWait"
	// +kubebuilder:validation:XValidation:rule="self.all(t, t.type != 'TimedWait' || has(t.waitTime))",message="AfterStageTaskType is TimedWait, waitTime is required: add waitTime, for example 1h"
	// +kubebuilder:validation:XValidation:rule="size(self) < 2 || self[0].type != self[1].type",message="afterStageTasks can have at most one task of each type: remove one, or give the other type"
	// +optional
	AfterStageTasks []StageTask `json:"afterStageTasks,omitempty"`

	// BeforeStageTasks have to be done before the stage starts: at most one Approval.
	// +kubebuilder:validation:MaxItems=1
	// +kubebuilder:validation:XValidation:rule="self.all(t, t.type != 'TimedWait')",message="BeforeStageTaskType cannot be TimedWait: use type Approval, or a TimedWait after the stage before"
	// +kubebuilder:validation:XValidation:rule="self.all(t, t.type != 'Approval' || !has(t.waitTime) || t.waitTime in ['0', '0s'])",message="BeforeStageTaskType is Approval, waitTime is not allowed: remove waitTime"
	// +optional
	BeforeStageTasks []StageTask `json:"beforeStageTasks,omitempty"`
}

// StageTaskType says what a run waits for before or after a stage.
type StageTaskType string

const (
	// StageTaskTypeTimedWait waits for an amount of time.
	StageTaskTypeTimedWait StageTaskType = "TimedWait"
	// StageTaskTypeApproval waits until somebody approves.
	StageTaskTypeApproval StageTaskType = "Approval"
)

// StageTask is something a run waits for before or after a stage.
type StageTask struct {
	// Type is TimedWait to wait for an amount of time, Approval to wait until somebody
	// approves.
	// +kubebuilder:validation:Enum=TimedWait;Approval
	// +kubebuilder:validation:Required
	Type StageTaskType `json:"type"`

	// WaitTime is how long a TimedWait takes, such as 30s, 15m or 1h30m, counted from when
	// the last cluster of the stage is updated. An Approval has none; 0s counts as none.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule=`self.matches("^(0|([0-9]+([.][0-9]+)?(ms|s|m|h))+)$") && (duration(self) == duration("0s") || duration(self) >= duration("1ms"))`,message="waitTime must be 0, or 1ms to 292 years: write it like 30s, 15m or 1h30m"
	// +optional
	WaitTime *metav1.Duration `json:"waitTime,omitempty"`
}

// ClusterStagedUpdateStrategyList is a list of ClusterStagedUpdateStrategy.
//
// +kubebuilder:object:root=true
type ClusterStagedUpdateStrategyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	// Items are the strategies listed.
	Items []ClusterStagedUpdateStrategy `json:"items"`
}

// StagedUpdateStrategy divides clusters into stages that are updated one after the other.
// Any number of runs in its namespace can use it; each works with a copy taken when it starts.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +fleetflow:versions=v1,v1beta1
// +kubebuilder:resource:scope=Namespaced,shortName=sus,categories={fleet,fleet-placement}
// +kubebuilder:printcolumn:name="Stages",type=string,priority=1,JSONPath=`.spec.stages[*].name`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type StagedUpdateStrategy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec has the stages.
	// +kubebuilder:validation:Required
	Spec UpdateStrategySpec `json:"spec"`
}

// StagedUpdateStrategyList is a list of StagedUpdateStrategy.
//
// +kubebuilder:object:root=true
type StagedUpdateStrategyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	// Items are the strategies listed.
	Items []StagedUpdateStrategy `json:"items"`
}
