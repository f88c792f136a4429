package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// StageAnalysisRun is what a task of type Analysis of an update run measures, and has measured. The hub agent makes it when the
// run is initialized, and deletes it with the run. Its name is that of the run, the stage and the side, as in web-17-canary-after;
// before the name of a StagedUpdateRun there are its namespace and a dot.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:metadata:annotations="versions=v1alpha1"
// +kubebuilder:resource:scope=Cluster,shortName=star,categories={fleet,fleet-placement}
// +kubebuilder:printcolumn:name="Run",type=string,JSONPath=`.spec.run`
// +kubebuilder:printcolumn:name="Stage",type=string,JSONPath=`.spec.stage`
// +kubebuilder:printcolumn:name="Attempt",type=integer,JSONPath=`.spec.attempt`
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.message`
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
	// Run is the update run, in Namespace if it is a StagedUpdateRun.
	// +required
	Run string `json:"run"`

	// Namespace of the run.
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// Stage of the run.
	// +required
	Stage string `json:"stage"`

	// Position is before, during or after the stage.
	// +required
	// +kubebuilder:validation:Enum=before;during;after
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
	PositionBefore = "before"
	PositionDuring = "during"
	PositionAfter  = "after"
)

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
	// Attempt is the one that the rest is about.
	// +optional
	Attempt int32 `json:"attempt,omitempty"`

	// State of the analysis: Pending, Running, and in the end Succeeded, Failed, Inconclusive, Error, Waived by a
	// RolloutExemption, or Stopped because its run has ended first.
	// +optional
	// +kubebuilder:validation:Enum=Pending;Running;Succeeded;Failed;Inconclusive;Error;Waived;Stopped
	Phase AnalysisPhase `json:"phase,omitempty"`

	// StartedAt is when the attempt began.
	// +optional
	StartedAt *metav1.Time `json:"startedAt,omitempty"`

	// FinishedAt is when it ended.
	// +optional
	FinishedAt *metav1.Time `json:"finishedAt,omitempty"`

	// Message says in a sentence what was measured, against which bounds.
	// +optional
	Message string `json:"message,omitempty"`

	// NextAt is when the next measurement is due.
	// +optional
	NextAt *metav1.MicroTime `json:"nextAt,omitempty"`

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

	// LastAt is when the newest was taken, or tried.
	// +optional
	LastAt *metav1.MicroTime `json:"lastAt,omitempty"`

	// NextAt is when the next one is due.
	// +optional
	NextAt *metav1.MicroTime `json:"nextAt,omitempty"`

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

// StageAnalysisRuns is what StageAnalysisRuns are in URLs.
var StageAnalysisRuns = schema.GroupResource{Group: GroupName, Resource: "stageanalysisruns"}

// Labels of a StageAnalysisRun: the name of its update run, and the namespace of that, if it has one.
const (
	AnalysisRunLabel       = GroupName + "/update-run"
	AnalysisNamespaceLabel = GroupName + "/update-run-namespace"
)

// ofNamespace ends the names of the StageAnalysisRuns of runs in namespaces. Those of other runs end with a position.
const ofNamespace = ".namespaced"

// AnalysisRunName is the name of the StageAnalysisRun of a side of a stage of an update run. No two have one name: a position and a
// stage have no dash, and a namespace has no dot, so that the name is read from its end in one way only.
func AnalysisRunName(namespace, run, stage, position string) string {
	name := run + "-" + stage + "-" + position
	if namespace != "" {
		name += "." + namespace + ofNamespace
	}
	return name
}

// IsAbout says whether the StageAnalysisRun is that of a side of a stage of an update run by its name: of this run, or of an earlier
// one that had the name.
func (r *StageAnalysisRun) IsAbout(namespace, run, stage, position string) bool {
	return r.Spec.Namespace == namespace && r.Spec.Run == run && r.Spec.Stage == stage && r.Spec.Position == position
}

// PhaseOfAttempt is how far the newest attempt is: one of which the status does not know yet has not begun.
func (r *StageAnalysisRun) PhaseOfAttempt() AnalysisPhase {
	if r.Status.Attempt != r.Spec.Attempt || r.Status.Phase == "" {
		return AnalysisPending
	}
	return r.Status.Phase
}
