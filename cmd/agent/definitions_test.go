package agent

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	testingclock "k8s.io/utils/clock/testing"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/cmd/internal/definitions"
)

// answers is a hub whose definitions lack fields, or not, or which does not answer.
type answers struct {
	lacking, away atomic.Bool
	looks         atomic.Int32
	changes       chan struct{}
	clock         *testingclock.FakeClock
}

func (a *answers) guard(address string) *Definitions {
	watch := func(ctx context.Context, changed func()) {
		for {
			select {
			case <-ctx.Done():
				return
			case <-a.changes:
				changed()
			}
		}
	}
	return &Definitions{HealthAddress: address, Log: logr.Discard(), Clock: a.clock, Watch: watch, Lacking: func(context.Context) ([]definitions.Gap, error) {
		a.looks.Add(1)
		if a.away.Load() {
			return nil, errors.New("connection refused")
		}
		if !a.lacking.Load() {
			return nil, nil
		}
		return []definitions.Gap{{Kind: placementv1beta1.GroupVersion.WithKind("ClusterResourcePlacement"), Fields: []string{"spec.strategy.suspension"}}}, nil
	}}
}

func newAnswers() *answers {
	return &answers{clock: testingclock.NewFakeClock(noon), changes: make(chan struct{})}
}

func TestAnAgentStartsAtOnceWithWholeDefinitions(t *testing.T) {
	a := newAnswers()
	require.NoError(t, a.guard("").Await(t.Context()))
	a.away.Store(true)
	require.NoError(t, a.guard("").Await(t.Context()), "a hub that is away keeps no agent from starting")
}

func TestAnAgentWaitsForDefinitionsThatLackNothing(t *testing.T) {
	a := newAnswers()
	a.lacking.Store(true)
	address := freeAddress(t)
	done := make(chan error, 1)
	go func() { done <- a.guard(address).Await(t.Context()) }()
	require.Eventually(t, func() bool { return answer(address, "/healthz") == "200 " }, time.Minute, time.Millisecond, "it is alive")
	said := answer(address, "/readyz?exclude=temporal")
	assert.Contains(t, said, "503 the definitions of 1 kind(s) lack fields")
	assert.Contains(t, said, "ClusterResourcePlacement.placement.kubernetes-fleet.io v1beta1: spec.strategy.suspension")
	assert.Contains(t, said, "helm show crds <chart hub-agent> | kubectl apply --server-side --force-conflicts -f -")

	a.away.Store(true) // nothing is known then
	a.lacking.Store(false)
	for range 3 {
		require.Eventually(t, a.clock.HasWaiters, time.Minute, time.Millisecond)
		a.clock.Step(definitionsPeriod)
	}
	require.Eventually(t, a.clock.HasWaiters, time.Minute, time.Millisecond)
	assert.Empty(t, done)
	a.away.Store(false)
	a.clock.Step(definitionsPeriod)
	require.NoError(t, <-done)
	assert.Empty(t, answer(address, "/healthz"), "the address is free for the manager")
}

func TestAnAgentEndsWhenDefinitionsLackFields(t *testing.T) {
	a := newAnswers()
	done := make(chan error, 1)
	go func() { done <- a.guard("").Start(t.Context()) }()
	require.Eventually(t, a.clock.HasWaiters, time.Minute, time.Millisecond)
	assert.Empty(t, done)
	a.lacking.Store(true)
	a.clock.Step(definitionsPeriod)
	assert.ErrorContains(t, <-done, "ClusterResourcePlacement.placement.kubernetes-fleet.io v1beta1: spec.strategy.suspension. This agent ends")
}

// Schemas are published some time after the definition has changed: the agent looks for a while, and then waits for the next change.
func TestAnAgentLooksAtDefinitionsThatHaveChanged(t *testing.T) {
	a := newAnswers()
	done := make(chan error, 1)
	go func() { done <- a.guard("").Start(t.Context()) }()
	passPublishing := func() {
		for range publishingTime / definitionsPeriod {
			require.Eventually(t, a.clock.HasWaiters, time.Minute, time.Millisecond)
			a.clock.Step(definitionsPeriod)
		}
	}
	passPublishing()
	want := int32(publishingTime/definitionsPeriod) + 1
	require.Eventually(t, func() bool { return a.looks.Load() == want }, time.Minute, time.Millisecond)
	assert.False(t, a.clock.HasWaiters(), "no look is due")

	a.changes <- struct{}{}
	require.Eventually(t, a.clock.HasWaiters, time.Minute, time.Millisecond)
	assert.Equal(t, want+1, a.looks.Load())
	a.lacking.Store(true)
	a.clock.Step(definitionsPeriod)
	assert.ErrorContains(t, <-done, "This agent ends")
}

func TestAnAgentThatIsToldToEndLooksAtNoDefinitions(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	assert.NoError(t, newAnswers().guard("").Start(ctx))
}
