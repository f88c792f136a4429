package status

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/tree"
)

// BenchmarkThousandClusters is what a redraw of a run over 1,000 clusters costs; there are at most five a second.
func BenchmarkThousandClusters(b *testing.B) {
	run := &placementv1beta1.ClusterStagedUpdateRun{ObjectMeta: metav1.ObjectMeta{Name: "web-5"}, Spec: placementv1beta1.UpdateRunSpec{PlacementName: "web"}}
	stage := placementv1beta1.StageUpdatingStatus{StageName: "all"}
	objects := []client.Object{run}
	for i := range 1000 {
		name := fmt.Sprintf("edge-%04d", i)
		started := metav1.Condition{Type: placementv1beta1.ConditionTypeStarted, Status: metav1.ConditionTrue, LastTransitionTime: metav1.NewTime(time.Unix(int64(i), 0))}
		stage.Clusters = append(stage.Clusters, placementv1beta1.ClusterUpdatingStatus{ClusterName: name, Conditions: []metav1.Condition{started}})
		objects = append(objects, &placementv1beta1.ClusterResourceBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "web-" + name}, Spec: placementv1beta1.ResourceBindingSpec{TargetCluster: name},
			Status: placementv1beta1.ResourceBindingStatus{Conditions: []metav1.Condition{{Type: "Applied", Status: metav1.ConditionFalse, Message: "not yet"}}},
		})
	}
	run.Status.StagesStatus = []placementv1beta1.StageUpdatingStatus{stage}
	for b.Loop() {
		facts := Sort(objects)
		tree.Lines(Run(facts.Runs[0], facts, Options{}), tree.Style{Now: time.Unix(2000, 0), Width: 120})
	}
}
