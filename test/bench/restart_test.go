//go:build bench

package bench

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/test/devfleet/control"
	"github.com/fleetflow/fleetflow/test/devfleet/controlplane"
)

// TestRestart kills the hub agent while 20 runs of 100 clusters are under way, and again when all is at rest.
func TestRestart(t *testing.T) {
	f := shared
	runs := scaled(20, 2)
	f.grow(t, few)
	names := named("restart", runs)
	title := fmt.Sprintf("restart with %d runs of %d clusters under way", runs, few)
	f.strategy(t, staged("restart"))
	f.content(t, names...)
	f.place(t, func(int) *placementv1beta1.PlacementPolicy { return allOf(few) }, external(), names...)
	f.awaitPlacements(t, placementv1beta1.ConditionTypeScheduled, "0", names...)
	f.awaitQuiet(t)
	created := f.startRuns(t, "run", "restart", names...)
	f.await(t, patience, "every run to have updated a cluster", func() string {
		return f.standing(t, created, func(string, int) bool { return false })
	})
	memory := f.peakMemory(t)
	before, err := f.readsSoFar(t.Context())
	require.NoError(t, err)
	ready, done := f.restart(t, created)
	var first, moving time.Duration
	f.await(t, patience, "every run to move again", func() string {
		left := f.standing(t, created, func(name string, n int) bool {
			if first == 0 && n > done[name] {
				first = time.Since(ready.killed)
			}
			return n <= done[name]
		})
		moving = time.Since(ready.killed)
		return left
	})
	peak := memory()
	after, err := f.readsSoFar(t.Context())
	require.NoError(t, err)
	f.figures.add(t, title+": ready", "<= 5 s", seconds(ready.after))
	f.figures.add(t, title+": the first of them moves", "-", seconds(first))
	f.figures.add(t, title+": objects read one by one for each run, until all move", "-", quantity{gets(after.minus(before)) / float64(runs), ""})
	f.figures.add(t, title+": all of them move again", "<= 10 s", seconds(moving))
	f.figures.add(t, title+": memory of the hub agent", "<= 300 MiB", bytesOf(peak))
	f.awaitRuns(t, 20*time.Minute, created)
	f.awaitNoneOpen(t)
	f.awaitQuiet(t)

	f.restartAtRest(t, runs*few, created)
}

// TestRestartPlacements kills the hub agent when 1,000 placements are at rest on ten clusters each.
func TestRestartPlacements(t *testing.T) {
	f := shared
	names := named("rest", scaled(1000, 20))
	const clusters = 10
	f.grow(t, few)
	members := slices.Concat(f.members.Members()[:few], f.members.Members()[:clusters])
	f.content(t, names...)
	f.place(t, func(i int) *placementv1beta1.PlacementPolicy {
		return &placementv1beta1.PlacementPolicy{PlacementType: placementv1beta1.PickFixedPlacementType, ClusterNames: members[i%few : i%few+clusters]}
	}, rolling("100%"), names...)
	f.awaitPlacements(t, placementv1beta1.ConditionTypeAvailable, "0", names...)
	f.awaitNoneOpen(t)
	f.awaitQuiet(t)
	f.restartAtRest(t, len(names)*clusters, nil)
}

// TestRestartThousands kills the hub agent when 1,000 placements are at rest on 100 clusters each, or as many as the machine takes.
func TestRestartThousands(t *testing.T) {
	f := shared
	prefix := "thousands-"
	content := "restart-content"
	placements := scaled(copiesThatFit(t), 20)
	f.grow(t, few)
	f.content(t, content)
	require.NoError(t, f.hub.Create(t.Context(), placementOf(prefix+"0000", content, allOf(few), rolling("100%"))))
	f.awaitPlacements(t, placementv1beta1.ConditionTypeAvailable, "0", prefix+"0000")
	f.awaitNoneOpen(t)
	f.awaitQuiet(t)
	defer f.copyPlacement(t, prefix, placements-1)()
	f.awaitQuiet(t)
	f.restartAtRest(t, placements*few, nil)
}

// restartAtRest kills the hub agent of a fleet that is at rest, and says what it reads, writes and takes until it is at rest again.
func (f *fleet) restartAtRest(t *testing.T, bindings int, runs map[string]time.Time) {
	t.Helper()
	stop := f.meter(t)
	before, err := f.readsSoFar(t.Context())
	require.NoError(t, err)
	title := fmt.Sprintf("restart with %d bindings at rest", bindings)
	used := f.cpu(t)
	used[controlplane.HubAgent] = 0 // that of the one which is killed
	profiled := f.profile(t, title)
	ready, _ := f.restart(t, runs)
	untilReady := f.cpuSince(t, used)
	leads := f.awaitLeader(t, ready.killed)
	f.awaitAgentIdle(t)
	untilIdle := f.cpuSince(t, used)
	profiled()
	f.awaitQuiet(t)
	written, refused := stop()
	after, err := f.readsSoFar(t.Context())
	require.NoError(t, err)
	read := after.minus(before)
	t.Logf("at rest: writes %s; refused: %s; read: %s", written, refused, read)
	t.Logf("CPU time until it is ready: %s; until it has looked at everything: %s", untilReady, untilIdle)
	readyWithin, memory := restartTargets(bindings)
	f.figures.add(t, title+": ready", readyWithin, seconds(ready.after))
	f.figures.add(t, title+": leads, the lease of the one before being free", "-", seconds(leads))
	f.figures.add(t, title+": CPU time of everything until it is ready", "-", seconds(time.Duration(untilReady.total()*float64(time.Second))))
	f.figures.add(t, title+": CPU time of the hub agent until it has looked at everything", "-",
		seconds(time.Duration(untilIdle[controlplane.HubAgent]*float64(time.Second))))
	f.figures.add(t, title+": objects read one by one", "<= 50", quantity{gets(read), ""})
	f.figures.add(t, title+": memory of the hub agent", memory, bytesOf(f.agent(t).Memory))
	f.figures.add(t, title+": memory of the hub's API server", "-", bytesOf(f.component(t, apiServer).Memory))
	assert.Zero(t, written.counted(), "what is at rest is not written")

	name := "decided"
	f.content(t, name)
	ready, _ = f.restart(t, runs)
	f.place(t, func(int) *placementv1beta1.PlacementPolicy { return allOf(few) }, external(), name)
	f.awaitPlacements(t, placementv1beta1.ConditionTypeScheduled, "0", name)
	f.figures.add(t, title+": a placement that is created as soon as it is ready is scheduled", "-", seconds(time.Since(ready.killed)))
}

// restartTargets are how soon a hub agent is to be ready, and how much memory it may take then.
func restartTargets(bindings int) (readyWithin, memory string) {
	if bindings > 20_000 {
		return "<= 20 s", fmt.Sprintf("<= %d MiB", bindings*12>>10) // 12 KiB a binding
	}
	return "<= 5 s", "<= 300 MiB"
}

// gets counts the objects that were read one by one; not questions whether a server is ready, nor the leases of all that lead.
func gets(read writes) float64 {
	calls := 0.0
	for what, n := range read.without("get ", "get leases") {
		if strings.HasPrefix(what, "get ") {
			calls += n
		}
	}
	return calls
}

// restarted is when the hub agent was killed, and after how long it was ready again.
type restarted struct {
	killed time.Time
	after  time.Duration
}

// restart kills the hub agent, and returns how many clusters of each run had been updated by then. The lease of the one that was
// killed is taken away: the next one would wait until it has run out, and how long that is, is a setting.
func (f *fleet) restart(t *testing.T, runs map[string]time.Time) (restarted, map[string]int) {
	t.Helper()
	ctx := within(t, patience)
	r := restarted{killed: time.Now()}
	require.NoError(t, f.Control.Do(ctx, control.Kill, controlplane.HubAgent))
	require.NoError(t, f.hub.Delete(ctx, f.lease()))
	done := map[string]int{}
	f.standing(t, runs, func(name string, n int) bool { done[name] = n; return false })
	require.NoError(t, f.Control.WaitReady(ctx, controlplane.HubAgent))
	r.after = time.Since(r.killed)
	return r, done
}

// lease is that of the hub agent which leads.
func (f *fleet) lease() *coordinationv1.Lease {
	return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet-system", Name: "hub-agent.fleetflow.io"}}
}

// awaitLeader waits until a hub agent leads, which its controllers need, and returns how long after a moment that was.
func (f *fleet) awaitLeader(t *testing.T, since time.Time) time.Duration {
	t.Helper()
	ctx := within(t, patience)
	for lease := f.lease(); f.hub.Get(ctx, client.ObjectKeyFromObject(lease), lease) != nil; lease = f.lease() {
		require.NoError(t, ctx.Err(), "waiting for a leader")
		pause(lookEvery)
	}
	return time.Since(since)
}

// standing names a run that is not over and of which no cluster has been updated, or that stands still for another reason.
func (f *fleet) standing(t *testing.T, runs map[string]time.Time, still func(name string, updated int) bool) string {
	t.Helper()
	left := 0
	one := ""
	for name := range runs {
		run := &placementv1beta1.ClusterStagedUpdateRun{}
		require.NoError(t, client.IgnoreNotFound(f.cache.Get(t.Context(), client.ObjectKey{Name: name}, run)))
		updated := 0
		for i := range run.Status.StagesStatus {
			for j := range run.Status.StagesStatus[i].Clusters {
				if meta.IsStatusConditionTrue(run.Status.StagesStatus[i].Clusters[j].Conditions, placementv1beta1.ConditionTypeSucceeded) {
					updated++
				}
			}
		}
		if (still(name, updated) || updated == 0) && !rules.IsRunOver(run) {
			left++
			one = name
		}
	}
	if left == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %d stand, %s for one", left, len(runs), one)
}
