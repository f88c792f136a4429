package question

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	"github.com/fleetflow/fleetflow/controllers/member/apply"
	"github.com/fleetflow/fleetflow/controllers/member/work"
)

const (
	// leastTime is how long before the deadline of a question the agent begins no answer any more.
	leastTime = 250 * time.Millisecond
	// maxRemembered is how many answered questions are remembered; the cache shows the others as answered by then.
	maxRemembered = 1000
)

// Answerer answers questions, each once.
type Answerer struct {
	// Namespace is the one on the hub with the questions to this member.
	Namespace string
	// Questions reads questions as they were seen last; it returns a NotFound error if there is none.
	Questions func(ctx context.Context, key types.NamespacedName, into *fleetflowv1alpha1.MemberQuestion) error
	// Hub writes their status.
	Hub client.Client
	// Rehearse tells what a change would do.
	Rehearse func(ctx context.Context, change work.Change) []fleetflowv1alpha1.RehearsedObject
	// Pull has the nodes of the cluster pull images until ctx ends, and tells which they have; nil if the owner of the cluster does not let it.
	Pull func(ctx context.Context, question types.UID, left time.Duration,
		pods []fleetflowv1alpha1.ImagesOfPods) ([]fleetflowv1alpha1.PulledImage, error)
	// Declines is whether the owner of the cluster lets the agent answer nothing.
	Declines bool
	Clock    clock.Clock

	mu       sync.Mutex
	answered map[types.UID]bool
}

// Reconcile answers a question unless it is answered, or too late.
func (a *Answerer) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	question := &fleetflowv1alpha1.MemberQuestion{}
	err := a.Questions(ctx, request.NamespacedName, question)
	switch {
	case apierrors.IsNotFound(err):
		return reconcile.Result{}, nil
	case err != nil:
		return reconcile.Result{}, fmt.Errorf("reading MemberQuestion %s: %w", request, err)
	case !a.isOpen(question):
		return reconcile.Result{}, nil
	}
	status := a.answer(ctx, question)
	if !a.Clock.Now().Before(question.Spec.Deadline.Time) {
		log.FromContext(ctx).Info("The deadline of the question has passed; it is not answered")
		return reconcile.Result{}, nil
	}
	return reconcile.Result{}, a.write(ctx, question, status)
}

// isOpen reports whether a question is to be answered.
func (a *Answerer) isOpen(question *fleetflowv1alpha1.MemberQuestion) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return question.Namespace == a.Namespace && question.DeletionTimestamp.IsZero() && !isAnswered(question) && !a.answered[question.UID] &&
		a.Clock.Now().Before(question.Spec.Deadline.Time)
}

func isAnswered(question *fleetflowv1alpha1.MemberQuestion) bool {
	return meta.FindStatusCondition(question.Status.Conditions, fleetflowv1alpha1.ConditionTypeAnswered) != nil
}

// answer returns the status with the answer to a question.
func (a *Answerer) answer(ctx context.Context, question *fleetflowv1alpha1.MemberQuestion) fleetflowv1alpha1.MemberQuestionStatus {
	how, known := answers[question.Spec.Type]
	left := question.Spec.Deadline.Sub(a.Clock.Now())
	budget := left - min(how.margin, left/4)
	switch {
	case a.Declines:
		return a.declined(fleetflowv1alpha1.ReasonQuestionDeclined,
			"The owner of the cluster lets the agent answer no questions (--answer-questions of the member agent, answerQuestions in the values of its chart)")
	case !known:
		return a.declined(fleetflowv1alpha1.ReasonQuestionUnknown,
			fmt.Sprintf("The agent has no answer to questions of type %q; an agent of a later version may have one", question.Spec.Type))
	case left < leastTime:
		return a.declined(fleetflowv1alpha1.ReasonQuestionExpired, "The agent had no time to answer before the deadline")
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	timer := a.Clock.NewTimer(budget)
	defer timer.Stop()
	go func() {
		select {
		case <-timer.C():
			cancel()
		case <-ctx.Done():
		}
	}()
	now := metav1.NewTime(a.Clock.Now())
	status := fleetflowv1alpha1.MemberQuestionStatus{AnsweredAt: &now}
	err := how.find(ctx, a, question, &status)
	declined, declines := errors.AsType[declinedError](err)
	switch {
	case declines:
		return a.declined(fleetflowv1alpha1.ReasonQuestionDeclined, declined.text)
	case isInvalid(err):
		return a.declined(fleetflowv1alpha1.ReasonQuestionInvalid, "The question cannot be read: "+apply.OneLine(err.Error()))
	case err != nil:
		return a.declined(fleetflowv1alpha1.ReasonQuestionInvalid, "The question cannot be answered: "+apply.OneLine(err.Error()))
	}
	status.Conditions = []metav1.Condition{{
		Type: fleetflowv1alpha1.ConditionTypeAnswered, Status: metav1.ConditionTrue, Reason: fleetflowv1alpha1.ReasonQuestionAnswered,
		Message: "The answer is in the status", LastTransitionTime: now, ObservedGeneration: question.Generation,
	}}
	return status
}

// declined returns a status that says why there is no answer.
func (a *Answerer) declined(reason, message string) fleetflowv1alpha1.MemberQuestionStatus {
	now := metav1.NewTime(a.Clock.Now())
	return fleetflowv1alpha1.MemberQuestionStatus{AnsweredAt: &now, Conditions: []metav1.Condition{{
		Type: fleetflowv1alpha1.ConditionTypeAnswered, Status: metav1.ConditionFalse, Reason: reason, Message: message, LastTransitionTime: now,
	}}}
}

// write puts the answer into the status of a question. It has no other writer, so only its UID is compared.
func (a *Answerer) write(ctx context.Context, question *fleetflowv1alpha1.MemberQuestion, status fleetflowv1alpha1.MemberQuestionStatus) error {
	data, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": question.UID}, "status": status})
	if err != nil {
		return fmt.Errorf("encoding the answer to MemberQuestion %s: %w", question.Name, err)
	}
	target := &fleetflowv1alpha1.MemberQuestion{ObjectMeta: metav1.ObjectMeta{Namespace: question.Namespace, Name: question.Name}}
	err = a.Hub.Status().Patch(ctx, target, client.RawPatch(types.MergePatchType, data), client.FieldOwner(apply.FieldManager))
	switch {
	case apierrors.IsNotFound(err) || apierrors.IsConflict(err):
		return nil // it is gone, or another question has its name, of which there is an event
	case apierrors.IsForbidden(err) || apierrors.IsInvalid(err):
		log.FromContext(ctx).Info("The hub refuses the answer", "cause", err.Error())
		a.remember(question.UID) // to look at the cluster again would not help
		return nil
	}
	if err != nil {
		return fmt.Errorf("answering MemberQuestion %s: %w", question.Name, err)
	}
	a.remember(question.UID)
	log.FromContext(ctx).V(1).Info("Answered the question")
	return nil
}

// remember keeps a question from being answered twice before the cache shows the answer.
func (a *Answerer) remember(uid types.UID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.answered == nil || len(a.answered) >= maxRemembered {
		a.answered = map[types.UID]bool{}
	}
	a.answered[uid] = true
}
