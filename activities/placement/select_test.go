package placement_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/snapshot"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// snapshots are the hub's resource snapshots as "name latest part-of-text", by name.
func (h *hub) snapshots() map[string]placementv1beta1.ClusterResourceSnapshot {
	h.t.Helper()
	list := &placementv1beta1.ClusterResourceSnapshotList{}
	require.NoError(h.t, h.List(h.t.Context(), list))
	byName := map[string]placementv1beta1.ClusterResourceSnapshot{}
	for _, item := range list.Items {
		byName[item.Name] = item
	}
	return byName
}

func (h *hub) names() []string {
	var names []string
	for name, item := range h.snapshots() {
		if item.Labels[placementv1beta1.IsLatestSnapshotLabel] == "true" {
			name += "*"
		}
		names = append(names, name)
	}
	return names
}

func (h *hub) verdict() snapshot.Verdict {
	h.t.Helper()
	verdict, err := snapshot.DecodeVerdict(h.placement().Annotations[placementv1beta1.SelectionVerdictAnnotation])
	require.NoError(h.t, err)
	return verdict
}

func (h *hub) content(name string) string {
	var all strings.Builder
	item := h.snapshots()[name]
	for _, resource := range item.Spec.SelectedResources {
		all.Write(resource.Raw)
	}
	return all.String()
}

func snapshotNamed(name, latest string) *placementv1beta1.ClusterResourceSnapshot {
	return &placementv1beta1.ClusterResourceSnapshot{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
		placementv1beta1.ParentPlacementLabel: "crp", placementv1beta1.IsLatestSnapshotLabel: latest,
	}}}
}

func TestSnapshotsFromBeforeThePlacementGotItsUIDAreAdopted(t *testing.T) {
	earlier := snapshotNamed("crp-0-snapshot", "true")
	earlier.UID = "a-snapshot"
	earlier.Labels[placementv1beta1.ResourceIndexLabel] = "0"
	earlier.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: placementv1beta1.GroupVersion.String(), Kind: "ClusterResourcePlacement", Name: "crp", UID: "earlier", Controller: new(true),
	}}
	h := newHub(t, crp(), namespace("app"), configMap("a", "1"), earlier)
	result, err := h.activities().SelectResources(t.Context(), ref)
	require.NoError(t, err)
	assert.True(t, result.Created)
	assert.ElementsMatch(t, []string{"crp-0-snapshot", "crp-1-snapshot*"}, h.names(), "what is selected is something else")
	assert.Contains(t, h.content("crp-1-snapshot"), `"key":"1"`)
	adopted := &placementv1beta1.ClusterResourceSnapshot{}
	require.NoError(t, h.Get(t.Context(), client.ObjectKey{Name: "crp-0-snapshot"}, adopted))
	assert.Equal(t, []metav1.OwnerReference{rules.PlacementOwner(crp())}, adopted.OwnerReferences)
}

func TestASnapshotOfAnotherAuthorIsRecognisedByItsContent(t *testing.T) {
	h := newHub(t, crp(), namespace("app"), configMap("a", "1"))
	_, err := h.activities().SelectResources(t.Context(), ref)
	require.NoError(t, err)
	made := &placementv1beta1.ClusterResourceSnapshot{}
	require.NoError(t, h.Get(t.Context(), client.ObjectKey{Name: "crp-0-snapshot"}, made))
	content := made.Annotations[placementv1beta1.ResourceGroupHashAnnotation]
	made.Annotations[placementv1beta1.ResourceGroupHashAnnotation] = "another hash"
	slices.Reverse(made.Spec.SelectedResources)
	made.OwnerReferences[0].UID = "before"
	require.NoError(t, h.Update(t.Context(), made))
	placement := crp()
	require.NoError(t, h.Get(t.Context(), client.ObjectKeyFromObject(placement), placement))
	placement.Annotations = nil
	require.NoError(t, h.Update(t.Context(), placement))

	for range 2 {
		result, err := h.activities().SelectResources(t.Context(), ref)
		require.NoError(t, err)
		assert.False(t, result.Created)
		assert.Equal(t, []string{"crp-0-snapshot*"}, h.names())
		assert.Equal(t, content, h.snapshots()["crp-0-snapshot"].Annotations[snapshot.PartOfAnnotation], "it is read once")
	}
	h.change(configMap("a", "2"))
	_, err = h.activities().SelectResources(t.Context(), ref)
	require.NoError(t, err)
	assert.ElementsMatch(t, []string{"crp-0-snapshot", "crp-1-snapshot*"}, h.names())
}

// By a hash, users who may read a placement but not a Secret could check guesses of what is in the Secret.
func TestNoHashOfContentIsOnThePlacementOrInAHistory(t *testing.T) {
	h := newHub(t, crp(), namespace("app"), configMap("a", "1"))
	result, err := h.activities().SelectResources(t.Context(), ref)
	require.NoError(t, err)
	hash := h.snapshots()["crp-0-snapshot"].Annotations[placementv1beta1.ResourceGroupHashAnnotation]
	require.Len(t, hash, 64)
	assert.NotContains(t, fmt.Sprint(h.placement().Annotations), hash)
	recorded, err := json.Marshal(result)
	require.NoError(t, err)
	assert.NotContains(t, string(recorded), hash)
}

func TestSelectFollowsChanges(t *testing.T) {
	h := newHub(t, crp(), namespace("app"), configMap("a", "1"))

	result, err := h.activities().SelectResources(t.Context(), ref)
	require.NoError(t, err)
	assert.Equal(t, "crp-0-snapshot", result.Snapshot)
	assert.True(t, result.Created)
	assert.Equal(t, []string{"crp-0-snapshot*"}, h.names())
	assert.Contains(t, h.content("crp-0-snapshot"), `"key":"1"`)
	first := h.verdict()
	assert.Equal(t, snapshot.Verdict{Generation: 1, Snapshot: "crp-0-snapshot", Index: 0, Inputs: first.Inputs, Selectors: first.Selectors}, first)

	h.writes = 0
	again, err := h.activities().SelectResources(t.Context(), ref)
	require.NoError(t, err)
	assert.False(t, again.Created)
	assert.Zero(t, h.writes, "nothing has changed, nothing is written")

	h.change(configMap("a", "2"))
	result, err = h.activities().SelectResources(t.Context(), ref)
	require.NoError(t, err)
	assert.Equal(t, 1, result.Index)
	assert.ElementsMatch(t, []string{"crp-0-snapshot", "crp-1-snapshot*"}, h.names())
	assert.Contains(t, h.content("crp-1-snapshot"), `"key":"2"`)
	assert.Equal(t, "false", h.snapshots()["crp-0-snapshot"].Labels[placementv1beta1.IsLatestSnapshotLabel])
}

func TestSelectKnowsWhenThePlacementIsGone(t *testing.T) {
	at := metav1.NewTime(now)
	cases := map[string]*placementv1beta1.ClusterResourcePlacement{
		"another one of the same name": crp(func(p *placementv1beta1.ClusterResourcePlacement) { p.UID = "other" }),
		"being deleted": crp(func(p *placementv1beta1.ClusterResourcePlacement) {
			p.DeletionTimestamp = &at
			p.Finalizers = []string{"f"}
		}),
		"no such placement": crp(func(p *placementv1beta1.ClusterResourcePlacement) { p.Name = "other" }),
	}
	for name, p := range cases {
		t.Run(name, func(t *testing.T) {
			h := newHub(t, p)
			selected, err := h.activities().SelectResources(t.Context(), ref)
			require.NoError(t, err)
			assert.True(t, selected.Gone)
			scheduled, err := h.activities().ScheduleClusters(t.Context(), ref)
			require.NoError(t, err)
			assert.True(t, scheduled.Gone)
			assert.Zero(t, h.writes)
		})
	}
}

func TestLoadPlacement(t *testing.T) {
	h := newHub(t, crp(func(p *placementv1beta1.ClusterResourcePlacement) {
		p.Spec.Strategy = &placementv1beta1.RolloutStrategy{Type: placementv1beta1.ExternalRolloutStrategyType}
	}))
	state, err := h.activities().LoadPlacement(t.Context(), ref)
	require.NoError(t, err)
	assert.True(t, state.Found && state.External && !state.Deleting)
	assert.Equal(t, "crp-uid", state.UID)
	state, err = h.activities().LoadPlacement(t.Context(), wf.Ref{Name: "none"})
	require.NoError(t, err)
	assert.False(t, state.Found)
}

func TestAClusterThatIsPreparedForAnEvictionIsLookedAtWithoutOne(t *testing.T) {
	hook := placementv1beta1.ClusterHook{FinalizersHandler: []string{"example.com/drain"}}
	placement := crp(func(p *placementv1beta1.ClusterResourcePlacement) {
		p.Spec.Strategy = &placementv1beta1.RolloutStrategy{
			Type: placementv1beta1.ExternalRolloutStrategyType, Lifecycle: &placementv1beta1.ClusterLifecycle{PreRemove: &placementv1beta1.ClusterDrainHook{ClusterHook: hook}},
		}
	})
	binding := &placementv1beta1.ClusterResourceBinding{ObjectMeta: metav1.ObjectMeta{Name: "crp-a", Labels: map[string]string{
		placementv1beta1.ParentPlacementLabel: placement.Name, placementv1beta1.LifecycleStateLabel: string(placementv1beta1.LifecyclePreparingRemove),
	}}, Spec: placementv1beta1.ResourceBindingSpec{State: placementv1beta1.BindingStateBound}}
	state, err := newHub(t, placement, binding).activities().LoadPlacement(t.Context(), ref)
	require.NoError(t, err)
	assert.True(t, state.Evictions)
	delete(binding.Labels, placementv1beta1.LifecycleStateLabel)
	state, err = newHub(t, placement, binding).activities().LoadPlacement(t.Context(), ref)
	require.NoError(t, err)
	assert.False(t, state.Evictions)
}

func TestSelectorsOnlyAUserCanMend(t *testing.T) {
	selecting := func(terms ...placementv1beta1.ResourceSelectorTerm) *placementv1beta1.ClusterResourcePlacement {
		return crp(func(p *placementv1beta1.ClusterResourcePlacement) { p.Spec.ResourceSelectors = terms })
	}
	cases := map[string]struct {
		placement *placementv1beta1.ClusterResourcePlacement
		want      string
	}{
		"a kind that is never placed": {selecting(placementv1beta1.ResourceSelectorTerm{Version: "v1", Kind: "Pod"}), "never placed"},
		"an unknown kind":             {selecting(placementv1beta1.ResourceSelectorTerm{Group: "g", Version: "v1", Kind: "K"}), "does not serve"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			h := newHub(t, tc.placement, namespace("app"), configMap("a", "1"))
			result, err := h.activities().SelectResources(t.Context(), ref)
			require.NoError(t, err)
			assert.True(t, result.Invalid)
			assert.Empty(t, h.names(), "nothing is stored")
			assert.Contains(t, h.verdict().Error, tc.want)
		})
	}
}

func TestInvalidSelectorsKeepTheLatestSnapshot(t *testing.T) {
	h := newHub(t, crp(), namespace("app"))
	_, err := h.activities().SelectResources(t.Context(), ref)
	require.NoError(t, err)
	p := h.placement()
	p.Spec.ResourceSelectors[0].Name = "default"
	p.Generation = 2
	require.NoError(t, h.Update(t.Context(), p))
	result, err := h.activities().SelectResources(t.Context(), ref)
	require.NoError(t, err)
	assert.True(t, result.Invalid)
	assert.Equal(t, "crp-0-snapshot", result.Snapshot)
	assert.Equal(t, []string{"crp-0-snapshot*"}, h.names())
	assert.Contains(t, h.verdict().Error, "reserved")
}

func TestWhatDoesNotExistIsAnEmptySelection(t *testing.T) {
	h := newHub(t, crp())
	result, err := h.activities().SelectResources(t.Context(), ref)
	require.NoError(t, err)
	assert.Equal(t, "crp-0-snapshot", result.Snapshot)
	assert.False(t, result.Invalid)
	assert.Empty(t, h.snapshots()["crp-0-snapshot"].Spec.SelectedResources)
	assert.Equal(t, `resourceSelectors[0] selects Namespace (v1) "app", which does not exist on the hub; it is placed as soon as it does`, h.verdict().Note)

	_, err = h.dynamic.Resource(corev1.SchemeGroupVersion.WithResource("namespaces")).Create(t.Context(), unstructuredOf(t, namespace("app")), metav1.CreateOptions{})
	require.NoError(t, err)
	result, err = h.activities().SelectResources(t.Context(), ref)
	require.NoError(t, err)
	assert.Equal(t, 1, result.Index)
	assert.Empty(t, h.verdict().Note)
}

func TestOtherSelectorsNeedTheNamespaceThatTheySelectFrom(t *testing.T) {
	h := newHub(t, crp(func(p *placementv1beta1.ClusterResourcePlacement) {
		p.Spec.ResourceSelectors[0].SelectionScope = placementv1beta1.NamespaceWithResourceSelectors
		p.Spec.ResourceSelectors = append(p.Spec.ResourceSelectors, placementv1beta1.ResourceSelectorTerm{Version: "v1", Kind: "ConfigMap"})
	}), configMap("a", "1"))
	result, err := h.activities().SelectResources(t.Context(), ref)
	require.NoError(t, err)
	assert.True(t, result.Invalid)
	assert.Empty(t, h.names(), "nothing is stored")
	assert.Equal(t, "NamespaceWithResourceSelectors mode requires exactly one namespace, but no namespaces were selected: "+
		`resourceSelectors[0] selects Namespace (v1) "app", which does not exist on the hub; it is placed as soon as it does`, h.verdict().Error)
	assert.Equal(t, snapshot.Fingerprint(nil), h.verdict().Inputs, "a restart can tell that nothing has changed")

	_, err = h.dynamic.Resource(corev1.SchemeGroupVersion.WithResource("namespaces")).Create(t.Context(), unstructuredOf(t, namespace("app")), metav1.CreateOptions{})
	require.NoError(t, err)
	result, err = h.activities().SelectResources(t.Context(), ref)
	require.NoError(t, err)
	assert.False(t, result.Invalid)
	assert.Len(t, h.snapshots()["crp-0-snapshot"].Spec.SelectedResources, 2)
	assert.Empty(t, h.verdict().Error)
}

// A ConfigMap of this size needs a snapshot object of its own.
func large(name, letter string) string { return name + strings.Repeat(letter, snapshot.PartLimit*2/3) }

func TestSelectSurvivesDeathAfterAnyWrite(t *testing.T) {
	prepare := func() *hub {
		h := newHub(t, crp(func(p *placementv1beta1.ClusterResourcePlacement) {
			limit := int32(1)
			p.Spec.RevisionHistoryLimit = &limit
		}), namespace("app"), configMap("a", large("a", "1")), configMap("b", large("b", "1")))
		_, err := h.activities().SelectResources(t.Context(), ref)
		require.NoError(t, err)
		require.ElementsMatch(t, []string{"crp-0-snapshot*", "crp-0-1"}, h.names())
		h.change(configMap("a", large("a", "2")))
		return h
	}
	total := 0
	for k := 0; ; k++ {
		h := prepare()
		h.left = k
		_, err := h.activities().SelectResources(t.Context(), ref)
		if err == nil {
			total = k
			break
		}
		require.ErrorIs(t, err, errDied)
		requireReadableLatest(t, h)

		// The content changes once more before the next attempt: what was left of the
		// first may not mix with it.
		for _, changed := range []bool{false, true} {
			t.Run(fmt.Sprintf("write %d, content changed meanwhile: %t", k, changed), func(t *testing.T) {
				h := prepare()
				h.left = k
				_, err := h.activities().SelectResources(t.Context(), ref)
				require.ErrorIs(t, err, errDied)
				want := large("a", "2")
				if changed {
					want = large("a", "3")
					h.change(configMap("a", want))
				}
				h.left = -1
				result, err := h.activities().SelectResources(t.Context(), ref)
				require.NoError(t, err)
				requireReadableLatest(t, h)
				masterWritten := h.snapshots()["crp-2-snapshot"].Name != ""
				assert.Equal(t, changed && masterWritten, result.Index == 2, "no index is left out")
				all := h.content(result.Snapshot) + h.content(fmt.Sprintf("crp-%d-1", result.Index))
				assert.Contains(t, all, want)
				assert.Len(t, h.names(), 2, "one latest snapshot of two parts, the history is pruned: %v", h.names())
				assert.Equal(t, result.Snapshot, h.verdict().Snapshot)
			})
		}
	}
	assert.GreaterOrEqual(t, total, 6, "part, master, label, two deletions and the verdict")
}

// requireReadableLatest checks that whoever looks now finds a latest snapshot, and
// that it is complete.
func requireReadableLatest(t *testing.T, h *hub) {
	t.Helper()
	latest := 0
	for name, item := range h.snapshots() {
		if item.Labels[placementv1beta1.IsLatestSnapshotLabel] != "true" {
			continue
		}
		latest++
		part := h.snapshots()[strings.TrimSuffix(name, "snapshot")+"1"]
		require.NotEmpty(t, part.Name, "the part of %s", name)
		assert.Equal(t, item.Annotations[placementv1beta1.ResourceGroupHashAnnotation], part.Annotations[snapshot.PartOfAnnotation])
	}
	require.Positive(t, latest)
}

func TestLatestLabelIsRepaired(t *testing.T) {
	relabel := func(t *testing.T, h *hub, name, value string) {
		item := h.snapshots()[name]
		item.Labels[placementv1beta1.IsLatestSnapshotLabel] = value
		require.NoError(t, h.Update(t.Context(), &item))
	}
	cases := map[string]func(*testing.T, *hub){
		"two carry it":             func(t *testing.T, h *hub) { relabel(t, h, "crp-0-snapshot", "true") },
		"none carries it":          func(t *testing.T, h *hub) { relabel(t, h, "crp-1-snapshot", "false") },
		"somebody removed a label": func(t *testing.T, h *hub) { relabel(t, h, "crp-1-snapshot", "") },
	}
	for name, damage := range cases {
		t.Run(name, func(t *testing.T) {
			h := newHub(t, crp(), namespace("app"), configMap("a", "1"))
			_, err := h.activities().SelectResources(t.Context(), ref)
			require.NoError(t, err)
			h.change(configMap("a", "2"))
			_, err = h.activities().SelectResources(t.Context(), ref)
			require.NoError(t, err)
			damage(t, h)
			result, err := h.activities().SelectResources(t.Context(), ref)
			require.NoError(t, err)
			assert.Equal(t, 1, result.Index)
			assert.ElementsMatch(t, []string{"crp-0-snapshot", "crp-1-snapshot*"}, h.names())
		})
	}
}

func TestHistoryKeepsWhatIsReferredTo(t *testing.T) {
	run := func(name, index string, conditions ...metav1.Condition) *placementv1beta1.ClusterStagedUpdateRun {
		return &placementv1beta1.ClusterStagedUpdateRun{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       placementv1beta1.UpdateRunSpec{PlacementName: "crp", ResourceSnapshotIndex: index},
			Status:     placementv1beta1.UpdateRunStatus{Conditions: conditions},
		}
	}
	h := newHub(t, crp(func(p *placementv1beta1.ClusterResourcePlacement) {
		limit := int32(2)
		p.Spec.RevisionHistoryLimit = &limit
	}), namespace("app"), configMap("a", "0"),
		&placementv1beta1.ClusterResourceBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "b", Labels: map[string]string{placementv1beta1.ParentPlacementLabel: "crp"},
				Annotations: map[string]string{placementv1beta1.PreviousResourceSnapshotAnnotation: "crp-1-snapshot"}},
			Spec: placementv1beta1.ResourceBindingSpec{ResourceSnapshotName: "crp-0-snapshot"},
		},
		run("pinned", "2"),
		run("done", "3", metav1.Condition{Type: placementv1beta1.ConditionTypeSucceeded, Status: metav1.ConditionTrue}),
	)
	for i := range 7 {
		if i > 0 {
			h.change(configMap("a", fmt.Sprint(i)))
		}
		_, err := h.activities().SelectResources(t.Context(), ref)
		require.NoError(t, err)
	}
	assert.ElementsMatch(t, []string{"crp-0-snapshot", "crp-1-snapshot", "crp-2-snapshot", "crp-6-snapshot*"}, h.names())
}

func TestTheSeriesOfSnapshotsGoesOnAfterThoseFromBefore(t *testing.T) {
	leftover := &placementv1beta1.ClusterResourceSnapshot{ObjectMeta: metav1.ObjectMeta{
		Name: "crp-4-snapshot", UID: "a-snapshot",
		Labels: map[string]string{
			placementv1beta1.ParentPlacementLabel: "crp", placementv1beta1.ResourceIndexLabel: "4", placementv1beta1.IsLatestSnapshotLabel: "true",
		},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "placement.kubernetes-fleet.io/v1beta1", Kind: "ClusterResourcePlacement", Name: "crp", UID: "earlier"}},
	}}
	h := newHub(t, crp(), namespace("app"), leftover)
	_, err := h.activities().SelectResources(t.Context(), ref)
	require.NoError(t, err)
	assert.ElementsMatch(t, []string{"crp-4-snapshot", "crp-5-snapshot*"}, h.names())
}

// overtaking lets another attempt finish in the middle of a selection.
type overtaking struct {
	client.Reader
	once func()
}

func (o *overtaking) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	err := o.Reader.List(ctx, list, options...)
	if list.GetObjectKind().GroupVersionKind().Kind == "ClusterResourceSnapshotList" && o.once != nil {
		once := o.once
		o.once = nil
		once()
	}
	return err
}

func TestAnAttemptThatWasOvertakenLooksAgain(t *testing.T) {
	for _, changed := range []bool{true, false} {
		t.Run(fmt.Sprintf("content changed: %t", changed), func(t *testing.T) {
			h := newHub(t, crp(), namespace("app"), configMap("a", "1"))
			slow := h.activities()
			slow.Selector.Live = &overtaking{Reader: h, once: func() {
				_, err := h.activities().SelectResources(t.Context(), ref)
				require.NoError(t, err)
				if changed {
					h.change(configMap("a", "2"))
				}
			}}
			result, err := slow.SelectResources(t.Context(), ref)
			require.NoError(t, err)
			if !changed {
				assert.Equal(t, []string{"crp-0-snapshot*"}, h.names())
				return
			}
			assert.Equal(t, 1, result.Index)
			assert.ElementsMatch(t, []string{"crp-0-snapshot", "crp-1-snapshot*"}, h.names())
			assert.Contains(t, h.content("crp-1-snapshot"), `"key":"2"`)
		})
	}
}
