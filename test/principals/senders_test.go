//go:build integration

package principals

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"

	"github.com/fleetflow/fleetflow/worker"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

func TestTheAgentSaysAtItsStartWhetherTemporalNamesSenders(t *testing.T) {
	for name, principals := range map[string]bool{"with principals": true, "without principals": false} {
		t.Run(name, func(t *testing.T) { startsRunner(startServer(t, principals), principals) })
	}
}

func startsRunner(s *server, principals bool) {
	said := make(chan string, 100)
	unnamed := make(chan string, 1)
	metrics := worker.NewMetrics()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(metrics.Collectors()...)
	runner := &worker.Runner{
		Client: s.as("hub-agent", "fleetflow:write"), Namespace: wf.DefaultNamespace, NeedsSenders: true, Metrics: metrics,
		Log: funcr.New(func(_, args string) { said <- args }, funcr.Options{}), SendersUnnamed: func(message string) { unnamed <- message },
	}
	ctx, cancel := context.WithTimeout(s.Context(), patience)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- runner.Start(ctx) }()
	sentence := map[bool]string{true: "Temporal names the senders of approvals", false: "No approval through Temporal is verified"}[principals]
	for found := false; !found; {
		select {
		case line := <-said:
			found = strings.Contains(line, sentence)
			assert.NotContains(s, line, map[bool]string{false: "Temporal names the senders of approvals", true: "No approval through Temporal is verified"}[principals])
		case <-ctx.Done():
			require.Fail(s, "the agent does not say it", sentence)
		}
	}
	if !principals {
		assert.Contains(s, <-unnamed, "frontend.enablePrincipalPropagation")
	}
	cancel()
	require.NoError(s, <-ended)
	assert.Empty(s, unnamed)
	require.NoError(s, testutil.GatherAndCompare(registry, strings.NewReader(fmt.Sprintf(`
# HELP fleetflow_temporal_names_senders 1 if Temporal names the senders of approvals, which --temporal-approvals=verified needs, else 0; without a value where that is not known.
# TYPE fleetflow_temporal_names_senders gauge
fleetflow_temporal_names_senders %d
`, map[bool]int{true: 1}[principals])), "fleetflow_temporal_names_senders"))
	probe, err := s.as("eve", "fleetflow:read").DescribeWorkflowExecution(s.Context(), "sender-probe", "")
	require.NoError(s, err)
	assert.Equal(s, enums.WORKFLOW_EXECUTION_STATUS_TERMINATED, probe.GetWorkflowExecutionInfo().GetStatus())
}
