//go:build bench

package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

const (
	// floodSize is the size of the object that a flooding tenant changes all the time, floodEvery how often, and
	// floodLasts for how long.
	floodSize  = 800_000
	floodEvery = 300 * time.Millisecond
	floodLasts = 90 * time.Second
	// calmTries is how many placements of others are timed, before and meanwhile.
	calmTries = 5
)

// giantObjects is how many objects a selection has that is above the ceiling, and stolenWorks how many Works a member has
// whose token was stolen.
var giantObjects, stolenWorks = scaled(150_000, 25_000), scaled(200, 40)

// TestFloodingTenant changes a large object that is placed on all clusters again and again, and looks at what others notice.
func TestFloodingTenant(t *testing.T) {
	f := shared
	size := scaled(few, 20)
	f.grow(t, few)
	before := f.timeOthers(t, "before-flood", calmTries)
	f.content(t, "flood")
	f.place(t, func(int) *placementv1beta1.PlacementPolicy { return allOf(few) }, rolling("100%"), "flood")
	f.awaitPlacements(t, placementv1beta1.ConditionTypeAvailable, "0", "flood")

	memory := f.peakMemory(t)
	stored := f.storedBytes(t)
	stop := f.meter(t)
	cpu := f.cpu(t)
	flood, end := context.WithTimeout(t.Context(), floodLasts)
	defer end()
	var changes int
	var group sync.WaitGroup
	group.Go(func() {
		for ; flood.Err() == nil; changes++ {
			big := configMap("flood", strings.Repeat(string(rune('a'+changes%26)), floodSize))
			_ = f.hub.Update(flood, big) // one that fails is followed by the next
			pause(floodEvery)
		}
	})
	meanwhile := f.timeOthers(t, "in-flood", calmTries)
	group.Wait()
	done, _ := stop()
	title := fmt.Sprintf("a tenant changes %d kB on %d clusters %d times in %s", floodSize/1000, size, changes, floodLasts)
	f.figures.add(t, title+": another placement, to available", "as before: "+seconds(before).String(), seconds(meanwhile))
	f.figures.add(t, title+": writes", "-", quantity{done.counted(), ""})
	f.figures.add(t, title+": growth of etcd", "-", bytesOf(f.storedBytes(t)-stored))
	f.figures.add(t, title+": memory of the hub agent", "<= 1024 MiB", bytesOf(memory()))
	t.Logf("CPU: %s", f.cpuSince(t, cpu))
	var placed placementv1beta1.ClusterResourcePlacement
	require.NoError(t, f.hub.Get(t.Context(), client.ObjectKey{Name: "flood"}, &placed))
	if held := meta.FindStatusCondition(placed.Status.Conditions, placementv1beta1.ConditionTypeChangesHeld); held != nil {
		t.Logf("the flooding placement says: %s", held.Message)
	}
}

// TestStolenMemberToken fills the statuses of all Works of one member, and looks at the hub agent's memory.
func TestStolenMemberToken(t *testing.T) {
	f := shared
	f.grow(t, few)
	member := f.members.Members()[0]
	names := named("stolen", stolenWorks)
	f.content(t, names...)
	only := func(int) *placementv1beta1.PlacementPolicy {
		return &placementv1beta1.PlacementPolicy{PlacementType: placementv1beta1.PickFixedPlacementType, ClusterNames: []string{member}}
	}
	f.place(t, only, rolling("100%"), names...)
	f.awaitPlacements(t, placementv1beta1.ConditionTypeAvailable, "0", names...)
	before := f.timeOthers(t, "before-theft", calmTries)
	rest := f.agent(t).Memory
	memory := f.peakMemory(t)

	var works placementv1beta1.WorkList
	require.NoError(t, f.hub.List(t.Context(), &works, client.InNamespace(placementv1beta1.MemberNamespace(member))))
	keys := make([]string, len(works.Items))
	for i := range works.Items {
		keys[i] = works.Items[i].Name
	}
	const rewrites = 3
	var group sync.WaitGroup
	group.Go(func() {
		for round := range rewrites {
			status, err := json.Marshal(map[string]any{"status": fillingStatus(round)})
			if err != nil {
				panic(err) // of strings and numbers
			}
			each(t, keys, func(ctx context.Context, _ int, name string) error {
				work := &placementv1beta1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: placementv1beta1.MemberNamespace(member), Name: name}}
				_ = f.hub.Status().Patch(ctx, work, client.RawPatch(types.MergePatchType, status)) // one that the API server does not get to in time is followed by the next
				return nil
			})
		}
	})
	meanwhile := f.timeOthers(t, "in-theft", calmTries)
	group.Wait()
	title := fmt.Sprintf("a member's token writes 1.3 MB into each of %d Works, %d times", len(keys), rewrites)
	f.figures.add(t, title+": another placement, to available", "as before: "+seconds(before).String(), seconds(meanwhile))
	f.figures.add(t, title+": memory of the hub agent", "<= 1024 MiB, before: "+bytesOf(rest).String(), bytesOf(memory()))
}

// fillingStatus is a status as large as the API server takes it: half of it in one value, half in many small entries.
func fillingStatus(round int) placementv1beta1.WorkStatus {
	now := metav1.Now()
	status := placementv1beta1.WorkStatus{ManifestConditions: []placementv1beta1.ManifestCondition{{
		DriftDetails: &placementv1beta1.DriftDetails{
			ObservationTime: now, FirstDriftedObservedTime: now,
			ObservedDrifts: []placementv1beta1.PatchDetail{{Path: "/data", ValueInMember: strings.Repeat(fmt.Sprint(round%10), 600_000)}},
		},
	}}}
	for i := range 3_500 {
		status.ManifestConditions = append(status.ManifestConditions, placementv1beta1.ManifestCondition{
			Identifier: placementv1beta1.WorkResourceIdentifier{Ordinal: i},
			Conditions: []metav1.Condition{{
				Type: placementv1beta1.ConditionTypeApplied, Status: metav1.ConditionFalse, Reason: "Flood", Message: fmt.Sprint(round), LastTransitionTime: now,
			}},
		})
	}
	return status
}

// TestGiantSelection selects far more objects than one placement may, and looks at the hub agent's memory and at what others
// notice.
func TestGiantSelection(t *testing.T) {
	f := shared
	name := "giant"
	f.grow(t, few)
	f.content(t, name)
	f.place(t, func(int) *placementv1beta1.PlacementPolicy { return allOf(few) }, rolling("100%"), name)
	f.awaitPlacements(t, placementv1beta1.ConditionTypeAvailable, "0", name)
	before := f.timeOthers(t, "before-giant", calmTries)
	rest := f.agent(t).Memory
	memory := f.peakMemory(t)
	objects := make([]string, giantObjects)
	for i := range objects {
		objects[i] = fmt.Sprintf("object-%06d", i)
	}
	began := time.Now()
	var group sync.WaitGroup
	group.Go(func() {
		each(t, objects, func(ctx context.Context, i int, object string) error {
			return f.hub.Create(ctx, &corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: object}, Data: map[string]string{"key": strings.Repeat("x", 1000)},
			})
		})
	})
	meanwhile := f.timeOthers(t, "in-giant", calmTries)
	group.Wait()
	t.Logf("%d objects were there after %s", giantObjects, seconds(time.Since(began)))
	f.await(t, patience, "the placement to say that it selects too much", func() string {
		var placed placementv1beta1.ClusterResourcePlacement
		if err := f.cache.Get(t.Context(), client.ObjectKey{Name: name}, &placed); err != nil {
			return err.Error()
		}
		scheduled := meta.FindStatusCondition(placed.Status.Conditions, "ClusterResourcePlacementScheduled")
		if scheduled == nil || scheduled.Reason != placementv1beta1.ReasonSelectionTooLarge {
			return fmt.Sprintf("%+v", scheduled)
		}
		t.Logf("the placement says: %s", scheduled.Message)
		return ""
	})
	after := f.timeOthers(t, "after-giant", calmTries)
	title := fmt.Sprintf("a selection of %d objects", giantObjects)
	f.figures.add(t, title+": another placement, to available, while they are created", "as before: "+seconds(before).String(), seconds(meanwhile))
	f.figures.add(t, title+": the same once they are there", "as before: "+seconds(before).String(), seconds(after))
	f.figures.add(t, title+": memory of the hub agent", "<= 1024 MiB, before: "+bytesOf(rest).String(), bytesOf(memory()))
}

// timeOthers is how long it takes from the creation of a placement to all of its clusters being available: the median.
func (f *fleet) timeOthers(t *testing.T, prefix string, tries int) time.Duration {
	t.Helper()
	took := make([]time.Duration, 0, tries)
	for _, name := range named(prefix, tries) {
		f.content(t, name)
		began := time.Now()
		f.place(t, func(int) *placementv1beta1.PlacementPolicy { return allOf(few) }, rolling("100%"), name)
		f.awaitPlacements(t, placementv1beta1.ConditionTypeAvailable, "0", name)
		took = append(took, time.Since(began))
	}
	t.Logf("%s: %v", prefix, took)
	return percentile(took, 0.5)
}

// storedBytes is how large the hub's store is, as its API server tells.
func (f *fleet) storedBytes(t *testing.T) int64 {
	t.Helper()
	answer, err := f.raw.Get().AbsPath("/metrics").DoRaw(t.Context())
	require.NoError(t, err)
	for line := range strings.Lines(string(answer)) {
		var bytes float64
		if strings.HasPrefix(line, "apiserver_storage_size_bytes{") {
			_, err := fmt.Sscan(line[strings.LastIndexByte(line, ' ')+1:], &bytes)
			require.NoError(t, err)
			return int64(bytes)
		}
	}
	require.Fail(t, "the API server does not tell the size of its store")
	return 0
}
