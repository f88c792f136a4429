package placement

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/fleetflow/fleetflow/activities/snapshot"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/controllers/hub/fieldindex"
	"github.com/fleetflow/fleetflow/test/fixture"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// recorder of pokes; away makes it fail.
type recorder struct {
	causes []string
	away   bool
}

func (r *recorder) Poke(_ context.Context, _ wf.Ref, poke wf.Poke) error {
	if r.away {
		return errors.New("connection refused")
	}
	r.causes = append(r.causes, poke.Cause)
	return nil
}

// bench is a reconciler on a fake hub.
type bench struct {
	*Reconciler
	hub          client.Client
	pokes        *recorder
	clock        *clocktesting.FakePassiveClock
	events       *events.FakeRecorder
	statusWrites int
}

func newBench(t *testing.T, objects ...client.Object) *bench {
	t.Helper()
	scheme := fixture.Scheme(t)
	require.NoError(t, metav1.AddMetaToScheme(scheme))
	b := &bench{pokes: &recorder{}, clock: clocktesting.NewFakePassiveClock(now.Time), events: events.NewFakeRecorder(100)}
	builder := fixture.NewClientBuilder(scheme).WithObjects(objects...).
		WithStatusSubresource(&placementv1beta1.ClusterResourcePlacement{}, &placementv1beta1.ClusterResourceBinding{}, &placementv1beta1.ClusterSchedulingPolicySnapshot{})
	for _, i := range fieldindex.All() {
		builder = builder.WithIndex(i.Object, i.Field, i.Extract)
	}
	builder = builder.WithIndex(&placementv1beta1.ClusterResourcePlacementStatus{}, "metadata.name", func(o client.Object) []string { return []string{o.GetName()} })
	b.hub = interceptor.NewClient(builder.Build(), interceptor.Funcs{
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			b.statusWrites++
			return c.SubResource(sub).Patch(ctx, o, p, opts...)
		},
	})
	b.Reconciler = NewReconciler(b.hub, b.hub, b.pokes, b.events, b.clock)
	return b
}

func (b *bench) reconcile(t *testing.T) ctrl.Result {
	t.Helper()
	result, err := b.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: "crp"}})
	require.NoError(t, err)
	return result
}

func (b *bench) placement(t *testing.T) *placementv1beta1.ClusterResourcePlacement {
	t.Helper()
	placement := &placementv1beta1.ClusterResourcePlacement{}
	require.NoError(t, b.hub.Get(t.Context(), client.ObjectKey{Name: "crp"}, placement))
	return placement
}

func (b *bench) told() []string {
	var all []string
	for {
		select {
		case event := <-b.events.Events:
			all = append(all, strings.Fields(event)[1])
		default:
			return all
		}
	}
}

// stored turns a situation into the objects it is made of.
func stored(s situation) []client.Object {
	owner := []metav1.OwnerReference{{APIVersion: "v1", Kind: "ClusterResourcePlacement", Name: "crp", UID: uid, Controller: new(true)}}
	s.Placement.Annotations = map[string]string{placementv1beta1.SelectionVerdictAnnotation: snapshot.Verdict{Generation: s.Verdict.Generation}.Encode()}
	policy := s.Policy.DeepCopy()
	policy.Name = "crp-0"
	policy.OwnerReferences = owner
	policy.Labels = map[string]string{placementv1beta1.ParentPlacementLabel: "crp", placementv1beta1.IsLatestSnapshotLabel: "true", placementv1beta1.PolicyIndexLabel: "0"}
	master := &placementv1beta1.ClusterResourceSnapshot{ObjectMeta: metav1.ObjectMeta{
		Name: "crp-0-snapshot", UID: "snapshot-0", OwnerReferences: owner,
		Labels:      map[string]string{placementv1beta1.ParentPlacementLabel: "crp", placementv1beta1.IsLatestSnapshotLabel: "true", placementv1beta1.ResourceIndexLabel: "0"},
		Annotations: map[string]string{placementv1beta1.NumberOfResourceSnapshotsAnnotation: "1"},
	}}
	master.Spec.SelectedResources = []placementv1beta1.ResourceContent{
		{RawExtension: runtime.RawExtension{Raw: []byte(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"web"}}`)}},
		{RawExtension: runtime.RawExtension{Raw: []byte(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"front","namespace":"web"}}`)}},
	}
	objects := []client.Object{s.Placement, policy, master}
	for i := range s.Bindings {
		s.Bindings[i].SetFinalizers([]string{placementv1beta1.WorkFinalizer})
		objects = append(objects, s.Bindings[i])
	}
	return objects
}

func TestALossOfTheSelectionIsToldOfOnceAndEndsWithTheHold(t *testing.T) {
	s := newSituation("member1").bound(0, up, "member1").losing()
	b := newBench(t, stored(s)...)
	say := func(verdict snapshot.Verdict) {
		placement := b.placement(t)
		placement.Annotations[placementv1beta1.SelectionVerdictAnnotation] = verdict.Encode()
		require.NoError(t, b.hub.Update(t.Context(), placement))
		b.clock.SetTime(b.clock.Now().Add(time.Minute)) // the status is written at intervals
		b.reconcile(t)
	}
	warnings := func() (all []string) {
		for len(b.events.Events) > 0 {
			if event := <-b.events.Events; strings.Contains(event, "RemovalsHeld") {
				all = append(all, event)
			}
		}
		return all
	}
	held := func() *metav1.Condition {
		return meta.FindStatusCondition(b.placement(t).Status.Conditions, placementv1beta1.ConditionTypeRemovalsHeld)
	}
	say(s.Verdict)
	require.NotNil(t, held())
	assert.Equal(t, placementv1beta1.ReasonSelectionEmptied, held().Reason)
	assert.Equal(t, []string{"Warning RemovalsHeld " + held().Message}, warnings())
	b.reconcile(t)
	assert.Empty(t, warnings(), "it was told of")

	s.Verdict.Lost = nil
	say(s.Verdict)
	assert.Equal(t, metav1.ConditionFalse, held().Status, "it was accepted, or the objects are there again")
	assert.Empty(t, warnings())
	say(s.losing().Verdict)
	assert.Len(t, warnings(), 1, "another loss is told of again")
}

func TestAPolicyThatWaitsIsToldOfOnce(t *testing.T) {
	s := newSituation("member1").bound(0, up, "member1")
	s.Placement.Generation, s.Verdict.Generation, s.Policy.Status.ObservedCRPGeneration = 2, 2, 2
	s.Policy.Annotations = map[string]string{placementv1beta1.PolicyWaitsAnnotation: "0", placementv1beta1.CRPGenerationAnnotation: "1"}
	b := newBench(t, stored(s)...)
	b.reconcile(t)
	assert.Contains(t, b.told(), "PlacementPolicyWaits")
	policy := &placementv1beta1.ClusterSchedulingPolicySnapshot{}
	require.NoError(t, b.hub.Get(t.Context(), client.ObjectKey{Name: "crp-0"}, policy))
	policy.Status.Conditions[0].Message = "found all cluster needed as specified by the scheduling policy, found 1 cluster(s), and something else"
	require.NoError(t, b.hub.Status().Update(t.Context(), policy))
	b.clock.SetTime(now.Add(time.Minute))
	b.reconcile(t)
	said := meta.FindStatusCondition(b.placement(t).Status.Conditions, "ClusterResourcePlacementScheduled")
	require.Contains(t, said.Message, "something else")
	assert.NotContains(t, b.told(), "PlacementPolicyWaits", "it is the same wait")
}

func TestAnOverrideSnapshotWakesWhoRequiresOrHasPickedIt(t *testing.T) {
	var objects []client.Object
	for name, change := range map[string]func(p *placementv1beta1.ClusterResourcePlacement){
		"requires": func(p *placementv1beta1.ClusterResourcePlacement) {
			p.Spec.RequiredOverrides = []placementv1beta1.RequiredOverride{{Name: "image"}}
		},
		"requires-other": func(p *placementv1beta1.ClusterResourcePlacement) {
			p.Spec.RequiredOverrides = []placementv1beta1.RequiredOverride{{Name: "image", Namespace: "web"}}
		},
		"picked": func(p *placementv1beta1.ClusterResourcePlacement) {
			p.Annotations = map[string]string{placementv1beta1.SelectionVerdictAnnotation: snapshot.Verdict{Overrides: []string{"image-0"}}.Encode()}
		},
		"picked-other": func(p *placementv1beta1.ClusterResourcePlacement) {
			p.Annotations = map[string]string{placementv1beta1.SelectionVerdictAnnotation: snapshot.Verdict{Overrides: []string{"web/image-0"}}.Encode()}
		},
		"without": func(*placementv1beta1.ClusterResourcePlacement) {},
	} {
		p := &placementv1beta1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: name}}
		change(p)
		objects = append(objects, p)
	}
	b := newBench(t, objects...)
	named := func(requests []ctrl.Request) (names []string) {
		for _, request := range requests {
			names = append(names, request.Name)
		}
		return names
	}
	to := requester{client: b.client}
	assert.ElementsMatch(t, []string{"requires", "picked", "made-for"}, named(to.requestOverridden(t.Context(), fixture.OverrideSnapshot("image", "image-0", "made-for"))))
	assert.ElementsMatch(t, []string{"picked", "picked-other"}, named(to.requestAllOverridden(t.Context(), nil)))
}

func TestReconcileProjectsAndTellsOfEachStep(t *testing.T) {
	b := newBench(t, stored(newSituation("member1").bound(0, up, "member1"))...)
	b.reconcile(t)
	placement := b.placement(t)
	assert.Contains(t, placement.Finalizers, placementv1beta1.PlacementCleanupFinalizer)
	assert.True(t, meta.IsStatusConditionTrue(placement.Status.Conditions, "ClusterResourcePlacementAvailable"))
	assert.Equal(t, []placementv1beta1.ResourceIdentifier{
		{Version: "v1", Kind: "Namespace", Name: "web"},
		{Group: "apps", Version: "v1", Kind: "Deployment", Namespace: "web", Name: "front"},
	}, placement.Status.SelectedResources)
	assert.Equal(t, []string{"PlacementRolloutStarted", "PlacementOverriddenSucceeded", "PlacementWorkSynchronized",
		"PlacementApplied", "PlacementAvailable", "PlacementRolloutCompleted"}, b.told())
	assert.Empty(t, b.pokes.causes, "a settled placement is left alone")

	b.clock.SetTime(now.Add(time.Minute))
	b.reconcile(t)
	assert.Equal(t, 1, b.statusWrites, "what does not change is not written")
	assert.Empty(t, b.told())
}

func TestReconcileSpacesStatusWrites(t *testing.T) {
	b := newBench(t, stored(newSituation("member1").bound(0, notUp, "member1"))...)
	b.reconcile(t)
	require.Equal(t, 1, b.statusWrites)
	become := func(state metav1.Condition) {
		binding := &placementv1beta1.ClusterResourceBinding{}
		require.NoError(t, b.hub.Get(t.Context(), client.ObjectKey{Name: placementv1beta1.BindingName("crp", uid, "member1")}, binding))
		binding.Status.Conditions = newSituation("member1").bound(0, state, "member1").Bindings[0].GetBindingStatus().Conditions
		require.NoError(t, b.hub.Status().Update(t.Context(), binding))
	}
	become(up)
	b.clock.SetTime(now.Add(100 * time.Millisecond))
	b.reconcile(t)
	assert.Equal(t, 2, b.statusWrites, "that it is available is said at once")

	become(notUp)
	b.clock.SetTime(now.Add(200 * time.Millisecond))
	assert.Equal(t, 800*time.Millisecond, b.reconcile(t).RequeueAfter)
	assert.Equal(t, 2, b.statusWrites, "not a third time within the second")
	b.clock.SetTime(now.Add(1100 * time.Millisecond))
	b.reconcile(t)
	assert.Equal(t, 3, b.statusWrites)
}

func TestReconcilePokesAndShowsWhenNobodyAnswers(t *testing.T) {
	s := newSituation()
	s.Placement.Generation = 2
	b := newBench(t, stored(s)...)
	b.pokes.away = true
	result := b.reconcile(t)
	assert.GreaterOrEqual(t, result.RequeueAfter, 5*time.Second)
	reachable := meta.FindStatusCondition(b.placement(t).Status.Conditions, placementv1beta1.ConditionTypeEngineReachable)
	require.NotNil(t, reachable)
	assert.Equal(t, placementv1beta1.ReasonTemporalUnreachable, reachable.Reason)

	b.pokes.away = false
	b.clock.SetTime(now.Add(10 * time.Second))
	b.reconcile(t)
	assert.Equal(t, []string{wf.CauseSpec}, b.pokes.causes)
	assert.True(t, meta.IsStatusConditionTrue(b.placement(t).Status.Conditions, placementv1beta1.ConditionTypeEngineReachable))
}

func TestDeletionGoesFromBindingsToSnapshotsToTheFinalizer(t *testing.T) {
	s := newSituation("member1", "member2").bound(0, up, "member1", "member2")
	s.Placement.Finalizers = []string{placementv1beta1.PlacementCleanupFinalizer}
	b := newBench(t, stored(s)...)
	require.NoError(t, b.hub.Delete(t.Context(), b.placement(t)))
	b.reconcile(t)

	var bindings placementv1beta1.ClusterResourceBindingList
	require.NoError(t, b.hub.List(t.Context(), &bindings))
	require.Len(t, bindings.Items, 2)
	for i := range bindings.Items {
		assert.False(t, bindings.Items[i].DeletionTimestamp.IsZero())
	}
	b.reconcile(t)
	require.NoError(t, b.hub.Get(t.Context(), client.ObjectKey{Name: "crp-0-snapshot"}, &placementv1beta1.ClusterResourceSnapshot{}), "snapshots stay while bindings do")

	for i := range bindings.Items {
		bindings.Items[i].Finalizers = nil
		require.NoError(t, b.hub.Update(t.Context(), &bindings.Items[i]))
	}
	b.reconcile(t)
	for name, object := range map[string]client.Object{
		"crp-0-snapshot": &placementv1beta1.ClusterResourceSnapshot{},
		"crp-0":          &placementv1beta1.ClusterSchedulingPolicySnapshot{},
		"crp":            &placementv1beta1.ClusterResourcePlacement{},
	} {
		assert.True(t, apierrors.IsNotFound(b.hub.Get(t.Context(), client.ObjectKey{Name: name}, object)), name)
	}
	assert.Empty(t, b.pokes.causes, "deletion needs no workflow")
}

func TestCopiesOfTheStatusGoWithTheirPlacement(t *testing.T) {
	s := newSituation()
	s.Placement.Finalizers = []string{placementv1beta1.PlacementCleanupFinalizer}
	s.Placement.Spec.StatusReportingScope = placementv1beta1.NamespaceAccessible
	copyIn := func(namespace, owner string) client.Object {
		return &placementv1beta1.ClusterResourcePlacementStatus{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "crp", OwnerReferences: []metav1.OwnerReference{
			{APIVersion: "v1", Kind: "ClusterResourcePlacement", Name: owner, UID: "before the hub was restored", Controller: new(true)},
		}}}
	}
	b := newBench(t, append(stored(s), copyIn("app", "crp"), copyIn("else", "other"))...)
	require.NoError(t, b.hub.Delete(t.Context(), b.placement(t)))
	b.reconcile(t)
	left := &placementv1beta1.ClusterResourcePlacementStatusList{}
	require.NoError(t, b.hub.List(t.Context(), left))
	require.Len(t, left.Items, 1)
	assert.Equal(t, "else", left.Items[0].Namespace)
	assert.True(t, apierrors.IsNotFound(b.hub.Get(t.Context(), client.ObjectKey{Name: "crp"}, &placementv1beta1.ClusterResourcePlacement{})))
}

func TestGatherPrefersTheCompleteSnapshot(t *testing.T) {
	s := newSituation("member1").bound(0, up, "member1")
	objects := stored(s)
	incomplete := objects[2].(*placementv1beta1.ClusterResourceSnapshot).DeepCopy()
	incomplete.Name = "crp-1-snapshot"
	incomplete.UID = "snapshot-1"
	incomplete.Labels[placementv1beta1.ResourceIndexLabel] = "1"
	incomplete.Annotations[placementv1beta1.NumberOfResourceSnapshotsAnnotation] = "2"
	stranger := incomplete.DeepCopy()
	stranger.Name = "crp-9-snapshot"
	stranger.UID = "snapshot-9"
	stranger.Labels[placementv1beta1.ResourceIndexLabel] = "9"
	stranger.Annotations[placementv1beta1.NumberOfResourceSnapshotsAnnotation] = "1"
	stranger.OwnerReferences[0].UID = "an earlier placement"
	b := newBench(t, append(objects, incomplete, stranger)...)
	facts, err := Gather(t.Context(), b.hub, b.placement(t), Gates{})
	require.NoError(t, err)
	assert.Equal(t, Snapshot{Name: "crp-0-snapshot", UID: "snapshot-0", Parts: 1}, facts.Latest)
	assert.Len(t, facts.Bindings, 1)
	require.NotNil(t, facts.Policy)
}

func TestAFailedClusterIsToldOfOnce(t *testing.T) {
	failing := func(cluster, conditionType string) placementv1beta1.PerClusterPlacementStatus {
		return placementv1beta1.PerClusterPlacementStatus{ClusterName: cluster, FailedPlacements: []placementv1beta1.FailedResourcePlacement{
			{Condition: metav1.Condition{Type: conditionType, Status: metav1.ConditionFalse}},
		}}
	}
	before := []placementv1beta1.PerClusterPlacementStatus{failing("old", placementv1beta1.ConditionTypeApplied)}
	after := append(before,
		failing("waiting", placementv1beta1.ConditionTypeAvailable), failing("new", placementv1beta1.ConditionTypeApplied))
	over := failing("over", placementv1beta1.ConditionTypeAvailable)
	over.FailedPlacements[0].Condition.Reason = placementv1beta1.ReasonManifestFailed
	failures := newFailures(before, append(after, over))
	require.Len(t, failures, 2)
	assert.Equal(t, "new", failures[0].cluster)
	assert.Equal(t, "over", failures[1].cluster, "such as a Job that has failed for good")
}
