package stagedupdate_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientretry "k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/attempt"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// end declares the run of the documents failed, as another execution does.
func (h *hub) end() {
	h.t.Helper()
	require.NoError(h.t, clientretry.RetryOnConflict(clientretry.DefaultBackoff, func() error { // the activity writes it, too
		run := h.run("example-run-2")
		run.Status.Conditions = append(run.Status.Conditions, metav1.Condition{
			Type: "Succeeded", Status: metav1.ConditionFalse, Reason: "UpdateRunFailed", LastTransitionTime: metav1.NewTime(begin),
		})
		return h.WithWatch.Status().Update(h.t.Context(), run)
	}))
}

// deaf is a client whose cache has heard nothing of runs since it was made.
type deaf struct {
	client.Client
	run *placementv1beta1.ClusterStagedUpdateRun
}

func (d *deaf) Get(ctx context.Context, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
	if run, is := o.(*placementv1beta1.ClusterStagedUpdateRun); is {
		d.run.DeepCopyInto(run)
		return nil
	}
	return d.Client.Get(ctx, key, o, options...)
}

// An attempt of an execution that was terminated may still have clusters to write to when the run
// is over.
func TestAnAttemptThatWasLeftOverWritesNothingOnceItsRunHasEnded(t *testing.T) {
	member3 := placementv1beta1.BindingName("example-placement", "crp-uid", "member3")
	t.Run("in a stage", func(t *testing.T) {
		h := initialized(t)
		h.onGet[member3] = h.end
		assert.Equal(t, wf.StageDelta{Ended: true}, must(h, h.acts.AdvanceStage, canaryAdvance(names("member3"), nil, nil)))
		assert.Equal(t, oldSnapshot, h.binding("member3").Spec.ResourceSnapshotName)
	})
	t.Run("although its cache hears nothing any more", func(t *testing.T) {
		h := initialized(t)
		h.acts.Client = &deaf{h, h.run("example-run-2")}
		h.acts.ClusterWrites = attempt.NewLimit(1)
		occupied, err := attempt.Acquire(t.Context(), h.acts.ClusterWrites)
		require.NoError(t, err)
		h.onGet[member3] = func() { h.clock.Step(5 * time.Second) }
		delta := background(h, func() wf.StageDelta {
			return must(h, h.acts.AdvanceStage, canaryAdvance(names("member3"), nil, nil))
		})
		require.Eventually(t, func() bool { return h.canaryCondition("member3", "Started") != "" }, 2*time.Minute, time.Millisecond)
		h.end()
		occupied()
		assert.True(t, soon(h, delta).Ended)
		assert.Equal(t, oldSnapshot, h.binding("member3").Spec.ResourceSnapshotName)
	})
	t.Run("in the deletion stage", func(t *testing.T) {
		h := howTo(t, bindingObject("member4", placementv1beta1.BindingStateUnscheduled, oldSnapshot))
		initialize(h, "example-run-2")
		h.onGet[placementv1beta1.BindingName("example-placement", "crp-uid", "member4")] = h.end
		assert.False(t, must(h, h.acts.AdvanceDeletion, refOf("example-run-2")).Done)
		assert.True(t, h.binding("member4").DeletionTimestamp.IsZero())
	})
	t.Run("nor does it make a rollback", func(t *testing.T) {
		h := failedHalfway(t, placementv1beta1.FailureBudgetRollback)
		h.stuck["member1"] = true
		delta := h.advancing(canaryAdvance(names("member1"), nil, nil))
		h.end()
		h.clock.Step(5 * time.Minute)
		assert.True(t, (<-delta).Ended)
		var runs placementv1beta1.ClusterStagedUpdateRunList
		require.NoError(t, h.List(t.Context(), &runs))
		assert.Len(t, runs.Items, 1)
	})
}

func TestAnAttemptThatHearsOfAStopStartsNothingMore(t *testing.T) {
	h := initialized(t)
	h.onGet[placementv1beta1.BindingName("example-placement", "crp-uid", "member3")] = func() { h.wish(placementv1beta1.StateStop) }
	in := canaryAdvance(names("member3"), nil, nil)
	_, err := call(h, h.acts.AdvanceStage, in)
	require.ErrorContains(t, err, "was given another state")
	assert.Equal(t, oldSnapshot, h.binding("member3").Spec.ResourceSnapshotName)
	assert.Equal(t, wf.StageDelta{Stopping: true, NotStarted: names("member3")}, must(h, h.acts.AdvanceStage, in), "the next attempt")
	assert.Zero(t, must(h, h.acts.LoadRun, refOf("example-run-2")).Stages[1].InFlight)
}
