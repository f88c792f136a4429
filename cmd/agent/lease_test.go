package agent

import (
	"context"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// TestAContainerThatIsStartedAgainIsTheHolderItWas has who is who in a lease: two agents of one name would both lead.
func TestAContainerThatIsStartedAgainIsTheHolderItWas(t *testing.T) {
	first := holder(1, "hub-agent-7f", "3c5a")
	assert.Equal(t, "hub-agent-7f_3c5a", first)
	for sentence, c := range map[string]struct {
		pid       int
		host, uid string
		isSame    bool
	}{
		"the container is started again":                   {1, "hub-agent-7f", "3c5a", true},
		"another Pod of the same name":                     {1, "hub-agent-7f", "9d1e", false},
		"a second process in the container":                {42, "hub-agent-7f", "3c5a", false},
		"a container that does not know its Pod":           {1, "hub-agent-7f", "", false},
		"one of several agents on a host":                  {4711, "laptop", "", false},
		"a local fleet in a container that knows its Pod":  {4711, "hub-agent-7f", "3c5a", false},
		"a process with no Pod that is first in its space": {1, "laptop", "", false},
	} {
		t.Run(sentence, func(t *testing.T) {
			again := holder(c.pid, c.host, c.uid)
			assert.Equal(t, c.isSame, first == again, again)
		})
	}
	assert.NotEqual(t, holder(42, "hub-agent-7f", "3c5a"), holder(42, "hub-agent-7f", "3c5a"))
	assert.NotEqual(t, holder(1, "laptop", ""), holder(1, "laptop", ""))
}

// TestOnlyItsHolderGoesOnWithALease starts agents while a lease counts that was lost: its holder leads at once, others wait.
func TestOnlyItsHolderGoesOnWithALease(t *testing.T) {
	lost := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: "fleet-system", Name: "agent"},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: new("hub-agent-7f_3c5a"), LeaseDurationSeconds: new(int32(3600)),
			RenewTime: &metav1.MicroTime{Time: time.Now()}, AcquireTime: &metav1.MicroTime{Time: time.Now()}},
	}
	for identity, leads := range map[string]bool{holder(1, "hub-agent-7f", "3c5a"): true, holder(2, "hub-agent-7f", "3c5a"): false} {
		ctx, cancel := context.WithCancel(t.Context())
		led := make(chan struct{}, 1)
		seen := make(chan string, 1)
		elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
			Lock: &resourcelock.LeaseLock{LeaseMeta: lost.ObjectMeta, Client: fake.NewClientset(lost.DeepCopy()).CoordinationV1(),
				LockConfig: resourcelock.ResourceLockConfig{Identity: identity}},
			LeaseDuration: time.Hour, RenewDeadline: time.Minute, RetryPeriod: time.Second,
			Callbacks: leaderelection.LeaderCallbacks{
				OnStartedLeading: func(context.Context) { led <- struct{}{} }, OnStoppedLeading: func() {},
				OnNewLeader: func(leader string) { seen <- leader },
			},
		})
		require.NoError(t, err)
		done := make(chan struct{})
		go func() { defer close(done); elector.Run(ctx) }()
		assert.Equal(t, "hub-agent-7f_3c5a", <-seen)
		if leads {
			<-led
		}
		assert.Empty(t, led, "it waits for the holder")
		cancel()
		<-done
	}
}

func TestTheLeaseOfAnAgentIsItsOwn(t *testing.T) {
	t.Setenv(podUIDEnv, "3c5a")
	p := &Process{}
	f := flags()
	p.Add(f, Defaults{LeaseNamespace: "fleet-system"})
	require.NoError(t, f.Parse(nil))
	options, err := p.ManagerOptions(t.Context(), &rest.Config{Host: "https://hub"}, logr.Discard(), "hub-agent.fleetflow.io", time.Second)
	require.NoError(t, err)
	lock, is := options.LeaderElectionResourceLockInterface.(*heldLease)
	require.True(t, is)
	assert.Equal(t, "fleet-system/hub-agent.fleetflow.io", lock.Describe())
	assert.NotEmpty(t, lock.Labels, "the version of the agent that leads")
	assert.NotContains(t, lock.Identity(), "3c5a", "a test is not the first process of a container")

	require.NoError(t, f.Parse([]string{"--leader-election-namespace="}))
	assert.ErrorContains(t, p.Check(), "--leader-election-namespace")
}

// TestAnAgentThatWasFrozenLeavesTheLeaseToItsHolder has an agent stop before it has seen that another leads since.
func TestAnAgentThatWasFrozenLeavesTheLeaseToItsHolder(t *testing.T) {
	for sentence, c := range map[string]struct {
		holder string
		want   string
	}{
		"another leads since":                       {"hub-agent-9c_9d1e", "hub-agent-9c_9d1e"},
		"it leads itself, and gives the lease back": {"hub-agent-7f_3c5a", ""},
	} {
		t.Run(sentence, func(t *testing.T) {
			meta := metav1.ObjectMeta{Namespace: "fleet-system", Name: "agent"}
			leases := fake.NewClientset().CoordinationV1()
			led := make(chan struct{})
			elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
				Lock: &heldLease{LeaseLock: &resourcelock.LeaseLock{LeaseMeta: meta, Client: leases,
					LockConfig: resourcelock.ResourceLockConfig{Identity: "hub-agent-7f_3c5a"}}},
				LeaseDuration: 3 * time.Hour, RenewDeadline: 2 * time.Hour, RetryPeriod: time.Hour, ReleaseOnCancel: true,
				Callbacks: leaderelection.LeaderCallbacks{
					OnStartedLeading: func(context.Context) { close(led) }, OnStoppedLeading: func() {},
				},
			})
			require.NoError(t, err)
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan struct{})
			go func() { defer close(done); elector.Run(ctx) }()
			<-led
			lease, err := leases.Leases(meta.Namespace).Get(t.Context(), meta.Name, metav1.GetOptions{})
			require.NoError(t, err)
			lease.Spec.HolderIdentity = new(c.holder)
			_, err = leases.Leases(meta.Namespace).Update(t.Context(), lease, metav1.UpdateOptions{})
			require.NoError(t, err)
			cancel()
			<-done
			lease, err = leases.Leases(meta.Namespace).Get(t.Context(), meta.Name, metav1.GetOptions{})
			require.NoError(t, err)
			require.NotNil(t, lease.Spec.HolderIdentity)
			assert.Equal(t, c.want, *lease.Spec.HolderIdentity)
		})
	}
}
