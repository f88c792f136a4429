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
	// ReasonStarting means that the provider has not had time to start yet.
	ReasonStarting = "ClusterPropertyProviderStarting"
	// ReasonStartFailed means that the provider's Start returned an error.
	ReasonStartFailed = "ClusterPropertyProviderStartFailed"
	// ReasonStartTimedOut means that the provider's Start has not returned in time.
	ReasonStartTimedOut = "ClusterPropertyProviderStartTimedOut"
	// ReasonCollected means that the properties are the provider's.
	ReasonCollected = "ClusterPropertyCollectionSucceeded"
	// ReasonCollectionFailed means that the provider panicked, or that its response is invalid.
	ReasonCollectionFailed = "ClusterPropertyCollectionFailed"
	// ReasonCollectionTimedOut means that the provider did not respond in time.
	ReasonCollectionTimedOut = "ClusterPropertyCollectionTimedOut"
	// ReasonNotStarted means that the provider was not called, because it has not started.
	ReasonNotStarted = "ClusterPropertyProviderNotStarted"
)

// The hub's API server admits these types and reasons of conditions.
var (
	conditionType   = regexp.MustCompile(`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$`)
	conditionReason = regexp.MustCompile(`^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$`)
)

// maxMessageLength is the longest message that the hub's API server admits in a condition.
const maxMessageLength = 32768

// fallbackText ends the messages of conditions that are not True.
const fallbackText = "; the member agent reports what it finds itself"

// Runner starts a provider and calls it, with deadlines. Apart from Start, it is for a single
// caller.
type Runner struct {
	provider PropertyProvider
	// started receives the result of the provider's Start, once.
	started chan error

	condition *metav1.Condition // of the start, once it has succeeded, failed or timed out
	pending   chan answer       // of a call that has not returned
}

// answer is the result of one call.
type answer struct {
	response PropertyCollectionResponse
	err      error
}

// NewRunner returns a Runner of a provider.
func NewRunner(provider PropertyProvider) *Runner {
	return &Runner{provider: provider, started: make(chan error, 1)}
}

// Start starts the provider without waiting for it. The context has to live as long as the agent.
func (r *Runner) Start(ctx context.Context, config *rest.Config) {
	go func() {
		r.started <- recoverPanic(func() error { return r.provider.Start(ctx, rest.CopyConfig(config)) })
	}()
}

// Collect calls the provider and returns its response, if there is one, and the conditions of the
// call together with the provider's own.
func (r *Runner) Collect(ctx context.Context) (*PropertyCollectionResponse, []metav1.Condition) {
	started := r.awaitStart(ctx)
	if started.Status != metav1.ConditionTrue {
		return nil, []metav1.Condition{started, collectedCondition(metav1.ConditionFalse, ReasonNotStarted,
			"The property provider has not started"+fallbackText)}
	}
	response, collected := r.askProvider(ctx)
	if response == nil {
		return nil, []metav1.Condition{started, collected}
	}
	conditions := []metav1.Condition{started, collected}
	for _, c := range response.Conditions {
		if c.Type != started.Type && c.Type != collected.Type {
			conditions = append(conditions, c)
		}
	}
	return response, conditions
}

// awaitStart waits for the provider to start, but only once; later calls only check whether it has
// started meanwhile.
func (r *Runner) awaitStart(ctx context.Context) metav1.Condition {
	if r.condition != nil {
		select {
		case err := <-r.started:
			r.condition = conditionOfStart(err)
		default: // the deadline has passed
		}
		return *r.condition
	}
	timer := time.NewTimer(StartDeadline)
	defer timer.Stop()
	select {
	case err := <-r.started:
		r.condition = conditionOfStart(err)
	case <-ctx.Done():
		return startedCondition(metav1.ConditionUnknown, ReasonStarting, "The property provider is being started")
	case <-timer.C:
		c := startedCondition(metav1.ConditionFalse, ReasonStartTimedOut,
			fmt.Sprintf("The property provider has not started within %s", StartDeadline)+fallbackText)
		r.condition = &c
	}
	return *r.condition
}

func conditionOfStart(err error) *metav1.Condition {
	c := startedCondition(metav1.ConditionTrue, ReasonStarted, "The property provider has started")
	if err != nil {
		c = startedCondition(metav1.ConditionFalse, ReasonStartFailed, "The property provider cannot be started: "+shortText(err)+fallbackText)
	}
	return &c
}

// askProvider calls the provider once and waits for its response until the deadline. There is no
// other call before a call has returned.
func (r *Runner) askProvider(ctx context.Context) (*PropertyCollectionResponse, metav1.Condition) {
	limited, cancel := context.WithTimeout(ctx, CollectDeadline)
	defer cancel()
	if r.pending != nil {
		select {
		case <-r.pending: // the response to an earlier heartbeat
			r.pending = nil
		default:
			return nil, collectedCondition(metav1.ConditionFalse, ReasonCollectionTimedOut,
				"The property provider has not answered since it was asked at an earlier heartbeat"+fallbackText)
		}
	}
	answers := make(chan answer, 1)
	go func() {
		var a answer
		a.err = recoverPanic(func() error {
			a.response = r.provider.Collect(limited)
			return nil
		})
		answers <- a
	}()
	select {
	case a := <-answers:
		if a.err == nil {
			a.err = validateResponse(&a.response)
		}
		if a.err != nil {
			return nil, collectedCondition(metav1.ConditionFalse, ReasonCollectionFailed, "What the property provider reports cannot be used: "+
				shortText(a.err)+fallbackText)
		}
		return &a.response, collectedCondition(metav1.ConditionTrue, ReasonCollected, "The property provider has reported")
	case <-limited.Done():
		r.pending = answers
		return nil, collectedCondition(metav1.ConditionFalse, ReasonCollectionTimedOut,
			fmt.Sprintf("The property provider has not answered within %s", CollectDeadline)+fallbackText)
	}
}

// validateResponse refuses a response that the hub's API server would refuse: the refused report
// would cost the heartbeat as well.
func validateResponse(response *PropertyCollectionResponse) error {
	var problems []error
	for i := range response.Conditions {
		c := &response.Conditions[i]
		switch c.Status {
		case metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown:
		default:
			problems = append(problems, fmt.Errorf("condition %q has status %q", c.Type, c.Status))
		}
		c.Message = clusterv1beta1.FirstBytes(c.Message, maxMessageLength)
		if !conditionType.MatchString(c.Type) || !conditionReason.MatchString(c.Reason) {
			problems = append(problems, fmt.Errorf("condition %q with reason %q needs a type and a reason of letters and digits", c.Type, c.Reason))
		}
	}
	return errors.Join(problems...)
}

// shortText returns the text of an error, short enough for a condition with more text around it.
func shortText(err error) string {
	return clusterv1beta1.FirstBytes(err.Error(), maxMessageLength/2)
}

// recoverPanic turns a panic of the provider into an error.
func recoverPanic(call func() error) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("it panicked: %v", cause)
		}
	}()
	return call()
}

func startedCondition(status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: clusterv1beta1.ConditionTypeClusterPropertyProviderStarted, Status: status, Reason: reason, Message: message}
}

func collectedCondition(status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: clusterv1beta1.ConditionTypeClusterPropertyCollectionSucceeded, Status: status, Reason: reason,
		Message: message}
}
