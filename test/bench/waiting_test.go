//go:build bench

package bench

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/test/bench/hollow"
	"github.com/fleetflow/fleetflow/test/devfleet/controlplane"
)

// waitFor is for how long waiting runs are looked at: Go gives back at least every two minutes what
// starting them has taken.
const waitFor = 3 * time.Minute

// TestWaiting has 1,000 runs, each of 3 clusters of its own placement, wait at an approval.
func TestWaiting(t *testing.T) {
	f := shared
	runs := scaled(1000, 10)
	clusters := 99
	f.grow(t, few)
	names := named("waiting", runs)
	title := fmt.Sprintf("%d runs of 3 clusters wait at an approval", runs)
	gated := &placementv1beta1.ClusterStagedUpdateStrategy{ObjectMeta: metav1.ObjectMeta{Name: "waiting"}}
	gated.Spec.Stages = []placementv1beta1.StageConfig{{
		Name: "all", BeforeStageTasks: []placementv1beta1.StageTask{{Type: placementv1beta1.StageTaskTypeApproval}},
	}}
	f.strategy(t, gated)
	f.content(t, names...)
	f.place(t, func(i int) *placementv1beta1.PlacementPolicy {
		first := 3 * i % clusters
		return &placementv1beta1.PlacementPolicy{
			PlacementType: placementv1beta1.PickFixedPlacementType,
			ClusterNames:  []string{hollow.Name(first), hollow.Name(first + 1), hollow.Name(first + 2)},
		}
	}, external(), names...)
	f.awaitPlacements(t, placementv1beta1.ConditionTypeScheduled, "0", names...)
	f.awaitNoneOpen(t)
	began := time.Now()
	f.startRuns(t, "run", gated.Name, names...)
	f.await(t, patience, "runs to wait", func() string {
		left := 0
		for _, name := range names {
			run := &placementv1beta1.ClusterStagedUpdateRun{}
			if f.cache.Get(t.Context(), client.ObjectKey{Name: name + "-run"}, run) != nil || !waits(run) {
				left++
			}
		}
		if left > 0 {
			return fmt.Sprintf("%d of %d do not yet", left, runs)
		}
		return ""
	})
	t.Logf("%d runs wait after %s", runs, seconds(time.Since(began)))
	f.awaitQuiet(t)
	before := f.cpu(t)
	share, written := f.rest(t, waitFor)
	memory := f.agent(t).Memory
	t.Logf("while %d runs wait: CPU time in %s: %s; writes: %s", runs, waitFor, f.cpuSince(t, before), written)
	f.figures.add(t, title+": hub agent's share of a core", "< 5 %", percent(share))
	f.figures.add(t, title+": Temporal's share of a core", "-",
		percent(f.cpuSince(t, before)[controlplane.Temporal]/waitFor.Seconds()))
	f.figures.add(t, title+": hub agent's memory", "<= 300 MiB", bytesOf(memory))
	assert.Less(t, share, maxIdleShare)
	assert.LessOrEqual(t, memory, int64(maxIdleMemory))
	assert.Len(t, f.executions(t, `ExecutionStatus = "Running" AND WorkflowId STARTS_WITH "updaterun/waiting"`), runs)
}

// waits says that the first stage of a run waits.
func waits(run *placementv1beta1.ClusterStagedUpdateRun) bool {
	if len(run.Status.StagesStatus) == 0 {
		return false
	}
	c := meta.FindStatusCondition(run.Status.StagesStatus[0].Conditions, placementv1beta1.ConditionTypeProgressing)
	return c != nil && c.Reason == placementv1beta1.ReasonStageUpdatingWaiting
}
