package agent

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	testingclock "k8s.io/utils/clock/testing"
)

// TestAnAgentWaitsForItsAPIServer has what an API server answers while it is away or starts, and when the agent goes on.
func TestAnAgentWaitsForItsAPIServer(t *testing.T) {
	for sentence, c := range map[string]struct {
		answers []int // one a second, the last one for ever
		waits   int   // for how many of them
	}{
		"it is there":                               {[]int{200}, 0},
		"it does not answer at first":               {[]int{0, 0, 200}, 2},
		"it starts":                                 {[]int{0, 500, 503, 429, 200}, 4},
		"it does not know its roles yet":            {[]int{403, 403, 200}, 2},
		"it refuses the agent for good":             {[]int{401}, 10},
		"it comes back and does not know its roles": {[]int{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 403, 403, 500, 403, 200}, 16},
		"it has no such path, and serves":           {[]int{404}, 0},
	} {
		t.Run(sentence, func(t *testing.T) {
			clock := testingclock.NewFakeClock(noon)
			asked := 0
			address := freeAddress(t)
			server := &APIServer{Host: "https://hub", Log: logr.Discard(), Clock: clock, HealthAddress: address}
			server.Ask = func(context.Context) (int, error) {
				status := c.answers[min(asked, len(c.answers)-1)]
				asked++
				return status, errors.New("connection refused")
			}
			done := make(chan error, 1)
			go func() { done <- server.Await(t.Context()) }()
			for range c.waits {
				require.Eventually(t, clock.HasWaiters, time.Minute, time.Millisecond)
				assert.Equal(t, "200 ", answer(address, "/healthz"), "it is alive")
				assert.Contains(t, answer(address, "/readyz"),
					"503 this agent waits for the API server at https://hub and does nothing until it answers: connection refused")
				assert.Empty(t, done)
				clock.Step(serverRetry)
			}
			require.NoError(t, <-done)
			assert.Equal(t, c.waits+1, asked)
			assert.Empty(t, answer(address, "/healthz"), "the address is free for the manager")
		})
	}
}

func TestAnAgentThatIsToldToEndWaitsNoMoreForItsAPIServer(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	server := &APIServer{Log: logr.Discard(), Clock: testingclock.NewFakeClock(noon),
		Ask: func(context.Context) (int, error) { return 0, errors.New("connection refused") }}
	assert.ErrorIs(t, server.Await(ctx), context.Canceled)
}
