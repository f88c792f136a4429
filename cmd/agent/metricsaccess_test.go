package agent

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	testclock "k8s.io/utils/clock/testing"
)

// figures is a metrics endpoint behind an API server that knows two tokens, and how often that is asked.
type figures struct {
	*metricsAccess
	handler http.Handler
	clock   *testclock.FakeClock
	asked   int
	away    bool
}

func newFigures(t *testing.T) *figures {
	t.Helper()
	f := &figures{clock: testclock.NewFakeClock(time.Now())}
	server := fake.NewClientset()
	server.PrependReactor("create", "tokenreviews", func(action clienttesting.Action) (bool, runtime.Object, error) {
		f.asked++
		if f.away {
			return true, nil, errors.New("no answer")
		}
		review := action.(clienttesting.CreateAction).GetObject().(*authenticationv1.TokenReview).DeepCopy()
		user := map[string]string{"prometheus-token": "prometheus", "jane-token": "jane"}[review.Spec.Token]
		review.Status = authenticationv1.TokenReviewStatus{Authenticated: user != "", User: authenticationv1.UserInfo{Username: user, Groups: []string{"g"}}}
		return true, review, nil
	})
	server.PrependReactor("create", "subjectaccessreviews", func(action clienttesting.Action) (bool, runtime.Object, error) {
		review := action.(clienttesting.CreateAction).GetObject().(*authorizationv1.SubjectAccessReview).DeepCopy()
		want := &authorizationv1.NonResourceAttributes{Path: "/metrics", Verb: "get"}
		assert.Equal(t, want, review.Spec.NonResourceAttributes)
		assert.Equal(t, []string{"g"}, review.Spec.Groups)
		review.Status.Allowed = review.Spec.User == "prometheus"
		return true, review, nil
	})
	f.metricsAccess = newMetricsAccess(server.AuthenticationV1().TokenReviews(), server.AuthorizationV1().SubjectAccessReviews(), f.clock)
	var err error
	f.handler, err = f.filter(logr.Discard(), http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "fleet_members 3") }))
	require.NoError(t, err)
	return f
}

func (f *figures) read(authorization string) (status int, body string) {
	request := httptest.NewRequest(http.MethodGet, "/metrics", nil)
	if authorization != "" {
		request.Header.Set("Authorization", authorization)
	}
	answer := httptest.NewRecorder()
	f.handler.ServeHTTP(answer, request)
	return answer.Code, answer.Body.String()
}

func TestMetricsAreForThoseWithTheRight(t *testing.T) {
	f := newFigures(t)
	for sentence, test := range map[string]struct {
		authorization string
		status        int
		body          string
	}{
		"a user with the right reads them":  {"Bearer prometheus-token", http.StatusOK, "fleet_members 3"},
		"a user without the right does not": {"Bearer jane-token", http.StatusForbidden, "-metrics-reader"},
		"an unknown token is refused":       {"Bearer guessed", http.StatusUnauthorized, "show a token"},
		"no token is refused":               {"", http.StatusUnauthorized, "show a token"},
		"a password is refused":             {"Basic amFuZTpwYXNz", http.StatusUnauthorized, "show a token"},
	} {
		t.Run(sentence, func(t *testing.T) {
			status, body := f.read(test.authorization)
			assert.Equal(t, test.status, status)
			assert.Contains(t, body, test.body)
			if test.status != http.StatusOK {
				assert.NotContains(t, body, "fleet_members")
			}
		})
	}
}

func TestAnAnswerAboutAReaderOfMetricsHoldsForAMinute(t *testing.T) {
	f := newFigures(t)
	for range 3 {
		status, _ := f.read("Bearer prometheus-token")
		require.Equal(t, http.StatusOK, status)
	}
	assert.Equal(t, 1, f.asked)
	f.clock.Step(reviewedFor + time.Second)
	f.away = true
	status, _ := f.read("Bearer prometheus-token")
	assert.Equal(t, http.StatusServiceUnavailable, status, "without the API server no right is known")
	f.away = false
	status, _ = f.read("Bearer prometheus-token")
	assert.Equal(t, http.StatusOK, status, "what could not be asked is not remembered")
}
