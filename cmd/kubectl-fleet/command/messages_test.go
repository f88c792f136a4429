package command

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
)

func TestGetChannelsAndRules(t *testing.T) {
	chat := &fleetflowv1alpha1.NotificationChannel{ObjectMeta: metav1.ObjectMeta{Name: "chat"}, Spec: fleetflowv1alpha1.NotificationChannelSpec{Type: fleetflowv1alpha1.ChannelSlack}}
	chat.Status.Conditions = []metav1.Condition{condition(fleetflowv1alpha1.ConditionTypeReady, metav1.ConditionFalse, fleetflowv1alpha1.ReasonRefused, time.Minute)}
	chat.Status.Conditions[0].Message = "Slack answers channel_not_found"
	rule := &fleetflowv1alpha1.NotificationRule{ObjectMeta: metav1.ObjectMeta{Name: "people"}}
	rule.Spec.ChannelRefs = []fleetflowv1alpha1.NotificationChannelReference{{Name: "chat"}, {Name: "mail"}}
	c := newConsole(t, chat, rule)
	require.NoError(t, c.run("get", "channels"))
	for _, want := range []string{"NAME", "LAST MESSAGE", "chat", "Slack", "fails", "Slack answers channel_not_found"} {
		assert.Contains(t, c.Out.String(), want)
	}
	c.Out.Reset()
	require.NoError(t, c.run("get", "nrule", "people"))
	for _, want := range []string{"people", "to chat, mail", "unknown", "the hub agent has not looked at it yet"} {
		assert.Contains(t, c.Out.String(), want)
	}
	c.Out.Reset()
	require.EqualError(t, c.run("get", "channels", "nowhere"), `there is no channel named "nowhere"; kubectl fleet get lists what there is`)
}
