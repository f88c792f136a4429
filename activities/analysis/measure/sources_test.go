package measure_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/testsuite"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	k8sclock "k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/analysis/measure"
	"github.com/fleetflow/fleetflow/activities/analysis/metricsource"
	"github.com/fleetflow/fleetflow/activities/outbound"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/test/fixture"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

var begin = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func TestAddressesThatAreRefused(t *testing.T) {
	hub := netip.MustParseAddrPort("10.0.0.1:443")
	for address, refused := range map[string]string{
		"127.0.0.1:80":          "own machine",
		"[::1]:80":              "own machine",
		"[::ffff:127.0.0.1]:80": "own machine",
		"169.254.169.254:80":    "link-local",
		"[fe80::1]:80":          "link-local",
		"224.0.0.1:80":          "multicast",
		"0.0.0.0:80":            "no address",
		"100.100.100.200:80":    "metadata",
		"[fd00:ec2::254]:80":    "metadata",
		"10.0.0.1:10250":        "API server",
		// A zone says by which interface an address is reached, not which one it is.
		"[::1%lo]:80":              "own machine",
		"[fe80::1%eth0]:80":        "link-local",
		"[fd00:ec2::254%eth0]:80":  "metadata",
		"[::ffff:127.0.0.1%lo]:80": "own machine",
		// NAT64 leads to the IPv4 address in it.
		"[64:ff9b::127.0.0.1]:80":           "own machine",
		"[64:ff9b::169.254.169.254]:80":     "link-local",
		"[64:ff9b::169.254.169.254%a]:80":   "link-local",
		"[64:ff9b::100.100.100.200]:80":     "metadata",
		"[64:ff9b::10.0.0.1]:443":           "API server",
		"[64:ff9b::192.168.7.7]:80":         "",
		"[64:ff9b:1::169.254.169.254]:80":   "link-local",
		"[64:ff9b:1:2::169.254.169.254]:80": "link-local",
		"[64:ff9b:1:a9fe:a9:fe00::]:80":     "link-local",
		"[64:ff9b:1:a9:fe:a9fe::]:80":       "link-local",
		"[64:ff9b:1::a9:fea9:fe00:0]:80":    "link-local",
		"[64:ff9b:1::]:80":                  "no address",
		"[64:ff9b:1::192.168.7.7]:80":       "",
		// So do other ways to write an IPv4 address, or to tunnel to it.
		"[::127.0.0.1]:80":                    "own machine",
		"[::7f00:1]:80":                       "own machine",
		"[::169.254.169.254]:80":              "link-local",
		"[::10.0.0.1]:443":                    "API server",
		"[::192.168.7.7]:80":                  "",
		"[::ffff:0:127.0.0.1]:80":             "own machine",
		"[2002:7f00::]:80":                    "own machine",
		"[2002:7f00:1::1]:80":                 "own machine",
		"[2002:a9fe:a9fe::1]:80":              "link-local",
		"[2002:a9fe:a9fe::1%a]:80":            "link-local",
		"[2002:a00:1::]:443":                  "API server",
		"[2002:c0a8:707::]:80":                "",
		"[2001:0:7f00:1::]:80":                "own machine",
		"[2001:0:808:808:0:0:5601:5601]:80":   "link-local",
		"[2001:db8::5efe:169.254.169.254]:80": "link-local",
		"[fd00::200:5efe:127.0.0.1]:80":       "own machine",
		"[2002:0:0:0:0:0:0:0]:80":             "no address",
		"0.1.2.3:80":                          "no address",
		"255.255.255.255:80":                  "no address",
		"168.63.129.16:80":                    "metadata",
		"168.63.129.16:32526":                 "metadata",
		"[::ffff:168.63.129.16]:80":           "metadata",
		"[64:ff9b::168.63.129.16]:80":         "metadata",
		"[fd20:ce::254]:80":                   "metadata",
		"[fd20:ce::254%eth0]:80":              "metadata",
		"[fd00:ec2::23]:80":                   "metadata",
		"192.0.0.192:80":                      "metadata",
		"10.0.0.2:443":                        "",
		"192.168.7.7:9090":                    "",
		"[2001:db8::1]:9090":                  "",
	} {
		why := outbound.Guard{Hub: []netip.AddrPort{hub}}.Refuse(netip.MustParseAddrPort(address))
		assert.Equal(t, refused != "", why != "", address)
		assert.Contains(t, why, refused, address)
	}
	local := outbound.Guard{Hub: []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:6443")}, AllowLoopback: true}
	assert.Empty(t, local.Refuse(netip.MustParseAddrPort("127.0.0.1:9090")))
	assert.NotEmpty(t, local.Refuse(netip.MustParseAddrPort("127.0.0.1:6443")), "not even on a fleet for development")
	assert.NotEmpty(t, local.Refuse(netip.MustParseAddrPort("169.254.169.254:80")))
}

// server is a source in this process.
type server struct {
	*httptest.Server
	mu     sync.Mutex
	asked  []*http.Request
	bodies []string
	answer func(n int, w http.ResponseWriter)
}

func newServer(t *testing.T, answer func(n int, w http.ResponseWriter)) *server {
	t.Helper()
	s := &server{answer: answer}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := make([]byte, 4096)
		n, _ := r.Body.Read(body)
		s.mu.Lock()
		s.asked, s.bodies = append(s.asked, r), append(s.bodies, string(body[:n]))
		count := len(s.asked)
		s.mu.Unlock()
		s.answer(count, w)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *server) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.asked)
}

func vector(value string) func(int, http.ResponseWriter) {
	return func(_ int, w http.ResponseWriter) {
		fmt.Fprintf(w, `{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[1,%q]}]}}`, value)
	}
}

// fleet is a hub in memory with one run whose stage waits for an analysis.
type fleet struct {
	t *testing.T
	client.Client
	clock *clocktesting.FakeClock
	acts  *measure.Activities
}

// eager is a clock on which whatever is waited for is due at once.
type eager struct{ *clocktesting.FakeClock }

func (c eager) NewTimer(d time.Duration) k8sclock.Timer {
	timer := c.FakeClock.NewTimer(d)
	c.Step(d)
	return timer
}

func newFleet(t *testing.T, guard outbound.Guard, source *fleetflowv1alpha1.MetricSource, metrics ...fleetflowv1alpha1.AnalysisMetric) *fleet {
	t.Helper()
	run := &placementv1beta1.ClusterStagedUpdateRun{ObjectMeta: metav1.ObjectMeta{Name: "web-17", UID: "uid-1"}}
	run.Spec.PlacementName = "web"
	run.Status.StagesStatus = []placementv1beta1.StageUpdatingStatus{{StageName: "canary", Clusters: []placementv1beta1.ClusterUpdatingStatus{{ClusterName: "member-1"}}}}
	analysis := &fleetflowv1alpha1.ClusterStageAnalysisRun{ObjectMeta: metav1.ObjectMeta{Name: "web-17-canary-after"}}
	analysis.Spec = fleetflowv1alpha1.StageAnalysisRunSpec{RunRef: fleetflowv1alpha1.UpdateRunReference{Name: "web-17", UID: "uid-1"}, Stage: "canary", Position: "After", Attempt: 1}
	for _, metric := range metrics {
		analysis.Spec.Metrics = append(analysis.Spec.Metrics, fleetflowv1alpha1.AnalysisRunMetric{AnalysisMetric: metric})
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "fleet-system", Name: "central", Labels: map[string]string{fleetflowv1alpha1.MetricSourceLabel: "central"},
			Annotations: map[string]string{fleetflowv1alpha1.MetricSourceURLAnnotation: source.Spec.URL},
		},
		Data: map[string][]byte{"token": []byte("s3cr3t-t0ken\n")},
	}
	stranger := secret.DeepCopy()
	stranger.Name = "stranger"
	stranger.Labels = nil
	c := fixture.NewClientBuilder(fixture.Scheme(t, corev1.AddToScheme, batchv1.AddToScheme)).WithObjects(run, analysis, source, secret, stranger).
		WithStatusSubresource(&placementv1beta1.ClusterStagedUpdateRun{}, &fleetflowv1alpha1.ClusterStageAnalysisRun{}, &fleetflowv1alpha1.MetricSource{}).Build()
	require.NoError(t, c.Status().Update(t.Context(), run))
	f := &fleet{t: t, Client: c, clock: clocktesting.NewFakeClock(begin)}
	f.acts = &measure.Activities{Client: c, Live: c, Sources: metricsource.NewSources(c, "fleet-system", guard), Objects: metricsource.Objects{Live: c}, Clock: eager{f.clock}, Metrics: measure.NewMetrics()}
	return f
}

func sourceAt(url string) *fleetflowv1alpha1.MetricSource {
	return &fleetflowv1alpha1.MetricSource{ObjectMeta: metav1.ObjectMeta{Name: "central"},
		Spec: fleetflowv1alpha1.MetricSourceSpec{Type: fleetflowv1alpha1.MetricSourcePrometheus, URL: url}}
}

var local = outbound.Guard{AllowLoopback: true}

func errors(count int32) fleetflowv1alpha1.AnalysisMetric {
	return fleetflowv1alpha1.AnalysisMetric{
		Name: "errors", Prometheus: &fleetflowv1alpha1.PrometheusQuery{SourceRef: fleetflowv1alpha1.MetricSourceReference{Name: "central"}, Query: `errors{cluster=~"$(clusters)"}`},
		Success: "result <= 0.01", Count: count, Interval: &fleetflowv1alpha1.Duration{Duration: 5 * time.Second},
	}
}

// measure measures as often as it is asked to.
func (f *fleet) measure() (calls int, result wf.MeasureResult, got *fleetflowv1alpha1.ClusterStageAnalysisRun) {
	f.t.Helper()
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestActivityEnvironment()
	env.RegisterActivityWithOptions(f.acts.MeasureAnalysis, activity.RegisterOptions{Name: wf.MeasureAnalysis})
	for {
		calls++
		value, err := env.ExecuteActivity(wf.MeasureAnalysis, wf.MeasureRequest{Run: wf.Ref{Name: "web-17", UID: "uid-1"}, Analysis: "web-17-canary-after", Stage: "canary"})
		require.NoError(f.t, err)
		result = wf.MeasureResult{}
		require.NoError(f.t, value.Get(&result))
		if !result.Again {
			break
		}
	}
	got = &fleetflowv1alpha1.ClusterStageAnalysisRun{}
	require.NoError(f.t, f.Get(f.t.Context(), types.NamespacedName{Name: "web-17-canary-after"}, got))
	return calls, result, got
}

func TestThreeGoodMeasurementsPass(t *testing.T) {
	s := newServer(t, vector("0.002"))
	f := newFleet(t, local, sourceAt(s.URL), errors(3))
	calls, result, got := f.measure()
	assert.Equal(t, 1, calls, "A9.1: one call takes them all")
	assert.Equal(t, wf.MeasureResult{Phase: "Succeeded", Measured: 3}, result)
	assert.Equal(t, 10*time.Second, f.clock.Since(begin))
	assert.EqualValues(t, 3, got.Status.Metrics[0].Succeeded)
	assert.Equal(t, "errors 0.002 (want result <= 0.01): 3 of 3 good", fleetflowv1alpha1.MessageOfAttempt(got))
	assert.Equal(t, `errors{cluster=~"member-1"}`, got.Status.Metrics[0].Query)
	assert.Equal(t, "/api/v1/query", s.asked[0].URL.Path)
	_, _, _ = f.measure()
	assert.Equal(t, 3, s.count(), "what has ended is not measured again")
}

func TestAnEndpointThatFailsIsAResult(t *testing.T) {
	for sentence, test := range map[string]struct {
		answer  func(int, http.ResponseWriter)
		limits  *fleetflowv1alpha1.MetricSourceLimits
		guard   outbound.Guard
		auth    *fleetflowv1alpha1.MetricSourceAuth
		message string
		packets bool
	}{
		"it is refused": {answer: vector("0"), message: "is refused: it is an address of the hub agent's own machine"},
		"it redirects": {guard: local, packets: true, message: "redirect (302), which is not followed", answer: func(_ int, w http.ResponseWriter) {
			w.Header().Set("Location", "http://169.254.169.254/")
			w.WriteHeader(http.StatusFound)
		}},
		"it answers too much": {guard: local, packets: true, message: "longer than 1048576 bytes", answer: func(_ int, w http.ResponseWriter) {
			fmt.Fprint(w, strings.Repeat("x", 2<<20))
		}},
		"it answers slowly": {guard: local, packets: true, limits: &fleetflowv1alpha1.MetricSourceLimits{Timeout: &fleetflowv1alpha1.Duration{Duration: 100 * time.Millisecond}, RequestsPerSecond: 100},
			message: "has not answered within 100ms", answer: func(_ int, w http.ResponseWriter) {
				<-time.After(300 * time.Millisecond)
			}},
		"it answers an error, with a body that nobody may see": {guard: local, packets: true, message: "the source answers 400 (bad_data)", answer: func(_ int, w http.ResponseWriter) {
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprint(w, `{"status":"error","errorType":"bad_data","error":"hidden"}`)
		}},
		"it answers a matrix": {guard: local, packets: true, message: `UnexpectedResult: the query gives no vector and no scalar but "matrix"`, answer: func(_ int, w http.ResponseWriter) {
			fmt.Fprint(w, `{"status":"success","data":{"resultType":"matrix","result":[]}}`)
		}},
		"its Secret is for another": {guard: local, message: "it needs the label fleetflow.io/metric-source=central", answer: vector("0"),
			auth: &fleetflowv1alpha1.MetricSourceAuth{Type: fleetflowv1alpha1.MetricSourceAuthBearer, Secret: &fleetflowv1alpha1.MetricSourceSecret{Name: "stranger", Key: "token"}}},
	} {
		t.Run(sentence, func(t *testing.T) {
			s := newServer(t, test.answer)
			source := sourceAt(s.URL)
			source.Spec.Limits = test.limits
			source.Spec.Auth = test.auth
			f := newFleet(t, test.guard, source, errors(1))
			_, result, got := f.measure()
			assert.Equal(t, wf.MeasureResult{Phase: "Error", Worst: "errors"}, result)
			assert.EqualValues(t, 5, got.Status.Metrics[0].Errors, "A9.3")
			assert.Contains(t, got.Status.Metrics[0].Last[0].Message, test.message)
			assert.NotContains(t, fmt.Sprint(got.Status), "hidden")
			assert.Equal(t, test.packets, s.count() > 0)
		})
	}
}

func TestCredentialsAreSentAndNotShown(t *testing.T) {
	s := newServer(t, vector("0"))
	source := sourceAt(s.URL)
	source.Spec.Auth = &fleetflowv1alpha1.MetricSourceAuth{Type: fleetflowv1alpha1.MetricSourceAuthBearer, Secret: &fleetflowv1alpha1.MetricSourceSecret{Name: "central", Key: "token"}}
	f := newFleet(t, local, source, errors(1))
	_, result, got := f.measure()
	assert.Equal(t, "Succeeded", result.Phase)
	assert.Equal(t, "Bearer s3cr3t-t0ken", s.asked[0].Header.Get("Authorization"))
	assert.NotContains(t, fmt.Sprint(got), "s3cr3t-t0ken")
}

func TestNoDataIsInconclusive(t *testing.T) {
	s := newServer(t, func(_ int, w http.ResponseWriter) {
		fmt.Fprint(w, `{"status":"success","data":{"resultType":"vector","result":[]}}`)
	})
	metric := errors(10)
	metric.InconclusiveLimit = 3
	_, result, got := newFleet(t, local, sourceAt(s.URL), metric).measure()
	assert.Equal(t, "Inconclusive", result.Phase)
	assert.EqualValues(t, 4, got.Status.Metrics[0].Measured, "A9.4")
	assert.Equal(t, "no data", got.Status.Metrics[0].Last[0].Message)
}

func TestADayOfMeasurementsStaysSmall(t *testing.T) {
	s := newServer(t, vector("0.002"))
	source := sourceAt(s.URL)
	source.Spec.Limits = &fleetflowv1alpha1.MetricSourceLimits{RequestsPerSecond: 1000}
	metric := errors(360)
	metric.Interval.Duration = 10 * time.Second
	f := newFleet(t, local, source, metric)
	calls, result, got := f.measure()
	assert.Equal(t, 360, result.Measured)
	assert.LessOrEqual(t, calls, 7, "an hour takes no more calls, of 6 events each")
	assert.Len(t, got.Status.Metrics[0].Last, 10)
}

func TestAWebhookDecides(t *testing.T) {
	s := newServer(t, func(n int, w http.ResponseWriter) {
		if n == 1 {
			w.Header().Set("Retry-After", "7")
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		fmt.Fprint(w, `{"outcome":"Failure","message":"2 of 9 checks"}`)
	})
	source := sourceAt(s.URL)
	source.Spec.Type = fleetflowv1alpha1.MetricSourceWebhook
	f := newFleet(t, local, source, fleetflowv1alpha1.AnalysisMetric{Name: "smoke", Webhook: &fleetflowv1alpha1.WebhookCall{SourceRef: fleetflowv1alpha1.MetricSourceReference{Name: "central"}, Path: "/check", Body: map[string]string{"suite": "canary"}}})
	_, result, got := f.measure()
	assert.Equal(t, wf.MeasureResult{Phase: "Failed", Measured: 1, Worst: "smoke"}, result)
	assert.Equal(t, 7*time.Second, f.clock.Since(begin), "it asked to be left alone, which counts as nothing")
	assert.Equal(t, "smoke 2 of 9 checks: 0 of 1 good, 1 bad (at most 0)", fleetflowv1alpha1.MessageOfAttempt(got))
	assert.Contains(t, s.bodies[1], `"body":{"suite":"canary"}`)
	assert.Contains(t, s.asked[1].Header.Get("Ce-Id"), "/1/smoke/1")
}

func TestASourceThatPutsMeasurementsOffIsCountedAndLeftAlone(t *testing.T) {
	s := newServer(t, func(_ int, w http.ResponseWriter) {
		w.Header().Set("Retry-After", "120")
		w.WriteHeader(http.StatusTooManyRequests)
	})
	source := sourceAt(s.URL)
	source.Spec.Type = fleetflowv1alpha1.MetricSourceWebhook
	f := newFleet(t, local, source, fleetflowv1alpha1.AnalysisMetric{Name: "smoke", Webhook: &fleetflowv1alpha1.WebhookCall{SourceRef: fleetflowv1alpha1.MetricSourceReference{Name: "central"}}})
	_, result, got := f.measure()
	assert.Equal(t, wf.MeasureResult{Phase: "Running"}, result)
	require.NotNil(t, got.Status.NextMeasurementTime, "until then the gates do not ask to measure")
	assert.Equal(t, begin.Add(2*time.Minute), got.Status.NextMeasurementTime.UTC())
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(f.acts.Metrics.Collectors()...)
	count, err := testutil.GatherAndCount(registry, "fleetflow_analysis_put_off_total")
	require.NoError(t, err)
	assert.Equal(t, 1, count)
}

func TestASourceSaysWhetherItHasAnswered(t *testing.T) {
	s := newServer(t, vector("0.002"))
	source := sourceAt(s.URL)
	hangsUp := newServer(t, func(_ int, w http.ResponseWriter) {
		if connection, _, err := http.NewResponseController(w).Hijack(); err == nil {
			_ = connection.Close()
		}
	})
	f := newFleet(t, local, sourceAt(hangsUp.URL), errors(1))
	ready := func() (*metav1.Condition, *metav1.Time) {
		got := &fleetflowv1alpha1.MetricSource{}
		require.NoError(t, f.Get(t.Context(), types.NamespacedName{Name: "central"}, got))
		return meta.FindStatusCondition(got.Status.Conditions, fleetflowv1alpha1.ConditionTypeReady), got.Status.LastContactTime
	}
	_, result, _ := f.measure()
	assert.Equal(t, "Error", result.Phase)
	condition, contact := ready()
	require.NotNil(t, condition)
	assert.Equal(t, metav1.ConditionFalse, condition.Status)
	assert.Equal(t, fleetflowv1alpha1.ReasonUnreachable, condition.Reason)
	assert.Contains(t, condition.Message, "When it was asked last: the source cannot be reached")
	assert.Nil(t, contact)

	again := &fleetflowv1alpha1.MetricSource{}
	require.NoError(t, f.Get(t.Context(), types.NamespacedName{Name: "central"}, again))
	again.Spec.URL = source.Spec.URL // as if it were back
	require.NoError(t, f.Update(t.Context(), again))
	run := &fleetflowv1alpha1.ClusterStageAnalysisRun{}
	require.NoError(t, f.Get(t.Context(), types.NamespacedName{Name: "web-17-canary-after"}, run))
	run.Spec.Attempt = 2
	require.NoError(t, f.Update(t.Context(), run))
	_, result, _ = f.measure()
	assert.Equal(t, "Succeeded", result.Phase)
	condition, contact = ready()
	assert.Equal(t, metav1.ConditionTrue, condition.Status)
	require.NotNil(t, contact)
	assert.WithinDuration(t, f.clock.Now(), contact.Time, time.Minute)
}

func TestARunThatIsGoneIsNotMeasured(t *testing.T) {
	s := newServer(t, vector("0"))
	f := newFleet(t, local, sourceAt(s.URL), errors(1))
	require.NoError(t, f.Delete(t.Context(), &placementv1beta1.ClusterStagedUpdateRun{ObjectMeta: metav1.ObjectMeta{Name: "web-17"}}))
	_, result, _ := f.measure()
	assert.Equal(t, wf.MeasureResult{}, result)
	assert.Zero(t, s.count())
}

func TestASourceIsCheckedWithoutACall(t *testing.T) {
	f := newFleet(t, outbound.Guard{}, withToken("central"))
	for want, source := range map[string]*fleetflowv1alpha1.MetricSource{
		fleetflowv1alpha1.ReasonAddressRefused:    sourceAt("http://169.254.169.254/latest"),
		fleetflowv1alpha1.ReasonSecretNotFound:    withToken("none"),
		fleetflowv1alpha1.ReasonSecretNotLabelled: withToken("stranger"),
	} {
		problem, err := f.acts.Sources.Check(t.Context(), source)
		require.NoError(t, err)
		require.NotNil(t, problem, want)
		assert.Equal(t, want, problem.Reason)
	}
	problem, err := f.acts.Sources.Check(t.Context(), withToken("central"))
	require.NoError(t, err)
	assert.Nil(t, problem, "that a name cannot be resolved now is no reason")
}

func withToken(secret string) *fleetflowv1alpha1.MetricSource {
	source := sourceAt("https://prometheus.invalid")
	source.Spec.Auth = &fleetflowv1alpha1.MetricSourceAuth{Type: fleetflowv1alpha1.MetricSourceAuthBearer, Secret: &fleetflowv1alpha1.MetricSourceSecret{Name: secret, Key: "token"}}
	return source
}
