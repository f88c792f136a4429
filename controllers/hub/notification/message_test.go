package notification_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	"github.com/fleetflow/fleetflow/controllers/hub/notification"
)

func channelOn(dashboard string) *fleetflowv1alpha1.NotificationChannel {
	return &fleetflowv1alpha1.NotificationChannel{ObjectMeta: metav1.ObjectMeta{Name: "ops"}, Spec: fleetflowv1alpha1.NotificationChannelSpec{DashboardURL: dashboard}}
}

func grouped(by fleetflowv1alpha1.NotificationGrouping, most int32) func(*fleetflowv1alpha1.NotificationRuleSpec) {
	return func(s *fleetflowv1alpha1.NotificationRuleSpec) {
		s.Group = &fleetflowv1alpha1.NotificationGroup{By: by, MaxMessages: most}
	}
}

func TestAMessageSaysWhatWhereWhyAndWhatNext(t *testing.T) {
	asked := record("web-2", fleetflowv1alpha1.RecordApprovalRequested, 5)
	by := func(s *fleetflowv1alpha1.AuditRecordSpec) {
		s.Actor = &fleetflowv1alpha1.AuditActor{Username: "jane@example.com", Verified: true}
		s.Comment = "lgtm, CAB-17"
	}
	given := record("web-2", fleetflowv1alpha1.RecordApprovalGiven, 9, by)
	inNamespace := record("nightly", fleetflowv1alpha1.RecordRunFailed, 1, func(s *fleetflowv1alpha1.AuditRecordSpec) {
		s.SubjectRef.Namespace = "shop"
		s.Message = "2 clusters failed"
	})
	for name, test := range map[string]struct {
		records []*fleetflowv1alpha1.AuditRecord
		want    notification.Message
		lines   []string
	}{
		"one record": {
			[]*fleetflowv1alpha1.AuditRecord{asked},
			notification.Message{
				Title: "Stage prod of run web-2 waits for an approval (placement web)", Mood: notification.Waits,
				Next: "kubectl fleet approve web-2 --stage prod", Link: "https://fleet.example.com/runs/web-2",
			},
			[]string{"12:00:05 UTC stage prod of run web-2 waits for an approval"},
		},
		"of several, the most urgent is the title": {
			[]*fleetflowv1alpha1.AuditRecord{given, asked},
			notification.Message{
				Title: "Stage prod of run web-2 waits for an approval (placement web)", Mood: notification.Waits,
				Next: "kubectl fleet approve web-2 --stage prod", Link: "https://fleet.example.com/runs/web-2",
			},
			[]string{
				"12:00:05 UTC stage prod of run web-2 waits for an approval",
				"12:00:09 UTC stage prod of run web-2 was approved, by jane@example.com: lgtm, CAB-17",
			},
		},
		"in a namespace": {
			[]*fleetflowv1alpha1.AuditRecord{inNamespace},
			notification.Message{
				Title: "Run nightly has failed (placement shop/web)", Mood: notification.Bad, Next: "kubectl fleet why run/nightly -n shop",
				Link: "https://fleet.example.com/ns/shop/runs/nightly",
			},
			[]string{"12:00:01 UTC run nightly has failed: 2 clusters failed"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			messages := notification.Messages(channelOn("https://fleet.example.com/"), compiled(t, rule("run.* approval.*")), test.records)
			require.Len(t, messages, 1)
			got := messages[0]
			assert.Equal(t, test.lines, got.Lines())
			assert.Len(t, got.Records, len(test.records))
			assert.True(t, strings.HasPrefix(got.ID, "msg_"))
			assert.Equal(t, test.want, notification.Message{Title: got.Title, Mood: got.Mood, Next: got.Next, Link: got.Link})
		})
	}
}

// An approval that is no longer waited for is no news of one that waits.
func TestWhatIsOverIsNotTheTitle(t *testing.T) {
	messages := notification.Messages(channelOn(""), compiled(t, rule("approval.*")), []*fleetflowv1alpha1.AuditRecord{
		record("web-2", fleetflowv1alpha1.RecordApprovalRequested, 5), record("web-2", fleetflowv1alpha1.RecordApprovalGiven, 9),
	})
	assert.Empty(t, messages[0].Link, "without a dashboard there is no link")
}

func TestEveryTypeIsTold(t *testing.T) {
	for _, kind := range fleetflowv1alpha1.RecordTypes() {
		messages := notification.Messages(channelOn(""), compiled(t, rule("run.*")), []*fleetflowv1alpha1.AuditRecord{record("web-2", kind, 1)})
		require.Len(t, messages, 1)
		assert.NotContains(t, messages[0].Title, string(kind), "it has a sentence")
		assert.NotContains(t, messages[0].Title+messages[0].Next, "{", kind)
		assert.Contains(t, messages[0].Next, "kubectl ")
		if about, _, _ := strings.Cut(string(kind), "."); slices.Contains([]string{"run", "stage", "cluster", "approval", "analysis", "member"}, about) {
			assert.Contains(t, messages[0].Next, "web-2")
		}
	}
}

func TestGrouping(t *testing.T) {
	var records []*fleetflowv1alpha1.AuditRecord
	for run := range 3 {
		for n := range 2 {
			records = append(records, record(fmt.Sprintf("web-%d", run), fleetflowv1alpha1.RecordStageStarted, 10*run+n))
		}
	}
	assert.Len(t, notification.Messages(channelOn(""), compiled(t, rule("run.*")), records), 3, "one a run")
	assert.Len(t, notification.Messages(channelOn(""), compiled(t, rule("run.*", grouped(fleetflowv1alpha1.GroupByRecord, 20))), records), 6, "one a record")
	assert.Len(t, notification.Messages(channelOn(""), compiled(t, rule("run.*", grouped(fleetflowv1alpha1.GroupByRun, 3))), records), 3, "as many as it takes")
	digest := notification.Messages(channelOn("https://f"), compiled(t, rule("run.*", grouped(fleetflowv1alpha1.GroupByRun, 2))), records)
	require.Len(t, digest, 1, "more than it takes")
	assert.Equal(t, "6 records of 3 objects", digest[0].Title)
	assert.Equal(t, []string{
		"6 stage.started", "Stage prod of run web-0 has begun (placement web)", "Stage prod of run web-1 has begun (placement web)",
		"Stage prod of run web-2 has begun (placement web)",
	}, digest[0].Lines())
	assert.Equal(t, "https://f/runs", digest[0].Link)
	assert.Empty(t, notification.Messages(channelOn(""), compiled(t, rule("run.*")), nil))
}

func TestAMessageOfTheSameRecordsHasTheSameID(t *testing.T) {
	one, two := record("web-1", fleetflowv1alpha1.RecordRunHeld, 1), record("web-1", fleetflowv1alpha1.RecordRunReleased, 2)
	r := compiled(t, rule("run.*"))
	first := notification.Messages(channelOn(""), r, []*fleetflowv1alpha1.AuditRecord{one, two})[0]
	assert.Equal(t, first, notification.Messages(channelOn(""), r, []*fleetflowv1alpha1.AuditRecord{two, one})[0])
	assert.NotEqual(t, first.ID, notification.Messages(channelOn(""), r, []*fleetflowv1alpha1.AuditRecord{one})[0].ID)
}

// A rule that matches everything, in a fleet of 5,000 clusters during an outage.
func TestAFloodIsOneDigest(t *testing.T) {
	var records []*fleetflowv1alpha1.AuditRecord
	for run := range 400 {
		kind := fleetflowv1alpha1.RecordRunStuck
		if run == 399 {
			kind = fleetflowv1alpha1.RecordRunFailed
		}
		for n := range 25 {
			records = append(records, record(fmt.Sprintf("app-%d", run), kind, n, func(s *fleetflowv1alpha1.AuditRecordSpec) {
				s.Message = strings.Repeat("member-1234 ", 80)
			}))
		}
	}
	began := time.Now()
	digest := notification.Messages(channelOn(""), compiled(t, rule("run.*")), records)
	assert.Less(t, time.Since(began), 5*time.Second)
	require.Len(t, digest, 1)
	assert.Equal(t, "10000 records of 400 objects", digest[0].Title)
	lines := digest[0].Lines()
	require.Len(t, lines, 12)
	assert.Equal(t, "9975 run.stuck, 25 run.failed", lines[0])
	assert.Equal(t, "and 390 more objects", lines[11])
	// All of one run: the last ones.
	many := notification.Messages(channelOn(""), compiled(t, rule("run.*")), records[:25])
	require.Len(t, many, 1)
	assert.Equal(t, "5 records before these are not shown", many[0].Lines()[0])
	assert.Len(t, many[0].Lines(), 21)
}

// A zone of 500 members that is lost is one message, and no message for each of them.
func TestMembersThatAreLostTogetherAreOneMessage(t *testing.T) {
	var records []*fleetflowv1alpha1.AuditRecord
	for member := range 500 {
		records = append(records, record(fmt.Sprintf("member-%d", member), fleetflowv1alpha1.RecordMemberLost, 1))
	}
	messages := notification.Messages(channelOn(""), compiled(t, rule("member.*")), records)
	require.Len(t, messages, 1)
	assert.Contains(t, messages[0].Title, ", and 499 more are like it")
	assert.Equal(t, "kubectl get memberclusters", messages[0].Next)
	assert.Len(t, notification.Messages(channelOn(""), compiled(t, rule("member.*")), append(records, record("member-1", fleetflowv1alpha1.RecordMemberBack, 2))), 2)
}
