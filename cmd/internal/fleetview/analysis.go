package fleetview

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/fleetflow/fleetflow/activities/analysis"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
)

// Analysis is an analysis as it is printed.
type Analysis struct {
	Run     string     `json:"run"`
	Stage   string     `json:"stage"`
	When    string     `json:"when"`
	Attempt int32      `json:"attempt"`
	State   string     `json:"state"`
	DryRun  bool       `json:"dryRun,omitempty"`
	Message string     `json:"message,omitempty"`
	Metrics []Measured `json:"metrics"`
}

// Measured is a metric as it is printed; counts are shown with how many there may be.
type Measured struct {
	Name         string `json:"name"`
	State        string `json:"state"`
	Value        string `json:"value,omitempty"`
	Wanted       string `json:"wanted,omitempty"`
	Measured     string `json:"measured"`
	Bad          string `json:"bad"`
	Inconclusive string `json:"inconclusive"`
	Errors       string `json:"errors"`
	Query        string `json:"query,omitempty"`
}

// AnalysisOf sums an analysis up.
func AnalysisOf(run fleetflowv1alpha1.StageAnalysisRunObject) Analysis {
	spec := run.GetStageAnalysisRunSpec()
	status := run.GetStageAnalysisRunStatus()
	name := spec.RunRef.Name
	if run.GetNamespace() != "" {
		name = run.GetNamespace() + "/" + name
	}
	phase := fleetflowv1alpha1.PhaseOfAttempt(run)
	v := Analysis{Run: name, Stage: spec.Stage, When: strings.ToLower(spec.Position), Attempt: spec.Attempt, State: string(phase),
		DryRun: spec.DryRun}
	if phase == fleetflowv1alpha1.AnalysisPending { // what the status has is of the attempt before
		*status = fleetflowv1alpha1.StageAnalysisRunStatus{}
	}
	v.Message = fleetflowv1alpha1.MessageOfAttempt(run)
	for i := range spec.Metrics {
		metric := spec.Metrics[i]
		counted := fleetflowv1alpha1.AnalysisMetricStatus{Phase: fleetflowv1alpha1.AnalysisPending}
		if phase == fleetflowv1alpha1.AnalysisStopped {
			counted.Phase = phase
		}
		if i < len(status.Metrics) {
			counted = status.Metrics[i]
		}
		view := measuredOf(metric, counted)
		if spec.Position == fleetflowv1alpha1.PositionDuring {
			view.Measured = strconv.Itoa(int(counted.Measured)) // until the stage is updated
		}
		v.Metrics = append(v.Metrics, view)
	}
	return v
}

func measuredOf(metric fleetflowv1alpha1.AnalysisRunMetric, counted fleetflowv1alpha1.AnalysisMetricStatus) Measured {
	view := Measured{
		Name: metric.Name, State: string(counted.Phase), Wanted: analysis.FilledBound(metric), Query: counted.Query,
		Measured: fmt.Sprintf("%d of %d", counted.Measured, max(metric.Count, 1)), Bad: ofLimit(counted.Failed, metric.FailureLimit),
		Inconclusive: ofLimit(counted.Inconclusive, metric.InconclusiveLimit), Errors: strconv.Itoa(int(counted.Errors)),
	}
	if len(counted.Last) > 0 {
		view.Value = cmp.Or(counted.Last[0].Value, counted.Last[0].Message)
	}
	if metric.DryRun {
		view.State += " (dry run)"
	}
	return view
}

func ofLimit(counted, limit int32) string { return fmt.Sprintf("%d (at most %d)", counted, limit) }

// AnalysisColumns are those of analyses.
var AnalysisColumns = []Column[Analysis]{
	{Name: "Run", Text: func(a Analysis) string { return a.Run }},
	{Name: "Stage", Text: func(a Analysis) string { return a.Stage }},
	{Name: "When", Text: func(a Analysis) string { return a.When }},
	{Name: "Attempt", Text: func(a Analysis) string { return fmt.Sprint(a.Attempt) }},
	{Name: "State", Text: func(a Analysis) string { return a.State }},
	{Name: "Message", Text: func(a Analysis) string { return a.Message }},
}

// MeasuredColumns are those of the metrics of an analysis.
var MeasuredColumns = []Column[Measured]{
	{Name: "Metric", Text: func(m Measured) string { return m.Name }},
	{Name: "State", Text: func(m Measured) string { return m.State }},
	{Name: "Value", Text: func(m Measured) string { return m.Value }},
	{Name: "Wanted", Text: func(m Measured) string { return m.Wanted }},
	{Name: "Measured", Text: func(m Measured) string { return m.Measured }},
	{Name: "Bad", Text: func(m Measured) string { return m.Bad }},
	{Name: "Inconclusive", Text: func(m Measured) string { return m.Inconclusive }},
	{Name: "Errors", Text: func(m Measured) string { return m.Errors }},
	{Name: "Query", Wide: true, Text: func(m Measured) string { return m.Query }},
}
