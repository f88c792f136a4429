package temporalclient_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/fleetflow/fleetflow/controllers/hub/temporalclient"
)

func TestWhetherTemporalIsReachedIsNotedThoughNothingWaitsForIt(t *testing.T) {
	began := time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
	hub, clk, key := fake.NewClientBuilder().Build(), clocktesting.NewFakeClock(began), types.NamespacedName{Namespace: "fleet-system", Name: "hub-agent-temporal.fleetflow.io"}
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
