package updaterun_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetflow/fleetflow/apis/placement/updaterun"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// TestARunListsTheFirstClustersOutOfService has more of them than the status lists.
func TestARunListsTheFirstClustersOutOfService(t *testing.T) {
	run := &placementv1beta1.ClusterStagedUpdateRun{}
	run.Status.StagesStatus = make([]placementv1beta1.StageUpdatingStatus, 2)
	whys := map[string]string{}
	var all []string
	for i := range 25 {
		name := fmt.Sprintf("c-%02d", i)
		stage := &run.Status.StagesStatus[i/20]
		stage.Clusters = append(stage.Clusters, placementv1beta1.ClusterUpdatingStatus{ClusterName: name})
		whys[name] = "not on Saturdays"
		all = append(all, name)
	}
	at := func(after time.Duration) updaterun.Recorder {
		return updaterun.Recorder{Run: run, Now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC).Add(after)}
	}
	assert.Empty(t, updaterun.OutOfServiceText(run))
	at(0).NotPutBack(whys)
	assert.Equal(t, all, updaterun.OutOfService(run), "each is remembered")
	text := "25 clusters that the run took out of service could not be put back, as the API server refuses to write that: " +
		strings.Join(all[:20], ", ") + " and 5 more"
	assert.Equal(t, "; "+text, updaterun.OutOfServiceText(run))
	said := meta.FindStatusCondition(run.Status.Conditions, placementv1beta1.ConditionTypeBackInService)
	assert.Equal(t, text+"; this is tried again", said.Message)
	explained := func() (n int) {
		for i := range run.Status.StagesStatus {
			for _, c := range run.Status.StagesStatus[i].Clusters {
				if said := meta.FindStatusCondition(c.Conditions, placementv1beta1.ConditionTypeBackInService); said != nil && said.Message != "" {
					n++
				}
			}
		}
		return n
	}
	assert.Equal(t, 20, explained(), "the status says why of no more than it lists")
	before := placementv1beta1.DeepCopyOf(run)
	at(time.Hour).NotPutBack(whys)
	assert.Equal(t, before, run, "that it is refused again is no news")

	at(time.Hour).PutBack(all[:24])
	assert.Equal(t, all[24:], updaterun.OutOfService(run))
	at(time.Hour).ClustersStarted(&run.Status.StagesStatus[1], all[24:])
	at(time.Hour).Observed()
	assert.Empty(t, updaterun.OutOfService(run), "it is to be updated")
	said = meta.FindStatusCondition(run.Status.Conditions, placementv1beta1.ConditionTypeBackInService)
	assert.Equal(t, metav1.ConditionTrue, said.Status)
}

// TestAClusterThatWaitsForItsTurnAgainStaysOutOfService asks for another try of a cluster that could not be put back.
func TestAClusterThatWaitsForItsTurnAgainStaysOutOfService(t *testing.T) {
	run := &placementv1beta1.ClusterStagedUpdateRun{}
	run.Spec.ClusterActions = []placementv1beta1.ClusterAction{{Cluster: "a", Action: placementv1beta1.ClusterActionRetry, Attempt: 1}}
	run.Status.StagesStatus = []placementv1beta1.StageUpdatingStatus{{Clusters: []placementv1beta1.ClusterUpdatingStatus{{ClusterName: "a"}}}}
	r := updaterun.Recorder{Run: run, Now: time.Unix(0, 0)}
	r.ClustersSkipped(r.Stage(0), []string{"a"}, "as asked")
	r.NotPutBack(map[string]string{"a": "denied"})
	r.CarryOut(r.Stage(0), updaterun.Requests{Requeue: []string{"a"}})
	assert.Equal(t, updaterun.PhasePending, updaterun.ClusterPhase(&r.Stage(0).Clusters[0]))
	assert.Equal(t, []string{"a"}, updaterun.OutOfService(run))
}
