//go:build integration

package integration

import (
	"bufio"
	"net/http"
	"path/filepath"
	"slices"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/fleetflow/fleetflow/test/dashboards"
)

// served are the names of the metrics that an agent serves.
func (s *spec) served(listener string) map[string]bool {
	s.Helper()
	request, err := http.NewRequestWithContext(s.Context(), http.MethodGet, "http://"+s.Fleet.Address(listener)+"/metrics", http.NoBody)
	require.NoError(s, err)
	response, err := http.DefaultClient.Do(request)
	require.NoError(s, err)
	defer response.Body.Close()
	require.Equal(s, http.StatusOK, response.StatusCode)
	names := map[string]bool{}
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() {
		if described, ok := strings.CutPrefix(lines.Text(), "# TYPE "); ok {
			name, _, _ := strings.Cut(described, " ")
			names[name] = true
		}
	}
	require.NoError(s, lines.Err())
	return names
}

// afterFailures are metrics that Temporal's SDK serves from the first failure on.
var afterFailures = []string{
	"temporal_workflow_task_execution_failed_total", "temporal_activity_execution_failed_total", "temporal_long_request_failure_total",
}

// afterQuestions are metrics by metric source: they are served from the first question to one on.
var afterQuestions = []string{"fleetflow_analysis_request_duration_seconds", "fleetflow_analysis_put_off_total"}

// onlyThen are metrics that are served only with approvals that have to be verified, while a removal is refused or takes long, while a
// hold is in force, with a bundled Temporal, once another client has kept overwriting an object, while an override has no effect, while
// an object fails, and while not all is placed.
var onlyThen = []string{
	"fleetflow_temporal_names_senders", "fleetflow_member_removals_pending", "fleetflow_rollout_hold_created_timestamp_seconds",
	"fleetflow_member_contested_repairs_total", "fleetflow_overrides_without_effect", "fleetflow_placement_incomplete",
	"fleetflow_temporal_database_bytes", "fleetflow_member_failing_objects",
}

// withSinks are metrics that are served only while records are written and delivered.
var withSinks = []string{
	"fleetflow_audit_pending", "fleetflow_audit_oldest_pending_seconds", "fleetflow_audit_delivered_total", "fleetflow_audit_given_up_total",
	"fleetflow_audit_dropped_total",
}

// whileItRuns are metrics that are served only while a run is under way.
var whileItRuns = []string{"fleetflow_update_run_task_begun_timestamp_seconds", "fleetflow_clusters_in_flight", "fleetflow_update_run_clusters_in_flight"}

// dashboardsFindTheirMetrics asks the agents, after a rollout with all there is to it, for what dashboard and alerts use.
func dashboardsFindTheirMetrics(s *spec) {
	s.externalPlacement()
	s.strategy(everywhere(approval))
	run := s.startRun("run", "0")
	s.awaitRequest(run, everywhere(approval).Name)
	queries, err := dashboards.Queries(filepath.Join(root, "deploy", "charts"))
	require.NoError(s, err)
	wanted := map[string]string{}
	for _, q := range queries {
		for _, metric := range dashboards.Metrics(q.Expression) {
			wanted[metric] = q.Where
		}
	}
	require.NotEmpty(s, wanted)
	for _, metric := range slices.Concat(afterFailures, afterQuestions, onlyThen, withSinks) {
		delete(wanted, metric)
	}
	look := func() []string {
		served := s.served("hub-agent/metrics")
		for name := range s.served("member-1/agent/metrics") {
			served[name] = true
		}
		var missing []string
		for metric, where := range wanted {
			if !served[metric] {
				missing = append(missing, metric+" of "+where)
			}
		}
		return missing
	}
	for _, metric := range whileItRuns {
		// The request is there before the run says in its status that it waits.
		require.Eventually(s, func() bool { return s.served("hub-agent/metrics")[metric] }, patience, visibilityEvery, metric)
		delete(wanted, metric)
	}
	kubectlChannel.approve(s, run, everywhere(approval).Name)
	s.awaitSucceeded(run)
	s.evict("eviction", "member-2")
	require.Eventually(s, func() bool { return len(look()) == 0 }, patience, visibilityEvery, "metrics that nobody serves: %v", look())
}
