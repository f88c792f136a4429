// Package as knows what a user may do: it asks the API server before an action is shown as possible, and says refusals in
// words.
package as

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
)

const (
	// memory is how long an answer of the API server holds.
	memory = time.Minute
	// maxAnswers bounds the answers that are kept.
	maxAnswers = 1000
	// allAuthenticated is the group of all users that the API server knows.
	allAuthenticated = "system:authenticated"
)

// Right is what a user needs to do something.
type Right struct{ Verb, Group, Resource, Subresource, Namespace, Name string }

// String returns the right in words, such as "patch clusterstagedupdateruns".
func (r Right) String() string {
	resource := r.Resource
	if r.Subresource != "" {
		resource += "/" + r.Subresource
	}
	if r.Namespace != "" {
		resource += " in namespace " + r.Namespace
	}
	return r.Verb + " " + resource
}

// Reviewer asks the API server what the user may do.
type Reviewer struct {
	// Client asks as the user, unless User is set.
	Client client.Client
	// User and Groups are whose rights the client asks for with an account of its own.
	User   string
	Groups []string
	Clock  clock.PassiveClock

	mutex   sync.Mutex
	answers map[Right]answer
}

type answer struct {
	refusal string
	at      time.Time
}

// Refusal returns why the user may not make use of a right; empty if he may.
func (r *Reviewer) Refusal(ctx context.Context, right Right) string {
	r.mutex.Lock()
	known, is := r.answers[right]
	r.mutex.Unlock()
	if is && r.Clock.Since(known.at) < memory {
		return known.refusal
	}
	allowed, err := r.ask(ctx, authorizationv1.ResourceAttributes{
		Verb: right.Verb, Group: right.Group, Resource: right.Resource, Subresource: right.Subresource, Namespace: right.Namespace,
		Name: right.Name,
	})
	if err != nil {
		return "It is unknown whether you may " + right.String() + ": " + err.Error()
	}
	refusal := ""
	if !allowed {
		refusal = "You may not " + right.String() + "."
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.answers == nil || len(r.answers) >= maxAnswers {
		r.answers = map[Right]answer{}
	}
	r.answers[right] = answer{refusal, r.Clock.Now()}
	return refusal
}

func (r *Reviewer) ask(ctx context.Context, what authorizationv1.ResourceAttributes) (allowed bool, err error) {
	if r.User == "" {
		answer, err := Ask(ctx, r.Client, what)
		return answer.Allowed, err
	}
	// The API server takes every user that it knows to be in this group.
	groups := append(slices.Clone(r.Groups), allAuthenticated)
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{ResourceAttributes: &what, User: r.User,
		Groups: groups}}
	err = r.Client.Create(ctx, review)
	return review.Status.Allowed, err
}

// Ask asks the API server whether the user of a client may do something.
func Ask(ctx context.Context, c client.Client, what authorizationv1.ResourceAttributes) (authorizationv1.SubjectAccessReviewStatus, error) {
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &what}}
	err := c.Create(ctx, review)
	return review.Status, err
}

// Refused says in words why something was not done, with the HTTP status that goes with it.
func Refused(err error) (status int, sentence string) {
	switch {
	case apierrors.IsForbidden(err):
		return http.StatusForbidden, fmt.Sprintf("The hub does not let you: %v.", err)
	case apierrors.IsUnauthorized(err):
		return http.StatusForbidden, "The hub does not know you any more: log in again with kubectl, and start the dashboard anew."
	case apierrors.IsNotFound(err):
		return http.StatusNotFound, fmt.Sprintf("It is gone: %v.", err)
	case hub.Unserved(err):
		return http.StatusNotFound, fmt.Sprintf("The hub does not serve this: %v.", err)
	case apierrors.IsInvalid(err):
		return http.StatusUnprocessableEntity, fmt.Sprintf("The hub refuses this: %v.", err)
	case apierrors.IsInternalError(err), apierrors.IsTimeout(err), apierrors.IsServerTimeout(err), apierrors.IsTooManyRequests(err):
		return http.StatusBadGateway, fmt.Sprintf("The hub could not do it: %v.", err)
	default:
		return http.StatusConflict, fmt.Sprintf("Not done: %v.", err)
	}
}
