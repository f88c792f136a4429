package informer

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
)

var (
	pods      = schema.GroupResource{Resource: "pods"}
	refused   = &url.Error{Op: "Get", URL: "https://hub", Err: &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}}
	forbidden = apierrors.NewForbidden(pods, "", errors.New("no rights"))
	unknown   = apierrors.NewNotFound(pods, "")
	gateway   = apierrors.NewGenericServerResponse(http.StatusGatewayTimeout, "get", pods, "", "", 0, true)
	lagging   = &apierrors.StatusError{ErrStatus: metav1.Status{Reason: metav1.StatusReasonTimeout, Details: &metav1.StatusDetails{
		Causes: []metav1.StatusCause{{Type: metav1.CauseTypeResourceVersionTooLarge}},
	}}}
	distrust = &url.Error{Op: "Get", URL: "https://hub", Err: &net.OpError{Op: "remote error", Err: errors.New("tls: bad certificate")}}
)

// patientClock lets waits return at once, and records their durations.
type patientClock struct {
	*clocktesting.FakeClock
	waited []time.Duration
}

func (c *patientClock) After(d time.Duration) <-chan time.Time {
	c.waited = append(c.waited, d)
	c.Step(d)
	done := make(chan time.Time, 1)
	done <- c.Now()
	return done
}

// newFailingSource returns the errors one after the other, and then succeeds.
func newFailingSource(clock clock.Clock, failures ...error) (*retryingSource, *int) {
	calls := 0
	next := func() error {
		if calls++; calls <= len(failures) {
			return failures[calls-1]
		}
		return nil
	}
	return newRetryingSource(&cache.ListWatch{
		ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) { return &corev1.PodList{}, next() },
		WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) {
			return watch.NewEmptyWatch(), next()
		},
	}, "pods", clock), &calls
}

func TestAnAPIServerThatIsAwayIsTriedAgainEveryFewSeconds(t *testing.T) {
	clock := &patientClock{FakeClock: clocktesting.NewFakeClock(time.Unix(1, 0))}
	failures := make([]error, 15)
	for i := range failures {
		failures[i] = []error{refused, apierrors.NewServiceUnavailable("starting"), apierrors.NewInternalError(errors.New("etcd")), gateway}[i%4]
	}
	s, calls := newFailingSource(clock, failures...)
	_, err := s.WatchWithContext(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	assert.Equal(t, 16, *calls)
	assert.Less(t, clock.waited[0], 2*minRetryDelay)
	for _, waited := range clock.waited {
		assert.GreaterOrEqual(t, waited, minRetryDelay)
		assert.LessOrEqual(t, waited, 2*maxRetryDelay)
	}
	assert.GreaterOrEqual(t, clock.waited[14], maxRetryDelay, "a hub that comes back is not overrun")
}

func TestAnAPIServerThatStartsMayNotKnowKindsAndRightsForAWhile(t *testing.T) {
	s, calls := newFailingSource(&patientClock{FakeClock: clocktesting.NewFakeClock(time.Unix(1, 0))}, refused, forbidden, unknown)
	_, err := s.ListWithContext(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	assert.Equal(t, 4, *calls)
}

func TestWhatAnAPIServerRefusesIsNotTriedAgainHere(t *testing.T) {
	for sentence, test := range map[string]struct {
		failures []error
		want     error
	}{
		"no rights":                  {[]error{forbidden}, forbidden},
		"a kind that is not there":   {[]error{unknown}, unknown},
		"a revision that is too old": {[]error{apierrors.NewResourceExpired("old")}, apierrors.NewResourceExpired("old")},
		"a certificate":              {[]error{distrust}, distrust},
		"a cache that lags behind":   {[]error{lagging}, lagging},
		"too many requests":          {[]error{apierrors.NewTooManyRequests("slow down", 1)}, apierrors.NewTooManyRequests("slow down", 1)},
	} {
		t.Run(sentence, func(t *testing.T) {
			s, calls := newFailingSource(&patientClock{FakeClock: clocktesting.NewFakeClock(time.Unix(1, 0))}, test.failures...)
			_, err := s.WatchWithContext(t.Context(), metav1.ListOptions{})
			require.Equal(t, test.want, err)
			assert.Equal(t, 1, *calls)
		})
	}
	t.Run("no rights long after the API server was back", func(t *testing.T) {
		clock := &patientClock{FakeClock: clocktesting.NewFakeClock(time.Unix(1, 0))}
		s, _ := newFailingSource(clock, refused, nil, forbidden)
		_, err := s.WatchWithContext(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		clock.Step(startUpPeriod)
		_, err = s.WatchWithContext(t.Context(), metav1.ListOptions{})
		require.Equal(t, forbidden, err)
	})
}

func TestAnErrorThatLastsIsTold(t *testing.T) {
	failures := make([]error, 1000)
	for i := range failures {
		failures[i] = refused
	}
	clock := &patientClock{FakeClock: clocktesting.NewFakeClock(time.Unix(1, 0))}
	s, calls := newFailingSource(clock, failures...)
	_, err := s.WatchWithContext(t.Context(), metav1.ListOptions{})
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
	assert.Less(t, *calls, 40)
	assert.Less(t, clock.Since(time.Unix(1, 0)), reportInterval+2*maxRetryDelay)
}

func TestNobodyWaitsForAnAPIServerOnceTheAgentStops(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s, _ := newFailingSource(clocktesting.NewFakeClock(time.Unix(1, 0)), refused)
	cancel()
	_, err := s.ListWithContext(ctx, metav1.ListOptions{})
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
}
