package metricsource

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/fleetflow/fleetflow/activities/analysis"
	"github.com/fleetflow/fleetflow/activities/outbound"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
)

// maxRetryAfter is for how long a webhook may ask to be left alone.
const maxRetryAfter = 5 * time.Minute

// maxWords is how much is kept of a message of a webhook.
const maxWords = 256

// Question is what is asked of a source, or about an object.
type Question struct {
	Metric fleetflowv1alpha1.AnalysisRunMetric
	// Of is the analysis that asks, Placement that of its run.
	Of        fleetflowv1alpha1.StageAnalysisRunObject
	Placement string
	// Clusters are those that are measured, Control those to compare with.
	Clusters, Control []string
	// Sequence is the number of the measurement.
	Sequence int32
}

// NextSequence returns the number of the measurement of a metric that is under way, or comes next.
func NextSequence(counted *fleetflowv1alpha1.AnalysisMetricStatus) int32 {
	return counted.Measured + counted.Errors + 1
}

// Query returns what is asked, as people read it: the query with the names of the clusters, a path, or what names an object.
func (q Question) Query() string {
	switch {
	case q.Metric.Webhook != nil:
		return q.Metric.Webhook.Path
	case q.Metric.Job != nil:
		return fmt.Sprintf("Job of CronJob %s/%s", q.Metric.Job.Namespace, q.Metric.Job.FromCronJob)
	case q.Metric.Objects != nil:
		of := q.Metric.Objects
		return fmt.Sprintf("%s %s/%s %s", of.From, of.APIVersion, of.Kind, strings.TrimPrefix(of.Namespace+"/"+of.Name, "/"))
	}
	return analysis.Query(q.Metric.Prometheus.Query, q.Clusters, q.Control)
}

// Ask asks a question. Later, if it is not zero, is after how long to ask again: there was no measurement then.
func (s *Sources) Ask(ctx context.Context, source *fleetflowv1alpha1.MetricSource,
	q Question) (reading analysis.Reading, later time.Duration, err error) {
	if q.Metric.Webhook != nil {
		return s.callWebhook(ctx, source, q)
	}
	reading, err = s.queryPrometheus(ctx, source, q.Query())
	if compared := q.Metric.Prometheus.BaselineQuery; err == nil && reading.Problem == "" && compared != "" {
		err = s.compare(ctx, source, analysis.Query(compared, q.Clusters, q.Control), &reading)
	}
	if least := q.Metric.Prometheus.MinSamples; err == nil && reading.Problem == "" && least > 0 {
		err = s.countObservations(ctx, source, q, &reading)
	}
	return reading, 0, err
}

// countObservations adds to a reading how many observations are behind it.
func (s *Sources) countObservations(ctx context.Context, source *fleetflowv1alpha1.MetricSource, q Question,
	reading *analysis.Reading) error {
	counted, err := s.queryPrometheus(ctx, source, analysis.Query(q.Metric.Prometheus.SamplesQuery, q.Clusters, q.Control))
	if err != nil {
		return err
	}
	if counted.Problem != "" {
		*reading = analysis.Reading{Problem: "the samplesQuery: " + counted.Problem, Answered: counted.Answered, Silent: counted.Silent}
		return nil
	}
	reading.Observations = counted.Samples
	return nil
}

func (s *Sources) queryPrometheus(ctx context.Context, source *fleetflowv1alpha1.MetricSource, query string) (analysis.Reading, error) {
	if len(query) > analysis.MaxQuery {
		return analysis.Reading{Problem: "QueryTooLong: the query is longer than 64 KiB with the names of all clusters: use by (cluster) and no $(clusters)"}, nil
	}
	form := url.Values{"query": {query}}.Encode()
	got, none, err := s.callSource(ctx, source, outbound.Request{
		Path: "/api/v1/query", ContentType: "application/x-www-form-urlencoded", Body: []byte(form),
	})
	if err != nil || got == nil {
		return none, err
	}
	reading := readPrometheus(got)
	reading.Answered = true
	return reading, nil
}

// compare adds to a reading the number to compare it with, if there is one.
func (s *Sources) compare(ctx context.Context, source *fleetflowv1alpha1.MetricSource, query string, reading *analysis.Reading) error {
	baseline, err := s.queryPrometheus(ctx, source, query)
	switch {
	case err != nil:
		return err
	case baseline.Problem != "":
		*reading = analysis.Reading{Problem: "the baselineQuery: " + baseline.Problem, Answered: baseline.Answered, Silent: baseline.Silent}
	case len(baseline.Samples) > 1:
		*reading = analysis.Reading{Problem: fmt.Sprintf("UnexpectedResult: the baselineQuery gives %d samples, not one: use sum or avg",
			len(baseline.Samples))}
	case len(baseline.Samples) == 1:
		reading.Baseline = &baseline.Samples[0].Value
	}
	return nil
}

// prometheusAnswer is the answer of Prometheus to an instant query.
type prometheusAnswer struct {
	Status    string `json:"status"`
	ErrorType string `json:"errorType"`
	Data      struct {
		ResultType string          `json:"resultType"`
		Result     json.RawMessage `json:"result"`
	} `json:"data"`
}

// point is a pair of an instant and a number as text.
type point [2]any

func (p point) number() (float64, error) {
	text, _ := p[1].(string)
	return strconv.ParseFloat(text, 64)
}

var errorType = regexp.MustCompile(`^[a-z_]{1,40}$`)

// readPrometheus reads samples. Of what the server says about an error, only its kind is kept: bodies are not repeated.
func readPrometheus(got *outbound.Answer) analysis.Reading {
	var in prometheusAnswer
	err := json.Unmarshal(got.Body, &in)
	if got.Status != http.StatusOK || err == nil && in.Status != "success" {
		text := fmt.Sprintf("the source answers %d", got.Status)
		if errorType.MatchString(in.ErrorType) {
			text += " (" + in.ErrorType + ")"
		}
		return analysis.Reading{Problem: text}
	}
	if err != nil {
		return analysis.Reading{Problem: "the source does not answer as Prometheus does"}
	}
	switch in.Data.ResultType {
	case "scalar":
		var p point
		if err = json.Unmarshal(in.Data.Result, &p); err == nil {
			return readSeries([]series{{Value: p}})
		}
	case "vector":
		var all []series
		if err = json.Unmarshal(in.Data.Result, &all); err == nil {
			return readSeries(all)
		}
	default:
		return analysis.Reading{Problem: fmt.Sprintf("UnexpectedResult: the query gives no vector and no scalar but %q",
			got.Words(in.Data.ResultType, 20))}
	}
	return analysis.Reading{Problem: "the source does not answer as Prometheus does"}
}

type series struct {
	Metric map[string]string `json:"metric"`
	Value  point             `json:"value"`
}

func readSeries(all []series) analysis.Reading {
	var reading analysis.Reading
	for _, s := range all {
		value, err := s.Value.number()
		if err != nil {
			return analysis.Reading{Problem: "UnexpectedResult: a sample is no number"}
		}
		reading.Samples = append(reading.Samples, analysis.Sample{Labels: s.Metric, Value: value})
	}
	return reading
}

// callWebhook sends a CloudEvent in binary mode, which names the measurement: a receiver can drop one that comes twice.
func (s *Sources) callWebhook(ctx context.Context, source *fleetflowv1alpha1.MetricSource,
	q Question) (reading analysis.Reading, later time.Duration, err error) {
	spec := q.Of.GetStageAnalysisRunSpec()
	body, err := json.Marshal(map[string]any{
		"run": spec.RunRef.Name, "namespace": q.Of.GetNamespace(), "stage": spec.Stage, "position": spec.Position, "attempt": spec.Attempt,
		"metric": q.Metric.Name, "sequence": q.Sequence, "clusters": len(q.Clusters), "body": q.Metric.Webhook.Body,
	})
	if err != nil {
		return reading, 0, fmt.Errorf("writing the request of metric %s: %w", q.Metric.Name, err)
	}
	id := fmt.Sprintf("%s/%d/%s/%d", q.Of.GetUID(), spec.Attempt, q.Metric.Name, q.Sequence)
	got, none, err := s.callSource(ctx, source, outbound.Request{
		Path: q.Metric.Webhook.Path, ContentType: "application/json", Body: body, ID: id, Header: map[string]string{
			"ce-specversion": "1.0", "ce-type": "io.fleetflow.analysis.measure", "ce-source": "/stageanalysisruns/" + q.Of.GetName(), "ce-id": id,
		},
	})
	if err != nil || got == nil {
		return none, 0, err
	}
	wait := retryAfter(got)
	if wait == 0 {
		reading = readWebhook(got)
	}
	reading.Answered = true
	return reading, wait, nil
}

// retryAfter returns for how long a source asks to be left alone; 0 if it does not.
func retryAfter(got *outbound.Answer) time.Duration {
	if got.Status != http.StatusTooManyRequests && got.Status != http.StatusServiceUnavailable {
		return 0
	}
	seconds, err := strconv.Atoi(got.Header.Get("Retry-After"))
	if err != nil || seconds <= 0 {
		return 0
	}
	return min(time.Duration(seconds)*time.Second, maxRetryAfter)
}

// readWebhook reads an answer that decides, or that is to be judged.
func readWebhook(got *outbound.Answer) analysis.Reading {
	var decided struct {
		Outcome fleetflowv1alpha1.AnalysisOutcome `json:"outcome"`
		Message string                            `json:"message"`
	}
	err := json.Unmarshal(got.Body, &decided)
	reading := analysis.Reading{Message: got.Words(decided.Message, maxWords)}
	switch {
	case got.Status == http.StatusConflict || got.Status == http.StatusUnprocessableEntity:
		reading.Decided = fleetflowv1alpha1.OutcomeFailure
	case got.Status < 200 || got.Status > 299:
		return analysis.Reading{Problem: fmt.Sprintf("the source answers %d", got.Status)}
	case err == nil && decided.Outcome != "":
		switch decided.Outcome {
		case fleetflowv1alpha1.OutcomeSuccess, fleetflowv1alpha1.OutcomeFailure, fleetflowv1alpha1.OutcomeInconclusive:
			reading.Decided = decided.Outcome
		default:
			return analysis.Reading{Problem: fmt.Sprintf("the source answers with the outcome %q", got.Words(string(decided.Outcome), 20))}
		}
	case len(got.Body) > 0 && json.Unmarshal(got.Body, &reading.Response) != nil:
		return analysis.Reading{Problem: "the source does not answer with JSON"}
	}
	reading.Response = redactValue(reading.Response, got.Credentials)
	return reading
}
