package question

import (
	"context"
	"errors"
	"fmt"
	"time"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
)

// answer is how questions of a type are answered.
type answer struct {
	// find puts the answer to a question into a status. It stops looking when ctx ends, and says what it has found until then. The error is
	// an invalidError if the question cannot be read, and a declinedError if the owner of the cluster does not let the agent answer it.
	find func(ctx context.Context, a *Answerer, question *fleetflowv1alpha1.MemberQuestion, status *fleetflowv1alpha1.MemberQuestionStatus) error
	// margin is how long before the deadline of a question it stops looking.
	margin time.Duration
}

// answers has the types of questions that the agent has an answer to.
var answers = map[fleetflowv1alpha1.QuestionType]answer{
	fleetflowv1alpha1.QuestionRehearse:   {rehearse, time.Second},
	fleetflowv1alpha1.QuestionPullImages: {pullImages, 4 * time.Second},
}

// declinedError says what the owner of the cluster does not let the agent do.
type declinedError struct{ text string }

// Error returns what that is.
func (e declinedError) Error() string { return e.text }

// invalidError says what is wrong with a question.
type invalidError struct{ text string }

// Error returns what is wrong.
func (e invalidError) Error() string { return e.text }

func invalid(format string, args ...any) error {
	return invalidError{text: fmt.Sprintf(format, args...)}
}

func isInvalid(err error) bool {
	_, is := errors.AsType[invalidError](err)
	return is
}
