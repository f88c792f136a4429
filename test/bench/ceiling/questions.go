package ceiling

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
)

// Answers is what a bare client needs to write n questions and their answers, and to read both as they come. They are like the example,
// which is answered. Nothing decides, packs or counts. Nothing must act on the hub meanwhile but its API server. It leaves nothing behind.
func Answers(ctx context.Context, c client.WithWatch, example *fleetflowv1alpha1.MemberQuestion, n int) (time.Duration, error) {
	if err := c.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil && !apierrors.IsAlreadyExists(err) {
		return 0, fmt.Errorf("creating namespace %s: %w", namespace, err)
	}
	list := &fleetflowv1alpha1.MemberQuestionList{}
	if err := c.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return 0, fmt.Errorf("listing questions: %w", err)
	}
	answer, err := json.Marshal(map[string]any{"status": example.Status})
	if err != nil {
		return 0, fmt.Errorf("encoding an answer: %w", err)
	}
	began := time.Now()
	group, writing := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	read := make(chan error, 1)
	go func() { read <- awaitAnswers(ctx, c, list.ResourceVersion, n) }()
	for i := range n {
		group.Go(func() error {
			question := &fleetflowv1alpha1.MemberQuestion{
				ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("question-%04d", i), Labels: example.Labels}, Spec: example.Spec,
			}
			if err := c.Create(writing, question); err != nil {
				return fmt.Errorf("creating a question: %w", err)
			}
			if err := c.Status().Patch(writing, question, client.RawPatch(types.MergePatchType, answer)); err != nil {
				return fmt.Errorf("answering a question: %w", err)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return 0, err
	}
	if err := <-read; err != nil {
		return 0, err
	}
	took := time.Since(began)
	if err := c.DeleteAllOf(ctx, &fleetflowv1alpha1.MemberQuestion{}, client.InNamespace(namespace)); err != nil {
		return 0, fmt.Errorf("deleting the questions: %w", err)
	}
	return took, nil
}

// awaitAnswers returns when n answers were seen since a resource version. A server with much to do ends watches, so it watches again.
func awaitAnswers(ctx context.Context, c client.WithWatch, since string, n int) error {
	for answered := 0; answered < n; {
		seen, err := c.Watch(ctx, &fleetflowv1alpha1.MemberQuestionList{}, client.InNamespace(namespace),
			&client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: since}})
		if err != nil {
			return fmt.Errorf("watching questions: %w", err)
		}
		for event := range seen.ResultChan() {
			question, is := event.Object.(*fleetflowv1alpha1.MemberQuestion)
			if !is {
				break
			}
			since = question.ResourceVersion
			if event.Type == watch.Modified && len(question.Status.Conditions) > 0 {
				if answered++; answered == n {
					break
				}
			}
		}
		seen.Stop()
		if ctx.Err() != nil {
			return fmt.Errorf("%d of %d answers were seen: %w", answered, n, context.Cause(ctx))
		}
	}
	return nil
}
