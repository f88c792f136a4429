package apply

import (
	"errors"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
)

// said is an answer of an API server.
func said(code int32, reason metav1.StatusReason, message string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: code, Reason: reason, Message: message}}
}

func TestWhoRefusesIsReadFromTheAnswerOfTheAPIServer(t *testing.T) {
	forbidden := func(message string) error { return said(http.StatusForbidden, metav1.StatusReasonForbidden, message) }
	for name, c := range map[string]struct {
		err       error
		outcome   fleetflowv1alpha1.RehearsalOutcome
		by, words string
	}{
		"a webhook that denies": {
			forbidden(`admission webhook "a.b" denied the request: not on a Friday`), fleetflowv1alpha1.RehearsalRefused, "webhook a.b", "not on a Friday",
		},
		"a webhook that denies without words": {
			forbidden(`admission webhook "a.b" denied the request without explanation`), fleetflowv1alpha1.RehearsalRefused, "webhook a.b",
			`admission webhook "a.b" denied the request without explanation`,
		},
		"a webhook that repeats the words of a quota": {
			forbidden(`admission webhook "a.b" denied the request: exceeded quota: q, or so`), fleetflowv1alpha1.RehearsalRefused, "webhook a.b",
			"exceeded quota: q, or so",
		},
		"a webhook that is away": {
			said(http.StatusInternalServerError, metav1.StatusReasonInternalError, `Internal error occurred: failed calling webhook "a.b": connection refused`),
			fleetflowv1alpha1.RehearsalRefused, "webhook a.b", "connection refused",
		},
		"a webhook that takes no dry runs": {
			said(http.StatusBadRequest, metav1.StatusReasonBadRequest, `admission webhook "a.b" does not support dry run`),
			fleetflowv1alpha1.RehearsalUnknown, "webhook a.b", "the webhook takes no dry runs: its sideEffects are not None or NoneOnDryRun",
		},
		"a policy": {
			forbidden(`configmaps "x" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no`),
			fleetflowv1alpha1.RehearsalRefused, "ValidatingAdmissionPolicy p", "no",
		},
		"a quota": {
			forbidden(`configmaps "x" is forbidden: exceeded quota: q, requested: count/configmaps=1, used: count/configmaps=1, limited: count/configmaps=1`),
			fleetflowv1alpha1.RehearsalRefused, "ResourceQuota q", "requested: count/configmaps=1, used: count/configmaps=1, limited: count/configmaps=1",
		},
		"limits": {
			forbidden(`pods "x" is forbidden: maximum cpu usage per Container is 1, but limit is 2`), fleetflowv1alpha1.RehearsalRefused, "LimitRange",
			`pods "x" is forbidden: maximum cpu usage per Container is 1, but limit is 2`,
		},
		"pod security": {
			forbidden(`pods "x" is forbidden: violates PodSecurity "restricted:latest": privileged`), fleetflowv1alpha1.RehearsalRefused, "PodSecurity",
			`pods "x" is forbidden: violates PodSecurity "restricted:latest": privileged`,
		},
		"a namespace that ends": {
			forbidden(`configmaps "x" is forbidden: unable to create new content in namespace n because it is being terminated`),
			fleetflowv1alpha1.RehearsalRefused, "Namespace n", "because it is being terminated",
		},
		"a right that the agent lacks": {
			forbidden(`widgets.a is forbidden: User "u" cannot create resource "widgets" in API group "a" in the namespace "n"`),
			fleetflowv1alpha1.RehearsalRefused, "the rights of the member agent",
			`widgets.a is forbidden: User "u" cannot create resource "widgets" in API group "a" in the namespace "n"`,
		},
		"an API server that is busy": {
			apierrors.NewTooManyRequestsError("later"), fleetflowv1alpha1.RehearsalUnknown, "the API server", "Too many requests: later",
		},
		"an object that is not valid": {
			apierrors.NewInvalid(schema.GroupKind{Kind: "ConfigMap"}, "x", nil), fleetflowv1alpha1.RehearsalRefused, "the API server",
			`ConfigMap "x" is invalid`,
		},
		"no answer of an API server": {errors.New("what is that"), fleetflowv1alpha1.RehearsalRefused, "the API server", "what is that"},
	} {
		t.Run(name, func(t *testing.T) {
			outcome, by, words := judgeRefusal(c.err)
			assert.Equal(t, c.outcome, outcome)
			assert.Equal(t, c.by, by)
			assert.Equal(t, c.words, words)
		})
	}
}
