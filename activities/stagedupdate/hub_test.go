package stagedupdate_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"reflect"
	goruntime "runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	k8sclock "k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	clientinterceptor "sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/fleetflow/fleetflow/activities/clusterwait"
	"github.com/fleetflow/fleetflow/activities/override"
	"github.com/fleetflow/fleetflow/activities/stagedupdate"
	"github.com/fleetflow/fleetflow/activities/workmodel"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	"github.com/fleetflow/fleetflow/apis/placement/updaterun"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/test/fixture"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

var begin = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

var errDied = errors.New("the process died")

// hub is a hub in memory, with members that do at once what they are told.
type hub struct {
	t *testing.T
	client.WithWatch
	// unwatched is the same hub without what the tests hook into it.
	unwatched client.WithWatch
	clock     *clock
	notifier  *clusterwait.Notifier
	informers *informertest.FakeInformers
	acts      *stagedupdate.Activities

	mu sync.Mutex
	// left is how many writes the process lives to make; negative for any. With
	// lost set the last of them is made, but its answer never arrives.
	left, uids int
	lost       bool
	writes     int
	// stuck are members that never become available.
	stuck  map[string]bool
	events []string
	// latest is what a selection finds now.
	latest    wf.SelectResult
	overrides *override.Matcher
	// lacking are required overrides that are not in force.
	lacking   []string
	canceller string
	// approver is who has sent approvals.
	approver string
	// onGet is run before a live read of an object of this name.
	onGet map[string]func()
	// onPatch is run before a patch of an object of this name.
	onPatch map[string]func()
	// refused is what the API server answers to writes to an object of this name, tries how often it was asked.
	refused map[string]error
	tries   map[string]int
	// attempt is which attempt of an activity a call is; the first if it is zero.
	attempt int32
	// outOfTurn lets activities be called before it is their turn.
	outOfTurn bool
}

// clock is a fake clock that says when somebody has begun to wait on it.
type clock struct {
	*clocktesting.FakeClock
	waits chan struct{}
}

// NewTimer notes that somebody waits. A timer that is due fires at once, as a
// real one does.
func (c *clock) NewTimer(d time.Duration) k8sclock.Timer {
	timer := c.FakeClock.NewTimer(d)
	c.Step(0)
	c.waits <- struct{}{}
	return timer
}

// After lets the short quiet pass in which finished clusters are collected.
func (c *clock) After(d time.Duration) <-chan time.Time {
	if d <= clusterwait.DefaultDebounce {
		return time.After(d)
	}
	return c.FakeClock.After(d)
}

func newHub(t *testing.T, objects ...client.Object) *hub {
	t.Helper()
	scheme := fixture.Scheme(t)
	watched := runtime.NewScheme()
	require.NoError(t, placementv1beta1.AddToScheme(watched))
	require.NoError(t, fleetflowv1alpha1.AddToScheme(watched))
	require.NoError(t, clusterv1beta1.AddToScheme(watched))
	watched.AddKnownTypeWithName(schema.GroupVersionKind{Group: "meta", Version: "v1", Kind: "Snapshot"}, &metav1.PartialObjectMetadata{})
	h := &hub{
		t: t, left: -1, clock: &clock{FakeClock: clocktesting.NewFakeClock(begin), waits: make(chan struct{}, 1000)}, notifier: clusterwait.NewNotifier(),
		informers: &informertest.FakeInformers{Scheme: watched}, stuck: map[string]bool{}, onGet: map[string]func(){}, onPatch: map[string]func(){}, canceller: "grace", approver: "ada",
		refused: map[string]error{}, tries: map[string]int{},
	}
	h.unwatched = fixture.Index(fixture.NewClientBuilder(scheme)).WithObjects(objects...).
		WithStatusSubresource(&placementv1beta1.ClusterStagedUpdateRun{}, &placementv1beta1.ClusterApprovalRequest{}, &placementv1beta1.Work{},
			&placementv1beta1.ClusterResourceBinding{}, &placementv1beta1.ClusterSchedulingPolicySnapshot{}, &placementv1beta1.ClusterResourcePlacement{},
			&fleetflowv1alpha1.ClusterStageAnalysisRun{}, &fleetflowv1alpha1.StageAnalysisRun{}).
		Build()
	h.WithWatch = clientinterceptor.NewClient(h.unwatched, h.interceptor())
	require.NoError(t, h.notifier.Watch(t.Context(), h.informers, h))
	h.acts = h.restarted()
	return h
}

// restarted are the activities of another process.
func (h *hub) restarted() *stagedupdate.Activities {
	return &stagedupdate.Activities{
		Client: h, Live: fixture.PastCache(h), Works: members{h}, Snapshots: h, Notifier: h.notifier, Events: h, Identities: h, Clock: h.clock,
		Approvals: stagedupdate.ApprovalsAny,
	}
}

// write makes a write, as far as the process lives.
func (h *hub) write(do func() error) error {
	h.mu.Lock()
	left := h.left
	if left > 0 {
		h.left--
	}
	if left != 0 {
		h.writes++
	}
	h.mu.Unlock()
	switch {
	case left == 0:
		return errDied
	case left == 1 && h.lost:
		if err := do(); err != nil {
			return err
		}
		return errDied
	}
	return do()
}

func (h *hub) interceptor() clientinterceptor.Funcs {
	return clientinterceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
			h.meet(h.onGet, key.Name)
			return c.Get(ctx, key, o, options...)
		},
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
			if _, work := o.(*placementv1beta1.Work); work { // the binding controller writes it, if we do not
				return c.Create(ctx, o, options...)
			}
			if err := h.answer(o); err != nil {
				return err
			}
			return h.write(func() error {
				h.mu.Lock()
				h.uids++
				if o.GetUID() == "" {
					o.SetUID(types.UID(fmt.Sprintf("uid-of-%s-%d", o.GetName(), h.uids)))
				}
				h.mu.Unlock()
				o.SetGeneration(1)
				return c.Create(ctx, o, options...)
			})
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, options ...client.PatchOption) error {
			h.meet(h.onPatch, o.GetName())
			if err := h.answer(o, " spec"); err != nil {
				return err
			}
			return h.write(func() error { return asServer(c.Patch(ctx, o, patch, options...)) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.DeleteOption) error {
			if err := h.answer(o); err != nil {
				return err
			}
			return h.write(func() error { return c.Delete(ctx, o, options...) })
		},
		SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, o client.Object, options ...client.SubResourceUpdateOption) error {
			if _, member := o.(*placementv1beta1.Work); member { // another process
				return c.SubResource(sub).Update(ctx, o, options...)
			}
			if err := h.answer(o); err != nil {
				return err
			}
			return h.write(func() error { return c.SubResource(sub).Update(ctx, o, options...) })
		},
	}
}

// meet runs, once, what happens before a request for an object of a name.
func (h *hub) meet(before map[string]func(), name string) {
	h.mu.Lock()
	do := before[name]
	delete(before, name)
	h.mu.Unlock()
	if do != nil {
		do()
	}
}

// answer is what the API server says to a write that it refuses.
func (h *hub) answer(o client.Object, parts ...string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	name := o.GetName()
	if _, run := o.(*placementv1beta1.ClusterStagedUpdateRun); run {
		name += strings.Join(parts, "") // who may not write the one may write the other
	}
	h.tries[name]++
	return h.refused[name]
}

// asServer gives a failed test of a JSON patch the status an API server gives.
func asServer(err error) error {
	if err != nil && (strings.Contains(err.Error(), "testing path") || strings.Contains(err.Error(), "test failed")) {
		return apierrors.NewGenericServerResponse(422, "", schema.GroupResource{}, "", err.Error(), 0, false)
	}
	return err
}

// call runs an activity in Temporal's test environment.
func call[In, Out any](h *hub, f func(context.Context, In) (Out, error), in In) (Out, error) {
	var out Out
	if !h.outOfTurn {
		h.endEarlierStages(f, in)
	}
	env := h.environment()
	env.RegisterActivityWithOptions(f, activity.RegisterOptions{Name: "activity"})
	value, err := env.ExecuteActivity("activity", in)
	if err != nil {
		return out, err
	}
	return out, value.Get(&out)
}

// endEarlierStages ends the stages that come before what an activity is to do, and lets the window be as large as the
// request: most tests are about one stage, and no workflow asks for more.
func (h *hub) endEarlierStages(f, in any) {
	h.t.Helper()
	ref := wf.Ref{}
	count := 0
	window := 0
	switch in := in.(type) {
	case wf.StageAdvance:
		ref = in.Run
		count = in.Index
		window = h.windowOf(in)
	case wf.GateRequest:
		ref = in.Run
		count = in.Index
	case wf.Ref:
		if strings.HasSuffix(goruntime.FuncForPC(reflect.ValueOf(f).Pointer()).Name(), "AdvanceDeletion-fm") {
			ref = in
			count = math.MaxInt
		}
	}
	run := &placementv1beta1.ClusterStagedUpdateRun{}
	if count == 0 && window < 2 || h.unwatched.Get(h.t.Context(), client.ObjectKey{Name: ref.Name}, run) != nil {
		return
	}
	changed := false
	if strategy := run.Status.UpdateStrategySnapshot; strategy != nil && count < len(strategy.Stages) && window > 1 && strategy.Stages[count].MaxConcurrency == nil {
		strategy.Stages[count].MaxConcurrency = new(intstr.FromInt32(int32(window)))
		changed = true
	}
	for i := range run.Status.StagesStatus[:min(count, len(run.Status.StagesStatus))] {
		if stage := &run.Status.StagesStatus[i]; !updaterun.StageOver(stage) {
			changed = true
			meta.SetStatusCondition(&stage.Conditions, metav1.Condition{
				Type: placementv1beta1.ConditionTypeSucceeded, Status: metav1.ConditionTrue, Reason: placementv1beta1.ReasonStageUpdatingSucceeded,
				LastTransitionTime: metav1.NewTime(begin),
			})
		}
	}
	if changed {
		require.NoError(h.t, h.unwatched.Status().Update(h.t.Context(), run))
	}
}

// windowOf is how many clusters are in flight by a request.
func (h *hub) windowOf(in wf.StageAdvance) int {
	run := &placementv1beta1.ClusterStagedUpdateRun{}
	inFlight := slices.Concat(in.Start, in.InFlight)
	if h.unwatched.Get(h.t.Context(), client.ObjectKey{Name: in.Run.Name}, run) == nil && in.Index < len(run.Status.StagesStatus) {
		inFlight = append(inFlight, updaterun.NamesIn(&run.Status.StagesStatus[in.Index], updaterun.PhaseRunning)...)
	}
	inFlight = slices.DeleteFunc(inFlight, func(name string) bool { return slices.Contains(in.Done, name) })
	slices.Sort(inFlight)
	return len(slices.Compact(inFlight))
}

// must is call for what has to succeed.
func must[In, Out any](h *hub, f func(context.Context, In) (Out, error), in In) Out {
	h.t.Helper()
	out, err := call(h, f, in)
	require.NoError(h.t, err)
	return out
}

func (h *hub) environment() *testsuite.TestActivityEnvironment {
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	env := suite.NewTestActivityEnvironment()
	env.SetWorkerOptions(worker.Options{Interceptors: []interceptor.WorkerInterceptor{&attempts{h: h}}})
	return env
}

// Select stands in for selecting resources.
func (h *hub) Select(context.Context, placementv1beta1.PlacementObject) (wf.SelectResult, error) {
	return h.latest, nil
}

// Overrides stands in for reading overrides.
func (h *hub) Overrides(context.Context, placementv1beta1.PlacementObject, string) (*override.Matcher, error) {
	if h.lacking != nil {
		return nil, fmt.Errorf("picking the overrides: %w", &override.LackingError{Overrides: h.lacking})
	}
	return h.overrides, nil
}

// Eventf keeps events.
func (h *hub) Eventf(regarding, _ runtime.Object, kind, reason, _, note string, args ...any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	name := regarding.(client.Object).GetName()
	h.events = append(h.events, fmt.Sprintf("%s %s %s: %s", kind, name, reason, fmt.Sprintf(note, args...)))
}

// Approver says who approved.
func (h *hub) Approver(context.Context, wf.ApprovalRequest) (string, bool, error) {
	return h.approver, false, nil
}

// Canceller says who cancelled.
func (h *hub) Canceller(context.Context, string, string) (string, error) { return h.canceller, nil }

// members apply what is written to them at once.
type members struct{ *hub }

// Sync writes the one Work of a binding and lets the member report on it.
func (m members) Sync(ctx context.Context, b placementv1beta1.BindingObject) error {
	work := &placementv1beta1.Work{ObjectMeta: metav1.ObjectMeta{
		Namespace: placementv1beta1.MemberNamespace(b.GetBindingSpec().TargetCluster), Name: placementv1beta1.WorkName(b.GetLabels()[placementv1beta1.ParentPlacementLabel], 0),
	}}
	err := m.WithWatch.Get(ctx, client.ObjectKeyFromObject(work), work)
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	revision := workmodel.Revision(b)
	missing := apierrors.IsNotFound(err)
	if !missing && work.Annotations[placementv1beta1.RevisionAnnotation] == revision {
		return m.report(ctx, work)
	}
	work.Labels = map[string]string{placementv1beta1.ParentBindingLabel: b.GetName(), placementv1beta1.ParentPlacementLabel: b.GetLabels()[placementv1beta1.ParentPlacementLabel]}
	work.Annotations = map[string]string{
		placementv1beta1.RevisionAnnotation: revision, placementv1beta1.BindingUIDAnnotation: string(b.GetUID()), placementv1beta1.WorkCountAnnotation: "1",
	}
	work.Status.Conditions = nil
	if missing {
		err = m.WithWatch.Create(ctx, work)
	} else {
		err = m.WithWatch.Update(ctx, work)
	}
	if err != nil {
		return err
	}
	return m.report(ctx, work)
}

// report is what the member says of its Work.
func (m members) report(ctx context.Context, work *placementv1beta1.Work) error {
	if m.stuck[strings.TrimPrefix(work.Namespace, placementv1beta1.MemberNamespace(""))] {
		return nil
	}
	for _, kind := range []string{placementv1beta1.ConditionTypeApplied, placementv1beta1.ConditionTypeAvailable} {
		meta.SetStatusCondition(&work.Status.Conditions, metav1.Condition{
			Type: kind, Status: metav1.ConditionTrue, Reason: "Done", ObservedGeneration: work.Generation, LastTransitionTime: metav1.NewTime(m.clock.Now()),
		})
	}
	return m.WithWatch.Status().Update(ctx, work)
}

// recover lets a stuck member become available, and its informer tell.
func (h *hub) recover(cluster string) {
	h.t.Helper()
	h.stuck[cluster] = false
	work := get(h, &placementv1beta1.Work{}, placementv1beta1.MemberNamespace(cluster), "example-placement-work")
	require.NoError(h.t, members{h}.report(h.t.Context(), work))
	h.tell(&placementv1beta1.Work{}, work, work)
}

// tell lets the informer of a kind report a change.
func (h *hub) tell(kind, old, now client.Object) {
	h.t.Helper()
	informer, err := h.informers.FakeInformerFor(h.t.Context(), kind)
	require.NoError(h.t, err)
	informer.Update(old, now)
}

// untilItWaits returns when the activity in the background waits.
func (h *hub) untilItWaits() {
	h.t.Helper()
	select {
	case <-h.clock.waits:
	case <-time.After(10 * time.Minute):
		h.t.Fatal("the activity must wait")
	}
}

// background runs an activity while the test goes on.
func background[Out any](h *hub, f func() Out) chan Out {
	for len(h.clock.waits) > 0 {
		<-h.clock.waits
	}
	out := make(chan Out, 1)
	go func() { out <- f() }()
	return out
}

func get[T client.Object](h *hub, into T, namespace, name string) T {
	h.t.Helper()
	require.NoError(h.t, h.WithWatch.Get(h.t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, into))
	return into
}

func (h *hub) run(name string) *placementv1beta1.ClusterStagedUpdateRun {
	h.t.Helper()
	return get(h, &placementv1beta1.ClusterStagedUpdateRun{}, "", name)
}

func (h *hub) binding(cluster string) *placementv1beta1.ClusterResourceBinding {
	h.t.Helper()
	return get(h, &placementv1beta1.ClusterResourceBinding{}, "", placementv1beta1.BindingName("example-placement", "crp-uid", cluster))
}

// edit changes an object behind everybody's back.
func edit[T client.Object](h *hub, object T, change func(T)) T {
	h.t.Helper()
	change(object)
	require.NoError(h.t, h.WithWatch.Update(h.t.Context(), object))
	return object
}

// editStatus is edit for the status.
func editStatus[T client.Object](h *hub, object T, change func(T)) T {
	h.t.Helper()
	change(object)
	require.NoError(h.t, h.WithWatch.Status().Update(h.t.Context(), object))
	return object
}
