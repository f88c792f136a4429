package stagedupdate

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// mebibyte is what the API server has to be able to store, with room for the rest of the object.
const mebibyte = 1 << 20

// runOf is a run of one stage over many clusters, each with an override.
func runOf(clusters int) (recorder, *placementv1beta1.StageUpdatingStatus) {
	names := make([]string, clusters)
	for i := range names {
		names[i] = fmt.Sprintf("member-%04d", i)
	}
	run := &placementv1beta1.ClusterStagedUpdateRun{}
	run.Name, run.Generation = "example-run", 2
	run.Status.StagesStatus = []placementv1beta1.StageUpdatingStatus{{StageName: "all", Clusters: clusterStatuses(names)}}
	stage := &run.Status.StagesStatus[0]
	for i := range stage.Clusters {
		stage.Clusters[i].ClusterResourceOverrideSnapshots = []string{"team-override-0"}
	}
	return recorder{run: run, now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}, stage
}

func sizeOf(t *testing.T, status placementv1beta1.UpdateRunStatus) int {
	t.Helper()
	data, err := json.Marshal(status)
	require.NoError(t, err)
	return len(data)
}

func TestTheStatusOfARunOfFiveThousandClustersFits(t *testing.T) {
	r, stage := runOf(5000)
	all := clusterNames(stage)
	r.initialized("")
	r.progressing()
	const window = 500
	for at := 0; at < len(all); at += window {
		r.started(stage, all[at:at+window])
		assert.Less(t, sizeOf(t, r.run.Status), mebibyte, "with %d clusters started", at+window)
		r.done(stage, all[at:at+window])
		assert.Less(t, sizeOf(t, r.run.Status), mebibyte, "with %d clusters done", at+window)
	}
	r.waiting(stage)
	r.succeeded(stage)
	r.finished()
	t.Logf("bytes at the end: %d", sizeOf(t, r.run.Status))
	assert.True(t, stageOver(stage))
	assert.Equal(t, 5000, stageStateOf(r.run, 0).Done)
}

func TestOfALargeRunAFinishedClusterKeepsOnlyThatItIs(t *testing.T) {
	for clusters, large := range map[int]bool{largeRun: false, largeRun + 1: true} {
		t.Run(fmt.Sprint(clusters, " clusters"), func(t *testing.T) {
			r, stage := runOf(clusters)
			r.started(stage, []string{"member-0000", "member-0001"})
			r.done(stage, []string{"member-0000"})
			r.started(stage, []string{"member-0000", "member-0001"}) // by an attempt that overlaps
			first, second, third := &stage.Clusters[0], &stage.Clusters[1], &stage.Clusters[2]
			assert.True(t, clusterDone(first))
			assert.Equal(t, !large, meta.FindStatusCondition(first.Conditions, "Started") != nil)
			assert.Equal(t, !large, len(first.ClusterResourceOverrideSnapshots) > 0)
			for _, c := range append(first.Conditions, second.Conditions...) {
				assert.Equal(t, !large, c.Message != "", c.Type)
			}
			assert.NotEmpty(t, second.ClusterResourceOverrideSnapshots, "what is frozen is needed until the cluster is done")
			assert.Empty(t, third.Conditions)
			plan := planOf(r.run, 0, 2)
			assert.Equal(t, []int{0}, plan.Done)
			assert.Equal(t, []int{1}, plan.Started)
		})
	}
}
