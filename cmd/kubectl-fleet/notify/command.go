// Package notify has `kubectl fleet notify`, which sees whether messages about update runs arrive.
package notify

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	"github.com/fleetflow/fleetflow/cmd/internal/steer"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/base"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/cli"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
)

// testTimeout is how long a test is waited for if the user does not say.
const testTimeout = time.Minute

// idLength is how many letters tell tests apart.
const idLength = 8

// trial sends a message to a channel.
type trial struct {
	base.Steering
	timeout time.Duration
}

// New returns `kubectl fleet notify`.
func New(f *cli.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "notify",
		Short: "See whether messages about update runs arrive in a channel",
		Long: `See whether messages about update runs arrive. NotificationChannels say where people read them, and NotificationRules what is told
there: kubectl fleet get channels and kubectl fleet get rules list them, and kubectl fleet check names those that fail.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newTest(f, streams))
	return cmd
}

func newTest(f *cli.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	s := &trial{Steering: base.Steering{Factory: f, Streams: streams}}
	cmd := &cobra.Command{
		Use:   "test CHANNEL",
		Short: "Send a message to a channel now, and say whether it has arrived",
		Long: `Have the hub agent send a message to a NotificationChannel now, and say whether its server has taken it. It exits with 1, and
says why, if it has not. The message says that it is a test.

The hub agent is asked by the annotation fleetflow.io/test-message on the channel, and answers in status.lastTest: who may write the
channel may test it.`,
		Example:           `  kubectl fleet notify test slack-ops`,
		Args:              base.ExactlyOne("a channel", "kubectl fleet notify test slack-ops"),
		ValidArgsFunction: base.Completed(f, channels),
		RunE:              func(cmd *cobra.Command, args []string) error { return s.test(cmd.Context(), args[0]) },
	}
	s.AddPrintingFlags(cmd)
	cmd.Flags().DurationVar(&s.timeout, "timeout", testTimeout, "How long the answer of the hub agent is waited for.")
	return cmd
}

// channels returns the names of the channels that there are.
func channels(ctx context.Context, f *cli.Factory, _ []string) ([]string, error) {
	reader, err := base.NewReader(f)
	if err != nil {
		return nil, err
	}
	var all fleetflowv1alpha1.NotificationChannelList
	if err := reader.List(ctx, &all); err != nil {
		return nil, err
	}
	names := make([]string, 0, len(all.Items))
	for i := range all.Items {
		names = append(names, all.Items[i].Name)
	}
	return names, nil
}

func (s *trial) test(ctx context.Context, name string) error {
	c, err := s.Connect()
	if err != nil {
		return err
	}
	channel := &fleetflowv1alpha1.NotificationChannel{}
	err = c.Get(ctx, client.ObjectKey{Name: name}, channel)
	switch {
	case hub.Unserved(err):
		return errors.New("this hub has no channels: it does not serve their kind; upgrade the chart of the hub agent")
	case apierrors.IsNotFound(err):
		return fmt.Errorf("there is no NotificationChannel %q: kubectl get notificationchannels lists those that there are", name)
	case err != nil:
		return fmt.Errorf("reading notification channel %s: %w", name, err)
	}
	id := rand.String(idLength)
	before := channel.DeepCopy()
	metav1.SetMetaDataAnnotation(&channel.ObjectMeta, fleetflowv1alpha1.TestMessageAnnotation, id)
	if s.Sends() {
		if err := s.Writer(c).Patch(ctx, channel, client.MergeFrom(before)); err != nil {
			return fmt.Errorf("asking for a test of notification channel %s: %w", name, err)
		}
	}
	if s.Dry() {
		s.Done(s.Streams, "notificationchannel/%s tested", name)
		return nil
	}
	return s.await(ctx, c, channel, id)
}

// await waits until the hub agent has said what became of the message.
func (s *trial) await(ctx context.Context, c client.WithWatch, channel *fleetflowv1alpha1.NotificationChannel, id string) error {
	err := s.Factory.Patiently(s.Streams, "waiting for the hub agent", func() error {
		return steer.Await(ctx, c, channel, &fleetflowv1alpha1.NotificationChannelList{}, s.timeout,
			func(channel *fleetflowv1alpha1.NotificationChannel, there bool) bool {
				return !there || channel.Status.LastTest != nil && channel.Status.LastTest.ID == id
			})
	})
	switch last := channel.Status.LastTest; {
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("the hub agent has sent nothing within %s: it looks after channels if records.enabled is set in the values of its chart, and it may be down (kubectl fleet check)", s.timeout)
	case err != nil:
		return err
	case last == nil || last.ID != id:
		return fmt.Errorf("notification channel %s is gone", channel.Name)
	case !last.Delivered:
		return fmt.Errorf("the message did not arrive: %s", last.Message)
	}
	s.Done(s.Streams, "notificationchannel/%s tested: the message has arrived", channel.Name)
	return nil
}
