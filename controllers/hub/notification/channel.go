package notification

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/fleetflow/fleetflow/activities/fence"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	"github.com/fleetflow/fleetflow/controllers/hub/delivery"
)

// lookAgain is after how long a channel is looked at once more: Secrets are not watched, and names get other addresses.
const lookAgain = time.Minute

// outcome is what became of the last message to a channel.
type outcome struct {
	at       time.Time
	reason   string
	why      string
	isFailed bool
}

// channelsSeen is what is known of channels, by their names.
type channelsSeen struct {
	// versions are those of channels and of what they use, and routed those for which the ways were made known; outcomes are what became of
	// the last message.
	versions, routed map[string]string
	outcomes         map[string]outcome
	// refused are, by the way, what channels have said for good: nothing more is sent there until another message arrives, which again counts.
	refused map[delivery.Key]outcome
	again   map[string]int
}

// channelReconciler looks after channels: whether they can be used, and what became of the last message.
type channelReconciler struct {
	// client reads from the cache, and writes statuses.
	client client.Client
	sender *Sender
	events events.EventRecorder
	clock  clock.PassiveClock
	// mu is the lock of the Teller, which decides by what is seen of channels which ways are new.
	mu   *sync.Mutex
	seen *channelsSeen
	// setRoutes has the engine know the ways from rules to channels, as they are now.
	setRoutes func(ctx context.Context) error
}

// note notes what became of a message to a channel. One that has arrived has the ways tried again by which the channel has refused others.
func (r *channelReconciler) note(channel string, done outcome, arrived bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen.outcomes[channel] = done
	if _, is := r.seen.refusalOf(channel); is && arrived {
		r.seen.again[channel]++
	}
}

// refusalOf returns what the channel has said for good the last time; is is false if nothing is kept back for that. The lock is held.
func (s *channelsSeen) refusalOf(channel string) (last outcome, is bool) {
	for way, refused := range s.refused {
		if channelOf(way) == channel && (!is || refused.at.After(last.at)) {
			last = refused
			is = true
		}
	}
	return last, is
}

func outcomeOf(err error, now time.Time) outcome {
	if err == nil {
		return outcome{at: now}
	}
	reason := fleetflowv1alpha1.ReasonUnreachable
	why := "The last message did not arrive: "
	if _, is := errors.AsType[*delivery.RefusedError](err); is {
		reason = fleetflowv1alpha1.ReasonRefused
	}
	if _, is := errors.AsType[*partlyError](err); is {
		reason = fleetflowv1alpha1.ReasonRefused
		why = "The last message did not arrive everywhere: "
	}
	return outcome{at: now, reason: reason, why: clusterv1beta1.CutText(why+shown(err.Error()), maxWhy), isFailed: true}
}

// Reconcile looks at one channel.
func (r *channelReconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	channel := &fleetflowv1alpha1.NotificationChannel{}
	if err := r.client.Get(ctx, request.NamespacedName, channel); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	problem, secrets, err := r.sender.Check(ctx, channel)
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("checking notification channel %s: %w", channel.Name, err)
	}
	r.noteVersion(channel, secrets)
	was := channel.Status.DeepCopy()
	changed := r.testIfAsked(ctx, channel)
	if r.isOther(channel.Name) {
		if err := r.setRoutes(ctx); err != nil {
			return reconcile.Result{}, err
		}
	}
	changed = r.judgeChannel(channel, problem) || changed
	if !changed {
		return reconcile.Result{RequeueAfter: lookAgain}, nil
	}
	if err := fence.ReplaceStatus(ctx, r.client, channel, channel.Status); err != nil {
		return reconcile.Result{}, err
	}
	ready := meta.FindStatusCondition(channel.Status.Conditions, fleetflowv1alpha1.ConditionTypeReady)
	if ready != nil && isFalseAnew(was.Conditions, *ready) {
		r.events.Eventf(channel, nil, corev1.EventTypeWarning, "ChannelNotReady", "Observe", "%s", ready.Message)
	}
	return reconcile.Result{RequeueAfter: lookAgain}, nil
}

// noteVersion notes of which version a channel is, and what it uses.
func (r *channelReconciler) noteVersion(channel *fleetflowv1alpha1.NotificationChannel, uses string) {
	version := fmt.Sprintf("%s %d %s", channel.UID, channel.Generation, uses)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.seen.versions[channel.Name] != version {
		r.seen.versions[channel.Name] = version
		delete(r.seen.outcomes, channel.Name) // it was that of another channel
	}
}

// isOther reports whether the ways to a channel are to be made known anew.
func (r *channelReconciler) isOther(channel string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	version := fmt.Sprintf("%s %d", r.seen.versions[channel], r.seen.again[channel])
	if r.seen.routed[channel] == version {
		return false
	}
	r.seen.routed[channel] = version
	return true
}

// testIfAsked sends the message that a user has asked for to see whether it arrives.
func (r *channelReconciler) testIfAsked(ctx context.Context, channel *fleetflowv1alpha1.NotificationChannel) (changed bool) {
	id := channel.Annotations[fleetflowv1alpha1.TestMessageAnnotation]
	if id == "" || len(id) > maxTestID || channel.Status.LastTest != nil && channel.Status.LastTest.ID == id {
		return false
	}
	message := TestMessage(channel, id, r.clock.Now())
	err := r.sender.Send(ctx, channel, &message)
	done := outcomeOf(err, r.clock.Now())
	_, partly := errors.AsType[*partlyError](err)
	r.note(channel.Name, done, err == nil || partly)
	channel.Status.LastTest = &fleetflowv1alpha1.ChannelTest{ID: id, Time: metav1.NewTime(done.at), Delivered: !done.isFailed}
	if err != nil {
		channel.Status.LastTest.Message = clusterv1beta1.CutText(shown(err.Error()), maxWhy)
	}
	return true
}

// maxTestID is how long what asks for a test may be.
const maxTestID = 63

// judgeChannel writes the conditions of a channel.
func (r *channelReconciler) judgeChannel(channel *fleetflowv1alpha1.NotificationChannel, problem *Problem) (changed bool) {
	now := r.clock.Now()
	conditions := &channel.Status.Conditions
	changed = put(conditions, conditionOn(fleetflowv1alpha1.ConditionTypeAccepted, fleetflowv1alpha1.ReasonAccepted, "The channel can be used", problem), channel.Generation, now)
	if problem != nil {
		return put(conditions, conditionOn(fleetflowv1alpha1.ConditionTypeReady, "", "", problem), channel.Generation, now) || changed
	}
	r.mu.Lock()
	last, is := r.seen.outcomes[channel.Name]
	refused, isRefused := r.seen.refusalOf(channel.Name)
	r.mu.Unlock()
	switch {
	case isRefused:
		return channel.NoteFailure(refused.reason, refused.why, refused.at) || changed
	case is && last.isFailed:
		return channel.NoteFailure(last.reason, last.why, last.at) || changed
	case is:
		return channel.NoteDelivery(last.at) || changed
	}
	ready := meta.FindStatusCondition(*conditions, fleetflowv1alpha1.ConditionTypeReady)
	if ready != nil && ready.ObservedGeneration == channel.Generation && slices.Contains(ofMessages, ready.Reason) {
		return changed // what became of the last message, an agent before this one has seen
	}
	return put(conditions, metav1.Condition{
		Type: fleetflowv1alpha1.ConditionTypeReady, Status: metav1.ConditionUnknown, Reason: fleetflowv1alpha1.ReasonNotTried,
		Message: "Whether messages arrive is known when one is sent: kubectl fleet notify test " + channel.Name + " sends one",
	}, channel.Generation, now) || changed
}

// ofMessages are the reasons of Ready that tell what became of a message.
var ofMessages = []string{fleetflowv1alpha1.ReasonChannelReady, fleetflowv1alpha1.ReasonUnreachable, fleetflowv1alpha1.ReasonRefused}
