package notification

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// asks is a run that waits for an approval, of which a rule has told, at a time.
func asks(name string, at time.Time) (*placementv1beta1.ClusterStagedUpdateRun, *placementv1beta1.ClusterApprovalRequest, *fleetflowv1alpha1.AuditRecord) {
	since := metav1.NewTime(at.Truncate(time.Second))
	run := &placementv1beta1.ClusterStagedUpdateRun{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name)}}
	run.Spec.State = placementv1beta1.StateRun
	run.Status.StagesStatus = []placementv1beta1.StageUpdatingStatus{{StageName: "prod", BeforeStageTaskStatus: []placementv1beta1.StageTaskStatus{{
		Type: placementv1beta1.StageTaskTypeApproval, ApprovalRequestName: name + "-prod",
		Conditions: []metav1.Condition{{Type: placementv1beta1.ConditionTypeApprovalRequestCreated, Status: metav1.ConditionTrue, LastTransitionTime: since}},
	}}}}
	request := &placementv1beta1.ClusterApprovalRequest{ObjectMeta: metav1.ObjectMeta{
		Name: name + "-prod", CreationTimestamp: since, Annotations: map[string]string{placementv1beta1.ApprovalRunUIDAnnotation: "uid-" + name},
	}}
	request.Spec.TargetUpdateRun = name
	request.Spec.TargetStage = "prod"
	id := fleetflowv1alpha1.RecordID(name, fleetflowv1alpha1.RecordApprovalRequested)
	record := &fleetflowv1alpha1.AuditRecord{
		ObjectMeta: metav1.ObjectMeta{Name: "r-" + name, CreationTimestamp: since, Labels: map[string]string{
			fleetflowv1alpha1.AuditTypeLabel:    string(fleetflowv1alpha1.RecordApprovalRequested),
			fleetflowv1alpha1.AuditSubjectLabel: "uid-" + name,
		}},
		Spec: fleetflowv1alpha1.AuditRecordSpec{
			ID: id, Type: fleetflowv1alpha1.RecordApprovalRequested, Time: since, PlacementName: "web", UpdateRunName: name, StageName: "prod", Sequence: 3,
			SubjectRef: fleetflowv1alpha1.AuditSubjectReference{Kind: "ClusterStagedUpdateRun", Name: name, UID: "uid-" + name},
			Data:       map[string]fleetflowv1alpha1.AuditValue{"approvalRequest": fleetflowv1alpha1.AuditValue(name + "-prod")},
		},
		Status: fleetflowv1alpha1.AuditRecordStatus{
			Complete: true, Deliveries: []fleetflowv1alpha1.AuditDelivery{{Kind: RouteKind, Name: "people/chat", Time: since, Attempts: 1}},
		},
	}
	return run, request, record
}

// reminding is a rule that reminds every four hours, three times, in a chat.
func reminding(t *testing.T, r *received, objects ...client.Object) (*world, *fleetflowv1alpha1.NotificationRule) {
	t.Helper()
	channel := channelNamed("chat", fleetflowv1alpha1.NotificationChannelSpec{Type: fleetflowv1alpha1.ChannelSlack, Slack: &fleetflowv1alpha1.SlackChannel{URLSecret: new(key("chat"))}})
	rule := ruleTo("people", "chat")
	rule.Spec.Remind = &fleetflowv1alpha1.NotificationReminder{AtMost: 3}
	return newWorld(t, append(objects, channel, rule, secretFor("chat", map[string]string{"value": serve(t, r)}))...), rule
}

// remind has the rule remind at a time, and returns after how long it looks again.
func (w *world) remind(t *testing.T, at time.Time) time.Duration {
	t.Helper()
	w.clock.SetTime(at)
	result, err := w.reminder.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: "people"}})
	require.NoError(t, err)
	return result.RequeueAfter
}

func TestAnApprovalThatWaitsIsRemindedOf(t *testing.T) {
	r := &received{}
	asked := time.Now().Truncate(time.Second)
	run, request, record := asks("web-2", asked)
	w, rule := reminding(t, r, run, request, record)
	assert.Equal(t, 4*time.Hour, w.remind(t, asked))
	assert.Equal(t, time.Second, w.remind(t, asked.Add(4*time.Hour-time.Second)))
	assert.Empty(t, r.bodies, "it is not due")

	assert.Equal(t, 4*time.Hour, w.remind(t, asked.Add(4*time.Hour)))
	require.Len(t, r.bodies, 1)
	var body slackMessage
	require.NoError(t, json.Unmarshal([]byte(r.bodies[0]), &body))
	assert.Equal(t, "Reminder: Stage prod of run web-2 waits for an approval (placement web)", body.Text)
	assert.Contains(t, r.bodies[0], "stage prod of run web-2 has waited for 4h; reminder 1 of 3 at most")
	assert.Contains(t, r.bodies[0], "kubectl fleet approve web-2 --stage prod")
	require.NoError(t, w.client.Get(t.Context(), client.ObjectKeyFromObject(record), record))
	told := record.Delivery(RouteKind, "people/chat")
	assert.Equal(t, int32(1), told.Reminders)
	assert.Equal(t, asked.Add(4*time.Hour).Unix(), told.LastReminderTime.Unix())
	assert.True(t, record.Status.Complete)

	// The agent that leads next goes on from there.
	next := newWorld(t, run, request, record, rule, channelOfWorld(t, w), secretFor("chat", map[string]string{"value": serve(t, r)}))
	assert.Equal(t, 3*time.Hour, next.remind(t, asked.Add(5*time.Hour)))
	assert.Len(t, r.bodies, 1, "nothing is repeated")
	assert.Equal(t, 4*time.Hour, next.remind(t, asked.Add(10*time.Hour)), "one was due while no agent led")
	assert.Len(t, r.bodies, 2)
	assert.Zero(t, next.remind(t, asked.Add(14*time.Hour)), "it is the last")
	require.Len(t, r.bodies, 3)
	assert.Contains(t, r.bodies[2], "reminder 3 of 3")
	assert.Zero(t, next.remind(t, asked.Add(100*time.Hour)))
	assert.Len(t, r.bodies, 3)
}

func channelOfWorld(t *testing.T, w *world) *fleetflowv1alpha1.NotificationChannel {
	t.Helper()
	channel := &fleetflowv1alpha1.NotificationChannel{}
	require.NoError(t, w.client.Get(t.Context(), types.NamespacedName{Name: "chat"}, channel))
	channel.ResourceVersion = ""
	return channel
}

func TestNothingIsRemindedOfThatDoesNotWait(t *testing.T) {
	asked := time.Now().Truncate(time.Second)
	for name, change := range map[string]func(*placementv1beta1.ClusterStagedUpdateRun, *placementv1beta1.ClusterApprovalRequest, *fleetflowv1alpha1.AuditRecord){
		"approved": func(_ *placementv1beta1.ClusterStagedUpdateRun, request *placementv1beta1.ClusterApprovalRequest, _ *fleetflowv1alpha1.AuditRecord) {
			request.Status.Conditions = []metav1.Condition{{Type: placementv1beta1.ConditionTypeApproved, Status: metav1.ConditionTrue}}
		},
		"rejected": func(_ *placementv1beta1.ClusterStagedUpdateRun, request *placementv1beta1.ClusterApprovalRequest, _ *fleetflowv1alpha1.AuditRecord) {
			request.Status.Conditions = []metav1.Condition{{Type: placementv1beta1.ConditionTypeApproved, Status: metav1.ConditionFalse, Reason: placementv1beta1.ReasonVoteRejected}}
		},
		"approved by a workflow": func(run *placementv1beta1.ClusterStagedUpdateRun, _ *placementv1beta1.ClusterApprovalRequest, _ *fleetflowv1alpha1.AuditRecord) {
			task := &run.Status.StagesStatus[0].BeforeStageTaskStatus[0]
			task.Conditions = append(task.Conditions, metav1.Condition{Type: placementv1beta1.ConditionTypeApprovalRequestApproved, Status: metav1.ConditionTrue})
		},
		"expired": func(_ *placementv1beta1.ClusterStagedUpdateRun, request *placementv1beta1.ClusterApprovalRequest, _ *fleetflowv1alpha1.AuditRecord) {
			request.Spec.ExpirationTime = &metav1.Time{Time: asked.Add(time.Hour)}
		},
		"of a run that has ended": func(run *placementv1beta1.ClusterStagedUpdateRun, _ *placementv1beta1.ClusterApprovalRequest, _ *fleetflowv1alpha1.AuditRecord) {
			run.Status.Conditions = []metav1.Condition{{Type: placementv1beta1.ConditionTypeSucceeded, Status: metav1.ConditionFalse}}
		},
		"not told yet": func(_ *placementv1beta1.ClusterStagedUpdateRun, _ *placementv1beta1.ClusterApprovalRequest, record *fleetflowv1alpha1.AuditRecord) {
			record.Status = fleetflowv1alpha1.AuditRecordStatus{}
		},
		"not told": func(_ *placementv1beta1.ClusterStagedUpdateRun, _ *placementv1beta1.ClusterApprovalRequest, record *fleetflowv1alpha1.AuditRecord) {
			record.Status.Deliveries = nil
		},
		"given up": func(_ *placementv1beta1.ClusterStagedUpdateRun, _ *placementv1beta1.ClusterApprovalRequest, record *fleetflowv1alpha1.AuditRecord) {
			record.Status.Deliveries[0].Error = "away"
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := &received{}
			run, request, record := asks("web-2", asked)
			change(run, request, record)
			w, _ := reminding(t, r, run, request, record)
			again := w.remind(t, asked.Add(5*time.Hour))
			assert.Empty(t, r.bodies)
			assert.Equal(t, name == "not told yet", again > 0, "what was not told yet is looked at again")
		})
	}
}

// A request is made before its run says that it waits for it, and a run that was stopped goes on: nothing else has the rule look again.
func TestAnApprovalThatDoesNotWaitYetIsLookedAtAgain(t *testing.T) {
	asked := time.Now().Truncate(time.Second)
	for name, change := range map[string]func(*placementv1beta1.ClusterStagedUpdateRun, *placementv1beta1.ClusterApprovalRequest){
		"the run does not name it": func(run *placementv1beta1.ClusterStagedUpdateRun, _ *placementv1beta1.ClusterApprovalRequest) {
			run.Status.StagesStatus = nil
		},
		"the run does not say that it was made": func(run *placementv1beta1.ClusterStagedUpdateRun, _ *placementv1beta1.ClusterApprovalRequest) {
			run.Status.StagesStatus[0].BeforeStageTaskStatus[0].Conditions = nil
		},
		"the run was stopped": func(run *placementv1beta1.ClusterStagedUpdateRun, _ *placementv1beta1.ClusterApprovalRequest) {
			run.Spec.State = placementv1beta1.StateStop
		},
		"the request does not name its run": func(_ *placementv1beta1.ClusterStagedUpdateRun, request *placementv1beta1.ClusterApprovalRequest) {
			request.Annotations = nil
		},
		"the run is not known": func(run *placementv1beta1.ClusterStagedUpdateRun, _ *placementv1beta1.ClusterApprovalRequest) {
			run.Name = "another"
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := &received{}
			run, request, record := asks("web-2", asked)
			change(run, request)
			w, _ := reminding(t, r, run, request, record)
			assert.Equal(t, 4*time.Hour, w.remind(t, asked))
			assert.Equal(t, 4*time.Hour, w.remind(t, asked.Add(4*time.Hour)), "it does not wait yet")
			assert.Empty(t, r.bodies)
			require.NoError(t, w.client.Delete(t.Context(), run))
			require.NoError(t, w.client.Delete(t.Context(), request))
			run, request, _ = asks("web-2", asked)
			require.NoError(t, w.client.Create(t.Context(), run))
			require.NoError(t, w.client.Create(t.Context(), request))
			assert.Equal(t, 4*time.Hour, w.remind(t, asked.Add(8*time.Hour)))
			assert.Len(t, r.bodies, 1)
		})
	}
}

// What does not wait yet has nothing read past the cache, and what waits is reminded of meanwhile.
func TestWhatDoesNotWaitYetDelaysNoReminder(t *testing.T) {
	r := &received{}
	asked := time.Now().Truncate(time.Second)
	stopped, request, _ := asks("api-1", asked)
	stopped.Spec.State = placementv1beta1.StateStop
	w, _ := reminding(t, r, stopped, request)
	lists := 0
	w.reminder.live = interceptor.NewClient(w.client, interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
		lists++
		return c.List(ctx, list, options...)
	}})
	assert.Equal(t, 4*time.Hour, w.remind(t, asked.Add(5*time.Hour)))
	assert.Zero(t, lists)
	run, asksToo, record := asks("web-2", asked.Add(6*time.Hour))
	for _, object := range []client.Object{run, asksToo, record} {
		require.NoError(t, w.client.Create(t.Context(), object))
	}
	assert.Equal(t, time.Hour, w.remind(t, asked.Add(9*time.Hour)))
	assert.Zero(t, lists)
	w.remind(t, asked.Add(10*time.Hour))
	assert.Len(t, r.bodies, 1)
	assert.Equal(t, 1, lists)
}

// Only records of runs that wait are read, however many others there are.
func TestOnlyRecordsOfRunsThatWaitAreRead(t *testing.T) {
	asked := time.Now().Truncate(time.Second)
	run, request, record := asks("web-2", asked)
	_, _, other := asks("api-1", asked)
	w, _ := reminding(t, &received{}, run, request, record, other)
	var names []string
	w.reminder.live = interceptor.NewClient(w.client, interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
		err := c.List(ctx, list, options...)
		all, _ := list.(*fleetflowv1alpha1.AuditRecordList)
		for i := range all.Items {
			names = append(names, all.Items[i].Name)
		}
		return err
	}})
	w.remind(t, asked.Add(4*time.Hour))
	assert.Equal(t, []string{"r-web-2"}, names)
}

// What has not been told for long is looked at after longer and longer pauses, at last once a day.
func TestWhatIsNotToldIsLookedAtAfterLongerPauses(t *testing.T) {
	asked := time.Now().Truncate(time.Second)
	for name, change := range map[string]func(*fleetflowv1alpha1.AuditRecord){
		"not told yet": func(record *fleetflowv1alpha1.AuditRecord) { record.Status = fleetflowv1alpha1.AuditRecordStatus{} },
		"no record":    func(record *fleetflowv1alpha1.AuditRecord) { record.Labels = nil },
	} {
		t.Run(name, func(t *testing.T) {
			run, request, record := asks("web-2", asked)
			change(record)
			w, _ := reminding(t, &received{}, run, request, record)
			for after, again := range map[time.Duration]time.Duration{
				4 * time.Hour: 4 * time.Hour, 8 * time.Hour: 8 * time.Hour, 100 * time.Hour: 24 * time.Hour,
			} {
				assert.Equal(t, again, w.remind(t, asked.Add(after)), after)
			}
		})
	}
}

// Of many approvals that wait there is one message.
func TestRemindersOfManyAreSummedUp(t *testing.T) {
	r := &received{}
	asked := time.Now().Truncate(time.Second)
	var objects []client.Object
	for i := range 50 {
		run, request, record := asks(fmt.Sprintf("app-%d", i), asked.Add(time.Duration(i)*time.Second))
		objects = append(objects, run, request, record)
	}
	w, _ := reminding(t, r, objects...)
	assert.Equal(t, 4*time.Hour, w.remind(t, asked.Add(4*time.Hour+time.Minute)))
	require.Len(t, r.bodies, 1)
	assert.Contains(t, r.bodies[0], "Reminder: 50 records of 50 objects")
	w.remind(t, asked.Add(5*time.Hour))
	assert.Len(t, r.bodies, 1)
}

func TestAReminderThatDoesNotArriveIsTriedAgain(t *testing.T) {
	r := &received{answer: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }}
	asked := time.Now().Truncate(time.Second)
	run, request, record := asks("web-2", asked)
	w, _ := reminding(t, r, run, request, record)
	channel := channelOfWorld(t, w)
	w.look(t, channel)
	assert.Equal(t, remindAgain, w.remind(t, asked.Add(4*time.Hour)))
	w.look(t, channel)
	_, reason := statusOf(channel.Status.Conditions, "Ready")
	assert.Equal(t, fleetflowv1alpha1.ReasonUnreachable, reason, "the channel says so")
	r.answer = nil
	assert.Equal(t, 4*time.Hour, w.remind(t, asked.Add(4*time.Hour+remindAgain)))
	assert.Len(t, r.bodies, 2)
}

// What was reminded of is not again because that could not be written.
func TestAReminderWithoutAMarkIsNotRepeated(t *testing.T) {
	r := &received{}
	asked := time.Now().Truncate(time.Second)
	run, request, record := asks("web-2", asked)
	w, _ := reminding(t, r, run, request, record)
	fails := errors.New("the hub is away")
	w.reminder.client = interceptor.NewClient(w.client, interceptor.Funcs{SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
		if fails != nil {
			return fails
		}
		return c.SubResource(sub).Patch(ctx, o, patch, options...)
	}})
	w.clock.SetTime(asked.Add(4 * time.Hour))
	for range 5 {
		_, err := w.reminder.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: "people"}})
		require.ErrorContains(t, err, "writing that people in chat has reminded of record r-web-2: the hub is away")
	}
	assert.Len(t, r.bodies, 1)
	fails = nil
	assert.Equal(t, 4*time.Hour, w.remind(t, asked.Add(4*time.Hour)))
	assert.Len(t, r.bodies, 1)
	require.NoError(t, w.client.Get(t.Context(), client.ObjectKeyFromObject(record), record))
	assert.Equal(t, int32(1), record.Delivery(RouteKind, "people/chat").Reminders)
	assert.Empty(t, w.reminder.reminded)
}

// A record that others write meanwhile is read anew. What decodes it leaves what an answer leaves out as it was, as the client of an API server does.
func TestAReminderIsMarkedThoughOthersWriteTheRecord(t *testing.T) {
	r := &received{}
	asked := time.Now().Truncate(time.Second)
	run, request, record := asks("web-2", asked)
	w, _ := reminding(t, r, run, request, record)
	w.reminder.live = interceptor.NewClient(w.client, interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, of client.ObjectKey, o client.Object, options ...client.GetOption) error {
		there := &fleetflowv1alpha1.AuditRecord{}
		if err := c.Get(ctx, of, there, options...); err != nil {
			return err
		}
		answer, err := json.Marshal(there)
		if err != nil {
			return err
		}
		return json.Unmarshal(answer, o)
	}})
	conflicts := 0
	w.reminder.client = interceptor.NewClient(w.client, interceptor.Funcs{SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
		if conflicts++; conflicts == 1 {
			other := &fleetflowv1alpha1.AuditRecord{}
			require.NoError(t, c.Get(ctx, client.ObjectKeyFromObject(o), other))
			other.Status.Deliveries = append(other.Status.Deliveries, fleetflowv1alpha1.AuditDelivery{Kind: RouteKind, Name: "people/mail", Attempts: 1})
			require.NoError(t, c.Status().Update(ctx, other))
		}
		return c.SubResource(sub).Patch(ctx, o, patch, options...)
	}})
	assert.Equal(t, 4*time.Hour, w.remind(t, asked.Add(4*time.Hour)))
	assert.Equal(t, 2, conflicts)
	require.NoError(t, w.client.Get(t.Context(), client.ObjectKeyFromObject(record), record))
	assert.Equal(t, int32(1), record.Delivery(RouteKind, "people/chat").Reminders)
	assert.NotNil(t, record.Delivery(RouteKind, "people/mail"), "what others have written stays")
	assert.Equal(t, time.Hour, w.remind(t, asked.Add(7*time.Hour)))
	assert.Len(t, r.bodies, 1)
}

func TestWithoutRemindNothingIsLookedAt(t *testing.T) {
	asked := time.Now().Truncate(time.Second)
	run, request, record := asks("web-2", asked)
	w, rule := reminding(t, &received{}, run, request, record)
	assert.Len(t, w.reminder.requestRules(t.Context(), nil), 1)
	require.NoError(t, w.client.Get(t.Context(), client.ObjectKeyFromObject(rule), rule))
	rule.Spec.Remind = nil
	require.NoError(t, w.client.Update(t.Context(), rule))
	assert.Empty(t, w.reminder.requestRules(t.Context(), nil))
	assert.Zero(t, w.remind(t, asked.Add(100*time.Hour)))
	answered := request.DeepCopy()
	answered.Status.Conditions = []metav1.Condition{{Type: placementv1beta1.ConditionTypeApproved, Status: metav1.ConditionTrue}}
	assert.False(t, onWait().Update(event.UpdateEvent{ObjectOld: request, ObjectNew: answered}))
	assert.True(t, onWait().Update(event.UpdateEvent{ObjectOld: answered, ObjectNew: request}), "it was taken back")
}
