package stagedupdate

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/fleetflow/fleetflow/apis/placement/updaterun"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/workflows/rollout"
)

// A cluster that is updated after all is not put back: a call that waited for the time of that, which is over, would not wait at all.
func TestAClusterThatIsUpdatedIsNotWaitedForToBePutBack(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	acts := &Activities{Clock: clocktesting.NewFakeClock(at.Add(time.Hour))}
	run := &placementv1beta1.ClusterStagedUpdateRun{ObjectMeta: metav1.ObjectMeta{UID: "uid-1"}}
	run.Status.StagesStatus = []placementv1beta1.StageUpdatingStatus{{Clusters: []placementv1beta1.ClusterUpdatingStatus{{ClusterName: "a"}}}}
	updaterun.Recorder{Run: run, Now: at}.NotPutBack(map[string]string{"a": "denied"})
	k := serviceKeeper{observer: &stageObserver{acts: acts, run: run}}
	k.scheduleNextTry(nil)
	assert.Zero(t, k.nextTry, "this process has not tried")
	acts.refusals.Record(serviceOf(run), "a", "", "denied", at)
	k.scheduleNextTry(nil)
	assert.Equal(t, at.Add(time.Second), k.nextTry)
	for _, role := range []rollout.StageRole{rollout.RoleStart, rollout.RoleInFlight} {
		k.scheduleNextTry(map[string]rollout.StageRole{"a": role})
		assert.Zero(t, k.nextTry)
	}
}
