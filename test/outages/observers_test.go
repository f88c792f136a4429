//go:build integration

package outages

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// askTimeout bounds one question. A client whose hub is away gives up by itself before.
const askTimeout = time.Minute

// readTimeout bounds a read of an object of the hub.
const readTimeout = 15 * time.Second

// observer is somebody who tells how the fleet is.
type observer struct {
	// says returns what it tells now, of a run among others.
	says func(ctx context.Context, run string) string
	// well is in what it tells if all is as it should be.
	well *regexp.Regexp
}

// Names of observers.
const (
	check            = "kubectl fleet check --strict"
	getMembers       = "kubectl fleet get members"
	getPlacements    = "kubectl fleet get placements"
	getRuns          = "kubectl fleet get runs"
	statusPlacement  = "kubectl fleet status placement/steady"
	statusRun        = "kubectl fleet status run/NAME"
	placementsWord   = "the conditions of the placement"
	runsWord         = "the conditions of the run"
	membersWord      = "the conditions of the MemberCluster"
	metricsOfTheHub  = "the metrics"
	alertsOfTheChart = "the alerts"
	pages            = "the dashboard"
)

// observers are all who tell of the fleet, by their names.
func observers() map[string]observer {
	return map[string]observer{
		check:           {kubectlFleet("check", "--strict"), regexp.MustCompile(`exit code 0\z`)},
		getMembers:      {kubectlFleet("get", "members"), regexp.MustCompile(`\ANAME[^!]*\nmember-2 +True +True +\d+s +\d`)},
		getPlacements:   {kubectlFleet("get", "placements", steady), regexp.MustCompile(`\ANAME.*\nsteady +PickAll +2 +2/2 +2/2 +done`)},
		getRuns:         {kubectlFleet("get", "runs", "RUN"), regexp.MustCompile(`\ANAME.*\n.*Succeeded`)},
		statusPlacement: {kubectlFleet("status", "placement/"+steady), regexp.MustCompile(`\A✓.*steady`)},
		statusRun:       {kubectlFleet("status", "run/RUN"), regexp.MustCompile(`\A✓`)},
		placementsWord: {conditionsOf(func(string) client.Object {
			return &placementv1beta1.ClusterResourcePlacement{ObjectMeta: named(steady)}
		}), regexp.MustCompile(`Available=True`)},
		runsWord: {conditionsOf(func(run string) client.Object {
			return &placementv1beta1.ClusterStagedUpdateRun{ObjectMeta: named(run)}
		}), regexp.MustCompile(`Succeeded=True`)},
		membersWord:      {conditionsOf(func(string) client.Object { return &clusterv1beta1.MemberCluster{ObjectMeta: named(victim)} }), regexp.MustCompile(`Healthy=True`)},
		metricsOfTheHub:  {readMetrics, regexp.MustCompile(`\Ahub agents that lead: 1\nTemporal answers: 1\nhealthy members: 2\nplacements complete: [1-9]`)},
		alertsOfTheChart: {readAlerts, regexp.MustCompile(`\Ano alert\z`)},
		pages:            {readPages, regexp.MustCompile(`\A *Fleet Clusters healthy 2/2 Placements done 2/2 .*\n *✓ succeeded run/`)},
	}
}

func named(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name} }

// kubectlFleet runs the plug-in as a user does; RUN among the arguments is the name of the run.
func kubectlFleet(args ...string) func(context.Context, string) string {
	return func(ctx context.Context, run string) string {
		ctx, cancel := context.WithTimeout(ctx, askTimeout)
		defer cancel()
		own := slices.Clone(args)
		for i := range own {
			own[i] = strings.ReplaceAll(own[i], "RUN", run)
		}
		command := exec.CommandContext(ctx, shared.Fleet.Binary("kubectl-fleet"), own...)
		command.Env = append(os.Environ(), shared.Fleet.Environment()...)
		out, err := command.CombinedOutput()
		code := 0
		if exit := (&exec.ExitError{}); errors.As(err, &exit) {
			code = exit.ExitCode()
		} else if err != nil {
			return err.Error()
		}
		return fmt.Sprintf("%sexit code %d", out, code)
	}
}

// conditionsOf tells the conditions of an object of the hub, a line for each.
func conditionsOf(object func(run string) client.Object) func(context.Context, string) string {
	return func(ctx context.Context, run string) string {
		ctx, cancel := context.WithTimeout(ctx, readTimeout)
		defer cancel()
		read := object(run)
		if err := shared.Hub.Get(ctx, client.ObjectKeyFromObject(read), read); err != nil {
			return "cannot be read: " + err.Error()
		}
		var conditions []metav1.Condition
		switch read := read.(type) {
		case *placementv1beta1.ClusterResourcePlacement:
			conditions = read.Status.Conditions
		case *placementv1beta1.ClusterStagedUpdateRun:
			conditions = read.Status.Conditions
		case *clusterv1beta1.MemberCluster:
			conditions = read.Status.Conditions
		}
		lines := make([]string, len(conditions))
		for i, c := range conditions {
			lines[i] = fmt.Sprintf("%s=%s %s: %s", strings.TrimPrefix(c.Type, "ClusterResourcePlacement"), c.Status, c.Reason, c.Message)
		}
		return strings.Join(lines, "\n")
	}
}

// browser keeps the session of a dashboard.
var browser = &http.Client{Timeout: askTimeout}

// main is the part of a page that tells of the fleet; tag is what is not read of it.
var (
	main = regexp.MustCompile(`(?s)<main.*</main>`)
	tag  = regexp.MustCompile(`(<[^>]*>|\s)+`)
)

// enterDashboard opens the session of the dashboard, whose link works once.
func enterDashboard(t *testing.T) {
	t.Helper()
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	browser.Jar = jar
	said, err := readPage(t.Context(), shared.Fleet.DashboardLink())
	require.NoError(t, err)
	require.Contains(t, said, "Fleet")
}

// readPages tells what the dashboard shows of the fleet and of the run, a line for each page.
func readPages(ctx context.Context, run string) string {
	var lines []string
	for _, path := range []string{"/", "/runs/" + run} {
		said, err := readPage(ctx, shared.Fleet.Dashboard(path))
		if err != nil {
			return "cannot be read: " + err.Error()
		}
		lines = append(lines, said)
	}
	return strings.Join(lines, "\n")
}

func readPage(ctx context.Context, link string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, link, http.NoBody)
	if err != nil {
		return "", fmt.Errorf("making the request: %w", err)
	}
	response, err := browser.Do(request)
	if err != nil {
		return "", fmt.Errorf("asking the dashboard: %w", err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		return "", fmt.Errorf("reading the answer of the dashboard: %w", err)
	}
	return html.UnescapeString(tag.ReplaceAllString(main.FindString(string(content)), " ")), nil
}

// readMetrics tells what Prometheus knows now of the metrics by which people judge a fleet.
func readMetrics(ctx context.Context, _ string) string {
	var lines []string
	for _, asked := range []struct{ what, expression string }{
		{"hub agents that lead", `sum(leader_election_master_status{name="hub-agent.fleetflow.io"})`},
		{"Temporal answers", `sum(fleetflow_temporal_answers)`},
		{"healthy members", `sum(fleetflow_member_clusters{healthy="True"})`},
		{"placements complete", `count(fleet_workload_placement_status_last_timestamp_seconds{conditionType="Completed"})`},
	} {
		value, err := ask(ctx, asked.expression)
		if err != nil {
			return err.Error()
		}
		lines = append(lines, asked.what+": "+value)
	}
	return strings.Join(lines, "\n")
}

// ask returns the first value of what Prometheus finds by an expression; "none" if it finds nothing.
func ask(ctx context.Context, expression string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, shared.Fleet.PrometheusURL()+"/api/v1/query?query="+url.QueryEscape(expression), http.NoBody)
	if err != nil {
		return "", fmt.Errorf("making the request: %w", err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", fmt.Errorf("asking Prometheus: %w", err)
	}
	defer response.Body.Close()
	var answer struct {
		Error string `json:"error"`
		Data  struct {
			Result []struct {
				Value [2]any `json:"value"`
			} `json:"result"`
		} `json:"data"`
	}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return "", fmt.Errorf("decoding the answer of Prometheus: %w", err)
	}
	if answer.Error != "" {
		return "", fmt.Errorf("asking Prometheus for %s: %s", expression, answer.Error)
	}
	if len(answer.Data.Result) == 0 {
		return "none", nil
	}
	return fmt.Sprint(answer.Data.Result[0].Value[1]), nil
}

// rules are the expressions of the alerts of the hub's chart, by name, with thresholds that fit a member that reports every second.
var rules = map[string]string{}

// shortened are the thresholds that a test does not wait for.
var shortened = map[string]string{"> 600": "> 10"}

func readRules(t *testing.T) {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, "deploy", "charts", "hub-agent", "monitoring", "alerts.yaml"))
	require.NoError(t, err)
	var file struct {
		Groups []struct {
			Rules []struct{ Alert, Expr string }
		}
	}
	require.NoError(t, yaml.Unmarshal(content, &file))
	for _, group := range file.Groups {
		for _, rule := range group.Rules {
			if rule.Alert == "" || strings.Contains(rule.Expr, "[") {
				continue // it tells of what has happened in the last minutes, and not of what is now
			}
			for long, short := range shortened {
				rule.Expr = strings.ReplaceAll(rule.Expr, long, short)
			}
			rules[rule.Alert] = rule.Expr
		}
	}
	require.NotEmpty(t, rules)
}

// readAlerts names the alerts whose expressions hold now. For how long they have to hold is not waited for.
func readAlerts(ctx context.Context, _ string) string {
	var firing []string
	for name, expression := range rules {
		value, err := ask(ctx, expression)
		if err != nil {
			return err.Error()
		}
		if value != "none" {
			firing = append(firing, name)
		}
	}
	if len(firing) == 0 {
		return "no alert"
	}
	slices.Sort(firing)
	return strings.Join(firing, " ")
}
