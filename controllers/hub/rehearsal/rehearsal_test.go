package rehearsal

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/fleetflow/fleetflow/activities/envelope"
	"github.com/fleetflow/fleetflow/activities/override"
	rehearsals "github.com/fleetflow/fleetflow/activities/rehearsal"
	"github.com/fleetflow/fleetflow/activities/worksync"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/controllers/hub/fieldindex"
	"github.com/fleetflow/fleetflow/test/fixture"
)

var begin = time.Date(2026, 1, 2, 3, 4, 5, 600_000_000, time.UTC)

// world is a hub with a placement that has picked some clusters.
type world struct {
	client.Client
	clock *clocktesting.FakePassiveClock
	mu    sync.Mutex
	// writes are counted by kind of write.
	writes map[string]int
	// refuse refuses the creation of a question, if it says so.
	refuse func(*fleetflowv1alpha1.MemberQuestion) error
}

func (w *world) wrote(what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.writes[what]++
}

func newWorld(t *testing.T, clusters int, content string) *world {
	t.Helper()
	placement := &placementv1beta1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: "web", UID: "uid-web"}}
	objects := []client.Object{placement}
	for index := range 2 {
		s := &placementv1beta1.ClusterResourceSnapshot{}
		s.Name = placementv1beta1.ResourceSnapshotName("web", index, 0)
		s.UID = types.UID(s.Name)
		s.Labels = map[string]string{
			placementv1beta1.ResourceIndexLabel: fmt.Sprint(index), placementv1beta1.ParentPlacementLabel: "web",
			placementv1beta1.IsLatestSnapshotLabel: fmt.Sprint(index == 1),
		}
		s.Annotations = map[string]string{placementv1beta1.NumberOfResourceSnapshotsAnnotation: "1"}
		raw := fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"web","name":"c"},"data":{"v":"%d%s"}}`, index, content)
		s.Spec.SelectedResources = []placementv1beta1.ResourceContent{{RawExtension: runtime.RawExtension{Raw: []byte(raw)}}}
		objects = append(objects, s)
	}
	for i := range clusters {
		name := fmt.Sprintf("m%d", i+1)
		binding := &placementv1beta1.ClusterResourceBinding{ObjectMeta: metav1.ObjectMeta{
			Name: placementv1beta1.BindingName("web", placement.GetUID(), name), Labels: map[string]string{placementv1beta1.ParentPlacementLabel: "web"},
		}, Spec: placementv1beta1.ResourceBindingSpec{TargetCluster: name}}
		binding.UID = types.UID("uid-" + name)
		binding.Spec.State = placementv1beta1.BindingStateBound
		binding.Spec.ResourceSnapshotName = placementv1beta1.ResourceSnapshotName("web", 0, 0)
		objects = append(objects, binding, &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	w := &world{clock: clocktesting.NewFakePassiveClock(begin), writes: map[string]int{}}
	builder := fixture.NewClientBuilder(fixture.Scheme(t)).WithObjects(objects...).
		WithStatusSubresource(&fleetflowv1alpha1.MemberQuestion{}, &fleetflowv1alpha1.ClusterRehearsal{})
	for _, index := range append(fieldindex.All(), fieldindex.Questions()) {
		builder.WithIndex(index.Object, index.Field, index.Extract)
	}
	w.Client = interceptor.NewClient(builder.Build(), interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			if q, is := o.(*fleetflowv1alpha1.MemberQuestion); is {
				if w.refuse != nil {
					if err := w.refuse(q); err != nil {
						return err
					}
				}
				w.wrote("create")
			}
			if o.GetUID() == "" {
				o.SetUID(types.UID("uid-" + o.GetNamespace() + "-" + o.GetName()))
			}
			return c.Create(ctx, o, opts...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			w.wrote(fmt.Sprintf("delete %T", o))
			return c.Delete(ctx, o, opts...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, _ string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			w.wrote(fmt.Sprintf("status %T", o))
			return c.Status().Patch(ctx, o, p, opts...)
		},
	})
	return w
}

func (w *world) reconciler() *Reconciler {
	rules := func(context.Context) (envelope.Rules, error) { return envelope.Rules{}, nil }
	return NewReconciler(Options{
		Client: w, Live: w, Works: worksync.NewSyncer(w, w, w.clock, rules), Clock: w.clock, Events: events.NewFakeRecorder(100),
		Overrides: func(context.Context, placementv1beta1.PlacementObject, string) (*override.Matcher, error) {
			return nil, nil
		},
	})
}

func (w *world) create(t *testing.T, spec fleetflowv1alpha1.RehearsalSpec) {
	t.Helper()
	require.NoError(t, w.Create(t.Context(), &fleetflowv1alpha1.ClusterRehearsal{
		ObjectMeta: metav1.ObjectMeta{Name: "r", UID: "uid-r", CreationTimestamp: metav1.NewTime(begin)}, Spec: spec,
	}))
}

func look(t *testing.T, r *Reconciler) ctrl.Result {
	t.Helper()
	result, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Name: "r"}})
	require.NoError(t, err)
	return result
}

func (w *world) pass(by time.Duration) { w.clock.SetTime(w.clock.Now().Add(by)) }

func (w *world) status(t *testing.T) fleetflowv1alpha1.RehearsalStatus {
	t.Helper()
	r := &fleetflowv1alpha1.ClusterRehearsal{}
	require.NoError(t, w.Get(t.Context(), types.NamespacedName{Name: "r"}, r))
	return r.Status
}

func (w *world) completed(t *testing.T) metav1.Condition {
	t.Helper()
	completed := meta.FindStatusCondition(w.status(t).Conditions, fleetflowv1alpha1.ConditionTypeCompleted)
	require.NotNil(t, completed)
	return *completed
}

func (w *world) questions(t *testing.T) []fleetflowv1alpha1.MemberQuestion {
	t.Helper()
	var list fleetflowv1alpha1.MemberQuestionList
	require.NoError(t, w.List(t.Context(), &list))
	return list.Items
}

// answer has a member answer with an outcome of its one object.
func (w *world) answer(t *testing.T, cluster string, outcome fleetflowv1alpha1.RehearsalOutcome, message string) {
	t.Helper()
	q := &fleetflowv1alpha1.MemberQuestion{}
	require.NoError(t, w.Get(t.Context(), types.NamespacedName{Namespace: "fleet-member-" + cluster, Name: "rehearsal-uid-r"}, q))
	var packed bytes.Buffer
	writer := gzip.NewWriter(&packed)
	require.NoError(t, json.NewEncoder(writer).Encode([]fleetflowv1alpha1.RehearsedObject{{
		Object: placementv1beta1.WorkResourceIdentifier{Kind: "ConfigMap", Namespace: "web", Name: "c"}, Outcome: outcome, Message: message,
	}}))
	require.NoError(t, writer.Close())
	q.Status = fleetflowv1alpha1.MemberQuestionStatus{
		Conditions: []metav1.Condition{{Type: fleetflowv1alpha1.ConditionTypeAnswered, Status: metav1.ConditionTrue, Reason: "Answered"}},
		Rehearsal:  &fleetflowv1alpha1.RehearsalAnswer{Revision: q.Spec.Rehearse.Revision, Objects: packed.Bytes()},
	}
	require.NoError(t, w.Status().Update(t.Context(), q))
}

func TestEveryClusterIsAskedOnceAndAnswersAreCounted(t *testing.T) {
	w := newWorld(t, 3, "")
	r := w.reconciler()
	w.create(t, fleetflowv1alpha1.RehearsalSpec{PlacementName: "web"})
	look(t, r)
	questions := w.questions(t)
	require.Len(t, questions, 3)
	asked := questions[0]
	assert.Equal(t, "rehearsal-uid-r", asked.Name)
	assert.Equal(t, "1", asked.Spec.Rehearse.Revision, "the latest")
	assert.Equal(t, []fleetflowv1alpha1.RehearsedWork{{Name: "web-work", Manifests: 1}}, asked.Spec.Rehearse.Works)
	require.Len(t, asked.OwnerReferences, 1)
	assert.Equal(t, "ClusterRehearsal", asked.OwnerReferences[0].Kind)
	assert.True(t, asked.Spec.Deadline.After(begin.Add(time.Minute)), "a member has the whole time")
	assert.Equal(t, fleetflowv1alpha1.ReasonRehearsalWaiting, w.completed(t).Reason)

	w.answer(t, "m1", fleetflowv1alpha1.RehearsalChanges, "")
	w.answer(t, "m2", fleetflowv1alpha1.RehearsalRefused, "exceeded quota")
	assert.Positive(t, look(t, r).RequeueAfter, "answers that come together are one write")
	w.pass(time.Second)
	look(t, r)
	status := w.status(t)
	assert.EqualValues(t, 2, status.Answered)
	assert.Equal(t, fleetflowv1alpha1.RehearsalCounts{Changes: 1, Refused: 1}, status.Clusters)
	assert.Equal(t, "2 of 3 clusters have answered", w.completed(t).Message)

	w.answer(t, "m3", fleetflowv1alpha1.RehearsalSame, "")
	w.pass(time.Second)
	look(t, r)
	completed := w.completed(t)
	assert.Equal(t, metav1.ConditionTrue, completed.Status)
	assert.Equal(t, fleetflowv1alpha1.ReasonRehearsalAllAnswered, completed.Reason)
	assert.Equal(t, "3 of 3 clusters have answered about revision 1: 1 refused, 1 changes, 1 same", completed.Message)
	assert.Len(t, w.status(t).Digest, 64)
	assert.Equal(t, []string{"m2"}, w.status(t).Groups[0].Clusters)

	w.pass(29 * time.Minute)
	look(t, r)
	assert.Len(t, w.questions(t), 3, "details are there for a while")
	w.pass(time.Minute)
	look(t, r)
	assert.Empty(t, w.questions(t))
	assert.NotEmpty(t, w.status(t).Groups, "the summary stays")
	w.pass(24 * time.Hour)
	look(t, r)
	require.True(t, client.IgnoreNotFound(w.Get(t.Context(), types.NamespacedName{Name: "r"}, &fleetflowv1alpha1.ClusterRehearsal{})) == nil)
	assert.Equal(t, 3, w.writes["create"])
	assert.Equal(t, 3, w.writes["delete *v1alpha1.MemberQuestion"])
}

func TestASilentMemberIsUnknown(t *testing.T) {
	w := newWorld(t, 2, "")
	r := w.reconciler()
	w.create(t, fleetflowv1alpha1.RehearsalSpec{PlacementName: "web", Timeout: &metav1.Duration{Duration: 10 * time.Second}})
	look(t, r)
	w.answer(t, "m1", fleetflowv1alpha1.RehearsalSame, "")
	w.pass(10 * time.Second)
	look(t, r)
	assert.Equal(t, metav1.ConditionFalse, w.completed(t).Status, "the second of the start counts whole")
	w.pass(2 * time.Second)
	look(t, r)
	completed := w.completed(t)
	assert.Equal(t, fleetflowv1alpha1.ReasonRehearsalSomeUnknown, completed.Reason)
	status := w.status(t)
	assert.Equal(t, fleetflowv1alpha1.RehearsalCounts{Unknown: 1, Same: 1}, status.Clusters)
	assert.Contains(t, status.Groups[0].Message, "no answer by 2026-01-02T03:04:16Z")
	assert.Equal(t, []string{"m2"}, status.Groups[0].Clusters)
}

// arrives has the reconciler see the answer of a cluster, as the watch does.
func (w *world) arrives(t *testing.T, r *Reconciler, cluster string) {
	t.Helper()
	q := &fleetflowv1alpha1.MemberQuestion{}
	require.NoError(t, w.Get(t.Context(), types.NamespacedName{Namespace: "fleet-member-" + cluster, Name: "rehearsal-uid-r"}, q))
	require.Len(t, r.requestOrigin(t.Context(), q), 1)
}

func TestTheLastAnswerIsCountedAtOnce(t *testing.T) {
	w := newWorld(t, 2, "")
	r := w.reconciler()
	w.create(t, fleetflowv1alpha1.RehearsalSpec{PlacementName: "web"})
	look(t, r)
	w.answer(t, "m1", fleetflowv1alpha1.RehearsalSame, "")
	w.arrives(t, r, "m1")
	assert.Positive(t, look(t, r).RequeueAfter, "others may come with it")
	assert.Zero(t, w.status(t).Answered)
	w.answer(t, "m2", fleetflowv1alpha1.RehearsalSame, "")
	w.arrives(t, r, "m2")
	look(t, r)
	assert.Equal(t, metav1.ConditionTrue, w.completed(t).Status)
}

func TestAMemberThatAnswersOverAndOverCausesOneLookMore(t *testing.T) {
	w := newWorld(t, 2, "")
	r := w.reconciler()
	w.create(t, fleetflowv1alpha1.RehearsalSpec{PlacementName: "web"})
	look(t, r)
	w.answer(t, "m1", fleetflowv1alpha1.RehearsalSame, "")
	for range 5 {
		w.arrives(t, r, "m1")
	}
	look(t, r)
	assert.EqualValues(t, 1, w.status(t).Answered)
	w.answer(t, "m2", fleetflowv1alpha1.RehearsalSame, "")
	w.arrives(t, r, "m1")
	w.arrives(t, r, "m2")
	assert.Positive(t, look(t, r).RequeueAfter)
	assert.EqualValues(t, 1, w.status(t).Answered, "from then on answers wait for each other")
	w.pass(time.Second)
	look(t, r)
	assert.Equal(t, metav1.ConditionTrue, w.completed(t).Status)
}

func TestAMemberThatAnswersTwiceIsCountedOnce(t *testing.T) {
	w := newWorld(t, 2, "")
	r := w.reconciler()
	w.create(t, fleetflowv1alpha1.RehearsalSpec{PlacementName: "web"})
	look(t, r)
	w.answer(t, "m1", fleetflowv1alpha1.RehearsalRefused, "exceeded quota")
	w.pass(time.Second)
	look(t, r)
	w.answer(t, "m1", fleetflowv1alpha1.RehearsalSame, "")
	w.answer(t, "m2", fleetflowv1alpha1.RehearsalSame, "")
	w.pass(time.Second)
	look(t, r)
	assert.EqualValues(t, 2, w.status(t).Answered)
	assert.Equal(t, fleetflowv1alpha1.RehearsalCounts{Refused: 1, Same: 1}, w.status(t).Clusters, "the first answer counts")
}

func TestWhatIsNotThereIsSaid(t *testing.T) {
	for sentence, test := range map[string]struct {
		spec fleetflowv1alpha1.RehearsalSpec
		says string
	}{
		"no placement": {fleetflowv1alpha1.RehearsalSpec{PlacementName: "other"}, "ClusterResourcePlacement other is not there"},
		"no revision":  {fleetflowv1alpha1.RehearsalSpec{PlacementName: "web", ResourceSnapshotIndex: "7"}, "has no resource snapshot 7"},
		"no cluster":   {fleetflowv1alpha1.RehearsalSpec{PlacementName: "web", Clusters: []string{"m1", "x"}}, "these clusters are not there, or the placement has not picked them: x"},
		"no run":       {fleetflowv1alpha1.RehearsalSpec{PlacementName: "web", UpdateRunName: "web-1"}, "ClusterStagedUpdateRun web-1 is not there"},
	} {
		t.Run(sentence, func(t *testing.T) {
			w := newWorld(t, 1, "")
			w.create(t, test.spec)
			look(t, w.reconciler())
			assert.Equal(t, fleetflowv1alpha1.ReasonRehearsalInvalid, w.completed(t).Reason)
			assert.Contains(t, w.completed(t).Message, test.says)
			assert.Empty(t, w.questions(t))
		})
	}
}

func TestAnotherAgentGoesOnWhereverTheFirstWasKilled(t *testing.T) {
	w := newWorld(t, 3, "")
	broken := errors.New("killed")
	w.refuse = func(q *fleetflowv1alpha1.MemberQuestion) error {
		if q.Namespace == "fleet-member-m2" {
			return broken
		}
		return nil
	}
	w.create(t, fleetflowv1alpha1.RehearsalSpec{PlacementName: "web", ResourceSnapshotIndex: "0"})
	_, err := w.reconciler().Reconcile(t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Name: "r"}})
	require.ErrorIs(t, err, broken)
	assert.Equal(t, fleetflowv1alpha1.ReasonRehearsalAsking, w.completed(t).Reason)
	started := w.status(t).StartTime

	w.refuse = nil
	w.pass(5 * time.Second)
	look(t, w.reconciler())
	require.Len(t, w.questions(t), 3)
	assert.Equal(t, 3, w.writes["create"], "no cluster is asked twice")
	assert.Equal(t, started, w.status(t).StartTime)
	w.answer(t, "m1", fleetflowv1alpha1.RehearsalSame, "")
	w.pass(time.Second)
	look(t, w.reconciler())

	for _, cluster := range []string{"m2", "m3"} {
		w.answer(t, cluster, fleetflowv1alpha1.RehearsalCreates, "")
	}
	w.pass(time.Second)
	look(t, w.reconciler())
	assert.Equal(t, metav1.ConditionTrue, w.completed(t).Status)
	assert.EqualValues(t, 3, w.status(t).Answered)
}

func TestWhatIsTooLargeIsNotAskedAndUnknown(t *testing.T) {
	var noise strings.Builder
	for i := range 400_000 {
		fmt.Fprintf(&noise, "%x", uint32(i)*2654435761) //nolint:gosec // wraps on purpose
	}
	w := newWorld(t, 2, noise.String())
	r := w.reconciler()
	w.create(t, fleetflowv1alpha1.RehearsalSpec{PlacementName: "web"})
	look(t, r)
	assert.Empty(t, w.questions(t))
	for _, again := range []*Reconciler{r, w.reconciler()} { // also another agent knows
		w.pass(time.Second)
		look(t, again)
	}
	assert.Equal(t, fleetflowv1alpha1.ReasonRehearsalSomeUnknown, w.completed(t).Reason)
	assert.Equal(t, fleetflowv1alpha1.RehearsalCounts{Unknown: 2}, w.status(t).Clusters)
	assert.Contains(t, w.status(t).Groups[0].Message, "too large to ask")
}

func TestQuestionsGoWithTheirRehearsal(t *testing.T) {
	w := newWorld(t, 2, "")
	r := w.reconciler()
	w.create(t, fleetflowv1alpha1.RehearsalSpec{PlacementName: "web"})
	look(t, r)
	require.Len(t, w.questions(t), 2)
	require.NoError(t, w.Delete(t.Context(), &fleetflowv1alpha1.ClusterRehearsal{ObjectMeta: metav1.ObjectMeta{Name: "r"}}))
	look(t, w.reconciler()) // as one does that has just begun to lead
	assert.Empty(t, w.questions(t))
}

func TestAMemberThatLeavesIsUnknownByTheDeadline(t *testing.T) {
	w := newWorld(t, 2, "")
	r := w.reconciler()
	w.create(t, fleetflowv1alpha1.RehearsalSpec{PlacementName: "web"})
	look(t, r)
	w.answer(t, "m1", fleetflowv1alpha1.RehearsalSame, "")
	require.NoError(t, w.Delete(t.Context(), &fleetflowv1alpha1.MemberQuestion{
		ObjectMeta: metav1.ObjectMeta{Namespace: "fleet-member-m2", Name: "rehearsal-uid-r"},
	}))
	w.pass(2 * time.Minute)
	look(t, w.reconciler())
	assert.Equal(t, fleetflowv1alpha1.RehearsalCounts{Unknown: 1, Same: 1}, w.status(t).Clusters)
	assert.Equal(t, fleetflowv1alpha1.ReasonRehearsalSomeUnknown, w.completed(t).Reason)
}

func TestFiveHundredAnswersAreFewWrites(t *testing.T) {
	w := newWorld(t, 500, "")
	r := w.reconciler()
	w.create(t, fleetflowv1alpha1.RehearsalSpec{PlacementName: "web"})
	look(t, r)
	for i := range 500 {
		w.answer(t, fmt.Sprintf("m%d", i+1), fleetflowv1alpha1.RehearsalSame, "")
		if i%25 == 0 {
			w.pass(100 * time.Millisecond)
			look(t, r)
		}
	}
	w.pass(time.Second)
	look(t, r)
	assert.Equal(t, metav1.ConditionTrue, w.completed(t).Status)
	assert.LessOrEqual(t, w.writes["status *v1alpha1.ClusterRehearsal"], 2+3, "2 seconds of answers, and the end")
	assert.Equal(t, 500, w.writes["create"])
}

func TestAnAnswerRequestsTheRehearsalOfItsScope(t *testing.T) {
	r := (&world{clock: clocktesting.NewFakePassiveClock(begin)}).reconciler()
	rehearsal := &fleetflowv1alpha1.Rehearsal{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "r", UID: "uid"}}
	question := rehearsals.NewQuestion(rehearsal, "m1", metav1.NewTime(begin), nil)
	assert.Empty(t, question.OwnerReferences, "nothing owns objects of another namespace")
	assert.Empty(t, r.requestOrigin(t.Context(), question))
	r.scope = placementv1beta1.AnyNamespace
	assert.Equal(t, types.NamespacedName{Namespace: "team", Name: "r"}, r.requestOrigin(t.Context(), question)[0].NamespacedName)
}

// other makes another rehearsal of the placement, older than the one that is looked at; one that has ended, if it has since.
func (w *world) other(t *testing.T, name string, age time.Duration, ended bool, edit ...func(*fleetflowv1alpha1.ClusterRehearsal)) {
	t.Helper()
	r := &fleetflowv1alpha1.ClusterRehearsal{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name), CreationTimestamp: metav1.NewTime(begin.Add(-age))},
		Spec:       fleetflowv1alpha1.RehearsalSpec{PlacementName: "web"},
	}
	for _, change := range edit {
		change(r)
	}
	status := r.Status
	require.NoError(t, w.Create(t.Context(), r))
	if ended {
		status.CompletionTime = &metav1.Time{Time: begin.Add(-age)}
		status.Conditions = []metav1.Condition{{Type: fleetflowv1alpha1.ConditionTypeCompleted, Status: metav1.ConditionTrue, Reason: "AllAnswered",
			LastTransitionTime: metav1.NewTime(begin)}}
	}
	r.Status = status
	require.NoError(t, w.Client.Status().Update(t.Context(), r))
}

func TestOnlySoManyRehearsalsAreUnderWay(t *testing.T) {
	for name, of := range map[string]struct {
		others    int
		placement string
		why       string
	}{
		"of one placement": {5, "web", "5 other rehearsals of web are under way, and no more may be: create it once one of them has ended"},
		"fewer":            {4, "web", ""},
		"of others":        {49, "db", ""},
		"of all":           {50, "db", "50 other rehearsals are under way on this hub, and no more may be: create it once one of them has ended"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 1, "")
			for i := range of.others {
				w.other(t, fmt.Sprint("other-", i), time.Minute, false, func(r *fleetflowv1alpha1.ClusterRehearsal) { r.Spec.PlacementName = of.placement })
			}
			w.other(t, "ended", time.Minute, true)
			w.create(t, fleetflowv1alpha1.RehearsalSpec{PlacementName: "web"})
			r := w.reconciler()
			if look(t, r); of.why == "" {
				assert.Len(t, w.questions(t), 1)
				return
			}
			assert.Empty(t, w.status(t).Conditions, "that one has ended may not be known yet")
			w.pass(3 * time.Second)
			look(t, r)
			assert.Equal(t, fleetflowv1alpha1.ReasonRehearsalInvalid, w.completed(t).Reason)
			assert.Equal(t, of.why, w.completed(t).Message)
			assert.Empty(t, w.questions(t))
		})
	}
}

// runThatAsks makes a run whose stage asks the rehearsal of a name.
func (w *world) runThatAsks(t *testing.T, rehearsal string) *placementv1beta1.ClusterStagedUpdateRun {
	t.Helper()
	run := &placementv1beta1.ClusterStagedUpdateRun{ObjectMeta: metav1.ObjectMeta{Name: "run", UID: "uid-run"}}
	run.Status.StagesStatus = []placementv1beta1.StageUpdatingStatus{{StageName: "canary", BeforeStageTaskStatus: []placementv1beta1.StageTaskStatus{{
		Type: placementv1beta1.StageTaskTypeRehearsal, Rehearsal: &placementv1beta1.StageRehearsal{Name: rehearsal, Attempt: 1},
	}}}}
	require.NoError(t, w.Create(t.Context(), run))
	return run
}

func askedBy(run *placementv1beta1.ClusterStagedUpdateRun) func(*fleetflowv1alpha1.ClusterRehearsal) {
	return func(r *fleetflowv1alpha1.ClusterRehearsal) {
		r.Spec.UpdateRunName = run.Name
		r.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(run, placementv1beta1.Scope{}.UpdateRunKind())}
	}
}

func TestWhatAStageWaitsForIsNotRefusedForItsNumber(t *testing.T) {
	for name, needed := range map[string]bool{"r": true, "another": false} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 1, "")
			run := w.runThatAsks(t, name)
			for i := range 5 {
				w.other(t, fmt.Sprint("other-", i), time.Minute, false)
			}
			w.other(t, "r", 0, false, askedBy(run))
			w.pass(time.Minute)
			why, err := w.reconciler().whyNoRoom(t.Context(), w.rehearsal(t, "r"))
			require.NoError(t, err)
			assert.Equal(t, needed, why == "", why)
		})
	}
}

func (w *world) rehearsal(t *testing.T, name string) *fleetflowv1alpha1.ClusterRehearsal {
	t.Helper()
	r := &fleetflowv1alpha1.ClusterRehearsal{}
	require.NoError(t, w.Get(t.Context(), types.NamespacedName{Name: name}, r))
	return r
}

func TestOnlySoManyRehearsalsAreKept(t *testing.T) {
	w := newWorld(t, 1, "")
	run := w.runThatAsks(t, "other-24")
	for i := range 25 {
		w.other(t, fmt.Sprint("other-", i), time.Duration(i)*time.Minute, true, func(r *fleetflowv1alpha1.ClusterRehearsal) {
			if i >= 23 {
				askedBy(run)(r) // a user can write so
			}
		})
	}
	w.other(t, "of-another", 100*time.Minute, true, func(r *fleetflowv1alpha1.ClusterRehearsal) { r.Spec.PlacementName = "db" })
	w.other(t, "under-way", 100*time.Minute, false)
	w.create(t, fleetflowv1alpha1.RehearsalSpec{PlacementName: "web"})
	r := w.reconciler()
	look(t, r)
	w.answer(t, "m1", fleetflowv1alpha1.RehearsalSame, "")
	w.pass(2 * time.Second)
	look(t, r)
	require.Equal(t, metav1.ConditionTrue, w.completed(t).Status)
	var left fleetflowv1alpha1.ClusterRehearsalList
	require.NoError(t, w.List(t.Context(), &left))
	kept := map[string]bool{}
	for i := range left.Items {
		kept[left.Items[i].Name] = true
	}
	assert.Len(t, kept, 20+3, kept)
	assert.True(t, kept["r"] && kept["of-another"] && kept["under-way"], kept)
	assert.True(t, kept["other-18"] && kept["other-24"], "the newest, and what a stage waits for: %v", kept)
	assert.False(t, kept["other-19"] || kept["other-23"], kept)
}
