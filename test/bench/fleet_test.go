//go:build bench

package bench

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/test/bench/hollow"
	"github.com/fleetflow/fleetflow/test/devfleet/access"
	"github.com/fleetflow/fleetflow/test/devfleet/controlplane"
	"github.com/fleetflow/fleetflow/test/devfleet/state"
)

// fleet is a hub with hollow members.
type fleet struct {
	*access.Access
	// hub writes without a limit of its own, raw asks for metrics.
	hub     client.WithWatch
	raw     rest.Interface
	cache   cache.Cache
	members *hollow.Fleet
	figures *figures

	mu sync.Mutex
	// ended is when the end of each run was seen.
	ended map[string]time.Time
	news  chan struct{}
}

// open connects to a running fleet without members.
func open(ctx context.Context, dir string) (*fleet, error) {
	a, err := access.Open(dir)
	if err != nil {
		return nil, err
	}
	if a.Fleet.Members != 0 {
		return nil, fmt.Errorf("the fleet in %s has %d members; a fleet for measurements is started with --without-members", dir, a.Fleet.Members)
	}
	config, err := controlplane.RESTConfig(a.Fleet, state.Hub)
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	config.Burst = -1
	f := &fleet{Access: a, figures: &figures{}, ended: map[string]time.Time{}, news: make(chan struct{}, 1)}
	scheme := controlplane.Scheme()
	if f.hub, err = client.NewWithWatch(config, client.Options{Scheme: scheme}); err != nil {
		return nil, err
	}
	typed, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	f.raw = typed.RESTClient()
	if f.cache, err = cache.New(config, cache.Options{Scheme: scheme, DefaultTransform: cache.TransformStripManagedFields()}); err != nil {
		return nil, err
	}
	if err := f.watch(ctx); err != nil {
		return nil, err
	}
	if f.members, err = hollow.New(config, hollow.Options{Labels: labelsOf}); err != nil {
		return nil, err
	}
	return f, f.members.Start(ctx)
}

// watch follows runs and placements.
func (f *fleet) watch(ctx context.Context) error {
	for _, object := range []client.Object{&placementv1beta1.ClusterStagedUpdateRun{}, &placementv1beta1.ClusterResourcePlacement{}, &fleetflowv1alpha1.ClusterRehearsal{}} {
		informer, err := f.cache.GetInformer(ctx, object, cache.BlockUntilSynced(false))
		if err != nil {
			return err
		}
		if _, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc: f.see, UpdateFunc: func(_, now any) { f.see(now) }, DeleteFunc: f.see,
		}); err != nil {
			return err
		}
	}
	go func() { _ = f.cache.Start(ctx) }() // it ends with the context
	if !f.cache.WaitForCacheSync(ctx) {
		return context.Cause(ctx)
	}
	return nil
}

func (f *fleet) see(object any) {
	f.mu.Lock()
	if run, ok := object.(*placementv1beta1.ClusterStagedUpdateRun); ok {
		if _, known := f.ended[run.Name]; !known && meta.FindStatusCondition(run.Status.Conditions, placementv1beta1.ConditionTypeSucceeded) != nil {
			f.ended[run.Name] = time.Now()
		}
	}
	f.mu.Unlock()
	select {
	case f.news <- struct{}{}:
	default:
	}
}

// pause lets time pass: measurements take some.
func pause(d time.Duration) { <-time.After(d) }

// lookEvery bounds how often what is waited for is looked at.
const lookEvery = 20 * time.Millisecond

// await waits until missing, which reads the cache, returns "".
func (f *fleet) await(t *testing.T, limit time.Duration, what string, missing func() string) {
	t.Helper()
	ctx := within(t, limit)
	last := ""
	for {
		if last = missing(); last == "" {
			return
		}
		select {
		case <-f.news:
			pause(lookEvery) // what comes together is looked at together
		case <-time.After(time.Second): // what is not watched
		case <-ctx.Done():
			require.Fail(t, "waited in vain", "%s for %s: %s", limit, what, last)
		}
	}
}

// shareEnv says by how much to divide the numbers of clusters and runs, to see quickly that everything works; the
// figures are then none to compare.
const shareEnv = "FLEETFLOW_BENCH_SHARE"

// scaled is a number as large as the measurement is to be, and at least as large as least.
func scaled(n, least int) int {
	share, err := strconv.Atoi(os.Getenv(shareEnv))
	if err != nil || share < 1 {
		return n
	}
	return max(n/share, least)
}

// fewest, few, several, many and most are the sizes of the sets of clusters that placements pick.
var fewest, few, several, many, most = 10, 100, scaled(500, 50), scaled(1000, 100), scaled(5000, 100)

const (
	stageLabel  = "bench.fleetflow/stage"
	withinLabel = "bench.fleetflow/within-"
)

// labelsOf puts 20 % of the members into the first stage, 30 % into the second and 50 % into the third, in any set.
func labelsOf(i int) map[string]string {
	labels := map[string]string{stageLabel: stageOf(i)}
	for _, size := range []int{fewest, few, several, many, most} {
		if i < size {
			labels[withinLabel+fmt.Sprint(size)] = "true"
		}
	}
	return labels
}

var stages = []string{"first", "second", "third"}

func stageOf(i int) string {
	switch {
	case i%10 < 2:
		return stages[0]
	case i%10 < 5:
		return stages[1]
	}
	return stages[2]
}

// grow makes sure that there are at least n members.
func (f *fleet) grow(t *testing.T, n int) {
	t.Helper()
	if len(f.members.Members()) >= n {
		return
	}
	began := time.Now()
	require.NoError(t, f.members.Grow(within(t, 20*time.Minute), n))
	t.Logf("%d members have joined after %s", n, time.Since(began).Round(100*time.Millisecond))
}

// percentile of durations, by the nearest rank.
func percentile(all []time.Duration, p float64) time.Duration {
	sorted := slices.Sorted(slices.Values(all))
	rank := int(float64(len(sorted))*p + 0.999999)
	return sorted[min(max(rank, 1), len(sorted))-1]
}
