package placement_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetflow/fleetflow/activities/placement"
	"github.com/fleetflow/fleetflow/activities/selection"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// paced are the activities of a process that has just started, on a hub that collects changes.
func (h *hub) paced(minimum, collection time.Duration) *placement.Activities {
	a := h.activities()
	a.Selector.Pace = selection.Pace{MinimumInterval: minimum, Collection: collection}
	return a
}

func (h *hub) detected(name string) string {
	return h.snapshots()[name].Annotations[placementv1beta1.NextResourceSnapshotCandidateDetectionTimeAnnotation]
}

// aged is a hub with a snapshot that was made some time ago.
func aged(t *testing.T, age time.Duration) *hub {
	t.Helper()
	h := newHub(t, crp(), namespace("app"), configMap("a", "1"))
	_, err := h.paced(time.Hour, time.Hour).SelectResources(t.Context(), ref)
	require.NoError(t, err)
	require.Equal(t, []string{"crp-0-snapshot*"}, h.names(), "the first snapshot waits for nothing")
	master := h.snapshots()["crp-0-snapshot"]
	master.CreationTimestamp = metav1.NewTime(now.Add(-age))
	require.NoError(t, h.Update(t.Context(), &master))
	return h
}

func TestASnapshotWaitsForItsTime(t *testing.T) {
	cases := map[string]struct {
		minimum, collection, age time.Duration
		wait                     time.Duration
	}{
		"no pace":                                   {0, 0, 0, 0},
		"changes are collected":                     {0, 15 * time.Second, time.Hour, 15 * time.Second},
		"the last snapshot is too young":            {30 * time.Second, 0, 10 * time.Second, 20 * time.Second},
		"the last snapshot is old enough":           {30 * time.Second, 0, time.Minute, 0},
		"both, of which the collection ends later":  {30 * time.Second, 15 * time.Second, 20 * time.Second, 15 * time.Second},
		"both, of which the interval ends later":    {30 * time.Second, 15 * time.Second, 10 * time.Second, 20 * time.Second},
		"a fraction of a second is a time like any": {0, 300 * time.Millisecond, time.Hour, 300 * time.Millisecond},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			h := aged(t, tc.age)
			h.change(configMap("a", "2"))
			result, err := h.paced(tc.minimum, tc.collection).SelectResources(t.Context(), ref)
			require.NoError(t, err)
			if tc.wait == 0 {
				assert.Equal(t, 1, result.Index)
				assert.Zero(t, result.WakeAt)
				return
			}
			assert.Equal(t, now.Add(tc.wait), result.WakeAt)
			assert.Equal(t, "crp-0-snapshot", result.Snapshot, "the placement goes on with what it has")
			assert.Equal(t, []string{"crp-0-snapshot*"}, h.names())
			verdict := h.verdict()
			assert.Equal(t, result.WakeAt, verdict.Due)
			assert.Empty(t, verdict.Inputs, "a restarted hub has to look again")

			h.clock.Step(tc.wait - time.Millisecond)
			h.writes = 0
			again, err := h.paced(tc.minimum, tc.collection).SelectResources(t.Context(), ref)
			require.NoError(t, err)
			assert.Equal(t, result.WakeAt, again.WakeAt, "neither a restart nor another change puts it off")
			assert.Zero(t, h.writes)
			h.clock.Step(time.Millisecond)
			last, err := h.paced(tc.minimum, tc.collection).SelectResources(t.Context(), ref)
			require.NoError(t, err)
			assert.Zero(t, last.WakeAt)
			assert.ElementsMatch(t, []string{"crp-0-snapshot", "crp-1-snapshot*"}, h.names())
			assert.Contains(t, h.content("crp-1-snapshot"), `"key":"2"`)
			assert.NotEmpty(t, h.verdict().Inputs)
			assert.Zero(t, h.verdict().Due)
			assert.Empty(t, h.detected("crp-1-snapshot"))
		})
	}
}

func TestAllChangesOfACollectionAreOneSnapshot(t *testing.T) {
	h := aged(t, time.Hour)
	for _, value := range []string{"2", "3", "4"} {
		h.change(configMap("a", value))
		_, err := h.paced(0, 15*time.Second).SelectResources(t.Context(), ref)
		require.NoError(t, err)
		h.clock.Step(5 * time.Second)
	}
	h.change(configMap("a", "5"))
	_, err := h.paced(0, 15*time.Second).SelectResources(t.Context(), ref)
	require.NoError(t, err)
	assert.ElementsMatch(t, []string{"crp-0-snapshot", "crp-1-snapshot*"}, h.names())
	assert.Contains(t, h.content("crp-1-snapshot"), `"key":"5"`)
}

func TestWhileASnapshotWaitsNobodyReadsWhatIsSelected(t *testing.T) {
	h := aged(t, time.Hour)
	h.change(configMap("a", "2"))
	a := h.paced(0, 15*time.Second)
	waiting, err := a.SelectResources(t.Context(), ref)
	require.NoError(t, err)
	h.dynamic.ClearActions()
	again, err := a.SelectResources(t.Context(), ref)
	require.NoError(t, err)
	assert.Equal(t, waiting, again)
	assert.Empty(t, h.dynamic.Actions())

	p := h.placement()
	p.Generation++
	require.NoError(t, h.Update(t.Context(), p))
	_, err = a.SelectResources(t.Context(), ref)
	require.NoError(t, err)
	assert.NotEmpty(t, h.dynamic.Actions(), "the selectors may be others")
}

func TestALargeSelectionLeavesTimeForRollouts(t *testing.T) {
	h := newHub(t, crp(), namespace("app"), configMap("a", large("a", "1")), configMap("b", large("b", "1")), configMap("c", large("c", "1")))
	_, err := h.activities().SelectResources(t.Context(), ref)
	require.NoError(t, err)
	require.Len(t, h.names(), 3)
	master := h.snapshots()["crp-0-snapshot"]
	master.CreationTimestamp = metav1.NewTime(now)
	require.NoError(t, h.Update(t.Context(), &master))
	h.change(configMap("a", large("a", "2")))
	result, err := h.activities().SelectResources(t.Context(), ref)
	require.NoError(t, err)
	assert.Equal(t, now.Add(800*time.Millisecond), result.WakeAt, "400 ms for each further part")
	assert.Empty(t, h.detected("crp-0-snapshot"), "nothing is collected, so nothing is noted")
	h.clock.Step(800 * time.Millisecond)
	result, err = h.activities().SelectResources(t.Context(), ref)
	require.NoError(t, err)
	assert.Equal(t, 1, result.Index)
}

func TestAChangeThatIsTakenBackIsForgotten(t *testing.T) {
	h := aged(t, time.Hour)
	step := func(value string) {
		h.change(configMap("a", value))
		_, err := h.paced(0, 15*time.Second).SelectResources(t.Context(), ref)
		require.NoError(t, err)
		h.clock.Step(time.Minute)
	}
	step("2")
	assert.NotEmpty(t, h.detected("crp-0-snapshot"))
	step("1")
	assert.Empty(t, h.detected("crp-0-snapshot"))
	assert.Zero(t, h.verdict().Due)
	step("3")
	assert.Equal(t, []string{"crp-0-snapshot*"}, h.names(), "the next change is collected from its own beginning")
}

func TestAnUpdateRunTakesTheLatestContentWhateverThePace(t *testing.T) {
	h := aged(t, 0)
	h.change(configMap("a", "2"))
	a := h.paced(time.Hour, time.Hour)
	waiting, err := a.SelectResources(t.Context(), ref)
	require.NoError(t, err)
	require.NotZero(t, waiting.WakeAt)
	result, err := a.Selector.Select(t.Context(), h.placement())
	require.NoError(t, err)
	assert.Equal(t, 1, result.Index)
	assert.Contains(t, h.content("crp-1-snapshot"), `"key":"2"`)
	assert.Zero(t, h.verdict().Due, "nothing is left to wait for")
}

func TestTheLatestLabelIsRepairedWhileASnapshotWaits(t *testing.T) {
	h := aged(t, 0)
	master := h.snapshots()["crp-0-snapshot"]
	delete(master.Labels, placementv1beta1.IsLatestSnapshotLabel)
	require.NoError(t, h.Update(t.Context(), &master))
	h.change(configMap("a", "2"))
	_, err := h.paced(time.Hour, 0).SelectResources(t.Context(), ref)
	require.NoError(t, err)
	assert.Equal(t, []string{"crp-0-snapshot*"}, h.names())
}

// ofClusters gives the placement a status of so many clusters.
func (h *hub) ofClusters(names ...string) {
	p := h.placement()
	for _, name := range names {
		p.Status.PerClusterPlacementStatuses = append(p.Status.PerClusterPlacementStatuses, placementv1beta1.PerClusterPlacementStatus{ClusterName: name})
	}
	require.NoError(h.t, h.Update(h.t.Context(), p))
}

func TestWhatTakesManyBytesToWriteWaits(t *testing.T) {
	cases := map[string]struct {
		pace     selection.Pace
		clusters []string
		external bool
		wait     time.Duration
		excess   string
	}{
		"no bound": {pace: selection.Pace{}, clusters: []string{"a", "b"}},
		"a snapshot alone": {
			pace: selection.Pace{BytesPerSecond: 100_000}, wait: 5 * time.Second,
			excess: "for 0 cluster(s) are 489.8 KiB to write; the hub agent's flag --resource-snapshot-bytes-per-second lets a placement have 97.7 KiB a second, so they follow the latest snapshot after 5s",
		},
		"each cluster has a Work": {
			pace: selection.Pace{BytesPerSecond: 100_000}, clusters: []string{"a", "b"}, wait: 15 * time.Second,
			excess: "a snapshot of 489.8 KiB and Works of it for 2 cluster(s) are 1.4 MiB to write",
		},
		"a slot without a cluster has none":          {pace: selection.Pace{BytesPerSecond: 100_000}, clusters: []string{""}, wait: 5 * time.Second, excess: "for 0 cluster(s)"},
		"Works are the matter of runs":               {pace: selection.Pace{BytesPerSecond: 100_000}, clusters: []string{"a", "b"}, external: true, wait: 5 * time.Second, excess: "for 0 cluster(s)"},
		"the rest of the pace asks for more":         {pace: selection.Pace{BytesPerSecond: 100_000, MinimumInterval: time.Minute}, wait: time.Minute},
		"the time since the last snapshot is enough": {pace: selection.Pace{BytesPerSecond: 10_000_000}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			h := aged(t, 0)
			h.ofClusters(tc.clusters...)
			if tc.external {
				p := h.placement()
				p.Spec.Strategy = &placementv1beta1.RolloutStrategy{Type: placementv1beta1.ExternalRolloutStrategyType}
				require.NoError(t, h.Update(t.Context(), p))
			}
			h.clock.Step(500 * time.Millisecond) // of which a fast enough pace has made use
			h.change(configMap("a", strings.Repeat("x", 501_400)))
			process := func() *placement.Activities {
				a := h.activities()
				a.Selector.Pace = tc.pace
				return a
			}
			result, err := process().SelectResources(t.Context(), ref)
			require.NoError(t, err)
			if tc.wait == 0 {
				assert.Zero(t, result.WakeAt)
				assert.Equal(t, 1, result.Index)
				return
			}
			assert.WithinDuration(t, now.Add(tc.wait), result.WakeAt, 100*time.Millisecond)
			assert.Contains(t, h.verdict().Excess, tc.excess)
			assert.Equal(t, tc.excess == "", h.verdict().Excess == "")

			h.writes = 0
			h.change(configMap("a", strings.Repeat("y", 501_400)))
			again, err := process().SelectResources(t.Context(), ref)
			require.NoError(t, err)
			assert.Equal(t, result.WakeAt, again.WakeAt, "neither a restart nor another change puts it off")
			assert.Zero(t, h.writes)

			h.clock.SetTime(result.WakeAt)
			last, err := process().SelectResources(t.Context(), ref)
			require.NoError(t, err)
			assert.Equal(t, 1, last.Index)
			assert.Empty(t, h.verdict().Excess)
		})
	}
}
