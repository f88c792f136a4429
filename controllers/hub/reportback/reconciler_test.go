package reportback

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/controllers/hub/fieldindex"
	"github.com/fleetflow/fleetflow/test/fixture"
)

const memberNS = "fleet-member-one"

// bench is a reconciler on a fake hub that counts writes.
type bench struct {
	*Reconciler
	hub    client.Client
	writes []string
}

func newBench(t *testing.T, objects ...client.Object) *bench {
	t.Helper()
	builder := fixture.NewClientBuilder(fixture.Scheme(t, appsv1.AddToScheme, corev1.AddToScheme)).WithObjects(objects...).WithStatusSubresource(&appsv1.Deployment{})
	for _, i := range fieldindex.All() {
		if _, ok := i.Object.(*placementv1beta1.ClusterResourceBinding); ok {
			builder = builder.WithIndex(i.Object, i.Field, i.Extract)
		}
	}
	b := &bench{}
	b.hub = interceptor.NewClient(builder.Build(), interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			b.writes = append(b.writes, "patch "+o.GetName())
			return c.Patch(ctx, o, p, opts...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			b.writes = append(b.writes, sub+" "+o.GetName())
			return c.SubResource(sub).Patch(ctx, o, p, opts...)
		},
	})
	b.Reconciler = NewReconciler(b.hub, b.hub)
	return b
}

func (b *bench) look(t *testing.T) []string {
	t.Helper()
	b.writes = nil
	_, err := b.Reconcile(t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Namespace: memberNS, Name: "app-work"}})
	require.NoError(t, err)
	return b.writes
}

func mirror(to placementv1beta1.ReportBackDestination) *placementv1beta1.ReportBackStrategy {
	return &placementv1beta1.ReportBackStrategy{Type: placementv1beta1.ReportBackStrategyTypeMirror, Destination: new(to)}
}

func placement(strategy *placementv1beta1.ReportBackStrategy) *placementv1beta1.ClusterResourcePlacement {
	p := &placementv1beta1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: "app"}}
	p.Spec.Strategy = &placementv1beta1.RolloutStrategy{ReportBackStrategy: strategy}
	return p
}

func bindingTo(cluster string) *placementv1beta1.ClusterResourceBinding {
	b := &placementv1beta1.ClusterResourceBinding{ObjectMeta: metav1.ObjectMeta{
		Name: "app-" + cluster, Labels: map[string]string{placementv1beta1.ParentPlacementLabel: "app"},
	}}
	b.Spec.TargetCluster = cluster
	return b
}

// work reports that Deployment d has three replicas.
func work(strategy *placementv1beta1.ReportBackStrategy, change ...func(*placementv1beta1.Work)) *placementv1beta1.Work {
	w := &placementv1beta1.Work{ObjectMeta: metav1.ObjectMeta{
		Namespace: memberNS, Name: "app-work", UID: "work-uid", Labels: map[string]string{placementv1beta1.ParentPlacementLabel: "app"},
	}}
	w.Spec.ReportBackStrategy = strategy
	w.Spec.Workload.Manifests = []placementv1beta1.Manifest{{RawExtension: runtime.RawExtension{
		Raw: []byte(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"namespace":"n","name":"d"}}`)}}}
	w.Status.ManifestConditions = []placementv1beta1.ManifestCondition{reportOn("d", 3)}
	for _, c := range change {
		c(w)
	}
	return w
}

func reportOn(name string, replicas int) placementv1beta1.ManifestCondition {
	raw := fmt.Sprintf(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"namespace":"n","name":%q},"status":{"replicas":%d}}`, name, replicas)
	return placementv1beta1.ManifestCondition{
		Identifier:         placementv1beta1.WorkResourceIdentifier{Group: "apps", Version: "v1", Kind: "Deployment", Resource: "deployments", Namespace: "n", Name: name},
		BackReportedStatus: &placementv1beta1.BackReportedStatus{ObservedStatus: runtime.RawExtension{Raw: []byte(raw)}},
	}
}

func deployment(name string) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name, UID: types.UID("uid-" + name)},
		Status:     appsv1.DeploymentStatus{Replicas: 1, UnavailableReplicas: 1},
	}
}

func namespace() *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "uid-n"}}
}

func TestAWorkSaysWhatItsPlacementWantsReported(t *testing.T) {
	toWork := mirror(placementv1beta1.ReportBackDestinationWorkAPI)
	tests := map[string]struct {
		placement, work *placementv1beta1.ReportBackStrategy
		writes          []string
	}{
		"what is wanted is added":                {toWork, nil, []string{"patch app-work"}},
		"what is not wanted any more is removed": {nil, toWork, []string{"patch app-work"}},
		"what is disabled is not wanted":         {&placementv1beta1.ReportBackStrategy{Type: placementv1beta1.ReportBackStrategyTypeDisabled}, nil, nil},
		"what it says already stays":             {toWork, toWork, nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, placement(tc.placement), work(tc.work))
			assert.Equal(t, tc.writes, b.look(t))
			assert.Empty(t, b.look(t), "a second look writes nothing")
		})
	}
}

func TestAWorkSaysWhichValuesItsPlacementTakesAlong(t *testing.T) {
	b := newBench(t, preserving("{.b}", "{.a}"), work(nil))
	assert.Equal(t, []string{"patch app-work"}, b.look(t))
	got := &placementv1beta1.Work{}
	require.NoError(t, b.hub.Get(t.Context(), types.NamespacedName{Namespace: memberNS, Name: "app-work"}, got))
	assert.Equal(t, []string{"{.a}", "{.b}"}, got.Spec.ReportState)
	assert.Empty(t, b.look(t), "a second look writes nothing")

	b = newBench(t, placement(nil), work(nil, func(w *placementv1beta1.Work) { w.Spec.ReportState = []string{"{.a}"} }))
	assert.Equal(t, []string{"patch app-work"}, b.look(t), "what is not wanted any more is removed")
	assert.Empty(t, b.look(t))

	assert.True(t, onReportBackChanged(event.UpdateEvent{ObjectOld: placement(nil), ObjectNew: preserving("{.a}")}))
	assert.False(t, onReportBackChanged(event.UpdateEvent{ObjectOld: preserving("{.a}"), ObjectNew: preserving("{.a}")}))
}

func TestAWorkSaysHowItsPlacementRemovesObjects(t *testing.T) {
	pruning := func(seconds int32) *placementv1beta1.ClusterResourcePlacement {
		p := placement(nil)
		p.Spec.Strategy = &placementv1beta1.RolloutStrategy{DeleteStrategy: &placementv1beta1.DeleteStrategy{PruneTimeoutSeconds: &seconds}}
		return p
	}
	annotated := func(said string) *placementv1beta1.Work {
		return work(nil, func(w *placementv1beta1.Work) {
			w.Annotations = map[string]string{placementv1beta1.BindingUIDAnnotation: "u"}
			if said != "" {
				w.Annotations[placementv1beta1.PruneAnnotation] = said
			}
		})
	}
	const sixty = `{"pruneTimeoutSeconds":60}`
	for name, tc := range map[string]struct {
		placement *placementv1beta1.ClusterResourcePlacement
		said      string
		want      string
		writes    []string
	}{
		"what is said is added":                {pruning(60), "", sixty, []string{"patch app-work"}},
		"what is said otherwise is changed":    {pruning(60), `{"pruneTimeoutSeconds":5}`, sixty, []string{"patch app-work"}},
		"what is not said any more is removed": {placement(nil), sixty, "", []string{"patch app-work"}},
		"what it says already stays":           {pruning(60), sixty, sixty, nil},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, tc.placement, annotated(tc.said))
			assert.Equal(t, tc.writes, b.look(t))
			got := &placementv1beta1.Work{}
			require.NoError(t, b.hub.Get(t.Context(), types.NamespacedName{Namespace: memberNS, Name: "app-work"}, got))
			assert.Equal(t, tc.want, got.Annotations[placementv1beta1.PruneAnnotation])
			assert.Empty(t, b.look(t), "a second look writes nothing")
		})
	}
	assert.True(t, onReportBackChanged(event.UpdateEvent{ObjectOld: placement(nil), ObjectNew: pruning(60)}))
	assert.False(t, onReportBackChanged(event.UpdateEvent{ObjectOld: pruning(60), ObjectNew: pruning(60)}))
}

// preserving is the placement if it takes values of the status along.
func preserving(paths ...string) *placementv1beta1.ClusterResourcePlacement {
	p := placement(nil)
	rules := &placementv1beta1.StatePreservation{}
	for _, path := range paths {
		rules.Rules = append(rules.Rules, placementv1beta1.StatePreservationRule{AliasLabelName: "label", JSONPath: path})
	}
	p.Spec.Strategy = &placementv1beta1.RolloutStrategy{Failover: &placementv1beta1.FailoverStrategy{Cluster: &placementv1beta1.ClusterFailover{
		PurgeMode: placementv1beta1.PurgeDirectly, StatePreservation: rules,
	}}}
	return p
}

func TestTheOriginalGetsTheStatusOfTheOnlyCluster(t *testing.T) {
	original := mirror(placementv1beta1.ReportBackDestinationOriginalResource)
	b := newBench(t, placement(original), work(original), bindingTo("one"), deployment("d"))
	assert.Equal(t, []string{"status d"}, b.look(t))
	got := &appsv1.Deployment{}
	require.NoError(t, b.hub.Get(t.Context(), types.NamespacedName{Namespace: "n", Name: "d"}, got))
	assert.Equal(t, appsv1.DeploymentStatus{Replicas: 3}, got.Status, "as a whole")
	assert.Empty(t, b.look(t), "a second look writes nothing")
}

func TestNothingIsCopiedToOriginals(t *testing.T) {
	original := mirror(placementv1beta1.ReportBackDestinationOriginalResource)
	toWork := mirror(placementv1beta1.ReportBackDestinationWorkAPI)
	tests := map[string][]client.Object{
		"of several clusters":      {placement(original), work(original), bindingTo("one"), bindingTo("two"), deployment("d")},
		"of another cluster":       {placement(original), work(original), bindingTo("two"), deployment("d")},
		"if only Works are to say": {placement(toWork), work(toWork), bindingTo("one"), deployment("d")},
		"if they are gone":         {placement(original), work(original), bindingTo("one")},
		"of what came in an envelope": {placement(original), bindingTo("one"), deployment("d"), work(original, func(w *placementv1beta1.Work) {
			w.Labels[placementv1beta1.EnvelopeTypeLabel] = "ClusterResourceEnvelope"
		})},
		"that the member was not given": {placement(original), bindingTo("one"), deployment("d"), deployment("other"), work(original, func(w *placementv1beta1.Work) {
			w.Status.ManifestConditions[0] = reportOn("other", 3)
		})},
		"of kinds whose status is the hub's own": {placement(original), bindingTo("one"), namespace(), work(original, func(w *placementv1beta1.Work) {
			w.Spec.Workload.Manifests[0].Raw = []byte(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"n"}}`)
			w.Status.ManifestConditions[0].Identifier = placementv1beta1.WorkResourceIdentifier{Version: "v1", Kind: "Namespace", Name: "n"}
		})},
		"of manifests that are not there": {placement(original), bindingTo("one"), deployment("d"), work(original, func(w *placementv1beta1.Work) {
			w.Status.ManifestConditions[0].Identifier.Ordinal = 7
		})},
		"of a Work without a placement": {bindingTo("one"), deployment("d"), work(original)},
	}
	for name, objects := range tests {
		t.Run(name, func(t *testing.T) {
			assert.Empty(t, newBench(t, objects...).look(t))
		})
	}
}

func TestOnlyWhatMattersBringsAWorkUp(t *testing.T) {
	original := mirror(placementv1beta1.ReportBackDestinationOriginalResource)
	update := func(before, after *placementv1beta1.Work) bool {
		return onReport(event.UpdateEvent{ObjectOld: before, ObjectNew: after})
	}
	other := func(w *placementv1beta1.Work) { w.Status.ManifestConditions = nil }
	assert.True(t, update(work(original), work(original, other)))
	assert.False(t, update(work(nil), work(nil, other)), "what nobody wants")
	assert.False(t, update(work(original), work(original, func(w *placementv1beta1.Work) { w.ResourceVersion = "2" })))
	assert.True(t, update(work(nil), work(nil, func(w *placementv1beta1.Work) { w.Generation = 2 })))
	assert.True(t, onReportBackChanged(event.UpdateEvent{ObjectOld: placement(nil), ObjectNew: placement(original)}))
	assert.False(t, onReportBackChanged(event.UpdateEvent{ObjectOld: placement(original), ObjectNew: placement(original)}))
}

func TestTheWorksOfAPlacementAreFound(t *testing.T) {
	original := mirror(placementv1beta1.ReportBackDestinationOriginalResource)
	b := newBench(t, placement(original), work(original))
	want := []ctrl.Request{{NamespacedName: types.NamespacedName{Namespace: memberNS, Name: "app-work"}}}
	assert.Equal(t, want, b.requestWorksOf(t.Context(), placement(original)))
	assert.Equal(t, want, b.requestWorksBeside(t.Context(), bindingTo("two")))
}
