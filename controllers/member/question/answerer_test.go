package question

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	"github.com/fleetflow/fleetflow/controllers/member/work"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

const inbox = "fleet-member-m"

// desk is an Answerer with a hub that has one question.
type desk struct {
	*Answerer
	t     *testing.T
	clock *clocktesting.FakeClock
	looks int
}

func newDesk(t *testing.T, question *fleetflowv1alpha1.MemberQuestion) *desk {
	t.Helper()
	scheme := runtime.NewScheme()
	require.NoError(t, fleetflowv1alpha1.AddToScheme(scheme))
	hub := fake.NewClientBuilder().WithScheme(scheme).WithObjects(question).WithStatusSubresource(question).Build()
	d := &desk{t: t, clock: clocktesting.NewFakeClock(noon)}
	d.Answerer = &Answerer{
		Namespace: inbox, Hub: hub, Clock: d.clock,
		Questions: func(_ context.Context, _ types.NamespacedName, into *fleetflowv1alpha1.MemberQuestion) error {
			question.DeepCopyInto(into) // a cache that never shows the answer
			return nil
		},
		Rehearse: func(context.Context, work.Change) []fleetflowv1alpha1.RehearsedObject {
			d.looks++
			return nil
		},
	}
	return d
}

// status is what the question has on the hub after the agent has looked at it.
func (d *desk) status(question *fleetflowv1alpha1.MemberQuestion) fleetflowv1alpha1.MemberQuestionStatus {
	d.t.Helper()
	_, err := d.Reconcile(d.t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(question)})
	require.NoError(d.t, err)
	stored := &fleetflowv1alpha1.MemberQuestion{}
	require.NoError(d.t, d.Hub.Get(d.t.Context(), client.ObjectKeyFromObject(question), stored))
	return stored.Status
}

func asked(edit func(*fleetflowv1alpha1.MemberQuestion)) *fleetflowv1alpha1.MemberQuestion {
	q := &fleetflowv1alpha1.MemberQuestion{
		ObjectMeta: metav1.ObjectMeta{Namespace: inbox, Name: "q", UID: "1"},
		Spec: fleetflowv1alpha1.MemberQuestionSpec{
			Type: fleetflowv1alpha1.QuestionRehearse, Deadline: metav1.NewTime(noon.Add(time.Minute)), Rehearse: &fleetflowv1alpha1.RehearseQuestion{Revision: "7"},
		},
	}
	if edit != nil {
		edit(q)
	}
	return q
}

func TestAQuestionIsAnsweredOnce(t *testing.T) {
	q := asked(nil)
	d := newDesk(t, q)
	status := d.status(q)
	c := meta.FindStatusCondition(status.Conditions, fleetflowv1alpha1.ConditionTypeAnswered)
	require.NotNil(t, c)
	assert.Equal(t, metav1.ConditionTrue, c.Status)
	assert.Equal(t, fleetflowv1alpha1.ReasonQuestionAnswered, c.Reason)
	assert.Equal(t, "7", status.Rehearsal.Revision)
	assert.True(t, status.AnsweredAt.Time.Equal(noon))
	d.status(q)
	assert.Equal(t, 1, d.looks, "also if the cache lacks the answer")
}

func TestAQuestionThatIsNotAnsweredSaysWhy(t *testing.T) {
	for name, c := range map[string]struct {
		edit     func(*fleetflowv1alpha1.MemberQuestion)
		declines bool
		reason   string // empty if nothing is written
	}{
		"of a type of a later version": {edit: func(q *fleetflowv1alpha1.MemberQuestion) { q.Spec.Type = "Describe" }, reason: fleetflowv1alpha1.ReasonQuestionUnknown},
		"to an owner who says no":      {declines: true, reason: fleetflowv1alpha1.ReasonQuestionDeclined},
		"without a change":             {edit: func(q *fleetflowv1alpha1.MemberQuestion) { q.Spec.Rehearse = nil }, reason: fleetflowv1alpha1.ReasonQuestionInvalid},
		"with corrupt manifests": {edit: func(q *fleetflowv1alpha1.MemberQuestion) { q.Spec.Rehearse.Manifests = []byte("x") },
			reason: fleetflowv1alpha1.ReasonQuestionInvalid},
		"too late": {edit: func(q *fleetflowv1alpha1.MemberQuestion) { q.Spec.Deadline = metav1.NewTime(noon) }},
		"almost too late": {edit: func(q *fleetflowv1alpha1.MemberQuestion) {
			q.Spec.Deadline = metav1.NewTime(noon.Add(time.Millisecond))
		}, reason: fleetflowv1alpha1.ReasonQuestionExpired},
		"to another member": {edit: func(q *fleetflowv1alpha1.MemberQuestion) { q.Namespace = "fleet-member-n" }},
		"that is answered": {edit: func(q *fleetflowv1alpha1.MemberQuestion) {
			q.Status.Conditions = []metav1.Condition{{Type: fleetflowv1alpha1.ConditionTypeAnswered}}
		}, reason: "-"},
	} {
		t.Run(name, func(t *testing.T) {
			q := asked(c.edit)
			d := newDesk(t, q)
			d.Declines = c.declines
			status := d.status(q)
			assert.Zero(t, d.looks)
			found := meta.FindStatusCondition(status.Conditions, fleetflowv1alpha1.ConditionTypeAnswered)
			switch c.reason {
			case "":
				assert.Nil(t, found)
			case "-":
			default:
				require.NotNil(t, found)
				assert.Equal(t, c.reason, found.Reason)
				assert.Equal(t, metav1.ConditionFalse, found.Status)
				assert.Nil(t, status.Rehearsal)
			}
		})
	}
}

func TestNothingIsWrittenAfterTheDeadline(t *testing.T) {
	q := asked(nil)
	d := newDesk(t, q)
	d.Rehearse = func(context.Context, work.Change) []fleetflowv1alpha1.RehearsedObject {
		d.clock.Step(2 * time.Minute)
		return nil
	}
	assert.Empty(t, d.status(q).Conditions)
}

func TestWhatIsNotFoundBeforeTheDeadlineIsGivenUpInTime(t *testing.T) {
	q := asked(nil)
	d := newDesk(t, q)
	d.Rehearse = func(ctx context.Context, _ work.Change) []fleetflowv1alpha1.RehearsedObject {
		d.clock.Step(time.Minute - answers[fleetflowv1alpha1.QuestionRehearse].margin)
		<-ctx.Done()
		return nil
	}
	assert.NotEmpty(t, d.status(q).Conditions)
}
