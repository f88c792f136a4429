package bind

import (
	"errors"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// maxCauseBytes bounds what a message repeats of another message.
const maxCauseBytes = 256

// RefusedError says that the API server has refused a write to a binding for what it is.
type RefusedError struct {
	// Why is what the API server says.
	Why string
	err error
}

// Error returns what was tried, and why it was refused.
func (e *RefusedError) Error() string { return e.err.Error() }

// Unwrap returns the error of the write.
func (e *RefusedError) Unwrap() error { return e.err }

// HandOverError says that the state of a binding could not be handed over to what replaces it: it is that binding which was not written.
type HandOverError struct {
	// Replacement is as it was read.
	Replacement placementv1beta1.BindingObject
	err         error
}

// Error returns what was tried, and why it failed.
func (e *HandOverError) Error() string { return e.err.Error() }

// Unwrap returns the error of the write.
func (e *HandOverError) Unwrap() error { return e.err }

// refusedOr returns the error of a write as a refusal, if it is one.
func refusedOr(err error) error {
	if why, refused := RefusalOf(err); refused {
		return &RefusedError{Why: why, err: err}
	}
	return err
}

// RefusalOf reports whether the API server has refused a write for what it is, and why: a webhook or a
// policy of the user denies it, or a right is missing. Trying again at once would not help, and other
// writes may well succeed. An API server that cannot be reached, takes too long, is overloaded or
// broken, or does not know who asks, says nothing of the write: that is an error like others. A webhook
// that gives no answer is a refusal: the API server itself is well.
func RefusalOf(err error) (why string, refused bool) {
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) {
		return "", false
	}
	status := answer.Status()
	switch status.Code {
	case http.StatusUnauthorized, http.StatusRequestTimeout, http.StatusTooManyRequests:
		return "", false
	case http.StatusInternalServerError:
		refused = strings.Contains(status.Message, "failed calling webhook")
	default:
		refused = status.Code >= http.StatusBadRequest && status.Code < http.StatusInternalServerError
	}
	if !refused {
		return "", false
	}
	return clusterv1beta1.FirstBytes(status.Message, maxCauseBytes), true
}
