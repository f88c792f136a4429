package stagedupdate_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/fleetflow/fleetflow/activities/stagedupdate"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// wire is a transport that answers with a status code, or with nothing if that is zero.
type wire struct{ code int }

func (w *wire) RoundTrip(*http.Request) (*http.Response, error) {
	if w.code == 0 {
		return nil, errors.New("connection refused")
	}
	return &http.Response{StatusCode: w.code, Body: http.NoBody}, nil
}

// probe makes one request.
func probe(t *testing.T, ctx context.Context, transport http.RoundTripper) {
	t.Helper()
	response, err := transport.RoundTrip(httptest.NewRequest(http.MethodGet, "/", nil).WithContext(ctx))
	if err == nil {
		require.NoError(t, response.Body.Close())
	}
}

func TestOutagesAreDetectedFromRequests(t *testing.T) {
	clock := clocktesting.NewFakeClock(begin)
	outages := &stagedupdate.APIServerOutages{Clock: clock}
	server := &wire{code: 200}
	transport := outages.Wrap(server)
	outage := func() (time.Duration, time.Duration) {
		back, away := outages.Last()
		if back.IsZero() {
			return 0, away
		}
		return back.Sub(begin), away
	}
	says := func(code int) {
		server.code = code
		probe(t, t.Context(), transport)
	}
	expect := func(back, away time.Duration, sentence string) {
		t.Helper()
		gotBack, gotAway := outage()
		assert.Equal(t, []time.Duration{back, away}, []time.Duration{gotBack, gotAway}, sentence)
	}
	says(200)
	expect(0, 0, "there was none")
	says(0)
	says(403)
	expect(0, 0, "one of many requests fails now and then")
	says(0)
	clock.Step(10 * time.Second)
	expect(10*time.Second, 10*time.Second, "it goes on")
	says(503)
	clock.Step(5 * time.Second)
	says(404)
	clock.Step(time.Hour)
	says(200)
	expect(15*time.Second, 15*time.Second, "it is over")

	gone, cancel := context.WithCancel(t.Context())
	cancel()
	server.code = 0
	probe(t, gone, transport)
	clock.Step(time.Minute)
	expect(15*time.Second, 15*time.Second, "what its sender no longer wants says nothing")
	late, cancel := context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer cancel()
	probe(t, late, transport)
	clock.Step(time.Minute)
	_, away := outages.Last()
	assert.Equal(t, time.Minute, away, "what takes too long says something")
}

// The call that waits makes no requests, so it does not notice that the API server is away; members cannot report
// meanwhile that they have become available.
func TestNobodyIsCountedAsFailedRightAfterTheAPIServerWasAway(t *testing.T) {
	for sentence, test := range map[string]struct {
		hub   func(*testing.T) *hub
		given func(*hub) bool
	}{
		"with a failure budget": {
			func(t *testing.T) *hub { return withBudget(t, "1", placementv1beta1.FailureBudgetAbort) },
			func(h *hub) bool { return h.canaryCondition("member3", "Succeeded") != "" },
		},
		"without one": {initialized, func(h *hub) bool { return progressingOf(h) != isStarted }},
	} {
		t.Run(sentence, func(t *testing.T) {
			h := test.hub(t)
			server := &wire{code: 200}
			h.acts.Outages = &stagedupdate.APIServerOutages{Clock: h.clock}
			transport := h.acts.Outages.Wrap(server)
			h.stuck["member3"] = true
			delta := h.advancing(canaryAdvance(names("member3"), nil, nil))
			h.clock.Step(4*time.Minute + 50*time.Second)
			server.code = 0
			probe(t, t.Context(), transport)
			h.clock.Step(10 * time.Second) // the deadline
			h.untilItWaits()
			assert.False(t, test.given(h), "while the API server is away")
			h.clock.Step(5 * time.Second)
			server.code = 200
			probe(t, t.Context(), transport)
			h.clock.Step(35 * time.Second) // members report, and the cache connects again
			h.untilItWaits()
			assert.False(t, test.given(h), "while nobody knows")
			h.recover("member3")
			got := <-delta
			assert.Equal(t, names("member3"), append(got.Done, got.Recorded...))
			assert.Empty(t, h.events)
		})
	}
}

func TestThatAnEarlierAttemptFailedIsKnownInOtherProcesses(t *testing.T) {
	h := withBudget(t, "1", placementv1beta1.FailureBudgetAbort)
	h.stuck["member3"] = true
	require.Equal(t, names("member1"), must(h, h.acts.AdvanceStage, canaryAdvance(names("member3", "member1"), nil, nil)).Done)
	h.clock.Step(5 * time.Minute)
	h.attempt = 2
	delta := h.advancing(canaryAdvance(nil, names("member3"), names("member1")))
	select {
	case got := <-delta:
		t.Fatalf("it must wait: %+v", got)
	case <-time.After(50 * time.Millisecond):
	}
	h.clock.Step(20 * time.Second)
	assert.Equal(t, wf.StageDelta{Failed: names("member3")}, <-delta)
}
