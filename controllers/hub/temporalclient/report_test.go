package temporalclient_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	"github.com/fleetflow/fleetflow/controllers/hub/temporalclient"
)

func TestWhetherTemporalIsReachedIsNotedThoughNothingWaitsForIt(t *testing.T) {
	began := time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
	hub := fake.NewClientBuilder().Build()
	clk := clocktesting.NewFakeClock(began)
	key := types.NamespacedName{Namespace: "fleet-system", Name: "hub-agent-temporal.fleetflow.io"}
	var down error
	reporter := &temporalclient.Reporter{
		Ask: func(context.Context) error { return down }, Live: hub, Writer: hub, Lease: key, Holder: "hub-agent-7f", Clock: clk, Log: logr.Discard(),
	}
	noted := func() coordinationv1.Lease {
		t.Helper()
		require.NoError(t, reporter.Report(t.Context()))
		lease := coordinationv1.Lease{}
		require.NoError(t, hub.Get(t.Context(), key, &lease))
		assert.True(t, lease.Spec.RenewTime.Time.Equal(clk.Now()))
		assert.Equal(t, "hub-agent-7f", *lease.Spec.HolderIdentity)
		return lease
	}
	const problem = "fleetflow.io/temporal-problem"
	lease := noted()
	assert.NotContains(t, lease.Annotations, problem)
	assert.True(t, lease.Spec.AcquireTime.Time.Equal(began))

	clk.Step(10 * time.Second)
	down = errors.New("connection refused")
	lease = noted()
	assert.Equal(t, "connection refused", lease.Annotations[problem])
	failed := clk.Now()
	clk.Step(10 * time.Second)
	down = errors.New("deadline exceeded")
	lease = noted()
	assert.Equal(t, "deadline exceeded", lease.Annotations[problem])
	assert.True(t, lease.Spec.AcquireTime.Time.Equal(failed), "it has failed since then")

	clk.Step(10 * time.Second)
	down = nil
	lease = noted()
	assert.NotContains(t, lease.Annotations, problem)
	assert.True(t, lease.Spec.AcquireTime.Time.Equal(clk.Now()))
}

// A leader whose own Temporal does not come up leaves the lease to another.
func TestALeaderWaitsForItsTemporalForAsLongAsItsPatience(t *testing.T) {
	hub := fake.NewClientBuilder().Build()
	clk := clocktesting.NewFakeClock(time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC))
	key := types.NamespacedName{Namespace: "fleet-system", Name: "hub-agent-temporal.fleetflow.io"}
	answers := make(chan error)
	reporter := &temporalclient.Reporter{
		Ask: func(context.Context) error { return <-answers }, Live: hub, Writer: hub, Lease: key, Holder: "hub-agent-7f", Clock: clk,
		Mode: clusterv1beta1.TemporalBundled, Patience: 20 * time.Second, Log: logr.Discard(),
	}
	ended := make(chan error, 1)
	go func() { ended <- reporter.Start(t.Context()) }()
	answers <- nil
	for end := error(nil); end == nil; {
		clk.Step(10 * time.Second)
		select {
		case answers <- errors.New("connection refused"):
		case end = <-ended:
			assert.ErrorContains(t, end, "the bundled Temporal has not answered for")
		}
	}
	lease := coordinationv1.Lease{}
	require.NoError(t, hub.Get(t.Context(), key, &lease))
	assert.Equal(t, "Bundled", lease.Annotations["fleetflow.io/temporal-mode"])
}

// What is longer than the patience by the clock alone, which was set, is no silence of the server.
func TestALeaderWhoseClockJumpsKeepsTheLeaseWhileItsTemporalAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hub := fake.NewClientBuilder().Build()
		clk := clocktesting.NewFakeClock(time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC))
		asked := 0
		reporter := &temporalclient.Reporter{
			Ask: func(context.Context) error { asked++; return nil }, Live: hub, Writer: hub, Clock: clk,
			Lease: types.NamespacedName{Namespace: "fleet-system", Name: "hub-agent-temporal.fleetflow.io"}, Holder: "hub-agent-7f",
			Mode: clusterv1beta1.TemporalBundled, Patience: 20 * time.Second, Log: logr.Discard(),
		}
		ended := make(chan error, 1)
		ctx, end := context.WithCancel(t.Context())
		go func() { ended <- reporter.Start(ctx) }()
		for _, jump := range []time.Duration{time.Hour, -2 * time.Hour, 3 * time.Hour} {
			synctest.Wait()
			before := asked
			clk.SetTime(clk.Now().Add(jump))
			synctest.Wait()
			clk.Step(4 * time.Hour) // the ticker is of the clock that was set back, too
			synctest.Wait()
			require.Greater(t, asked, before, "it goes on after a jump of %s", jump)
		}
		end()
		require.NoError(t, <-ended)
	})
}

// The note is of Temporal as it answers now: one that was away may be another.
func TestThatNoApprovalThroughTemporalIsTakenIsNoted(t *testing.T) {
	hub := fake.NewClientBuilder().Build()
	clk := clocktesting.NewFakeClock(time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC))
	key := types.NamespacedName{Namespace: "fleet-system", Name: "hub-agent-temporal.fleetflow.io"}
	asked := 0
	down := error(nil)
	problem := "it names no senders"
	unknown := errors.New("not yet")
	reporter := &temporalclient.Reporter{
		Ask: func(context.Context) error { return down }, Live: hub, Writer: hub, Lease: key, Holder: "hub-agent-7f", Clock: clk, Log: logr.Discard(),
		AskApprovals: func(context.Context) (string, error) { asked++; return problem, unknown },
	}
	noted := func() map[string]string {
		t.Helper()
		require.NoError(t, reporter.Report(t.Context()))
		lease := coordinationv1.Lease{}
		require.NoError(t, hub.Get(t.Context(), key, &lease))
		return lease.Annotations
	}
	const annotation = "fleetflow.io/approvals-problem"
	assert.NotContains(t, noted(), annotation, "nothing is known yet")
	unknown = nil
	assert.Equal(t, "it names no senders", noted()[annotation])
	assert.Equal(t, "it names no senders", noted()[annotation])
	assert.Equal(t, 2, asked, "it is known")

	down = errors.New("connection refused")
	assert.Equal(t, "it names no senders", noted()[annotation], "as far as is known")
	down = nil
	problem = ""
	assert.NotContains(t, noted(), annotation)
	assert.Equal(t, 3, asked)

	problem = "it names no senders"
	down = errors.New("connection refused")
	noted()
	down = nil
	require.Contains(t, noted(), annotation)
	reporter.AskApprovals = nil
	assert.NotContains(t, noted(), annotation, "the agent takes others now, or none")
}
