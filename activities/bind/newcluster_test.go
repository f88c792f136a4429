package bind_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/fleetflow/fleetflow/activities/bind"
	"github.com/fleetflow/fleetflow/activities/workmodel"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/test/fixture"
)

// takerWorld is a hub on which one copy is about to go because another cluster takes over.
type takerWorld struct {
	placement *placementv1beta1.ClusterResourcePlacement
	old, by   *clusterv1beta1.MemberCluster
	taker     *placementv1beta1.ClusterResourceBinding
	work      *placementv1beta1.Work
}

func fitMember(name string) *clusterv1beta1.MemberCluster {
	m := &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for _, kind := range []string{clusterv1beta1.ConditionTypeJoined, clusterv1beta1.ConditionTypeHealthy} {
		meta.SetStatusCondition(&m.Status.Conditions, metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: "Said"})
	}
	return m
}

func newTakerWorld() *takerWorld {
	w := &takerWorld{placement: placement(), old: fitMember("old"), by: fitMember("new")}
	w.placement.Spec.Strategy = &placementv1beta1.RolloutStrategy{}
	w.taker = binding("new", placementv1beta1.BindingStateBound, "crp-0-snapshot", map[string]string{"kept": "yes"})
	w.taker.Status.Conditions = []metav1.Condition{{Type: placementv1beta1.ConditionTypeAvailable, Status: metav1.ConditionTrue, Reason: "Said",
		LastTransitionTime: metav1.NewTime(now.Add(-time.Minute))}}
	w.work = &placementv1beta1.Work{ObjectMeta: metav1.ObjectMeta{
		Namespace: placementv1beta1.MemberNamespace("new"), Name: "work", Labels: map[string]string{placementv1beta1.ParentBindingLabel: w.taker.Name},
		Annotations: map[string]string{placementv1beta1.WorkCountAnnotation: "1", placementv1beta1.BindingUIDAnnotation: string(w.taker.UID)},
	}}
	for _, kind := range []string{placementv1beta1.ConditionTypeApplied, placementv1beta1.ConditionTypeAvailable} {
		meta.SetStatusCondition(&w.work.Status.Conditions, metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: "Said"})
	}
	return w
}

func TestACopyGoesOnlyOnceThatOfTheNewClusterIsSeenAvailable(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*takerWorld)
		// meanwhile changes the binding of the new cluster after it was read.
		meanwhile, goes bool
		// silent has the new cluster fall silent then.
		silent bool
		// snapshot is that of the run that removes; empty if a rolling update does.
		snapshot string
	}{
		"the new copy is what the run brings":     {goes: true, snapshot: "crp-0-snapshot", change: latestIs("crp-1-snapshot")},
		"the new copy is not what the run brings": {snapshot: "crp-1-snapshot"},
		"the new copy is not the latest":          {change: latestIs("crp-1-snapshot")},

		"the new copy is available":                         {goes: true},
		"the new cluster is silent":                         {change: func(w *takerWorld) { setHealth(w.by, metav1.ConditionUnknown) }},
		"the new cluster is ill":                            {change: func(w *takerWorld) { setHealth(w.by, metav1.ConditionFalse) }},
		"the new cluster is gone":                           {change: func(w *takerWorld) { w.by.Name = "other" }},
		"the new copy is gone":                              {change: func(w *takerWorld) { w.taker.Spec.TargetCluster = "other" }},
		"the new copy is about to go":                       {change: func(w *takerWorld) { w.taker.Spec.State = placementv1beta1.BindingStateUnscheduled }},
		"nothing was written to the new cluster":            {change: func(w *takerWorld) { w.work.Namespace = "elsewhere" }},
		"the new copy is not available":                     {change: func(w *takerWorld) { w.work.Status.Conditions[1].Status = metav1.ConditionFalse }},
		"it is not known whether the new copy is available": {change: func(w *takerWorld) { w.work.Status.Conditions = nil }},
		"the new copy has not been available for long": {change: func(w *takerWorld) {
			w.placement.Spec.Strategy.RollingUpdate = &placementv1beta1.RollingUpdateConfig{MinReadySeconds: new(int32(61))}
		}},
		"the new copy has been available for long": {goes: true, change: func(w *takerWorld) {
			w.placement.Spec.Strategy.RollingUpdate = &placementv1beta1.RollingUpdateConfig{MinReadySeconds: new(int32(60))}
		}},
		"the new cluster is out of service for an update": {change: func(w *takerWorld) {
			metav1.SetMetaDataLabel(&w.taker.ObjectMeta, placementv1beta1.LifecycleStateLabel, string(placementv1beta1.LifecyclePreparingUpdate))
		}},
		"a hook holds the new cluster until it is in service": {change: func(w *takerWorld) {
			hook := placementv1beta1.ClusterHook{LabelsHandler: map[string]placementv1beta1.HookLabelValue{"in-service": "yes"}}
			w.placement.Spec.Strategy.Lifecycle = &placementv1beta1.ClusterLifecycle{PreAvailable: &hook}
			metav1.SetMetaDataLabel(&w.taker.ObjectMeta, placementv1beta1.LifecycleStateLabel, string(placementv1beta1.LifecyclePreparingAvailable))
		}},
		"the new copy cannot be tracked, and was applied just now":    {change: notTrackable(now.Add(-59 * time.Second))},
		"the new copy cannot be tracked, and was applied a while ago": {goes: true, change: notTrackable(now.Add(-time.Minute))},
		"what is known of the new copy changes while it is looked at": {meanwhile: true},
		"the new cluster falls silent while its copy is looked at":    {silent: true},
		"the old cluster leaves the fleet, as a user has said":        {goes: true, change: func(w *takerWorld) { w.old.Name = "other"; setHealth(w.by, metav1.ConditionFalse) }},
	} {
		t.Run(name, func(t *testing.T) {
			world := newTakerWorld()
			if test.change != nil {
				test.change(world)
			}
			world.work.Annotations[placementv1beta1.RevisionAnnotation] = workmodel.Revision(world.taker)
			from := binding("old", placementv1beta1.BindingStateUnscheduled, "crp-0-snapshot", map[string]string{
				placementv1beta1.ReplacedByAnnotation: "new", placementv1beta1.ReplacementAskedAnnotation: "new"})
			hub := fixture.APIServer(t, from, world.old, world.by, world.taker, world.work)
			changed := false
			live := interceptor.NewClient(hub, interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, o ...client.ListOption) error {
				err := c.List(ctx, list, o...)
				_, works := list.(*placementv1beta1.WorkList)
				if of := (&client.ListOptions{}).ApplyOptions(o); works {
					require.NotNil(t, of.LabelSelector, "only the Works of the new copy are read")
					assert.Equal(t, placementv1beta1.ParentBindingLabel+"="+world.taker.Name, of.LabelSelector.String())
				}
				if works && test.meanwhile && !changed {
					changed = true
					said := world.taker.DeepCopy()
					require.NoError(t, hub.Get(ctx, client.ObjectKeyFromObject(said), said))
					said.Annotations["seen"] = "since"
					require.NoError(t, hub.Update(ctx, said))
				}
				if works && test.silent {
					said := world.by.DeepCopy()
					require.NoError(t, hub.Get(ctx, client.ObjectKeyFromObject(said), said))
					setHealth(said, metav1.ConditionUnknown)
					require.NoError(t, hub.Status().Update(ctx, said))
				}
				return err
			}})
			w := &bind.Writer{
				Client: hub, Live: live, Clock: clocktesting.NewFakePassiveClock(now), Placement: world.placement,
				MayWrite: func(context.Context, fleetflowv1alpha1.Start) (bool, error) { return true, nil },
				Forbids:  func(context.Context, string, fleetflowv1alpha1.Start) (bool, error) { return false, nil },
			}
			if test.snapshot != "" {
				w.SnapshotFor = func(string) string { return test.snapshot }
			}
			require.NoError(t, hub.Get(t.Context(), client.ObjectKeyFromObject(from), from))
			out, err := w.Remove(t.Context(), from, fleetflowv1alpha1.StartRemovals)
			require.NoError(t, err)
			assert.Equal(t, test.goes, out.Written)
			assert.Equal(t, !test.goes, out.Awaits != nil && out.Awaits.Cluster == "new", "it is told what is waited for")
			assert.Equal(t, test.goes, hub.Get(t.Context(), client.ObjectKeyFromObject(from), from) != nil, "the old binding is gone")
			if test.goes && world.old.Name == "old" {
				require.NoError(t, hub.Get(t.Context(), client.ObjectKeyFromObject(world.taker), world.taker))
				assert.Equal(t, "old", world.taker.Annotations[placementv1beta1.TookOverFromAnnotation])
			}
		})
	}
}

// A stage takes no cluster out of service for a copy that may not go yet, whatever its cache has said.
func TestNoHookIsAskedBeforeTheNewCopyIsSeenAvailable(t *testing.T) {
	for _, status := range []metav1.ConditionStatus{metav1.ConditionTrue, metav1.ConditionUnknown} {
		world := newTakerWorld()
		setHealth(world.by, status)
		world.work.Annotations[placementv1beta1.RevisionAnnotation] = workmodel.Revision(world.taker)
		hook := placementv1beta1.ClusterHook{LabelsHandler: map[string]placementv1beta1.HookLabelValue{"in-service": "yes"}}
		world.placement.Spec.Strategy.Lifecycle = &placementv1beta1.ClusterLifecycle{PreRemove: &placementv1beta1.ClusterDrainHook{ClusterHook: hook}}
		from := binding("old", placementv1beta1.BindingStateUnscheduled, "crp-0-snapshot", map[string]string{placementv1beta1.ReplacedByAnnotation: "new"})
		metav1.SetMetaDataLabel(&from.ObjectMeta, "in-service", "yes")
		hub := fixture.APIServer(t, from, world.old, world.by, world.taker, world.work)
		w := &bind.Writer{
			Client: hub, Live: hub, Clock: clocktesting.NewFakePassiveClock(now), Placement: world.placement, InStage: true,
			MayWrite: func(context.Context, fleetflowv1alpha1.Start) (bool, error) { return true, nil },
			Forbids:  func(context.Context, string, fleetflowv1alpha1.Start) (bool, error) { return false, nil },
		}
		require.NoError(t, hub.Get(t.Context(), client.ObjectKeyFromObject(from), from))
		out, err := w.Remove(t.Context(), from, fleetflowv1alpha1.StartRemovals)
		require.NoError(t, err)
		available := status == metav1.ConditionTrue
		assert.Equal(t, available, out.Wait != nil)
		assert.Equal(t, !available, out.Awaits != nil)
		require.NoError(t, hub.Get(t.Context(), client.ObjectKeyFromObject(from), from))
		assert.Equal(t, available, from.Labels[placementv1beta1.LifecycleStateLabel] == string(placementv1beta1.LifecyclePreparingRemove))
	}
}

func notTrackable(since time.Time) func(*takerWorld) {
	return func(w *takerWorld) {
		for i := range w.work.Status.Conditions {
			w.work.Status.Conditions[i].LastTransitionTime = metav1.NewTime(since)
		}
		w.work.Status.Conditions[1].Reason = placementv1beta1.ReasonWorkNotTrackable
	}
}

func latestIs(name string) func(*takerWorld) {
	return func(w *takerWorld) {
		metav1.SetMetaDataAnnotation(&w.placement.ObjectMeta, placementv1beta1.SelectionVerdictAnnotation, `{"snapshot":"`+name+`"}`)
	}
}

func setHealth(m *clusterv1beta1.MemberCluster, status metav1.ConditionStatus) {
	meta.SetStatusCondition(&m.Status.Conditions, metav1.Condition{Type: clusterv1beta1.ConditionTypeHealthy, Status: status, Reason: "Said"})
}
