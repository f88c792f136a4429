package v1alpha1

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// StageAnalysis is a template of what tasks of type Analysis measure before or after a stage: metrics, and what has to hold of
// them. Each attempt of a task works with a copy taken when it is made.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:metadata:annotations="versions=v1alpha1"
// +kubebuilder:resource:scope=Cluster,path=stageanalyses,singular=stageanalysis,shortName=stan,categories={fleet,fleet-placement}
// +kubebuilder:printcolumn:name="Metrics",type=string,JSONPath=`.spec.metrics[*].name`
// +kubebuilder:printcolumn:name="Accepted",type=string,JSONPath=`.status.conditions[?(@.type=="Accepted")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type StageAnalysis struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec says what is measured.
	// +required
	Spec StageAnalysisSpec `json:"spec"`

	// Status says whether the template can be used.
	// +optional
	Status StageAnalysisStatus `json:"status,omitempty"`
}

// StageAnalysisSpec says what is measured.
type StageAnalysisSpec struct {
	// Args are the arguments that tasks give, for $(args.NAME) in queries, paths and bodies, and args.NAME in expressions.
	// +optional
	// +kubebuilder:validation:MaxItems=20
	// +listType=map
	// +listMapKey=name
	Args []AnalysisParameter `json:"args,omitempty"`

	// Metrics are measured side by side. The analysis is as good as the worst of them.
	// +required
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=20
	// +listType=map
	// +listMapKey=name
	Metrics []AnalysisMetric `json:"metrics"`

	// AllowedNamespaces are the namespaces whose StagedUpdateRuns may be analysed by the template: the teams there choose the arguments. ClusterStagedUpdateRuns
	// may anyhow. Without it, the runs of all namespaces may; if it is empty, those of none.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=200
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	// +optional
	AllowedNamespaces []string `json:"allowedNamespaces,omitzero"`
}

// AllowsNamespace reports whether update runs of a namespace, or of the cluster, may be analysed by the template.
func (a *StageAnalysis) AllowsNamespace(namespace string) bool {
	return allowsNamespace(a.Spec.AllowedNamespaces, namespace)
}

// AnalysisParameter is an argument that a template takes.
type AnalysisParameter struct {
	// Name of the argument.
	// +required
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern="^[a-z]([a-zA-Z0-9_]*[a-zA-Z0-9])?$"
	Name string `json:"name"`

	// Default is its value where a task gives none. Without it, every task has to give one.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern="^[A-Za-z0-9._:/@ -]*$"
	Default *string `json:"default,omitempty"`
}

// AnalysisMetric is what is measured, and what has to hold of it.
//
// +kubebuilder:validation:XValidation:rule=`[has(self.prometheus), has(self.webhook), has(self.objects), has(self.job)].filter(is, is).size() == 1`,message="a metric has exactly one of prometheus, webhook, objects and job",reason=FieldValueInvalid
// +kubebuilder:validation:XValidation:rule=`has(self.success) || has(self.failure) || has(self.webhook) || has(self.job)`,message="a metric of prometheus or objects needs success or failure: an expression such as result <= 0.01",reason=FieldValueRequired,fieldPath=".success"
// +kubebuilder:validation:XValidation:rule=`!has(self.count) || self.count == 1 || has(self.interval)`,message="a count above 1 needs an interval",reason=FieldValueRequired,fieldPath=".interval"
// +kubebuilder:validation:XValidation:rule=`!has(self.count) || !has(self.interval) || duration(self.interval).getSeconds() * self.count <= 2592000`,message="count times interval must be 30 days at most",reason=FieldValueInvalid,fieldPath=".count"
// +kubebuilder:validation:XValidation:rule=`!has(self.perCluster) || has(self.prometheus) || has(self.objects) && self.objects.from == "Works"`,message="perCluster needs prometheus, whose answer has a sample for each cluster, or objects from Works",reason=FieldValueForbidden,fieldPath=".perCluster"
// +kubebuilder:validation:XValidation:rule=`!has(self.job) || !has(self.success) && !has(self.failure) && !has(self.noData)`,message="a metric of job has no success, failure and noData: the Job succeeds or fails itself",reason=FieldValueInvalid,fieldPath=".job"
// +kubebuilder:validation:XValidation:rule=`!has(self.objects) || self.objects.from != "Works" || has(self.perCluster)`,message="objects from Works need perCluster: there is an object for each cluster",reason=FieldValueRequired,fieldPath=".perCluster"
type AnalysisMetric struct {
	// Name of the metric, unique over all templates of a task.
	// +required
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern="^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
	Name string `json:"name"`

	// Prometheus measures by an instant query.
	// +optional
	Prometheus *PrometheusQuery `json:"prometheus,omitempty"`

	// Webhook measures by a POST, whose answer decides, or is judged by the expressions over response.
	// +optional
	Webhook *WebhookCall `json:"webhook,omitempty"`

	// Objects measures by looking at an object of the hub, or at one that the run's placement has put on clusters.
	// +optional
	Objects *ObjectReading `json:"objects,omitempty"`

	// Job measures by running a Job on the hub, which succeeds or fails.
	// +optional
	Job *JobRun `json:"job,omitempty"`

	// PerCluster judges the samples of an answer, or objects from Works, cluster by cluster.
	// +optional
	PerCluster *PerCluster `json:"perCluster,omitempty"`

	// Success is an expression in CEL that holds of a good measurement. Its variables are result (of an answer with one
	// sample), samples, baseline (with baselineQuery), response (the JSON of a webhook), object (with objects), conditions (the
	// status of each by its type, with objects from Works), args, and cluster (with perCluster).
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Success string `json:"success,omitempty"`

	// Failure is an expression that holds of a bad one. With both, a measurement of which neither holds is inconclusive, and
	// one of which both hold is bad.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Failure string `json:"failure,omitempty"`

	// NoData is what an answer without a sample counts as, one that is no number, and an object that is not there: Success, Failure, or
	// Inconclusive, which it is without it. Of objects from Works it decides where no cluster has the object, if it is set: without it,
	// missing of perCluster does.
	// +optional
	// +kubebuilder:validation:Enum=Inconclusive;Success;Failure
	NoData AnalysisOutcome `json:"noData,omitempty"`

	// InitialDelay is how long after the start the first measurement is taken; without it, at once.
	// +optional
	// +kubebuilder:validation:XValidation:rule=`self.matches("^([0-9]{1,5}(h|m|s|ms)){1,4}$") && duration(self) <= duration("720h")`,message="initialDelay must be 30 days at most: write it like 90s, 10m or 1h",reason=FieldValueInvalid
	InitialDelay *Duration `json:"initialDelay,omitempty"`

	// Interval is how long after one measurement the next is taken, 5s or more.
	// +optional
	// +kubebuilder:validation:XValidation:rule=`self.matches("^([0-9]{1,5}(h|m|s|ms)){1,4}$") && duration(self) >= duration("5s") && duration(self) <= duration("720h")`,message="interval must be 5s to 30 days: write it like 30s, 10m or 1h",reason=FieldValueInvalid
	Interval *Duration `json:"interval,omitempty"`

	// Count is how many measurements are taken. Errors do not count.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	Count int32 `json:"count,omitempty"`

	// FailureLimit is how many bad measurements there may be: the metric fails with one more.
	// +optional
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100000
	FailureLimit int32 `json:"failureLimit,omitempty"`

	// ConsecutiveFailureLimit is how many bad measurements in a row there may be: the metric fails with one more. Without it there is
	// no such limit.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100000
	ConsecutiveFailureLimit *int32 `json:"consecutiveFailureLimit,omitempty"`

	// InconclusiveLimit is how many inconclusive measurements there may be: with one more the metric is inconclusive.
	// +optional
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100000
	InconclusiveLimit int32 `json:"inconclusiveLimit,omitempty"`

	// ConsecutiveErrorLimit is how many times in a row measuring may not succeed: with one more the metric ends with an error.
	// +optional
	// +kubebuilder:default=4
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	ConsecutiveErrorLimit *int32 `json:"consecutiveErrorLimit,omitempty"`

	// ConsecutiveSuccessLimit is with how many good measurements in a row the metric has passed at once; 0
	// takes count measurements.
	// +optional
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100000
	ConsecutiveSuccessLimit int32 `json:"consecutiveSuccessLimit,omitempty"`

	// DryRun measures and shows the metric, which then decides nothing.
	// +optional
	DryRun bool `json:"dryRun,omitempty"`
}

// MetricSourceReference names a MetricSource.
type MetricSourceReference struct {
	// Name of the MetricSource.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`
}

// PrometheusQuery is an instant query.
//
// +kubebuilder:validation:XValidation:rule=`has(self.minSamples) == has(self.samplesQuery)`,message="minSamples and samplesQuery go together: samplesQuery counts what there have to be minSamples of, as in sum(increase(http_total[5m]))",reason=FieldValueInvalid,fieldPath=".minSamples"
type PrometheusQuery struct {
	// SourceRef names a MetricSource of type Prometheus.
	// +required
	SourceRef MetricSourceReference `json:"sourceRef"`

	// Query in PromQL. $(args.NAME), $(run), $(placement), $(stage), $(snapshot), $(clusters) and $(control) are replaced; the
	// last two are alternations of the names of the stage's clusters, as for cluster=~"$(clusters)", and of those that the run
	// has not updated yet. During a stage, $(clusters) are those of it that are being updated or have been.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	Query string `json:"query"`

	// BaselineQuery is a second query with the same variables, whose one number the expressions have as baseline: what the
	// clusters are compared with that have not changed, as in cluster=~"$(control)", which are those of the run that are not
	// updated yet. Where it has no number, such as in the last stage, the measurement is without data.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	BaselineQuery string `json:"baselineQuery,omitempty"`

	// MinSamples is how many observations there have to be behind the answer, such as requests behind a rate of errors: with
	// fewer the measurement, or with perCluster the cluster, is without data.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000000
	MinSamples int32 `json:"minSamples,omitempty"`

	// SamplesQuery is a query with the same variables that counts the observations: by cluster with perCluster, else the sum of
	// its samples counts.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	SamplesQuery string `json:"samplesQuery,omitempty"`
}

// WebhookCall is a POST to a source.
type WebhookCall struct {
	// SourceRef names a MetricSource of type Webhook.
	// +required
	SourceRef MetricSourceReference `json:"sourceRef"`

	// Path is added to the url of the source, with the variables of queries but $(clusters).
	// +optional
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern="^/[A-Za-z0-9._~/$()-]*$"
	// +kubebuilder:validation:XValidation:rule=`!self.contains("..")`,message="path must not have .. in it",reason=FieldValueInvalid
	Path string `json:"path,omitempty"`

	// Body is sent as a JSON object, with the same variables in its values.
	// +optional
	// +kubebuilder:validation:MaxProperties=20
	// +kubebuilder:validation:XValidation:rule=`self.all(k, size(k) <= 63 && size(self[k]) <= 256)`,message="the keys of body have 63 characters at most, and its values 256",reason=FieldValueInvalid
	Body map[string]string `json:"body,omitempty"`
}

// ObjectReading is an object that the expressions of a metric see. None sees Secrets, nor the kinds that hold copies of them; of an
// object from Works none sees more than metadata, spec and status.
//
// +kubebuilder:validation:XValidation:rule=`self.kind != "Secret"`,message="no metric reads a Secret: what an expression says about one tells what is in it",reason=FieldValueForbidden,fieldPath=".kind"
// +kubebuilder:validation:XValidation:rule=`!self.apiVersion.startsWith("placement.kubernetes-fleet.io/") || !["Work", "ClusterResourceSnapshot", "ResourceSnapshot", "ClusterResourceEnvelope", "ResourceEnvelope"].exists(k, k == self.kind)`,message="no metric reads what holds copies of Secrets: Works, resource snapshots and envelopes",reason=FieldValueForbidden,fieldPath=".kind"
type ObjectReading struct {
	// From is Works, for the object that the run's placement has put on each cluster of the stage, or Hub, for one of the
	// hub, of a kind that the hub agent's operator allows.
	// +required
	// +kubebuilder:validation:Enum=Works;Hub
	From ObjectsFrom `json:"from"`

	// APIVersion of the object, such as apps/v1.
	// +required
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern="^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?v[0-9]+((alpha|beta)[0-9]+)?$"
	APIVersion string `json:"apiVersion"`

	// Kind of the object.
	// +required
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern="^[A-Z][A-Za-z0-9]*$"
	Kind string `json:"kind"`

	// Namespace of the object; empty if its kind has none. It may have the variables of a path.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern="^[-a-zA-Z0-9_.$()]*$"
	Namespace string `json:"namespace,omitempty"`

	// Name of the object, which may have the variables of a path.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern="^[-a-zA-Z0-9_.:$()]+$"
	Name string `json:"name"`
}

// ObjectsFrom is where the object of a metric is.
type ObjectsFrom string

const (
	// ObjectsFromWorks are those that the run's placement has put on clusters.
	ObjectsFromWorks ObjectsFrom = "Works"
	// ObjectsFromHub are those of the hub.
	ObjectsFromHub ObjectsFrom = "Hub"
)

// GroupKind returns the kind of the object, whatever its version.
func (o *ObjectReading) GroupKind() schema.GroupKind {
	return schema.FromAPIVersionAndKind(o.APIVersion, o.Kind).GroupKind()
}

// HoldsSecrets reports whether objects of a kind are Secrets, or have copies of Secrets in them. No metric may read one.
func HoldsSecrets(kind schema.GroupKind) bool {
	switch kind.Kind {
	case "Secret":
		return true
	case "Work", "ClusterResourceSnapshot", "ResourceSnapshot", "ClusterResourceEnvelope", "ResourceEnvelope":
		return kind.Group == placementGroup
	}
	return false
}

// placementGroup is the group of placements, and of the kinds that hold copies of what is placed.
const placementGroup = "placement.kubernetes-fleet.io"

// JobRun is a Job on the hub, made of a suspended CronJob: what runs was written by a user who may run pods in its namespace, not by
// the author of the template.
type JobRun struct {
	// Namespace of the CronJob, one of those that the hub agent's operator allows.
	// +required
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern="^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
	Namespace string `json:"namespace"`

	// FromCronJob is the name of a CronJob whose spec.suspend is true, and that has the annotation fleetflow.io/analyses-may-run:
	// "true", by which its owner lets templates run it.
	// +required
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern="^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$"
	FromCronJob string `json:"fromCronJob"`

	// Timeout is how long the Job may take, before the measurement is an error.
	// +optional
	// +kubebuilder:default="15m"
	// +kubebuilder:validation:XValidation:rule=`self.matches("^([0-9]{1,5}(h|m|s|ms)){1,4}$") && duration(self) >= duration("1s") && duration(self) <= duration("24h")`,message="timeout must be 1s to 24h: write it like 15m",reason=FieldValueInvalid
	Timeout *Duration `json:"timeout,omitempty"`
}

// AnalysesMayRunAnnotation lets metrics run the Job of a CronJob on which it is "true": the owner of the CronJob decides, as it runs with
// the ServiceAccount and the Secrets of its pods.
const AnalysesMayRunAnnotation = GroupName + "/analyses-may-run"

// defaultJobTimeout is how long a Job may take that does not say.
const defaultJobTimeout = 15 * time.Minute

// EffectiveTimeout returns how long the Job may take.
func (j *JobRun) EffectiveTimeout() time.Duration {
	if j.Timeout == nil {
		return defaultJobTimeout
	}
	return j.Timeout.Duration
}

// PerCluster judges an answer cluster by cluster.
type PerCluster struct {
	// Label is that of the samples which has the name of the cluster.
	// +optional
	// +kubebuilder:default=cluster
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern="^[a-zA-Z_][a-zA-Z0-9_]*$"
	Label string `json:"label,omitempty"`

	// MinPassing is how many clusters of the stage have to be good: a number, or a percentage rounded up. The
	// measurement is bad as soon as that many cannot be good any more.
	// +optional
	// +kubebuilder:default="100%"
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern="^(100|[1-9]?[0-9])%$"
	// +kubebuilder:validation:XValidation:rule="type(self) != int || self >= 0",message="minPassing must be at least 0",reason=FieldValueInvalid
	MinPassing *intstr.IntOrString `json:"minPassing,omitempty"`

	// Missing is what a cluster without a sample, or without the object as the Work has it now, counts as: Success, Failure, or Inconclusive.
	// +optional
	// +kubebuilder:default=Inconclusive
	// +kubebuilder:validation:Enum=Inconclusive;Success;Failure
	Missing AnalysisOutcome `json:"missing,omitempty"`
}

// AnalysisOutcome is what one measurement has come to.
type AnalysisOutcome string

const (
	// OutcomeSuccess is a good measurement.
	OutcomeSuccess AnalysisOutcome = "Success"
	// OutcomeFailure is a bad one.
	OutcomeFailure AnalysisOutcome = "Failure"
	// OutcomeInconclusive is one that says neither.
	OutcomeInconclusive AnalysisOutcome = "Inconclusive"
	// OutcomeError is one that could not be taken.
	OutcomeError AnalysisOutcome = "Error"
)

// StageAnalysisStatus says whether a template can be used.
type StageAnalysisStatus struct {
	// Conditions: Accepted is False if the template cannot be used, and says why.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// StageAnalyses is what StageAnalyses are in URLs.
var StageAnalyses = schema.GroupResource{Group: GroupName, Resource: "stageanalyses"}

// Reasons of the condition Accepted of a StageAnalysis.
const (
	ReasonInvalidExpression = "InvalidExpression" // an expression is not CEL, or gives no bool
	ReasonUnknownSource     = "UnknownSource"     // there is no such MetricSource, it is of another type, or does not allow the template
	ReasonObjectRefused     = "ObjectRefused"     // a metric would read an object of the hub, or run a Job, that none may
	ReasonUnknownArgument   = "UnknownArgument"   // something names an argument or a variable that there is not
)

// IsOver reports whether a phase of an analysis, or of a metric of one, is final.
func (p AnalysisPhase) IsOver() bool {
	return p != "" && p != AnalysisPending && p != AnalysisRunning
}
