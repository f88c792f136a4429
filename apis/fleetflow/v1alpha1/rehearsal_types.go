package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ClusterRehearsal asks the member clusters of a ClusterResourcePlacement what a revision of it would do there, before anything
// changes. Its status has the outcomes. Users who may create a ClusterStagedUpdateRun may create it.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:metadata:annotations="versions=v1alpha1"
// +kubebuilder:resource:scope=Cluster,shortName=creh,categories={fleet,fleet-placement}
// +kubebuilder:selectablefield:JSONPath=`.spec.placementName`
// +kubebuilder:printcolumn:name="Placement",type=string,JSONPath=`.spec.placementName`
// +kubebuilder:printcolumn:name="Revision",type=string,JSONPath=`.status.resourceSnapshotIndex`
// +kubebuilder:printcolumn:name="Clusters",type=integer,JSONPath=`.status.clusterCount`
// +kubebuilder:printcolumn:name="Answered",type=integer,JSONPath=`.status.answered`
// +kubebuilder:printcolumn:name="Refused",type=integer,JSONPath=`.status.clusters.refused`
// +kubebuilder:printcolumn:name="Unknown",type=integer,JSONPath=`.status.clusters.unknown`
// +kubebuilder:printcolumn:name="Completed",type=string,JSONPath=`.status.conditions[?(@.type=="Completed")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Completed")].message`
type ClusterRehearsal struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is what is asked, and of which clusters. It cannot be changed.
	// +required
	// +kubebuilder:validation:XValidation:rule=`self == oldSelf`,message="a rehearsal cannot be changed: create another",reason=FieldValueForbidden
	Spec RehearsalSpec `json:"spec"`

	// Status is what the clusters have answered.
	// +optional
	Status RehearsalStatus `json:"status,omitempty"`
}

// Rehearsal asks the member clusters of a ResourcePlacement of its namespace what a revision of it would do there, before anything
// changes. Its status has the outcomes. Users who may create a StagedUpdateRun in the namespace may create it.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:metadata:annotations="versions=v1alpha1"
// +kubebuilder:resource:scope=Namespaced,shortName=reh,categories={fleet,fleet-placement}
// +kubebuilder:selectablefield:JSONPath=`.spec.placementName`
// +kubebuilder:printcolumn:name="Placement",type=string,JSONPath=`.spec.placementName`
// +kubebuilder:printcolumn:name="Revision",type=string,JSONPath=`.status.resourceSnapshotIndex`
// +kubebuilder:printcolumn:name="Clusters",type=integer,JSONPath=`.status.clusterCount`
// +kubebuilder:printcolumn:name="Answered",type=integer,JSONPath=`.status.answered`
// +kubebuilder:printcolumn:name="Refused",type=integer,JSONPath=`.status.clusters.refused`
// +kubebuilder:printcolumn:name="Unknown",type=integer,JSONPath=`.status.clusters.unknown`
// +kubebuilder:printcolumn:name="Completed",type=string,JSONPath=`.status.conditions[?(@.type=="Completed")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Completed")].message`
type Rehearsal struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is what is asked, and of which clusters. It cannot be changed.
	// +required
	// +kubebuilder:validation:XValidation:rule=`self == oldSelf`,message="a rehearsal cannot be changed: create another",reason=FieldValueForbidden
	Spec RehearsalSpec `json:"spec"`

	// Status is what the clusters have answered.
	// +optional
	Status RehearsalStatus `json:"status,omitempty"`
}

// RehearsalSpec is what is asked, and of which clusters.
//
// +kubebuilder:validation:XValidation:rule=`!has(self.updateRunName) || self.updateRunName == "" || !has(self.resourceSnapshotIndex) || self.resourceSnapshotIndex == ""`,message="the revision is that of the update run: leave resourceSnapshotIndex out",reason=FieldValueInvalid,fieldPath=".resourceSnapshotIndex"
// +kubebuilder:validation:XValidation:rule=`has(self.pullImages) || !has(self.timeout) || !self.timeout.matches("^(([0-9]|[1-9][0-9]*)([.][0-9]+)?(ms|s|m|h))+$") || duration(self.timeout) <= duration("30m")`,message="timeout must be 1s to 30m without pullImages: write it like 30s or 5m",reason=FieldValueInvalid,fieldPath=".timeout"
type RehearsalSpec struct {
	// PlacementName is the ClusterResourcePlacement, or the ResourcePlacement of the namespace.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	PlacementName string `json:"placementName"`

	// ResourceSnapshotIndex is the revision that is rehearsed. Without it, that is the latest one.
	// +optional
	// +kubebuilder:validation:MaxLength=20
	// +kubebuilder:validation:Pattern=`^[0-9]*$`
	ResourceSnapshotIndex string `json:"resourceSnapshotIndex,omitempty"`

	// UpdateRunName is the update run of the placement of which is asked what it would write: its revision with the overrides and the
	// applyStrategy that it has frozen. Without it, that are the overrides that are in force.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	UpdateRunName string `json:"updateRunName,omitempty"`

	// Clusters that are asked. Without them, those are all that the placement has picked.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=10000
	// +kubebuilder:validation:items:MaxLength=63
	Clusters []string `json:"clusters,omitempty"`

	// PullImages has the clusters pull the images of the Pods that the revision would start, in place of being asked what it would do.
	// The outcome of a cluster is refused if a registry has refused an image, unknown if it is not known to have all, else pulled.
	// +optional
	PullImages *ImagePull `json:"pullImages,omitempty"`

	// Timeout is how long answers are waited for, such as 30s or 5m: a cluster that has not answered by then is unknown. It is at most
	// 30m, and with pullImages 2h.
	// +optional
	// +kubebuilder:default="1m"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule=`self.matches("^(([0-9]|[1-9][0-9]*)([.][0-9]+)?(ms|s|m|h))+$") && duration(self) >= duration("1s") && duration(self) <= duration("2h")`,message="timeout must be 1s to 30m, with pullImages 1s to 2h: write it like 30s or 5m",reason=FieldValueInvalid
	Timeout *metav1.Duration `json:"timeout,omitempty"`
}

// ImagePull says how images are pulled.
type ImagePull struct {
	// ClustersAtOnce is how many clusters pull at the same time.
	// +optional
	// +kubebuilder:default=10
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	ClustersAtOnce int32 `json:"clustersAtOnce,omitempty"`
}

// RehearsalStatus is what the clusters have answered.
type RehearsalStatus struct {
	// Conditions: Completed is False with the reason AskingClusters while the hub agent asks, and WaitingForAnswers while clusters are
	// waited for. It is True with the reason AllAnswered, or SomeUnknown if what happens on a cluster is not known. It is False with the
	// reason Invalid if there is nothing to ask: its message says what is missing.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +patchStrategy=merge
	// +patchMergeKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type"`

	// ResourceSnapshotIndex is the revision that the clusters are asked about.
	// +optional
	ResourceSnapshotIndex string `json:"resourceSnapshotIndex,omitempty"`

	// StartTime is when the clusters were asked.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`

	// CompletionTime is when the last has answered, or when the time was over.
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`

	// ClusterCount is how many clusters are asked.
	// +optional
	ClusterCount int32 `json:"clusterCount"`

	// Answered is how many of them have answered.
	// +optional
	Answered int32 `json:"answered"`

	// Clusters say how many clusters have each outcome: that of a cluster is the one of its objects that matters most, in the order
	// refused, conflicts, unknown, removes, creates, changes, same, pulled.
	// +optional
	Clusters RehearsalCounts `json:"clusters,omitempty"`

	// Groups are the outcomes that are alike on several clusters, what matters most first.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	Groups []RehearsalGroup `json:"groups,omitempty"`

	// OmittedGroups is how many groups there is no room for.
	// +optional
	OmittedGroups int32 `json:"omittedGroups,omitempty"`

	// Findings are what the hub knows of clusters without asking them.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	Findings []RehearsalFinding `json:"findings,omitempty"`

	// Digest is the SHA-256 of the answers of all clusters, in hexadecimal: with it, an approval can be bound to what was found.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Digest string `json:"digest,omitempty"`
}

// RehearsalGroup is an outcome that an object has on some of the clusters.
type RehearsalGroup struct {
	// Outcome of the object: refused, conflicts, unknown, removes, creates, changes, same or pulled. Objects that stay the same are one
	// group, and so are images that were pulled.
	// +required
	Outcome RehearsalOutcome `json:"outcome"`

	// Object as kind namespace/name; empty if the group is about clusters as a whole, such as those that have not answered.
	// +optional
	Object string `json:"object,omitempty"`

	// By names who refuses, who has it, or who has the field.
	// +optional
	By string `json:"by,omitempty"`

	// Message says why.
	// +optional
	Message string `json:"message,omitempty"`

	// Fields that would change, as JSON pointers.
	// +optional
	// +listType=atomic
	Fields []string `json:"fields,omitempty"`

	// ClusterCount is how many clusters are in the group.
	// +required
	ClusterCount int32 `json:"clusterCount"`

	// Clusters are the first ten of them by name.
	// +optional
	// +listType=atomic
	Clusters []string `json:"clusters,omitempty"`
}

// RehearsalFinding is what the hub knows of clusters without asking them.
type RehearsalFinding struct {
	// Outcome is refused if an update could not be written for the clusters, and unknown if they cannot be asked.
	// +required
	Outcome RehearsalOutcome `json:"outcome"`

	// Message says why.
	// +optional
	Message string `json:"message,omitempty"`

	// NotAsked says that the clusters are asked nothing.
	// +optional
	NotAsked bool `json:"notAsked,omitempty"`

	// Clusters of which it is known.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10000
	Clusters []string `json:"clusters,omitempty"`
}

// ConditionTypeCompleted is the condition of a rehearsal that says whether all clusters have answered, or their time is over.
const ConditionTypeCompleted = "Completed"

// Reasons of the condition Completed.
const (
	ReasonRehearsalAsking      = "AskingClusters"    // clusters are being asked
	ReasonRehearsalWaiting     = "WaitingForAnswers" // clusters have time to answer
	ReasonRehearsalAllAnswered = "AllAnswered"       // every cluster has answered
	ReasonRehearsalSomeUnknown = "SomeUnknown"       // a cluster has not answered in time, or cannot
	ReasonRehearsalInvalid     = "Invalid"           // the placement, the revision or a cluster is not there
)
