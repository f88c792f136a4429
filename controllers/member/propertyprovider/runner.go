package propertyprovider

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
)

const (
	// StartDeadline is how long a provider may take to start before the agent reports without it.
	StartDeadline = 10 * time.Second
	// CollectDeadline is how long a provider may take to collect before the agent reports without it.
	CollectDeadline = 10 * time.Second
)

// Reasons of the conditions ClusterPropertyProviderStarted and ClusterPropertyCollectionSucceeded.
const (
	// ReasonStarted means that the provider runs.
	ReasonStarted = "ClusterPropertyProviderStarted"
	// ReasonStarting means that it has not been asked for long enough to tell.
	ReasonStarting = "ClusterPropertyProviderStarting"
	// ReasonStartFailed means that it has ended with an error.
	ReasonStartFailed = "ClusterPropertyProviderStartFailed"
	// ReasonStartTimedOut means that it has not answered in time.
	ReasonStartTimedOut = "ClusterPropertyProviderStartTimedOut"
	// ReasonCollected means that the properties shown are the provider's.
	ReasonCollected = "ClusterPropertyCollectionSucceeded"
	// ReasonCollectionFailed means that the provider broke down, or that its answer cannot be used.
	ReasonCollectionFailed = "ClusterPropertyCollectionFailed"
	// ReasonCollectionTimedOut means that it did not answer in time.
	ReasonCollectionTimedOut = "ClusterPropertyCollectionTimedOut"
	// ReasonNotStarted means that it was not asked, as it has not started.
	ReasonNotStarted = "ClusterPropertyProviderNotStarted"
)

// What the hub admits as type and reason of a condition.
var (
	conditionType   = regexp.MustCompile(`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$`)
	conditionReason = regexp.MustCompile(`^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$`)
)

// longestMessage is what a condition takes as its message.
const longestMessage = 32768

// builtIn ends the messages of conditions that are not True.
const builtIn = "; the member agent reports what it finds itself"

// Runner starts a provider and asks it, with deadlines. It is for a single caller, but for Start.
type Runner struct {
	provider PropertyProvider
	// started has what came of starting, once.
	started chan error

	condition *metav1.Condition // of starting, once it is known
	pending   chan answer       // of a call that has not returned
}

// answer is what came of one call.
type answer struct {
	response PropertyCollectionResponse
	err      error
}

// NewRunner returns a Runner of a provider.
func NewRunner(provider PropertyProvider) *Runner {
	return &Runner{provider: provider, started: make(chan error, 1)}
}

// Start starts the provider and does not wait for it. The context has to live as long as the agent.
func (r *Runner) Start(ctx context.Context, config *rest.Config) {
	go func() {
		r.started <- guarded(func() error { return r.provider.Start(ctx, rest.CopyConfig(config)) })
	}()
}

// Collect asks the provider and returns its answer, if there is one, and the conditions that say what came of it: the
// provider's own, too.
func (r *Runner) Collect(ctx context.Context) (*PropertyCollectionResponse, []metav1.Condition) {
	start := r.awaitStart(ctx)
	if start.Status != metav1.ConditionTrue {
		return nil, []metav1.Condition{start, collection(metav1.ConditionFalse, ReasonNotStarted, "The property provider has not started"+builtIn)}
	}
	response, outcome := r.ask(ctx)
	if response == nil {
		return nil, []metav1.Condition{start, outcome}
	}
	conditions := []metav1.Condition{start, outcome}
	for _, c := range response.Conditions {
		if c.Type != start.Type && c.Type != outcome.Type {
			conditions = append(conditions, c)
		}
	}
	return response, conditions
}

// awaitStart waits for the provider to start, the first time; later it only looks whether one that was late has.
func (r *Runner) awaitStart(ctx context.Context) metav1.Condition {
	if r.condition != nil {
		select {
		case err := <-r.started:
			r.condition = startedBy(err)
		default: // it had its time
		}
		return *r.condition
	}
	timer := time.NewTimer(StartDeadline)
	defer timer.Stop()
	select {
	case err := <-r.started:
		r.condition = startedBy(err)
	case <-ctx.Done():
		return starting(metav1.ConditionUnknown, ReasonStarting, "The property provider is being started")
	case <-timer.C:
		c := starting(metav1.ConditionFalse, ReasonStartTimedOut, fmt.Sprintf("The property provider has not started within %s", StartDeadline)+builtIn)
		r.condition = &c
	}
	return *r.condition
}

func startedBy(err error) *metav1.Condition {
	c := starting(metav1.ConditionTrue, ReasonStarted, "The property provider has started")
	if err != nil {
		c = starting(metav1.ConditionFalse, ReasonStartFailed, "The property provider cannot be started: "+short(err)+builtIn)
	}
	return &c
}

// ask asks the provider once and waits for its answer, not longer than it may take. While a call has not returned there
// is no other.
func (r *Runner) ask(ctx context.Context) (*PropertyCollectionResponse, metav1.Condition) {
	limited, cancel := context.WithTimeout(ctx, CollectDeadline)
	defer cancel()
	if r.pending != nil {
		select {
		case <-r.pending: // of another heartbeat
			r.pending = nil
		default:
			return nil, collection(metav1.ConditionFalse, ReasonCollectionTimedOut, "The property provider has not answered since it was asked at an earlier heartbeat"+builtIn)
		}
	}
	answers := make(chan answer, 1)
	go func() {
		var a answer
		a.err = guarded(func() error {
			a.response = r.provider.Collect(limited)
			return nil
		})
		answers <- a
	}()
	select {
	case a := <-answers:
		if a.err == nil {
			a.err = check(&a.response)
		}
		if a.err != nil {
			return nil, collection(metav1.ConditionFalse, ReasonCollectionFailed, "What the property provider reports cannot be used: "+short(a.err)+builtIn)
		}
		return &a.response, collection(metav1.ConditionTrue, ReasonCollected, "The property provider has reported")
	case <-limited.Done():
		r.pending = answers
		return nil, collection(metav1.ConditionFalse, ReasonCollectionTimedOut, fmt.Sprintf("The property provider has not answered within %s", CollectDeadline)+builtIn)
	}
}

// check refuses an answer that the hub would refuse, which would cost the heartbeat with it.
func check(response *PropertyCollectionResponse) error {
	var problems []error
	for i := range response.Conditions {
		c := &response.Conditions[i]
		switch c.Status {
		case metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown:
		default:
			problems = append(problems, fmt.Errorf("condition %q has status %q", c.Type, c.Status))
		}
		if len(c.Message) > longestMessage {
			c.Message = c.Message[:longestMessage]
		}
		if !conditionType.MatchString(c.Type) || !conditionReason.MatchString(c.Reason) {
			problems = append(problems, fmt.Errorf("condition %q with reason %q needs a type and a reason of letters and digits", c.Type, c.Reason))
		}
	}
	return errors.Join(problems...)
}

// short is the text of an error, of a length that fits into a condition with more around it.
func short(err error) string {
	text := err.Error()
	return text[:min(len(text), longestMessage/2)]
}

// guarded turns a panic of somebody else's code into an error.
func guarded(call func() error) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("it panicked: %v", cause)
		}
	}()
	return call()
}

func starting(status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: clusterv1beta1.ConditionTypeClusterPropertyProviderStarted, Status: status, Reason: reason, Message: message}
}

func collection(status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: clusterv1beta1.ConditionTypeClusterPropertyCollectionSucceeded, Status: status, Reason: reason, Message: message}
}
