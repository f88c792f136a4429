package telemetry

import (
	"fmt"
	"testing"

	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// A healthy run of 100 clusters says at the default level that it and its stages begin and end, and nothing for each cluster.
func TestAHealthyRunLogsItsBeginningItsStagesAndItsEnd(t *testing.T) {
	var logged []string
	w := NewWatcher(nil)
	w.Log = funcr.New(func(_, args string) { logged = append(logged, args) }, funcr.Options{})

	plan := func(change func(*placementv1beta1.UpdateRunStatus)) *placementv1beta1.ClusterStagedUpdateRun {
		r := run(func(*placementv1beta1.StageUpdatingStatus) {})
		r.Spec.PlacementName = "web"
		var stages []placementv1beta1.StageUpdatingStatus
		for _, name := range []string{"canary", "prod"} {
			stage := placementv1beta1.StageUpdatingStatus{StageName: name}
			for i := range 50 {
				stage.Clusters = append(stage.Clusters, placementv1beta1.ClusterUpdatingStatus{ClusterName: fmt.Sprintf("%s-%d", name, i)})
			}
			stages = append(stages, stage)
		}
		r.Status.StagesStatus = stages
		set(&r.Status.Conditions, condition("Initialized", yes, "Initialized", 1, 1))
		if change != nil {
			change(&r.Status)
		}
		return r
	}
	mark := func(seconds int) *metav1.Time { time := at(seconds); return &time }
	ends := func(s *placementv1beta1.UpdateRunStatus, stage, begun, ended int) {
		s.StagesStatus[stage].StartTime = mark(begun)
		s.StagesStatus[stage].EndTime = mark(ended)
		for i := range s.StagesStatus[stage].Clusters {
			set(&s.StagesStatus[stage].Clusters[i].Conditions, condition("Started", yes, "", begun, 1), condition("Succeeded", yes, "", ended, 1))
		}
		set(&s.StagesStatus[stage].Conditions, condition("Succeeded", yes, placementv1beta1.ReasonStageUpdatingSucceeded, ended, 1))
	}
	created := run(func(*placementv1beta1.StageUpdatingStatus) {})
	created.Status = placementv1beta1.UpdateRunStatus{}
	steps := []*placementv1beta1.ClusterStagedUpdateRun{
		created, plan(nil),
		plan(func(s *placementv1beta1.UpdateRunStatus) { s.StagesStatus[0].StartTime = mark(2) }),
		plan(func(s *placementv1beta1.UpdateRunStatus) { ends(s, 0, 2, 12) }),
		plan(func(s *placementv1beta1.UpdateRunStatus) { ends(s, 0, 2, 12); ends(s, 1, 13, 33) }),
		plan(func(s *placementv1beta1.UpdateRunStatus) {
			ends(s, 0, 2, 12)
			ends(s, 1, 13, 33)
			set(&s.Conditions, condition("Succeeded", yes, placementv1beta1.ReasonUpdateRunSucceeded, 34, 1))
		}),
	}
	for i := range steps[1:] {
		w.runChanged(steps[i], steps[i+1])
	}
	w.runChanged(steps[len(steps)-1], steps[len(steps)-1])
	of := func(message, values string) string {
		return `"level"=0 "msg"="` + message + `" "run"="/r" "placement"="web" ` + values
	}
	assert.Equal(t, []string{
		of("An update run has begun", `"stages"=2 "clusters"=100`),
		of("A stage of an update run has begun", `"stage"="canary" "clusters"=50`),
		of("A stage of an update run has ended", `"stage"="canary" "clusters"=50 "reason"="StageUpdatingSucceeded" "took"="10s"`),
		of("A stage of an update run has begun", `"stage"="prod" "clusters"=50`),
		of("A stage of an update run has ended", `"stage"="prod" "clusters"=50 "reason"="StageUpdatingSucceeded" "took"="20s"`),
		of("An update run has ended", `"reason"="UpdateRunSucceeded" "clusters"=100 "took"="33s"`),
	}, logged)
}
