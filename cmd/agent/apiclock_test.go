package agent

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	testingclock "k8s.io/utils/clock/testing"
)

// timedServer answers by a clock of its own, so much ahead of that of the agent.
type timedServer struct {
	own   *testingclock.FakeClock
	clock *APIClock
	ahead time.Duration
	// takes is how long a request takes, of which the server writes its answer at the end, or at the beginning.
	takes    time.Duration
	atTheEnd bool
	dateless bool
}

func newTimedServer() *timedServer {
	own := testingclock.NewFakeClock(noon)
	return &timedServer{own: own, clock: NewAPIClock(own)}
}

func (s *timedServer) RoundTrip(*http.Request) (*http.Response, error) {
	written := s.own.Now()
	s.own.Step(s.takes)
	if s.atTheEnd {
		written = s.own.Now()
	}
	answer := httptest.NewRecorder()
	if !s.dateless {
		answer.Header().Set("Date", written.Add(s.ahead).UTC().Format(http.TimeFormat))
	}
	return answer.Result(), nil
}

// ask makes a request, and some time passes.
func (s *timedServer) ask(t *testing.T) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://hub", nil)
	require.NoError(t, err)
	response, err := s.clock.Wrap(s).RoundTrip(request)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	s.own.Step(1100 * time.Millisecond)
}

func TestAnAPIClockIsNotMovedWhileTheClocksAgree(t *testing.T) {
	for _, takes := range []time.Duration{0, 300 * time.Millisecond, 20 * time.Second} {
		for _, atTheEnd := range []bool{false, true} {
			s := newTimedServer()
			s.takes = takes
			s.atTheEnd = atTheEnd
			for range 20 {
				s.ask(t)
			}
			assert.Zero(t, s.clock.Skew(), "requests take %s", takes)
			assert.Equal(t, s.own.Now(), s.clock.Now())
		}
	}
}

// The server says whole seconds; from several answers it is known better, and never is the clock moved too far.
func TestAnAPIClockFollowsTheServer(t *testing.T) {
	for _, ahead := range []time.Duration{time.Hour, 7500 * time.Millisecond, -7500 * time.Millisecond, -time.Hour} {
		s := newTimedServer()
		s.ahead = ahead
		s.takes = 40 * time.Millisecond
		for range 20 {
			s.ask(t)
		}
		assert.InDelta(t, ahead.Seconds(), s.clock.Skew().Seconds(), 0.2, "ahead by %s", ahead)
		assert.LessOrEqual(t, s.clock.Skew().Abs(), ahead.Abs())
		assert.InDelta(t, s.clock.Skew().Seconds(), s.clock.Since(s.own.Now()).Seconds(), 0.001)
	}
}

func TestAnAPIClockFollowsAClockThatIsSet(t *testing.T) {
	s := newTimedServer()
	s.ahead = time.Minute
	s.ask(t)
	assert.InDelta(t, 60, s.clock.Skew().Seconds(), 1)
	s.ahead = 0 // its clock was set
	s.ask(t)
	assert.Zero(t, s.clock.Skew())
	s.ahead = time.Hour
	s.dateless = true
	s.ask(t)
	assert.Zero(t, s.clock.Skew(), "an answer without a date says nothing")
}

func TestAnAgentTellsOnceThatTheClocksDiffer(t *testing.T) {
	s := newTimedServer()
	recorder := events.NewFakeRecorder(10)
	r := &SkewReporter{APIClock: s.clock, Events: recorder, Lease: corev1.ObjectReference{Kind: "Lease", Namespace: "fleet-system", Name: "hub-agent"}, Log: logr.Discard()}
	assert.False(t, r.NeedLeaderElection())
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- r.Start(ctx) }()

	s.ahead = 4 * time.Second
	s.ask(t)
	s.ahead = 12 * time.Second
	s.ask(t)
	assert.Equal(t, "Warning ClockSkew the clock of this agent is about 12s behind that of the hub's API server, whose clock counts: "+
		"set that of the agent's node (NTP)", <-recorder.Events)
	s.ask(t)
	s.ahead = 0
	s.ask(t)
	assert.Equal(t, "Normal ClockAgrees The clocks of the agent and of the API server agree again", <-recorder.Events)
	cancel()
	require.NoError(t, <-ended)
	assert.Empty(t, recorder.Events)
	assert.Contains(t, SkewText(-90*time.Second), "about 1m30s ahead of that of")
}
