package stagedupdate_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/fleetflow/fleetflow/activities/override"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// Every status of a run that KubeFleet's documentation prints is one of ours. What it leaves out
// is not compared, nor is a message that it prints empty: ours says more.
func TestEveryPrintedStatusIsOurs(t *testing.T) {
	for file, story := range map[string]func(t *testing.T) *driver{
		"concept-complete": func(t *testing.T) *driver {
			d := concept(t)
			d.passed("staging", 0)
			d.stage("canary", 1)
			d.approved("canary", 1)
			assert.True(t, d.gates("production", 2).Open)
			assert.True(t, must(d.hub, d.acts.AdvanceDeletion, refOf(d.run)).Done)
			return d
		},
		"concept-waiting": func(t *testing.T) *driver {
			d := concept(t)
			d.stage("staging", 0)
			d.gates("staging", 0)
			d.clock.Step(time.Minute)
			assert.Equal(t, waitsForApproval("example-run-staging"), d.gates("staging", 0))
			return d
		},
		"how-to-running": func(t *testing.T) *driver {
			d := begun(t, howTo(t, runObject("example-run", "1")), "example-run")
			d.soaked("staging", 0)
			d.update("canary", 1, names("member3"), nil)
			d.stuck["member1"] = true
			d.halfway("canary", 1, names("member1"), names("member3"))
			return d
		},
		"how-to-rolled-back": func(t *testing.T) *driver {
			d := &driver{hub: howTo(t), run: "example-run-2"}
			d.whole()
			return d
		},
		"gitops-soaking": func(t *testing.T) *driver {
			d := gitops(t)
			d.stage("staging", 0)
			d.gates("staging", 0)
			return d
		},
		"gitops-waiting": func(t *testing.T) *driver {
			d := gitops(t)
			d.soaked("staging", 0)
			d.stage("canary", 1)
			d.gates("canary", 1)
			return d
		},
		"gitops-complete": func(t *testing.T) *driver {
			d := gitops(t)
			d.soaked("staging", 0)
			d.stage("canary", 1)
			d.approved("canary", 1)
			d.stage("production", 2)
			d.gates("production", 2)
			assert.True(t, must(d.hub, d.acts.AdvanceDeletion, refOf(d.run)).Done)
			return d
		},
		"guide-not-initialized": func(t *testing.T) *driver {
			d := &driver{hub: guide(t, "1"), run: "example-run"}
			assert.True(t, initialize(d.hub, d.run).Terminal)
			return d
		},
		"guide-placement-deleted": func(t *testing.T) *driver {
			d := begun(t, guide(t, "0"), "example-run")
			require.NoError(t, d.WithWatch.Delete(t.Context(), placementObject()))
			d.ended("staging", 0, names("member1"))
			return d
		},
		"guide-preempted": func(t *testing.T) *driver {
			d := begun(t, guide(t, "0"), "example-run")
			d.stuck["member1"] = true
			d.halfway("staging", 0, names("member1"), nil)
			later := runObject("example-run-1", "1")
			later.CreationTimestamp = metav1.NewTime(begin.Add(time.Minute))
			edit(d.hub, d.binding("member1"), func(b *placementv1beta1.ClusterResourceBinding) {
				b.Spec.ResourceSnapshotName = "example-placement-1-snapshot"
				b.Annotations = map[string]string{
					placementv1beta1.UpdateRunAnnotation: later.Name, placementv1beta1.UpdateRunUIDAnnotation: string(later.UID),
					placementv1beta1.UpdateRunCreatedAnnotation: later.CreationTimestamp.Format(time.RFC3339),
				}
			})
			d.ended("staging", 0, nil, "member1")
			return d
		},
		"guide-stuck": func(t *testing.T) *driver {
			d := begun(t, guide(t, "0"), "example-run")
			d.stuck["member1"] = true
			delta := background(d.hub, func() wf.StageDelta {
				return must(d.hub, d.acts.AdvanceStage, wf.StageAdvance{StageRequest: stageOf(d.run, "staging", 0), Start: names("member1")})
			})
			d.untilItWaits()
			d.clock.Step(5 * time.Minute)
			<-delta
			return d
		},
	} {
		t.Run(file, func(t *testing.T) {
			d := story(t)
			requirePrinted(t, "testdata/printed/"+file+".yaml", d.hub.run(d.run).Status)
		})
	}
	files, err := os.ReadDir("testdata/printed")
	require.NoError(t, err)
	assert.Len(t, files, 11, "a file without a story")
}

// requirePrinted compares a status with what is printed of it.
func requirePrinted(t *testing.T, file string, status placementv1beta1.UpdateRunStatus) {
	t.Helper()
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	var want, got map[string]any
	require.NoError(t, yaml.Unmarshal(data, &want))
	data, err = json.Marshal(status)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, &got))
	for key, value := range want {
		ours := got[key]
		if key == "stagesStatus" {
			ours = stagesNamed(ours, value)
		}
		if diff := cmp.Diff(value, printedOf(ours, value)); diff != "" {
			t.Errorf("%s of the status (-printed +ours):\n%s", key, diff)
		}
	}
}

// stagesNamed are those of our stages that are printed.
func stagesNamed(ours, printed any) any {
	list, _ := printed.([]any)
	if list == nil {
		return ours
	}
	names := map[any]bool{}
	for _, stage := range list {
		names[stage.(map[string]any)["stageName"]] = true
	}
	var out []any
	all, _ := ours.([]any)
	for _, stage := range all {
		if names[stage.(map[string]any)["stageName"]] {
			out = append(out, stage)
		}
	}
	return out
}

// printedOf is ours without what the document leaves open: the values of times, and messages. Where ours puts the cause first, it
// has every clause of the printed message all the same.
func printedOf(ours, printed any) any {
	switch o := ours.(type) {
	case map[string]any:
		p, _ := printed.(map[string]any)
		out := map[string]any{}
		for key, inner := range o {
			switch {
			case key == "message" && p[key] == nil:
			case key == "message" && hasClausesOf(inner, p[key]):
				out[key] = p[key]
			case key == "lastTransitionTime", key == "startTime", key == "endTime":
				out[key] = "..."
			default:
				out[key] = printedOf(inner, p[key])
			}
		}
		return out
	case []any:
		p, _ := printed.([]any)
		out := make([]any, len(o))
		for i, inner := range o {
			var beside any
			if i < len(p) {
				beside = p[i]
			}
			out[i] = printedOf(inner, beside)
		}
		return out
	}
	return ours
}

func hasClausesOf(ours, printed any) bool {
	said, _ := ours.(string)
	text, _ := printed.(string)
	for clause := range strings.SplitSeq(text, ": ") {
		if !strings.Contains(said, clause) {
			return false
		}
	}
	return true
}

// begun is a run that is initialized.
func begun(t *testing.T, h *hub, run string) *driver {
	t.Helper()
	require.True(t, initialize(h, run).Initialized)
	return &driver{hub: h, run: run}
}

// printedHub has one cluster for each environment, which its strategy's stages are named after.
func printedHub(t *testing.T, strategy *placementv1beta1.ClusterStagedUpdateStrategy, run *placementv1beta1.ClusterStagedUpdateRun, environments ...string) *hub {
	t.Helper()
	objects := []client.Object{placementObject(), snapshotObject(0), strategy, run}
	var clusters []string
	for i, environment := range environments {
		name := "member" + string(rune('1'+i))
		clusters = append(clusters, name)
		objects = append(objects, clusterObject(name, "environment", environment), bindingObject(name, placementv1beta1.BindingStateScheduled, ""))
	}
	return newHub(t, append(objects, policyObject(clusters...))...)
}

func ofEnvironment(name, sortedBy string, tasks ...placementv1beta1.StageTask) placementv1beta1.StageConfig {
	stage := placementv1beta1.StageConfig{
		Name: name, AfterStageTasks: tasks, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"environment": name}},
	}
	if sortedBy != "" {
		stage.SortingLabelKey = &sortedBy
	}
	return stage
}

func strategyOf(stages ...placementv1beta1.StageConfig) *placementv1beta1.ClusterStagedUpdateStrategy {
	strategy := strategyObject()
	strategy.Spec.Stages = stages
	return strategy
}

var (
	approvalTask = placementv1beta1.StageTask{Type: placementv1beta1.StageTaskTypeApproval}
	// asPrinted is an approval as the concept page prints it.
	asPrinted  = placementv1beta1.StageTask{Type: placementv1beta1.StageTaskTypeApproval, WaitTime: &metav1.Duration{}}
	minuteWait = placementv1beta1.StageTask{Type: placementv1beta1.StageTaskTypeTimedWait, WaitTime: &metav1.Duration{Duration: time.Minute}}
)

// concept is the run of the concept page.
func concept(t *testing.T) *driver {
	t.Helper()
	strategy := strategyOf(ofEnvironment("staging", "", asPrinted, minuteWait), ofEnvironment("canary", "name", asPrinted),
		ofEnvironment("production", "order", minuteWait, asPrinted))
	return begun(t, printedHub(t, strategy, runObject("example-run", "0"), "staging", "canary"), "example-run")
}

// gitops is the run of the tutorial with ArgoCD.
func gitops(t *testing.T) *driver {
	t.Helper()
	strategy := strategyOf(ofEnvironment("staging", "", minuteWait), ofEnvironment("canary", "", approvalTask), ofEnvironment("production", ""))
	h := printedHub(t, strategy, runObject("guestbook-updaterun", "0"), "staging", "canary", "production")
	everywhere := placementv1beta1.ResourceOverrideSnapshot{ObjectMeta: metav1.ObjectMeta{Name: "guestbook-app-ro-0", Namespace: "guestbook"}}
	everywhere.Spec.OverrideSpec.Policy = placementv1beta1.OverridePolicy{OverrideRules: []placementv1beta1.OverrideRule{{
		ClusterSelector: &placementv1beta1.ClusterSelector{ClusterSelectorTerms: []placementv1beta1.ClusterSelectorTerm{{
			LabelSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "environment", Operator: metav1.LabelSelectorOpExists}}},
		}}},
	}}}
	h.overrides = override.Picked([]placementv1beta1.OverrideSnapshotObject{&everywhere})
	return begun(t, h, "guestbook-updaterun")
}

// guide is the hub of the troubleshooting guide: two clusters, one snapshot.
func guide(t *testing.T, index string) *hub {
	t.Helper()
	return printedHub(t, strategyOf(ofEnvironment("staging", ""), ofEnvironment("canary", "")), runObject("example-run", index), "staging", "canary")
}

// update advances a stage once, and requires that the clusters it starts are done.
func (d *driver) update(stage string, index int, start, done []string) {
	d.t.Helper()
	delta := must(d.hub, d.acts.AdvanceStage, wf.StageAdvance{StageRequest: stageOf(d.run, stage, index), Start: start, Done: done})
	require.Equal(d.t, start, append(delta.Done, delta.Recorded...))
}

// halfway starts clusters and returns while they are in flight.
func (d *driver) halfway(stage string, index int, start, done []string) {
	d.t.Helper()
	background(d.hub, func() wf.StageDelta {
		delta, _ := call(d.hub, d.acts.AdvanceStage, wf.StageAdvance{StageRequest: stageOf(d.run, stage, index), Start: start, Done: done})
		return delta
	})
	d.untilItWaits()
}

// ended advances a stage whose run must end of it.
func (d *driver) ended(stage string, index int, start []string, inFlight ...string) {
	d.t.Helper()
	in := wf.StageAdvance{StageRequest: stageOf(d.run, stage, index), Start: start, InFlight: inFlight}
	require.Equal(d.t, wf.StageDelta{Ended: true}, must(d.hub, d.acts.AdvanceStage, in))
}

// soaked runs a stage and waits its minute.
func (d *driver) soaked(stage string, index int) {
	d.t.Helper()
	d.stage(stage, index)
	d.gates(stage, index)
	d.clock.Step(time.Minute)
	require.True(d.t, d.gates(stage, index).Open)
}

// approved opens the gate of a stage whose clusters are done.
func (d *driver) approved(stage string, index int) {
	d.t.Helper()
	d.gates(stage, index)
	must(d.hub, d.acts.RecordApproval, wf.ApprovalRequest{StageRequest: stageOf(d.run, stage, index), Channel: wf.ChannelSignal})
	require.True(d.t, d.gates(stage, index).Open)
}

// passed runs a stage with both tasks.
func (d *driver) passed(stage string, index int) {
	d.t.Helper()
	d.stage(stage, index)
	d.gates(stage, index)
	d.clock.Step(time.Minute)
	d.approved(stage, index)
}

func TestAStageWithoutATimedWaitWaitsNoLongerThanItLasts(t *testing.T) {
	d := begun(t, guide(t, "0"), "example-run")
	d.clock.SetTime(begin.Add(300 * time.Millisecond))
	d.stage("staging", 0)
	d.gates("staging", 0)
	stage := d.hub.run(d.run).Status.StagesStatus[0]
	waits := meta.FindStatusCondition(stage.Conditions, "Progressing").LastTransitionTime
	assert.False(t, stage.EndTime.Before(&waits), "it ended at %s and waits since %s", stage.EndTime, waits)
}
