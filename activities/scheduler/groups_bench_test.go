package scheduler_test

import (
	"fmt"
	"testing"

	"github.com/fleetflow/fleetflow/activities/scheduler"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// Two clusters to a group and half of all to be picked is the most there is to do: every
// pick forbids one more group.
func BenchmarkSpreadOverManyGroups(b *testing.B) {
	for _, size := range []int{1000, 2000, 4000} {
		clusters := make([]clusterv1beta1.MemberCluster, size)
		for i := range clusters {
			clusters[i] = cluster(fmt.Sprintf("member-%06d", i), labels("rack", fmt.Sprint(i/2)))
		}
		facts := scheduler.Facts{
			PolicySnapshot: "p-0", Clusters: clusters, Now: now,
			Policy: spreading(pickN(int32(size/2)), over("rack", 1, placementv1beta1.DoNotSchedule)),
		}
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				scheduler.Decide(facts)
			}
		})
	}
}
