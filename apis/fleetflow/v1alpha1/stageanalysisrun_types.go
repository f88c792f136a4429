package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// ClusterStageAnalysisRun is what a task of type Analysis of a ClusterStagedUpdateRun measures, and has measured. The hub agent makes it
// when the run is initialized, and deletes it with the run, which owns it. Its name is that of the run, the stage and the side, as in
// web-17-canary-after.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:metadata:annotations="versions=v1alpha1"
// +kubebuilder:resource:scope=Cluster,shortName=cstar,categories={fleet,fleet-placement}
// +kubebuilder:selectablefield:JSONPath=`.spec.runRef.name`
// +kubebuilder:selectablefield:JSONPath=`.spec.stage`
// +kubebuilder:printcolumn:name="Run",type=string,JSONPath=`.spec.runRef.name`
// +kubebuilder:printcolumn:name="Stage",type=string,JSONPath=`.spec.stage`
// +kubebuilder:printcolumn:name="Attempt",type=integer,JSONPath=`.spec.attempt`
// +kubebuilder:printcolumn:name="Succeeded",type=string,JSONPath=`.status.conditions[?(@.type=="Succeeded")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Succeeded")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Succeeded")].message`
type ClusterStageAnalysisRun struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is what is measured: templates and arguments, put together.
	// +required
	Spec StageAnalysisRunSpec `json:"spec"`

	// Status is what has been measured.
	// +optional
	Status StageAnalysisRunStatus `json:"status,omitempty"`
}

// StageAnalysisRun is what a task of type Analysis of a StagedUpdateRun measures, and has measured. It is in the namespace of the run,
// which owns it. The hub agent makes it when the run is initialized, and deletes it with the run. Its name is that of the run, the stage
// and the side, as in web-17-canary-after.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:metadata:annotations="versions=v1alpha1"
// +kubebuilder:resource:scope=Namespaced,shortName=star,categories={fleet,fleet-placement}
// +kubebuilder:selectablefield:JSONPath=`.spec.runRef.name`
// +kubebuilder:selectablefield:JSONPath=`.spec.stage`
// +kubebuilder:printcolumn:name="Run",type=string,JSONPath=`.spec.runRef.name`
// +kubebuilder:printcolumn:name="Stage",type=string,JSONPath=`.spec.stage`
// +kubebuilder:printcolumn:name="Attempt",type=integer,JSONPath=`.spec.attempt`
// +kubebuilder:printcolumn:name="Succeeded",type=string,JSONPath=`.status.conditions[?(@.type=="Succeeded")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Succeeded")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Succeeded")].message`
type StageAnalysisRun struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is what is measured: templates and arguments, put together.
	// +required
	Spec StageAnalysisRunSpec `json:"spec"`

	// Status is what has been measured.
	// +optional
	Status StageAnalysisRunStatus `json:"status,omitempty"`
}

// StageAnalysisRunSpec is what is measured.
type StageAnalysisRunSpec struct {
	// RunRef is the update run: a ClusterStagedUpdateRun, or a StagedUpdateRun of the namespace.
	// +required
	RunRef UpdateRunReference `json:"runRef"`

	// Stage of the run.
	// +required
	Stage string `json:"stage"`

	// Position is Before, During or After the stage.
	// +required
	// +kubebuilder:validation:Enum=Before;During;After
	Position string `json:"position"`

	// Attempt is 1, and one more each time that the run is resumed after an analysis that has not passed.
	// +required
	// +kubebuilder:validation:Minimum=1
	Attempt int32 `json:"attempt"`

	// Templates are where the metrics are from.
	// +listType=atomic
	// +optional
	Templates []AnalysisTemplateUsed `json:"templates,omitempty"`

	// DryRun says that the analysis passes, whatever is measured.
	// +optional
	DryRun bool `json:"dryRun,omitempty"`

	// Metrics are those of the templates, with the arguments filled in.
	// +kubebuilder:validation:MaxItems=20
	// +listType=atomic
	// +optional
	Metrics []AnalysisRunMetric `json:"metrics,omitempty"`
}

// Where a task of type Analysis stands.
const (
	PositionBefore = "Before"
	PositionDuring = "During"
	PositionAfter  = "After"
)

// UpdateRunReference is an update run, of the kind that the twin belongs to.
type UpdateRunReference struct {
	// Name of the run.
	// +required
	Name string `json:"name"`

	// UID of the run: another run of the name is not taken for it.
	// +required
	UID types.UID `json:"uid"`
}

// AnalysisTemplateUsed is a StageAnalysis of which an attempt has a copy.
type AnalysisTemplateUsed struct {
	// Name of the StageAnalysis.
	// +required
	Name string `json:"name"`

	// Generation of its spec.
	// +optional
	Generation int64 `json:"generation,omitempty"`
}

// AnalysisRunMetric is a metric with the arguments of its template.
type AnalysisRunMetric struct {
	AnalysisMetric `json:",inline"`

	// Args are the values of the template's arguments.
	// +optional
	Args map[string]string `json:"args,omitempty"`
}

// AnalysisPhase is how far an analysis is, or a metric of one.
type AnalysisPhase string

const (
	// AnalysisPending has not begun.
	AnalysisPending AnalysisPhase = "Pending"
	// AnalysisRunning measures.
	AnalysisRunning AnalysisPhase = "Running"
	// AnalysisSucceeded has passed.
	AnalysisSucceeded AnalysisPhase = "Succeeded"
	// AnalysisFailed has measured too much that is bad.
	AnalysisFailed AnalysisPhase = "Failed"
	// AnalysisInconclusive has measured too much that says neither.
	AnalysisInconclusive AnalysisPhase = "Inconclusive"
	// AnalysisError could not measure.
	AnalysisError AnalysisPhase = "Error"
	// AnalysisWaived lets the stage pass by a RolloutExemption, whatever is measured.
	AnalysisWaived AnalysisPhase = "Waived"
	// AnalysisStopped has not ended before its run has: nothing measures any more.
	AnalysisStopped AnalysisPhase = "Stopped"
)

// StageAnalysisRunStatus is what has been measured.
type StageAnalysisRunStatus struct {
	// Conditions: Succeeded is Unknown, with the reason Running, while the attempt is measured. It is True with the reason Succeeded,
	// or Waived by a RolloutExemption. It is False with the reason Failed, Inconclusive, Error, or Stopped because the update run has
	// ended first. Its message says what was measured, against which bounds.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +patchStrategy=merge
	// +patchMergeKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type"`

	// ObservedAttempt is the attempt that the status is about.
	// +optional
	ObservedAttempt int32 `json:"observedAttempt,omitempty"`

	// StartTime is when the attempt began.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`

	// EndTime is when it ended.
	// +optional
	EndTime *metav1.Time `json:"endTime,omitempty"`

	// NextMeasurementTime is when the next measurement is due.
	// +optional
	NextMeasurementTime *metav1.MicroTime `json:"nextMeasurementTime,omitempty"`

	// Metrics are those of the spec, in its order.
	// +optional
	// +listType=map
	// +listMapKey=name
	Metrics []AnalysisMetricStatus `json:"metrics,omitempty"`
}

// AnalysisMetricStatus is what has been measured of one metric. The counts decide, not the list of the last measurements.
type AnalysisMetricStatus struct {
	// Name of the metric.
	// +required
	Name string `json:"name"`

	// State of the metric. One that is over stays as it is.
	// +optional
	Phase AnalysisPhase `json:"phase,omitempty"`

	// Measured is how many measurements were taken: good, bad and inconclusive ones.
	// +optional
	Measured int32 `json:"measured"`

	// Succeeded is how many were good.
	// +optional
	Succeeded int32 `json:"succeeded"`

	// Failed is how many were bad.
	// +optional
	Failed int32 `json:"failed"`

	// Inconclusive is how many said neither.
	// +optional
	Inconclusive int32 `json:"inconclusive"`

	// Errors is how many could not be taken.
	// +optional
	Errors int32 `json:"errors"`

	// ConsecutiveSuccesses is how many of the newest were good, one after the other.
	// +optional
	ConsecutiveSuccesses int32 `json:"consecutiveSuccesses,omitempty"`

	// ConsecutiveFailures is how many of the newest were bad, one after the other.
	// +optional
	ConsecutiveFailures int32 `json:"consecutiveFailures,omitempty"`

	// ConsecutiveErrors is how many of the newest could not be taken, one after the other.
	// +optional
	ConsecutiveErrors int32 `json:"consecutiveErrors,omitempty"`

	// LastMeasurementTime is when the newest was taken, or tried.
	// +optional
	LastMeasurementTime *metav1.MicroTime `json:"lastMeasurementTime,omitempty"`

	// NextMeasurementTime is when the next one is due.
	// +optional
	NextMeasurementTime *metav1.MicroTime `json:"nextMeasurementTime,omitempty"`

	// Query is the beginning of what was asked, with all variables replaced.
	// +optional
	Query string `json:"query,omitempty"`

	// QueryHash is the beginning of the SHA-256 of all of it, in hexadecimal.
	// +optional
	QueryHash string `json:"queryHash,omitempty"`

	// Clusters says how the clusters are of which the newest measurement with perCluster was taken.
	// +optional
	Clusters *AnalysisClusters `json:"clusters,omitempty"`

	// Last are the newest measurements, the newest first.
	// +listType=atomic
	// +optional
	Last []AnalysisMeasurement `json:"last,omitempty"`
}

// AnalysisClusters says how the clusters of a measurement are.
type AnalysisClusters struct {
	// Passing is how many are good.
	// +optional
	Passing int32 `json:"passing"`

	// Failing is how many are bad.
	// +optional
	Failing int32 `json:"failing"`

	// Unknown is how many are neither.
	// +optional
	Unknown int32 `json:"unknown,omitempty"`

	// Missing is how many have no sample.
	// +optional
	Missing int32 `json:"missing"`

	// Worst are the first of those that are not good, by name.
	// +listType=atomic
	// +optional
	Worst []AnalysisClusterValue `json:"worst,omitempty"`
}

// AnalysisClusterValue is what was measured of a cluster.
type AnalysisClusterValue struct {
	// Name of the cluster.
	// +required
	Name string `json:"name"`

	// Value of its sample; empty if it has none.
	// +optional
	Value string `json:"value,omitempty"`
}

// AnalysisMeasurement is one measurement.
type AnalysisMeasurement struct {
	// At is when it was taken.
	// +required
	At metav1.MicroTime `json:"at"`

	// Outcome is what it has come to.
	// +required
	Outcome AnalysisOutcome `json:"outcome"`

	// Value is what was measured, if that is one number.
	// +optional
	Value string `json:"value,omitempty"`

	// Message says more.
	// +optional
	Message string `json:"message,omitempty"`
}
