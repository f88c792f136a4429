package stagedupdate_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/clusterupdate"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// A member that is silent keeps its Works: the run names it, once, until it is cleared.
func TestARunNamesAClusterThatIsNotCleared(t *testing.T) {
	const stuckAt = "Progressing=False UpdateRunStuck: The updateRun is stuck waiting for cluster member4 in stage kubernetes-fleet.io/deleteStage to finish updating, please check crp status for potential errors"
	h := howTo(t, leaving("member4")...)
	initialize(h, "example-run-2")
	h.events = nil
	advance := func() bool { return must(h, h.acts.AdvanceDeletion, refOf("example-run-2")) }
	done := background(h, advance)
	h.untilItWaits()
	h.clock.Step(4 * time.Minute)
	assert.Equal(t, isStarted, progressingOf(h))
	h.clock.Step(time.Minute)
	assert.False(t, <-done)
	assert.Equal(t, stuckAt, progressingOf(h))
	assert.Equal(t, names("Warning example-run-2 UpdateRunStuck: What cluster member4 has is not gone after 5m0s"), h.events)

	done = background(h, advance)
	h.untilItWaits()
	select {
	case <-done:
		t.Fatal("a stuck run must not loop")
	default:
	}
	assert.Equal(t, stuckAt, progressingOf(h), "waiting is no progress")
	h.goes("member4")
	assert.True(t, <-done)
	assert.Equal(t, isStarted, progressingOf(h))
	assert.Equal(t, "Succeeded=True UpdateRunSucceeded: All stages are completed successfully", conditionOf(h.run("example-run-2").Status.Conditions, "Succeeded"))
}

// leaving are clusters that the placement no longer selects, and that do not go by themselves.
func leaving(clusters ...string) (out []client.Object) {
	for _, name := range clusters {
		b := bindingObject(name, placementv1beta1.BindingStateUnscheduled, "example-placement-1-snapshot")
		b.Finalizers = names(placementv1beta1.WorkFinalizer)
		out = append(out, b)
	}
	return out
}

// goes lets one of them go.
func (h *hub) goes(cluster string) {
	h.t.Helper()
	b := h.binding(cluster)
	edit(h, b, func(b *placementv1beta1.ClusterResourceBinding) { b.Finalizers = nil })
	h.tell(&placementv1beta1.ClusterResourceBinding{}, b, b)
}

func TestTheDeletionStageDoesNotLoopOverClustersThatAreGone(t *testing.T) {
	h := howTo(t, leaving("member4", "member5")...)
	initialize(h, "example-run-2")
	advance := func() bool { return must(h, h.acts.AdvanceDeletion, refOf("example-run-2")) }
	done := background(h, advance)
	h.untilItWaits()
	h.goes("member4")
	assert.False(t, <-done)
	clusters := h.run("example-run-2").Status.DeletionStageStatus.Clusters
	assert.Equal(t, wasUpdated, conditionOf(clusters[0].Conditions, "Succeeded"))
	assert.Empty(t, conditionOf(clusters[1].Conditions, "Succeeded"))
	done = background(h, advance)
	h.untilItWaits()
	select {
	case <-done:
		t.Fatal("it must wait for the other one")
	case <-time.After(10 * clusterupdate.Quiet):
	}
	h.goes("member5")
	assert.True(t, <-done)
}

func TestARunIsStuckNoLongerOnceOneOfItsClustersIsCleared(t *testing.T) {
	h := howTo(t, leaving("member4", "member5")...)
	initialize(h, "example-run-2")
	advance := func() bool { return must(h, h.acts.AdvanceDeletion, refOf("example-run-2")) }
	done := background(h, advance)
	h.untilItWaits()
	h.clock.Step(5 * time.Minute)
	assert.False(t, <-done)
	assert.Contains(t, progressingOf(h), "UpdateRunStuck: The updateRun is stuck waiting for cluster member4 ")
	h.goes("member4")
	assert.False(t, advance())
	assert.Equal(t, isStarted, progressingOf(h))
	assert.False(t, advance(), "the other one is late, too")
	assert.Contains(t, progressingOf(h), "UpdateRunStuck: The updateRun is stuck waiting for cluster member5 ")
}
