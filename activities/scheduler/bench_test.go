//go:build unix

package scheduler_test

import (
	"fmt"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetflow/fleetflow/activities/scheduler"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// largeFleet are clusters as an agent reports them: labels, properties and resources.
func largeFleet(size int) []clusterv1beta1.MemberCluster {
	clusters := make([]clusterv1beta1.MemberCluster, size)
	for i := range clusters {
		cpu := resource.NewQuantity(int64(4+i%97), resource.DecimalSI)
		memory := resource.NewQuantity(int64(8+i%61)<<30, resource.BinarySI)
		usage := corev1.ResourceList{corev1.ResourceCPU: *cpu, corev1.ResourceMemory: *memory}
		clusters[i] = cluster(fmt.Sprintf("member-%06d", i*7919%size),
			labels("env", oneIn(i, 3, "prod", "test"), "region", fmt.Sprintf("region-%02d", i%12), "team", fmt.Sprint(i%50),
				"kubernetes-fleet.io/member-name", fmt.Sprint(i)),
			reporting("kubernetes-fleet.io/node-count", fmt.Sprint(i%200)), reporting("per-cpu-core-cost", fmt.Sprintf("0.%03d", i%1000)))
		clusters[i].Status.ResourceUsage = clusterv1beta1.ResourceUsage{Capacity: usage, Allocatable: usage, Available: usage}
	}
	return clusters
}

func oneIn(i, n int, one, others string) string {
	if i%n == 0 {
		return one
	}
	return others
}

// demanding is a policy with two required terms, three preferred ones of which one sorts
// by a property, and a spread.
func demanding(n int32) *placementv1beta1.PlacementPolicy {
	first := expressing("env", metav1.LabelSelectorOpIn, "prod", "stage")
	second := nodes("Ge", "20")
	second.PropertySelector.MatchExpressions[0].Name = "kubernetes-fleet.io/node-count"
	policy := requiring(pickN(n), first, second)
	preferring(policy, weighed(20, matching("env", "prod")), weighed(-10, expressing("team", metav1.LabelSelectorOpIn, "1", "2", "3")),
		weighed(50, sortedBy("resources.kubernetes-fleet.io/available-cpu", placementv1beta1.Descending)))
	return spreading(policy, over("region", 2, placementv1beta1.DoNotSchedule))
}

func demandingFacts(size int) scheduler.Facts {
	return scheduler.Facts{PolicySnapshot: "p-0", Policy: demanding(100), Clusters: largeFleet(size), Now: now}
}

// cycles measures scheduling cycles over a fleet. Beside the time on the wall, which is
// only as true as the machine is idle, it tells the processor time, the collection of
// garbage included.
func cycles(b *testing.B, facts scheduler.Facts, want func(scheduler.Decision) bool) {
	b.ReportAllocs()
	before := processorTime(b)
	for b.Loop() {
		if d := scheduler.Decide(facts); !want(d) {
			b.Fatalf("%d clusters were picked, %d of them anew", len(d.Selected), len(d.Create))
		}
	}
	spent := processorTime(b) - before
	b.ReportMetric(spent.Seconds()*1000/float64(b.N), "cpu-ms/op")
	b.ReportMetric(float64(spent.Nanoseconds())/float64(b.N)/float64(len(facts.Clusters)), "cpu-ns/cluster")
}

func processorTime(b *testing.B) time.Duration {
	var usage syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func created(n int) func(scheduler.Decision) bool {
	return func(d scheduler.Decision) bool { return len(d.Create) == n }
}

func BenchmarkPickN(b *testing.B) {
	for _, size := range []int{1_000, 10_000, 100_000} {
		b.Run(fmt.Sprintf("100 of %d clusters", size), func(b *testing.B) { cycles(b, demandingFacts(size), created(100)) })
	}
}

// A cycle that finds everything as it should be is the most frequent one.
func BenchmarkPickNAgain(b *testing.B) {
	facts := demandingFacts(10_000)
	cycles(b, applied(facts, scheduler.Decide(facts)), func(d scheduler.Decision) bool { return len(d.Keep) == 100 && len(d.Create) == 0 })
}

// Where every cluster is a group of its own nothing can be shared between clusters.
func BenchmarkPickNSpreadOverClusters(b *testing.B) {
	facts := demandingFacts(10_000)
	facts.Policy = spreading(demanding(100), over("kubernetes-fleet.io/member-name", 1, placementv1beta1.DoNotSchedule))
	cycles(b, facts, created(100))
}

func BenchmarkPickAll(b *testing.B) {
	for _, size := range []int{1_000, 10_000, 100_000} {
		b.Run(fmt.Sprintf("%d clusters", size), func(b *testing.B) {
			cycles(b, scheduler.Facts{PolicySnapshot: "p-0", Clusters: largeFleet(size), Now: now}, created(size))
		})
	}
}

// A hundred placements over a hundred thousand clusters: past what one hub can hold, and what the scheduler alone takes for it.
func BenchmarkAHundredPlacements(b *testing.B) {
	for _, size := range []int{1_000, 10_000, 100_000} {
		facts := demandingFacts(size)
		b.Run(fmt.Sprintf("%d clusters", size), func(b *testing.B) {
			b.ReportAllocs()
			before := processorTime(b)
			for b.Loop() {
				for i := range 100 {
					facts.PolicySnapshot = fmt.Sprintf("p%d-0", i)
					if d := scheduler.Decide(facts); !created(100)(d) {
						b.Fatalf("%d clusters were picked", len(d.Create))
					}
				}
			}
			spent := processorTime(b) - before
			b.ReportMetric(float64(spent.Nanoseconds())/float64(b.N)/100/float64(size), "cpu-ns/cluster")
		})
	}
}

func TestAnExplanationOfALargeFleetIsShort(t *testing.T) {
	d := scheduler.Decide(demandingFacts(1_000))
	require.Len(t, d.Create, 100)
	assert.Len(t, d.Unselected, scheduler.MaxUnselected)
}

func TestMemoryOfACycle(t *testing.T) {
	for name, facts := range map[string]scheduler.Facts{"with a spread": demandingFacts(10_000), "with groups and a division": dividedFacts(10_000)} {
		t.Run(name, func(t *testing.T) {
			const most = 2_000_000
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			scheduler.Decide(facts)
			runtime.ReadMemStats(&after)
			assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(most), "bytes of a cycle over 10,000 clusters")
		})
	}
}
