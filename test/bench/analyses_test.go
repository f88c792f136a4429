//go:build bench

package bench

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/test/bench/hollow"
	"github.com/fleetflow/fleetflow/test/devfleet/controlplane"
)

const (
	// measureEvery is the interval of the analyses, measureFor for how long they are looked at.
	measureEvery = 10 * time.Second
	measureFor   = 2 * time.Minute
	// maxMeasuringMemory bounds the hub agent while 100 runs measure.
	maxMeasuringMemory = 400 << 20
)

// TestAnalyses has 100 runs measure at once, each every ten seconds, before their first stage.
func TestAnalyses(t *testing.T) {
	f := shared
	runs := scaled(100, 10)
	f.grow(t, few)
	names := named("measuring", runs)
	title := fmt.Sprintf("%d runs with an analysis every %s", runs, measureEvery)
	asked := f.startSource(t)
	measured := &placementv1beta1.ClusterStagedUpdateStrategy{ObjectMeta: metav1.ObjectMeta{Name: "measuring"}}
	measured.Spec.Stages = []placementv1beta1.StageConfig{{
		Name: "all", BeforeStageTasks: []placementv1beta1.StageTask{{Type: placementv1beta1.StageTaskTypeAnalysis, Analysis: &placementv1beta1.AnalysisConfig{
			Templates: []placementv1beta1.AnalysisTemplate{{Name: sourceName}},
		}}},
	}}
	f.strategy(t, measured)
	f.content(t, names...)
	f.place(t, func(i int) *placementv1beta1.PlacementPolicy {
		return &placementv1beta1.PlacementPolicy{PlacementType: placementv1beta1.PickFixedPlacementType, ClusterNames: []string{hollow.Name(i % few)}}
	}, external(), names...)
	f.awaitPlacements(t, placementv1beta1.ConditionTypeScheduled, "0", names...)
	f.awaitNoneOpen(t)
	f.startRuns(t, "run", measured.Name, names...)
	f.await(t, patience, "all runs to measure", func() string {
		left := 0
		for _, name := range names {
			run := &fleetflowv1alpha1.ClusterStageAnalysisRun{}
			if f.hub.Get(t.Context(), client.ObjectKey{Name: name + "-run-all-before"}, run) != nil || len(run.Status.Metrics) == 0 || run.Status.Metrics[0].Measured == 0 {
				left++
			}
		}
		if left > 0 {
			return fmt.Sprintf("%d of %d do not yet", left, runs)
		}
		return ""
	})
	memory := f.peakMemory(t)
	before := asked.Load()
	since := f.cpu(t)
	share, written := f.rest(t, measureFor)
	used := f.cpuSince(t, since)
	questions := float64(asked.Load() - before)
	peak := memory()
	t.Logf("%s: CPU time in %s: %s; %.0f questions; writes: %s", title, measureFor, used, questions, written)
	f.figures.add(t, title+": hub agent's share of a core", "<= 10 %", percent(share))
	f.figures.add(t, title+": Temporal's share of a core", "-", percent(used[controlplane.Temporal]/measureFor.Seconds()))
	f.figures.add(t, title+": hub agent's memory", "<= 400 MiB", bytesOf(peak))
	f.figures.add(t, title+": writes per question", "-", quantity{written.counted() / questions, ""})
	assert.GreaterOrEqual(t, questions, float64(runs*(int(measureFor/measureEvery)-2)), "questions in %s", measureFor)
	assert.LessOrEqual(t, peak, int64(maxMeasuringMemory))
}

// sourceName is the name of the MetricSource and of the StageAnalysis that asks it.
const sourceName = "bench"

// startSource starts a server that answers queries as Prometheus does, always well, and makes a template that asks it; it
// returns how often it was asked.
func (f *fleet) startSource(t *testing.T) *atomic.Int64 {
	t.Helper()
	asked := &atomic.Int64{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		_, _ = fmt.Fprint(w, `{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[1,"0.002"]}]}}`)
	}))
	t.Cleanup(server.Close)
	template := &fleetflowv1alpha1.StageAnalysis{ObjectMeta: metav1.ObjectMeta{Name: sourceName}}
	template.Spec.Metrics = []fleetflowv1alpha1.AnalysisMetric{{
		Name: "error-ratio", Prometheus: &fleetflowv1alpha1.PrometheusQuery{SourceRef: fleetflowv1alpha1.MetricSourceReference{Name: sourceName}, Query: `errors{cluster=~"$(clusters)"}`},
		Success: "result <= 0.01", Count: 1000, Interval: &fleetflowv1alpha1.Duration{Duration: measureEvery},
	}}
	for _, object := range []client.Object{
		&fleetflowv1alpha1.MetricSource{
			ObjectMeta: metav1.ObjectMeta{Name: sourceName},
			Spec: fleetflowv1alpha1.MetricSourceSpec{
				Type: fleetflowv1alpha1.MetricSourcePrometheus, URL: server.URL, AllowPlainText: true,
				Limits: &fleetflowv1alpha1.MetricSourceLimits{RequestsPerSecond: 50}, // without them, 5
			},
		}, template,
	} {
		require.NoError(t, f.hub.Create(t.Context(), object))
		t.Cleanup(func() { _ = f.hub.Delete(context.Background(), object) }) // the next measurement does not mind what remains
	}
	return asked
}
