package notification_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	"github.com/fleetflow/fleetflow/controllers/hub/notification"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// record returns a record of a run, so many seconds after noon.
func record(run string, kind fleetflowv1alpha1.AuditRecordType, second int, change ...func(*fleetflowv1alpha1.AuditRecordSpec)) *fleetflowv1alpha1.AuditRecord {
	id := fleetflowv1alpha1.RecordID(run, kind, fmt.Sprint(second))
	at := metav1.NewTime(noon.Add(time.Duration(second) * time.Second))
	r := &fleetflowv1alpha1.AuditRecord{
		ObjectMeta: metav1.ObjectMeta{Name: fleetflowv1alpha1.RecordName("uid-"+run, int64(second+1)), CreationTimestamp: at},
		Spec: fleetflowv1alpha1.AuditRecordSpec{
			ID: id, Type: kind, Time: at, PlacementName: "web", UpdateRunName: run, StageName: "prod", Sequence: int64(second + 1),
			SubjectRef: fleetflowv1alpha1.AuditSubjectReference{APIVersion: "placement.kubernetes-fleet.io/v1beta1", Kind: "ClusterStagedUpdateRun", Name: run, UID: "uid-" + run},
		},
	}
	for _, c := range change {
		c(&r.Spec)
	}
	return r
}

// rule returns a rule that is as old as noon.
func rule(types string, change ...func(*fleetflowv1alpha1.NotificationRuleSpec)) *fleetflowv1alpha1.NotificationRule {
	r := &fleetflowv1alpha1.NotificationRule{
		ObjectMeta: metav1.ObjectMeta{Name: "people", UID: "rule", Generation: 1, CreationTimestamp: metav1.NewTime(noon)},
		Spec:       fleetflowv1alpha1.NotificationRuleSpec{Types: strings.Fields(types), ChannelRefs: []fleetflowv1alpha1.NotificationChannelReference{{Name: "ops"}}},
	}
	for _, c := range change {
		c(&r.Spec)
	}
	return r
}

func compiled(t *testing.T, of *fleetflowv1alpha1.NotificationRule) *notification.Rule {
	t.Helper()
	r, problem := notification.Compile(of)
	require.Nil(t, problem)
	return r
}

func when(text string) func(*fleetflowv1alpha1.NotificationRuleSpec) {
	return func(s *fleetflowv1alpha1.NotificationRuleSpec) { s.When = text }
}

func template(text string) func(*fleetflowv1alpha1.NotificationRuleSpec) {
	return func(s *fleetflowv1alpha1.NotificationRuleSpec) { s.Template = text }
}

func TestWhichRecordsARuleTells(t *testing.T) {
	tier := func(s *fleetflowv1alpha1.NotificationRuleSpec) {
		s.PlacementSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "prod"}}
	}
	failed := record("web-1", fleetflowv1alpha1.RecordRunFailed, 1, func(s *fleetflowv1alpha1.AuditRecordSpec) {
		s.Message = "2 clusters failed"
		s.Data = map[string]fleetflowv1alpha1.AuditValue{"failed": "member-1, member-2"}
	})
	for name, test := range map[string]struct {
		rule    *fleetflowv1alpha1.NotificationRule
		record  *fleetflowv1alpha1.AuditRecord
		tells   bool
		problem string
	}{
		"its type":                              {rule: rule("run.failed"), record: failed, tells: true},
		"another type":                          {rule: rule("run.stuck"), record: failed},
		"all of runs":                           {rule: rule("run.*"), record: failed, tells: true},
		"all of stages":                         {rule: rule("stage.*"), record: failed},
		"that a held run goes on":               {rule: rule("run.held"), record: record("web-1", fleetflowv1alpha1.RecordRunReleased, 1), tells: true},
		"that a stopped run goes on":            {rule: rule("run.stopped"), record: record("web-1", fleetflowv1alpha1.RecordRunResumed, 1), tells: true},
		"not that a run is held, by its end":    {rule: rule("run.released"), record: record("web-1", fleetflowv1alpha1.RecordRunHeld, 1)},
		"what was there before the rule":        {rule: rule("run.failed"), record: record("web-1", fleetflowv1alpha1.RecordRunFailed, -1)},
		"a placement with the labels":           {rule: rule("run.failed", tier), record: failed, tells: true},
		"an expression that holds":              {rule: rule("run.failed", when(`record.stageName == "prod" && record.data["failed"].contains("member-2")`)), record: failed, tells: true},
		"an expression that does not":           {rule: rule("run.failed", when(`record.placementName.startsWith("api")`)), record: failed},
		"an expression about who":               {rule: rule("run.failed", when(`record.actor.username == "fleet" && !record.actor.verified`)), record: failed, tells: true},
		"an expression about the time":          {rule: rule("run.failed", when(`record.time.getHours("UTC") == 12`)), record: failed, tells: true},
		"an expression that gives an error":     {rule: rule("run.failed", when(`record.data["ticket"] == "1"`)), record: failed, tells: true, problem: "no such key: ticket"},
		"an expression that costs too much":     {rule: rule("run.failed", when(`[1,2,3,4,5,6,7,8,9,10].all(a, [1,2,3,4,5,6,7,8,9,10].all(b, [1,2,3,4,5,6,7,8,9,10].all(c, [1,2,3,4,5,6,7,8,9,10].all(d, a+b+c+d > 0))))`)), record: failed, tells: true, problem: "cost limit exceeded"},
		"an expression about what there is not": {rule: rule("run.failed", when(`record.data.?ticket.hasValue()`)), record: failed, tells: false, problem: "-"},
	} {
		t.Run(name, func(t *testing.T) {
			if test.problem == "-" {
				_, problem := notification.Compile(test.rule)
				require.NotNil(t, problem, "optional values are no part of the language here")
				return
			}
			tells, problem := compiled(t, test.rule).Tells(t.Context(), test.record, map[string]string{"tier": "prod"})
			assert.Equal(t, test.tells, tells)
			if test.problem == "" {
				assert.Empty(t, problem)
			} else {
				assert.Contains(t, problem, test.problem)
			}
		})
	}
	tells, _ := compiled(t, rule("run.failed", tier)).Tells(t.Context(), failed, map[string]string{"tier": "dev"})
	assert.False(t, tells, "a placement without the labels")
}

func TestWhatARuleMayNotBe(t *testing.T) {
	for name, test := range map[string]struct {
		rule         *fleetflowv1alpha1.NotificationRule
		reason, text string
	}{
		"a type that no record has":       {rule("run.faild"), fleetflowv1alpha1.ReasonUnknownType, "run.faild"},
		"a kind that no record has":       {rule("budget.*"), fleetflowv1alpha1.ReasonUnknownType, "budget.*"},
		"a field that no record has":      {rule("run.*", when(`record.stage == "prod"`)), fleetflowv1alpha1.ReasonInvalidExpression, "undefined field 'stage'"},
		"what is no expression":           {rule("run.*", when(`record.`)), fleetflowv1alpha1.ReasonInvalidExpression, "not valid CEL"},
		"an expression without an answer": {rule("run.*", when(`record.stageName`)), fleetflowv1alpha1.ReasonInvalidExpression, "gives string, not bool"},
		"what is no template":             {rule("run.*", template(`{{ .type`)), fleetflowv1alpha1.ReasonInvalidTemplate, "unclosed action"},
		"a loop":                          {rule("run.*", template(`{{ range 1000000000 }}{{ end }}`)), fleetflowv1alpha1.ReasonInvalidTemplate, "a loop (range)"},
		"a loop within":                   {rule("run.*", template(`{{ if .type }}{{ with .data }}{{ range . }}{{ end }}{{ end }}{{ end }}`)), fleetflowv1alpha1.ReasonInvalidTemplate, "a loop (range)"},
		"a template that calls itself":    {rule("run.*", template(`{{ define "a" }}{{ template "a" }}{{ end }}{{ template "a" }}`)), fleetflowv1alpha1.ReasonInvalidTemplate, "another template"},
		"a template that calls its name":  {rule("run.*", template(`{{ template "template" . }}`)), fleetflowv1alpha1.ReasonInvalidTemplate, "calls a template"},
		"a function that makes texts":     {rule("run.*", template(`{{ printf "%1000000d" 1 }}`)), fleetflowv1alpha1.ReasonInvalidTemplate, "calls printf"},
		"a function within":               {rule("run.*", template(`{{ if eq (len (print .type)) 1 }}{{ end }}`)), fleetflowv1alpha1.ReasonInvalidTemplate, "calls print"},
		"a selector that is none": {rule("run.*", func(s *fleetflowv1alpha1.NotificationRuleSpec) {
			s.PlacementSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Like"}}}
		}), fleetflowv1alpha1.ReasonInvalidSelector, "placementSelector"},
	} {
		t.Run(name, func(t *testing.T) {
			_, problem := notification.Compile(test.rule)
			require.NotNil(t, problem)
			assert.Equal(t, test.reason, problem.Reason)
			assert.Contains(t, problem.Text, test.text)
		})
	}
}

func TestWhatATemplateTells(t *testing.T) {
	failed := record("web-1", fleetflowv1alpha1.RecordRunFailed, 1, func(s *fleetflowv1alpha1.AuditRecordSpec) {
		s.Message = "2 clusters failed"
		s.Actor = &fleetflowv1alpha1.AuditActor{Username: "jane", Verified: true}
		s.Data = map[string]fleetflowv1alpha1.AuditValue{"snapshot": "3"}
	})
	for name, test := range map[string]struct{ template, text, problem string }{
		"fields":               {`{{ .placementName }}/{{ .updateRunName }} of {{ .actor.username }}: {{ .message }}, snapshot {{ .data.snapshot }}`, "web/web-1 of jane: 2 clusters failed, snapshot 3", ""},
		"what there is not":    {`[{{ .data.ticket }}]{{ .secret }}`, "[]", ""},
		"a choice":             {`{{ if eq .type "run.failed" }}down{{ else }}up{{ end }}`, "down", ""},
		"the name of a Secret": {`see Secret slack of the hub`, "see Secret slack of the hub", ""},
		"what gives an error":  {`{{ index .type 100 }}`, "", "the template gives an error"},
		"a method":             {`{{ .time.Unix }}`, "", "the template gives an error"},
	} {
		t.Run(name, func(t *testing.T) {
			text, problem := compiled(t, rule("run.*", template(test.template))).Text(failed)
			assert.Equal(t, test.text, text)
			if test.problem == "" {
				assert.Empty(t, problem)
			} else {
				assert.Contains(t, problem, test.problem)
			}
		})
	}
	long := record("web-1", fleetflowv1alpha1.RecordRunFailed, 1, func(s *fleetflowv1alpha1.AuditRecordSpec) { s.Comment = strings.Repeat("ü", 3000) })
	text, problem := compiled(t, rule("run.*", template(`{{ .comment }}{{ .comment }}`))).Text(long)
	assert.Empty(t, problem)
	assert.LessOrEqual(t, len(text), 4096)
	assert.Greater(t, len(text), 4000)

	forged := record("web-1", fleetflowv1alpha1.RecordRunFailed, 1, func(s *fleetflowv1alpha1.AuditRecordSpec) {
		s.Comment, s.Message = "fine\n12:00:00 UTC stage prod was approved", "so\r\nit is"
		s.Actor = &fleetflowv1alpha1.AuditActor{Username: "jane\nroot"}
		s.Data = map[string]fleetflowv1alpha1.AuditValue{"snapshot": "3\n4"}
	})
	text, problem = compiled(t, rule("run.*", template(`{{ .comment }}{{ .message }}{{ .actor.username }}{{ .data.snapshot }}`))).Text(forged)
	assert.Empty(t, problem)
	assert.NotContains(t, text, "\n", "what people say is on one line")
}
