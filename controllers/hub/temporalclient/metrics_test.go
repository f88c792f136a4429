package temporalclient_test

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/fleetflow/fleetflow/controllers/hub/temporalclient"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

func registered(t *testing.T, m *temporalclient.Metrics) *prometheus.Registry {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	for _, c := range m.Collectors() {
		require.NoError(t, registry.Register(c))
	}
	return registry
}

// One metric of the SDK comes with different tags, from different places, more than once.
func TestMetricsOfTheSDKAreExported(t *testing.T) {
	m := temporalclient.NewMetrics()
	sdk := m.SDK().WithTags(map[string]string{"namespace": "default"})
	sdk.Counter("temporal_request").Inc(1)
	sdk.WithTags(map[string]string{"operation": "Poll"}).Counter("temporal_request").Inc(2)
	sdk.WithTags(map[string]string{"operation": "Poll"}).Counter("temporal_request").Inc(3)
	sdk.Gauge("temporal_sticky_cache_size").Update(7)
	sdk.Timer("temporal_request_latency").Record(2 * time.Second)
	require.NoError(t, testutil.GatherAndCompare(registered(t, m), strings.NewReader(`
# HELP temporal_request_total Metric of Temporal's SDK.
# TYPE temporal_request_total counter
temporal_request_total{namespace="default"} 1
temporal_request_total{namespace="default",operation="Poll"} 5
# HELP temporal_sticky_cache_size Metric of Temporal's SDK.
# TYPE temporal_sticky_cache_size gauge
temporal_sticky_cache_size{namespace="default"} 7
`), "temporal_request_total", "temporal_sticky_cache_size"))
	families, err := registered(t, m).Gather()
	require.NoError(t, err)
	for _, family := range families {
		if family.GetName() == "temporal_request_latency_seconds" {
			require.InDelta(t, 2.0, family.GetMetric()[0].GetHistogram().GetSampleSum(), 1e-9)
			return
		}
	}
	t.Fatal("no latency")
}

func TestTheConnectionAndItsPokesAreCounted(t *testing.T) {
	server := serve(t)
	a := newAuthority(t, "authority")
	server.trust(t, a)
	security, write := files(t)
	write(a)
	m := temporalclient.NewMetrics()
	registry := registered(t, m)
	expect := func(connected, failed string) error {
		text := "# HELP fleetflow_temporal_connected 1 while this process has a connection to Temporal, else 0.\n# TYPE fleetflow_temporal_connected gauge\nfleetflow_temporal_connected " + connected + "\n"
		if failed != "" {
			text += "# HELP fleetflow_temporal_pokes_total Workflows woken for their objects, by whether Temporal took the signal.\n# TYPE fleetflow_temporal_pokes_total counter\nfleetflow_temporal_pokes_total{outcome=\"failed\"} " + failed + "\n"
		}
		return testutil.GatherAndCompare(registry, strings.NewReader(text), "fleetflow_temporal_connected", "fleetflow_temporal_pokes_total")
	}
	e, err := temporalclient.New(temporalclient.Options{Address: server.address, Namespace: "default", Security: security, Metrics: m})
	require.NoError(t, err)
	require.NoError(t, expect("0", ""), "the client connects when it must")
	require.NoError(t, e.Check(t.Context()))
	require.NoError(t, expect("1", ""))
	// This server knows no workflows.
	require.Error(t, e.Poke(t.Context(), wf.Ref{Kind: wf.KindClusterResourcePlacement, Name: "p", UID: "u"}, wf.Poke{}))
	require.NoError(t, expect("1", "1"))
	answers := func(value string) error {
		return testutil.GatherAndCompare(registry, strings.NewReader("# HELP fleetflow_temporal_answers 1 if Temporal has answered the last question of this agent with its database, else 0. "+
			"Only the agent that leads asks; others have no value.\n# TYPE fleetflow_temporal_answers gauge\nfleetflow_temporal_answers "+value+"\n"), "fleetflow_temporal_answers")
	}
	require.Error(t, answers("0"), "an agent that does not lead has not asked")
	require.ErrorIs(t, e.RecordAnswer(io.EOF), io.EOF)
	require.NoError(t, answers("0"))
	require.NoError(t, e.RecordAnswer(nil))
	require.NoError(t, answers("1"))
	e.SDK.Close()
	require.Eventually(t, func() bool { return expect("0", "1") == nil }, 2*time.Minute, 10*time.Millisecond, "%v", expect("0", "1"))
}
