package demo

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

func TestMisplaced(t *testing.T) {
	order := []string{"member-2", "member-3", "member-1"}
	for name, tc := range map[string]struct {
		entries []entry
		want    string
	}{
		"each once and in order": {
			[]entry{{cluster: "member-2", value: "1"}, {cluster: "member-3", value: "1"}, {cluster: "member-1", value: "1"}}, "",
		},
		"out of order": {
			[]entry{{cluster: "member-2", value: "1"}, {cluster: "member-1", value: "1"}, {cluster: "member-3", value: "1"}},
			"the clusters were written in the order member-2, member-1, member-3",
		},
		"one twice": {
			[]entry{{cluster: "member-2", value: "1"}, {cluster: "member-2", value: "1"}, {cluster: "member-3", value: "1"}, {cluster: "member-1", value: "1"}},
			"the clusters were written in the order member-2, member-2, member-3, member-1",
		},
		"one to another snapshot": {[]entry{{cluster: "member-2", value: "0"}}, `write 1 took member-2 to "0"`},
		"none":                    {nil, "the clusters were written in the order "},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, tc.want, misplaced(tc.entries, order, "1")) })
	}
}

func TestLedgerKeepsChangesOnly(t *testing.T) {
	l := &ledger{ready: make(chan struct{}), changed: make(chan struct{})}
	l.note(map[string]string{"member-1": "0"}, noon)
	l.note(map[string]string{"member-1": "0"}, noon)
	l.note(map[string]string{"member-1": "1"}, noon)
	l.note(map[string]string{"member-1": "1", "member-2": "1"}, noon)
	l.note(map[string]string{"member-2": "1"}, noon)
	want := []entry{{noon, "member-1", "1"}, {noon, "member-2", "1"}}
	assert.Equal(t, want, l.atLeast(t.Context(), 2))
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	assert.Equal(t, want, l.atLeast(ended, 3), "what there is when the time is up")
}

func TestSoakedTooShort(t *testing.T) {
	run := initializedRun()
	assert.Contains(t, soakedTooShort(run, nil, time.Second), "has not stored")
	waits(&run.Status.StagesStatus[0])
	writes := func(after time.Duration) []entry {
		return []entry{{at: noon.Add(-time.Second), cluster: "member-2"}, {at: noon.Add(after), cluster: "member-3"}}
	}
	assert.Empty(t, soakedTooShort(run, writes(5*time.Second), 5*time.Second))
	assert.Equal(t, "it soaked for 4.99 s: from 12:00:00.0 to 12:00:04.9", soakedTooShort(run, writes(4990*time.Millisecond), 5*time.Second))
}

func TestNotLatest(t *testing.T) {
	snapshot := func(index, latest string) *placementv1beta1.ClusterResourceSnapshot {
		return &placementv1beta1.ClusterResourceSnapshot{ObjectMeta: metav1.ObjectMeta{
			Name:   "example-placement-" + index + "-snapshot",
			Labels: map[string]string{placementv1beta1.ResourceIndexLabel: index, placementv1beta1.IsLatestSnapshotLabel: latest},
		}}
	}
	list := func(s ...*placementv1beta1.ClusterResourceSnapshot) []*placementv1beta1.ClusterResourceSnapshot {
		return s
	}
	assert.Empty(t, notLatest(list(snapshot("0", "false"), snapshot("1", "true")), 1))
	assert.Equal(t, "there are 1 snapshots, want 2", notLatest(list(snapshot("0", "true")), 1))
	assert.Contains(t, notLatest(list(snapshot("0", "true"), snapshot("1", "true")), 1), "example-placement-0-snapshot has label")
	assert.Contains(t, notLatest(list(snapshot("0", "false"), snapshot("1", "false")), 1), "example-placement-1-snapshot has label")
}

func TestWhereARunIs(t *testing.T) {
	run := initializedRun()
	assert.Equal(t, "there is no such run", where(nil))
	assert.Equal(t, "the run is not initialized", where(updateRun("x", "")))
	assert.Equal(t, "stage staging has not begun", where(run))
	staging := &run.Status.StagesStatus[0]
	add(&staging.Clusters[0].Conditions, yes(placementv1beta1.ConditionTypeStarted))
	add(&staging.Conditions, yes(placementv1beta1.ConditionTypeProgressing))
	assert.Equal(t, "stage staging still updates member-2", where(run))
	add(&staging.Clusters[0].Conditions, yes(placementv1beta1.ConditionTypeSucceeded))
	staging.Conditions = nil
	waits(staging)
	assert.Equal(t, "stage staging is at StageUpdatingWaiting: ", where(run))
	for i := range run.Status.StagesStatus {
		add(&run.Status.StagesStatus[i].Conditions, yes(placementv1beta1.ConditionTypeSucceeded))
	}
	assert.Equal(t, "all stages are done, but not the run", where(run))
}

func TestPointsOfARun(t *testing.T) {
	run := initializedRun()
	staging := &run.Status.StagesStatus[0]
	canary := &run.Status.StagesStatus[1]
	assert.False(t, soaking(run))
	waits(staging)
	assert.True(t, soaking(run))
	assert.False(t, asksApproval(run))
	add(&canary.AfterStageTaskStatus[0].Conditions, yes(placementv1beta1.ConditionTypeApprovalRequestCreated))
	assert.True(t, asksApproval(run))
	assert.False(t, approved(run))
	add(&canary.AfterStageTaskStatus[0].Conditions, yes(placementv1beta1.ConditionTypeApprovalRequestApproved))
	assert.True(t, approved(run))
	assert.False(t, succeeded(run))
	assert.Empty(t, failed(run))
	add(&run.Status.Conditions, no(placementv1beta1.ConditionTypeSucceeded, "UpdateRunFailed", "preempted"))
	assert.Equal(t, "Succeeded is False: UpdateRunFailed: preempted", failed(run))
}

func TestApprovalCommandLines(t *testing.T) {
	line := func(d channel) string {
		program, args := approval(d, "example-run", "example-run-canary", "demo@host", noon)
		return quoted(append([]string{program}, args...))
	}
	assert.Contains(t, line(channelSignal), `temporal workflow signal --workflow-id updaterun/example-run --name approve --input '{"stage":"canary","comment":"lgtm"}' --identity demo@host`)
	assert.Contains(t, line(channelUpdate), `temporal workflow update execute --workflow-id updaterun/example-run --name approve`)
	assert.Contains(t, line(channelKubectl), `kubectl patch clusterapprovalrequests example-run-canary --type=merge -p '{"status":{"conditions":[{"type":"Approved","status":"True",`)
}

func TestStagesFollowTheHowTo(t *testing.T) {
	three := strategy(time.Minute, 3).Spec.Stages
	require.Len(t, three, 2)
	assert.Equal(t, "1 staging    environment=staging, then TimedWait 1m0s", describeStage(0, three[0]))
	assert.Equal(t, "2 canary     environment=canary, by label order, then Approval", describeStage(1, three[1]))
	assert.Equal(t, []string{"member-2", "member-3", "member-1"}, updateOrder(3))
	assert.Len(t, strategy(time.Minute, 5).Spec.Stages, 3, "members without another stage get one")
	assert.Equal(t, []string{"member-2", "member-3", "member-1", "member-4", "member-5"}, updateOrder(5))
}

func TestAFailureSaysWhatWasExpectedAndWhatWasFound(t *testing.T) {
	f := &Failure{Object: "ClusterResourcePlacement example-placement", Expected: "it is Scheduled", Found: "no condition", Events: []string{"a", "b"}}
	assert.Equal(t, `not as it should be
  object    ClusterResourcePlacement example-placement
  expected  it is Scheduled
  found     no condition
  events    a
            b`, f.Error())
}

func TestScreenWithoutColours(t *testing.T) {
	var out bytes.Buffer
	s := newScreen(&out)
	s.now = func() time.Time { return noon.Add(1234 * time.Millisecond) }
	s.live(line{stage: "staging", cluster: "member-2", text: "updating", tone: toneWait})
	s.holds("it is so")
	s.output("NAME   AGE\nx      1s\n")
	assert.Equal(t, "12:00:01.2    staging    member-2   updating\n12:00:01.2  ✓ it is so\n              NAME   AGE\n              x      1s\n", out.String())
	s.colour = true
	assert.Equal(t, "\x1b[32m✓\x1b[0m", s.good("✓"))
}

func TestNotTakenBack(t *testing.T) {
	for name, tc := range map[string]struct {
		entries []entry
		want    string
	}{
		"given and taken back": {[]entry{{cluster: "a", value: "5"}, {cluster: "a", value: "4"}}, ""},
		"never taken back":     {[]entry{{cluster: "a", value: "5"}}, "there were 1 writes"},
		"another one, too":     {[]entry{{cluster: "a", value: "5"}, {cluster: "b", value: "5"}, {cluster: "a", value: "4"}}, "there were 3 writes"},
		"another one":          {[]entry{{cluster: "b", value: "5"}, {cluster: "b", value: "4"}}, `write 1 took b to "5"`},
		"to something else":    {[]entry{{cluster: "a", value: "5"}, {cluster: "a", value: "3"}}, `write 2 took a to "3"`},
	} {
		t.Run(name, func(t *testing.T) {
			got := notTakenBack(tc.entries, "a", "5", "4")
			assert.Contains(t, got, tc.want)
			assert.Equal(t, tc.want == "", got == "")
		})
	}
}

func TestTheErrorRatioFollowsFromWhatTheClusterHas(t *testing.T) {
	assert.Equal(t, "0.12", errorRatio(configMap(badValue)))
	assert.Equal(t, "0.002", errorRatio(configMap("value5")))
}
