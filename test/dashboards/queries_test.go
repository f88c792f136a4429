package dashboards

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fleetflow/fleetflow/activities/analysis/measure"
	"github.com/fleetflow/fleetflow/cmd/agent"
	"github.com/fleetflow/fleetflow/controllers/hub/delivery"
	"github.com/fleetflow/fleetflow/controllers/hub/records"
	"github.com/fleetflow/fleetflow/controllers/hub/telemetry"
	"github.com/fleetflow/fleetflow/controllers/hub/temporalclient"
	"github.com/fleetflow/fleetflow/controllers/joining"
	"github.com/fleetflow/fleetflow/controllers/member/work"
	"github.com/fleetflow/fleetflow/worker"
)

const (
	charts = "../../deploy/charts"
	// runbooks is the page where the link of every alert leads to, in the repository and as the alert says it.
	runbooks   = "../../deploy/docs/alerts.md"
	runbookURL = "https://github.com/fleetflow/fleetflow/blob/main/deploy/docs/alerts.md#"
)

func TestNamesAreFoundInExpressions(t *testing.T) {
	for expression, want := range map[string][]string{
		`up`: {"up"},
		`sum by (le, stage) (rate(a_seconds_bucket{stage="x", le!=""}[5m]))`: {"a_seconds"},
		`(sum(a{b=~"c|d"}) or vector(0)) < 1`:                                {"a"},
		`time() - max by (name) (a_total) > 1800`:                            {"a_total"},
		`a / on (x) group_left (y) b_count and c offset 5m`:                  {"a", "b", "c", "m"}, // a duration outside of brackets is taken for a name; none is used
	} {
		assert.Equal(t, want, Metrics(expression), expression)
	}
}

// family is a fully qualified name in a description.
var family = regexp.MustCompile(`fqName: "([^"]+)"`)

// collectors are the metrics that the agents have registered themselves.
func collectors() []prometheus.Collector {
	all := append([]prometheus.Collector{&telemetry.Collector{}}, telemetry.NewWatcher(nil).Collectors()...)
	all = append(all, temporalclient.NewMetrics().Collectors()...)
	all = append(all, temporalclient.NewDatabaseSize(""))
	all = append(all, worker.NewMetrics().Collectors()...)
	all = append(all, measure.NewMetrics().Collectors()...)
	all = append(all, delivery.NewCollector(nil), records.NewKeeper(nil, nil, nil, records.Bounds{}).Dropped)
	all = append(append(all, agent.NewBuildInfo()), joining.NewCounters().Collectors()...)
	return append(all, work.NewMetrics().Collectors()...)
}

// descriptionsOf are the descriptions of a collector.
func descriptionsOf(c prometheus.Collector) []*prometheus.Desc {
	descriptions := make(chan *prometheus.Desc)
	go func() {
		defer close(descriptions)
		c.Describe(descriptions)
	}()
	var all []*prometheus.Desc
	for d := range descriptions {
		all = append(all, d)
	}
	return all
}

// own are the names of the metrics that the agents have registered themselves.
func own() map[string]bool {
	names := map[string]bool{}
	for _, c := range collectors() {
		for _, d := range descriptionsOf(c) {
			if found := family.FindStringSubmatch(d.String()); found != nil {
				names[found[1]] = true
			}
		}
	}
	return names
}

// ofLibraries are prefixes of what libraries register; the fleet's specs look for those in what the agents serve.
var ofLibraries = []string{"controller_runtime_", "workqueue_", "rest_client_", "leader_election_"}

// Temporal's SDK keeps the names of its metrics to itself, and serves many only after the first failure.
func ofTemporal(t *testing.T) map[string]bool {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "go.temporal.io/sdk")
	output, err := command.Output()
	require.NoError(t, err)
	content, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(output)), "internal", "common", "metrics", "constants.go"))
	require.NoError(t, err)
	constants := map[string]string{"TemporalMetricsPrefix": "temporal_"}
	names := map[string]bool{}
	for _, found := range regexp.MustCompile(`(\w+)\s*=\s*(\w+) \+ "([a-z_]+)"`).FindAllStringSubmatch(string(content), -1) {
		constants[found[1]] = constants[found[2]] + found[3]
		for _, suffix := range []string{"", "_total", "_seconds"} {
			names[constants[found[1]]+suffix] = true
		}
	}
	require.NotEmpty(t, names)
	return names
}

func TestEveryMetricOfTheDashboardAndTheAlertsIsRegistered(t *testing.T) {
	queries, err := Queries(charts)
	require.NoError(t, err)
	require.NotEmpty(t, queries)
	known := own()
	temporal := ofTemporal(t)
	used := map[string]bool{}
	for _, q := range queries {
		metrics := Metrics(q.Expression)
		assert.NotEmpty(t, metrics, "%s uses no metric: %s", q.Where, q.Expression)
		for _, m := range metrics {
			used[m] = true
			ofLibrary := false
			for _, prefix := range ofLibraries {
				ofLibrary = ofLibrary || strings.HasPrefix(m, prefix)
			}
			assert.True(t, known[m] || temporal[m] || ofLibrary, "%s uses %s, which no agent has", q.Where, m)
		}
	}
	for m := range known {
		assert.True(t, used[m], "nobody looks at %s", m)
	}
}

func TestEveryAlertSaysWhatToDo(t *testing.T) {
	rules, err := readRules(charts)
	require.NoError(t, err)
	page, err := os.ReadFile(runbooks)
	require.NoError(t, err)
	alerts := 0
	for _, group := range rules.Groups {
		for _, rule := range group.Rules {
			if rule.Record != "" {
				assert.Contains(t, string(page), "`"+rule.Record+"`", "what it is for")
				continue
			}
			alerts++
			assert.NotEmpty(t, rule.Annotations["summary"], rule.Alert)
			assert.NotEmpty(t, rule.Annotations["description"], rule.Alert)
			assert.Equal(t, runbookURL+strings.ToLower(rule.Alert), rule.Annotations["runbook_url"])
			_, section, found := strings.Cut(string(page), "\n## "+rule.Alert+"\n")
			assert.True(t, found, "%s has no section %s", runbooks, rule.Alert)
			section, _, _ = strings.Cut(section, "\n## ")
			for _, part := range []string{"**Means.**", "**Look.**", "**Do.**"} {
				assert.Contains(t, section, part, rule.Alert)
			}
		}
	}
	assert.Equal(t, alerts, strings.Count(string(page), "\n## Fleetflow"), "the page explains alerts that exist")
}

// Two hubs that one Prometheus reads must not hide each other.
func TestEveryAlertLooksAtEachHubByItself(t *testing.T) {
	rules, err := readRules(charts)
	require.NoError(t, err)
	aggregates := regexp.MustCompile(`\b(sum|max|min|avg|count) *(by \(([^)]*)\))?`)
	for _, group := range rules.Groups {
		for _, rule := range group.Rules {
			for _, found := range aggregates.FindAllStringSubmatch(rule.Expr, -1) {
				assert.True(t, strings.HasPrefix(found[3], "cluster, "), "%s adds up over clusters: %s", rule.Alert+rule.Record, rule.Expr)
			}
		}
	}
}
