// Package faults lets one call of the activities of a workflow go wrong, in Temporal's test environment.
package faults

import (
	"context"
	"errors"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/temporal"
)

// Fault is what happens to one call of an activity.
type Fault struct {
	Sentence string
	// Done says that the activity does its work all the same: only its answer is lost.
	Done bool
	// Fatal ends the execution with it, as the loss of Temporal's database does: the next begins with nothing but
	// what the objects say.
	Fatal bool
}

// All returns every way in which a call can go wrong.
func All() []Fault {
	return []Fault{
		{Sentence: "fails"},
		{Sentence: "is done and its answer is lost", Done: true},
		{Sentence: "fails and the execution is lost", Fatal: true},
		{Sentence: "is done and the execution is lost", Done: true, Fatal: true},
	}
}

// Saboteur lets one call of the activities go wrong: that at a place, counted from 1.
type Saboteur struct {
	interceptor.WorkerInterceptorBase
	Fault Fault
	At    int
	// Calls is how many there were, Struck the name of the activity that went wrong.
	Calls  int
	Struck string
}

// InterceptActivity stands before an activity.
func (s *Saboteur) InterceptActivity(_ context.Context,
	next interceptor.ActivityInboundInterceptor) interceptor.ActivityInboundInterceptor {
	return &sabotaged{interceptor.ActivityInboundInterceptorBase{Next: next}, s}
}

type sabotaged struct {
	interceptor.ActivityInboundInterceptorBase
	*Saboteur
}

// ExecuteActivity lets the activity do its work, or go wrong.
func (s *sabotaged) ExecuteActivity(ctx context.Context, in *interceptor.ExecuteActivityInput) (any, error) {
	s.Calls++
	if s.Calls != s.At {
		return s.Next.ExecuteActivity(ctx, in)
	}
	s.Struck = activity.GetInfo(ctx).ActivityType.Name
	if s.Fault.Done {
		if _, err := s.Next.ExecuteActivity(ctx, in); err != nil {
			return nil, err
		}
	}
	if s.Fault.Fatal {
		return nil, temporal.NewNonRetryableApplicationError("the execution is lost", "lost", nil)
	}
	return nil, errors.New("lost")
}
