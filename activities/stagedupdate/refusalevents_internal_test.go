package stagedupdate

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/runtime"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// eventActions keeps the actions of events.
type eventActions []string

func (e *eventActions) Eventf(_, _ runtime.Object, _, _, action, _ string, _ ...any) {
	*e = append(*e, action)
}

func TestOneRefusedCallDoesNotHideTheNext(t *testing.T) {
	events := &eventActions{}
	store := runStore{events: events}
	run := &placementv1beta1.ClusterStagedUpdateRun{}
	store.refuseCall(run, "Advancing stage canary", "it is not its turn")
	store.refuseCall(run, "Running the deletion stage", "it is not its turn")
	assert.Equal(t, eventActions{"Advancing stage canary", "Running the deletion stage"}, *events, "events alike in reason and action become one")
}
