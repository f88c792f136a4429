package rollingupdate_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/testsuite"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	k8sclock "k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/fleetflow/fleetflow/activities/clusterwait"
	"github.com/fleetflow/fleetflow/activities/envelope"
	"github.com/fleetflow/fleetflow/activities/rollingupdate"
	"github.com/fleetflow/fleetflow/activities/workmodel"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/test/fixture"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// waitClock is a fake clock that says when somebody waits on it.
type waitClock struct {
	*clocktesting.FakeClock
	waits chan struct{}
}

// NewTimer notes that somebody waits; a timer that is due fires at once.
func (c *waitClock) NewTimer(d time.Duration) k8sclock.Timer {
	timer := c.FakeClock.NewTimer(d)
	c.Step(0)
	c.waits <- struct{}{}
	return timer
}

// After does not keep anybody waiting: clusters are collected for no time.
func (c *waitClock) After(time.Duration) <-chan time.Time {
	out := make(chan time.Time, 1)
	out <- c.Now()
	return out
}

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

var ref = wf.Ref{Kind: wf.KindClusterResourcePlacement, Name: "crp", UID: "crp-uid"}

func crp() *placementv1beta1.ClusterResourcePlacement {
	return &placementv1beta1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: "crp", UID: "crp-uid", Generation: 1}}
}

// rollout is a hub in memory with a placement that rolls out crp-1-snapshot.
type rollout struct {
	t *testing.T
	client.WithWatch
	clock     *waitClock
	informers *informertest.FakeInformers
	rolling   *rollingupdate.Activities
	// prompt lets members report at once what they are told.
	prompt bool
	// epoch is what the last call proposed; with claims, results tell it.
	epoch  int64
	claims bool
	// progressAt is what the last call said.
	progressAt time.Time
	// returning is held while a call notes both: one in the background may return beside another.
	returning sync.Mutex
}

func newRollout(t *testing.T, bindings ...*placementv1beta1.ClusterResourceBinding) *rollout {
	t.Helper()
	scheme := runtime.NewScheme()
	watched := runtime.NewScheme()
	require.NoError(t, placementv1beta1.AddToScheme(scheme))
	require.NoError(t, fleetflowv1alpha1.AddToScheme(scheme))
	require.NoError(t, clusterv1beta1.AddToScheme(scheme))
	require.NoError(t, placementv1beta1.AddToScheme(watched))
	require.NoError(t, fleetflowv1alpha1.AddToScheme(watched))
	require.NoError(t, clusterv1beta1.AddToScheme(watched))
	watched.AddKnownTypeWithName(schema.GroupVersionKind{Group: "meta", Version: "v1", Kind: "Snapshot"}, &metav1.PartialObjectMetadata{})
	r := &rollout{t: t, clock: &waitClock{clocktesting.NewFakeClock(now), make(chan struct{}, 1000)}, informers: &informertest.FakeInformers{Scheme: watched}}
	objects := []client.Object{crp(), snapshotNamed("crp-0-snapshot", "false"), snapshotNamed("crp-1-snapshot", "true")}
	for _, b := range bindings {
		objects = append(objects, b)
	}
	r.WithWatch = fixture.Index(fixture.NewClientBuilder(scheme)).WithObjects(objects...).
		WithStatusSubresource(&placementv1beta1.ClusterResourceBinding{}, &placementv1beta1.Work{}, &placementv1beta1.ClusterResourcePlacementEviction{},
			&placementv1beta1.ClusterSchedulingPolicySnapshot{}).
		WithInterceptorFuncs(interceptor.Funcs{Patch: fenced, SubResourcePatch: fencedStatus}).Build()
	notifier := clusterwait.NewNotifier()
	require.NoError(t, notifier.Watch(t.Context(), r.informers, r))
	r.rolling = &rollingupdate.Activities{Client: r, Live: r, Works: r, Notifier: notifier, Clock: r.clock}
	for _, b := range bindings {
		if b.Spec.ResourceSnapshotName != "" {
			require.NoError(t, r.Sync(t.Context(), b))
			r.report(b.Spec.TargetCluster, metav1.ConditionTrue)
		}
	}
	return r
}

// fenced gives a failed test of a JSON patch the status an API server gives.
func fenced(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, options ...client.PatchOption) error {
	err := c.Patch(ctx, o, patch, options...)
	if err != nil && (strings.Contains(err.Error(), "testing path") || strings.Contains(err.Error(), "test failed")) {
		return apierrors.NewGenericServerResponse(422, "", schema.GroupResource{}, "", err.Error(), 0, false)
	}
	return err
}

func fencedStatus(ctx context.Context, c client.Client, subresource string, o client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
	err := c.SubResource(subresource).Patch(ctx, o, patch, options...)
	if err != nil && (strings.Contains(err.Error(), "testing path") || strings.Contains(err.Error(), "test failed")) {
		return apierrors.NewGenericServerResponse(422, "", schema.GroupResource{}, "", err.Error(), 0, false)
	}
	return err
}

func snapshotNamed(name, latest string) *placementv1beta1.ClusterResourceSnapshot {
	return &placementv1beta1.ClusterResourceSnapshot{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
		placementv1beta1.ParentPlacementLabel: "crp", placementv1beta1.IsLatestSnapshotLabel: latest,
	}}}
}

func bound(cluster, snapshot string) *placementv1beta1.ClusterResourceBinding {
	return &placementv1beta1.ClusterResourceBinding{
		ObjectMeta: metav1.ObjectMeta{
			Name: placementv1beta1.BindingName("crp", "crp-uid", cluster), UID: types.UID("uid-" + cluster), Generation: 1,
			Labels: map[string]string{placementv1beta1.ParentPlacementLabel: "crp"},
		},
		Spec: placementv1beta1.ResourceBindingSpec{State: placementv1beta1.BindingStateBound, TargetCluster: cluster, ResourceSnapshotName: snapshot, SchedulingPolicySnapshotName: "crp-0"},
	}
}

func scheduled(cluster string) *placementv1beta1.ClusterResourceBinding {
	b := bound(cluster, "")
	b.Spec.State = placementv1beta1.BindingStateScheduled
	return b
}

func unscheduled(cluster string) *placementv1beta1.ClusterResourceBinding {
	b := bound(cluster, "crp-0-snapshot")
	b.Spec.State = placementv1beta1.BindingStateUnscheduled
	return b
}

// Sync writes the one Work of a binding.
func (r *rollout) Sync(ctx context.Context, b placementv1beta1.BindingObject) error {
	work := &placementv1beta1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet-member-" + b.GetBindingSpec().TargetCluster, Name: "crp-work"}}
	err := r.Get(ctx, client.ObjectKeyFromObject(work), work)
	missing := apierrors.IsNotFound(err)
	want := r.dividedWork(b)
	if client.IgnoreNotFound(err) != nil || !missing && work.Annotations[placementv1beta1.RevisionAnnotation] == workmodel.Revision(b) &&
		work.Annotations[workmodel.AssignmentsAnnotation] == want.Annotations[workmodel.AssignmentsAnnotation] {
		return client.IgnoreNotFound(err)
	}
	workmodel.CarryVersion(&want, work.DeepCopy())
	work.Labels = map[string]string{placementv1beta1.ParentBindingLabel: b.GetName(), placementv1beta1.ParentPlacementLabel: "crp"}
	work.Annotations = map[string]string{
		placementv1beta1.RevisionAnnotation: workmodel.Revision(b), placementv1beta1.BindingUIDAnnotation: string(b.GetUID()), placementv1beta1.WorkCountAnnotation: "1",
	}
	for _, key := range []string{workmodel.AssignmentsAnnotation, workmodel.ScalingAnnotation} {
		if value := want.Annotations[key]; value != "" {
			work.Annotations[key] = value
		}
	}
	work.Spec = want.Spec
	work.Generation++
	if missing {
		err = r.Create(ctx, work)
	} else {
		err = r.Update(ctx, work)
	}
	if err == nil && r.prompt {
		r.report(b.GetBindingSpec().TargetCluster, metav1.ConditionTrue)
	}
	return err
}

// dividedWork is the Work of a binding to a snapshot with one Deployment, as divided.
func (r *rollout) dividedWork(b placementv1beta1.BindingObject) placementv1beta1.Work {
	r.t.Helper()
	part := snapshotNamed(b.GetBindingSpec().ResourceSnapshotName, "true")
	part.Spec.SelectedResources = []placementv1beta1.ResourceContent{{RawExtension: runtime.RawExtension{
		Raw: []byte(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"front","namespace":"web"}}`),
	}}}
	content, err := workmodel.NewContent(envelope.Rules{}, []placementv1beta1.ResourceSnapshotObject{part}).Divide(b.GetBindingSpec().ReplicaAssignments)
	require.NoError(r.t, err)
	works, err := workmodel.Generate(b, content)
	require.NoError(r.t, err)
	return works[0]
}

// report lets a member say that it has applied its Work and whether that is
// available; its informer tells.
func (r *rollout) report(cluster string, available metav1.ConditionStatus, reason ...string) {
	r.t.Helper()
	work := &placementv1beta1.Work{}
	require.NoError(r.t, r.Get(r.t.Context(), client.ObjectKey{Namespace: "fleet-member-" + cluster, Name: "crp-work"}, work))
	for kind, status := range map[string]metav1.ConditionStatus{placementv1beta1.ConditionTypeApplied: metav1.ConditionTrue, placementv1beta1.ConditionTypeAvailable: available} {
		meta.SetStatusCondition(&work.Status.Conditions, metav1.Condition{
			Type: kind, Status: status, Reason: strings.Join(append(reason, "Reported")[:1], ""), ObservedGeneration: work.Generation, LastTransitionTime: metav1.NewTime(r.clock.Now()),
		})
	}
	require.NoError(r.t, r.Status().Update(r.t.Context(), work))
	r.tell(work, work)
}

// says has the status of a cluster's binding say whether what is placed is available, as the binding controller writes it.
func (r *rollout) says(cluster string, available metav1.ConditionStatus) {
	r.t.Helper()
	old := r.binding(cluster)
	b := old.DeepCopy()
	meta.SetStatusCondition(&b.Status.Conditions, metav1.Condition{Type: placementv1beta1.ConditionTypeAvailable, Status: available,
		Reason: "Reported", ObservedGeneration: b.Generation, LastTransitionTime: metav1.NewTime(r.clock.Now())})
	require.NoError(r.t, r.Status().Update(r.t.Context(), b))
	r.tell(old, b)
}

// tell lets an informer report a change.
func (r *rollout) tell(old, now client.Object) {
	r.t.Helper()
	informer, err := r.informers.FakeInformerFor(r.t.Context(), now)
	require.NoError(r.t, err)
	informer.Update(old, now)
}

func (r *rollout) binding(cluster string) *placementv1beta1.ClusterResourceBinding {
	r.t.Helper()
	b := &placementv1beta1.ClusterResourceBinding{}
	require.NoError(r.t, r.Get(r.t.Context(), client.ObjectKey{Name: placementv1beta1.BindingName("crp", "crp-uid", cluster)}, b))
	return b
}

// set changes a binding behind the activity's back, and tells of it.
func (r *rollout) set(cluster string, change func(*placementv1beta1.ClusterResourceBinding)) {
	r.t.Helper()
	old := r.binding(cluster)
	b := old.DeepCopy()
	b.Generation++
	change(b)
	require.NoError(r.t, r.Update(r.t.Context(), b))
	r.tell(old, b)
}

// edit changes the placement.
func (r *rollout) edit(change func(*placementv1beta1.ClusterResourcePlacement)) {
	r.t.Helper()
	p := &placementv1beta1.ClusterResourcePlacement{}
	require.NoError(r.t, r.Get(r.t.Context(), client.ObjectKey{Name: "crp"}, p))
	old := p.DeepCopy()
	change(p)
	require.NoError(r.t, r.Update(r.t.Context(), p))
	r.tell(old, p)
}

// advance runs the activity in Temporal's test environment.
func (r *rollout) advance(in wf.AdvanceRequest) wf.AdvanceResult {
	in.Placement = ref
	if in.Snapshot == "" {
		in.Snapshot = "crp-1-snapshot"
	}
	if in.Epoch == 0 && len(in.Batch) > 0 {
		in.Epoch = r.claimed() + 1
	}
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	env := suite.NewTestActivityEnvironment()
	env.RegisterActivityWithOptions(r.rolling.AdvancePlacement, activity.RegisterOptions{Name: "advance"})
	value, err := env.ExecuteActivity("advance", in)
	require.NoError(r.t, err)
	var out wf.AdvanceResult
	require.NoError(r.t, value.Get(&out))
	r.returning.Lock()
	r.epoch = out.Epoch
	r.progressAt = out.ProgressAt
	r.returning.Unlock()
	out.ProgressAt = time.Time{}
	if !r.claims {
		out.Epoch = 0
		out.Basis = ""
	}
	return out
}

// claimed returns the epoch of the claim on the placement.
func (r *rollout) claimed() int64 {
	r.t.Helper()
	p := &placementv1beta1.ClusterResourcePlacement{}
	require.NoError(r.t, client.IgnoreNotFound(r.Get(r.t.Context(), client.ObjectKey{Name: "crp"}, p)))
	var claim struct {
		Epoch int64 `json:"epoch"`
	}
	if text := p.Annotations[placementv1beta1.RolloutClaimAnnotation]; text != "" {
		require.NoError(r.t, json.Unmarshal([]byte(text), &claim))
	}
	return claim.Epoch
}

// waiting runs the activity in the background until it waits.
func (r *rollout) waiting(in wf.AdvanceRequest) chan wf.AdvanceResult {
	r.t.Helper()
	for len(r.clock.waits) > 0 {
		<-r.clock.waits
	}
	out := make(chan wf.AdvanceResult, 1)
	go func() { out <- r.advance(in) }()
	select {
	case <-r.clock.waits:
	case got := <-out:
		r.t.Fatalf("the activity must wait, but returned %+v", got)
	case <-time.After(10 * time.Minute):
		r.t.Fatal("the activity must wait")
	}
	return out
}

func (r *rollout) ended(c chan wf.AdvanceResult) wf.AdvanceResult {
	r.t.Helper()
	select {
	case got := <-c:
		return got
	case <-time.After(10 * time.Minute):
		r.t.Fatal("the activity must return")
		panic("unreachable")
	}
}
