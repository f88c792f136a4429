package temporalclient

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// signals notes until when a signal may take.
type signals struct {
	client.Client
	deadline time.Time
}

// SignalWorkflow notes it.
func (s *signals) SignalWorkflow(ctx context.Context, _, _, _ string, _ any) error {
	s.deadline, _ = ctx.Deadline()
	return nil
}

func TestAPokeDoesNotHangOnTemporal(t *testing.T) {
	sdk := &signals{}
	c := &Client{SDK: sdk}
	require.NoError(t, c.PokeIfOpen(t.Context(), "updaterun/run", wf.Poke{}))
	assert.WithinDuration(t, time.Now().Add(pokeTimeout), sdk.deadline, pokeTimeout)
	assert.False(t, sdk.deadline.IsZero())
}
