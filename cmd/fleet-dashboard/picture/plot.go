package picture

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fleetflow/fleetflow/activities/analysis"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	"github.com/fleetflow/fleetflow/cmd/internal/fleetview"
)

// A plot is that large, with a margin in which nothing is cut off.
const plotWidth, plotHeight, plotMargin = 600, 140, 12

// Analysis is an analysis with a plot for each metric.
type Analysis struct {
	fleetview.Analysis
	Plots []Plot
}

// Plot is a metric over time.
type Plot struct {
	fleetview.Measured
	// Samples are the measurements that are kept, the oldest first.
	Samples []Sample
	// Line leads through those that are numbers, Baseline through what these were compared with.
	Line, Baseline string
	// Bounds are the numbers that results are compared with.
	Bounds []Bound
	// Low and High are what the lowest and the highest line stand for; empty if nothing is a number.
	Low, High string
	// Text says what is drawn.
	Text string
}

// Sample is a measurement.
type Sample struct {
	X, Y int
	fleetflowv1alpha1.AnalysisMeasurement
}

// Mark is the shape of an outcome: a word of the style sheet and a path around the point.
func (s Sample) Mark() string {
	at := fmt.Sprintf("M%d %d", s.X, s.Y)
	switch s.Outcome {
	case fleetflowv1alpha1.OutcomeSuccess:
		return at + "m-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0z"
	case fleetflowv1alpha1.OutcomeFailure:
		return at + "m-5 -5l10 10m0 -10l-10 10"
	case fleetflowv1alpha1.OutcomeError:
		return at + "m0 -5l5 9h-10z"
	}
	return at + "m-4 -4h8v8h-8z"
}

// Bound is a number that results are compared with.
type Bound struct {
	Y    int
	Text string
}

// AnalysisOf draws an analysis.
func AnalysisOf(run fleetflowv1alpha1.StageAnalysisRunObject) Analysis {
	drawn := Analysis{Analysis: fleetview.AnalysisOf(run)}
	spec := run.GetStageAnalysisRunSpec()
	status := run.GetStageAnalysisRunStatus()
	for i, measured := range drawn.Metrics {
		var taken []fleetflowv1alpha1.AnalysisMeasurement
		if i < len(status.Metrics) {
			taken = status.Metrics[i].Last
		}
		drawn.Plots = append(drawn.Plots, plotOf(measured, spec.Metrics[i], taken))
	}
	return drawn
}

// comparison finds numbers that a result is compared with.
var comparison = regexp.MustCompile(`\b(?:result|samples\[0\])\s*(<=|<|>=|>|==|!=)\s*"?(-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)"?\s*(?:$|&|\||\))`)

func plotOf(measured fleetview.Measured, metric fleetflowv1alpha1.AnalysisRunMetric, taken []fleetflowv1alpha1.AnalysisMeasurement) Plot {
	p := Plot{Measured: measured}
	taken = slices.Clone(taken)
	slices.SortStableFunc(taken, func(a, b fleetflowv1alpha1.AnalysisMeasurement) int { return a.At.Time.Compare(b.At.Time) })
	values := make([]*float64, len(taken))
	baselines := make([]*float64, len(taken))
	var all []float64
	for i := range taken {
		if value, err := strconv.ParseFloat(taken[i].Value, 64); err == nil && value-value == 0 { // neither infinite nor no number
			values[i] = &value
			all = append(all, value)
		}
		if baseline, compared := analysis.BaselineOf(taken[i]); compared && metric.Prometheus != nil && metric.Prometheus.BaselineQuery != "" {
			baselines[i] = &baseline
			all = append(all, baseline)
		}
	}
	bounds := boundsIn(analysis.FilledBound(metric))
	if len(all) > 0 {
		for value := range bounds {
			all = append(all, value)
		}
	}
	scale := scaleOf(all)
	for i := range taken {
		s := Sample{X: timeAt(taken, i), Y: plotHeight / 2, AnalysisMeasurement: taken[i]}
		if values[i] != nil {
			s.Y = scale.at(*values[i])
			p.Line += point(p.Line, s.X, s.Y)
		}
		if baselines[i] != nil {
			p.Baseline += point(p.Baseline, s.X, scale.at(*baselines[i]))
		}
		p.Samples = append(p.Samples, s)
	}
	if len(all) > 0 {
		p.Low = number(scale.low)
		p.High = number(scale.high)
		for value, text := range bounds {
			p.Bounds = append(p.Bounds, Bound{scale.at(value), text})
		}
		slices.SortFunc(p.Bounds, func(a, b Bound) int { return cmp.Or(a.Y-b.Y, strings.Compare(a.Text, b.Text)) })
	}
	p.Text = p.sentence()
	return p
}

// boundsIn returns the numbers that an expression compares a result with, each with how.
func boundsIn(expression string) map[float64]string {
	found := map[float64]string{}
	for _, part := range comparison.FindAllStringSubmatch(expression, -1) {
		if value, err := strconv.ParseFloat(part[2], 64); err == nil {
			found[value] = "result " + part[1] + " " + part[2]
		}
	}
	return found
}

// timeAt returns where a measurement stands between the first and the last.
func timeAt(taken []fleetflowv1alpha1.AnalysisMeasurement, i int) int {
	whole := taken[len(taken)-1].At.Sub(taken[0].At.Time)
	if whole <= 0 {
		return plotWidth / 2
	}
	share := float64(taken[i].At.Sub(taken[0].At.Time)) / float64(whole)
	return plotMargin + int(share*(plotWidth-2*plotMargin))
}

// scale is what the height of a plot stands for.
type scale struct{ low, high float64 }

func scaleOf(values []float64) scale {
	if len(values) == 0 {
		return scale{}
	}
	return scale{slices.Min(values), slices.Max(values)}
}

func (s scale) at(value float64) int {
	if s.high <= s.low {
		return plotHeight / 2
	}
	return plotHeight - plotMargin - int((value/2-s.low/2)/(s.high/2-s.low/2)*(plotHeight-2*plotMargin)) // halves do not overflow
}

// point continues a path.
func point(path string, x, y int) string {
	if path == "" {
		return fmt.Sprintf("M%d %d", x, y)
	}
	return fmt.Sprintf("L%d %d", x, y)
}

func number(value float64) string { return strconv.FormatFloat(value, 'g', 4, 64) }

// sentence says in words what a plot shows.
func (p Plot) sentence() string {
	if len(p.Samples) == 0 {
		return p.Name + ": nothing is measured yet"
	}
	counts := map[fleetflowv1alpha1.AnalysisOutcome]int{}
	for _, s := range p.Samples {
		counts[s.Outcome]++
	}
	var parts []string
	for _, outcome := range outcomes {
		if counts[outcome] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", counts[outcome], strings.ToLower(string(outcome))))
		}
	}
	text := fmt.Sprintf("%s: %d measurements, %s", p.Name, len(p.Samples), strings.Join(parts, ", "))
	if p.High != "" {
		text += fmt.Sprintf(", from %s to %s", p.Low, p.High)
	}
	return text + ", the last " + p.Samples[len(p.Samples)-1].At.UTC().Format(time.RFC3339)
}

// Outcomes are a sample of each outcome, for a legend.
func Outcomes() []Sample {
	var all []Sample
	for _, outcome := range outcomes {
		all = append(all, Sample{X: 15, Y: 10, AnalysisMeasurement: fleetflowv1alpha1.AnalysisMeasurement{Outcome: outcome}})
	}
	return all
}

// outcomes are in the order of their words.
var outcomes = []fleetflowv1alpha1.AnalysisOutcome{
	fleetflowv1alpha1.OutcomeSuccess, fleetflowv1alpha1.OutcomeFailure, fleetflowv1alpha1.OutcomeInconclusive, fleetflowv1alpha1.OutcomeError,
}
