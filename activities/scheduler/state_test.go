package scheduler_test

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fleetflow/fleetflow/activities/scheduler"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// Every build stores the same: one that takes over in the middle of a placement, or is gone back to, goes on from there.
func TestStateIsStoredAsEveryBuildReadsIt(t *testing.T) {
	stored := map[string]string{
		"fleetflow.io/barred":                    `{"a":{"since":"2026-01-02T03:04:05Z","resources":"s-1"}}`,
		"fleetflow.io/affinity-groups-fit-since": `{"local":"2026-01-02T03:04:05Z"}`,
		"fleetflow.io/replica-demand":            "h",
		"fleetflow.io/replica-requests":          `[{"cpu":"500m"}]`,
		"fleetflow.io/leave-at":                  "2026-01-02T03:04:05Z",
		"fleetflow.io/overdue":                   "abc",
		"fleetflow.io/clusters-not-found":        "b,c",
		"fleetflow.io/kinds-to-serve":            "ConfigMap.v1.,Widget.v1.example.com",
	}
	policy := &placementv1beta1.ClusterSchedulingPolicySnapshot{}
	policy.SetAnnotations(maps.Clone(stored))
	state := scheduler.StateOf(policy)
	assert.Equal(t, scheduler.State{
		Bars: map[string]scheduler.Bar{"a": {Since: now, Resources: "s-1"}}, FitSince: map[string]time.Time{"local": now}, Demand: "h",
		Requests: `[{"cpu":"500m"}]`, LeaveAt: now, Overdue: "abc", NotFound: []string{"b", "c"},
		Kinds: []schema.GroupVersionKind{{Version: "v1", Kind: "ConfigMap"}, {Group: "example.com", Version: "v1", Kind: "Widget"}},
	}, state)
	assert.Equal(t, stored, state.Notes())

	for key := range stored {
		policy.Annotations[key] = "{"
	}
	state = scheduler.StateOf(policy)
	assert.Equal(t, scheduler.State{Demand: "{", Requests: "{", Overdue: "{", NotFound: []string{"{"}}, state, "what cannot be read is not remembered")
	assert.Equal(t, scheduler.State{}, scheduler.StateOf(nil))
	for key, value := range new(scheduler.State).Notes() {
		assert.Empty(t, value, "%s is taken off", key)
	}
}

func TestMoreKindsThanAnAnnotationHasRoomForAreNotRemembered(t *testing.T) {
	state := scheduler.State{}
	for i := range 2000 {
		state.Kinds = append(state.Kinds, schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: fmt.Sprintf("Widget%d", i)})
	}
	assert.Empty(t, state.Notes()["fleetflow.io/kinds-to-serve"])
}
