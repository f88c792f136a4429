//go:build integration

package integration

import (
	"context"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fleetflow/fleetflow/test/devfleet/control"
)

// agentWaitsForItsAPIServer starts a hub agent while there is no API server. Kubernetes would start one that ends again after ever longer
// pauses: it has to wait.
func agentWaitsForItsAPIServer(s *spec) {
	s.blinded = true
	s.stop(hubAgent)
	s.controlled(func(ctx context.Context) error { return s.Control.Do(ctx, control.Stop, "hub/apiserver") })
	back := false
	s.Cleanup(func() {
		if !back {
			assert.NoError(s, s.Control.Do(context.Background(), control.Start, "hub/apiserver"))
		}
	})
	health := s.role("all")
	require.Eventually(s, func() bool {
		code, words := readiness(s.Context(), health)
		return code == http.StatusServiceUnavailable && strings.Contains(words, "this agent waits for the API server at ")
	}, patience, visibilityEvery, "the agent says what it waits for")

	s.start("hub/apiserver")
	back = true
	s.controlled(func(ctx context.Context) error { return s.Control.WaitReady(ctx, "hub/apiserver") })
	began := time.Now()
	require.Eventually(s, func() bool {
		code, _ := readiness(s.Context(), health)
		return code == http.StatusOK
	}, patience, visibilityEvery, "the agent that has waited works")
	s.Logf("the hub agent was ready %s after its API server", time.Since(began).Round(time.Millisecond))
}

// readiness returns what an agent answers to whether it is ready; 0 if it does not answer.
func readiness(ctx context.Context, address string) (code int, words string) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/readyz", nil)
	if err != nil {
		return 0, err.Error()
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err.Error()
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, err.Error()
	}
	return response.StatusCode, string(body)
}
