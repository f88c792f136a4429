package worker

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"go.temporal.io/api/common/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
)

// asked is how many workflows Temporal is asked for at a time.
const asked = 8

// Reach asks Temporal whether it reaches its database. Temporal divides workflows among shards by their IDs, and shards may be away each by
// itself: so it is asked for several workflows, and for others each time.
type Reach struct {
	Client    client.Client
	Namespace string

	mutex sync.Mutex
	// next is the number of the workflow that is asked for next, unanswered are those that were not answered last.
	next       int
	unanswered []int
}

// Ask asks Temporal for workflows that are not there; the error says why it does not answer for all. To know that one is not there, Temporal
// has to read its database: what it remembers, such as the namespace, it also answers without one. What was not answered is asked for again,
// until it is.
func (r *Reach) Ask(ctx context.Context) error {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	numbers := r.unanswered
	for len(numbers) < asked {
		numbers = append(numbers, r.next)
		r.next++
	}
	problems := make([]error, len(numbers))
	var wait sync.WaitGroup
	for i, number := range numbers {
		wait.Go(func() { problems[i] = r.askFor(ctx, number) })
	}
	wait.Wait()
	r.unanswered = nil
	var first error
	for i, problem := range problems {
		if problem == nil {
			continue
		}
		r.unanswered = append(r.unanswered, numbers[i])
		if first == nil {
			first = problem
		}
	}
	switch missing := len(r.unanswered); missing {
	case 0:
		return nil
	case len(numbers):
		return fmt.Errorf("asking Temporal for a workflow of namespace %s: %w", r.Namespace, first)
	default:
		return fmt.Errorf("a part of Temporal's shards does not answer (%d of %d workflows of namespace %s that it was asked for): %w", missing,
			len(numbers), r.Namespace, first)
	}
}

// askFor asks for a workflow that is not there.
func (r *Reach) askFor(ctx context.Context, number int) error {
	_, err := r.Client.WorkflowService().DescribeWorkflowExecution(ctx, &workflowservice.DescribeWorkflowExecutionRequest{
		Namespace: r.Namespace, Execution: &common.WorkflowExecution{WorkflowId: fmt.Sprintf("fleetflow/reach/%d", number)},
	})
	if _, none := errors.AsType[*serviceerror.NotFound](err); none {
		return nil
	}
	return err
}
