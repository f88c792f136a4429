package override

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/fleetflow/fleetflow/activities/override"
	"github.com/fleetflow/fleetflow/activities/snapshot"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

var cro = client.ObjectKey{Name: "cro"}

// taken are the snapshots of cluster overrides, each as its name and the first role it
// is about, with a star if it is in force.
func (b *bench) taken(t *testing.T) string {
	t.Helper()
	var list placementv1beta1.ClusterResourceOverrideSnapshotList
	require.NoError(t, b.hub.List(t.Context(), &list))
	var words []string
	for i := range list.Items {
		s := &list.Items[i]
		name, index, ok := parseName(s.Name)
		require.True(t, ok)
		word := s.Name + ":" + s.Spec.OverrideSpec.ClusterResourceSelectors[0].Name
		switch markOf(s.Labels, name, index) {
		case inForce:
			word += "*"
		case unclear:
			word += "?"
		}
		words = append(words, word)
	}
	return strings.Join(words, " ")
}

// settled reconciles an override until nothing is written.
func (b *bench) settled(t *testing.T, key client.ObjectKey) {
	t.Helper()
	for range 5 {
		before := b.writes
		_, err := b.cluster.Reconcile(t.Context(), ctrl.Request{NamespacedName: key})
		require.NoError(t, err)
		if b.writes == before {
			return
		}
	}
	require.Fail(t, "it does not come to rest")
}

// edit makes an override about other roles.
func (b *bench) edit(t *testing.T, key client.ObjectKey, roles ...string) {
	t.Helper()
	o := &placementv1beta1.ClusterResourceOverride{}
	require.NoError(t, b.hub.Get(t.Context(), key, o))
	o.Generation++
	o.Spec = clusterOverride(0, key.Name, roles...).Spec
	require.NoError(t, b.hub.Update(t.Context(), o))
}

// binding names snapshots of cluster overrides.
func binding(name string, snapshots ...string) *placementv1beta1.ClusterResourceBinding {
	return &placementv1beta1.ClusterResourceBinding{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: placementv1beta1.ResourceBindingSpec{ClusterResourceOverrideSnapshots: snapshots}}
}

func TestSnapshotsFollowTheOverride(t *testing.T) {
	b := newBench(t, clusterOverride(0, "cro", "a"))
	b.settled(t, cro)
	assert.Equal(t, "cro-0:a*", b.taken(t))
	override0 := &placementv1beta1.ClusterResourceOverride{}
	require.NoError(t, b.hub.Get(t.Context(), cro, override0))
	assert.Equal(t, []string{"kubernetes-fleet.io/override-cleanup"}, override0.Finalizers)
	first := &placementv1beta1.ClusterResourceOverrideSnapshot{}
	require.NoError(t, b.hub.Get(t.Context(), client.ObjectKey{Name: "cro-0"}, first))
	assert.Equal(t, map[string]string{
		"kubernetes-fleet.io/parent-resource-override": "cro",
		"kubernetes-fleet.io/override-index":           "0",
		"kubernetes-fleet.io/is-latest-snapshot":       "true",
	}, first.Labels)
	hash, err := override.Hash(override0)
	require.NoError(t, err)
	assert.Equal(t, hash, first.Spec.OverrideHash)
	assert.Equal(t, override0.Spec, first.Spec.OverrideSpec)
	require.Len(t, first.OwnerReferences, 1)
	assert.Equal(t, "ClusterResourceOverride", first.OwnerReferences[0].Kind)
	assert.Equal(t, types.UID("cro"), first.OwnerReferences[0].UID)
	assert.Equal(t, []string{"Normal OverrideSnapshotCreated Created snapshot cro-0; it is in force from now on"}, b.told())

	b.edit(t, cro, "b")
	b.settled(t, cro)
	assert.Equal(t, "cro-0:a cro-1:b*", b.taken(t))
	b.edit(t, cro, "a")
	b.settled(t, cro)
	assert.Equal(t, "cro-0:a cro-1:b cro-2:a*", b.taken(t))
	assert.Len(t, b.told(), 2)

	o := &placementv1beta1.ClusterResourceOverride{}
	require.NoError(t, b.hub.Get(t.Context(), cro, o))
	require.NoError(t, b.hub.Delete(t.Context(), o))
	b.settled(t, cro)
	assert.Empty(t, b.taken(t))
	require.True(t, isGone(b.hub.Get(t.Context(), cro, o)), "nothing holds it any more")
}

func isGone(err error) bool { return err != nil && client.IgnoreNotFound(err) == nil }

func TestSnapshotsInNamespaces(t *testing.T) {
	key := client.ObjectKey{Namespace: "one", Name: "ro"}
	b := newBench(t, namespacedOverride(0, "one", "ro", "web"), namespacedOverride(0, "two", "ro", "web"))
	b.reconcile(t, b.namespaced, key)
	b.reconcile(t, b.namespaced, client.ObjectKey{Namespace: "two", Name: "ro"})
	var list placementv1beta1.ResourceOverrideSnapshotList
	require.NoError(t, b.hub.List(t.Context(), &list))
	require.Len(t, list.Items, 2)
	for i := range list.Items {
		assert.Equal(t, "ro-0", list.Items[i].Name)
		assert.Equal(t, "web", list.Items[i].Spec.OverrideSpec.ResourceSelectors[0].Name)
	}
	o := &placementv1beta1.ResourceOverride{}
	require.NoError(t, b.hub.Get(t.Context(), key, o))
	require.NoError(t, b.hub.Delete(t.Context(), o))
	_, err := b.namespaced.Reconcile(t.Context(), ctrl.Request{NamespacedName: key})
	require.NoError(t, err)
	require.NoError(t, b.hub.List(t.Context(), &list))
	require.Len(t, list.Items, 1)
	assert.Equal(t, "two", list.Items[0].Namespace)
}

func TestOnlyValidOverridesAreInForce(t *testing.T) {
	b := newBench(t, clusterOverride(0, "old", "x"), clusterOverride(1, "cro", "a"))
	old := client.ObjectKey{Name: "old"}
	b.settled(t, cro)
	b.settled(t, old)
	assert.Equal(t, "cro-0:a* old-0:x*", b.taken(t))

	b.edit(t, cro, "x")
	b.settled(t, cro)
	assert.Equal(t, "cro-0:a old-0:x*", b.taken(t), "what is not valid has no effect, and what it says is not kept")
	b.edit(t, cro, "a")
	b.settled(t, cro)
	assert.Equal(t, "cro-0:a* old-0:x*", b.taken(t), "the same again is no new snapshot")

	b.edit(t, old, "a")
	b.settled(t, old)
	b.settled(t, cro)
	assert.Equal(t, "cro-0:a old-0:x old-1:a*", b.taken(t))
}

func TestOverridesThatAreCreatedAgain(t *testing.T) {
	run := &placementv1beta1.ClusterStagedUpdateRun{ObjectMeta: metav1.ObjectMeta{Name: "run"}}
	run.Status.StagesStatus = []placementv1beta1.StageUpdatingStatus{{Clusters: []placementv1beta1.ClusterUpdatingStatus{
		{ClusterName: "c", ClusterResourceOverrideSnapshots: []string{"cro-3"}}}}}
	ended := run.DeepCopy()
	ended.Status.Conditions = []metav1.Condition{{Type: placementv1beta1.ConditionTypeSucceeded, Status: metav1.ConditionTrue}}
	placement := &placementv1beta1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: "p", Annotations: map[string]string{
		placementv1beta1.SelectionVerdictAnnotation: snapshot.Verdict{Overrides: []string{"x-9", "cro-1", "web/cro-7"}}.Encode()}}}
	namespaced := binding("b")
	namespaced.Spec.ResourceOverrideSnapshots = []placementv1beta1.NamespacedName{{Namespace: "web", Name: "cro-5"}}
	for name, tc := range map[string]struct {
		named client.Object
		want  string
	}{
		"begin anew if nobody names theirs":            {binding("b", "other-4", "cro-x-8", "cro"), "cro-0:a*"},
		"do not take a name that a binding has":        {binding("b", "cro-0", "other-4", "cro-2"), "cro-3:a*"},
		"do not take a name that an update run has":    {run, "cro-4:a*"},
		"may take a name that an ended update run had": {ended, "cro-0:a*"},
		"do not take a name that a placement goes by":  {placement, "cro-2:a*"},
		"have nothing to do with those of namespaces":  {namespaced, "cro-0:a*"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, clusterOverride(0, "cro", "a"), tc.named)
			b.settled(t, cro)
			assert.Equal(t, tc.want, b.taken(t))
		})
	}
}

func TestOverridesMadeAtOnceShareAReading(t *testing.T) {
	var objects []client.Object
	for i := range 20 {
		objects = append(objects, clusterOverride(i, fmt.Sprintf("o%02d", i), fmt.Sprint(i)))
	}
	b := newBench(t, objects...)
	readings := 0
	b.cluster.live = interceptor.NewClient(b.hub, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if _, ok := list.(*placementv1beta1.ClusterResourceBindingList); ok {
				readings++
			}
			return c.List(ctx, list, opts...)
		},
	})
	for _, o := range objects {
		b.settled(t, client.ObjectKeyFromObject(o))
	}
	assert.Equal(t, 1, readings)
	require.NoError(t, b.hub.Create(t.Context(), clusterOverride(20, "o20", "late")))
	b.settled(t, client.ObjectKey{Name: "o20"})
	assert.Equal(t, 2, readings, "one that came later is not among those")
}

func TestHistory(t *testing.T) {
	b := newBench(t, clusterOverride(0, "cro", "r0"))
	for i := range 14 {
		if i > 0 {
			b.edit(t, cro, fmt.Sprintf("r%d", i))
		}
		b.settled(t, cro)
	}
	assert.ElementsMatch(t, []string{
		"cro-4:r4", "cro-5:r5", "cro-6:r6", "cro-7:r7", "cro-8:r8", "cro-9:r9", "cro-10:r10", "cro-11:r11", "cro-12:r12", "cro-13:r13*",
	}, strings.Fields(b.taken(t)))
}

func TestHistoryKeepsWhatIsNamed(t *testing.T) {
	b := newBench(t, clusterOverride(0, "cro", "r0"))
	b.settled(t, cro)
	require.NoError(t, b.hub.Create(t.Context(), binding("b", "cro-0")))
	for i := range 12 {
		b.edit(t, cro, fmt.Sprintf("r%d", i+1))
		b.settled(t, cro)
	}
	got := strings.Fields(b.taken(t))
	require.Len(t, got, 11, "%v", got)
	assert.Contains(t, got, "cro-0:r0")
	assert.NotContains(t, got, "cro-1:r1")
	assert.NotContains(t, got, "cro-2:r2")
	assert.Contains(t, got, "cro-3:r3")

	require.NoError(t, b.hub.Delete(t.Context(), binding("b")))
	b.settled(t, cro)
	assert.NotContains(t, b.taken(t), "cro-0:")
}

func TestLabelsAreRepaired(t *testing.T) {
	for name, damage := range map[string]func(labels map[string]string) map[string]string{
		"none in force": func(l map[string]string) map[string]string {
			l[placementv1beta1.IsLatestSnapshotLabel] = "false"
			return l
		},
		"another index":  func(l map[string]string) map[string]string { l[placementv1beta1.OverrideIndexLabel] = "7"; return l },
		"another parent": func(l map[string]string) map[string]string { l[placementv1beta1.ParentOverrideLabel] = "x"; return l },
		"none at all":    func(map[string]string) map[string]string { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, clusterOverride(0, "cro", "a"))
			b.settled(t, cro)
			b.edit(t, cro, "b")
			b.settled(t, cro)
			for _, snapshot := range []string{"cro-0", "cro-1"} {
				s := &placementv1beta1.ClusterResourceOverrideSnapshot{}
				require.NoError(t, b.hub.Get(t.Context(), client.ObjectKey{Name: snapshot}, s))
				s.Labels = damage(s.Labels)
				require.NoError(t, b.hub.Update(t.Context(), s))
			}
			b.settled(t, cro)
			assert.Equal(t, "cro-0:a cro-1:b*", b.taken(t))
		})
	}
}

func TestSnapshotsWithoutAnOverrideAreDeleted(t *testing.T) {
	b := newBench(t, clusterOverride(0, "cro", "a"))
	b.settled(t, cro)
	o := &placementv1beta1.ClusterResourceOverride{}
	require.NoError(t, b.hub.Get(t.Context(), cro, o))
	o.Finalizers = nil
	require.NoError(t, b.hub.Update(t.Context(), o))
	require.NoError(t, b.hub.Delete(t.Context(), o))

	again := clusterOverride(0, "cro", "a")
	again.UID = "another"
	require.NoError(t, b.hub.Create(t.Context(), again))
	b.settled(t, cro)
	assert.Equal(t, "cro-0:a*", b.taken(t), "a snapshot from before the override got its UID shows what it says")

	require.NoError(t, b.hub.Get(t.Context(), cro, o))
	o.Finalizers = nil
	require.NoError(t, b.hub.Update(t.Context(), o))
	require.NoError(t, b.hub.Delete(t.Context(), o))
	b.settled(t, cro)
	assert.Empty(t, b.taken(t))
}

func TestAnOverrideWaitsForSnapshotsThatSomebodyHolds(t *testing.T) {
	b := newBench(t, clusterOverride(0, "cro", "a"))
	b.settled(t, cro)
	s := &placementv1beta1.ClusterResourceOverrideSnapshot{}
	require.NoError(t, b.hub.Get(t.Context(), client.ObjectKey{Name: "cro-0"}, s))
	s.Finalizers = []string{"somebody/else"}
	require.NoError(t, b.hub.Update(t.Context(), s))
	o := &placementv1beta1.ClusterResourceOverride{}
	require.NoError(t, b.hub.Get(t.Context(), cro, o))
	require.NoError(t, b.hub.Delete(t.Context(), o))
	b.settled(t, cro)
	require.NoError(t, b.hub.Get(t.Context(), cro, o))

	require.NoError(t, b.hub.Get(t.Context(), client.ObjectKey{Name: "cro-0"}, s))
	s.Finalizers = nil
	require.NoError(t, b.hub.Update(t.Context(), s))
	b.settled(t, cro)
	require.True(t, isGone(b.hub.Get(t.Context(), cro, o)))
}
