package work

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

func TestAManifestThatFailsBacksOffByItself(t *testing.T) {
	a := newAgent(t, []client.Object{manifestWork("w", "bad", "good")}, nil)
	a.fail = func(write string) error {
		if strings.HasPrefix(write, "member create ConfigMap bad") {
			return errors.New("refused by a webhook")
		}
		return nil
	}
	_, result, err := a.reconcileByName(t, "w")
	require.NoError(t, err)
	assert.InDelta(t, 210, result.RequeueAfter.Milliseconds(), 11)
	assert.Equal(t, priorityRecheck, *result.Priority, "what is new goes first")

	a.enqueueAfterEvent("w", configMapRef("good"))
	assert.Empty(t, a.mustReconcile(t, "w"), "what happens to another does not concern it")
	a.clock.SetTime(a.clock.Now().Add(minRetryDelay))
	assert.Equal(t, []string{"member create ConfigMap bad"}, a.mustReconcile(t, "w"), "its time has come")
	assert.Empty(t, a.mustReconcile(t, "w"))

	a.setManifests(t, "w", mapManifests("bad", "good"))
	assert.Contains(t, a.mustReconcile(t, "w"), "member create ConfigMap bad", "a new generation is tried at once")
	for range 5 {
		a.afterRetryDelay().mustReconcile(t, "w")
	}
	a.clock.SetTime(a.clock.Now().Add(minRetryDelay))
	assert.Empty(t, a.mustReconcile(t, "w"), "after many failures it rests for longer")
	a.enqueueAfterEvent("w", configMapRef("bad"))
	assert.Contains(t, a.mustReconcile(t, "w"), "member create ConfigMap bad", "unless somebody has changed it")
	a.enqueueAfterEvent("w", configMapRef("bad"))
	assert.Empty(t, a.mustReconcile(t, "w"), "but not each time somebody does")
}

func TestWhatMayHelpAManifestThatFailed(t *testing.T) {
	failed := outcome{
		id:  placementv1beta1.WorkResourceIdentifier{Kind: "ConfigMap", Namespace: "n", Name: "a"},
		gvr: configMaps, retry: true, failedTries: failedTries{failures: 9, last: noon.Time},
	}
	tests := map[string]struct {
		event objectRef
		helps bool
	}{
		"the object itself":           {configMapRef("a"), true},
		"another object of the kind":  {configMapRef("b"), false},
		"the first list of its kind":  {objectRef{gvr: configMaps}, true},
		"its namespace":               {objectRef{gvr: namespaceResource, name: types.NamespacedName{Name: "n"}}, true},
		"another namespace":           {objectRef{gvr: namespaceResource, name: types.NamespacedName{Name: "m"}}, false},
		"any definition":              {objectRef{gvr: definitionResource, name: types.NamespacedName{Name: "widgets.example.com"}}, true},
		"an object of another kind":   {objectRef{gvr: schema.GroupVersionResource{Version: "v1", Resource: "secrets"}, name: types.NamespacedName{Namespace: "n", Name: "a"}}, false},
		"what its Work has listed it": {objectRef{gvr: appliedWorkResource, name: types.NamespacedName{Name: "w"}}, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			stirred := failed.retrySoonerIfAffected(map[objectRef]bool{tc.event: true})
			assert.True(t, stirred.isBackingOff(noon.Time), "nothing is tried twice at the same time")
			assert.Equal(t, !tc.helps, stirred.isBackingOff(noon.Add(minRetryDelay)))
			assert.False(t, stirred.isBackingOff(noon.Add(maxRetryDelay)), "later it is tried anyway")
		})
	}
}

func TestWhatHappensToAWorkThatIsWellIsNotNoted(t *testing.T) {
	m := newMemories()
	m.recordChange("w", configMapRef("a"))
	assert.Empty(t, m.takeChangedObjects("w"))
	m.recordUnapplied("w", []outcome{{retry: true}})
	m.recordChange("w", configMapRef("a"))
	assert.Equal(t, map[objectRef]bool{configMapRef("a"): true}, m.takeChangedObjects("w"))
	assert.Empty(t, m.takeChangedObjects("w"), "it is told once")
	m.recordChange("w", configMapRef("a"))
	m.recordUnapplied("w", nil)
	assert.Empty(t, m.takeChangedObjects("w"))
}

func TestNewWorksGoBeforeEventsAndEventsBeforeRechecks(t *testing.T) {
	queue := priorityqueue.New[reconcile.Request]("test", func(o *priorityqueue.Opts[reconcile.Request]) {
		o.RateLimiter = workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](time.Millisecond, time.Second)
	})
	defer queue.ShutDown()
	due := &enqueuer{namespace: testNamespace}
	due.enqueueWork("rechecked", priorityRecheck)
	due.enqueueWork("twice", priorityRecheck)
	due.enqueueWork("twice", priorityEvent)
	due.enqueueWork("twice", priorityRecheck)
	require.NoError(t, due.attachQueue(t.Context(), queue))
	due.enqueueWork("stirred", priorityEvent)
	queue.Add(requestForWork(testNamespace, "new"))

	require.Eventually(t, func() bool { return queue.Len() == 4 }, 2*time.Minute, time.Millisecond)
	var got []string
	for range 4 {
		item, _ := queue.Get()
		got = append(got, item.Name)
	}
	assert.Equal(t, []string{"new", "twice", "stirred", "rechecked"}, got)
}
