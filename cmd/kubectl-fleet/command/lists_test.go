package command

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/cmd/internal/fleetview"
)

// configured is a hub with one or two of each kind that only listings show.
func configured() []client.Object {
	west := map[string]string{"region": "west"}
	rules := placementv1beta1.OverridePolicy{OverrideRules: make([]placementv1beta1.OverrideRule, 2)}
	return []client.Object{
		&placementv1beta1.ClusterStagedUpdateStrategy{ObjectMeta: metav1.ObjectMeta{Name: "careful", Labels: west, CreationTimestamp: ago(time.Hour)}, Spec: placementv1beta1.UpdateStrategySpec{Stages: []placementv1beta1.StageConfig{
			{Name: "canary", LabelSelector: metav1.SetAsLabelSelector(west), AfterStageTasks: []placementv1beta1.StageTask{
				{Type: placementv1beta1.StageTaskTypeTimedWait, WaitTime: &metav1.Duration{Duration: 15 * time.Minute}}, {Type: placementv1beta1.StageTaskTypeApproval},
			}},
			{Name: "rest", BeforeStageTasks: []placementv1beta1.StageTask{{Type: placementv1beta1.StageTaskTypeApproval}}},
		}}},
		&placementv1beta1.StagedUpdateStrategy{ObjectMeta: metav1.ObjectMeta{Name: "quick", Namespace: "shop"}, Spec: placementv1beta1.UpdateStrategySpec{Stages: []placementv1beta1.StageConfig{{Name: "all"}}}},
		&placementv1beta1.ClusterResourceOverride{ObjectMeta: metav1.ObjectMeta{Name: "names", Labels: west, CreationTimestamp: ago(time.Hour)}, Spec: placementv1beta1.ClusterResourceOverrideSpec{
			ClusterResourceSelectors: []placementv1beta1.ResourceSelectorTerm{{Version: "v1", Kind: "Namespace", Name: "shop"}}, Policy: rules,
		}, Status: placementv1beta1.OverrideStatus{Conditions: []metav1.Condition{ok(placementv1beta1.ConditionTypeValid)}}},
		&placementv1beta1.ResourceOverride{ObjectMeta: metav1.ObjectMeta{Name: "size", Namespace: "shop", CreationTimestamp: ago(time.Hour)}, Spec: placementv1beta1.ResourceOverrideSpec{
			Placement: &placementv1beta1.PlacementRef{Name: "web"}, ResourceSelectors: []placementv1beta1.ResourceSelector{{Group: "apps", Version: "v1", Kind: "Deployment", Name: "web"}}, Policy: rules,
		}, Status: placementv1beta1.OverrideStatus{Conditions: []metav1.Condition{
			{Type: placementv1beta1.ConditionTypeValid, Status: metav1.ConditionFalse, Reason: placementv1beta1.ReasonOverrideConflict, Message: "shop/older selects it"},
		}}},
		evicted("asked"), evicted("done", ok(placementv1beta1.ConditionTypeValid), ok(placementv1beta1.ConditionTypeExecuted)),
		evicted("refused", ok(placementv1beta1.ConditionTypeValid), condition(placementv1beta1.ConditionTypeExecuted, metav1.ConditionFalse, placementv1beta1.ReasonEvictionNotExecuted, time.Hour)),
		evicted("void", condition(placementv1beta1.ConditionTypeValid, metav1.ConditionFalse, placementv1beta1.ReasonEvictionInvalid, time.Hour)),
		&fleetflowv1alpha1.RolloutWindow{ObjectMeta: metav1.ObjectMeta{Name: "freeze", Labels: west}, Spec: fleetflowv1alpha1.RolloutWindowSpec{
			Type: fleetflowv1alpha1.WindowDeny, Scope: fleetflowv1alpha1.WindowFleet, TimeZone: "UTC", Dates: []fleetflowv1alpha1.DatedOpening{{Start: "2099-01-01T00:00", End: "2099-01-05T00:00"}},
		}},
		&fleetflowv1alpha1.RolloutHold{ObjectMeta: metav1.ObjectMeta{Name: "incident", Labels: west}},
		&fleetflowv1alpha1.RolloutExemption{ObjectMeta: metav1.ObjectMeta{Name: "hotfix", Labels: west}, Spec: fleetflowv1alpha1.RolloutExemptionSpec{
			TargetRef: fleetflowv1alpha1.ExemptRun("", "web-5"), ExpirationTime: metav1.NewTime(now.Add(time.Hour)),
		}},
	}
}

func evicted(name string, conditions ...metav1.Condition) client.Object {
	return &placementv1beta1.ClusterResourcePlacementEviction{
		ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: ago(time.Hour)},
		Spec:       placementv1beta1.PlacementEvictionSpec{PlacementName: "web", ClusterName: "member-1"},
		Status:     placementv1beta1.PlacementEvictionStatus{Conditions: conditions},
	}
}

func TestGetShowsStrategiesOverridesEvictionsAndWindows(t *testing.T) {
	c := newConsole(t, configured()...)
	for line, want := range map[string]string{
		"strategies": `(?s)^NAME +STAGES +AGE\ncareful +canary \(after: 15m, after: approval\), rest \(before: approval\) +60m\nshop/quick +all +`,
		"overrides":  `(?s)^NAME +CHANGES +PLACEMENT +STATE +AGE\nnames +Namespace/shop +all +in use +60m\nshop/size +Deployment/web +web +not in use: conflict +60m\n$`,
		"evictions": `(?s)^NAME +PLACEMENT +CLUSTER +STATE +AGE +MESSAGE\nasked +web +member-1 +pending +60m +-\ndone +web +member-1 +executed +60m .*` +
			`\nrefused +web +member-1 +not allowed +60m .*\nvoid +web +member-1 +not valid +60m .*\n$`,
		"windows": `(?s)^NAME +TYPE +SCOPE +STATE +NEXT CHANGE +IN +MATCHES\nfreeze +Deny +Fleet +closed +Thu 2099-01-01 00:00 UTC `,
	} {
		require.NoError(t, c.run("get", line))
		assert.Regexp(t, want, c.Out.String())
	}
	require.NoError(t, c.run("get", "overrides", "-o", "wide"))
	assert.Contains(t, c.Out.String(), "shop/older selects it")
	require.NoError(t, c.run("get", "strategies", "-o", "wide", "--no-headers", "careful"))
	assert.Regexp(t, `canary: region=west; rest: all clusters\n$`, c.Out.String())
}

func TestEveryListIsReadInTheSameWay(t *testing.T) {
	c := newConsole(t, configured()...)
	for words, name := range map[[2]string]string{
		{"strategies", "csus"}: "clusterstagedupdatestrategy.placement.kubernetes-fleet.io/careful",
		{"overrides", "CRO"}:   "clusterresourceoverride.placement.kubernetes-fleet.io/names",
		{"windows", "rwin"}:    "rolloutwindow.fleetflow.io/freeze",
		{"holds", "rhold"}:     "rollouthold.fleetflow.io/incident",
		{"exemptions", "rex"}:  "rolloutexemption.fleetflow.io/hotfix",
	} {
		for _, word := range words {
			require.NoError(t, c.run("get", word, "-l", "region=west", "-o", "name"))
			assert.Equal(t, name+"\n", c.Out.String(), "%s is a list of objects, chosen by labels", word)
		}
		require.NoError(t, c.run("get", words[0], "-L", "region"))
		assert.Regexp(t, `REGION\n`, c.Out.String())
		require.NoError(t, c.run("get", words[0], "-l", "region=north"))
		assert.Equal(t, fmt.Sprintf("No %s with labels region=north.\n", words[0]), c.Err.String())
		require.ErrorContains(t, c.run("get", words[0], "nonesuch"), `named "nonesuch"; kubectl fleet get lists what there is`)
		require.ErrorContains(t, c.run("get", words[0], "--watch"), "--watch is for members, placements and runs")
	}
	require.NoError(t, c.run("get", "strategies", "-n", "shop", "-o", "name"))
	assert.Equal(t, "stagedupdatestrategy.placement.kubernetes-fleet.io/quick\n", c.Out.String())
	assert.ErrorContains(t, c.run("get", "replicas", "web", "-l", "a=b"), "replicas have no labels")
	assert.ElementsMatch(t, []string{
		"members", "placements", "runs", "approvals", "replicas", "strategies", "overrides", "evictions", "windows", "holds", "exemptions", "channels", "rules",
	}, c.completions("get "))
}

func TestAMisspeltKindIsAnsweredByTheKindThatWasMeant(t *testing.T) {
	c := newConsole(t)
	for word, want := range map[string]string{
		"membrs": "do you mean members?", "strategiez": "do you mean strategies?", "overide": "do you mean overrides?", "windws": "do you mean windows?",
		"pods": "use members, placements, runs, approvals, replicas, strategies, overrides, evictions, windows, holds, exemptions, channels or rules",
	} {
		assert.EqualError(t, c.run("get", word), fmt.Sprintf("%q is not something to get%s %s", word, map[bool]string{true: ":", false: ";"}[word == "pods"], want))
	}
}

func TestAListIsShownByItself(t *testing.T) {
	assert.EqualError(t, newConsole(t).run("get", "runs,holds"), "holds are shown by themselves: kubectl fleet get holds")
}

func TestColumnsOfListsAreOnePlace(t *testing.T) {
	added(t, &fleetview.StrategyColumns, fleetview.Column[fleetview.Strategy]{Name: "Loud", Text: func(s fleetview.Strategy) string { return "!" + s.Name }})
	c := newConsole(t, configured()...)
	require.NoError(t, c.run("get", "strategies"))
	assert.Contains(t, c.Out.String(), "!careful")
}
