package access

import (
	"context"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// CreateWhenAdmitted creates an object that no admission policy has a lasting reason to refuse.
func CreateWhenAdmitted(ctx context.Context, user client.Client, object client.Object) error {
	return WhenAdmitted(ctx, func(ctx context.Context) error { return user.Create(ctx, object) })
}

// WhenAdmitted makes a request that no admission policy has a lasting reason to refuse. An API server learns of the objects that its
// policies compare with by a watch of each, so a policy may still see a run that has just ended. One that has just started answers that it
// is not available while it does not know the kinds yet. Nothing can be watched that tells when, so a refused request is repeated until
// the context ends; the error is then that of the last refusal.
func WhenAdmitted(ctx context.Context, request func(context.Context) error) error {
	var refusal error
	err := wait.PollUntilContextCancel(ctx, retryEvery/4, true, func(ctx context.Context) (bool, error) {
		err := request(ctx)
		if refusedByPolicy(err) || apierrors.IsServiceUnavailable(err) {
			refusal = err
			return false, nil
		}
		return err == nil, err
	})
	if err != nil && refusal != nil && wait.Interrupted(err) {
		return refusal
	}
	return err
}

// refusedByPolicy reports whether a ValidatingAdmissionPolicy refused a request. The API server tells that in its message only.
func refusedByPolicy(err error) bool {
	return (apierrors.IsInvalid(err) || apierrors.IsForbidden(err)) && strings.Contains(err.Error(), "ValidatingAdmissionPolicy")
}
