package binding

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/fleetflow/fleetflow/activities/envelope"
	"github.com/fleetflow/fleetflow/activities/workmodel"
	"github.com/fleetflow/fleetflow/activities/worksync"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/test/fixture"
)

const placementUID = types.UID("placement-uid")

var (
	start = time.Date(2025, 3, 17, 21, 0, 0, 0, time.UTC)
	name  = placementv1beta1.BindingName("app", placementUID, "member1")
)

// bench is a reconciler with the real writer of Works on a fake hub.
type bench struct {
	*Reconciler
	hub          client.Client
	clock        *clocktesting.FakePassiveClock
	events       *events.FakeRecorder
	options      Options
	statusWrites int
	createFails  error
}

// noRules lets envelopes hold what they may hold without a hub's own rules.
func noRules(context.Context) (envelope.Rules, error) { return envelope.Rules{}, nil }

func newBench(t *testing.T, objects ...client.Object) *bench {
	t.Helper()
	scheme := fixture.Scheme(t)
	b := &bench{clock: clocktesting.NewFakePassiveClock(start), events: events.NewFakeRecorder(10)}
	b.options = Options{ForceDeleteWaitTime: 15 * time.Minute, Events: b.events}
	base := fixture.Index(fixture.NewClientBuilder(scheme)).WithObjects(objects...).
		WithStatusSubresource(&placementv1beta1.ClusterResourceBinding{}, &placementv1beta1.Work{}).Build()
	b.hub = interceptor.NewClient(base, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			if b.createFails != nil {
				return b.createFails
			}
			o.SetUID(types.UID("uid of " + o.GetName()))
			return c.Create(ctx, o, opts...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			b.statusWrites++
			return c.SubResource(sub).Patch(ctx, o, p, opts...)
		},
	})
	b.Reconciler = NewReconciler(b.hub, b.hub, worksync.NewSyncer(b.hub, b.hub, b.clock, noRules), b.clock, b.options)
	return b
}

func fleet() []client.Object {
	snapshot := &placementv1beta1.ClusterResourceSnapshot{ObjectMeta: metav1.ObjectMeta{
		Name: "app-0-snapshot", UID: "snapshot",
		Labels:      map[string]string{placementv1beta1.ResourceIndexLabel: "0"},
		Annotations: map[string]string{placementv1beta1.NumberOfResourceSnapshotsAnnotation: "1"},
	}}
	return []client.Object{
		&placementv1beta1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: "app", UID: placementUID}},
		&clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "member1", Finalizers: []string{clusterv1beta1.MemberClusterFinalizer}}},
		snapshot,
		&placementv1beta1.ClusterResourceBinding{
			ObjectMeta: metav1.ObjectMeta{
				Name: name, UID: "binding-1", Generation: 2, Finalizers: []string{placementv1beta1.WorkFinalizer},
				Labels: map[string]string{placementv1beta1.ParentPlacementLabel: "app"},
			},
			Spec: placementv1beta1.ResourceBindingSpec{
				State: placementv1beta1.BindingStateBound, ResourceSnapshotName: "app-0-snapshot", TargetCluster: "member1",
			},
		},
	}
}

func (b *bench) tryReconcile(t *testing.T) (ctrl.Result, error) {
	t.Helper()
	return b.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: name}})
}

func (b *bench) reconcile(t *testing.T) ctrl.Result {
	t.Helper()
	result, err := b.tryReconcile(t)
	require.NoError(t, err)
	return result
}

func (b *bench) later(by time.Duration) { b.clock.SetTime(b.clock.Now().Add(by)) }

func (b *bench) binding(t *testing.T) *placementv1beta1.ClusterResourceBinding {
	t.Helper()
	binding := &placementv1beta1.ClusterResourceBinding{}
	require.NoError(t, b.hub.Get(t.Context(), client.ObjectKey{Name: name}, binding))
	return binding
}

func (b *bench) condition(t *testing.T, conditionType string) *metav1.Condition {
	t.Helper()
	return meta.FindStatusCondition(b.binding(t).Status.Conditions, conditionType)
}

func (b *bench) list(t *testing.T) []placementv1beta1.Work {
	t.Helper()
	var list placementv1beta1.WorkList
	require.NoError(t, b.hub.List(t.Context(), &list))
	return list.Items
}

// sync writes the Works as the activity that wrote the binding does.
func (b *bench) sync(t *testing.T) {
	t.Helper()
	require.NoError(t, b.works.Sync(t.Context(), b.binding(t)))
}

// report answers for the member.
func (b *bench) report(t *testing.T, available metav1.ConditionStatus) {
	t.Helper()
	work := &b.list(t)[0]
	for conditionType, status := range map[string]metav1.ConditionStatus{
		placementv1beta1.ConditionTypeApplied: metav1.ConditionTrue, placementv1beta1.ConditionTypeAvailable: available,
	} {
		meta.SetStatusCondition(&work.Status.Conditions, metav1.Condition{
			Type: conditionType, Status: status, Reason: "Reported", ObservedGeneration: work.Generation,
		})
	}
	require.NoError(t, b.hub.Status().Update(t.Context(), work))
}

func TestAQuickMemberCostsOneStatusWrite(t *testing.T) {
	b := newBench(t, fleet()...)
	assert.Equal(t, interimAtLeast, b.reconcile(t).RequeueAfter, "the binding was just written, its Works are about to be")
	b.sync(t)
	b.later(50 * time.Millisecond)
	b.reconcile(t)
	assert.Zero(t, b.statusWrites, "what is on its way is held back")
	b.report(t, metav1.ConditionTrue)
	b.reconcile(t)
	assert.Equal(t, 1, b.statusWrites)
	assert.Equal(t, metav1.ConditionTrue, b.condition(t, placementv1beta1.ConditionTypeAvailable).Status)
	b.reconcile(t)
	assert.Equal(t, 1, b.statusWrites, "what does not change is not written")
}

func TestASlowMemberIsShownOnItsWay(t *testing.T) {
	b := newBench(t, fleet()...)
	b.sync(t)
	assert.Equal(t, interimAtLeast, b.reconcile(t).RequeueAfter)
	b.later(interimAtLeast)
	b.reconcile(t)
	assert.Equal(t, placementv1beta1.ReasonApplyInProgress, b.condition(t, placementv1beta1.ConditionTypeApplied).Reason)
}

func TestClustersThatTakeAsLongAsOthersCostOneStatusWrite(t *testing.T) {
	b := newBench(t, fleet()...)
	const slow = 2 * time.Second // the hub is busy
	for round := range 12 {
		snapshot := fleet()[2].(*placementv1beta1.ClusterResourceSnapshot)
		snapshot.Name = fmt.Sprintf("app-%d-snapshot", round+1)
		snapshot.UID = types.UID(fmt.Sprint("snapshot ", round+1))
		snapshot.Labels[placementv1beta1.ResourceIndexLabel] = fmt.Sprint(round + 1)
		require.NoError(t, b.hub.Create(t.Context(), snapshot))
		binding := b.binding(t)
		binding.Spec.ResourceSnapshotName = snapshot.Name
		binding.Generation++
		require.NoError(t, b.hub.Update(t.Context(), binding))
		b.reconcile(t)
		b.later(slow)
		b.reconcile(t)
		b.sync(t)
		b.report(t, metav1.ConditionTrue)
		b.reconcile(t)
	}
	assert.Equal(t, metav1.ConditionTrue, b.condition(t, placementv1beta1.ConditionTypeAvailable).Status)
	assert.InDelta(t, 12+3, b.statusWrites, 2, "only the first are told of on their way")
	assert.InDelta(t, 2*slow, b.latency.holdBackTime(), float64(time.Second))
}

func TestALossIsToldOfSoonHoweverLongChangesTake(t *testing.T) {
	b := newBench(t, fleet()...)
	b.sync(t)
	b.report(t, metav1.ConditionTrue)
	b.reconcile(t)
	for range 50 {
		b.latency.observeLatency(5 * time.Second) // a large rollout kept the hub busy
	}
	before := b.latency.holdBackTime()
	b.report(t, metav1.ConditionFalse)
	assert.LessOrEqual(t, b.reconcile(t).RequeueAfter, interimAtLeast)
	b.later(interimAtLeast)
	b.reconcile(t)
	assert.Equal(t, metav1.ConditionFalse, b.condition(t, placementv1beta1.ConditionTypeAvailable).Status)

	b.later(20 * time.Second)
	b.report(t, metav1.ConditionTrue)
	b.reconcile(t)
	assert.Equal(t, metav1.ConditionTrue, b.condition(t, placementv1beta1.ConditionTypeAvailable).Status)
	assert.Equal(t, before, b.latency.holdBackTime(), "how long a cluster was down says nothing about how long changes take")
}

func TestAWorkThatSomebodyDeletesIsBackSoonHoweverLongChangesTake(t *testing.T) {
	b := newBench(t, fleet()...)
	b.sync(t)
	b.report(t, metav1.ConditionTrue)
	b.reconcile(t)
	for range 50 {
		b.latency.observeLatency(5 * time.Second)
	}
	work := &b.list(t)[0]
	work.Finalizers = nil
	require.NoError(t, b.hub.Update(t.Context(), work))
	require.NoError(t, b.hub.Delete(t.Context(), work))
	require.Empty(t, b.list(t))
	b.reconcile(t)
	b.later(interimAtLeast)
	b.reconcile(t)
	assert.Len(t, b.list(t), 1)
}

func TestWhyAWorkloadFailsIsToldSoonHoweverLongChangesTake(t *testing.T) {
	b := newBench(t, fleet()...)
	b.sync(t)
	for range 50 {
		b.latency.observeLatency(5 * time.Second)
	}
	b.report(t, metav1.ConditionFalse)
	require.Greater(t, b.reconcile(t).RequeueAfter, interimAtLeast, "nothing is known yet: the outcome is likely to overtake it")
	work := &b.list(t)[0]
	work.Status.ManifestConditions = []placementv1beta1.ManifestCondition{{Conditions: []metav1.Condition{
		{Type: placementv1beta1.ConditionTypeApplied, Status: metav1.ConditionTrue, Reason: "Reported"},
		{Type: placementv1beta1.ConditionTypeAvailable, Status: metav1.ConditionFalse, Reason: "Reported", Message: "1 of 1 pods: exit 3"},
		{Type: placementv1beta1.ConditionTypeFailing, Status: metav1.ConditionTrue, Reason: "Reported", Message: "1 of 1 pods: exit 3"},
	}}}
	require.NoError(t, b.hub.Status().Update(t.Context(), work))
	assert.LessOrEqual(t, b.reconcile(t).RequeueAfter, interimAtLeast)
	b.later(interimAtLeast)
	b.reconcile(t)
	require.NotEmpty(t, b.binding(t).Status.FailedPlacements)
	assert.Contains(t, b.binding(t).Status.FailedPlacements[0].Condition.Message, "exit 3")

	binding := b.binding(t)
	binding.Generation++
	require.NoError(t, b.hub.Update(t.Context(), binding))
	b.sync(t)
	work = &b.list(t)[0]
	work.Generation++
	require.NoError(t, b.hub.Update(t.Context(), work))
	assert.Greater(t, b.reconcile(t).RequeueAfter, interimAtLeast, "what is told is about the Work as it was before")
}

func TestWhatIsUsual(t *testing.T) {
	u := &latencyEWMA{}
	assert.Equal(t, interimAtLeast, u.holdBackTime())
	for range 50 {
		u.observeLatency(10 * time.Second)
	}
	assert.Equal(t, interimAtMost, u.holdBackTime())
	for range 50 {
		u.observeLatency(time.Second)
	}
	assert.InDelta(t, 2*time.Second, u.holdBackTime(), float64(10*time.Millisecond))
	u.observeLatency(time.Hour)
	assert.InDelta(t, 2*time.Second, u.holdBackTime(), float64(10*time.Millisecond), "a cluster that was away says nothing about the others")
}

func TestWorksThatNobodyWritesAreRepaired(t *testing.T) {
	b := newBench(t, fleet()...)
	b.reconcile(t)
	assert.Empty(t, b.list(t))
	b.later(interimAtLeast)
	b.reconcile(t)
	require.Len(t, b.list(t), 1)
	assert.True(t, workmodel.StateOf(b.binding(t), b.list(t)).Synced)
}

func TestASurplusWorkGoesWhenTheOthersAreApplied(t *testing.T) {
	b := newBench(t, fleet()...)
	b.sync(t)
	surplus := b.list(t)[0].DeepCopy()
	surplus.Name = "zz-surplus"
	surplus.ResourceVersion = ""
	surplus.Annotations[placementv1beta1.RevisionAnnotation] = "earlier"
	surplus.Annotations[placementv1beta1.BindingGenerationAnnotation] = "1"
	require.NoError(t, b.hub.Create(t.Context(), surplus))
	b.later(time.Minute)
	b.reconcile(t)
	b.later(time.Minute)
	b.reconcile(t)
	assert.True(t, b.list(t)[1].DeletionTimestamp.IsZero(), "what was in it may have moved and not have arrived")
	b.report(t, metav1.ConditionFalse)
	b.reconcile(t)
	assert.False(t, b.list(t)[1].DeletionTimestamp.IsZero())
}

func TestAFailureToWriteWorksIsShown(t *testing.T) {
	b := newBench(t, fleet()...)
	b.createFails = errors.New("namespace fleet-member-member1 is being terminated")
	b.reconcile(t)
	b.later(interimAtLeast)
	_, err := b.tryReconcile(t)
	require.ErrorContains(t, err, "being terminated")
	synchronized := b.condition(t, placementv1beta1.ConditionTypeWorkSynchronized)
	assert.Equal(t, placementv1beta1.ReasonSyncWorkFailed, synchronized.Reason)
	assert.Contains(t, synchronized.Message, "Failed to synchronize the work to the latest: ")
	assert.Contains(t, synchronized.Message, "being terminated")
}

func TestAnInvalidEnvelopeIsShownAndWaitedFor(t *testing.T) {
	objects := fleet()
	objects[2].(*placementv1beta1.ClusterResourceSnapshot).Spec.SelectedResources = []placementv1beta1.ResourceContent{{RawExtension: runtime.RawExtension{
		Raw: []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"e","namespace":"app","annotations":{"kubernetes-fleet.io/envelope-configmap":"true"}},"data":{"a.yaml":"{"}}`),
	}}}
	b := newBench(t, objects...)
	b.reconcile(t)
	b.later(interimAtLeast)
	assert.Zero(t, b.reconcile(t), "trying again would not help")
	synchronized := b.condition(t, placementv1beta1.ConditionTypeWorkSynchronized)
	assert.Equal(t, metav1.ConditionFalse, synchronized.Status)
	assert.Equal(t, placementv1beta1.ReasonSyncWorkFailed, synchronized.Reason)
	assert.Contains(t, synchronized.Message, `Failed to synchronize the work to the latest: ConfigMap app/e: key "a.yaml": it is neither YAML nor JSON`)
	require.Len(t, b.list(t), 1, "what is in no envelope is placed")

	writes := b.statusWrites
	b.report(t, metav1.ConditionTrue)
	assert.Zero(t, b.reconcile(t))
	assert.Equal(t, synchronized, b.condition(t, placementv1beta1.ConditionTypeWorkSynchronized))
	assert.Equal(t, writes, b.statusWrites)

	b.Reconciler = NewReconciler(b.hub, b.hub, worksync.NewSyncer(b.hub, b.hub, b.clock, noRules), b.clock, b.options) // the process starts anew
	for b.reconcile(t).RequeueAfter > 0 {
		b.later(interimAtLeast)
	}
	assert.Equal(t, writes, b.statusWrites, "a restart does not make the message come and go")
}

func TestABindingIsHeldUntilItsWorksAreGone(t *testing.T) {
	b := newBench(t, fleet()...)
	b.sync(t)
	require.NoError(t, b.hub.Delete(t.Context(), b.binding(t)))
	b.reconcile(t)
	work := &b.list(t)[0]
	require.False(t, work.DeletionTimestamp.IsZero())
	assert.Contains(t, b.binding(t).Finalizers, placementv1beta1.WorkFinalizer)

	work.Finalizers = nil // the member has cleaned up
	require.NoError(t, b.hub.Update(t.Context(), work))
	b.reconcile(t)
	err := b.hub.Get(t.Context(), client.ObjectKey{Name: name}, &placementv1beta1.ClusterResourceBinding{})
	assert.True(t, apierrors.IsNotFound(err))
}

func TestALeavingMemberLosesItsWorks(t *testing.T) {
	cases := map[string]struct {
		annotations map[string]string
		deleted     bool
	}{
		"by default what was placed is removed": {deleted: true},
		"unless the member keeps it":            {annotations: map[string]string{clusterv1beta1.KeepPlacedAnnotation: "true"}},
	}
	for sentence, tc := range cases {
		t.Run(sentence, func(t *testing.T) {
			objects := fleet()
			objects[1].SetAnnotations(tc.annotations)
			b := newBench(t, append(objects, letterBox(metav1.ConditionTrue, clusterv1beta1.ReasonInternalMemberClusterJoined))...)
			b.sync(t)
			require.NoError(t, b.hub.Delete(t.Context(), objects[1]))
			b.later(time.Minute)
			b.reconcile(t)
			assert.Equal(t, tc.deleted, !b.list(t)[0].DeletionTimestamp.IsZero())
			assert.Contains(t, b.condition(t, placementv1beta1.ConditionTypeWorkSynchronized).Message, "leaving the fleet")
		})
	}
}

// letterBox says what the member's agent reports about its membership.
func letterBox(joined metav1.ConditionStatus, reason string) *clusterv1beta1.InternalMemberCluster {
	box := &clusterv1beta1.InternalMemberCluster{ObjectMeta: metav1.ObjectMeta{Namespace: clusterv1beta1.MemberNamespace("member1"), Name: "member1"}}
	box.Status.AgentStatus = []clusterv1beta1.AgentStatus{{Type: clusterv1beta1.MemberAgent, Conditions: []metav1.Condition{
		{Type: clusterv1beta1.ConditionTypeJoined, Status: joined, Reason: reason},
	}}}
	return box
}

func TestAMemberThatKeepsWhatItHasIsAskedToRemoveNothing(t *testing.T) {
	objects := fleet()
	objects[1].SetAnnotations(map[string]string{clusterv1beta1.KeepPlacedAnnotation: "true"})
	box := letterBox(metav1.ConditionTrue, clusterv1beta1.ReasonInternalMemberClusterJoined)
	b := newBench(t, append(objects, box)...)
	b.sync(t)
	require.NoError(t, b.hub.Delete(t.Context(), objects[1]))
	require.NoError(t, b.hub.Delete(t.Context(), b.binding(t))) // its placement gives the cluster up
	b.reconcile(t)
	assert.True(t, b.list(t)[0].DeletionTimestamp.IsZero(), "the agent would clean up")
	assert.Contains(t, b.binding(t).Finalizers, placementv1beta1.WorkFinalizer)

	box.Status = letterBox(metav1.ConditionFalse, clusterv1beta1.ReasonInternalMemberClusterLeft).Status
	require.NoError(t, b.hub.Update(t.Context(), box))
	b.reconcile(t)
	assert.Empty(t, b.list(t), "no agent is left that would")
	b.reconcile(t)
	err := b.hub.Get(t.Context(), client.ObjectKey{Name: name}, &placementv1beta1.ClusterResourceBinding{})
	assert.True(t, apierrors.IsNotFound(err))
}

func TestABindingWithoutItsClusterOrPlacementIsRemoved(t *testing.T) {
	for missing, position := range map[string]int{"placement": 0, "cluster": 1} {
		t.Run(missing, func(t *testing.T) {
			objects := fleet()
			objects[1].SetFinalizers(nil)
			b := newBench(t, objects...)
			b.sync(t)
			require.NoError(t, b.hub.Delete(t.Context(), objects[position]))
			b.reconcile(t)
			assert.False(t, b.binding(t).DeletionTimestamp.IsZero())
			b.reconcile(t)
			b.reconcile(t)
			if missing == "cluster" {
				assert.Empty(t, b.list(t), "there is no member that could clean up")
				err := b.hub.Get(t.Context(), client.ObjectKey{Name: name}, &placementv1beta1.ClusterResourceBinding{})
				assert.True(t, apierrors.IsNotFound(err))
				return
			}
			assert.Len(t, b.list(t), 1, "the member cleans up first")
		})
	}
}

// suspend suspends clusters of the placement.
func (b *bench) suspend(t *testing.T, clusters ...string) {
	t.Helper()
	placement := &placementv1beta1.ClusterResourcePlacement{}
	require.NoError(t, b.hub.Get(t.Context(), client.ObjectKey{Name: "app"}, placement))
	placement.Spec.Strategy = &placementv1beta1.RolloutStrategy{Suspension: &placementv1beta1.Suspension{ClusterNames: clusters}}
	require.NoError(t, b.hub.Update(t.Context(), placement))
}

// clear lets the member let go of a Work that is being deleted.
func (b *bench) clear(t *testing.T) {
	t.Helper()
	work := &b.list(t)[0]
	work.Finalizers = nil
	require.NoError(t, b.hub.Update(t.Context(), work))
}

func TestTheWorksOfASuspendedClusterAreNeitherRepairedNorRemoved(t *testing.T) {
	b := newBench(t, fleet()...)
	b.sync(t)
	b.report(t, metav1.ConditionTrue)
	b.reconcile(t)
	b.suspend(t, "member1", "other")
	require.NoError(t, b.hub.Delete(t.Context(), &b.list(t)[0]))
	b.clear(t)
	b.later(time.Hour)
	b.reconcile(t)
	assert.Empty(t, b.list(t), "what a user deletes stays deleted")

	b.suspend(t, "other")
	b.later(b.reconcile(t).RequeueAfter)
	b.reconcile(t)
	require.Len(t, b.list(t), 1, "it is written once the cluster is left out")

	b.suspend(t, "member1")
	require.NoError(t, b.hub.Delete(t.Context(), b.binding(t)))
	b.reconcile(t)
	assert.Len(t, b.list(t), 1)
	assert.True(t, b.list(t)[0].DeletionTimestamp.IsZero(), "nothing is removed from it")
	b.suspend(t)
	b.reconcile(t)
	assert.False(t, b.list(t)[0].DeletionTimestamp.IsZero())
}

func TestTheEndOfAPlacementDoesNotWaitForSuspendedClusters(t *testing.T) {
	objects := fleet()
	placement := objects[0].(*placementv1beta1.ClusterResourcePlacement)
	placement.Spec.Strategy = &placementv1beta1.RolloutStrategy{Suspension: &placementv1beta1.Suspension{All: true}}
	placement.Finalizers = []string{"f"}
	placement.DeletionTimestamp = new(metav1.NewTime(start))
	b := newBench(t, objects...)
	b.sync(t)
	require.NoError(t, b.hub.Delete(t.Context(), b.binding(t)))
	b.reconcile(t)
	assert.False(t, b.list(t)[0].DeletionTimestamp.IsZero())
}

func TestChangesOfASuspensionConcernTheBindings(t *testing.T) {
	placement := func(s *placementv1beta1.Suspension) *placementv1beta1.ClusterResourcePlacement {
		return &placementv1beta1.ClusterResourcePlacement{Spec: placementv1beta1.PlacementSpec{Strategy: &placementv1beta1.RolloutStrategy{Suspension: s}}}
	}
	passes := func(before, after *placementv1beta1.ClusterResourcePlacement) bool {
		return onPlacementChanged().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after})
	}
	all := &placementv1beta1.Suspension{All: true}
	assert.True(t, passes(placement(nil), placement(all)))
	assert.True(t, passes(placement(all), &placementv1beta1.ClusterResourcePlacement{}))
	assert.False(t, passes(placement(all), placement(all.DeepCopy())))
}

func TestAClusterThatLeavesThePlacementKeepsWhatIsToBeAbandoned(t *testing.T) {
	for sentence, test := range map[string]struct {
		strategy placementv1beta1.DeleteStrategy
		deleting bool
		stays    bool
	}{
		"nothing is said": {placementv1beta1.DeleteStrategy{}, false, false},
		"what leaves is to be deleted, and what the placement leaves at its end is not": {
			placementv1beta1.DeleteStrategy{PropagationPolicy: "Abandon", RemovedResources: "Delete"}, false, false,
		},
		"what leaves is to be abandoned":    {placementv1beta1.DeleteStrategy{RemovedResources: "Abandon"}, false, true},
		"but the end of the placement does": {placementv1beta1.DeleteStrategy{RemovedResources: "Abandon"}, true, false},
	} {
		t.Run(sentence, func(t *testing.T) {
			objects := fleet()
			placement := objects[0].(*placementv1beta1.ClusterResourcePlacement)
			placement.Spec.Strategy = &placementv1beta1.RolloutStrategy{DeleteStrategy: &test.strategy}
			if test.deleting {
				placement.Finalizers = []string{"f"}
				placement.DeletionTimestamp = new(metav1.NewTime(start))
			}
			b := newBench(t, objects...)
			b.sync(t)
			require.NoError(t, b.hub.Delete(t.Context(), b.binding(t)))
			b.reconcile(t)
			work := b.list(t)[0]
			assert.False(t, work.DeletionTimestamp.IsZero())
			assert.Equal(t, test.stays, work.Annotations[placementv1beta1.DeletePropagationAnnotation] == "Abandon")
		})
	}
}

func TestAMemberThatLeavesTheFleetIsClearedByItsOwnOptions(t *testing.T) {
	objects := fleet()
	objects[0].(*placementv1beta1.ClusterResourcePlacement).Spec.Strategy = &placementv1beta1.RolloutStrategy{
		DeleteStrategy: &placementv1beta1.DeleteStrategy{RemovedResources: "Abandon"},
	}
	b := newBench(t, objects...)
	b.sync(t)
	require.NoError(t, b.hub.Delete(t.Context(), objects[1]))
	require.NoError(t, b.hub.Delete(t.Context(), b.binding(t)))
	b.reconcile(t)
	assert.Empty(t, b.list(t)[0].Annotations[placementv1beta1.DeletePropagationAnnotation])
}
