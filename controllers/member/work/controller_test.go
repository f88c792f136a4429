package work

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	discoveryfake "k8s.io/client-go/discovery/fake"
	metadatafake "k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

const testNamespace = "fleet-member-one"

// agent is a Reconciler with a fake hub and a fake member. Its watches see nothing, so that every
// pass reads live.
type agent struct {
	*Reconciler
	hub, member client.WithWatch
	clock       *testclock.FakePassiveClock
	// recordingWrite is held while a write is recorded: manifests are applied side by side.
	recordingWrite sync.Mutex
	// writes lists the writes in order: hub or member, verb, kind and name.
	writes []string
	// fail makes a write fail; its argument is the entry in writes.
	fail func(write string) error
}

// testScheme is made once: some tests make hundreds of agents. It has few kinds, for the fake client lists them anew at every write.
var testScheme = sync.OnceValue(func() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(corev1.AddToScheme(scheme))
	utilruntime.Must(appsv1.AddToScheme(scheme))
	utilruntime.Must(placementv1beta1.AddToScheme(scheme))
	return scheme
})

func newAgent(t *testing.T, hub []client.Object, member []client.Object) *agent {
	t.Helper()
	scheme := testScheme()
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("ConfigMap"), meta.RESTScopeNamespace)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Namespace"), meta.RESTScopeRoot)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim"), meta.RESTScopeNamespace)
	mapper.Add(appsv1.SchemeGroupVersion.WithKind("Deployment"), meta.RESTScopeNamespace)
	mapper.Add(batchv1.SchemeGroupVersion.WithKind("Job"), meta.RESTScopeNamespace)
	mapper.Add(definitionKind.WithVersion("v1"), meta.RESTScopeRoot)
	mapper.Add(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}, meta.RESTScopeNamespace)
	mapper.Add(placementv1beta1.GroupVersion.WithKind("AppliedWork"), meta.RESTScopeRoot)
	mapper.Add(placementv1beta1.GroupVersion.WithKind("Work"), meta.RESTScopeNamespace)

	a := &agent{clock: testclock.NewFakePassiveClock(noon.Time), fail: func(string) error { return nil }}
	builder := func() *fake.ClientBuilder {
		return fake.NewClientBuilder().WithScheme(scheme).WithRESTMapper(mapper).
			WithStatusSubresource(&placementv1beta1.Work{}, &placementv1beta1.AppliedWork{}, &appsv1.Deployment{})
	}
	a.hub = builder().WithObjects(hub...).WithInterceptorFuncs(a.recording("hub")).Build()
	a.member = builder().WithObjects(member...).WithInterceptorFuncs(a.recording("member")).Build()
	a.Reconciler = NewReconciler(Options{
		Namespace: testNamespace, Hub: a.hub, HubLive: a.hub, Member: a.member, Mapper: mapper,
		Metadata:  metadatafake.NewSimpleMetadataClient(metadatafake.NewTestScheme()),
		Discovery: &discoveryfake.FakeDiscovery{Fake: &clienttesting.Fake{}},
		Clock:     a.clock, Log: logr.Discard(),
	})
	require.NoError(t, a.SetMode(t.Context(), ModeApply))
	return a
}

func (a *agent) recording(where string) interceptor.Funcs {
	note := func(verb string, o client.Object) error {
		write := fmt.Sprintf("%s %s %s %s", where, verb, kindOf(o), o.GetName())
		a.recordingWrite.Lock()
		defer a.recordingWrite.Unlock()
		a.writes = append(a.writes, write)
		return a.fail(write)
	}
	return interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			if err := note("create", o); err != nil {
				return err
			}
			if o.GetUID() == "" {
				o.SetUID(types.UID("uid-" + o.GetName()))
			}
			return c.Create(ctx, o, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			options := client.PatchOptions{}
			if options.ApplyOptions(opts); len(options.DryRun) > 0 {
				return dryRun(ctx, c, o, p, options)
			}
			if err := note("patch", o); err != nil {
				return err
			}
			return c.Patch(ctx, o, p, opts...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			if err := note("delete", o); err != nil {
				return err
			}
			return c.Delete(ctx, o, opts...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			if err := note(sub, o); err != nil {
				return err
			}
			return c.SubResource(sub).Patch(ctx, o, p, opts...)
		},
	}
}

func kindOf(o client.Object) string {
	switch o.(type) {
	case *placementv1beta1.Work:
		return "Work"
	case *placementv1beta1.AppliedWork:
		return "AppliedWork"
	default:
		return o.GetObjectKind().GroupVersionKind().Kind
	}
}

// reconcileByName reconciles one Work and returns the writes.
func (a *agent) reconcileByName(t *testing.T, name string) ([]string, reconcile.Result, error) {
	t.Helper()
	a.writes = nil
	result, err := a.Reconcile(t.Context(), requestForWork(testNamespace, name))
	return a.writes, result, err
}

func (a *agent) mustReconcile(t *testing.T, name string) []string {
	t.Helper()
	writes, _, err := a.reconcileByName(t, name)
	require.NoError(t, err)
	return writes
}

// afterRetryDelay advances the clock until everything that failed is tried again.
func (a *agent) afterRetryDelay() *agent {
	a.clock.SetTime(a.clock.Now().Add(maxRetryDelay))
	return a
}

func (a *agent) work(t *testing.T, name string) *placementv1beta1.Work {
	t.Helper()
	out := &placementv1beta1.Work{}
	require.NoError(t, a.hub.Get(t.Context(), types.NamespacedName{Namespace: testNamespace, Name: name}, out))
	return out
}

// conditionReasons returns the reasons of the conditions Applied and Available of a Work.
func (a *agent) conditionReasons(t *testing.T, name string) [2]string {
	t.Helper()
	var out [2]string
	for i, kind := range []string{placementv1beta1.ConditionTypeApplied, placementv1beta1.ConditionTypeAvailable} {
		if c := meta.FindStatusCondition(a.work(t, name).Status.Conditions, kind); c != nil {
			out[i] = c.Reason
		}
	}
	return out
}

func (a *agent) readMember(t *testing.T, o client.Object, name string) bool {
	t.Helper()
	err := a.member.Get(t.Context(), types.NamespacedName{Namespace: "n", Name: name}, o)
	if apierrors.IsNotFound(err) {
		return false
	}
	require.NoError(t, err)
	return true
}

func (a *agent) hasConfigMap(t *testing.T, name string) bool {
	t.Helper()
	return a.readMember(t, &corev1.ConfigMap{}, name)
}

// manifestWork makes a Work with ConfigMaps of these names.
func manifestWork(name string, maps ...string) *placementv1beta1.Work {
	w := &placementv1beta1.Work{ObjectMeta: metav1.ObjectMeta{
		Namespace: testNamespace, Name: name, UID: types.UID("uid-" + name), Generation: 1,
		Finalizers: []string{placementv1beta1.WorkFinalizer},
		Labels:     map[string]string{placementv1beta1.ParentPlacementLabel: "crp", placementv1beta1.ParentBindingLabel: "crp-one"},
	}}
	w.Spec.Workload.Manifests = mapManifests(maps...)
	return w
}

func mapManifests(names ...string) []placementv1beta1.Manifest {
	var out []placementv1beta1.Manifest
	for _, name := range names {
		text := fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"n","name":%q},"data":{"x":"1"}}`, name)
		out = append(out, placementv1beta1.Manifest{RawExtension: runtime.RawExtension{Raw: []byte(text)}})
	}
	return out
}

// setManifests changes the manifests of a Work as the hub does.
func (a *agent) setManifests(t *testing.T, name string, manifests []placementv1beta1.Manifest) {
	t.Helper()
	w := a.work(t, name)
	w.Spec.Workload.Manifests = manifests
	w.Generation++
	require.NoError(t, a.hub.Update(t.Context(), w))
}

func TestAWorkIsAnnouncedAppliedAndReportedOnce(t *testing.T) {
	a := newAgent(t, []client.Object{manifestWork("w", "a")}, nil)
	assert.Equal(t, []string{
		"member create AppliedWork w",
		"member status AppliedWork w", // what is about to be created is written down first
		"member create ConfigMap a",
		"hub status Work w",
		"member status AppliedWork w", // with UIDs
	}, a.mustReconcile(t, "w"))
	assert.Equal(t, [2]string{"AllManifestsApplied", "AllManifestsAvailable"}, a.conditionReasons(t, "w"))
	assert.Empty(t, a.mustReconcile(t, "w"), "a second look writes nothing")
	a.memories = newMemories()
	assert.Empty(t, a.mustReconcile(t, "w"), "nor does another agent")
}

func TestADeploymentIsReportedTwice(t *testing.T) {
	w := manifestWork("w")
	w.Spec.Workload.Manifests = []placementv1beta1.Manifest{{RawExtension: runtime.RawExtension{Raw: []byte(
		`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"namespace":"n","name":"d"},"spec":{"replicas":1}}`)}}}
	a := newAgent(t, []client.Object{w}, nil)
	a.mustReconcile(t, "w")
	assert.Equal(t, [2]string{"AllManifestsApplied", "SomeManifestsAreNotAvailable"}, a.conditionReasons(t, "w"))

	d := &appsv1.Deployment{}
	require.True(t, a.readMember(t, d, "d"))
	d.Status.Replicas = 1
	require.NoError(t, a.member.Status().Update(t.Context(), d))
	assert.Empty(t, a.mustReconcile(t, "w"), "progress that changes nothing is not reported")

	d.Status = appsv1.DeploymentStatus{ObservedGeneration: d.Generation, Replicas: 1, UpdatedReplicas: 1, AvailableReplicas: 1}
	require.NoError(t, a.member.Status().Update(t.Context(), d))
	assert.Equal(t, []string{"hub status Work w"}, a.mustReconcile(t, "w"))
	assert.Equal(t, [2]string{"AllManifestsApplied", "AllManifestsAvailable"}, a.conditionReasons(t, "w"))
}

func TestACrashBetweenAnyTwoWritesLosesNothing(t *testing.T) {
	// Every write in the life of a Work with two manifests, one of which is removed.
	for n := range 12 {
		t.Run(fmt.Sprintf("after %d writes", n), func(t *testing.T) {
			a := newAgent(t, []client.Object{manifestWork("w", "a", "b")}, nil)
			left := n
			crash := &url.Error{Op: "Patch", URL: "https://api", Err: errors.New("gone")}
			a.fail = func(string) error {
				if left--; left < 0 {
					return crash
				}
				return nil
			}
			_, _, _ = a.reconcileByName(t, "w")
			a.setManifests(t, "w", mapManifests("b"))
			_, _, _ = a.reconcileByName(t, "w")
			// Another agent without memory takes over.
			a.fail = func(string) error { return nil }
			a.memories = newMemories()
			a.mustReconcile(t, "w")
			assert.Equal(t, [2]string{"AllManifestsApplied", "AllManifestsAvailable"}, a.conditionReasons(t, "w"))
			assert.False(t, a.hasConfigMap(t, "a"))
			assert.True(t, a.hasConfigMap(t, "b"))

			require.NoError(t, a.hub.Delete(t.Context(), a.work(t, "w")))
			a.mustReconcile(t, "w")
			assert.False(t, a.hasConfigMap(t, "b"), "what was made is known and removed")
		})
	}
}

func TestASecondPlacementIsRefusedUntilTheFirstLetsGo(t *testing.T) {
	second := manifestWork("second", "a")
	second.Labels = map[string]string{placementv1beta1.ParentPlacementLabel: "crp-2", placementv1beta1.ParentBindingLabel: "crp-2-one"}
	a := newAgent(t, []client.Object{manifestWork("first", "a"), second}, nil)
	a.mustReconcile(t, "first")
	a.mustReconcile(t, "second")
	c := meta.FindStatusCondition(a.work(t, "second").Status.ManifestConditions[0].Conditions, placementv1beta1.ConditionTypeApplied)
	require.NotNil(t, c)
	assert.Equal(t, placementv1beta1.ReasonApplyConflictBetweenPlacements, c.Reason)
	assert.Contains(t, c.Message, "placement crp (AppliedWork first)")

	before := &corev1.ConfigMap{}
	after := &corev1.ConfigMap{}
	require.True(t, a.readMember(t, before, "a"))
	a.setManifests(t, "first", nil)
	a.mustReconcile(t, "first")
	a.afterRetryDelay().mustReconcile(t, "second")
	assert.Equal(t, "AllManifestsApplied", a.conditionReasons(t, "second")[0])
	require.True(t, a.readMember(t, after, "a"))
	assert.Equal(t, before.UID, after.UID, "it was handed over, and not deleted and made again")
	require.Len(t, after.OwnerReferences, 1)
	assert.Equal(t, "second", after.OwnerReferences[0].Name)
}

func TestAPlacementOfAHigherPriorityTakesAnObjectOver(t *testing.T) {
	ranked := func(name, placement, priority, preemption string) *placementv1beta1.Work {
		work := manifestWork(name, "a")
		work.Labels = map[string]string{placementv1beta1.ParentPlacementLabel: placement, placementv1beta1.ParentBindingLabel: placement + "-one"}
		work.Annotations = map[string]string{placementv1beta1.PriorityAnnotation: priority, placementv1beta1.PreemptionAnnotation: preemption}
		return work
	}
	uidOf := func(a *agent) string {
		object := &corev1.ConfigMap{}
		require.True(t, a.readMember(t, object, "a"))
		return string(object.UID)
	}
	t.Run("it has the object at once, and the other that still has a manifest is told who has it", func(t *testing.T) {
		a := newAgent(t, []client.Object{ranked("first", "crp", "0", ""), ranked("second", "crp-2", "5", "Always")}, nil)
		a.mustReconcile(t, "first")
		before := uidOf(a)
		a.mustReconcile(t, "second")
		assert.Equal(t, "AllManifestsApplied", a.conditionReasons(t, "second")[0])
		a.afterRetryDelay().mustReconcile(t, "first")
		c := meta.FindStatusCondition(a.work(t, "first").Status.ManifestConditions[0].Conditions, placementv1beta1.ConditionTypeApplied)
		assert.Contains(t, c.Message, "placement crp-2 (AppliedWork second)")
		a.setManifests(t, "first", nil)
		a.mustReconcile(t, "first")
		assert.Equal(t, before, uidOf(a), "it was not deleted")
	})
	t.Run("what leaves the Work of one is handed over to the other", func(t *testing.T) {
		a := newAgent(t, []client.Object{ranked("first", "crp", "0", ""), ranked("second", "crp-2", "0", "")}, nil)
		a.mustReconcile(t, "first")
		before := uidOf(a)
		a.mustReconcile(t, "second")
		assert.NotEqual(t, "AllManifestsApplied", a.conditionReasons(t, "second")[0], "no priority is higher")
		a.setManifests(t, "first", nil)
		a.mustReconcile(t, "first")
		assert.Equal(t, before, uidOf(a), "the other has a manifest of it")
		a.afterRetryDelay().mustReconcile(t, "second")
		assert.Equal(t, "AllManifestsApplied", a.conditionReasons(t, "second")[0])
		a.afterRetryDelay().mustReconcile(t, "first")
		assert.Equal(t, before, uidOf(a))
	})
	t.Run("a lower one takes nothing over", func(t *testing.T) {
		a := newAgent(t, []client.Object{ranked("first", "crp", "9", ""), ranked("second", "crp-2", "5", "Always")}, nil)
		a.mustReconcile(t, "first")
		a.mustReconcile(t, "second")
		c := meta.FindStatusCondition(a.work(t, "second").Status.ManifestConditions[0].Conditions, placementv1beta1.ConditionTypeApplied)
		assert.Equal(t, placementv1beta1.ReasonApplyConflictBetweenPlacements, c.Reason)
	})
}

func TestAMemberThatCannotBeReachedSaysNothingAboutTheWork(t *testing.T) {
	a := newAgent(t, []client.Object{manifestWork("w", "a")}, nil)
	a.fail = func(write string) error {
		if write == "member create ConfigMap a" {
			return &url.Error{Op: "Post", URL: "https://member", Err: errors.New("refused")}
		}
		return nil
	}
	_, _, err := a.reconcileByName(t, "w")
	require.Error(t, err)
	assert.Empty(t, a.work(t, "w").Status.Conditions)
}

func TestARepairThatIsUndoneAgainAndAgainIsHeldBack(t *testing.T) {
	a := newAgent(t, []client.Object{manifestWork("w", "a")}, nil)
	a.mustReconcile(t, "w")
	spoil := func() {
		got := &corev1.ConfigMap{}
		require.True(t, a.readMember(t, got, "a"))
		got.Data["x"] = "9"
		require.NoError(t, a.member.Update(t.Context(), got))
	}
	for range immediateRepairs {
		spoil()
		assert.Equal(t, []string{"member patch ConfigMap a"}, a.mustReconcile(t, "w"))
	}
	spoil()
	writes, result, err := a.reconcileByName(t, "w")
	require.NoError(t, err)
	assert.Empty(t, writes)
	assert.InDelta(t, 200, result.RequeueAfter.Milliseconds(), 1)
	a.clock.SetTime(a.clock.Now().Add(200 * time.Millisecond))
	assert.Equal(t, []string{"member patch ConfigMap a"}, a.mustReconcile(t, "w"))
}
