package updaterun

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
func runOf(clusters int) (Recorder, *placementv1beta1.StageUpdatingStatus) {
	names := make([]string, clusters)
	for i := range names {
		names[i] = fmt.Sprintf("member-%04d", i)
	}
	run := &placementv1beta1.ClusterStagedUpdateRun{}
	run.Name = "example-run"
	run.Generation = 2
	run.Status.StagesStatus = []placementv1beta1.StageUpdatingStatus{{StageName: "all", Clusters: make([]placementv1beta1.ClusterUpdatingStatus, clusters)}}
	stage := &run.Status.StagesStatus[0]
	for i := range stage.Clusters {
		stage.Clusters[i].ClusterName = names[i]
		stage.Clusters[i].ClusterResourceOverrideSnapshots = []string{"team-override-0"}
	}
	return Recorder{Run: run, Now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}, stage
}

func sizeOf(t *testing.T, status placementv1beta1.UpdateRunStatus) int {
	t.Helper()
	data, err := json.Marshal(status)
	require.NoError(t, err)
	return len(data)
}

func TestTheStatusOfARunOfFiveThousandClustersFits(t *testing.T) {
	r, stage := runOf(5000)
	all := ClusterNames(stage)
	r.Initialized("")
	r.Progressing()
	const window = 500
	for at := 0; at < len(all); at += window {
		r.ClustersStarted(stage, all[at:at+window])
		assert.Less(t, sizeOf(t, *r.Status()), mebibyte, "with %d clusters started", at+window)
		r.ClustersSucceeded(stage, all[at:at+window])
		assert.Less(t, sizeOf(t, *r.Status()), mebibyte, "with %d clusters done", at+window)
	}
	r.WaitingAfter(stage)
	r.StageSucceeded(stage)
	r.Succeeded()
	t.Logf("bytes at the end: %d", sizeOf(t, *r.Status()))
	assert.True(t, StageOver(stage))
	assert.Equal(t, 5000, CountIn(stage, PhaseSucceeded))
}

func TestOfALargeRunAFinishedClusterKeepsOnlyThatItIs(t *testing.T) {
	for clusters, large := range map[int]bool{largeRun: false, largeRun + 1: true} {
		t.Run(fmt.Sprint(clusters, " clusters"), func(t *testing.T) {
			r, stage := runOf(clusters)
			r.ClustersStarted(stage, []string{"member-0000", "member-0001"})
			r.ClustersSucceeded(stage, []string{"member-0000"})
			r.ClustersStarted(stage, []string{"member-0000", "member-0001"}) // by an attempt that overlaps
			first := &stage.Clusters[0]
			second := &stage.Clusters[1]
			third := &stage.Clusters[2]
			assert.True(t, hasSucceeded(first))
			assert.Equal(t, !large, meta.FindStatusCondition(first.Conditions, "Started") != nil)
			assert.Equal(t, !large, len(first.ClusterResourceOverrideSnapshots) > 0)
			for _, c := range append(first.Conditions, second.Conditions...) {
				assert.Equal(t, !large, c.Message != "", c.Type)
			}
			assert.NotEmpty(t, second.ClusterResourceOverrideSnapshots, "what is frozen is needed until the cluster is done")
			assert.Empty(t, third.Conditions)
			assert.Equal(t, []int{0}, PositionsIn(stage, PhaseSucceeded))
			assert.Equal(t, []int{1}, PositionsIn(stage, PhaseRunning))
		})
	}
}

func TestTheSizeThatAStatusWillHaveIsKnownBeforeTheRun(t *testing.T) {
	for _, clusters := range []int{largeRun + 1, 5000} {
		r, stage := runOf(clusters)
		before := sizeOf(t, *r.Status())
		largest := LargestStatus(r.Run)
		assert.Equal(t, before, sizeOf(t, *r.Status()), "nothing is recorded")

		all := ClusterNames(stage)
		r.ClustersStarted(stage, all)
		under := sizeOf(t, *r.Status())
		r.ClustersSucceeded(stage, all)
		done := sizeOf(t, *r.Status())
		assert.Equal(t, max(before, under, done), largest)
		assert.Greater(t, largest, before)
	}
	r, _ := runOf(largeRun)
	assert.Zero(t, LargestStatus(r.Run), "it fits in any case")
	r, _ = runOf(5000)
	assert.Less(t, LargestStatus(r.Run), MaxStatus)
	r, _ = runOf(20000)
	assert.Greater(t, LargestStatus(r.Run), MaxStatus)
}
