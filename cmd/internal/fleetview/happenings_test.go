package fleetview_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/cmd/internal/fleetview"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
)

var noon = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

func before(ago time.Duration) metav1.Time { return metav1.NewTime(noon.Add(-ago)) }

func says(kind string, status metav1.ConditionStatus, reason string, ago time.Duration, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: reason, LastTransitionTime: before(ago), Message: message}
}

// facts are a fleet in which a run has failed after a cluster became unwell and a hold was there.
func facts() fleetview.FleetFacts {
	placement := hub.PlacementOf(&placementv1beta1.ClusterResourcePlacement{
		ObjectMeta: metav1.ObjectMeta{Name: "web", CreationTimestamp: before(48 * time.Hour)},
		Status: placementv1beta1.PlacementStatus{ResourceSnapshots: []placementv1beta1.ResourceSnapshotSummary{
			{Index: "1", Name: "web-1-snapshot", CreationTime: before(48 * time.Hour)}, {Index: "2", Name: "web-2-snapshot", CreationTime: before(50 * time.Minute)},
		}},
	})
	begun := before(40 * time.Minute)
	run := hub.RunOf(&placementv1beta1.ClusterStagedUpdateRun{
		ObjectMeta: metav1.ObjectMeta{Name: "web-2", CreationTimestamp: begun}, Spec: placementv1beta1.UpdateRunSpec{PlacementName: "web", StagedUpdateStrategyName: "careful"},
		Status: placementv1beta1.UpdateRunStatus{
			ResourceSnapshotIndexUsed: "2",
			StagesStatus: []placementv1beta1.StageUpdatingStatus{{StageName: "canary", StartTime: &begun, Clusters: []placementv1beta1.ClusterUpdatingStatus{{ClusterName: "a", Conditions: []metav1.Condition{
				says(placementv1beta1.ConditionTypeStarted, metav1.ConditionTrue, placementv1beta1.ReasonClusterUpdatingStarted, 40*time.Minute, ""),
				says(placementv1beta1.ConditionTypeSucceeded, metav1.ConditionFalse, placementv1beta1.ReasonClusterUpdatingFailed, 12*time.Minute, "no replicas"),
			}}}}},
			Conditions: []metav1.Condition{
				says(placementv1beta1.ConditionTypeInitialized, metav1.ConditionTrue, placementv1beta1.ReasonUpdateRunInitializedSuccessfully, 40*time.Minute, ""),
				says(placementv1beta1.ConditionTypeSucceeded, metav1.ConditionFalse, placementv1beta1.ReasonUpdateRunFailed, 10*time.Minute, "budget used up"),
			},
		},
	})
	expired := before(5 * time.Minute)
	return fleetview.FleetFacts{
		Now: noon, Placements: []hub.Placement{placement}, Runs: map[hub.Ref][]hub.Run{placement.Ref: {run}},
		Members: []*clusterv1beta1.MemberCluster{{ObjectMeta: metav1.ObjectMeta{Name: "a", CreationTimestamp: before(48 * time.Hour)}, Status: clusterv1beta1.MemberClusterStatus{Conditions: []metav1.Condition{
			says(clusterv1beta1.ConditionTypeJoined, metav1.ConditionTrue, "Joined", 47*time.Hour, ""), says(clusterv1beta1.ConditionTypeHealthy, metav1.ConditionUnknown, "No", 30*time.Minute, "no heartbeat"),
		}}}},
		Holds: []*fleetflowv1alpha1.RolloutHold{{
			ObjectMeta: metav1.ObjectMeta{Name: "storm", CreationTimestamp: before(20 * time.Minute), Annotations: map[string]string{placementv1beta1.CreatorAnnotation: "jane"}},
			Spec:       fleetflowv1alpha1.RolloutHoldSpec{Message: "INC-1", ExpirationTime: &expired},
		}},
		Exemptions: []fleetflowv1alpha1.RolloutExemption{{
			ObjectMeta: metav1.ObjectMeta{Name: "hotfix", CreationTimestamp: before(15 * time.Minute)},
			Spec:       fleetflowv1alpha1.RolloutExemptionSpec{TargetRef: fleetflowv1alpha1.ExemptRun("", "web-2"), ExpirationTime: metav1.NewTime(noon.Add(time.Hour))},
		}},
	}
}

func lines(all []fleetview.Happening) string {
	var out strings.Builder
	for _, h := range all {
		mark := " "
		if h.Bad {
			mark = "!"
		}
		fmt.Fprintf(&out, "%v %s %s %s %s: %s\n", noon.Sub(h.At), mark, h.Of, h.What, h.Name, h.Text)
	}
	return out.String()
}

func TestTheHistoryOfAFleetSaysWhatHappenedBeforeItBroke(t *testing.T) {
	all := fleetview.Happenings(facts())
	period := fleetview.PeriodOf(url.Values{"span": {"1h"}}, noon)
	assert.Equal(t, strings.TrimPrefix(`
5m0s   / hold storm: has expired
10m0s ! placement/web run web-2: failed: budget used up
12m0s ! placement/web run web-2: a failed in stage canary: no replicas
15m0s   / exemption hotfix: lets run/web-2 go despite 
20m0s   / hold storm: stops the line for the whole fleet
30m0s ! member/a member a: not known to be healthy: no heartbeat
40m0s   placement/web run web-2: rolls snapshot 2 out by strategy careful
50m0s   placement/web snapshot web-2-snapshot: snapshot 2 taken, the latest
`, "\n"), lines(fleetview.Choice{From: period.From, Until: period.Until}.Of(all)))
	assert.Len(t, all, 12, "and what is older")
	assert.Equal(t, []string{"/holds", "/runs/web-2"}, []string{all[0].Path, all[1].Path})
	assert.Equal(t, "/history?span=1h&until=2026-11-23T11%3A50%3A01Z", fleetview.HourBefore(all[1].At), "with what went wrong itself")
}

func TestFailedClustersThatAreNotNamedAreCounted(t *testing.T) {
	of := facts()
	for _, runs := range of.Runs {
		stage := &runs[0].Status.StagesStatus[0]
		for i := range 24 {
			stage.Clusters = append(stage.Clusters, placementv1beta1.ClusterUpdatingStatus{ClusterName: fmt.Sprint("b", i), Conditions: []metav1.Condition{
				says(placementv1beta1.ConditionTypeSucceeded, metav1.ConditionFalse, placementv1beta1.ReasonClusterUpdatingFailed, 12*time.Minute-time.Duration(i)*time.Second, ""),
			}})
		}
	}
	told := lines(fleetview.Happenings(of))
	assert.Equal(t, 20, strings.Count(told, "failed in stage"))
	assert.Contains(t, told, "11m37s ! placement/web run web-2: and 5 more clusters failed\n")
}

func TestAHistoryIsFiltered(t *testing.T) {
	all := fleetview.Happenings(facts())
	for choice, number := range map[fleetview.Choice]int{
		{What: "hold"}: 2, {By: "jane"}: 1, {Text: "inc-1"}: 1, {Text: "PLACEMENT/web"}: 6, {Text: "nothing"}: 0, {What: "member", Text: "joined"}: 1,
	} {
		choice.Until = noon
		assert.Len(t, choice.Of(all), number, "%+v", choice)
	}
	assert.Empty(t, fleetview.Choice{From: noon.Add(time.Hour), Until: noon.Add(2 * time.Hour)}.Of(all))
}

func TestAPeriodGoesBackAndForth(t *testing.T) {
	last := fleetview.PeriodOf(url.Values{"span": {"yesterday"}, "until": {"<script>"}, "page": {"3"}}, noon)
	assert.Equal(t, []any{"24h", noon.Add(-24 * time.Hour), noon, true, ""}, []any{last.Span, last.From, last.Until, last.Now, last.After()})
	assert.Equal(t, "?span=24h&until=2026-11-22T12%3A00%3A00Z", last.Before())
	query, err := url.ParseQuery(strings.TrimPrefix(last.Before(), "?"))
	assert.NoError(t, err)
	earlier := fleetview.PeriodOf(query, noon)
	assert.False(t, earlier.Now)
	assert.Equal(t, last.From, earlier.Until)
	assert.Equal(t, "?span=24h&until=2026-11-23T12%3A00%3A00Z", earlier.After())
	assert.True(t, fleetview.PeriodOf(url.Values{"until": {"2099-01-01T00:00:00Z"}}, noon).Now, "what is to come has not happened")
}

func TestAFleetWithoutAnythingHasNoHistory(t *testing.T) {
	assert.Empty(t, fleetview.Happenings(fleetview.FleetFacts{Now: noon}))
}

func TestNamesOfRowsStayWhenLaterOnesCome(t *testing.T) {
	all := fleetview.Happenings(facts())
	ids := fleetview.IDsOf(all)
	seen := map[string]bool{}
	for _, id := range ids {
		assert.False(t, seen[id], "two rows have one name")
		seen[id] = true
	}
	twin := all[0] // in the same second
	later := append([]fleetview.Happening{twin}, all...)
	assert.Equal(t, ids, fleetview.IDsOf(later)[1:])
}
