package resourcewatch_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllertest"

	"github.com/fleetflow/fleetflow/activities/snapshot"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

var ownKind = "fleetflow.io/v1alpha1/PropagatedType"

// hold makes the catalog one that holds kinds.
func (h *hub) hold(names ...string) {
	h.serve(append(basics, ownKind)...)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.catalog = h.catalog.Holding(names)
}

func (h *hub) types() *controllertest.FakeInformer {
	h.t.Helper()
	return h.informerOf(&fleetflowv1alpha1.PropagatedType{})
}

// propagate writes a PropagatedType of the next generation, and tells the watcher of it.
func (h *hub) propagate(name string, propagation fleetflowv1alpha1.Propagation) {
	h.t.Helper()
	propagated := &fleetflowv1alpha1.PropagatedType{}
	err := h.client.Get(h.t.Context(), client.ObjectKey{Name: name}, propagated)
	before := propagated.DeepCopy()
	propagated.Name = name
	propagated.UID = "uid"
	propagated.Generation = propagated.Generation + 1
	propagated.Spec.Propagation = propagation
	if err != nil {
		require.NoError(h.t, h.client.Create(h.t.Context(), propagated))
		h.types().Add(propagated)
		return
	}
	require.NoError(h.t, h.client.Update(h.t.Context(), propagated))
	h.types().Update(before, propagated)
}

// observed waits until the hub says this of a PropagatedType.
func (h *hub) observed(name string, placements int32, status metav1.ConditionStatus, reason string) *metav1.Condition {
	h.t.Helper()
	propagated := &fleetflowv1alpha1.PropagatedType{}
	require.EventuallyWithT(h.t, func(c *assert.CollectT) {
		require.NoError(c, h.client.Get(h.t.Context(), client.ObjectKey{Name: name}, propagated))
		assert.Equal(c, placements, propagated.Status.Placements)
		condition := meta.FindStatusCondition(propagated.Status.Conditions, fleetflowv1alpha1.ConditionTypeAccepted)
		require.NotNil(c, condition)
		assert.Equal(c, status, condition.Status)
		assert.Equal(c, reason, condition.Reason)
		assert.Equal(c, propagated.Generation, condition.ObservedGeneration)
	}, 2*time.Minute, 5*time.Millisecond)
	return meta.FindStatusCondition(propagated.Status.Conditions, fleetflowv1alpha1.ConditionTypeAccepted)
}

// record makes a verdict what the last selection of a placement has recorded.
func (h *hub) record(p *placementv1beta1.ClusterResourcePlacement, held []string, saw ...*metav1.PartialObjectMetadata) {
	h.t.Helper()
	verdict := snapshot.Verdict{Generation: 1, Held: held}
	var inputs []snapshot.Identity
	for _, o := range saw {
		inputs = append(inputs, snapshot.Identify(o.GroupVersionKind().GroupKind(), o))
	}
	verdict.Inputs = snapshot.Fingerprint(inputs)
	before := p.DeepCopy()
	p.Annotations[placementv1beta1.SelectionVerdictAnnotation] = verdict.Encode()
	require.NoError(h.t, h.client.Update(h.t.Context(), p))
	h.informer().Update(before, p)
}

func TestAChangeOfAPropagatedTypeWakesThePlacementsItConcerns(t *testing.T) {
	app := object("v1", "Namespace", "", "app", "1")
	empty := object("v1", "Namespace", "", "empty", "1")
	c := object("v1", "ConfigMap", "app", "c", "2")
	h := newHub(t, app, empty, c)
	h.hold()
	full := h.place("full", "app", app, c)
	bare := h.place("bare", "empty", empty)
	alone := h.place("alone", "app", app)
	alone.Spec.ResourceSelectors[0].SelectionScope = placementv1beta1.NamespaceOnly
	require.NoError(t, h.client.Update(t.Context(), alone))
	control := h.place("control", "none", object("v1", "Namespace", "", "none", "1"))
	h.watch()
	for _, p := range []*placementv1beta1.ClusterResourcePlacement{full, bare, alone, control} {
		h.adopt(p)
	}
	h.marked("control")
	h.record(control, nil)

	h.hold("configmaps")
	h.propagate("configmaps", fleetflowv1alpha1.PropagationDisabled)
	h.marked("full", "bare", "control")
	h.observed("configmaps", 3, metav1.ConditionTrue, fleetflowv1alpha1.ReasonPropagationDisabled)
	assert.Contains(t, <-h.events.Events, "No change, addition or removal of configmaps reaches members")
	h.record(full, []string{"configmaps"}, app)
	h.record(bare, []string{"configmaps"}, empty)
	h.record(control, []string{"configmaps"})
	h.watching("customresourcedefinitions", "namespaces", "deployments")

	h.create(object("apps/v1", "Deployment", "empty", "d", "3"))
	h.marked("bare")
	h.record(bare, []string{"configmaps"}, empty, object("apps/v1", "Deployment", "empty", "d", "3"))

	h.hold()
	h.propagate("configmaps", fleetflowv1alpha1.PropagationEnabled)
	h.marked("full", "bare", "control")
	h.observed("configmaps", 3, metav1.ConditionTrue, fleetflowv1alpha1.ReasonPropagationEnabled)
	assert.Contains(t, <-h.events.Events, "reaches members")
}

func TestAPropagatedTypeSaysWhatIsWrongWithItsName(t *testing.T) {
	h := newHub(t)
	h.hold()
	control := h.place("control", "app")
	h.watch()
	h.adopt(control)
	h.watching("customresourcedefinitions", "namespaces", "configmaps", "deployments")
	h.propagate("configmap", fleetflowv1alpha1.PropagationEnabled)
	assert.Contains(t, h.observed("configmap", 0, metav1.ConditionFalse, fleetflowv1alpha1.ReasonKindNotServed).Message, "if you mean configmaps,")
	assert.Contains(t, <-h.events.Events, "Warning KindNotServed")
	h.propagate("propagatedtypes.fleetflow.io", fleetflowv1alpha1.PropagationEnabled)
	h.observed("propagatedtypes.fleetflow.io", 0, metav1.ConditionFalse, fleetflowv1alpha1.ReasonKindNotPlaced)

	h.hold("widgets.example.com")
	h.propagate("widgets.example.com", fleetflowv1alpha1.PropagationDisabled)
	h.observed("widgets.example.com", 0, metav1.ConditionFalse, fleetflowv1alpha1.ReasonKindNotServed)
}

func TestARestartWakesNothingOfWhatIsHeldAsBefore(t *testing.T) {
	app := object("v1", "Namespace", "", "app", "1")
	c := object("v1", "ConfigMap", "app", "c", "2")
	h := newHub(t, app, c)
	h.hold("configmaps")
	same := h.place("same", "app")
	enabled := h.place("enabled", "app")
	h.record(same, []string{"configmaps"}, app)
	h.record(enabled, []string{"configmaps", "secrets"}, app)
	h.watch()
	h.adopt(same)
	h.adopt(enabled)
	h.marked("enabled")
}
