//go:build integration

package integration

import (
	"bytes"
	"context"
	"os"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fleetflow/fleetflow/test/devfleet/control"
)

// leadsWithin is how long a hub agent may take to work once its API server answers.
const leadsWithin = 10 * time.Second

// agentWaitsForItsAPIServer starts a hub agent while there is no API server. Kubernetes would start one that ends again after ever longer
// pauses: it has to wait.
func agentWaitsForItsAPIServer(s *spec) {
	s.blinded = true
	s.stop("hub/apiserver")
	s.controlled(func(ctx context.Context) error { return s.Control.Do(ctx, control.Kill, hubAgent) })
	logged := s.component(hubAgent).LogFile
	before, err := os.ReadFile(logged)
	require.NoError(s, err)
	require.Eventually(s, func() bool {
		now, err := os.ReadFile(logged)
		return err == nil && bytes.Contains(now[len(before):], []byte("Waiting for the API server"))
	}, patience, visibilityEvery, "the agent says what it waits for")
	waits := s.component(hubAgent)

	s.start("hub/apiserver")
	s.controlled(func(ctx context.Context) error { return s.Control.WaitReady(ctx, "hub/apiserver") })
	began := time.Now()
	s.controlled(func(ctx context.Context) error { return s.Control.WaitReady(ctx, hubAgent) })
	took := time.Since(began)
	s.Logf("the hub agent was ready %s after its API server", took.Round(time.Millisecond))
	assert.Less(s, took, leadsWithin)
	assert.Equal(s, waits.PID, s.component(hubAgent).PID, "it is the one that has waited")
}

// component returns what the supervisor says of a process.
func (s *spec) component(name string) control.Component {
	s.Helper()
	status, err := s.Control.Status(s.Context())
	require.NoError(s, err)
	found, has := status.Component(name)
	require.True(s, has)
	return found
}
