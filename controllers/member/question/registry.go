package question

import (
	"context"
	"errors"
	"fmt"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
)

// answer puts the answer to a question into a status. It stops looking when ctx ends, and says what it has found until then. The error is
// an invalidError if the question cannot be read.
type answer func(ctx context.Context, a *Answerer, spec fleetflowv1alpha1.MemberQuestionSpec, status *fleetflowv1alpha1.MemberQuestionStatus) error

// answers has the types of questions that the agent has an answer to.
var answers = map[fleetflowv1alpha1.QuestionType]answer{
	fleetflowv1alpha1.QuestionRehearse: rehearse,
}

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
