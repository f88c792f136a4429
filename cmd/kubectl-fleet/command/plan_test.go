package command

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterrules "github.com/fleetflow/fleetflow/apis/cluster/rules"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	"github.com/fleetflow/fleetflow/apis/placement/planhash"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/cli"
)

// snapshotOf is resource snapshot of placement web with these objects.
func snapshotOf(index int, manifests ...string) *placementv1beta1.ClusterResourceSnapshot {
	snapshot := &placementv1beta1.ClusterResourceSnapshot{ObjectMeta: metav1.ObjectMeta{
		Name: placementv1beta1.ResourceSnapshotName("web", index, 0), CreationTimestamp: ago(time.Duration(10-index) * time.Hour),
		Labels: map[string]string{
			placementv1beta1.ParentPlacementLabel: "web", placementv1beta1.ResourceIndexLabel: strconv.Itoa(index), placementv1beta1.IsLatestSnapshotLabel: strconv.FormatBool(index == 5),
		},
		Annotations: map[string]string{placementv1beta1.ResourceGroupHashAnnotation: "hash", placementv1beta1.NumberOfResourceSnapshotsAnnotation: "1"},
	}}
	for _, manifest := range manifests {
		snapshot.Spec.SelectedResources = append(snapshot.Spec.SelectedResources, placementv1beta1.ResourceContent{RawExtension: runtime.RawExtension{Raw: []byte(manifest)}})
	}
	return snapshot
}

const (
	shopNamespace = `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"shop"}}`
	settings      = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"settings","namespace":"shop"},"data":{"theme":%q}}`
	password      = `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"login","namespace":"shop"},"data":{"password":%q}}`
)

// release is everything before a run of placement web: three clusters, one of which has nothing yet, one of which gets
// something of its own.
func release() []client.Object {
	half := intstr.FromString("50%")
	wait := metav1.Duration{Duration: 5 * time.Minute}
	placement := &placementv1beta1.ClusterResourcePlacement{
		ObjectMeta: metav1.ObjectMeta{Name: "web", UID: "web-uid", Generation: 1, CreationTimestamp: ago(7 * time.Hour)},
		Spec:       placementv1beta1.PlacementSpec{Strategy: &placementv1beta1.RolloutStrategy{Type: placementv1beta1.ExternalRolloutStrategyType}},
	}
	policy := &placementv1beta1.ClusterSchedulingPolicySnapshot{
		ObjectMeta: metav1.ObjectMeta{Name: "web-0", CreationTimestamp: ago(7 * time.Hour), Labels: map[string]string{placementv1beta1.ParentPlacementLabel: "web", placementv1beta1.IsLatestSnapshotLabel: "true", placementv1beta1.PolicyIndexLabel: "0"}},
		Status:     placementv1beta1.SchedulingPolicySnapshotStatus{ObservedCRPGeneration: 1, Conditions: []metav1.Condition{ok("Scheduled")}},
	}
	strategy := &placementv1beta1.ClusterStagedUpdateStrategy{ObjectMeta: metav1.ObjectMeta{Name: "careful"}, Spec: placementv1beta1.UpdateStrategySpec{Stages: []placementv1beta1.StageConfig{
		{Name: "staging", LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"env": "staging"}}, AfterStageTasks: []placementv1beta1.StageTask{{Type: placementv1beta1.StageTaskTypeTimedWait, WaitTime: &wait}}},
		{
			Name: "production", LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"env": "production"}}, MaxConcurrency: &half,
			BeforeStageTasks: []placementv1beta1.StageTask{{Type: placementv1beta1.StageTaskTypeApproval}},
		},
	}}}
	objects := []client.Object{placement, policy, strategy, snapshotOf(4, shopNamespace, fmt.Sprintf(settings, "light"), fmt.Sprintf(password, "aHVudGVyMg==")), snapshotOf(5, shopNamespace, fmt.Sprintf(settings, "dark"), fmt.Sprintf(password, "aHVudGVyMw=="))}
	for i, name := range []string{"member-1", "member-2", "member-3"} {
		m := member(name, time.Second)
		m.Labels["env"] = []string{"staging", "production", "production"}[i]
		binding := bindingTo(name)
		if i == 2 {
			m.Labels["brand"] = "acme"
			binding.Spec.State = placementv1beta1.BindingStateScheduled
			binding.Spec.ResourceSnapshotName = ""
		}
		objects = append(objects, m, binding)
	}
	return append(objects, brandOverride())
}

// brandOverride gives clusters of a brand another theme.
func brandOverride() *placementv1beta1.ResourceOverrideSnapshot {
	return &placementv1beta1.ResourceOverrideSnapshot{
		ObjectMeta: metav1.ObjectMeta{Name: "brand-0", Namespace: "shop", Labels: map[string]string{placementv1beta1.ParentOverrideLabel: "brand", placementv1beta1.IsLatestSnapshotLabel: "true", placementv1beta1.OverrideIndexLabel: "0"}},
		Spec: placementv1beta1.ResourceOverrideSnapshotSpec{OverrideSpec: placementv1beta1.ResourceOverrideSpec{
			ResourceSelectors: []placementv1beta1.ResourceSelector{{Group: "", Version: "v1", Kind: "ConfigMap", Name: "settings"}},
			Policy: placementv1beta1.OverridePolicy{OverrideRules: []placementv1beta1.OverrideRule{{
				ClusterSelector: &placementv1beta1.ClusterSelector{ClusterSelectorTerms: []placementv1beta1.ClusterSelectorTerm{{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"brand": "acme"}}}}},
				JSONPatchOverrides: []placementv1beta1.JSONPatchOverride{{
					Operator: placementv1beta1.JSONPatchOverrideOpReplace, Path: "/data/theme", Value: apiextensionsv1.JSON{Raw: []byte(`"acme"`)},
				}},
			}}},
		}},
	}
}

func TestPlanTellsStagesWavesGatesAndWhatChanges(t *testing.T) {
	c := newConsole(t, release()...)
	require.NoError(t, c.run("plan", "--placement", "web", "--strategy", "careful"))
	c.Golden("plan.txt")
	require.NoError(t, c.run("plan", "--placement", "web", "--strategy", "careful", "-o", "json"))
	for _, secret := range []string{"aHVudGVyMg==", "aHVudGVyMw=="} {
		assert.NotContains(t, c.Out.String(), secret)
	}
}

// writtenPlan writes the plan of placement web to a file.
func writtenPlan(c *console, args ...string) (file, hash string) {
	c.T.Helper()
	require.NoError(c.T, c.run(append([]string{"plan", "web", "--strategy", "careful", "-o", "json"}, args...)...))
	var made struct{ PlanHash string }
	require.NoError(c.T, json.Unmarshal(c.Out.Bytes(), &made))
	file = filepath.Join(c.T.TempDir(), "plan.json")
	require.NoError(c.T, os.WriteFile(file, c.Out.Bytes(), 0o600))
	return file, made.PlanHash
}

func TestARunFollowsThePlanThatWasReviewed(t *testing.T) {
	c := newConsole(t, release()...)
	file, hash := writtenPlan(c)
	assert.True(t, planhash.IsHash(hash), hash)
	require.NoError(t, c.run("run", "web", "--plan", file))
	run := get(c, &placementv1beta1.ClusterStagedUpdateRun{}, "web-1")
	assert.Equal(t, placementv1beta1.UpdateRunSpec{PlacementName: "web", StagedUpdateStrategyName: "careful", State: placementv1beta1.StateRun, ExpectedPlanHash: hash}, run.Spec)
	outline := planhash.ReadOutline(run.Annotations[placementv1beta1.ExpectedPlanAnnotation])
	require.NotNil(t, outline)
	assert.Equal(t, "5", outline.Snapshot)
	assert.Equal(t, "jane", run.Annotations[placementv1beta1.CreatorAnnotation])

	older, hash := writtenPlan(c, "--index", "4")
	require.NoError(t, c.run("run", "web", "--plan", older, "--name", "web-older"))
	run = get(c, &placementv1beta1.ClusterStagedUpdateRun{}, "web-older")
	assert.Equal(t, "4", run.Spec.ResourceSnapshotIndex, "the plan was not that of the latest")
	assert.Equal(t, hash, run.Spec.ExpectedPlanHash)

	none, hash := writtenPlan(c, "--no-diff")
	assert.Empty(t, hash, "overrides were not read")
	require.ErrorContains(t, c.run("run", "web", "--plan", none), "has no plan with a hash: write one with kubectl fleet plan PLACEMENT -o json, without --no-diff")
	require.ErrorContains(t, c.run("run", "web", "--plan", file, "--strategy", "other"), "--strategy other is not that of the plan")
	require.ErrorContains(t, c.run("run", "web", "--plan", file+"x"), "no such file")
}

func TestAPlanHasTheHashOfWhatItWouldDo(t *testing.T) {
	_, latest := writtenPlan(newConsole(t, release()...))
	_, again := writtenPlan(newConsole(t, release()...))
	assert.Equal(t, latest, again)
	_, older := writtenPlan(newConsole(t, release()...), "--index", "4")
	_, plain := writtenPlan(newConsole(t, release()[:len(release())-1]...))
	assert.NotEqual(t, latest, older)
	assert.NotEqual(t, latest, plain, "without the override")
}

func TestPlanMarksMembersThatMayNotAnswer(t *testing.T) {
	objects := release()
	for _, object := range objects {
		m, is := object.(*clusterv1beta1.MemberCluster)
		if !is {
			continue
		}
		healthy := meta.FindStatusCondition(m.Status.Conditions, clusterv1beta1.ConditionTypeHealthy)
		switch m.Name {
		case "member-1":
			healthy.Status = metav1.ConditionFalse
			healthy.Reason = "MemberClusterUnhealthy"
		case "member-2":
			healthy.Status = metav1.ConditionUnknown
			healthy.Reason = "MemberClusterHeartbeatMissed"
		}
	}
	c := newConsole(t, objects...)
	require.NoError(t, c.run("plan", "--placement", "web", "--strategy", "careful", "--no-diff"))
	assert.Contains(t, c.Out.String(), "member-1 (4 → 5) !unhealthy\n")
	assert.Contains(t, c.Out.String(), "member-2 (4 → 5) !silent\n")
	assert.Contains(t, c.Out.String(), "member-3 (new)\n")
}

func TestPlanTellsWhatAHookHoldsAndWhatIsSuspended(t *testing.T) {
	objects := release()
	hook := placementv1beta1.ClusterHook{LabelsHandler: map[string]placementv1beta1.HookLabelValue{"example.com/in-service": "yes"}}
	strategy := objects[0].(*placementv1beta1.ClusterResourcePlacement).Spec.Strategy
	strategy.Lifecycle = &placementv1beta1.ClusterLifecycle{PreUpdate: &placementv1beta1.ClusterDrainHook{ClusterHook: hook}}
	strategy.Suspension = &placementv1beta1.Suspension{ClusterNames: []string{"member-1"}}
	for _, object := range objects {
		if binding, is := object.(*placementv1beta1.ClusterResourceBinding); is && binding.Spec.TargetCluster != "member-1" {
			binding.Labels["example.com/in-service"] = "yes"
		}
	}
	c := newConsole(t, objects...)
	require.NoError(t, c.run("plan", "--placement", "web", "--strategy", "careful", "--no-diff"))
	assert.Contains(t, c.Out.String(), "member-1 (4 → 5) !suspended\n")
	assert.Regexp(t, `member-2 \(4 → 5\) !waits for label example.com/in-service=yes to be taken off binding \S+ \(hook preUpdate\)\n`, c.Out.String())
	assert.Contains(t, c.Out.String(), "member-3 (new)\n", "what comes for the first time is not held")
}

func TestPlanBackTellsWhatComesBack(t *testing.T) {
	c := newConsole(t, release()...)
	require.NoError(t, c.run("plan", "-p", "web", "--strategy", "careful", "--index", "4"))
	assert.Contains(t, c.Out.String(), "member-1 (has it)")
	assert.Contains(t, c.Out.String(), "On member-1, member-2, from snapshot 4 to snapshot 4: nothing changes.")
}

func TestPlanTellsOfTheWindowsThatStagesNameAndWhatIsSkipped(t *testing.T) {
	objects := release()
	strategy := objects[2].(*placementv1beta1.ClusterStagedUpdateStrategy)
	strategy.Spec.HeldClusters = placementv1beta1.HeldClustersSkip
	strategy.Spec.Stages[1].Windows = []string{"nights"}
	window := &fleetflowv1alpha1.RolloutWindow{ObjectMeta: metav1.ObjectMeta{Name: "nights"}, Spec: fleetflowv1alpha1.RolloutWindowSpec{
		Type: fleetflowv1alpha1.WindowAllow, Scope: fleetflowv1alpha1.WindowStage, TimeZone: "UTC",
		Weekly: []fleetflowv1alpha1.WeeklyOpening{{Days: []fleetflowv1alpha1.Weekday{"Fri"}, DailyHours: fleetflowv1alpha1.DailyHours{Start: "22:00", End: "06:00"}}},
	}}
	c := newConsole(t, append(objects, window)...)
	require.NoError(t, c.run("plan", "-p", "web", "--strategy", "careful", "--no-diff"))
	assert.Contains(t, c.Out.String(), "1 at a time, those that are closed once they open\n   windows nights\n")
	assert.Contains(t, c.Out.String(), "opens   Fri 2026-01-02 22:00 UTC: member-2 waits for window nights: opens 2026-01-02T22:00:00Z\n")
}

func TestPlanTellsWhatWouldKeepARunFromStarting(t *testing.T) {
	for sentence, broken := range map[string]struct {
		change  func(objects []client.Object) []client.Object
		problem string
	}{
		"a cluster in no stage": {func(objects []client.Object) []client.Object {
			for _, object := range objects {
				if object.GetName() == "member-2" {
					object.SetLabels(nil)
				}
			}
			return objects
		}, "1 picked clusters are in no stage: member-2; label them for one, or set unassignedClusters of strategy careful to Ignore or Last"},
		"a cluster in two stages": {func(objects []client.Object) []client.Object {
			objects[2].(*placementv1beta1.ClusterStagedUpdateStrategy).Spec.Stages[1].LabelSelector = nil
			return objects
		}, "cluster `member-1` appears in more than one stages: its labels match those of `staging` and of `production`, narrow the labelSelector of one"},
		"another way of rolling out": {func(objects []client.Object) []client.Object {
			objects[0].(*placementv1beta1.ClusterResourcePlacement).Spec.Strategy = nil
			return objects
		}, "placement/web is not rolled out by runs: set its spec.strategy.type to External"},
		"a strategy that the placement does not allow": {func(objects []client.Object) []client.Object {
			objects[0].(*placementv1beta1.ClusterResourcePlacement).Spec.Strategy.External = &placementv1beta1.ExternalRolloutConfig{AllowedStrategies: []string{"gated", "slow"}}
			return objects
		}, "placement/web does not allow runs with strategy careful: use one of gated, slow, or have a user who may change the placement add it to " +
			"spec.strategy.external.allowedStrategies"},
		"another run with another strategy": {func(objects []client.Object) []client.Object {
			other := soakingRun()
			other.Spec.StagedUpdateStrategyName = "hasty"
			return append(objects, other)
		}, "run/web-5 of the same placement is not over and uses strategy hasty: use that one, or wait for it to end"},
		"a window that a stage names and that is not there": {func(objects []client.Object) []client.Object {
			objects[2].(*placementv1beta1.ClusterStagedUpdateStrategy).Spec.Stages[1].Windows = []string{"nights"}
			return objects
		}, "stage production names rollout window nights in windows: there is none: create it, or remove the name"},
		"a placement that is not scheduled": {func(objects []client.Object) []client.Object {
			objects[0].SetGeneration(2)
			return objects
		}, "placement/web is not fully scheduled: see kubectl fleet status placement/web"},
	} {
		t.Run(sentence, func(t *testing.T) {
			c := newConsole(t, broken.change(release())...)
			err := c.run("plan", "-p", "web", "--strategy", "careful")
			exit, is := errors.AsType[*cli.Exit](err)
			require.True(t, is, "%v\n%s", err, c.Out.String())
			assert.Equal(t, cli.CodeFailed, exit.Code)
			assert.Contains(t, c.Out.String(), "✗ The run would be refused: "+broken.problem)
			assert.Equal(t, 1, strings.Count(c.Out.String(), "would be refused"), c.Out.String())
		})
	}
}

// wrapped is an envelope with a ClusterRole in it.
const wrapped = `{"apiVersion":"placement.kubernetes-fleet.io/v1beta1","kind":"ClusterResourceEnvelope","metadata":{"name":"roles"},"data":{
	"reader":{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"reader"}}}}`

func TestPlanOpensEnvelopesByTheRulesOfTheHub(t *testing.T) {
	const excluded = "ClusterRole reader is of a kind that the hub agent's flag --skipped-propagating-apis names"
	objects := release()
	for i, object := range objects {
		if object.GetName() == snapshotOf(5).Name {
			objects[i] = snapshotOf(5, shopNamespace, wrapped)
		}
	}
	published := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-public", Name: "fleetflow-placed"}}
	published.Data = map[string]string{"skippedPropagatingAPIs": "rbac.authorization.k8s.io", "configMapEnvelopes": "any"}
	c := newConsole(t, append(objects, published)...)
	require.NoError(t, c.run("plan", "-p", "web", "--strategy", "careful"))
	assert.Contains(t, c.Out.String(), excluded)
	assert.NotContains(t, c.Out.String(), "is not known")

	c = newConsole(t, objects...)
	require.NoError(t, c.run("plan", "-p", "web", "--strategy", "careful"))
	assert.NotContains(t, c.Out.String(), excluded)
	assert.Contains(t, c.Out.String(), "what the hub agent's flags keep out of envelopes is not known")
}

func TestPlanOfClustersInNoStageFollowsTheStrategy(t *testing.T) {
	objects := release()
	strategy := objects[2].(*placementv1beta1.ClusterStagedUpdateStrategy)
	strategy.Spec.Stages = strategy.Spec.Stages[:1]
	strategy.Spec.UnassignedClusters = placementv1beta1.UnassignedClustersLast
	c := newConsole(t, objects...)
	require.NoError(t, c.run("plan", "-p", "web", "--strategy", "careful", "--no-diff"))
	assert.Contains(t, c.Out.String(), "2. unassigned: 2 clusters, 1 at a time\n   wave 1  member-2 (4 → 5)\n   wave 2  member-3 (new)\n")
	strategy.Spec.UnassignedClusters = placementv1beta1.UnassignedClustersIgnore
	c = newConsole(t, objects...)
	require.NoError(t, c.run("plan", "-p", "web", "--strategy", "careful", "--no-diff"))
	assert.Contains(t, c.Out.String(), "! in no stage, and left as they are (unassignedClusters: Ignore): member-2, member-3\n")
}

func TestPlanOfARunTakesWhatTheRunSays(t *testing.T) {
	run := &placementv1beta1.ClusterStagedUpdateRun{
		ObjectMeta: metav1.ObjectMeta{Name: "web-4"},
		Spec:       placementv1beta1.UpdateRunSpec{PlacementName: "web", StagedUpdateStrategyName: "careful", ResourceSnapshotIndex: "4", State: placementv1beta1.StateInitialize},
	}
	c := newConsole(t, append(release(), run)...)
	require.NoError(t, c.run("plan", "run/web-4", "--no-diff"))
	assert.Contains(t, c.Out.String(), "Roll snapshot 4 of placement/web out to 3 clusters in 2 stages by strategy careful.")
	assert.Contains(t, c.Out.String(), "before  approval of web-4-before-production")
	assert.EqualError(t, c.run("plan", "run/web-4", "--strategy", "careful"), "run/web-4 has a strategy and a snapshot of its own: leave --strategy and --index out, or name its placement placement/web")
	assert.EqualError(t, c.run("plan"), "say what to plan, as in: kubectl fleet plan web --strategy careful, or: kubectl fleet plan run/web-17")
}

func TestPlanOfARunThatIsInitializedShowsWhatTheHubHasFrozen(t *testing.T) {
	back := &placementv1beta1.ClusterStagedUpdateRun{
		ObjectMeta: metav1.ObjectMeta{Name: "web-back"},
		Spec:       placementv1beta1.UpdateRunSpec{PlacementName: "web", StagedUpdateStrategyName: "careful", RollbackOf: "web-5", State: placementv1beta1.StateInitialize},
		Status: placementv1beta1.UpdateRunStatus{
			Conditions: []metav1.Condition{ok(placementv1beta1.ConditionTypeInitialized)},
			StagesStatus: []placementv1beta1.StageUpdatingStatus{
				{StageName: "production", Clusters: []placementv1beta1.ClusterUpdatingStatus{{ClusterName: "member-2", ResourceSnapshotIndex: "5"}}},
				{StageName: "staging", Clusters: []placementv1beta1.ClusterUpdatingStatus{{ClusterName: "member-1", ResourceSnapshotIndex: "4"}}},
			},
		},
	}
	c := newConsole(t, append(release(), back)...)
	require.NoError(t, c.run("plan", "run/web-back"))
	c.Golden("plan-back.txt")
	back.Status = placementv1beta1.UpdateRunStatus{}
	c = newConsole(t, append(release(), back)...)
	require.EqualError(t, c.run("plan", "run/web-back"), "run/web-back takes every cluster back to a snapshot of its own, which kubectl fleet status run/web-back shows; to plan it, create it with spec.state Initialize")
}

func TestAPlanOfAPlacementWithoutASnapshotNamesNoneThatThereIsNot(t *testing.T) {
	objects := slices.DeleteFunc(release(), func(object client.Object) bool {
		_, is := object.(*placementv1beta1.ClusterResourceSnapshot)
		return is
	})
	c := newConsole(t, objects...)
	_ = c.run("plan", "-p", "web", "--strategy", "careful", "--no-diff") // it is refused
	assert.Contains(t, c.Out.String(), "Roll the first snapshot of placement/web, which there is not yet, out to")
	assert.NotContains(t, c.Out.String(), "snapshot -1")
}

func TestPlanSaysWhichKindsWithinEnvelopesClustersDoNotServe(t *testing.T) {
	objects := release()
	lacking := ""
	for i, object := range objects {
		if object.GetName() == snapshotOf(5).Name {
			objects[i] = snapshotOf(5, shopNamespace, wrapped)
		}
		if member, is := object.(*clusterv1beta1.MemberCluster); is && lacking == "" {
			lacking = member.Name
			member.Status.Properties = map[clusterv1beta1.PropertyName]clusterv1beta1.PropertyValue{
				clusterv1beta1.ServedKindsProperty: {Value: clusterrules.ServedKinds{"v1": {"Namespace"}}.Report()},
			}
		}
	}
	c := newConsole(t, objects...)
	require.NoError(t, c.run("plan", "-p", "web", "--strategy", "careful"))
	assert.Contains(t, c.Out.String(),
		"do not serve ClusterRole of rbac.authorization.k8s.io/v1, by what they report: its objects cannot be applied on "+lacking)
}
