package membership

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	"github.com/fleetflow/fleetflow/controllers/member/work"
	"github.com/fleetflow/fleetflow/test/fixture"
)

// fakeApplier records its calls.
type fakeApplier struct {
	mode      work.Mode
	remaining []string
	// setFails and listFails are the errors that it returns.
	setFails, listFails error
}

func (a *fakeApplier) SetMode(_ context.Context, mode work.Mode) error {
	a.mode = mode
	return a.setFails
}

func (a *fakeApplier) Remaining(context.Context) ([]string, error) { return a.remaining, a.listFails }

// fakeReporter has fixed answers.
type fakeReporter struct{ nodes int }

func (r *fakeReporter) Shape(context.Context) (Shape, error) { return Shape{Nodes: r.nodes}, nil }

func (r *fakeReporter) Survey(context.Context, metav1.Time) (Survey, error) {
	return Survey{NodeCount: r.nodes}, nil
}

// member is a membership controller with its fakes.
type member struct {
	*Reconciler
	applier  *fakeApplier
	reporter *fakeReporter
	clock    *testclock.FakePassiveClock
	writes   int
}

func newMember(t *testing.T, imc *clusterv1beta1.InternalMemberCluster) *member {
	t.Helper()
	scheme := fixture.Scheme(t)
	m := &member{
		applier: &fakeApplier{}, reporter: &fakeReporter{nodes: 2},
		clock: testclock.NewFakePassiveClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)),
	}
	builder := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&clusterv1beta1.InternalMemberCluster{}).
		WithInterceptorFuncs(interceptor.Funcs{
			SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, o client.Object, opts ...client.SubResourceUpdateOption) error {
				m.writes++
				return c.SubResource(sub).Update(ctx, o, opts...)
			},
		})
	if imc != nil {
		builder = builder.WithObjects(imc)
	}
	m.Reconciler = NewReconciler("one", builder.Build(), m.reporter, m.clock)
	m.Applier = m.applier
	return m
}

func (m *member) reconcile(t *testing.T) reconcile.Result {
	t.Helper()
	result, err := m.Reconcile(t.Context(), reconcile.Request{NamespacedName: m.memberKey()})
	require.NoError(t, err)
	return result
}

func (m *member) imc(t *testing.T) *clusterv1beta1.InternalMemberCluster {
	t.Helper()
	out := &clusterv1beta1.InternalMemberCluster{}
	require.NoError(t, m.Hub.Get(t.Context(), m.memberKey(), out))
	return out
}

func (m *member) joinedReason(t *testing.T) string {
	t.Helper()
	agents := m.imc(t).Status.AgentStatus
	require.Len(t, agents, 1)
	return meta.FindStatusCondition(agents[0].Conditions, clusterv1beta1.ConditionTypeJoined).Reason
}

func internalMemberCluster(state clusterv1beta1.ClusterState) *clusterv1beta1.InternalMemberCluster {
	return &clusterv1beta1.InternalMemberCluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: "fleet-member-one", Name: "one", Generation: 1},
		Spec:       clusterv1beta1.InternalMemberClusterSpec{State: state, HeartbeatPeriodSeconds: 20},
	}
}

func TestAMemberThatIsNotInvitedWaits(t *testing.T) {
	m := newMember(t, nil)
	m.applier.mode = work.ModeApply
	assert.Zero(t, m.reconcile(t).RequeueAfter)
	assert.Equal(t, work.ModeIdle, m.applier.mode)
}

func TestAMemberThatIsInvitedJoinsAtOnceAndThenReportsOncePerHeartbeat(t *testing.T) {
	m := newMember(t, internalMemberCluster(clusterv1beta1.ClusterStateJoin))
	next := m.reconcile(t).RequeueAfter
	assert.Equal(t, work.ModeApply, m.applier.mode)
	assert.Equal(t, clusterv1beta1.ReasonInternalMemberClusterJoined, m.joinedReason(t))
	assert.InDelta(t, 20, next.Seconds(), 1, "the period, give or take 5 %")
	assert.Equal(t, 1, m.writes)

	m.reconcile(t)
	assert.Equal(t, 1, m.writes, "nothing is written between heartbeats")

	m.clock.SetTime(m.clock.Now().Add(minShapeReportInterval))
	m.reporter.nodes = 3
	m.reconcile(t)
	assert.Equal(t, 2, m.writes, "another number of nodes does not wait for the next heartbeat")
	assert.Equal(t, "3", m.imc(t).Status.Properties[clusterv1beta1.NodeCountProperty].Value)

	m.clock.SetTime(m.clock.Now().Add(22 * time.Second))
	m.reconcile(t)
	assert.Equal(t, 3, m.writes)
}

func TestAMemberThatDoesNotSeeItsWorksDoesNotSayThatItIsThere(t *testing.T) {
	m := newMember(t, internalMemberCluster(clusterv1beta1.ClusterStateJoin))
	refused := []string{"*v1beta1.Work"}
	m.Unwatched = func() []string { return refused }
	m.reconcile(t)
	assert.Zero(t, m.writes)
	assert.Equal(t, work.ModeApply, m.applier.mode)
	refused = nil
	m.reconcile(t)
	assert.Equal(t, clusterv1beta1.ReasonInternalMemberClusterJoined, m.joinedReason(t))
}

func TestAFindingIsToldAtOnceAndIsResolvedWhenItIsOver(t *testing.T) {
	m := newMember(t, internalMemberCluster(clusterv1beta1.ClusterStateJoin))
	finding := metav1.Condition{
		Type: clusterv1beta1.ConditionTypeHubTokenRenewed, Status: metav1.ConditionFalse, Reason: clusterv1beta1.ReasonHubTokenNotRenewed, Message: "one",
	}
	var findings []metav1.Condition
	m.Findings = func() []metav1.Condition { return findings }
	m.reconcile(t)
	findings = []metav1.Condition{finding}
	m.reconcile(t)
	require.Len(t, m.imc(t).Status.Conditions, 1)
	assert.Equal(t, "one", m.imc(t).Status.Conditions[0].Message)
	findings[0].Message = "another"
	m.reconcile(t)
	assert.Equal(t, 2, m.writes, "another message waits for the next heartbeat")
	findings = nil
	m.reconcile(t)
	require.Len(t, m.imc(t).Status.Conditions, 1)
	assert.Equal(t, metav1.ConditionTrue, m.imc(t).Status.Conditions[0].Status)
	assert.Equal(t, clusterv1beta1.ReasonHubTokenRenewed, m.imc(t).Status.Conditions[0].Reason)
	assert.Equal(t, 3, m.writes)
	m.reconcile(t)
	assert.Equal(t, 3, m.writes, "once")
}

func TestAMemberReportsAtOnceInALetterBoxThatWasMadeAnew(t *testing.T) {
	first := internalMemberCluster(clusterv1beta1.ClusterStateJoin)
	first.UID = "first"
	m := newMember(t, first)
	m.reconcile(t)
	require.NoError(t, m.Hub.Delete(t.Context(), m.imc(t)))
	second := internalMemberCluster(clusterv1beta1.ClusterStateJoin)
	second.UID = "second"
	require.NoError(t, m.Hub.Create(t.Context(), second))
	m.reconcile(t) // that the first was gone it has never seen
	assert.Equal(t, 2, m.writes)
	assert.Equal(t, clusterv1beta1.ReasonInternalMemberClusterJoined, m.joinedReason(t))
}

func TestAMemberWhoseNodesComeAndGoDoesNotWriteTheHubAllTheTime(t *testing.T) {
	m := newMember(t, internalMemberCluster(clusterv1beta1.ClusterStateJoin))
	m.reconcile(t)
	began := m.clock.Now()
	next := m.clock.Now()
	for m.clock.Since(began) < time.Minute {
		m.clock.SetTime(m.clock.Now().Add(100 * time.Millisecond))
		m.reporter.nodes++
		if wait := m.reconcile(t).RequeueAfter; wait > 0 {
			next = m.clock.Now().Add(wait)
		}
	}
	assert.LessOrEqual(t, m.writes, 1+int(time.Minute/minShapeReportInterval), "600 changes in a minute")
	assert.Greater(t, m.writes, int(time.Minute/minShapeReportInterval)-2, "but they are reported")

	m.clock.SetTime(next)
	m.reconcile(t)
	assert.Equal(t, strconv.Itoa(m.reporter.nodes), m.imc(t).Status.Properties[clusterv1beta1.NodeCountProperty].Value,
		"the last change is reported when its time has come")
}

func TestAMemberHasLeftOnlyWhenNothingRemains(t *testing.T) {
	m := newMember(t, internalMemberCluster(clusterv1beta1.ClusterStateLeave))
	m.applier.remaining = []string{"crp-work"}
	m.reconcile(t)
	assert.Equal(t, work.ModeLeave, m.applier.mode)
	assert.Equal(t, clusterv1beta1.ReasonInternalMemberClusterJoined, m.joinedReason(t))

	m.applier.remaining = nil
	m.reconcile(t)
	assert.Equal(t, clusterv1beta1.ReasonInternalMemberClusterLeft, m.joinedReason(t))

	writes := m.writes
	m.clock.SetTime(m.clock.Now().Add(time.Hour))
	assert.Zero(t, m.reconcile(t).RequeueAfter, "a cluster that has left has no heartbeat")
	assert.Equal(t, writes, m.writes)
	m.applier.listFails = errors.New("away")
	_, err := m.Reconcile(t.Context(), reconcile.Request{NamespacedName: m.memberKey()})
	require.Error(t, err)
	assert.Equal(t, writes, m.writes, "nor does it come back because of a failure")
}

func TestAMemberThatCannotMoveKeepsReporting(t *testing.T) {
	away := errors.New("the member's API server is away")
	kept := internalMemberCluster(clusterv1beta1.ClusterStateLeave)
	kept.Annotations = map[string]string{clusterv1beta1.KeepPlacedAnnotation: "true"}
	tests := map[string]struct {
		imc     *clusterv1beta1.InternalMemberCluster
		fail    fakeApplier
		message string
	}{
		"what is left cannot be listed":     {internalMemberCluster(clusterv1beta1.ClusterStateLeave), fakeApplier{listFails: away}, "away"},
		"leaving cannot begin":              {internalMemberCluster(clusterv1beta1.ClusterStateLeave), fakeApplier{setFails: away}, "away"},
		"leaving and keeping cannot begin":  {kept, fakeApplier{setFails: away}, "away"},
		"joining does not bring up all yet": {internalMemberCluster(clusterv1beta1.ClusterStateJoin), fakeApplier{setFails: away}, "has joined"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			m := newMember(t, tc.imc)
			*m.applier = tc.fail
			for range 2 {
				_, err := m.Reconcile(t.Context(), reconcile.Request{NamespacedName: m.memberKey()})
				require.ErrorIs(t, err, away)
			}
			assert.Equal(t, 1, m.writes, "trying again soon makes no more reports")
			joined := meta.FindStatusCondition(m.imc(t).Status.AgentStatus[0].Conditions, clusterv1beta1.ConditionTypeJoined)
			assert.Equal(t, clusterv1beta1.ReasonInternalMemberClusterJoined, joined.Reason, "it has not left")
			assert.Contains(t, joined.Message, tc.message)

			m.clock.SetTime(m.clock.Now().Add(22 * time.Second))
			_, err := m.Reconcile(t.Context(), reconcile.Request{NamespacedName: m.memberKey()})
			require.ErrorIs(t, err, away)
			assert.Equal(t, 2, m.writes)
		})
	}
}

func TestAMemberLeavesAtOnceIfWhatWasPlacedStays(t *testing.T) {
	imc := internalMemberCluster(clusterv1beta1.ClusterStateLeave)
	imc.Annotations = map[string]string{clusterv1beta1.KeepPlacedAnnotation: "true"}
	m := newMember(t, imc)
	m.applier.remaining = []string{"crp-work"}
	m.reconcile(t)
	assert.Equal(t, work.ModeAbandon, m.applier.mode)
	assert.Equal(t, clusterv1beta1.ReasonInternalMemberClusterLeft, m.joinedReason(t))
}

func TestAnUnknownWishChangesNothing(t *testing.T) {
	m := newMember(t, internalMemberCluster("Dance"))
	_, err := m.Reconcile(t.Context(), reconcile.Request{NamespacedName: m.memberKey()})
	assert.ErrorIs(t, err, reconcile.TerminalError(nil))
	assert.Equal(t, work.ModeIdle, m.applier.mode)
	assert.Zero(t, m.writes)
}

func TestTheHubIsToldAtOnceThatTheOwnerAsks(t *testing.T) {
	m := newMember(t, internalMemberCluster(clusterv1beta1.ClusterStateJoin))
	var asked *clusterv1beta1.BusyRequest
	known := true
	m.Busy = func() (*clusterv1beta1.BusyRequest, bool) { return asked, known }
	m.reconcile(t)
	require.Equal(t, 1, m.writes)
	end := metav1.NewTime(m.clock.Now().Add(time.Hour))
	asked = &clusterv1beta1.BusyRequest{Until: &end, Message: "month-end"}
	m.reconcile(t)
	assert.Equal(t, "month-end", m.imc(t).Status.Busy.Message)
	m.reconcile(t)
	assert.Equal(t, 2, m.writes, "and once")
	asked = nil
	known = false
	m.reconcile(t)
	assert.Equal(t, "month-end", m.imc(t).Status.Busy.Message, "an agent that has just started does not take back what it has not looked at")
	known = true
	m.reconcile(t)
	assert.Nil(t, m.imc(t).Status.Busy)
}
