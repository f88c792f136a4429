package work

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestModes(t *testing.T) {
	t.Run("an idle agent applies nothing", func(t *testing.T) {
		a := newAgent(t, []client.Object{manifestWork("w", "a")}, nil)
		require.NoError(t, a.SetMode(t.Context(), ModeIdle))
		assert.Empty(t, a.mustReconcile(t, "w"))
	})
	t.Run("an idle agent neither cleans up after a deleted Work nor lets go of it", func(t *testing.T) {
		a := newAgent(t, []client.Object{manifestWork("w", "a")}, nil)
		a.mustReconcile(t, "w")
		require.NoError(t, a.SetMode(t.Context(), ModeIdle))
		require.NoError(t, a.hub.Delete(t.Context(), a.work(t, "w")))
		assert.Empty(t, a.mustReconcile(t, "w"), "whether to keep what was placed is not known yet")
		require.NoError(t, a.SetMode(t.Context(), ModeAbandon))
		assert.Equal(t, []string{"hub patch Work w"}, a.mustReconcile(t, "w"))
		assert.True(t, a.hasConfigMap(t, "a"))
	})
	t.Run("an agent that leaves removes what it applied and says so", func(t *testing.T) {
		a := newAgent(t, []client.Object{manifestWork("w", "a")}, nil)
		a.mustReconcile(t, "w")
		removed := 0
		a.Removed = func() { removed++ }
		require.NoError(t, a.SetMode(t.Context(), ModeLeave))
		a.mustReconcile(t, "w")
		assert.False(t, a.hasConfigMap(t, "a"))
		assert.Equal(t, 1, removed)
		names, err := a.Remaining(t.Context())
		require.NoError(t, err)
		assert.Empty(t, names)
	})
	t.Run("an agent that abandons lets go of deleted Works and keeps what they brought", func(t *testing.T) {
		a := newAgent(t, []client.Object{manifestWork("w", "a")}, nil)
		a.mustReconcile(t, "w")
		require.NoError(t, a.SetMode(t.Context(), ModeAbandon))
		require.NoError(t, a.hub.Delete(t.Context(), a.work(t, "w")))
		assert.Equal(t, []string{"hub patch Work w"}, a.mustReconcile(t, "w"))
		assert.True(t, a.hasConfigMap(t, "a"))
	})
}

// listObserver is a client that calls the test for each list.
type listObserver struct {
	client.Client
	before func() error
}

func (l listObserver) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if err := l.before(); err != nil {
		return err
	}
	return l.Client.List(ctx, list, opts...)
}

func TestAChangeOfModeMissesNoWork(t *testing.T) {
	a := newAgent(t, []client.Object{manifestWork("w", "a")}, nil)
	require.NoError(t, a.SetMode(t.Context(), ModeIdle))
	a.enqueuer.waiting = nil
	lists := 0
	failing := true
	a.Hub = listObserver{a.hub, func() error {
		lists++
		assert.Equal(t, ModeApply, a.mode.mode, "what arrives after the list is looked at in the new mode already")
		if failing {
			return errors.New("no cache yet")
		}
		return nil
	}}
	require.Error(t, a.SetMode(t.Context(), ModeApply))
	assert.Empty(t, a.enqueuer.waiting)

	failing = false
	require.NoError(t, a.SetMode(t.Context(), ModeApply), "the same mode again makes up for the list that failed")
	assert.Contains(t, a.enqueuer.waiting, "w")
	require.NoError(t, a.SetMode(t.Context(), ModeApply))
	assert.Equal(t, 2, lists, "after that nothing is left to do")
}
