package fleetview_test

import (
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	"github.com/fleetflow/fleetflow/apis/placement/updaterun"
	"github.com/fleetflow/fleetflow/cmd/internal/fleetview"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
)

func order(text string) fleetview.Order { return fleetview.OrderOf(url.Values{"sort": {text}}) }

func names(rows []fleetview.Member) string {
	var all []string
	for _, row := range rows {
		all = append(all, row.Name)
	}
	return strings.Join(all, " ")
}

func TestRowsAreSortedByAColumn(t *testing.T) {
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	member := func(name string, heard time.Duration) clusterv1beta1.MemberCluster {
		return clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: clusterv1beta1.MemberClusterStatus{
			AgentStatus: []clusterv1beta1.AgentStatus{{Type: clusterv1beta1.MemberAgent, LastReceivedHeartbeat: metav1.NewTime(now.Add(-heard))}},
		}}
	}
	rows := fleetview.Members([]clusterv1beta1.MemberCluster{member("edge-10", 2*time.Minute), member("edge-9", 90*time.Second), member("edge-1", 3*time.Hour)}, now)
	rows[0].CPU, rows[1].CPU, rows[2].CPU = "2", "31500m/96", ""
	for by, want := range map[string]string{
		"":           "edge-1 edge-10 edge-9",
		"Cluster":    "edge-1 edge-9 edge-10",
		"-Cluster":   "edge-10 edge-9 edge-1",
		"Heartbeat":  "edge-9 edge-10 edge-1",
		"-Heartbeat": "edge-1 edge-10 edge-9",
		"CPU":        "edge-9 edge-1 edge-10",
		"Healthy":    "edge-1 edge-10 edge-9",
		"<script>":   "edge-1 edge-10 edge-9",
		"-":          "edge-1 edge-10 edge-9",
	} {
		assert.Equal(t, want, names(fleetview.Sort(rows, fleetview.MemberColumns, order(by))), "sort=%s", by)
	}
	assert.Equal(t, "edge-1 edge-10 edge-9", names(rows), "rows stay as they are")
}

func TestWhatPeopleShouldLookAtComesFirst(t *testing.T) {
	var rows []fleetview.Run
	for _, phase := range []updaterun.Phase{updaterun.PhaseSucceeded, updaterun.PhaseRunning, updaterun.PhaseFailed, "Unheard"} {
		rows = append(rows, fleetview.Run{Ref: hub.Ref{Kind: hub.KindRun, Name: string(phase)}, Phase: phase})
	}
	var sorted []string
	for _, row := range fleetview.Sort(rows, fleetview.RunColumns, order("State")) {
		sorted = append(sorted, row.Name)
	}
	assert.Equal(t, []string{"Failed", "Running", "Succeeded", "Unheard"}, sorted)
}

func TestAnInstantThatIsNotKnownComesAfterAllOthers(t *testing.T) {
	rows := []time.Time{{}, noon, {}, noon.Add(-time.Hour)}
	columns := []fleetview.Column[time.Time]{{Page: "Ended", Cell: func(at time.Time) fleetview.Cell { return fleetview.Cell{At: &at} }}}
	assert.Equal(t, []time.Time{noon.Add(-time.Hour), noon, {}, {}}, fleetview.Sort(rows, columns, order("Ended")))
	assert.Equal(t, []time.Time{{}, {}, noon, noon.Add(-time.Hour)}, fleetview.Sort(rows, columns, order("-Ended")))
}

func TestNumbersInTextsCount(t *testing.T) {
	texts := []string{"2/10", "10/10", "9/10", "a", "", "b10", "b9", "b09", "b99999999999999999999999", "b"}
	slices.SortFunc(texts, fleetview.CompareNatural)
	assert.Equal(t, []string{"", "2/10", "9/10", "10/10", "a", "b", "b09", "b9", "b10", "b99999999999999999999999"}, texts)
}

func TestAHeadingSortsAndThenTheOtherWayRound(t *testing.T) {
	query := url.Values{"q": {"edge"}, "page": {"3"}, "done": {"key"}}
	assert.Equal(t, "?q=edge&sort=Cluster", fleetview.OrderOf(query).Link("Cluster"), "from its first page on")
	query.Set("sort", "Cluster")
	up := fleetview.OrderOf(query)
	assert.Equal(t, []string{"ascending", ""}, []string{up.State("Cluster"), up.State("Nodes")})
	assert.Equal(t, "?q=edge&sort=-Cluster", up.Link("Cluster"))
	assert.Equal(t, "?q=edge&sort=Nodes", up.Link("Nodes"))
	query.Set("sort", up.Link("Cluster")[len("?q=edge&sort="):])
	down := fleetview.OrderOf(query)
	assert.Equal(t, "descending", down.State("Cluster"))
	assert.Equal(t, "?q=edge&sort=Cluster", down.Link("Cluster"))
	assert.Equal(t, "-Cluster", down.Value())
	assert.Equal(t, []string{"", "", ""}, []string{fleetview.Order{}.Link("Cluster"), fleetview.Order{}.State(""), fleetview.Order{}.Value()}, "a table that cannot be sorted")
}
