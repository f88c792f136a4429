package bind_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/fleetflow/fleetflow/activities/bind"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/test/fixture"
)

const inService = "example.com/in-service"

// Whatever decides a change: the same is asked before it is written.
func TestEveryWriteOfAStrategyPassesOneGuard(t *testing.T) {
	for sentence, test := range map[string]struct {
		superseded, closed, hooked, inStage bool
		start                               fleetflowv1alpha1.Start
		// written, state and waits are what becomes of an update; of a removal, written says whether the binding is gone.
		written, waits bool
		update, remove placementv1beta1.LifecycleState
	}{
		"nothing stands in its way":         {start: "x", written: true},
		"it is not wanted any more":         {start: "x", superseded: true},
		"the cluster is closed":             {start: "x", closed: true},
		"what is no start is not asked for": {closed: true, superseded: true, written: true},
		"a hook holds it":                   {start: "x", hooked: true, waits: true},
		"a hook holds it in a stage, which takes the cluster out of service": {start: "x", hooked: true, inStage: true, waits: true,
			update: placementv1beta1.LifecyclePreparingUpdate, remove: placementv1beta1.LifecyclePreparingRemove},
	} {
		t.Run(sentence, func(t *testing.T) {
			p := placement()
			b := binding("old", placementv1beta1.BindingStateBound, "crp-0-snapshot", nil)
			if test.hooked {
				p = hookedPlacement()
				b.Labels[inService] = "yes"
			}
			change := func(do func(*bind.Writer, *placementv1beta1.ClusterResourceBinding) (bind.Outcome, error)) *placementv1beta1.ClusterResourceBinding {
				hub := fixture.NewClientBuilder(fixture.Scheme(t)).WithObjects(b.DeepCopy(), &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "old"}}).Build()
				w := &bind.Writer{
					Client: hub, Live: hub, Clock: clocktesting.NewFakePassiveClock(now), Placement: p, InStage: test.inStage,
					MayWrite: func(context.Context, fleetflowv1alpha1.Start) (bool, error) { return !test.superseded, nil },
					Forbids:  func(context.Context, string, fleetflowv1alpha1.Start) (bool, error) { return test.closed, nil },
				}
				from := &placementv1beta1.ClusterResourceBinding{}
				require.NoError(t, hub.Get(t.Context(), client.ObjectKeyFromObject(b), from))
				out, err := do(w, from)
				require.NoError(t, err)
				assert.Equal(t, test.written, out.Written)
				assert.Equal(t, test.superseded && test.start != "", out.Superseded)
				assert.Equal(t, test.waits, out.Wait != nil)
				stored := &placementv1beta1.ClusterResourceBinding{}
				if hub.Get(t.Context(), client.ObjectKeyFromObject(b), stored) != nil {
					return nil
				}
				return stored
			}
			updated := change(func(w *bind.Writer, from *placementv1beta1.ClusterResourceBinding) (bind.Outcome, error) {
				return w.Update(t.Context(), from, bind.Target{Snapshot: "crp-1-snapshot"}, test.start)
			})
			assert.Equal(t, test.written, updated.Spec.ResourceSnapshotName == "crp-1-snapshot")
			at, _ := rules.LifecycleStateOf(updated)
			assert.Equal(t, test.update, at)
			removed := change(func(w *bind.Writer, from *placementv1beta1.ClusterResourceBinding) (bind.Outcome, error) {
				return w.Remove(t.Context(), from, test.start)
			})
			require.Equal(t, test.written, removed == nil)
			if removed != nil {
				at, _ = rules.LifecycleStateOf(removed)
				assert.Equal(t, test.remove, at)
			}
		})
	}
}

// The scheduler marks what is to go, and the safety catch keeps it from marking what nothing explains.
func TestOnlyAnEvictionRemovesWhatTheSchedulerHasNotLetGo(t *testing.T) {
	for _, test := range []struct {
		state  placementv1beta1.BindingState
		start  fleetflowv1alpha1.Start
		stands bool
	}{
		{placementv1beta1.BindingStateBound, fleetflowv1alpha1.StartRemovals, true},
		{placementv1beta1.BindingStateScheduled, fleetflowv1alpha1.StartRemovals, true},
		{placementv1beta1.BindingStateUnscheduled, fleetflowv1alpha1.StartRemovals, false},
		{placementv1beta1.BindingStateBound, fleetflowv1alpha1.StartEvictions, false},
	} {
		hub := fixture.NewClientBuilder(fixture.Scheme(t)).WithObjects(binding("old", test.state, "crp-0-snapshot", nil)).Build()
		w := &bind.Writer{
			Client: hub, Live: hub, Clock: clocktesting.NewFakePassiveClock(now), Placement: placement(),
			MayWrite: func(context.Context, fleetflowv1alpha1.Start) (bool, error) { return true, nil },
			Forbids:  func(context.Context, string, fleetflowv1alpha1.Start) (bool, error) { return false, nil },
		}
		from := &placementv1beta1.ClusterResourceBinding{}
		require.NoError(t, hub.Get(t.Context(), client.ObjectKey{Name: "crp-old"}, from))
		out, err := w.Remove(t.Context(), from, test.start)
		require.NoError(t, err)
		assert.Equal(t, bind.Outcome{Written: !test.stands}, out)
		err = hub.Get(t.Context(), client.ObjectKey{Name: "crp-old"}, from)
		assert.Equal(t, test.stands, err == nil, "%s by %s", test.state, test.start)
	}
}

// What a member has reported goes along, whichever strategy removes the binding.
func TestARemovalHandsOverWhatWasReported(t *testing.T) {
	hub := fixture.NewClientBuilder(fixture.Scheme(t)).
		WithObjects(left(), binding("new", placementv1beta1.BindingStateScheduled, "", carrying("1")), work("2")).Build()
	w := &bind.Writer{Client: hub, Live: hub, Clock: clocktesting.NewFakePassiveClock(now), Placement: placement(), InStage: true}
	old := &placementv1beta1.ClusterResourceBinding{}
	require.NoError(t, hub.Get(t.Context(), client.ObjectKey{Name: "crp-old"}, old))
	out, err := w.Remove(t.Context(), old, "")
	require.NoError(t, err)
	assert.True(t, out.Written)
	replacement := &placementv1beta1.ClusterResourceBinding{}
	require.NoError(t, hub.Get(t.Context(), client.ObjectKey{Name: "crp-new"}, replacement))
	assert.Equal(t, "2", rules.PreservedStateOf(replacement)[deed]["job"])
}

// A write that is refused is told from a read that is, and from a write that comes too late.
func TestOnlyAWriteIsRefused(t *testing.T) {
	denied := apierrors.NewForbidden(placementv1beta1.GroupVersion.WithResource("clusterresourcebindings").GroupResource(), "crp-old", nil)
	hub := fixture.NewClientBuilder(fixture.Scheme(t)).WithObjects(left()).WithInterceptorFuncs(interceptor.Funcs{
		Delete: func(context.Context, client.WithWatch, client.Object, ...client.DeleteOption) error { return denied },
	}).Build()
	w := &bind.Writer{Client: hub, Live: hub, Clock: clocktesting.NewFakePassiveClock(now), Placement: placement()}
	_, err := w.Remove(t.Context(), left(), "")
	var refused *bind.RefusedError
	require.ErrorAs(t, err, &refused)
	assert.Equal(t, denied.ErrStatus.Message, refused.Why)
	replaced := fixture.NewClientBuilder(fixture.Scheme(t)).
		WithObjects(left(), binding("new", placementv1beta1.BindingStateScheduled, "", carrying("1")), work("2")).
		WithInterceptorFuncs(interceptor.Funcs{
			Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
				return denied
			},
		}).Build()
	old := &placementv1beta1.ClusterResourceBinding{}
	require.NoError(t, replaced.Get(t.Context(), client.ObjectKey{Name: "crp-old"}, old))
	_, err = (&bind.Writer{Client: replaced, Live: replaced, Clock: w.Clock, Placement: placement()}).Remove(t.Context(), old, "")
	require.ErrorAs(t, err, &refused, "state that cannot be handed over is not lost")
	require.NoError(t, replaced.Get(t.Context(), client.ObjectKey{Name: "crp-old"}, old))
	w.MayWrite = func(context.Context, fleetflowv1alpha1.Start) (bool, error) { return false, denied }
	_, err = w.Remove(t.Context(), left(), "x")
	require.ErrorIs(t, err, denied)
	assert.NotErrorAs(t, err, &refused)
}

// hookedPlacement is a placement whose changes wait until a label is taken off the binding.
func hookedPlacement() *placementv1beta1.ClusterResourcePlacement {
	hook := &placementv1beta1.ClusterDrainHook{ClusterHook: placementv1beta1.ClusterHook{LabelsHandler: map[string]placementv1beta1.HookLabelValue{inService: "yes"}}}
	p := placement()
	p.Spec.Strategy.Lifecycle = &placementv1beta1.ClusterLifecycle{PreUpdate: hook, PreRemove: hook}
	return p
}

// With lifecycle hooks, whatever changes of a binding may be an answer: no write passes over it.
func TestWithHooksNothingIsWrittenToABindingThatHasChanged(t *testing.T) {
	stale := binding("old", placementv1beta1.BindingStateBound, "crp-0-snapshot", nil)
	hub := fixture.APIServer(t, stale)
	require.NoError(t, hub.Get(t.Context(), client.ObjectKey{Name: "crp-old"}, stale))
	changed := stale.DeepCopy()
	changed.Labels[inService] = "yes"
	require.NoError(t, hub.Update(t.Context(), changed))
	w := &bind.Writer{Client: hub, Live: hub, Clock: clocktesting.NewFakePassiveClock(now), Placement: hookedPlacement()}
	_, err := w.Update(t.Context(), stale, bind.Target{Snapshot: "crp-1-snapshot"}, "")
	require.ErrorIs(t, err, bind.ErrFenced)
	_, err = w.Enter(t.Context(), stale, placementv1beta1.LifecyclePreparingUpdate, "", nil)
	require.ErrorIs(t, err, bind.ErrFenced)
	_, err = w.Remove(t.Context(), stale, "")
	require.ErrorIs(t, err, bind.ErrFenced)
}

// A run takes over what is on a cluster as it should be, without a hook; a rolling update is not asked for that.
func TestAStageTakesOverWhatIsThereAlready(t *testing.T) {
	for inStage, waits := range map[bool]bool{true: false, false: true} {
		there := binding("old", placementv1beta1.BindingStateBound, "crp-1-snapshot", nil)
		there.Labels[inService] = "yes"
		hub := fixture.NewClientBuilder(fixture.Scheme(t)).WithObjects(there).Build()
		require.NoError(t, hub.Get(t.Context(), client.ObjectKey{Name: "crp-old"}, there))
		w := &bind.Writer{Client: hub, Live: hub, Clock: clocktesting.NewFakePassiveClock(now), Placement: hookedPlacement(), InStage: inStage}
		out, err := w.Update(t.Context(), there, bind.Target{Snapshot: "crp-1-snapshot"}, "")
		require.NoError(t, err)
		assert.Equal(t, waits, out.Wait != nil)
		assert.Equal(t, !waits, out.Written)
	}
}

// An update says what becomes of resources that leave.
func TestAnUpdateSaysWhatBecomesOfWhatLeaves(t *testing.T) {
	there := binding("old", placementv1beta1.BindingStateBound, "crp-0-snapshot",
		map[string]string{placementv1beta1.RemovedResourcesAnnotation: string(placementv1beta1.DeletePropagationPolicyAbandon)})
	hub := fixture.NewClientBuilder(fixture.Scheme(t)).WithObjects(there).Build()
	require.NoError(t, hub.Get(t.Context(), client.ObjectKey{Name: "crp-old"}, there))
	w := &bind.Writer{Client: hub, Live: hub, Clock: clocktesting.NewFakePassiveClock(now), Placement: placement()}
	out, err := w.Update(t.Context(), there, bind.Target{Snapshot: "crp-1-snapshot"}, "")
	require.NoError(t, err)
	assert.Equal(t, string(placementv1beta1.DeletePropagationPolicyDelete), out.Binding.GetAnnotations()[placementv1beta1.RemovedResourcesAnnotation])
}
