package demo

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	"github.com/fleetflow/fleetflow/apis/placement/stagetask"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// Names of the act in which an analysis finds a bad version.
const (
	sourceName           = "example-metrics"
	analysisName         = "example-analysis"
	analysedStrategyName = "example-analysed-strategy"
	badValue             = "bad"
	maxErrorRatio        = "0.01"
)

// badVersion has an analysis find a version that is bad on its first cluster, and take the stage back.
func (s *story) badVersion(ctx context.Context) error {
	metrics := httptest.NewServer(http.HandlerFunc(s.answerQuery))
	defer metrics.Close()
	if err := s.prepareAnalysis(ctx, metrics.URL); err != nil {
		return err
	}
	if err := s.edit(ctx, badValue, 5); err != nil {
		return err
	}
	watching, stop := context.WithCancel(ctx)
	defer stop()
	seen, err := s.recordWrites(watching)
	if err != nil {
		return err
	}
	run := updateRun(runName(6), "")
	run.Spec.StagedUpdateStrategyName = analysedStrategyName
	if err := s.Hub.Create(ctx, run); err != nil {
		return fmt.Errorf("creating run %s: %w", run.Name, err)
	}
	s.screen.did("created ClusterStagedUpdateRun %s: the latest snapshot of %s by %s", run.Name, placementName, analysedStrategyName)
	began := time.Now()
	if _, err := s.follow(watching, run.Name).until(ctx, waitLimit, "fails by its analysis", isFailed); err != nil {
		return err
	}
	measured := fleetflowv1alpha1.AnalysisRunName(run.Name, stagingStage, stagetask.After.Position())
	if _, err := becomes(ctx, s, s.Hub, client.ObjectKey{Name: measured}, "the analysis of "+stagingStage+" has failed",
		notFailed); err != nil {
		return err
	}
	if err := s.kubectl(ctx, "get", "clusterstageanalysisruns", measured, "-o", "wide"); err != nil {
		return err
	}
	back := placementv1beta1.RollbackName(run.Name, run.UID)
	if _, err := s.follow(watching, back).until(ctx, waitLimit, "takes the stage back by itself", succeeded); err != nil {
		return err
	}
	s.note = "bad for " + seconds(time.Since(began)) + ", on one cluster"
	return s.checkTakenBack(ctx, seen, lapse{
		n: 6, cluster: updateOrder(s.Fleet.Members)[0], given: 5, before: 4, value: badValue, valueBefore: "value5",
	})
}

// answerQuery answers as Prometheus does. The ratio of errors follows from what the first cluster of the run really has.
func (s *story) answerQuery(w http.ResponseWriter, r *http.Request) {
	cm := configMap("")
	if err := s.Members[updateOrder(s.Fleet.Members)[0]].Get(r.Context(), client.ObjectKeyFromObject(cm), cm); err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = fmt.Fprintf(w, `{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[%d,%q]}]}}`, time.Now().Unix(),
		errorRatio(cm))
}

// errorRatio returns what the demo's application would fail with: much, with the bad version. It is pure.
func errorRatio(cm *corev1.ConfigMap) string {
	if cm.Data[configKey] == badValue {
		return "0.12"
	}
	return "0.002"
}

// prepareAnalysis creates the source, the template and a strategy whose first stage is analysed.
func (s *story) prepareAnalysis(ctx context.Context, url string) error {
	template := analysisTemplate()
	for _, object := range []client.Object{metricSource(url), template, analysedStrategy(s.Fleet.Members)} {
		if err := s.Hub.Create(ctx, object); err != nil {
			return fmt.Errorf("creating %T %s: %w", object, object.GetName(), err)
		}
	}
	s.screen.did("created MetricSource %s: %s, which this program serves", sourceName, url)
	s.screen.did("created StageAnalysis %s: the stage passes if %s", analysisName, template.Spec.Metrics[0].Success)
	s.screen.did("created ClusterStagedUpdateStrategy %s: %s, then the analysis, else Rollback; then %s", analysedStrategyName, stagingStage,
		canaryStage)
	_, err := becomes(ctx, s, s.Hub, client.ObjectKey{Name: analysisName}, "the template can be measured by", notValid)
	return err
}

func metricSource(url string) *fleetflowv1alpha1.MetricSource {
	return &fleetflowv1alpha1.MetricSource{
		ObjectMeta: named(sourceName),
		Spec:       fleetflowv1alpha1.MetricSourceSpec{Type: fleetflowv1alpha1.MetricSourcePrometheus, URL: url, AllowPlainText: true},
	}
}

func analysisTemplate() *fleetflowv1alpha1.StageAnalysis {
	template := &fleetflowv1alpha1.StageAnalysis{ObjectMeta: named(analysisName)}
	template.Spec.Metrics = []fleetflowv1alpha1.AnalysisMetric{{
		Name: "error-ratio", Success: "result <= " + maxErrorRatio,
		Prometheus: &fleetflowv1alpha1.PrometheusQuery{SourceRef: fleetflowv1alpha1.MetricSourceReference{Name: sourceName},
			Query: `sum(rate(errors{cluster=~"$(clusters)"}[1m]))`},
	}}
	return template
}

// analysedStrategy has the stages of the other runs, with an analysis in place of the soak and the approval.
func analysedStrategy(members int) *placementv1beta1.ClusterStagedUpdateStrategy {
	wanted := strategy(0, members)
	wanted.ObjectMeta = named(analysedStrategyName)
	for i := range wanted.Spec.Stages {
		wanted.Spec.Stages[i].AfterStageTasks = nil
	}
	wanted.Spec.Stages[0].AfterStageTasks = []placementv1beta1.StageTask{{
		Type: placementv1beta1.StageTaskTypeAnalysis,
		Analysis: &placementv1beta1.AnalysisConfig{
			Templates: []placementv1beta1.AnalysisTemplate{{Name: analysisName}}, OnFailure: placementv1beta1.AnalysisRollback,
		},
	}}
	return wanted
}

// isFailed reports whether a run has ended badly. It is pure.
func isFailed(run *placementv1beta1.ClusterStagedUpdateRun) bool {
	return meta.IsStatusConditionFalse(run.Status.Conditions, placementv1beta1.ConditionTypeSucceeded)
}

// notFailed returns what is missing until an analysis has failed. It is pure.
func notFailed(run *fleetflowv1alpha1.ClusterStageAnalysisRun) string {
	switch {
	case run == nil:
		return "missing"
	case fleetflowv1alpha1.PhaseOfAttempt(run) != fleetflowv1alpha1.AnalysisFailed:
		return fmt.Sprintf("it is %s: %s", fleetflowv1alpha1.PhaseOfAttempt(run), fleetflowv1alpha1.MessageOfAttempt(run))
	}
	return ""
}

// notValid returns what is missing until a template is valid. It is pure.
func notValid(template *fleetflowv1alpha1.StageAnalysis) string {
	if template == nil {
		return "missing"
	}
	valid := meta.FindStatusCondition(template.Status.Conditions, fleetflowv1alpha1.ConditionTypeAccepted)
	switch {
	case valid == nil:
		return "no condition Accepted"
	case valid.Status != "True":
		return fmt.Sprintf("Accepted is %s: %s: %s", valid.Status, valid.Reason, valid.Message)
	}
	return ""
}

// lapse is a bad version that one cluster has had for a while.
type lapse struct {
	// n is the number of the run.
	n int
	// cluster alone was given a snapshot, and then the one before again.
	cluster       string
	given, before int
	// value is what the ConfigMap had in the meantime, valueBefore what it has again.
	value, valueBefore string
}

// checkTakenBack checks that the bad version was on one cluster only, and is no longer there.
func (s *story) checkTakenBack(ctx context.Context, seen ledgers, l lapse) error {
	limited, cancel := context.WithTimeout(ctx, waitLimit)
	defer cancel()
	r := rollout{n: l.n, value: l.valueBefore}
	finding := notTakenBack(seen.bindings.atLeast(limited, 2), l.cluster,
		placementv1beta1.ResourceSnapshotName(placementName, l.given, 0), placementv1beta1.ResourceSnapshotName(placementName, l.before, 0))
	if err := s.holds(ctx, r.object(), fmt.Sprintf("%s alone got the bad version, and was taken back to the one before", l.cluster),
		finding); err != nil {
		return err
	}
	if finding := notTakenBack(seen.members[l.cluster].atLeast(limited, 2), l.cluster, l.value, r.value); finding != "" {
		return s.failure(ctx, r.object(), fmt.Sprintf("%s changed to %s=%s and back", l.cluster, configKey, l.value), finding, nil)
	}
	for _, member := range s.Fleet.MemberNames() {
		if entries := seen.members[member].atLeast(limited, 0); member != l.cluster && len(entries) > 0 {
			return s.failure(ctx, r.object(), member+" was never touched", fmt.Sprintf("it was given %s=%s", configKey, entries[0].value), nil)
		}
	}
	return s.membersHave(ctx, r)
}

// notTakenBack returns what is wrong with writes that were to give one cluster a version, and to take it back. It is pure.
func notTakenBack(entries []entry, cluster, given, before string) string {
	if len(entries) != 2 {
		return fmt.Sprintf("there were %d writes: %v", len(entries), entries)
	}
	for i, want := range []string{given, before} {
		if entries[i].cluster != cluster || entries[i].value != want {
			return fmt.Sprintf("write %d took %s to %q", i+1, entries[i].cluster, entries[i].value)
		}
	}
	return ""
}
