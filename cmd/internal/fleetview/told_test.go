package fleetview_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	"github.com/fleetflow/fleetflow/cmd/internal/fleetview"
	"github.com/fleetflow/fleetflow/test/fixture"
)

func TestWhatRecordsAndMessagesGoTo(t *testing.T) {
	at := time.Date(2026, 11, 21, 21, 52, 0, 0, time.UTC)
	ready := func(status metav1.ConditionStatus) []metav1.Condition {
		return []metav1.Condition{{Type: fleetflowv1alpha1.ConditionTypeReady, Status: status, Reason: "Because", Message: "so", LastTransitionTime: metav1.NewTime(at)}}
	}
	chat := &fleetflowv1alpha1.NotificationChannel{ObjectMeta: metav1.ObjectMeta{Name: "chat"}}
	chat.Spec.Type = fleetflowv1alpha1.ChannelSlack
	chat.Status.Conditions = ready(metav1.ConditionTrue)
	chat.Status.LastDeliveryTime = &metav1.Time{Time: at.Add(time.Minute)}
	mail := &fleetflowv1alpha1.NotificationChannel{ObjectMeta: metav1.ObjectMeta{Name: "mail"}}
	mail.Status.Conditions = ready(metav1.ConditionUnknown)
	rule := &fleetflowv1alpha1.NotificationRule{ObjectMeta: metav1.ObjectMeta{Name: "people"}}
	rule.Spec.ChannelRefs = []fleetflowv1alpha1.NotificationChannelReference{{Name: "chat"}, {Name: "mail"}}
	sink := &fleetflowv1alpha1.AuditSink{ObjectMeta: metav1.ObjectMeta{Name: "siem"}}
	sink.Spec.Type = fleetflowv1alpha1.AuditSinkWebhookType
	sink.Status.Conditions = ready(metav1.ConditionFalse)
	sink.Status.Pending = 7
	all, err := fleetview.ReadTold(t.Context(), fixture.NewClientBuilder(fixture.Scheme(t)).WithObjects(chat, mail, rule, sink).Build())
	require.NoError(t, err)
	var shown [][]string
	for _, row := range all {
		var cells []string
		for _, column := range fleetview.ToldColumns {
			cells = append(cells, column.Text(row))
		}
		shown = append(shown, cells)
	}
	assert.Equal(t, [][]string{
		{"channel", "chat", "Slack", "ready", "2026-11-21T21:52:00Z", "2026-11-21T21:53:00Z", "", "so"},
		{"channel", "mail", "", "unknown", "2026-11-21T21:52:00Z", "", "", "so"},
		{"rule", "people", "to chat, mail", "unknown", "", "", "", "the hub agent has not looked at it yet"},
		{"sink", "siem", "Webhook", "fails", "2026-11-21T21:52:00Z", "", "7", "so"},
	}, shown)
}
