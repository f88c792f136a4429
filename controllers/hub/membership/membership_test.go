package membership

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterrules "github.com/fleetflow/fleetflow/apis/cluster/rules"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/test/fixture"
)

const memberNS = "fleet-member-member1"

// bench is a reconciler on a fake hub. The fake sets deletion timestamps by the
// wall clock, so the test's clock starts there too.
type bench struct {
	*Reconciler
	hub          client.Client
	clock        *clocktesting.FakePassiveClock
	events       *events.FakeRecorder
	statusWrites int
}

func newBench(t *testing.T, objects ...client.Object) *bench {
	t.Helper()
	scheme := fixture.Scheme(t, corev1.AddToScheme, rbacv1.AddToScheme)
	b := &bench{clock: clocktesting.NewFakePassiveClock(time.Now().Truncate(time.Second)), events: events.NewFakeRecorder(100)}
	base := fixture.NewClientBuilder(scheme).WithObjects(objects...).
		WithStatusSubresource(&clusterv1beta1.MemberCluster{}, &clusterv1beta1.InternalMemberCluster{}).Build()
	b.hub = interceptor.NewClient(base, interceptor.Funcs{
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			b.statusWrites++
			return c.SubResource(sub).Patch(ctx, o, p, opts...)
		},
	})
	b.Reconciler = NewReconciler(b.hub, b.hub, b.events, b.clock, Options{UnhealthyThreshold: time.Minute, ForceDeleteWaitTime: 15 * time.Minute})
	return b
}

func member() *clusterv1beta1.MemberCluster {
	return &clusterv1beta1.MemberCluster{
		ObjectMeta: metav1.ObjectMeta{Name: "member1", UID: "member-uid"},
		Spec: clusterv1beta1.MemberClusterSpec{
			Identity:               rbacv1.Subject{Kind: "ServiceAccount", Namespace: "connect-to-fleet", Name: "member1-hub-cluster-access"},
			HeartbeatPeriodSeconds: 15,
		},
	}
}

func (b *bench) reconcile(t *testing.T) ctrl.Result {
	t.Helper()
	result, err := b.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: "member1"}})
	require.NoError(t, err)
	return result
}

// restart is a hub that knows nothing but what is stored.
func (b *bench) restart() {
	b.Reconciler = NewReconciler(b.hub, b.hub, b.events, b.clock, b.options)
}

func (b *bench) later(by time.Duration) { b.clock.SetTime(b.clock.Now().Add(by)) }

func (b *bench) member(t *testing.T) *clusterv1beta1.MemberCluster {
	t.Helper()
	m := &clusterv1beta1.MemberCluster{}
	require.NoError(t, b.hub.Get(t.Context(), client.ObjectKey{Name: "member1"}, m))
	return m
}

func (b *bench) condition(t *testing.T, conditionType string) *metav1.Condition {
	t.Helper()
	condition := meta.FindStatusCondition(b.member(t).Status.Conditions, conditionType)
	require.NotNil(t, condition, conditionType)
	return condition
}

func (b *bench) box(t *testing.T) *clusterv1beta1.InternalMemberCluster {
	t.Helper()
	box := &clusterv1beta1.InternalMemberCluster{}
	require.NoError(t, b.hub.Get(t.Context(), client.ObjectKey{Namespace: memberNS, Name: "member1"}, box))
	return box
}

// beat reports for the agent; its clock may be off.
func (b *bench) beat(t *testing.T, skew time.Duration, joined, healthy metav1.Condition) {
	t.Helper()
	box := b.box(t)
	joined.Type, healthy.Type = clusterv1beta1.ConditionTypeJoined, clusterv1beta1.ConditionTypeHealthy
	box.Status.Properties = map[clusterv1beta1.PropertyName]clusterv1beta1.PropertyValue{clusterv1beta1.NodeCountProperty: {Value: "3"}}
	box.Status.AgentStatus = []clusterv1beta1.AgentStatus{{
		Type: clusterv1beta1.MemberAgent, Conditions: []metav1.Condition{joined, healthy},
		LastReceivedHeartbeat: metav1.NewTime(b.clock.Now().Add(skew)),
	}}
	require.NoError(t, b.hub.Status().Update(t.Context(), box))
}

func (b *bench) told() []string {
	var all []string
	for {
		select {
		case event := <-b.events.Events:
			all = append(all, strings.Fields(event)[1])
		default:
			return all
		}
	}
}

var (
	yes      = metav1.Condition{Status: metav1.ConditionTrue, Reason: clusterv1beta1.ReasonInternalMemberClusterJoined}
	left     = metav1.Condition{Status: metav1.ConditionFalse, Reason: clusterv1beta1.ReasonInternalMemberClusterLeft}
	notReady = metav1.Condition{Status: metav1.ConditionFalse, Reason: clusterv1beta1.ReasonInternalMemberClusterUnhealthy, Message: "readyz failed"}
)

func TestJoinPreparesTheHub(t *testing.T) {
	b := newBench(t, member())
	b.reconcile(t)
	m := b.member(t)
	assert.Contains(t, m.Finalizers, clusterv1beta1.MemberClusterFinalizer)
	assert.Equal(t, "member1", m.Labels[clusterv1beta1.MemberNameLabel])
	ready := b.condition(t, clusterv1beta1.ConditionTypeReadyToJoin)
	assert.Equal(t, "Member cluster is ready to join the fleet", ready.Message)
	assert.Equal(t, clusterv1beta1.ReasonMemberClusterJoinStateUnknown, b.condition(t, clusterv1beta1.ConditionTypeJoined).Reason)
	assert.Equal(t, clusterv1beta1.InternalMemberClusterSpec{State: clusterv1beta1.ClusterStateJoin, HeartbeatPeriodSeconds: 15}, b.box(t).Spec)

	namespace := &corev1.Namespace{}
	require.NoError(t, b.hub.Get(t.Context(), client.ObjectKey{Name: memberNS}, namespace))
	assert.Equal(t, "true", namespace.Labels[clusterv1beta1.FleetResourceLabel])
	binding := &rbacv1.RoleBinding{}
	require.NoError(t, b.hub.Get(t.Context(), client.ObjectKey{Namespace: memberNS, Name: "fleet-rolebinding-member1"}, binding))
	assert.Equal(t, []rbacv1.Subject{member().Spec.Identity}, binding.Subjects)
	role := &rbacv1.Role{}
	require.NoError(t, b.hub.Get(t.Context(), client.ObjectKey{Namespace: memberNS, Name: binding.RoleRef.Name}, role))
	assert.Equal(t, memberRules(), role.Rules)
	assert.Equal(t, []string{clusterv1beta1.ReasonMemberClusterReadyToJoin}, b.told())
}

func TestATransitionIsToldOfOnce(t *testing.T) {
	b := newBench(t, member())
	b.reconcile(t)
	b.told()
	stale := member() // as the cache may have it for a moment after the first write
	require.NoError(t, b.storeStatus(t.Context(), stale, Project(stale, Report{Mailbox: b.box(t), Now: metav1.NewTime(b.clock.Now())})))
	assert.Empty(t, b.told())
	again := b.member(t)
	require.NoError(t, b.storeStatus(t.Context(), again, Project(again, Report{Mailbox: b.box(t), Now: metav1.NewTime(b.clock.Now()), Obstacle: "no"})))
	assert.Equal(t, []string{clusterv1beta1.ReasonMemberClusterNotReadyToJoin}, b.told())
}

func TestWhatSomebodyChangedIsPutRight(t *testing.T) {
	b := newBench(t, member())
	b.reconcile(t)
	role := &rbacv1.Role{}
	key := client.ObjectKey{Namespace: memberNS, Name: "fleet-role-member1"}
	require.NoError(t, b.hub.Get(t.Context(), key, role))
	role.Rules = nil
	role.Labels = nil
	require.NoError(t, b.hub.Update(t.Context(), role))
	b.reconcile(t)
	require.NoError(t, b.hub.Get(t.Context(), key, role))
	assert.Equal(t, memberRules(), role.Rules)
	assert.Equal(t, "true", role.Labels[clusterv1beta1.FleetResourceLabel])
}

func TestAnotherIdentityIsLetInInsteadOfTheOneBefore(t *testing.T) {
	b := newBench(t, member())
	b.reconcile(t)
	m := b.member(t)
	m.Spec.Identity = rbacv1.Subject{Kind: "User", Name: "another"}
	require.NoError(t, b.hub.Update(t.Context(), m))
	b.reconcile(t)
	binding := &rbacv1.RoleBinding{}
	key := client.ObjectKey{Namespace: memberNS, Name: "fleet-rolebinding-member1"}
	require.NoError(t, b.hub.Get(t.Context(), key, binding))
	assert.Equal(t, []rbacv1.Subject{{Kind: "User", APIGroup: rbacv1.GroupName, Name: "another"}}, binding.Subjects)
}

func TestAMemberIsNotBoundToARoleThatSomebodyElseChose(t *testing.T) {
	theirs := &rbacv1.RoleBinding{ObjectMeta: fleetMeta(memberNS, "fleet-rolebinding-member1"), RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: "cluster-admin"}}
	b := newBench(t, member(), theirs)
	b.reconcile(t)
	binding := &rbacv1.RoleBinding{}
	require.NoError(t, b.hub.Get(t.Context(), client.ObjectKeyFromObject(theirs), binding))
	assert.Equal(t, rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "fleet-role-member1"}, binding.RoleRef)
	assert.Equal(t, []rbacv1.Subject{member().Spec.Identity}, binding.Subjects)
}

func TestWhatThePropertyProviderSaysIsShownAsLongAsThereIsOne(t *testing.T) {
	b := newBench(t, member())
	b.reconcile(t)
	b.beat(t, 0, yes, yes)
	box := b.box(t)
	box.Status.Conditions = []metav1.Condition{
		{Type: clusterv1beta1.ConditionTypeClusterPropertyProviderStarted, Status: metav1.ConditionTrue, Reason: "Started"},
		{Type: clusterv1beta1.ConditionTypeReadyToJoin, Status: metav1.ConditionFalse, Reason: "NotMyBusiness"},
	}
	require.NoError(t, b.hub.Status().Update(t.Context(), box))
	b.reconcile(t)
	assert.Equal(t, "Started", b.condition(t, clusterv1beta1.ConditionTypeClusterPropertyProviderStarted).Reason)
	assert.Equal(t, metav1.ConditionTrue, b.condition(t, clusterv1beta1.ConditionTypeReadyToJoin).Status, "that is for the hub to say")

	box = b.box(t)
	box.Status.Conditions = nil
	require.NoError(t, b.hub.Status().Update(t.Context(), box))
	b.reconcile(t)
	assert.Nil(t, meta.FindStatusCondition(b.member(t).Status.Conditions, clusterv1beta1.ConditionTypeClusterPropertyProviderStarted))
}

func TestAHeartbeatCostsOneStatusWrite(t *testing.T) {
	b := newBench(t, member())
	b.reconcile(t)
	b.told()
	b.statusWrites = 0
	b.beat(t, 0, yes, yes)
	assert.Equal(t, time.Minute, b.reconcile(t).RequeueAfter.Round(time.Second))
	assert.Equal(t, 1, b.statusWrites)
	assert.Equal(t, "Member cluster has successfully joined the fleet", b.condition(t, clusterv1beta1.ConditionTypeJoined).Message)
	assert.Equal(t, "3", b.member(t).Status.Properties[clusterv1beta1.NodeCountProperty].Value)
	assert.ElementsMatch(t, []string{clusterv1beta1.ReasonMemberClusterJoined, ReasonHealthy}, b.told())
	b.reconcile(t)
	assert.Equal(t, 1, b.statusWrites)
	b.later(15 * time.Second)
	b.beat(t, 0, yes, notReady)
	b.reconcile(t)
	assert.Equal(t, 2, b.statusWrites)
	assert.Equal(t, "Member cluster is not healthy: readyz failed", b.condition(t, clusterv1beta1.ConditionTypeHealthy).Message)
}

// ask has the owner of the member ask that nothing begins on it, until a time of the hub's clock; with 0, no more.
func (b *bench) ask(t *testing.T, hours time.Duration) {
	t.Helper()
	box := b.box(t)
	box.Status.Busy = nil
	if hours > 0 {
		end := metav1.NewTime(b.clock.Now().Add(hours * time.Hour))
		box.Status.Busy = &clusterv1beta1.BusyRequest{Until: &end, Message: "month-end"}
	}
	require.NoError(t, b.hub.Status().Update(t.Context(), box))
}

func TestAnOwnerWhoAsksThatNothingBegins(t *testing.T) {
	b := newBench(t, member())
	b.reconcile(t)
	begun := b.clock.Now()
	b.beat(t, 0, yes, yes)
	b.reconcile(t)
	assert.Nil(t, meta.FindStatusCondition(b.member(t).Status.Conditions, clusterv1beta1.ConditionTypeBusy), "no cluster has asked")
	b.told()

	b.ask(t, 1000)
	b.reconcile(t)
	busy := b.member(t).Status.Busy
	require.NotNil(t, busy)
	assert.True(t, begun.Add(clusterv1beta1.MaxBusy).Equal(busy.Until.Time), "not for as long as it likes")
	condition := b.condition(t, clusterv1beta1.ConditionTypeBusy)
	assert.Equal(t, metav1.ConditionTrue, condition.Status)
	assert.Contains(t, condition.Message, "as its owner has asked: month-end")
	assert.Equal(t, []string{clusterv1beta1.ReasonBusyAsked}, b.told())

	b.later(time.Hour)
	b.restart()
	b.beat(t, 0, yes, yes)
	b.reconcile(t)
	assert.True(t, begun.Add(clusterv1beta1.MaxBusy).Equal(b.member(t).Status.Busy.Until.Time), "a restart of the hub gives it no further hour")

	b.ask(t, 0)
	b.reconcile(t)
	assert.False(t, b.member(t).Status.Busy.IsNow(b.clock.Now()))
	assert.Equal(t, clusterv1beta1.ReasonResolved, b.condition(t, clusterv1beta1.ConditionTypeBusy).Reason)
	assert.Empty(t, b.told(), "that no request is left is no warning")

	b.later(12 * time.Hour)
	b.ask(t, 1)
	b.reconcile(t)
	assert.Equal(t, clusterv1beta1.ReasonBusyNotGranted, b.condition(t, clusterv1beta1.ConditionTypeBusy).Reason)
}

// A busy member is looked at again when its time is over, though it does not report.
func TestABusyMemberIsLookedAtWhenItsTimeIsOver(t *testing.T) {
	b := newBench(t, member())
	b.reconcile(t)
	b.ask(t, 1)
	assert.Equal(t, time.Hour, b.reconcile(t).RequeueAfter)
	b.later(time.Hour)
	b.reconcile(t)
	assert.Equal(t, metav1.ConditionFalse, b.condition(t, clusterv1beta1.ConditionTypeBusy).Status)
}

// What a member says of itself in a condition of that type is not what the hub goes by.
func TestAMemberDoesNotSayThatItIsBusyItself(t *testing.T) {
	b := newBench(t, member())
	b.reconcile(t)
	box := b.box(t)
	box.Status.Conditions = []metav1.Condition{{Type: clusterv1beta1.ConditionTypeBusy, Status: metav1.ConditionTrue, Reason: "Mine"}}
	require.NoError(t, b.hub.Status().Update(t.Context(), box))
	b.reconcile(t)
	assert.Nil(t, meta.FindStatusCondition(b.member(t).Status.Conditions, clusterv1beta1.ConditionTypeBusy))
}

func TestAMemberThatItsAgentDoesNotReachForLong(t *testing.T) {
	b := newBench(t, member())
	b.reconcile(t)
	b.beat(t, 0, yes, notReady)
	assert.Equal(t, time.Minute, b.reconcile(t).RequeueAfter.Round(time.Second))
	assert.Equal(t, ReasonUnhealthy, b.condition(t, clusterv1beta1.ConditionTypeHealthy).Reason, "an API server that starts anew is no reason to doubt")
	b.later(30 * time.Second)
	b.beat(t, 0, yes, notReady)
	assert.LessOrEqual(t, b.reconcile(t).RequeueAfter, 30*time.Second)
	b.later(30 * time.Second)
	b.beat(t, 0, yes, notReady)
	b.reconcile(t)
	healthy := b.condition(t, clusterv1beta1.ConditionTypeHealthy)
	assert.Equal(t, metav1.ConditionFalse, healthy.Status)
	assert.Equal(t, clusterv1beta1.ReasonMemberClusterOutOfReach, healthy.Reason)
	assert.Equal(t, "Member cluster is not healthy: readyz failed", healthy.Message)
	assert.Contains(t, b.told(), clusterv1beta1.ReasonMemberClusterOutOfReach)
	b.beat(t, 0, yes, yes)
	b.reconcile(t)
	assert.Equal(t, ReasonHealthy, b.condition(t, clusterv1beta1.ConditionTypeHealthy).Reason)
}

func TestSinceWhenATaintIsThereIsNotedOnce(t *testing.T) {
	b := newBench(t, member())
	noted := func() string { return b.member(t).Annotations[clusterv1beta1.TaintsSinceAnnotation] }
	taint := func(taints ...clusterv1beta1.Taint) {
		m := b.member(t)
		m.Spec.Taints = taints
		require.NoError(t, b.hub.Update(t.Context(), m))
		b.reconcile(t)
	}
	b.reconcile(t)
	assert.NotContains(t, b.member(t).Annotations, clusterv1beta1.TaintsSinceAnnotation)
	taint(clusterv1beta1.Taint{Key: "k", Effect: "NoSchedule"})
	assert.Empty(t, noted(), "it moves nothing")
	since := metav1.NewTime(b.clock.Now().Add(-time.Hour))
	taint(clusterv1beta1.Taint{Key: "k", Effect: "NoExecute", TimeAdded: &since})
	assert.Empty(t, noted(), "the taint tells")
	ahead := metav1.NewTime(b.clock.Now().Add(time.Hour))
	taint(clusterv1beta1.Taint{Key: "k", Effect: "NoExecute", TimeAdded: &ahead})
	first := noted()
	assert.JSONEq(t, `{"{Key:k Value: Effect:NoExecute}":"`+b.clock.Now().UTC().Truncate(time.Second).Format(time.RFC3339)+`"}`, first)
	b.later(time.Minute)
	taint(clusterv1beta1.Taint{Key: "k", Effect: "NoExecute"})
	assert.Equal(t, first, noted(), "it is still the first time")
	b.later(-time.Hour)
	b.reconcile(t)
	assert.NotEqual(t, first, noted(), "what was noted with a clock that was ahead does not count")
	taint()
	assert.NotContains(t, b.member(t).Annotations, clusterv1beta1.TaintsSinceAnnotation)
}

func TestMissedHeartbeats(t *testing.T) {
	t.Run("a silent member is no longer known to be healthy", func(t *testing.T) {
		b := newBench(t, member())
		b.reconcile(t)
		b.beat(t, 0, yes, yes)
		wait := b.reconcile(t).RequeueAfter
		b.later(wait)
		assert.Zero(t, b.reconcile(t).RequeueAfter)
		healthy := b.condition(t, clusterv1beta1.ConditionTypeHealthy)
		assert.Equal(t, metav1.ConditionUnknown, healthy.Status)
		assert.Equal(t, clusterv1beta1.ReasonMemberClusterHeartbeatMissed, healthy.Reason)
		b.beat(t, 0, yes, yes)
		b.reconcile(t)
		assert.Equal(t, metav1.ConditionTrue, b.condition(t, clusterv1beta1.ConditionTypeHealthy).Status)
	})
	t.Run("a member whose clock is an hour behind is healthy as long as it reports", func(t *testing.T) {
		b := newBench(t, member())
		b.reconcile(t)
		b.beat(t, -time.Hour, yes, yes)
		b.reconcile(t)
		b.later(15 * time.Second)
		b.beat(t, -time.Hour, yes, yes)
		b.reconcile(t)
		assert.Equal(t, metav1.ConditionTrue, b.condition(t, clusterv1beta1.ConditionTypeHealthy).Status)
	})
	t.Run("a restarted hub gives a member whose clock is behind time to report", func(t *testing.T) {
		b := newBench(t, member())
		b.reconcile(t)
		b.beat(t, -time.Hour, yes, yes)
		b.reconcile(t)
		b.restart()
		assert.Equal(t, time.Minute, b.reconcile(t).RequeueAfter.Round(time.Second))
		assert.Equal(t, metav1.ConditionTrue, b.condition(t, clusterv1beta1.ConditionTypeHealthy).Status)
		b.later(time.Minute)
		b.reconcile(t)
		assert.Equal(t, clusterv1beta1.ReasonMemberClusterHeartbeatMissed, b.condition(t, clusterv1beta1.ConditionTypeHealthy).Reason)
		b.restart()
		b.reconcile(t)
		assert.Equal(t, clusterv1beta1.ReasonMemberClusterHeartbeatMissed, b.condition(t, clusterv1beta1.ConditionTypeHealthy).Reason, "a restart is no sign of life")
	})
	t.Run("a member that could not report while the hub was away has as much time as one that just has", func(t *testing.T) {
		b := newBench(t, member())
		outage := &outageUntil{}
		b.options.Outages = outage
		b.restart()
		b.reconcile(t)
		b.beat(t, 0, yes, yes)
		b.reconcile(t)
		b.later(10 * time.Minute)
		outage.recovered = b.clock.Now().Add(-time.Second)
		assert.Equal(t, 59*time.Second, b.reconcile(t).RequeueAfter.Round(time.Second))
		assert.False(t, clusterrules.IsSilent(b.member(t)))
		b.later(time.Minute)
		b.reconcile(t)
		assert.True(t, clusterrules.IsSilent(b.member(t)))
		outage.recovered = b.clock.Now()
		b.reconcile(t)
		assert.True(t, clusterrules.IsSilent(b.member(t)), "an outage is no sign of life")
	})
	t.Run("the last heartbeat is told by the hub's clock", func(t *testing.T) {
		b := newBench(t, member())
		b.reconcile(t)
		heard := func() time.Duration {
			return b.clock.Since(b.member(t).Status.AgentStatus[0].LastReceivedHeartbeat.Time)
		}
		b.beat(t, -time.Hour, yes, yes)
		b.reconcile(t)
		assert.Zero(t, heard())
		b.later(10 * time.Second)
		b.restart()
		writes := b.statusWrites
		b.reconcile(t)
		assert.Equal(t, 10*time.Second, heard())
		assert.Equal(t, writes, b.statusWrites, "a restart changes nothing")
		b.beat(t, -time.Hour, yes, yes)
		b.reconcile(t)
		assert.Zero(t, heard())
		b.later(10 * time.Minute)
		b.beat(t, 0, yes, yes)
		b.later(5 * time.Second)
		b.restart()
		b.reconcile(t)
		assert.Equal(t, 5*time.Second, heard(), "what was reported while no hub was running can only be told by the report")
	})
	t.Run("at least three heartbeats are allowed for", func(t *testing.T) {
		m := member()
		m.Spec.HeartbeatPeriodSeconds = 60
		b := newBench(t, m)
		b.reconcile(t)
		b.beat(t, 0, yes, yes)
		assert.Equal(t, 3*time.Minute, b.reconcile(t).RequeueAfter.Round(time.Second))
	})
}

func TestJoinSaysWhatToDoAboutANamespaceThatRemains(t *testing.T) {
	b := newBench(t, member(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: memberNS, Finalizers: []string{"test/hold"}, DeletionTimestamp: &metav1.Time{Time: time.Now()},
	}})
	b.reconcile(t)
	ready := b.condition(t, clusterv1beta1.ConditionTypeReadyToJoin)
	assert.Equal(t, clusterv1beta1.ReasonMemberClusterNotReadyToJoin, ready.Reason)
	assert.Contains(t, ready.Message, "kubectl replace --raw /api/v1/namespaces/fleet-member-member1/finalize")
}

func work() *placementv1beta1.Work {
	return &placementv1beta1.Work{ObjectMeta: metav1.ObjectMeta{
		Namespace: memberNS, Name: "app-work", Finalizers: []string{placementv1beta1.WorkFinalizer},
	}}
}

// joined is a bench with a member that has joined.
func joinedBench(t *testing.T, objects ...client.Object) *bench {
	t.Helper()
	b := newBench(t, append(objects, member())...)
	b.reconcile(t)
	b.beat(t, 0, yes, yes)
	b.reconcile(t)
	b.told()
	require.NoError(t, b.hub.Delete(t.Context(), b.member(t)))
	return b
}

func (b *bench) gone(t *testing.T, name, namespace string, object client.Object) bool {
	t.Helper()
	return apierrors.IsNotFound(b.hub.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, object))
}

func TestLeaveRemovesWhatWasPlacedThenAsksTheAgentThenClears(t *testing.T) {
	b := joinedBench(t, work())
	result := b.reconcile(t)
	assert.Contains(t, b.condition(t, clusterv1beta1.ConditionTypeReadyToJoin).Message, "waiting for 1 work(s) to be removed from the cluster")
	assert.Positive(t, result.RequeueAfter)
	assert.LessOrEqual(t, result.RequeueAfter, 15*time.Minute)
	assert.Equal(t, clusterv1beta1.ClusterStateJoin, b.box(t).Spec.State)

	done := work()
	require.NoError(t, b.hub.Get(t.Context(), client.ObjectKeyFromObject(done), done))
	done.Finalizers = nil
	require.NoError(t, b.hub.Update(t.Context(), done))
	require.NoError(t, b.hub.Delete(t.Context(), done))
	b.reconcile(t)
	assert.Equal(t, clusterv1beta1.ClusterStateLeave, b.box(t).Spec.State)
	assert.Contains(t, b.condition(t, clusterv1beta1.ConditionTypeReadyToJoin).Message, "waiting for the member agent to leave")

	b.beat(t, 0, left, yes)
	b.reconcile(t)
	b.reconcile(t)
	assert.True(t, b.gone(t, "member1", "", &clusterv1beta1.MemberCluster{}))
	assert.True(t, b.gone(t, memberNS, "", &corev1.Namespace{}))
	assert.True(t, b.gone(t, "fleet-role-member1", memberNS, &rbacv1.Role{}))
	assert.True(t, b.gone(t, "fleet-rolebinding-member1", memberNS, &rbacv1.RoleBinding{}))
	assert.True(t, b.gone(t, "member1", memberNS, &clusterv1beta1.InternalMemberCluster{}))
	assert.Contains(t, b.told(), clusterv1beta1.ReasonMemberClusterLeft)
}

func TestLeaveWaitsForExportedServicesUnlessToldNotTo(t *testing.T) {
	export := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: memberNS, Name: "shop-web"}}
	export.SetGroupVersionKind(serviceExports.GroupVersion().WithKind("InternalServiceExport"))

	b := joinedBench(t, export)
	result := b.reconcile(t)
	assert.Contains(t, b.condition(t, clusterv1beta1.ConditionTypeReadyToJoin).Message, "waiting for 1 exported service(s) to be deleted in the member cluster, such as shop-web")
	assert.Equal(t, exportsEvery, result.RequeueAfter)
	assert.Equal(t, clusterv1beta1.ClusterStateJoin, b.box(t).Spec.State)
	require.NoError(t, b.hub.Delete(t.Context(), export))
	b.reconcile(t)
	assert.Equal(t, clusterv1beta1.ClusterStateLeave, b.box(t).Spec.State)

	b = joinedBench(t, export)
	b.reconcile(t)
	b.later(16 * time.Minute)
	b.reconcile(t)
	assert.Equal(t, clusterv1beta1.ClusterStateLeave, b.box(t).Spec.State, "its agent is asked all the same when the time for that is over")
	b.beat(t, 0, left, yes)
	b.reconcile(t)
	b.reconcile(t)
	assert.True(t, b.gone(t, "member1", "", &clusterv1beta1.MemberCluster{}))
	assert.NotContains(t, b.told(), "MemberClusterForceRemoved", "it has answered")

	b = joinedBench(t, export)
	m := b.member(t)
	m.Spec.DeleteOptions = &clusterv1beta1.DeleteOptions{ValidationMode: clusterv1beta1.DeleteValidationModeSkip}
	require.NoError(t, b.hub.Update(t.Context(), m))
	b.reconcile(t)
	assert.Equal(t, clusterv1beta1.ClusterStateLeave, b.box(t).Spec.State)
}

func TestLeaveGoesOnWithoutAnAgentThatDoesNotAnswer(t *testing.T) {
	b := joinedBench(t, work())
	b.reconcile(t)
	b.later(16 * time.Minute)
	b.reconcile(t)
	b.reconcile(t)
	assert.True(t, b.gone(t, "app-work", memberNS, &placementv1beta1.Work{}), "its finalizer is taken off")
	assert.True(t, b.gone(t, "member1", "", &clusterv1beta1.MemberCluster{}))
	assert.Contains(t, b.told(), "MemberClusterForceRemoved")
}

// Who waits for a member to clean up must be able to tell that nobody is there to do it.
func TestWhoWantsToKnowThatAMemberLeavesIsToldBeforeItIsGone(t *testing.T) {
	b := joinedBench(t, work())
	var told []string
	fails := errors.New("the record cannot be written")
	b.Reconciler.options.Leaves = func(_ context.Context, member *clusterv1beta1.MemberCluster, without string) error {
		assert.Equal(t, "member1", member.Name)
		assert.Contains(t, member.Finalizers, clusterv1beta1.MemberClusterFinalizer)
		assert.False(t, meta.IsStatusConditionFalse(b.member(t).Status.Conditions, clusterv1beta1.ConditionTypeJoined), "it has not left yet")
		told = append(told, without)
		return fails
	}
	b.reconcile(t)
	b.later(16 * time.Minute)
	_, err := b.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: "member1"}})
	require.ErrorIs(t, err, fails)
	assert.False(t, b.gone(t, "member1", "", &clusterv1beta1.MemberCluster{}), "it stays as long as that fails")
	assert.Contains(t, b.told(), "MemberClusterLeavesUntold")
	fails = nil
	told = nil
	for range 3 {
		if !b.gone(t, "member1", "", &clusterv1beta1.MemberCluster{}) {
			b.reconcile(t)
		}
	}
	assert.True(t, b.gone(t, "member1", "", &clusterv1beta1.MemberCluster{}))
	require.NotEmpty(t, told)
	assert.NotEmpty(t, told[0], "what it is let go without")
	assert.Empty(t, told[len(told)-1])
}

func TestAMemberThatLeavesAndIsSilentIsNotCalledHealthy(t *testing.T) {
	b := joinedBench(t, work()) // it leaves
	b.reconcile(t)
	assert.False(t, clusterrules.IsSilent(b.member(t)))
	wait := b.reconcile(t).RequeueAfter
	assert.Less(t, wait, 10*time.Minute, "long before it is removed without the agent")
	b.later(wait)
	assert.InDelta(t, 15*time.Minute-wait, b.reconcile(t).RequeueAfter, float64(2*time.Second), "then it is removed without the agent")
	assert.True(t, clusterrules.IsSilent(b.member(t)))
	b.reconcile(t)
	assert.True(t, clusterrules.IsSilent(b.member(t)), "and stays so")
	b.beat(t, 0, yes, yes)
	b.reconcile(t)
	assert.False(t, clusterrules.IsSilent(b.member(t)), "until it is heard of")
}

func TestLeaveDoesNotWaitForAnAgentThatNeverJoined(t *testing.T) {
	b := newBench(t, member())
	b.reconcile(t)
	require.NoError(t, b.hub.Delete(t.Context(), b.member(t)))
	b.reconcile(t)
	b.reconcile(t)
	assert.True(t, b.gone(t, "member1", "", &clusterv1beta1.MemberCluster{}))
}

func TestLeaveDoesNotWaitForANamespaceThatNobodyFinalizes(t *testing.T) {
	b := newBench(t, member())
	b.reconcile(t)
	namespace := &corev1.Namespace{}
	require.NoError(t, b.hub.Get(t.Context(), client.ObjectKey{Name: memberNS}, namespace))
	namespace.Finalizers = []string{"test/hold"}
	require.NoError(t, b.hub.Update(t.Context(), namespace))
	require.NoError(t, b.hub.Delete(t.Context(), b.member(t)))
	b.reconcile(t)
	assert.NotZero(t, b.reconcile(t).RequeueAfter)
	b.later(2 * namespaceGrace)
	b.reconcile(t)
	assert.True(t, b.gone(t, "member1", "", &clusterv1beta1.MemberCluster{}))
	assert.Contains(t, b.told(), ReasonNamespaceRemains)
}

func TestAMemberThatKeepsWhatItHasIsAskedToLeaveAtOnce(t *testing.T) {
	b := joinedBench(t, work())
	m := b.member(t)
	m.Annotations = map[string]string{clusterv1beta1.KeepPlacedAnnotation: "true"}
	require.NoError(t, b.hub.Update(t.Context(), m))
	b.reconcile(t)
	box := b.box(t)
	assert.Equal(t, clusterv1beta1.ClusterStateLeave, box.Spec.State)
	assert.Equal(t, "true", box.Annotations[clusterv1beta1.KeepPlacedAnnotation])
}

// outageUntil is an outage of the hub that ended then.
type outageUntil struct{ recovered time.Time }

func (o *outageUntil) Last() (time.Time, time.Duration) { return o.recovered, time.Minute }
