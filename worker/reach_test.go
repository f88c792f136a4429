package worker_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"

	"github.com/fleetflow/fleetflow/worker"
)

// A Temporal without its database still describes a namespace that it remembers.
func TestTemporalIsReachedOnlyWithItsDatabase(t *testing.T) {
	for sentence, test := range map[string]struct {
		known error
		want  string
	}{
		"the database knows no such workflow": {serviceerror.NewNotFound("no workflow"), ""},
		"the database is away":                {serviceerror.NewUnavailable("no connection to the database"), "no connection to the database"},
		"the namespace is not there":          {serviceerror.NewNamespaceNotFound("fleetflow"), "fleetflow"},
		"a client without the right":          {serviceerror.NewPermissionDenied("unauthorized", ""), "unauthorized"},
	} {
		t.Run(sentence, func(t *testing.T) {
			reach := &worker.Reach{Client: administered{server: &administration{known: func(string) error { return test.known }}}, Namespace: "fleetflow"}
			err := reach.Ask(t.Context())
			if test.want == "" {
				assert.NoError(t, err)
			} else {
				assert.ErrorContains(t, err, test.want)
			}
		})
	}
}

// A shard is away by itself: workflows that are in it are not answered for, and all others are.
func TestAPartOfTemporalsDatabaseThatIsAwayIsSeenAndStaysSeen(t *testing.T) {
	var mutex sync.Mutex
	seen := map[string]bool{}
	away := true
	known := func(id string) error {
		mutex.Lock()
		defer mutex.Unlock()
		seen[id] = true
		if away && strings.HasSuffix(id, "/7") {
			return serviceerror.NewUnavailable("shard status unknown")
		}
		return serviceerror.NewNotFound("no workflow")
	}
	reach := &worker.Reach{Client: administered{server: &administration{known: known}}, Namespace: "fleetflow"}
	for range 3 {
		require.ErrorContains(t, reach.Ask(t.Context()), "a part of Temporal's shards does not answer (1 of 8 workflows of namespace fleetflow that it was asked for): shard status unknown")
	}
	assert.Greater(t, len(seen), 20, "other shards are never asked")
	away = false
	require.NoError(t, reach.Ask(t.Context()))
}
