// Package measure takes the measurements of analyses: it asks by package metricsource, and writes what package analysis makes of the
// answers into ClusterStageAnalysisRuns and StageAnalysisRuns.
package measure

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/activity"
	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/analysis"
	"github.com/fleetflow/fleetflow/activities/analysis/metricsource"
	"github.com/fleetflow/fleetflow/activities/attempt"
	"github.com/fleetflow/fleetflow/activities/hubread"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	"github.com/fleetflow/fleetflow/apis/placement/updaterun"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// How long one call measures, for how long it waits for a measurement, and how often it writes while nothing ends.
const (
	callLasts  = 9 * time.Minute
	waitsFor   = time.Minute
	writeEvery = 10 * time.Second
	// lastWrite is how long the write of a call that is ended may take.
	lastWrite = 2 * time.Second
)

// Activities are those that measure.
type Activities struct {
	// Client writes, Live reads past every cache.
	Client  client.Client
	Live    client.Reader
	Sources *metricsource.Sources
	Objects metricsource.Objects
	Jobs    metricsource.Jobs
	Clock   clock.WithTicker
	// Metrics are optional.
	Metrics *Metrics
}

// errSuperseded says that another attempt has written to the analysis: this one stops.
var errSuperseded = errors.New("another attempt measures")

// MeasureAnalysis takes the measurements of an analysis that are due within some minutes. An endpoint that fails is a result; an
// error is trouble with the hub.
func (a *Activities) MeasureAnalysis(ctx context.Context, in wf.MeasureRequest) (wf.MeasureResult, error) {
	subject, found, err := a.readSubject(ctx, a.Live, in)
	if err != nil || !found {
		return wf.MeasureResult{}, err
	}
	run, err := hubread.Existing(ctx, a.Live, fleetflowv1alpha1.NewStageAnalysisRun(in.Run.Namespace, in.Analysis), "analysis")
	if err != nil || run == nil || string(run.GetStageAnalysisRunSpec().RunRef.UID) != in.Run.UID {
		return wf.MeasureResult{}, err
	}
	if phase := fleetflowv1alpha1.PhaseOfAttempt(run); phase.IsOver() {
		return wf.MeasureResult{Phase: string(phase)}, nil
	}
	m := &measuring{Activities: a, run: run, request: in, subject: subject, began: a.Clock.Now(), written: a.Clock.Now()}
	result, err := m.measure(ctx)
	if errors.Is(err, errSuperseded) {
		return wf.MeasureResult{Again: true}, nil
	}
	return result, err
}

// subject is what is measured.
type subject struct {
	updaterun.Measured
	// placement is that of the run.
	placement string
}

// of returns the clusters that an analysis in a position is about. While a stage is updated, the others still have the old version.
func (s subject) of(position string) []string {
	if position == fleetflowv1alpha1.PositionDuring && len(s.Begun) > 0 {
		return s.Begun
	}
	return s.Clusters
}

// readSubject reads what is measured; found is false if the run is over or gone.
func (a *Activities) readSubject(ctx context.Context, from client.Reader, in wf.MeasureRequest) (s subject, found bool, err error) {
	run, err := hubread.Existing(ctx, from, placementv1beta1.Scope{Namespace: in.Run.Namespace}.NewUpdateRun(in.Run.Name), "run")
	if err != nil || run == nil || string(run.GetUID()) != in.Run.UID || !run.GetDeletionTimestamp().IsZero() ||
		rules.IsRunOver(run) {
		return subject{}, false, err
	}
	s.placement = run.GetUpdateRunSpec().PlacementName
	s.Measured, found = updaterun.MeasuredIn(run.GetUpdateRunStatus(), in.Stage)
	return s, found, nil
}

// measuring is one call.
type measuring struct {
	*Activities
	run     fleetflowv1alpha1.StageAnalysisRunObject
	request wf.MeasureRequest
	subject subject
	judges  []*analysis.Judge
	// worst is the metric that the phase of the analysis comes from.
	worst          int
	began, written time.Time
	// dirty says that there is something to write. That a measurement is put off is not worth a write, unless the next call needs to
	// know: putOff says that one was.
	dirty, putOff bool
}

// measure takes one measurement after the other.
func (m *measuring) measure(ctx context.Context) (wf.MeasureResult, error) {
	if problem := m.prepare(); problem != "" {
		return m.conclude(ctx, fleetflowv1alpha1.AnalysisError, problem)
	}
	for {
		if err := m.refresh(ctx); err != nil {
			return wf.MeasureResult{}, err
		}
		if err := m.takeDue(ctx); err != nil {
			m.writeAtTheEnd(ctx)
			return wf.MeasureResult{}, err
		}
		spec := m.run.GetStageAnalysisRunSpec()
		status := m.run.GetStageAnalysisRunStatus()
		phase, worst := analysis.Conclude(spec.Metrics, status.Metrics)
		m.worst = worst
		message := analysis.Explain(phase, worst, spec.Metrics, status.Metrics)
		if phase.IsOver() {
			return m.conclude(ctx, phase, message)
		}
		next := m.nextDue()
		now := m.Clock.Now()
		fleetflowv1alpha1.SetPhase(m.run, phase, message, now)
		status.NextMeasurementTime = microTime(next)
		wait := next.Sub(now)
		leaves := wait >= waitsFor || next.Sub(m.began) > callLasts
		if m.isToWrite(now, wait, leaves) {
			if err := m.write(ctx); err != nil {
				return wf.MeasureResult{}, err
			}
		}
		if leaves {
			return m.result(phase, wait < waitsFor), nil
		}
		attempt.Report(ctx, m.result(phase, true))
		if err := m.sleep(ctx, wait); err != nil {
			m.writeAtTheEnd(ctx)
			return wf.MeasureResult{}, err
		}
	}
}

// isToWrite reports whether the status is written now, where the next measurement is due after wait, and the call may leave that
// to the next.
func (m *measuring) isToWrite(now time.Time, wait time.Duration, leaves bool) bool {
	if wait >= waitsFor && m.putOff {
		return true // otherwise the gates would ask to measure at once
	}
	return m.dirty && (leaves || m.written.Equal(m.began) || now.Sub(m.written) >= writeEvery)
}

// prepare compiles the expressions, and begins an attempt that has not begun.
func (m *measuring) prepare() (problem string) {
	status := m.run.GetStageAnalysisRunStatus()
	if fleetflowv1alpha1.PhaseOfAttempt(m.run) == fleetflowv1alpha1.AnalysisPending {
		started := metav1Time(m.began)
		fleetflowv1alpha1.BeginAttempt(m.run)
		fleetflowv1alpha1.SetPhase(m.run, fleetflowv1alpha1.AnalysisRunning, "", m.began)
		status.StartTime = &started
		m.dirty = true
	}
	for i := range m.run.GetStageAnalysisRunSpec().Metrics {
		metric := m.run.GetStageAnalysisRunSpec().Metrics[i]
		judge, problem := analysis.NewJudge(metric)
		if problem != "" {
			return problem
		}
		m.judges = append(m.judges, judge)
		if len(status.Metrics) <= i {
			status.Metrics = append(status.Metrics, fleetflowv1alpha1.AnalysisMetricStatus{Name: metric.Name,
				Phase: fleetflowv1alpha1.AnalysisRunning})
		}
	}
	for i := range status.Metrics {
		if of := &status.Metrics[i]; of.NextMeasurementTime == nil || m.isDuring() && m.subject.Updated {
			m.assess(i)
		}
	}
	return ""
}

func (m *measuring) isDuring() bool {
	return m.run.GetStageAnalysisRunSpec().Position == fleetflowv1alpha1.PositionDuring
}

// refresh reads from the cache which clusters have been updated meanwhile, where that says what is measured. What is not found
// there for now stays as it is: the next call looks past the cache.
func (m *measuring) refresh(ctx context.Context) error {
	if m.Clock.Now().Equal(m.began) || !m.isDuring() && !analysis.NeedsControl(m.run.GetStageAnalysisRunSpec().Metrics) {
		return nil
	}
	s, found, err := m.readSubject(ctx, m.Client, m.request)
	if err != nil || !found {
		return err
	}
	s.Updated = m.subject.Updated
	m.subject = s
	return nil
}

func (m *measuring) assess(i int) {
	of := &m.run.GetStageAnalysisRunStatus().Metrics[i]
	metric := m.run.GetStageAnalysisRunSpec().Metrics[i].AnalysisMetric
	if m.isDuring() {
		metric = analysis.During(metric, m.subject.Updated)
	}
	phase, next := analysis.Assess(metric, *of, m.run.GetStageAnalysisRunStatus().StartTime.Time)
	of.Phase = phase
	if phase.IsOver() != (of.NextMeasurementTime == nil) || !next.IsZero() && !next.Equal(of.NextMeasurementTime.Time) {
		of.NextMeasurementTime = microTime(next)
		m.dirty = true
	}
}

// nextDue returns when the first measurement is due of those that are left.
func (m *measuring) nextDue() (next time.Time) {
	for i := range m.run.GetStageAnalysisRunStatus().Metrics {
		of := &m.run.GetStageAnalysisRunStatus().Metrics[i]
		if of.Phase.IsOver() || of.NextMeasurementTime == nil {
			continue
		}
		if next.IsZero() || of.NextMeasurementTime.Time.Before(next) {
			next = of.NextMeasurementTime.Time
		}
	}
	return next
}

// takeDue takes the measurements that are due now, side by side.
func (m *measuring) takeDue(ctx context.Context) error {
	now := m.Clock.Now()
	results := make([]func(), len(m.judges))
	g, asking := errgroup.WithContext(ctx)
	for i := range m.judges {
		of := &m.run.GetStageAnalysisRunStatus().Metrics[i]
		if of.Phase.IsOver() || of.NextMeasurementTime != nil && of.NextMeasurementTime.Time.After(now) {
			continue
		}
		g.Go(func() error {
			record, err := m.measureMetric(asking, i)
			results[i] = record
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	for _, record := range results {
		if record != nil {
			record()
		}
	}
	return nil
}

// measureMetric takes one measurement, and returns what writes it down.
func (m *measuring) measureMetric(ctx context.Context, i int) (record func(), err error) {
	metric := m.run.GetStageAnalysisRunSpec().Metrics[i]
	of := &m.run.GetStageAnalysisRunStatus().Metrics[i]
	q := metricsource.Question{
		Metric: metric, Of: m.run, Placement: m.subject.placement,
		Clusters: m.subject.of(m.run.GetStageAnalysisRunSpec().Position), Control: m.subject.Control, Sequence: metricsource.NextSequence(of),
	}
	reading, later, err := m.answerQuestion(ctx, q)
	if err != nil {
		return nil, err
	}
	at := m.Clock.Now()
	if later > 0 {
		return func() {
			of.NextMeasurementTime = microTime(at.Add(later))
			m.putOff = true
		}, nil
	}
	taken := m.judges[i].Judge(ctx, reading, q.Clusters)
	m.Metrics.countMeasurement(taken.Outcome, analysis.ProviderOf(metric.AnalysisMetric))
	return func() {
		analysis.Count(of, taken.Outcome, at)
		analysis.Note(of, taken, at, q.Query(), len(m.judges))
		m.dirty = true
		m.assess(i)
	}, nil
}

// answerQuestion asks whatever a metric is measured at. Later, if it is not zero, is after how long to ask again.
func (m *measuring) answerQuestion(ctx context.Context, q metricsource.Question) (reading analysis.Reading, later time.Duration, err error) {
	if q.Metric.Objects != nil {
		reading, err = m.Objects.Read(ctx, q)
		return reading, 0, err
	}
	if q.Metric.Job != nil {
		return m.Jobs.Read(ctx, q)
	}
	name, _ := analysis.SourceOf(q.Metric.AnalysisMetric)
	var source fleetflowv1alpha1.MetricSource
	err = m.Live.Get(ctx, types.NamespacedName{Name: name}, &source)
	if apierrors.IsNotFound(err) {
		return analysis.Reading{Problem: "there is no MetricSource " + name}, 0, nil
	}
	if err != nil {
		return reading, 0, fmt.Errorf("reading MetricSource %s: %w", name, err)
	}
	asked := m.Clock.Now()
	if reading, later, err = m.Sources.Ask(ctx, &source, q); err == nil {
		m.Metrics.observeRequest(name, m.Clock.Since(asked))
		m.noteContact(ctx, &source, reading)
		if later > 0 {
			m.Metrics.countPutOff(name)
		}
	}
	return reading, later, err
}

// noteContact keeps the status of a source current. Nothing that is measured depends on it: what cannot be written, or was written by
// another in the meantime, is written with a later measurement.
func (m *measuring) noteContact(ctx context.Context, source *fleetflowv1alpha1.MetricSource, reading analysis.Reading) {
	before := source.DeepCopy()
	now := m.Clock.Now()
	if reading.Answered && source.NoteAnswer(now) || reading.Silent && source.NoteSilence(reading.Problem, now) {
		_ = m.Client.Status().Patch(ctx, source, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	}
}

// conclude ends the attempt.
func (m *measuring) conclude(ctx context.Context, phase fleetflowv1alpha1.AnalysisPhase, message string) (wf.MeasureResult, error) {
	fleetflowv1alpha1.SetPhase(m.run, phase, message, m.Clock.Now())
	if err := m.write(ctx); err != nil {
		return wf.MeasureResult{}, err
	}
	m.Metrics.countRun(phase)
	return m.result(phase, false), nil
}

func (m *measuring) result(phase fleetflowv1alpha1.AnalysisPhase, again bool) wf.MeasureResult {
	result := wf.MeasureResult{Again: again, Phase: string(phase)}
	for i := range m.run.GetStageAnalysisRunStatus().Metrics {
		result.Measured += int(m.run.GetStageAnalysisRunStatus().Metrics[i].Measured)
	}
	if phase.IsOver() && phase != fleetflowv1alpha1.AnalysisSucceeded && m.worst < len(m.run.GetStageAnalysisRunStatus().Metrics) {
		result.Worst = m.run.GetStageAnalysisRunStatus().Metrics[m.worst].Name
	}
	return result
}

// write writes the counts. There is one writer: who finds that another has written stops.
func (m *measuring) write(ctx context.Context) error {
	err := m.Client.Status().Update(ctx, m.run)
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return errSuperseded
	}
	if err != nil {
		return fmt.Errorf("writing analysis %s: %w", client.ObjectKeyFromObject(m.run), err)
	}
	m.written, m.dirty, m.putOff = m.Clock.Now(), false, false
	return nil
}

// writeAtTheEnd keeps what was measured by a call that is ended. What it cannot keep is measured again.
func (m *measuring) writeAtTheEnd(ctx context.Context) {
	if !m.dirty {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWrite)
	defer cancel()
	_ = m.write(ctx)
}

func (m *measuring) sleep(ctx context.Context, wait time.Duration) error {
	if wait <= 0 {
		return ctx.Err()
	}
	timer := m.Clock.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C():
		return nil
	case <-activity.GetWorkerStopChannel(ctx):
		return errors.New("measuring: the worker stops")
	case <-ctx.Done():
		return ctx.Err()
	}
}
