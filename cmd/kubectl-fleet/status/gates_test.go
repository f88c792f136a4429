package status

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/tree"
)

// monday is a Monday at noon, one o'clock in Berlin.
var monday = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

func named(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name} }

func windowOf(t *testing.T, name, spec string) fleetflowv1alpha1.RolloutWindow {
	t.Helper()
	w := fleetflowv1alpha1.RolloutWindow{ObjectMeta: named(name)}
	assert.NoError(t, yaml.UnmarshalStrict([]byte(spec), &w.Spec))
	return w
}

func exemption(name, run string, from fleetflowv1alpha1.ExemptFrom, until time.Duration) fleetflowv1alpha1.RolloutExemption {
	e := fleetflowv1alpha1.RolloutExemption{ObjectMeta: named(name)}
	e.Annotations = map[string]string{placementv1beta1.CreatorAnnotation: "jane"}
	e.Spec = fleetflowv1alpha1.RolloutExemptionSpec{
		TargetRef: fleetflowv1alpha1.ExemptRun("", run), ExemptFrom: []fleetflowv1alpha1.ExemptFrom{from}, Message: "CVE-2026-1", Ticket: "INC-9", ExpirationTime: metav1.NewTime(monday.Add(until)),
	}
	return e
}

func gatesOf(t *testing.T) Gates {
	t.Helper()
	const week = "weekly: [{days: [Mon, Tue, Wed, Thu, Fri, Sat, Sun], start: "
	storm := fleetflowv1alpha1.RolloutHold{ObjectMeta: named("storm"), Spec: fleetflowv1alpha1.RolloutHoldSpec{
		Message: "storm in the west", ClusterSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"region": "west"}},
	}}
	over := *storm.DeepCopy()
	other := *storm.DeepCopy()
	over.Name = "over"
	over.Spec.ExpirationTime = &metav1.Time{Time: monday.Add(-time.Hour)}
	other.Name = "other"
	other.Spec.PlacementSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"team": "b"}}
	return Gates{
		Now: monday, Holds: []fleetflowv1alpha1.RolloutHold{storm, over, other},
		Windows: []fleetflowv1alpha1.RolloutWindow{
			windowOf(t, "days", "{type: Allow, scope: Fleet, timeZone: UTC, "+week+`"08:00", end: "18:00"}]}`),
			windowOf(t, "freeze", `{type: Deny, scope: Fleet, timeZone: UTC, message: the year ends, dates: [{start: "2026-12-18T00:00", end: "2027-01-05T00:00"}]}`),
			windowOf(t, "invalid", `{type: Allow, scope: Stage, stages: [prod], timeZone: Europe/Nowhere, `+week+`"22:00", end: "06:00"}]}`),
			windowOf(t, "nights", "{type: Allow, scope: Stage, timeZone: Europe/Berlin, message: CAB-17, "+week+`"22:00", end: "06:00"}]}`),
			windowOf(t, "other", "{type: Deny, scope: Stage, stages: [other], timeZone: UTC, "+week+`"00:00", end: "24:00"}]}`),
			windowOf(t, "sale", `{type: Deny, scope: Fleet, timeZone: UTC, dates: [{start: "2026-11-27T00:00", end: "2026-11-28T00:00"}]}`),
			windowOf(t, "west", "{type: Deny, scope: Cluster, clusterSelector: {matchLabels: {region: west}}, timeZone: UTC, dates: [{start: \"2026-11-23T00:00\", end: \"2026-11-24T00:00\"}]}"),
		},
		Exemptions: []fleetflowv1alpha1.RolloutExemption{
			exemption("hotfix", "web-17", fleetflowv1alpha1.ExemptFrom{Kind: fleetflowv1alpha1.ExemptFromHold, Name: "storm"}, time.Hour),
			exemption("past", "web-17", fleetflowv1alpha1.ExemptFrom{Kind: fleetflowv1alpha1.ExemptFromWindow}, -time.Hour),
			exemption("theirs", "web-18", fleetflowv1alpha1.ExemptFrom{Kind: fleetflowv1alpha1.ExemptFromWindow}, time.Hour),
		},
	}
}

func lines(nodes []tree.Node) []string {
	var said []string
	for _, node := range nodes {
		said = append(said, node.Name+" "+string(node.State)+": "+node.Detail)
	}
	return said
}

// runInStages is a run of which one stage is done and another, which names a window, has not begun.
func runInStages() hub.Run {
	run := &placementv1beta1.ClusterStagedUpdateRun{ObjectMeta: named("web-17")}
	done := []metav1.Condition{{Type: placementv1beta1.ConditionTypeSucceeded, Status: metav1.ConditionTrue}}
	cluster := func(name string, conditions []metav1.Condition) []placementv1beta1.ClusterUpdatingStatus {
		return []placementv1beta1.ClusterUpdatingStatus{{ClusterName: name, Conditions: conditions}}
	}
	run.Status.Conditions = []metav1.Condition{{Type: placementv1beta1.ConditionTypeInitialized, Status: metav1.ConditionTrue}}
	run.Status.UpdateStrategySnapshot = &placementv1beta1.UpdateStrategySpec{Stages: []placementv1beta1.StageConfig{{Name: "other"}, {Name: "prod", Windows: []string{"nights", "gone"}}}}
	run.Status.StagesStatus = []placementv1beta1.StageUpdatingStatus{
		{StageName: "other", Clusters: cluster("a", done), Conditions: done}, {StageName: "prod", Clusters: cluster("b", nil)},
	}
	return hub.RunOf(run)
}

func TestARunTellsWhatItWaitsForAndWhatLetsItGo(t *testing.T) {
	run := runInStages()
	placement := hub.PlacementOf(&placementv1beta1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: "web", Labels: map[string]string{"team": "a"}}})
	root := Run(run, Facts{Gates: gatesOf(t), Placement: &placement}, Options{})
	var gates []tree.Node
	for _, node := range root.Children {
		if IsGate(node) {
			gates = append(gates, node)
		}
	}
	assert.Equal(t, []string{
		"hold storm Waiting: nothing starts until released: storm in the west; for clusters region=west",
		"window gone Waiting: nothing starts, it is not valid: it was deleted, and the strategy of the run names it: create it again, or exempt the run from it; for stage prod",
		"window invalid Waiting: nothing starts, it is not valid: " + faultOf(t, "invalid") + "; for stage prod",
		"window nights Waiting: closed until 2026-11-23T22:00:00+01:00 (in 9h): CAB-17; for stage prod",
		"window west Waiting: nothing starts until 2026-11-24T00:00:00Z (in 12h); for clusters region=west",
		"window days : open until 2026-11-23T18:00:00Z (in 6h)",
		"window sale : nothing starts from 2026-11-27T00:00:00Z (in 3d12h) on",
		"exemption hotfix : despite hold/storm until 2026-11-23T13:00:00Z (in 60m), by jane: CVE-2026-1 (INC-9)",
	}, lines(gates))
	assert.Len(t, root.Children, len(gates)+2, "and the stages after them")

	ended := runInStages()
	ended.Object.SetConditions([]metav1.Condition{{Type: placementv1beta1.ConditionTypeSucceeded, Status: metav1.ConditionTrue}})
	for _, node := range Run(hub.RunOf(ended.Object), Facts{Gates: gatesOf(t)}, Options{}).Children {
		assert.False(t, IsGate(node), "what is over waits for nothing")
	}
}

func faultOf(t *testing.T, name string) string {
	t.Helper()
	for _, node := range gatesOf(t).WindowsOfTheDay() {
		if detail := node.Detail; node.Name == "window "+name {
			return detail[len("nothing starts, it is not valid: ") : len(detail)-len("; for stage prod")]
		}
	}
	return ""
}

func TestWindowsOfTheDay(t *testing.T) {
	var names []string
	for _, node := range gatesOf(t).WindowsOfTheDay() {
		names = append(names, node.Name)
	}
	assert.Equal(t, []string{"window days", "window invalid", "window nights", "window other", "window west"}, names)
	assert.Empty(t, Gates{Now: monday}.WindowsOfTheDay())
}

func TestAPlacementThatRunsRollOutLeavesItToThem(t *testing.T) {
	external := placementv1beta1.PlacementSpec{Strategy: &placementv1beta1.RolloutStrategy{Type: placementv1beta1.ExternalRolloutStrategyType}}
	for name, want := range map[string]struct {
		spec  placementv1beta1.PlacementSpec
		gates int
	}{"rolling": {gates: 4}, "external": {spec: external}} {
		p := hub.PlacementOf(&placementv1beta1.ClusterResourcePlacement{ObjectMeta: named("web"), Spec: want.spec})
		gates := 0
		for _, node := range Placement(p, Facts{Gates: gatesOf(t)}, Options{}).Children {
			if IsGate(node) {
				gates++
			}
		}
		assert.Equal(t, want.gates, gates, name)
	}
}

func TestAWindowIsNoFailureOfAPlacement(t *testing.T) {
	for _, reason := range []string{fleetflowv1alpha1.ReasonHoldInForce, fleetflowv1alpha1.ReasonWindowClosed, fleetflowv1alpha1.ReasonOutsideAllowedWindow} {
		said := says("RolloutStarted", metav1.ConditionFalse, reason)
		assert.Equal(t, "Waiting", string(stepState(&said)), reason)
	}
}
