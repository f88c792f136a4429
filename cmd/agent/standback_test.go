package agent

import (
	"context"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/events"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/fleetflow/fleetflow/apis/kubefleet"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// counterpart is an API server in memory on which KubeFleet's hub agent holds its lease, or not.
type counterpart struct {
	t      *testing.T
	client *fake.Clientset
	clock  *testingclock.FakeClock
	events *events.FakeRecorder
}

func newCounterpart(t *testing.T, objects ...*coordinationv1.Lease) *counterpart {
	t.Helper()
	c := &counterpart{t: t, client: fake.NewClientset(), clock: testingclock.NewFakeClock(noon), events: events.NewFakeRecorder(10)}
	for _, lease := range objects {
		require.NoError(t, c.client.Tracker().Add(lease))
	}
	return c
}

// held is the lease with a holder, renewed at a time.
func held(holder string, renewed time.Time) *coordinationv1.Lease {
	at := metav1.NewMicroTime(renewed)
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: kubefleet.HubAgentLease.Namespace, Name: kubefleet.HubAgentLease.Name},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder, RenewTime: &at, LeaseDurationSeconds: new(int32(60))},
	}
}

func (c *counterpart) renew(lease *coordinationv1.Lease) {
	c.t.Helper()
	_, err := c.client.CoordinationV1().Leases(lease.Namespace).Update(c.t.Context(), lease, metav1.UpdateOptions{})
	require.NoError(c.t, err)
}

func (c *counterpart) standBack(address string) *StandBack {
	return &StandBack{
		Leases: listedLeases{c.client.CoordinationV1()}, Lease: kubefleet.HubAgentLease, HealthAddress: address,
		Events: c.events, Log: logr.Discard(), Clock: c.clock,
	}
}

func TestAnAgentStartsAtOnceBesideNoOther(t *testing.T) {
	for sentence, c := range map[string]*counterpart{
		"there is no lease":        newCounterpart(t),
		"the lease has expired":    newCounterpart(t, held("kubefleet", noon.Add(-time.Hour))),
		"the lease was given back": newCounterpart(t, held("", noon)),
	} {
		t.Run(sentence, func(t *testing.T) {
			require.NoError(t, c.standBack("").Await(t.Context()))
			assert.Empty(t, c.events.Events)
		})
	}
}

func TestAnAgentStandsBackUntilKubeFleetHasEnded(t *testing.T) {
	ends := map[string]func(*counterpart){
		"it gives its lease back": func(c *counterpart) { c.renew(held("", noon)) },
		"its lease expires":       func(c *counterpart) { c.clock.Step(time.Minute) },
	}
	for sentence, end := range ends {
		t.Run(sentence, func(t *testing.T) {
			c := newCounterpart(t, held("kubefleet", noon))
			address := freeAddress(t)
			done := make(chan error, 1)
			go func() { done <- c.standBack(address).Await(t.Context()) }()
			assert.Contains(t, <-c.events.Events, "Warning StandingBack KubeFleet's hub agent (kubefleet) runs here")
			require.Eventually(t, func() bool { return answer(address, "/healthz") == "200 " }, time.Minute, time.Millisecond, "it is alive")
			assert.Contains(t, answer(address, "/readyz?exclude=temporal"), "503 KubeFleet's hub agent (kubefleet) runs here")
			require.Eventually(t, c.clock.HasWaiters, time.Minute, time.Millisecond)
			assert.Empty(t, done)
			// A watch in memory does not tell of what was written before it began.
			require.Eventually(t, func() bool { end(c); return len(done) > 0 }, time.Minute, time.Millisecond)
			require.NoError(t, <-done)
			assert.Contains(t, <-c.events.Events, "Normal GoingOn")
			assert.Empty(t, answer(address, "/healthz"), "the address is free for the manager")
		})
	}
}

func TestAnAgentEndsWhenKubeFleetBegins(t *testing.T) {
	c := newCounterpart(t, held("kubefleet", noon.Add(-time.Hour)))
	done := make(chan error, 1)
	go func() { done <- c.standBack("").Start(t.Context()) }()
	require.Eventually(t, func() bool { c.renew(held("kubefleet", noon)); return len(done) > 0 }, time.Minute, time.Millisecond)
	assert.ErrorContains(t, <-done, "KubeFleet's hub agent (kubefleet) has begun to work here")
}

func TestAnAgentThatIsToldToEndWatchesNoMore(t *testing.T) {
	c := newCounterpart(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	assert.NoError(t, c.standBack("").Start(ctx))
}

// listedLeases says that the API server in memory cannot list by a watch.
type listedLeases struct {
	coordinationclient.LeasesGetter
}

func (listedLeases) IsWatchListSemanticsUnSupported() bool { return true }

func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "localhost:0")
	require.NoError(t, err)
	defer listener.Close()
	return listener.Addr().String()
}

// answer is the code and the body of what an address answers, empty if it does not.
func answer(address, path string) string {
	response, err := http.Get("http://" + address + path)
	if err != nil {
		return ""
	}
	defer response.Body.Close()
	body, _ := io.ReadAll(response.Body)
	return response.Status[:3] + " " + string(body)
}
