package command

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/cli"
)

// recordedChain is what is on record of a run of placement web, in a namespace or in none, of which nothing else is there.
func recordedChain(namespace, run string, change func(i int, spec *fleetflowv1alpha1.AuditRecordSpec) bool) []client.Object {
	jane := &fleetflowv1alpha1.AuditActor{Username: "jane@example.com", Verified: true}
	joe := &fleetflowv1alpha1.AuditActor{Username: "joe@example.com", Channel: "TemporalSignal"}
	var objects []client.Object
	previous := ""
	for i, fact := range []fleetflowv1alpha1.AuditRecordSpec{
		{Type: fleetflowv1alpha1.RecordRunCreated, Actor: jane},
		{Type: fleetflowv1alpha1.RecordApprovalGiven, StageName: "canary", Actor: joe, Comment: "CAB-17"},
		{Type: fleetflowv1alpha1.RecordRunSucceeded},
	} {
		fact.ID = fleetflowv1alpha1.RecordID(run+namespace, fact.Type)
		fact.Time = ago(time.Duration(3-i) * time.Hour)
		fact.SubjectRef = fleetflowv1alpha1.AuditSubjectReference{
			APIVersion: "placement.kubernetes-fleet.io/v1beta1", Kind: "ClusterStagedUpdateRun", Namespace: namespace, Name: run, UID: run + namespace,
		}
		fact.PlacementName, fact.UpdateRunName = "web", run
		fact.Sequence, fact.Previous = int64(i+1), previous
		record := &fleetflowv1alpha1.AuditRecord{ObjectMeta: metav1.ObjectMeta{Name: fleetflowv1alpha1.RecordName(fact.SubjectRef.UID, fact.Sequence)}, Spec: fact}
		previous = record.Digest()
		if change == nil || change(i, &record.Spec) {
			objects = append(objects, record)
		}
	}
	return objects
}

func TestRecordsOfRunsThatAreGone(t *testing.T) {
	objects := append(recordedChain("", "web-2", nil), recordedChain("shop", "nightly", nil)...)
	for sentence, test := range map[string]struct {
		args  []string
		lines int
		says  string
	}{
		"all":                         {args: nil, lines: 6, says: "shop/nightly"},
		"of a run":                    {args: []string{"run/web-2"}, lines: 3, says: "joe@example.com (not verified)"},
		"of a run in a namespace":     {args: []string{"nightly", "-n", "shop"}, lines: 3, says: "shop/nightly"},
		"of a placement":              {args: []string{"placement/web"}, lines: 3, says: "web-2"},
		"of a namespace":              {args: []string{"-n", "shop"}, lines: 3, says: "shop/nightly"},
		"of a type":                   {args: []string{"--type", "approval.*"}, lines: 2, says: "CAB-17"},
		"by a user":                   {args: []string{"run/web-2", "--by", "jane@example.com"}, lines: 1, says: "run.created"},
		"of the last hours":           {args: []string{"run/web-2", "--since", "90m"}, lines: 1, says: "run.succeeded"},
		"the fleet has ended the run": {args: []string{"run/web-2", "--type", "run.succeeded"}, lines: 1, says: "fleet"},
	} {
		t.Run(sentence, func(t *testing.T) {
			c := newConsole(t, objects...)
			require.NoError(t, c.run(append([]string{"records", "--no-headers"}, test.args...)...))
			assert.Len(t, strings.Split(strings.TrimSpace(c.Out.String()), "\n"), test.lines)
			assert.Contains(t, c.Out.String(), test.says)
		})
	}
	c := newConsole(t, objects...)
	assert.Equal(t, cli.CodeUsage, exitCode(t, c.run("records", "--since", "yesterday")))
	assert.Equal(t, cli.CodeUsage, exitCode(t, c.run("records", "--type", "approval.[")))
	assert.Equal(t, cli.CodeUsage, exitCode(t, c.run("records", "-o", "csv")))
	require.NoError(t, newConsole(t).run("records"), "none are no failure")
}

func TestLinesOfRecordsAreTheDataOfTheirEvents(t *testing.T) {
	c := newConsole(t, recordedChain("shop", "nightly", nil)...)
	require.NoError(t, c.run("records", "-o", "jsonl"))
	lines := strings.Split(strings.TrimSpace(c.Out.String()), "\n")
	require.Len(t, lines, 3)
	events := newConsole(t, recordedChain("shop", "nightly", nil)...)
	require.NoError(t, events.run("records", "-o", "cloudevents"))
	for i, line := range strings.Split(strings.TrimSpace(events.Out.String()), "\n") {
		event := map[string]json.RawMessage{}
		require.NoError(t, json.Unmarshal([]byte(line), &event))
		assert.JSONEq(t, lines[i], string(event["data"]))
		for _, name := range []string{"specversion", "id", "source", "type"} {
			assert.NotEmpty(t, event[name], "CloudEvents asks for %s", name)
		}
		assert.Equal(t, `"/placement.kubernetes-fleet.io/v1beta1/ClusterStagedUpdateRun/shop/nightly"`, string(event["source"]))
	}
}

func TestVerifyingRecordsExitsWithOneWhereAChainIsBroken(t *testing.T) {
	whole := newConsole(t, append(recordedChain("", "web-2", nil), recordedChain("shop", "nightly", nil)...)...)
	require.NoError(t, whole.run("records", "verify", "--no-headers"))
	assert.Regexp(t, `(?m)^web-2 +3 +1 +3 +yes +sha256:[0-9a-f]{64}$`, whole.Out.String())

	pruned := newConsole(t, recordedChain("", "web-2", func(i int, _ *fleetflowv1alpha1.AuditRecordSpec) bool { return i > 0 })...)
	require.NoError(t, pruned.run("records", "verify", "web-2", "--no-headers"), "a chain may begin later")

	for sentence, test := range map[string]struct {
		change func(i int, spec *fleetflowv1alpha1.AuditRecordSpec) bool
		says   string
	}{
		"one is missing": {change: func(i int, _ *fleetflowv1alpha1.AuditRecordSpec) bool { return i != 1 }, says: "web-2: record 2 is missing"},
		"one was changed": {change: func(i int, spec *fleetflowv1alpha1.AuditRecordSpec) bool {
			if i == 1 {
				spec.Actor = &fleetflowv1alpha1.AuditActor{Username: "somebody.else@example.com", Verified: true}
			}
			return true
		}, says: "is not as it was when record 3 was written"},
	} {
		t.Run(sentence, func(t *testing.T) {
			c := newConsole(t, append(recordedChain("", "web-2", test.change), recordedChain("shop", "nightly", nil)...)...)
			err := c.run("records", "verify")
			require.ErrorContains(t, err, "the records of 1 object are not whole")
			assert.Equal(t, cli.CodeFailed, exitCode(t, err))
			assert.Contains(t, c.Err.String(), test.says)
		})
	}
}

func TestHistoryTellsWhatIsOnRecordOfRunsThatAreGone(t *testing.T) {
	planOf := func(i int, spec *fleetflowv1alpha1.AuditRecordSpec) bool {
		if i == 1 {
			spec.PlanHash = "sha256:9f3c2a"
		}
		return true
	}
	objects := append(release(), recordedChain("", "web-2", planOf)...)
	objects = append(objects, recordedChain("shop", "nightly", nil)...)
	c := newConsole(t, objects...)
	require.NoError(t, c.run("history", "web", "--only", "approval", "-o", "json"))
	assert.JSONEq(t, `[{"at":"2026-01-02T13:04:05Z","what":"approval","name":"web-2","text":"stage canary approved","by":"joe@example.com","channel":"TemporalSignal","comment":"CAB-17","planHash":"sha256:9f3c2a","recorded":true}]`, c.Out.String())
	require.NoError(t, c.run("history", "web"))
	assert.Contains(t, c.Out.String(), "joe@example.com")
	assert.Contains(t, c.Out.String(), "jane@example.com")
	assert.NotContains(t, c.Out.String(), "nightly", "that is of a placement in a namespace")
}

func TestHistoryTellsOfARunThatIsThereWhoHasStoppedIt(t *testing.T) {
	run := soakingRun()
	jane := &fleetflowv1alpha1.AuditActor{Username: "jane@example.com", Verified: true, Channel: "Kubectl"}
	var objects []client.Object
	for i, fact := range []fleetflowv1alpha1.AuditRecordSpec{
		{Type: fleetflowv1alpha1.RecordRunCreated, Actor: jane}, {Type: fleetflowv1alpha1.RecordRunStopped, Actor: jane},
	} {
		fact.Sequence = int64(i + 1)
		fact.Time = ago(time.Minute)
		fact.PlacementName, fact.UpdateRunName = "web", run.Name
		fact.SubjectRef = fleetflowv1alpha1.AuditSubjectReference{Kind: "ClusterStagedUpdateRun", Name: run.Name, UID: string(run.UID)}
		objects = append(objects, &fleetflowv1alpha1.AuditRecord{ObjectMeta: metav1.ObjectMeta{Name: fleetflowv1alpha1.RecordName(string(run.UID), fact.Sequence)}, Spec: fact})
	}
	c := newConsole(t, append(append(release(), run), objects...)...)
	require.NoError(t, c.run("history", "web", "--only", "run", "-o", "json"))
	assert.Equal(t, 1, strings.Count(c.Out.String(), `"text": "stopped"`), c.Out.String())
	assert.NotContains(t, c.Out.String(), `"text": "created`, "the run tells that itself")
}

func TestRecordsOfAMember(t *testing.T) {
	record := &fleetflowv1alpha1.AuditRecord{ObjectMeta: metav1.ObjectMeta{Name: "r-member-0001"}}
	record.Spec = fleetflowv1alpha1.AuditRecordSpec{Type: fleetflowv1alpha1.RecordMemberLost, Time: ago(time.Hour), Sequence: 1}
	record.Spec.SubjectRef = fleetflowv1alpha1.AuditSubjectReference{Kind: "MemberCluster", Name: "member-1", UID: "member"}
	c := newConsole(t, append(recordedChain("", "member-1", nil), record)...)
	require.NoError(t, c.run("records", "member/member-1", "--no-headers"))
	assert.Equal(t, 1, strings.Count(c.Out.String(), "\n"), c.Out.String())
	assert.Contains(t, c.Out.String(), "member/member-1")
	require.NoError(t, c.run("records", "run/member-1", "--no-headers"))
	assert.NotContains(t, c.Out.String(), "member.lost", "a run of the same name is another object")
}

func TestRecordsThatASinkHasNotGot(t *testing.T) {
	siem := &fleetflowv1alpha1.AuditSink{ObjectMeta: metav1.ObjectMeta{Name: "siem"}, Spec: fleetflowv1alpha1.AuditSinkSpec{
		Type: fleetflowv1alpha1.AuditSinkWebhookType, Filter: &fleetflowv1alpha1.AuditSinkFilter{Types: []string{"run.*"}},
	}}
	objects := append(recordedChain("", "web-2", nil), siem)
	delivered := objects[0].(*fleetflowv1alpha1.AuditRecord)
	delivered.Status = fleetflowv1alpha1.AuditRecordStatus{Complete: true, Deliveries: []fleetflowv1alpha1.AuditDelivery{{Kind: "AuditSink", Name: "siem", Time: ago(0)}}}
	c := newConsole(t, objects...)
	require.NoError(t, c.run("records", "--undelivered", "--no-headers"))
	assert.Len(t, strings.Split(strings.TrimSpace(c.Out.String()), "\n"), 1, "no approval, and nothing that was delivered: %s", c.Out.String())
	assert.Contains(t, c.Out.String(), "run.succeeded")
	assert.Contains(t, c.Out.String(), "siem")

	without := newConsole(t, recordedChain("", "web-2", nil)...)
	require.NoError(t, without.run("records", "--undelivered"))
	assert.Contains(t, without.Out.String()+without.Err.String(), "There is no AuditSink and no NotificationRule")
	later := siem.DeepCopy()
	later.CreationTimestamp = ago(-time.Hour)
	all := newConsole(t, append(recordedChain("", "web-2", nil), later)...)
	require.NoError(t, all.run("records", "--undelivered"))
	assert.Contains(t, all.Out.String()+all.Err.String(), "Every AuditSink and every channel has got what it is to get")
}

func TestRecordsThatAChannelHasNotGot(t *testing.T) {
	chain := recordedChain("", "web-2", nil)
	placement := chain[0].(*fleetflowv1alpha1.AuditRecord).Spec.PlacementName
	require.NotEmpty(t, placement)
	rule := func(name, when string, types ...string) *fleetflowv1alpha1.NotificationRule {
		return &fleetflowv1alpha1.NotificationRule{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: fleetflowv1alpha1.NotificationRuleSpec{
			Types: types, When: when, ChannelRefs: []fleetflowv1alpha1.NotificationChannelReference{{Name: "ops"}, {Name: "missing"}},
			PlacementSelector: &metav1.LabelSelector{MatchLabels: map[string]string{fleetflowv1alpha1.PlacementNameLabel: placement}},
		}}
	}
	other := rule("other", "", "run.*")
	other.Spec.PlacementSelector.MatchLabels[fleetflowv1alpha1.PlacementNameLabel] = "other"
	told := chain[0].(*fleetflowv1alpha1.AuditRecord)
	told.Status.Deliveries = []fleetflowv1alpha1.AuditDelivery{{Kind: "NotificationRule", Name: "people/ops", Time: ago(0)}}
	c := newConsole(t, append(chain, other, rule("people", "", "run.*"), rule("some", "true", "run.*", "approval.*"),
		&fleetflowv1alpha1.NotificationChannel{ObjectMeta: metav1.ObjectMeta{Name: "ops"}})...)
	require.NoError(t, c.run("records", "--undelivered", "--no-headers"))
	out := c.Out.String()
	assert.NotContains(t, out, string(told.Spec.Type), "the channel has it")
	assert.Regexp(t, `run.succeeded .* people/ops\n`, out, "no other rule tells it there")
	assert.Regexp(t, `approval.given .* some/ops\?\n`, out)
	assert.NotContains(t, out, "missing")
}

// A user who may read sinks alone is told of them, and that the rest is left out; what cannot be read of a placement is no reason to leave a record out.
func TestRecordsThatWaitForWhatTheUserMayNotRead(t *testing.T) {
	siem := &fleetflowv1alpha1.AuditSink{ObjectMeta: metav1.ObjectMeta{Name: "siem"}, Spec: fleetflowv1alpha1.AuditSinkSpec{
		Type: fleetflowv1alpha1.AuditSinkWebhookType, Filter: &fleetflowv1alpha1.AuditSinkFilter{
			Types: []string{"run.succeeded"}, PlacementSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"team": "a"}},
		},
	}}
	c := newConsole(t, append(recordedChain("", "web-2", nil), siem)...)
	refused := func() error { return apierrors.NewForbidden(schema.GroupResource{Resource: "things"}, "", nil) }
	c.Hub = interceptor.NewClient(c.Hub, interceptor.Funcs{
		List: func(ctx context.Context, hub client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			switch list.(type) {
			case *fleetflowv1alpha1.NotificationRuleList, *fleetflowv1alpha1.NotificationChannelList:
				return refused()
			}
			return hub.List(ctx, list, options...)
		},
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return refused()
		},
	})
	require.NoError(t, c.run("records", "--undelivered", "--no-headers"))
	assert.Regexp(t, `run.succeeded .* siem\?\n`, c.Out.String())
	assert.Contains(t, c.Err.String(), "You may not list the notification channels and the notification rules of this hub")
}
