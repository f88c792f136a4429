//go:build bench

package bench

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/workflowservice/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/test/bench/hollow"
	"github.com/fleetflow/fleetflow/test/promise"
)

const (
	// killedEvery is how often the bundled server is killed, and idleWrites for how long its writes are counted: longer than a step waits
	// for clusters, so that also what comes with the next step is among them.
	killedEvery = 20 * time.Second
	idleWrites  = 12 * time.Minute
	// maxIdleWrites is how many writes a second a rollout is to cost Temporal's database while nothing happens, and maxServer how much memory
	// the bundled server may take while 1,000 of them wait.
	maxIdleWrites = 0.17
	maxServer     = 350 << 20
)

// TestInFlight has 1,000 runs wait for a cluster that does not become available: what that costs Temporal's database, and what memory the
// bundled server takes when it has taken them over.
func TestInFlight(t *testing.T) {
	f := shared
	runs := scaled(1000, 10)
	f.grow(t, few)
	names := named("flight", runs)
	title := fmt.Sprintf("%d runs with a cluster in flight", runs)
	f.strategy(t, &placementv1beta1.ClusterStagedUpdateStrategy{
		ObjectMeta: metav1.ObjectMeta{Name: "flight"}, Spec: placementv1beta1.UpdateStrategySpec{Stages: []placementv1beta1.StageConfig{{Name: "all"}}},
	})
	members := f.members.Members()[:few]
	t.Cleanup(func() { assert.NoError(t, f.members.Behave(context.Background(), hollow.Behaviour{}, members...)) })
	require.NoError(t, f.members.Behave(t.Context(), hollow.Behaviour{Unavailable: true}, members...))
	f.content(t, names...)
	f.place(t, func(i int) *placementv1beta1.PlacementPolicy {
		return &placementv1beta1.PlacementPolicy{PlacementType: placementv1beta1.PickFixedPlacementType, ClusterNames: []string{members[i%few]}}
	}, external(), names...)
	f.awaitPlacements(t, placementv1beta1.ConditionTypeScheduled, "0", names...)
	f.awaitNoneOpen(t)
	started := f.startRuns(t, "run", "flight", names...)
	f.await(t, patience, "a cluster of each run to be in flight", func() string { return f.notInFlight(t, started) })
	f.awaitQuiet(t)

	before := f.persisted(t)
	pause(idleWrites) // that nothing happens cannot be waited for
	after := f.persisted(t)
	perSecond := after.minus(before)
	total := 0.0
	for what := range perSecond {
		perSecond[what] /= idleWrites.Seconds()
		total += perSecond[what]
	}
	t.Logf("writes of Temporal's database a second: %v", perSecond)
	f.figures.add(t, title+": writes of Temporal's database a second", fmt.Sprintf("<= %.0f", maxIdleWrites*float64(runs)), quantity{total, ""})

	server := build(t, "bundled-temporal")
	commandLine, _ := f.takeFleetAgentAway(t)
	one := f.pod(t, "one", server, commandLine)
	began := time.Now()
	f.use(t, one)
	f.awaitOpen(t, `ExecutionStatus = "Running" AND WorkflowType = "Stage"`, runs)
	f.figures.add(t, title+": all of them are with a bundled server that begins", "-", seconds(time.Since(began)))
	peak := int64(0)
	for range 60 { // a minute of their heartbeats
		peak = max(peak, resident(t, one.server.pid()))
		pause(time.Second)
	}
	f.figures.add(t, title+": memory of the bundled server", "<= 350 MiB", bytesOf(peak))
	assert.LessOrEqual(t, peak, int64(maxServer))
}

// notInFlight says how many runs have no cluster that has started.
func (f *fleet) notInFlight(t *testing.T, runs map[string]time.Time) string {
	t.Helper()
	left := 0
	for name := range runs {
		run := &placementv1beta1.ClusterStagedUpdateRun{}
		require.NoError(t, client.IgnoreNotFound(f.cache.Get(t.Context(), client.ObjectKey{Name: name}, run)))
		if len(run.Status.StagesStatus) == 0 || len(run.Status.StagesStatus[0].Clusters) == 0 ||
			!meta.IsStatusConditionTrue(run.Status.StagesStatus[0].Clusters[0].Conditions, placementv1beta1.ConditionTypeStarted) {
			left++
		}
	}
	if left == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %d have none", left, len(runs))
}

// awaitOpen waits until Temporal lists so many executions. It may not be up yet.
func (f *fleet) awaitOpen(t *testing.T, query string, n int) {
	t.Helper()
	ctx := within(t, patience)
	for {
		counted, err := f.Temporal.CountWorkflow(ctx, &workflowservice.CountWorkflowExecutionsRequest{Query: query})
		if err == nil && counted.GetCount() >= int64(n) {
			return
		}
		require.NoError(t, ctx.Err(), "waiting for %d open workflows: %v, %v", n, counted, err)
		pause(200 * time.Millisecond) // Temporal's list cannot be watched
	}
}

var persistenceLine = regexp.MustCompile(`^persistence_requests\{.*operation="([A-Za-z]+)".*\} ([0-9.e+]+)$`)

// reads begin the names of what changes nothing in Temporal's database.
var reads = []string{"Get", "List", "Read", "Watch", "Count", "Assert"}

// persisted counts what the fleet's Temporal has asked its database to write, by its own metrics.
func (f *fleet) persisted(t *testing.T) writes {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+f.Fleet.Address("temporal/metrics")+"/metrics", http.NoBody)
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	written := writes{}
	for lines := bufio.NewScanner(strings.NewReader(string(content))); lines.Scan(); {
		match := persistenceLine.FindStringSubmatch(lines.Text())
		if match == nil || slices.ContainsFunc(reads, func(read string) bool { return strings.HasPrefix(match[1], read) }) {
			continue
		}
		number, err := strconv.ParseFloat(match[2], 64)
		require.NoError(t, err)
		written[match[1]] += number
	}
	require.NotEmpty(t, written, "Temporal counts what it writes")
	return written
}

// repeated are placements on 100 clusters each, of which one run after the other is taken.
type repeated struct {
	*fleet
	prefix, title string
	names         []string
	// server is the program of the bundled one.
	server string
}

// repeat has 20 of them, and a first run of each behind it, which creates what later ones change.
func (f *fleet) repeat(t *testing.T, prefix string) *repeated {
	t.Helper()
	runs := scaled(20, 2)
	f.grow(t, few)
	r := &repeated{
		fleet: f, prefix: prefix, names: named(prefix, runs), server: build(t, "bundled-temporal"),
		title: fmt.Sprintf("%d runs of %d clusters, bundled Temporal", runs, few),
	}
	f.strategy(t, staged(prefix))
	f.content(t, r.names...)
	f.place(t, func(int) *placementv1beta1.PlacementPolicy { return allOf(few) }, external(), r.names...)
	f.awaitPlacements(t, placementv1beta1.ConditionTypeScheduled, "0", r.names...)
	f.awaitRuns(t, 20*time.Minute, f.startRuns(t, "first", prefix, r.names...))
	f.awaitNoneOpen(t)
	return r
}

// begin changes what is placed, and starts a run of each.
func (r *repeated) begin(t *testing.T, name string) map[string]time.Time {
	t.Helper()
	r.change(t, name, r.names...)
	r.awaitQuiet(t)
	return r.startRuns(t, name, r.prefix, r.names...)
}

// round takes a run of each, and returns how long that is until all are over.
func (r *repeated) round(t *testing.T, name string) time.Duration {
	t.Helper()
	stop := r.meter(t)
	runs := r.begin(t, name)
	began := time.Now()
	for _, created := range runs {
		if created.Before(began) {
			began = created
		}
	}
	r.awaitRuns(t, 20*time.Minute, runs)
	took := time.Since(began)
	done, _ := stop()
	perCluster := done.counted() / float64(len(r.names)*few)
	t.Logf("%s: all over after %s; writes per cluster: %.2f; load %s", name, seconds(took), perCluster, load())
	require.Greater(t, perCluster, 3.0, "each cluster is updated")
	return took
}

// TestBundled takes 20 runs of 100 clusters with an external Temporal, twice with the bundled one, and with the external one again: what else
// the machine does, and what grows with each round, weighs on both.
func TestBundled(t *testing.T) {
	r := shared.repeat(t, "bundled")
	outside := r.round(t, "external-1")
	r.awaitNoneOpen(t)
	commandLine, giveBack := r.takeFleetAgentAway(t)
	one := r.pod(t, "one", r.server, commandLine)
	one.awaitWorkers(t)
	inside := r.round(t, "bundled-1") + r.round(t, "bundled-2")
	memory := resident(t, one.server.pid())
	one.end(t, r.fleet)
	giveBack()
	outside += r.round(t, "external-2")
	r.figures.add(t, r.title+": time of all against an external one", "<= 1.2 x", quantity{inside.Seconds() / outside.Seconds(), "x"})
	r.figures.add(t, r.title+": memory of the server after them", "-", bytesOf(memory))
}

// TestBundledKilled kills the bundled server again and again while 20 runs of 100 clusters are under way, twice, between two rounds without
// that. Every write is judged.
func TestBundledKilled(t *testing.T) {
	r := shared.repeat(t, "killed")
	commandLine, _ := r.takeFleetAgentAway(t)
	one := r.pod(t, "one", r.server, commandLine)
	one.awaitWorkers(t)
	usual := r.round(t, "usual-1")
	record := r.recordWrites(t)
	disturbed := time.Duration(0)
	n := 0
	for _, name := range []string{"killed-1", "killed-2"} {
		kills := one.killServerEvery(killedEvery)
		took := r.round(t, name)
		times := kills()
		assert.GreaterOrEqual(t, times, int(took/killedEvery)-1, "it was killed while they went on")
		disturbed += took
		n += times
		one.awaitWorkers(t)
	}
	judged, breaches := record()
	usual += r.round(t, "usual-2")
	r.figures.add(t, r.title+": its server was killed, every "+killedEvery.String(), "-", count(n))
	r.figures.add(t, r.title+": time of all against without kills", "<= 1.5 x", quantity{disturbed.Seconds() / usual.Seconds(), "x"})
	r.figures.add(t, r.title+": breaches meanwhile", "0", count(len(breaches)))
	t.Logf("%d writes were judged", judged)
	assert.Empty(t, breaches)
}

// TestBundledLeader has the Pod go away whose agent leads, with its server, while 20 runs of 100 clusters are under way and another Pod
// stands by. Before that, the agent with an external Temporal is killed: it starts again, and its workflows are still there.
func TestBundledLeader(t *testing.T) {
	r := shared.repeat(t, "led")
	created := r.begin(t, "external")
	r.awaitMoving(t, created)
	outside := r.untilAllMove(t, created, func() { r.restart(t, nil) })
	r.awaitRuns(t, 20*time.Minute, created)
	r.awaitNoneOpen(t)

	commandLine, _ := r.takeFleetAgentAway(t)
	pods := []*pod{r.pod(t, "one", r.server, commandLine), nil}
	pods[0].awaitWorkers(t)
	var inside []time.Duration
	for i, name := range []string{"two", "three"} {
		pods[1] = r.pod(t, name, r.server, commandLine)
		created = r.begin(t, name)
		r.awaitMoving(t, created)
		inside = append(inside, r.untilAllMove(t, created, func() { pods[0].end(t, r.fleet) }))
		t.Logf("change %d: all move again after %s; load %s", i+1, seconds(inside[i]), load())
		r.awaitRuns(t, 20*time.Minute, created)
		pods[0] = pods[1]
	}
	worst := slices.Max(inside)
	r.figures.add(t, r.title+": another agent leads: all of them move again, the lease being free", "<= 15 s", seconds(worst))
	r.figures.add(t, r.title+": that against an agent that is killed with an external one", "-", quantity{worst.Seconds() / outside.Seconds(), "x"})
}

// awaitMoving waits until each run has updated a cluster.
func (f *fleet) awaitMoving(t *testing.T, runs map[string]time.Time) {
	t.Helper()
	f.await(t, patience, "every run to have updated a cluster", func() string {
		return f.standing(t, runs, func(string, int) bool { return false })
	})
}

// untilAllMove returns how long it takes from the end of an agent until each run has updated another cluster.
func (f *fleet) untilAllMove(t *testing.T, runs map[string]time.Time, end func()) time.Duration {
	t.Helper()
	done := map[string]int{}
	f.standing(t, runs, func(name string, n int) bool { done[name] = n; return false })
	ended := time.Now()
	end()
	f.await(t, patience, "every run to move again", func() string {
		return f.standing(t, runs, func(name string, n int) bool { return n <= done[name] })
	})
	return time.Since(ended)
}

// written is a write to the hub's store.
type written struct {
	revision uint64
	object   client.Object
	gone     bool
}

// recordWrites records what is written until what it returns is called, which judges that.
func (f *fleet) recordWrites(t *testing.T) func() (judged int, breaches []string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var mu sync.Mutex
	var all []written
	var watching sync.WaitGroup
	for _, list := range []client.ObjectList{
		&clusterv1beta1.MemberClusterList{}, &placementv1beta1.ClusterResourcePlacementList{}, &placementv1beta1.ClusterResourceBindingList{},
		&placementv1beta1.WorkList{}, &placementv1beta1.ClusterStagedUpdateRunList{},
	} {
		require.NoError(t, f.Hub.List(ctx, list))
		require.NoError(t, meta.EachListItem(list, func(item runtime.Object) error {
			all = append(all, written{object: item.(client.Object)})
			return nil
		}))
		news, err := f.Hub.Watch(ctx, list, &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.GetResourceVersion()}})
		require.NoError(t, err)
		watching.Go(func() {
			for event := range news.ResultChan() {
				object, is := event.Object.(client.Object)
				if !is || event.Type == watch.Error {
					t.Errorf("a watch was interrupted, so that not every write was seen: %v", event.Object)
					return
				}
				revision, _ := strconv.ParseUint(object.GetResourceVersion(), 10, 64) // the hub's are numbers
				mu.Lock()
				all = append(all, written{revision, object, event.Type == watch.Deleted})
				mu.Unlock()
			}
		})
	}
	return func() (int, []string) {
		pause(time.Second) // what was written last arrives
		cancel()
		watching.Wait()
		slices.SortStableFunc(all, func(a, b written) int { return cmp.Compare(a.revision, b.revision) })
		judge := promise.NewFleet()
		var breaches []string
		for _, w := range all {
			if err := judge.Take(w.object, w.gone); err != nil {
				breaches = append(breaches, fmt.Sprintf("revision %d, %T %s: %v", w.revision, w.object, w.object.GetName(), err))
			}
		}
		judged, _ := judge.Judged()
		return judged, breaches
	}
}
