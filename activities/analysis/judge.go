package analysis

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/intstr"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
)

// Sample is a number that a source has answered, with its labels.
type Sample struct {
	Labels map[string]string
	Value  float64
}

// Reading is what a source has answered.
type Reading struct {
	// Problem says why there is no answer, or none that can be read.
	Problem string
	// Answered says that a source has answered, whatever it was; Silent that it was asked, and has not.
	Answered, Silent bool
	// Samples are those of an answer of Prometheus.
	Samples []Sample
	// Observations are how many observations are behind the samples, as samples too; nil if that was not asked.
	Observations []Sample
	// Object is what was read of the hub; nil if it is not there. Objects are those of clusters.
	Object  *Object
	Objects map[string]Object
	// Baseline is the answer to the query to compare with; nil if that has no number.
	Baseline *float64
	// Response is the JSON of a webhook's answer.
	Response any
	// Decided is what a webhook or a Job has decided itself, with Message; empty if it has not.
	Decided fleetflowv1alpha1.AnalysisOutcome
	Message string
}

// Object is an object that the expressions of a metric see.
type Object struct {
	Fields     map[string]any
	Conditions map[string]string
}

// Measurement is what a reading has come to.
type Measurement struct {
	Outcome fleetflowv1alpha1.AnalysisOutcome
	// Value is the number, if there is one, and Message says more. Clusters has each cluster, with perCluster.
	Value, Message string
	Clusters       *fleetflowv1alpha1.AnalysisClusters
}

func failedToMeasure(problem string) Measurement {
	return Measurement{Outcome: fleetflowv1alpha1.OutcomeError, Message: problem}
}

// Judge judges the readings of one metric.
type Judge struct {
	metric           fleetflowv1alpha1.AnalysisMetric
	args             map[string]string
	success, failure *expression
}

// NewJudge compiles the expressions of a metric; problem says what is wrong with them.
func NewJudge(metric fleetflowv1alpha1.AnalysisRunMetric) (judge *Judge, problem string) {
	env, err := newEnvironment(metric.AnalysisMetric)
	if err != nil {
		return nil, err.Error()
	}
	judge = &Judge{metric: metric.AnalysisMetric, args: metric.Args}
	if judge.args == nil {
		judge.args = map[string]string{}
	}
	if judge.success, problem = compileExpression(env, metric.Success); problem != "" {
		return nil, problem
	}
	if judge.failure, problem = compileExpression(env, metric.Failure); problem != "" {
		return nil, problem
	}
	return judge, ""
}

// boundOf returns what has to hold of a good measurement, and must not of a bad one.
func boundOf(metric fleetflowv1alpha1.AnalysisMetric) string {
	if metric.Success == "" && metric.Failure != "" {
		return "not " + metric.Failure
	}
	return metric.Success
}

// Judge returns what a reading has come to; clusters are those of the stage.
func (j *Judge) Judge(ctx context.Context, reading Reading, clusters []string) Measurement {
	switch {
	case reading.Problem != "":
		return failedToMeasure(reading.Problem)
	case reading.Decided != "":
		return Measurement{Outcome: reading.Decided, Message: reading.Message}
	case j.comparesWithNothing(reading):
		return j.withoutData("no data to compare with")
	case j.metric.PerCluster != nil:
		return j.judgeClusters(ctx, reading, clusters)
	case j.metric.Objects != nil:
		return j.judgeObject(ctx, reading.Object)
	case j.metric.Webhook != nil:
		m := j.weigh(ctx, map[string]any{variableResponse: reading.Response})
		m.Message = cmp.Or(m.Message, reading.Message)
		return m
	}
	return j.judgeSamples(ctx, reading)
}

// comparesWithNothing reports whether the metric compares with a number which there is not.
func (j *Judge) comparesWithNothing(reading Reading) bool {
	return j.metric.Prometheus != nil && j.metric.Prometheus.BaselineQuery != "" && (reading.Baseline == nil || !isNumber(*reading.Baseline))
}

// variablesOf returns the variables of expressions that an answer of Prometheus gives.
func variablesOf(reading Reading, samples []float64) map[string]any {
	variables := map[string]any{variableSamples: samples}
	if len(samples) == 1 {
		variables[variableResult] = samples[0]
	}
	if reading.Baseline != nil {
		variables[variableBaseline] = *reading.Baseline
	}
	return variables
}

// judgeSamples judges an answer as a whole.
func (j *Judge) judgeSamples(ctx context.Context, reading Reading) Measurement {
	values := make([]float64, 0, len(reading.Samples))
	for _, s := range reading.Samples {
		if isNumber(s.Value) {
			values = append(values, s.Value)
		}
	}
	if len(values) == 0 {
		return j.withoutData(noData)
	}
	if observed := sumOf(reading.Observations); j.observesTooLittle(observed) {
		return j.withoutData(fmt.Sprintf("no data: %s observations, at least %d are wanted", formatValue(observed),
			j.metric.Prometheus.MinSamples))
	}
	m := j.weigh(ctx, variablesOf(reading, values))
	if len(values) == 1 {
		m.Value = formatValue(values[0])
	} else {
		m.Message = cmp.Or(m.Message, fmt.Sprintf("%d samples", len(values)))
	}
	if reading.Baseline != nil {
		m.Message = strings.TrimSpace(against + formatValue(*reading.Baseline) + " " + m.Message)
	}
	return m
}

// noData is the message of a measurement without any.
const noData = "no data"

// withoutData returns a measurement without data.
func (j *Judge) withoutData(message string) Measurement {
	return Measurement{Outcome: cmp.Or(j.metric.NoData, fleetflowv1alpha1.OutcomeInconclusive), Message: message}
}

// observesTooLittle reports whether so many observations are too few to say anything.
func (j *Judge) observesTooLittle(observed float64) bool {
	return j.metric.Prometheus != nil && j.metric.Prometheus.MinSamples > 0 && observed < float64(j.metric.Prometheus.MinSamples)
}

// sumOf adds up the samples that are numbers.
func sumOf(samples []Sample) (sum float64) {
	for _, s := range samples {
		if isNumber(s.Value) {
			sum += s.Value
		}
	}
	return sum
}

// judgeObject judges an object of the hub.
func (j *Judge) judgeObject(ctx context.Context, object *Object) Measurement {
	if object == nil {
		return j.withoutData("no data: the object is not there")
	}
	return j.weigh(ctx, variablesOfObject(*object))
}

func variablesOfObject(object Object) map[string]any {
	return map[string]any{variableObject: object.Fields, variableConditions: object.Conditions}
}

// weigh evaluates both expressions. Of a metric with one of them only, what it does not say is the opposite.
func (j *Judge) weigh(ctx context.Context, variables map[string]any) Measurement {
	variables[variableArgs] = j.args
	if j.failure != nil {
		switch bad, problem := j.failure.isTrue(ctx, variables); {
		case problem != "":
			return failedToMeasure(problem)
		case bad:
			return Measurement{Outcome: fleetflowv1alpha1.OutcomeFailure}
		case j.success == nil:
			return Measurement{Outcome: fleetflowv1alpha1.OutcomeSuccess}
		}
	}
	if j.success == nil {
		return Measurement{Outcome: fleetflowv1alpha1.OutcomeSuccess} // a webhook that has answered 2xx
	}
	switch good, problem := j.success.isTrue(ctx, variables); {
	case problem != "":
		return failedToMeasure(problem)
	case good:
		return Measurement{Outcome: fleetflowv1alpha1.OutcomeSuccess}
	case j.failure == nil:
		return Measurement{Outcome: fleetflowv1alpha1.OutcomeFailure}
	}
	return Measurement{Outcome: fleetflowv1alpha1.OutcomeInconclusive}
}

// maxWorst is how many clusters are named that are not good.
const maxWorst = 20

// answerOfCluster is what was measured of one cluster: what expressions see, and what is shown.
type answerOfCluster struct {
	variables map[string]any
	shown     string
}

// answersByCluster returns the answers of clusters, of those that have one; problem says why they cannot be distinguished.
func (j *Judge) answersByCluster(reading Reading, clusters []string) (by map[string]answerOfCluster, problem string) {
	by = map[string]answerOfCluster{}
	if j.metric.Objects != nil {
		for name, object := range reading.Objects {
			by[name] = answerOfCluster{variablesOfObject(object), ""}
		}
		return by, ""
	}
	label := cmp.Or(j.metric.PerCluster.Label, "cluster")
	named := map[string]bool{}
	observed := map[string]float64{}
	for _, s := range reading.Observations {
		if isNumber(s.Value) {
			observed[s.Labels[label]] += s.Value
		}
	}
	for _, s := range reading.Samples {
		name := s.Labels[label]
		if named[name] && slices.Contains(clusters, name) {
			return nil, fmt.Sprintf("the answer has two samples of cluster %s: use by (%s)", name, label)
		}
		named[name] = true
		if isNumber(s.Value) && !j.observesTooLittle(observed[name]) {
			by[name] = answerOfCluster{variablesOf(reading, []float64{s.Value}), formatValue(s.Value)}
		}
	}
	return by, ""
}

// judgeClusters judges the answer of each cluster, and then how many are good.
func (j *Judge) judgeClusters(ctx context.Context, reading Reading, clusters []string) Measurement {
	answers, problem := j.answersByCluster(reading, clusters)
	if problem != "" {
		return failedToMeasure(problem)
	}
	counts := &fleetflowv1alpha1.AnalysisClusters{}
	for _, name := range slices.Sorted(slices.Values(clusters)) {
		answer, found := answers[name]
		m := Measurement{Outcome: cmp.Or(j.metric.PerCluster.Missing, fleetflowv1alpha1.OutcomeInconclusive)}
		if found {
			answer.variables[variableCluster] = name
			m = j.weigh(ctx, answer.variables)
		} else {
			counts.Missing++
		}
		switch m.Outcome {
		case fleetflowv1alpha1.OutcomeError:
			m.Message = Shorten("cluster "+name+": "+m.Message, maxMessage)
			return m
		case fleetflowv1alpha1.OutcomeSuccess:
			counts.Passing++
			continue
		case fleetflowv1alpha1.OutcomeFailure:
			counts.Failing++
		default:
			counts.Unknown++
		}
		if len(counts.Worst) < maxWorst {
			counts.Worst = append(counts.Worst, fleetflowv1alpha1.AnalysisClusterValue{Name: name, Value: answer.shown})
		}
	}
	return j.weighClusters(counts, len(clusters))
}

// weighClusters says whether enough clusters are good. Failure is certain as soon as too many are bad, whatever the others are.
func (j *Judge) weighClusters(counts *fleetflowv1alpha1.AnalysisClusters, total int) Measurement {
	if int(counts.Missing) == total && j.decidesWithoutData() {
		m := j.withoutData(noData)
		m.Clusters = counts
		return m
	}
	m := Measurement{Outcome: fleetflowv1alpha1.OutcomeInconclusive, Clusters: counts,
		Message: fmt.Sprintf("%d of %d pass", counts.Passing, total)}
	switch needed := passingNeeded(j.metric.PerCluster.MinPassing, total); {
	case int(counts.Passing) >= needed:
		m.Outcome = fleetflowv1alpha1.OutcomeSuccess
	case total-int(counts.Failing) < needed:
		m.Outcome = fleetflowv1alpha1.OutcomeFailure
	}
	if names := worstNames(counts); names != "" && m.Outcome != fleetflowv1alpha1.OutcomeSuccess {
		m.Message = "on " + names + " (" + m.Message + ")"
	}
	return m
}

// decidesWithoutData reports whether noData decides where no cluster has an answer. Of objects, which no cluster may have for a
// good reason, the missing of each cluster does, unless the metric says noData.
func (j *Judge) decidesWithoutData() bool { return j.metric.Objects == nil || j.metric.NoData != "" }

// passingNeeded returns how many clusters have to be good: a percentage is rounded up.
func passingNeeded(minPassing *intstr.IntOrString, total int) int {
	if minPassing == nil {
		return total
	}
	needed, err := intstr.GetScaledValueFromIntOrPercent(minPassing, total, true)
	if err != nil {
		return total // admission has checked its form
	}
	return min(needed, total)
}

// namedInMessages is how many clusters a message names.
const namedInMessages = 3

func worstNames(counts *fleetflowv1alpha1.AnalysisClusters) string {
	var names []string
	for _, w := range counts.Worst {
		if len(names) == namedInMessages {
			names = append(names, "...")
			break
		}
		names = append(names, strings.TrimSpace(w.Name+" "+w.Value))
	}
	return strings.Join(names, ", ")
}

func formatValue(value float64) string { return strconv.FormatFloat(value, 'g', 6, 64) }

// against is how the message of a measurement begins that was compared with a baseline.
const against = "against "

// BaselineOf returns what a measurement was compared with.
func BaselineOf(taken fleetflowv1alpha1.AnalysisMeasurement) (baseline float64, compared bool) {
	text, compared := strings.CutPrefix(taken.Message, against)
	if !compared {
		return 0, false
	}
	text, _, _ = strings.Cut(text, " ")
	baseline, err := strconv.ParseFloat(text, 64)
	return baseline, err == nil && isNumber(baseline)
}
