package stagetask_test

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fleetflow/fleetflow/apis/placement/stagetask"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// ticket is a type of task that the product does not have: it opens a ticket, a ConfigMap, and waits until that is closed.
type ticket struct{}

const (
	ticketType      placementv1beta1.StageTaskType = "Ticket"
	ticketNamespace                                = "tickets"
	ticketOpened                                   = "TicketOpened"
	ticketClosed                                   = "TicketClosed"
	ticketInterval                                 = 30 * time.Second
)

func (ticket) Validate(_ stagetask.Side, config placementv1beta1.StageTask) string {
	if config.WaitTime != nil {
		return "a Ticket has no waitTime"
	}
	return ""
}

func (ticket) Freeze(names stagetask.Names, stage string, _ stagetask.Side) placementv1beta1.StageTaskStatus {
	return placementv1beta1.StageTaskStatus{Type: ticketType, ApprovalRequestName: names.Run + "-" + stage + "-ticket"}
}

func (ticket) Describe(task stagetask.Task) stagetask.State {
	state := stagetask.State{Title: "ticket", Subject: task.Status.ApprovalRequestName, RunPhase: "WaitingTicket"}
	if c := meta.FindStatusCondition(task.Status.Conditions, ticketOpened); c != nil {
		state.Begun = c.LastTransitionTime.Time
	}
	if c := meta.FindStatusCondition(task.Status.Conditions, ticketClosed); c != nil {
		state.DoneAt = c.LastTransitionTime.Time
	}
	return state
}

func (ticket) Check(ctx context.Context, check stagetask.Check) (stagetask.Outcome, error) {
	found := &corev1.ConfigMap{}
	err := check.Hub.Get(ctx, types.NamespacedName{Namespace: ticketNamespace, Name: check.Status.ApprovalRequestName}, found)
	if apierrors.IsNotFound(err) {
		found.Namespace = ticketNamespace
		found.Name = check.Status.ApprovalRequestName
		err = check.Hub.Create(ctx, found)
	}
	if err != nil {
		return stagetask.Outcome{}, err
	}
	outcome := stagetask.Outcome{
		Conditions: []metav1.Condition{{Type: ticketOpened, Status: metav1.ConditionTrue, Reason: ticketOpened}},
		CheckAgain: check.Now.Add(ticketInterval),
	}
	if found.Data["state"] == "closed" {
		outcome.Conditions = append(outcome.Conditions, metav1.Condition{Type: ticketClosed, Status: metav1.ConditionTrue, Reason: ticketClosed})
	}
	return outcome, nil
}
