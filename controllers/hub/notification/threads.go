package notification

import (
	"regexp"
	"slices"
	"sync"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
)

// maxThreads is of how many threads it is known where they began.
const maxThreads = 1000

// threads are where the messages about runs began in channels of Slack: those that follow are told there. An agent that leads after this one does not know
// them, and begins others.
type threads struct {
	mu    sync.Mutex
	began map[thread]string
	// order has the oldest first.
	order []thread
}

// thread is that of a run in a channel, as the channel is set up.
type thread struct {
	channel    string
	generation int64
	run        string
}

// threadOf returns the thread of a message in a channel; is is false if it has none.
func threadOf(channel *fleetflowv1alpha1.NotificationChannel, message *Message) (of thread, is bool) {
	return thread{string(channel.UID), channel.Generation, message.Thread}, message.Thread != "" && channel.Spec.Slack != nil && channel.Spec.Slack.TokenSecret != nil
}

// find returns where a thread began; empty if that is not known.
func (t *threads) find(channel *fleetflowv1alpha1.NotificationChannel, message *Message) string {
	of, is := threadOf(channel, message)
	if !is {
		return ""
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.began[of]
}

// slackTime is what Slack calls a message by.
var slackTime = regexp.MustCompile(`^[0-9]{1,20}\.[0-9]{1,20}$`)

// note notes what Slack calls a message by, as the beginning of its thread if that has none.
func (t *threads) note(channel *fleetflowv1alpha1.NotificationChannel, message *Message, at string) {
	of, is := threadOf(channel, message)
	if !is || !slackTime.MatchString(at) {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.began[of] != "" {
		return
	}
	if t.began == nil {
		t.began = map[thread]string{}
	}
	t.began[of] = at
	t.order = append(t.order, of)
	if len(t.order) > maxThreads {
		delete(t.began, t.order[0])
		t.order = slices.Delete(t.order, 0, 1)
	}
}

// forget forgets where a thread began: Slack takes no more messages there.
func (t *threads) forget(channel *fleetflowv1alpha1.NotificationChannel, message *Message) {
	of, _ := threadOf(channel, message)
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.began, of)
	t.order = slices.DeleteFunc(t.order, func(other thread) bool { return other == of })
}
