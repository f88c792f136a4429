//go:build integration

package member

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/test/devfleet/access"
	"github.com/fleetflow/fleetflow/test/onemember"
)

// wayOut is how a Work stops to want an object. A Work is deleted with its placement, its binding or its envelope; an object leaves
// it because it is deselected, because an override deletes it, or because it has left an envelope.
type wayOut struct {
	name       string
	drop, keep bool
}

var waysOut = []wayOut{
	{name: "its Work is deleted"},
	{name: "its Work is deleted and leaves it", keep: true},
	{name: "it leaves its Work", drop: true},
	{name: "it leaves its Work and stays", drop: true, keep: true},
}

// contest is about one object that two Works want, or that one wants and in which the other has an object.
type contest struct {
	// id is unique; the Works, their Namespace and their kind are named after it.
	id, name string
	// objects are what each Work wants, besides a ConfigMap of its own.
	objects [2]map[string]any
	// local is an object of the cluster that would go with the first one's object.
	local map[string]any
	ends  [2]wayOut

	works [2]*placementv1beta1.Work
	uids  [2]types.UID
}

func (c *contest) shared() bool { return identity(c.objects[0]) == identity(c.objects[1]) }

// heir is the Work that owns the object of a Work once that has ended.
func (c *contest) heir(of int) string { return c.works[1-of].Name }

// identity names an object.
func identity(object map[string]any) string {
	o := unstructured.Unstructured{Object: object}
	return strings.Join([]string{o.GetKind(), o.GetNamespace(), o.GetName()}, "/")
}

// thing makes what the Works of a contest want.
type thing struct {
	name string
	make func(s *spec, c *contest)
}

func claimIn(namespace, name string) map[string]any {
	return map[string]any{
		"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": map[string]any{"namespace": namespace, "name": name},
		"spec": map[string]any{
			"accessModes": []any{"ReadWriteOnce"}, "storageClassName": "none", "resources": map[string]any{"requests": map[string]any{"storage": "1Mi"}},
		},
	}
}

func widgetIn(namespace, group string) map[string]any {
	return map[string]any{"apiVersion": group + "/v1", "kind": "Widget", "metadata": map[string]any{"namespace": namespace, "name": "w"}}
}

func group(id string) string { return id + ".example.com" }

// sharedThings are objects that both Works have a manifest of.
var sharedThings = []thing{
	{"a ConfigMap", func(s *spec, c *contest) { c.wantBoth(s.configMap(c.id, "v")) }},
	{"a claim", func(s *spec, c *contest) { c.wantBoth(claimIn(s.name, c.id)) }},
	{"a Namespace in which the cluster has an object", func(_ *spec, c *contest) {
		c.wantBoth(onemember.NamespaceOf(c.id))
		c.local = onemember.ConfigMap(c.id, "local", "v")
	}},
	{"a definition of a kind of which the cluster has an object", func(s *spec, c *contest) {
		c.wantBoth(definition(group(c.id)).Object)
		c.local = widgetIn(s.name, group(c.id))
	}},
}

// nestedThings are objects of the first Work that hold one of the second.
var nestedThings = []thing{
	{"a Namespace in which the other has an object", func(_ *spec, c *contest) {
		c.objects = [2]map[string]any{onemember.NamespaceOf(c.id), onemember.ConfigMap(c.id, "theirs", "v")}
	}},
	{"a definition of a kind of which the other has an object", func(s *spec, c *contest) {
		c.objects = [2]map[string]any{definition(group(c.id)).Object, widgetIn(s.name, group(c.id))}
	}},
}

func (c *contest) wantBoth(object map[string]any) { c.objects = [2]map[string]any{object, object} }

// orderedPairs are all ways out of one Work before all of the other.
func orderedPairs() [][2]wayOut {
	var pairs [][2]wayOut
	for _, first := range waysOut {
		for _, second := range waysOut {
			pairs = append(pairs, [2]wayOut{first, second})
		}
	}
	return pairs
}

// contests has one of each thing for every pair of ends.
func (s *spec) contests(things []thing, pairs [][2]wayOut) []*contest {
	var all []*contest
	for _, thing := range things {
		for _, pair := range pairs {
			c := &contest{
				id: fmt.Sprintf("%s-%d", s.name, len(all)), name: fmt.Sprintf("%s: %s, then %s", thing.name, pair[0].name, pair[1].name), ends: pair,
			}
			thing.make(s, c)
			all = append(all, c)
		}
	}
	return all
}

// begin places what both Works want, the first before the second, and the object of the cluster.
func (s *spec) begin(all []*contest, change func(*placementv1beta1.Work)) {
	s.Helper()
	for which := range 2 {
		for _, c := range all {
			name := fmt.Sprintf("%s-%d", c.id, which)
			c.works[which] = onemember.Work(name, s.configMap(name, "v"), c.objects[which])
			change(c.works[which])
			require.NoError(s, rig.Hub.Create(s.ctx, c.works[which]), c.name)
		}
		for _, c := range all {
			s.awaitFirstLook(c, which)
			c.uids[which] = s.read(c.objects[which]).GetUID()
		}
	}
	for _, c := range all {
		if c.local != nil {
			require.NoError(s, rig.Member.Create(s.ctx, &unstructured.Unstructured{Object: c.local}), c.name)
		}
	}
}

// awaitFirstLook waits until the agent has applied a Work, but for what the other owns.
func (s *spec) awaitFirstLook(c *contest, which int) {
	s.Helper()
	s.awaitWork(c.works[which].Name, func(w *placementv1beta1.Work) string {
		applied := meta.FindStatusCondition(w.Status.Conditions, placementv1beta1.ConditionTypeApplied)
		if want := which == 0 || !c.shared(); applied == nil || want != (applied.Status == metav1.ConditionTrue) {
			return fmt.Sprintf("%s: it says %+v; not applied: %s", c.name, applied, notApplied(w))
		}
		return ""
	})
}

// finish has a Work want its object no more.
func (s *spec) finish(c *contest, which int) {
	s.Helper()
	work := c.works[which]
	end := c.ends[which]
	key := placementv1beta1.DeletePropagationAnnotation
	if end.drop {
		key = placementv1beta1.RemovedResourcesAnnotation
	}
	before := work.DeepCopy()
	if end.keep {
		metav1.SetMetaDataAnnotation(&work.ObjectMeta, key, string(placementv1beta1.DeletePropagationPolicyAbandon))
	}
	if end.drop {
		work.Spec.Workload.Manifests = work.Spec.Workload.Manifests[:1]
	}
	require.NoError(s, rig.Hub.Patch(s.ctx, work, client.MergeFrom(before)), c.name)
	if !end.drop {
		require.NoError(s, rig.Hub.Delete(s.ctx, work), c.name)
	}
}

// awaitFinished waits until a Work has nothing more to do with its object.
func (s *spec) awaitFinished(c *contest, which int) {
	s.Helper()
	name := c.works[which].Name
	if !c.ends[which].drop {
		require.NoError(s, access.AwaitGone[placementv1beta1.Work](s.ctx, rig.Hub, onemember.Key(name)), c.name)
		return
	}
	_, err := access.Await(s.ctx, rig.Member, client.ObjectKey{Name: name}, func(w *placementv1beta1.AppliedWork) string {
		if w == nil || len(w.Status.AppliedResources) != 1 {
			return c.name + ": it still lists the object"
		}
		return ""
	})
	require.NoError(s, err)
}

// awaitHeld waits until a Work says whose objects its own waits for.
func (s *spec) awaitHeld(c *contest, which int, words string) {
	s.Helper()
	s.awaitWork(c.works[which].Name, func(w *placementv1beta1.Work) string {
		if w == nil {
			return c.name + ": it is gone"
		}
		said := meta.FindStatusCondition(w.Status.Conditions, placementv1beta1.ConditionTypeRemovalPending)
		if said == nil || said.Reason != placementv1beta1.ReasonInUse || !strings.Contains(said.Message, words) {
			return fmt.Sprintf("%s: it says %+v and not %s", c.name, said, words)
		}
		return ""
	})
}

// read reads an object of the member, nil if there is none.
func (s *spec) read(object map[string]any) *unstructured.Unstructured {
	s.Helper()
	live := &unstructured.Unstructured{Object: map[string]any{"apiVersion": object["apiVersion"], "kind": object["kind"]}}
	wanted := &unstructured.Unstructured{Object: object}
	err := rig.Member.Get(s.ctx, client.ObjectKeyFromObject(wanted), live)
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return nil
	}
	require.NoError(s, err)
	return live
}

// requireKept makes sure that the object of a Work is the one that was placed, and that it has this owner, or none of the fleet.
func (s *spec) requireKept(c *contest, which int, owner string) {
	s.Helper()
	live := s.read(c.objects[which])
	require.NotNil(s, live, "%s: %s is gone", c.name, identity(c.objects[which]))
	require.Equal(s, c.uids[which], live.GetUID(), "%s: %s was made anew", c.name, identity(c.objects[which]))
	require.Nil(s, live.GetDeletionTimestamp(), "%s: %s is being deleted", c.name, identity(c.objects[which]))
	var owners []string
	for _, ref := range live.GetOwnerReferences() {
		owners = append(owners, ref.Name)
	}
	if owner == "" {
		require.Empty(s, owners, c.name)
		return
	}
	require.Equal(s, []string{owner}, owners, c.name)
}

// awaitRemoved waits until an object is gone.
func (s *spec) awaitRemoved(c *contest, object map[string]any) {
	s.Helper()
	require.Eventually(s, func() bool { return s.read(object) == nil }, patience, pollEvery, "%s: %s is still there", c.name, identity(object))
}

// everyPairOfEnds has two Works want the same objects. The second gets each once the first has ended, with its UID; what nobody
// wants any more goes, unless it is to stay or others would lose something by it.
func everyPairOfEnds(s *spec) {
	s.runPairs(func(*placementv1beta1.Work) {})
}

// everyPairOfEndsInABinding does so with the Works of one binding, of which one may be of an envelope.
func everyPairOfEndsInABinding(s *spec) {
	s.runPairs(func(w *placementv1beta1.Work) {
		w.Labels[placementv1beta1.ParentPlacementLabel] = s.name
		w.Labels[placementv1beta1.ParentBindingLabel] = s.name + "-" + onemember.Member
	})
}

func (s *spec) runPairs(change func(*placementv1beta1.Work)) {
	all := s.contests(sharedThings, orderedPairs())
	s.begin(all, change)
	for _, c := range all {
		s.finish(c, 0)
	}
	for _, c := range all {
		s.awaitFinished(c, 0)
		s.requireKept(c, 0, c.heir(0))
	}
	for _, c := range all {
		s.finish(c, 1)
	}
	for _, c := range all {
		if c.staysAfterAll() {
			s.awaitFinished(c, 1)
			s.requireKept(c, 1, "")
		} else if c.local != nil {
			s.awaitHeld(c, 1, "/"+(&unstructured.Unstructured{Object: c.local}).GetName()+" of the cluster")
			s.requireKept(c, 1, c.works[1].Name)
			s.remove(c, c.local, 1)
		}
	}
	for _, c := range all {
		if !c.staysAfterAll() {
			s.awaitRemoved(c, c.objects[1])
			s.awaitFinished(c, 1)
		}
	}
}

// staysAfterAll tells whether a shared object is left to the cluster by the last that wanted it.
func (c *contest) staysAfterAll() bool {
	end := c.ends[1]
	return end.keep || end.drop && c.objects[1]["kind"] == "PersistentVolumeClaim"
}

// remove deletes what the object of a Work waits for. It then touches that object, so that the agent looks at once and not only
// within a minute.
func (s *spec) remove(c *contest, object map[string]any, which int) {
	s.Helper()
	require.NoError(s, rig.Member.Delete(s.ctx, &unstructured.Unstructured{Object: object}), c.name)
	s.awaitRemoved(c, object)
	touch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"example.com/touched":"true"}}}`))
	held := (&unstructured.Unstructured{Object: c.objects[which]}).DeepCopy()
	require.NoError(s, client.IgnoreNotFound(rig.Member.Patch(s.ctx, held, touch)), c.name)
}

// everyPairOfNestedEnds ends what holds an object of another, before and after that.
func everyPairOfNestedEnds(s *spec) {
	for _, first := range []int{0, 1} {
		run := newSpec(s.T)
		all := run.contests(nestedThings, orderedPairs())
		run.begin(all, func(*placementv1beta1.Work) {})
		for _, c := range all {
			run.finish(c, first)
		}
		for _, c := range all {
			if first == 0 && !c.ends[0].keep {
				run.awaitHeld(c, 0, " of placement "+c.works[1].Name)
				run.requireKept(c, 0, c.works[0].Name)
				run.requireKept(c, 1, c.works[1].Name)
				continue
			}
			run.awaitFinished(c, first)
		}
		for _, c := range all {
			run.finish(c, 1-first)
		}
		for _, c := range all {
			run.awaitNested(c)
		}
		for _, c := range all {
			run.awaitHolder(c)
		}
	}
}

// awaitNested waits for what becomes of the object within, once both Works have ended.
func (s *spec) awaitNested(c *contest) {
	s.Helper()
	if !c.ends[1].keep {
		s.awaitRemoved(c, c.objects[1])
		return
	}
	s.awaitFinished(c, 1)
	s.requireKept(c, 1, "")
	if !c.ends[0].keep {
		s.awaitHeld(c, 0, " of the cluster")
		s.requireKept(c, 0, c.works[0].Name)
		s.remove(c, c.objects[1], 0)
	}
}

// awaitHolder waits for the end of what has held an object of another.
func (s *spec) awaitHolder(c *contest) {
	s.Helper()
	if c.ends[0].keep {
		s.awaitFinished(c, 0)
		s.requireKept(c, 0, "")
		return
	}
	s.awaitRemoved(c, c.objects[0])
	s.awaitFinished(c, 0)
}

// leaving are the ends of all Works with the cluster, after one has ended or none.
func leaving() [][2]wayOut {
	leaves := wayOut{name: "the member leaves"}
	pairs := [][2]wayOut{{leaves, leaves}}
	for _, first := range waysOut {
		pairs = append(pairs, [2]wayOut{first, leaves})
	}
	return pairs
}

func (c *contest) ended() bool { return c.ends[0] != c.ends[1] }

// endBeforeLeaving has what both Works want, and ends the first where that is to end before the member leaves.
func (s *spec) endBeforeLeaving() (shared, nested []*contest) {
	within := newSpec(s.T)
	shared = s.contests(sharedThings, leaving())
	nested = within.contests(nestedThings, leaving())
	all := slices.Concat(shared, nested)
	s.begin(all, func(*placementv1beta1.Work) {})
	for _, c := range all {
		if c.ended() {
			s.finish(c, 0)
		}
	}
	for _, c := range all {
		switch {
		case !c.ended():
		case c.shared():
			s.awaitFinished(c, 0)
			s.requireKept(c, 0, c.heir(0))
		case c.ends[0].keep:
			s.awaitFinished(c, 0)
			s.requireKept(c, 0, "")
		default:
			s.awaitHeld(c, 0, " of placement "+c.works[1].Name)
		}
	}
	return shared, nested
}

// memberLeavesAfterEnds has the member leave while two Works want an object, or after one has ended. What is the cluster's stays, and
// what a placement has left to it.
func memberLeavesAfterEnds(s *spec) {
	shared, nested := s.endBeforeLeaving()
	s.leave(false)
	for _, c := range shared {
		if c.local != nil {
			s.requireKept(c, 0, "")
			continue
		}
		s.awaitRemoved(c, c.objects[0])
	}
	for _, c := range nested {
		s.awaitRemoved(c, c.objects[1])
		if c.ended() && c.ends[0].keep {
			s.requireKept(c, 0, "")
			continue
		}
		s.awaitRemoved(c, c.objects[0])
	}
	s.joinAgain()
}

// memberLeavesAndKeeps has the member leave with what was placed on it. Whoever waited for something waits no more.
func memberLeavesAndKeeps(s *spec) {
	shared, nested := s.endBeforeLeaving()
	s.leave(true)
	s.joinAgain()
	for _, c := range shared {
		owner := c.works[0].Name
		if c.ended() {
			owner = c.heir(0)
		}
		s.requireKept(c, 0, owner)
	}
	for _, c := range nested {
		owner := c.works[0].Name
		if c.ended() && c.ends[0].keep {
			owner = ""
		}
		s.requireKept(c, 0, owner)
		s.requireKept(c, 1, c.works[1].Name)
	}
}

// leave has the member leave, as the hub agent asks it to.
func (s *spec) leave(keep bool) {
	s.Helper()
	s.ask(clusterv1beta1.ClusterStateLeave, keep)
	s.Cleanup(func() { s.ask(clusterv1beta1.ClusterStateJoin, false) })
	_, err := access.Await(s.ctx, rig.Hub, client.ObjectKey{Namespace: onemember.Namespace, Name: onemember.Member}, func(box *clusterv1beta1.InternalMemberCluster) string {
		for _, agent := range box.Status.AgentStatus {
			c := meta.FindStatusCondition(agent.Conditions, clusterv1beta1.ConditionTypeJoined)
			if c != nil && c.Reason == clusterv1beta1.ReasonInternalMemberClusterLeft && c.ObservedGeneration == box.Generation {
				return ""
			}
		}
		return fmt.Sprintf("the agent has not left: %+v", box.Status.AgentStatus)
	})
	require.NoError(s, err)
}

func (s *spec) ask(state clusterv1beta1.ClusterState, keep bool) {
	s.Helper()
	box := &clusterv1beta1.InternalMemberCluster{ObjectMeta: metav1.ObjectMeta{Namespace: onemember.Namespace, Name: onemember.Member}}
	value := "null"
	if keep {
		value = fmt.Sprintf("%q", clusterv1beta1.KeepPlacedValue)
	}
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%s}},"spec":{"state":%q}}`, clusterv1beta1.KeepPlacedAnnotation, value, state)
	require.NoError(s, rig.Hub.Patch(context.WithoutCancel(s.ctx), box, client.RawPatch(types.MergePatchType, patch)))
}

// joinAgain deletes the Works, as the hub agent does once a member has left, and has the member join.
func (s *spec) joinAgain() {
	s.Helper()
	require.NoError(s, rig.Hub.DeleteAllOf(s.ctx, &placementv1beta1.Work{}, client.InNamespace(onemember.Namespace)))
	_, err := access.AwaitAll(s.ctx, rig.Hub, func(left []*placementv1beta1.Work) string {
		if len(left) > 0 {
			return fmt.Sprintf("%d Works are left", len(left))
		}
		return ""
	}, client.InNamespace(onemember.Namespace))
	require.NoError(s, err)
	s.ask(clusterv1beta1.ClusterStateJoin, false)
	require.NoError(s, rig.AwaitJoined(s.ctx))
	require.NoError(s, rig.Member.Get(s.ctx, client.ObjectKey{Name: s.name}, &corev1.Namespace{}))
}
