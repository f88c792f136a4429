package analysis

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
)

// maxMessage is how long the message of an analysis may be.
const maxMessage = 1024

// Explain says in a sentence how an analysis stands: the metric that makes it so, with its value, its bound and its counts, or
// all metrics of one that has passed or goes on.
func Explain(phase fleetflowv1alpha1.AnalysisPhase, worst int, metrics []fleetflowv1alpha1.AnalysisRunMetric,
	counted []fleetflowv1alpha1.AnalysisMetricStatus) string {
	var words []string
	for i := range metrics {
		if i == worst || phase == fleetflowv1alpha1.AnalysisSucceeded || !phase.IsOver() {
			words = append(words, ExplainMetric(metrics[i], counted[i]))
		}
	}
	return Shorten(strings.Join(words, "; "), maxMessage)
}

// ExplainMetric returns how a metric stands.
func ExplainMetric(metric fleetflowv1alpha1.AnalysisRunMetric, counted fleetflowv1alpha1.AnalysisMetricStatus) string {
	text := metric.Name + shownValue(counted)
	if bound := FilledBound(metric); bound != "" {
		text += " (want " + bound + ")"
	}
	text += fmt.Sprintf(": %d of %d good", counted.Succeeded, counted.Measured)
	if counted.Failed > 0 {
		text += fmt.Sprintf(", %d bad (at most %d)", counted.Failed, metric.FailureLimit)
	}
	if limit := metric.ConsecutiveFailureLimit; limit != nil && counted.ConsecutiveFailures > *limit {
		text += fmt.Sprintf(", %d bad in a row (at most %d)", counted.ConsecutiveFailures, *limit)
	}
	if counted.Inconclusive > 0 {
		text += fmt.Sprintf(", %d inconclusive (at most %d)", counted.Inconclusive, metric.InconclusiveLimit)
	}
	if counted.Phase == fleetflowv1alpha1.AnalysisInconclusive && metric.ConsecutiveSuccessLimit > 0 {
		text += fmt.Sprintf(", not %d good ones in a row", metric.ConsecutiveSuccessLimit)
	}
	if counted.ConsecutiveErrors > 0 {
		text += fmt.Sprintf(", %d errors in a row", counted.ConsecutiveErrors)
	}
	if metric.DryRun {
		text += ", a dry run"
	}
	return text
}

// shownValue returns the value that tells most: of a metric that has failed the newest bad one, and else the newest.
func shownValue(counted fleetflowv1alpha1.AnalysisMetricStatus) string {
	if len(counted.Last) == 0 {
		return ""
	}
	shown := counted.Last[0]
	if counted.Phase == fleetflowv1alpha1.AnalysisFailed {
		if i := slices.IndexFunc(counted.Last, func(m fleetflowv1alpha1.AnalysisMeasurement) bool {
			return m.Outcome == fleetflowv1alpha1.OutcomeFailure
		}); i >= 0 {
			shown = counted.Last[i]
		}
	}
	text := ""
	if shown.Value != "" {
		text += " " + shown.Value
	}
	if shown.Message != "" {
		text += " " + shown.Message
	}
	return text
}

// FilledBound returns what has to hold of a good measurement, with the values of the arguments.
func FilledBound(metric fleetflowv1alpha1.AnalysisRunMetric) string {
	return argumentInExpression.ReplaceAllStringFunc(boundOf(metric.AnalysisMetric), func(found string) string {
		if value, is := metric.Args[strings.TrimPrefix(found, "args.")]; is {
			return strconv.Quote(value)
		}
		return found
	})
}

// Shorten cuts a text to a number of bytes.
func Shorten(text string, most int) string {
	const more = "..."
	if len(text) <= most {
		return text
	}
	return clusterv1beta1.FirstBytes(text, most-len(more)) + more
}
