package notify

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	"github.com/fleetflow/fleetflow/test/terminal"
)

func aChannel() *fleetflowv1alpha1.NotificationChannel {
	return &fleetflowv1alpha1.NotificationChannel{ObjectMeta: metav1.ObjectMeta{Name: "ops", UID: "1"}}
}

// answer has the hub agent say what became of the test that is asked for.
func answer(t *testing.T, c *terminal.Console, delivered bool, why string) {
	t.Helper()
	watcher, err := c.Hub.Watch(t.Context(), &fleetflowv1alpha1.NotificationChannelList{})
	require.NoError(t, err)
	go func() {
		defer watcher.Stop()
		for event := range watcher.ResultChan() {
			channel, is := event.Object.(*fleetflowv1alpha1.NotificationChannel)
			if !is || channel.Annotations[fleetflowv1alpha1.TestMessageAnnotation] == "" {
				continue
			}
			channel = channel.DeepCopy()
			channel.Status.LastTest = &fleetflowv1alpha1.ChannelTest{
				ID: channel.Annotations[fleetflowv1alpha1.TestMessageAnnotation], Time: metav1.Now(), Delivered: delivered, Message: why,
			}
			assert.NoError(t, c.Hub.Status().Update(t.Context(), channel))
			return
		}
	}()
}

func TestAMessageThatArrives(t *testing.T) {
	c := terminal.New(t, aChannel())
	answer(t, c, true, "")
	require.NoError(t, c.Run(New, "test", "ops"))
	assert.Contains(t, c.Out.String(), "notificationchannel/ops tested: the message has arrived\n")
}

func TestAMessageThatDoesNot(t *testing.T) {
	c := terminal.New(t, aChannel())
	answer(t, c, false, "the server of the channel answers 404")
	require.ErrorContains(t, c.Run(New, "test", "ops"), "the message did not arrive: the server of the channel answers 404")
}

func TestWhereNobodySends(t *testing.T) {
	c := terminal.New(t, aChannel())
	require.ErrorContains(t, c.Run(New, "test", "ops", "--timeout", "10ms"), "records.enabled")
	require.ErrorContains(t, c.Run(New, "test", "none"), `there is no NotificationChannel "none"`)
}

func TestADryRunAsksForNothing(t *testing.T) {
	c := terminal.New(t, aChannel())
	require.NoError(t, c.Run(New, "test", "ops", "--dry-run"))
	channel := &fleetflowv1alpha1.NotificationChannel{}
	require.NoError(t, c.Hub.Get(t.Context(), client.ObjectKey{Name: "ops"}, channel))
	assert.Empty(t, channel.Annotations)
}
