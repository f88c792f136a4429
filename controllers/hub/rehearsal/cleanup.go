package rehearsal

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	"github.com/fleetflow/fleetflow/controllers/hub/fieldindex"
)

// cleanUp deletes the questions of a rehearsal that is over once their time is, and the rehearsal once its time is.
func (r *Reconciler) cleanUp(ctx context.Context, rehearsal fleetflowv1alpha1.RehearsalObject, p *progress) (ctrl.Result, error) {
	ended := rehearsal.GetCreationTimestamp().Time
	if p.status.CompletionTime != nil {
		ended = p.status.CompletionTime.Time
	}
	now := r.clock.Now()
	if left := ended.Add(keepQuestions).Sub(now); left > 0 {
		return ctrl.Result{RequeueAfter: left}, nil
	}
	questions, err := r.questionsOf(ctx, rehearsal)
	if err != nil {
		return ctrl.Result{}, err
	}
	if err := r.deleteAll(ctx, questions); err != nil {
		return ctrl.Result{}, err
	}
	if left := ended.Add(keepRehearsal).Sub(now); left > 0 {
		return ctrl.Result{RequeueAfter: left}, nil
	}
	err = r.client.Delete(ctx, rehearsal, client.Preconditions{UID: new(rehearsal.GetUID())})
	if client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, fmt.Errorf("deleting rehearsal %s: %w", rehearsal.GetName(), err)
	}
	return ctrl.Result{}, nil
}

// deleteQuestions deletes those of rehearsals of a name, except of the one that is there.
func (r *Reconciler) deleteQuestions(ctx context.Context, origin string, except types.UID) error {
	questions, err := r.listQuestions(ctx, origin)
	if err != nil {
		return err
	}
	kept := questions[:0:0]
	for i := range questions {
		if questions[i].Spec.AskedFor.UID != except {
			kept = append(kept, questions[i])
		}
	}
	return r.deleteAll(ctx, kept)
}

func (r *Reconciler) listQuestions(ctx context.Context, key string) ([]fleetflowv1alpha1.MemberQuestion, error) {
	var list fleetflowv1alpha1.MemberQuestionList
	err := r.client.List(ctx, &list, client.MatchingFields{fieldindex.ByRehearsal: key}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("listing the questions of a rehearsal: %w", err)
	}
	return list.Items, nil
}

func (r *Reconciler) deleteAll(ctx context.Context, questions []fleetflowv1alpha1.MemberQuestion) error {
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(askedAtOnce)
	for i := range questions {
		question := &questions[i]
		if !question.DeletionTimestamp.IsZero() {
			continue
		}
		group.Go(func() error {
			err := r.client.Delete(groupCtx, question, client.Preconditions{UID: &question.UID})
			if client.IgnoreNotFound(err) != nil {
				return fmt.Errorf("deleting question %s/%s: %w", question.Namespace, question.Name, err)
			}
			return nil
		})
	}
	return group.Wait()
}

// clusterOf returns the cluster that a question is asked: its namespace says so, whatever an answer says.
func clusterOf(question *fleetflowv1alpha1.MemberQuestion) string {
	cluster, _ := clusterv1beta1.MemberOfNamespace(question.Namespace)
	return cluster
}
