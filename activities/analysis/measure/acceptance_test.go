package measure_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/testsuite"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/fleetflow/fleetflow/activities/outbound"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// eventsOfACall are those that one call of an activity adds to a history: three of its own, and three of the task of the workflow after it.
const eventsOfACall = 6

// onStatus has something else done where an analysis is written.
func (f *fleet) onStatus(do func(write func() error) error) {
	hub, is := f.Client.(client.WithWatch)
	require.True(f.t, is)
	f.acts.Client = interceptor.NewClient(hub, interceptor.Funcs{
		SubResourceUpdate: func(ctx context.Context, c client.Client, subresource string, object client.Object, options ...client.SubResourceUpdateOption) error {
			return do(func() error { return c.SubResource(subresource).Update(ctx, object, options...) })
		},
	})
}

// TestADaysFiguresStaySmall is a twentieth of the day of A9.5: 5 metrics every 10 s.
func TestADaysFiguresStaySmall(t *testing.T) {
	const metrics, each, part = 5, 432, 20
	s := newServer(t, vector("0.002"))
	source := sourceAt(s.URL)
	source.Spec.Limits = &fleetflowv1alpha1.MetricSourceLimits{RequestsPerSecond: 1000}
	var all []fleetflowv1alpha1.AnalysisMetric
	for i := range metrics {
		metric := errors(each)
		metric.Name = fmt.Sprintf("errors-%d", i)
		metric.Interval = &fleetflowv1alpha1.Duration{Duration: 10 * time.Second}
		all = append(all, metric)
	}
	f := newFleet(t, local, source, all...)
	writes := 0
	f.onStatus(func(write func() error) error { writes++; return write() })
	calls, result, got := f.measure()
	took := f.clock.Since(begin)
	t.Logf("A9.5: %d measurements in %s: %d calls, %d status writes", result.Measured, took, calls, writes)
	assert.Equal(t, metrics*each, result.Measured)
	assert.LessOrEqual(t, calls*eventsOfACall, 1300/part, "A9.5: events")
	assert.LessOrEqual(t, float64(writes), 6*took.Minutes()+1, "A9.5: status writes a minute")
	size, err := json.Marshal(got)
	require.NoError(t, err)
	assert.LessOrEqual(t, len(size), 64<<10, "A9.5: the object")
	payload, err := json.Marshal(result)
	require.NoError(t, err)
	assert.LessOrEqual(t, len(payload), 2<<10, "A9.5: the payload")
}

func TestAKillLosesTenSecondsOfMeasurements(t *testing.T) {
	s := newServer(t, vector("0.002"))
	metric := errors(10)
	metric.Interval = &fleetflowv1alpha1.Duration{Duration: 10 * time.Second}
	f := newFleet(t, local, sourceAt(s.URL), metric)
	killed := fmt.Errorf("killed")
	f.onStatus(func(write func() error) error {
		if s.count() >= 5 {
			return killed // the fifth is measured, and not written down
		}
		return write()
	})
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestActivityEnvironment()
	env.RegisterActivityWithOptions(f.acts.MeasureAnalysis, activity.RegisterOptions{Name: wf.MeasureAnalysis})
	_, err := env.ExecuteActivity(wf.MeasureAnalysis, wf.MeasureRequest{Run: wf.Ref{Name: "web-17", UID: "uid-1"}, Analysis: "web-17-canary-after", Stage: "canary"})
	require.ErrorContains(t, err, "killed")
	require.Equal(t, 5, s.count())

	f.onStatus(func(write func() error) error { return write() })
	_, result, got := f.measure()
	assert.Equal(t, "Succeeded", result.Phase)
	assert.EqualValues(t, 10, got.Status.Metrics[0].Measured, "A9.6")
	assert.LessOrEqual(t, s.count(), 11, "A9.6: at most one request more for each 10 s that are lost")
}

func TestAddressesOfASourceAreRefusedBeforeAnyPacket(t *testing.T) {
	for _, url := range []string{"http://169.254.169.254/latest/meta-data", "http://127.0.0.1:9090", "http://[::1]:9090", "http://localhost:9090"} {
		f := newFleet(t, outbound.Guard{}, sourceAt(url), errors(1))
		problem, err := f.acts.Sources.Check(t.Context(), sourceAt(url))
		require.NoError(t, err)
		require.NotNil(t, problem, url)
		assert.Equal(t, fleetflowv1alpha1.ReasonAddressRefused, problem.Reason, "A9.7: %s", url)
	}
	s := newServer(t, vector("0"))
	f := newFleet(t, outbound.Guard{}, sourceAt(strings.Replace(s.URL, "127.0.0.1", "localhost", 1)), errors(1))
	_, result, got := f.measure()
	assert.Equal(t, "Error", result.Phase)
	assert.Contains(t, got.Status.Metrics[0].Last[0].Message, "is refused")
	assert.Zero(t, s.count(), "A9.7: a name that resolves to such an address gets nothing")
}

func TestAThousandClustersAreOneRequestEach(t *testing.T) {
	const clusters = 1000
	s := newServer(t, func(_ int, w http.ResponseWriter) {
		var samples []string
		for i := range clusters {
			value := "0.001"
			if i%10 == 0 {
				value = "0.5"
			}
			samples = append(samples, fmt.Sprintf(`{"metric":{"cluster":"member-%04d"},"value":[1,%q]}`, i, value))
		}
		fmt.Fprintf(w, `{"status":"success","data":{"resultType":"vector","result":[%s]}}`, strings.Join(samples, ","))
	})
	metric := errors(3)
	metric.Prometheus.Query = "sum by (cluster) (errors)"
	metric.PerCluster = &fleetflowv1alpha1.PerCluster{}
	metric.FailureLimit = 2
	f := newFleet(t, local, sourceAt(s.URL), metric)
	run := &placementv1beta1.ClusterStagedUpdateRun{}
	require.NoError(t, f.Get(t.Context(), types.NamespacedName{Name: "web-17"}, run))
	run.Status.StagesStatus[0].Clusters = nil
	for i := range clusters {
		run.Status.StagesStatus[0].Clusters = append(run.Status.StagesStatus[0].Clusters, placementv1beta1.ClusterUpdatingStatus{ClusterName: fmt.Sprintf("member-%04d", i)})
	}
	require.NoError(t, f.Status().Update(t.Context(), run))
	_, _, got := f.measure()
	assert.Equal(t, 3, s.count(), "A9.8: one request a measurement")
	assert.EqualValues(t, 900, got.Status.Metrics[0].Clusters.Passing)
	assert.Len(t, got.Status.Metrics[0].Clusters.Worst, 20, "A9.8")
	size, err := json.Marshal(got)
	require.NoError(t, err)
	assert.LessOrEqual(t, len(size), 64<<10)
}

func TestASourceThatIsDeletedMidwayIsAnError(t *testing.T) {
	source := sourceAt("http://127.0.0.1:1")
	f := newFleet(t, local, source, errors(1))
	require.NoError(t, f.Delete(t.Context(), source))
	_, result, got := f.measure()
	assert.Equal(t, "Error", result.Phase)
	assert.EqualValues(t, 5, got.Status.Metrics[0].Errors, "A8: it counts to consecutiveErrorLimit")
	assert.Contains(t, got.Status.Metrics[0].Last[0].Message, "there is no MetricSource central")
}

func TestAnAnswerThatIsAStringIsAnError(t *testing.T) {
	s := newServer(t, func(_ int, w http.ResponseWriter) {
		fmt.Fprint(w, `{"status":"success","data":{"resultType":"string","result":[1,"0.001"]}}`)
	})
	_, result, got := newFleet(t, local, sourceAt(s.URL), errors(1)).measure()
	assert.Equal(t, "Error", result.Phase)
	assert.Contains(t, got.Status.Metrics[0].Last[0].Message, "UnexpectedResult", "A8")
}
