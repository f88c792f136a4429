//go:build integration

package pods

import (
	"context"
	"flag"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/test/devfleet/access"
	"github.com/fleetflow/fleetflow/test/devfleet/control"
	"github.com/fleetflow/fleetflow/test/devfleet/state"
)

const (
	// lease is what the hub agent that leads renews.
	lease = "hub-agent.fleetflow.io"
	// leadsWithin is how long no agent may lead once the API server is back. It is less than a lease lasts, as the agent that led takes its
	// lease again. On cores that do nothing else that takes two seconds.
	leadsWithin = 14 * time.Second
	// awayBriefly is longer than a lease lasts, and long enough for an agent that does not wait for the API server to be started again twice.
	awayBriefly = 25 * time.Second
)

// away is how long the API server is away in the long outage. The guide's figure was measured with four minutes.
var away = flag.Duration("away", time.Minute, "how long the API server of the hub is away in TestPodsLong")

// agentReplaced has all Pods of the hub agent replaced while a run is under way.
func agentReplaced(t *testing.T) {
	done := beginRun(t, "soaked")
	sh(t, "kubectl --context hub -n "+system+" rollout restart deployment/hub-agent")
	done()
	sh(t, "kubectl --context hub -n "+system+" rollout status deployment/hub-agent --timeout=120s")
}

// apiServerAway takes the API server of the hub away: the leader ends, and kubelet starts it again while there still is none. Once it is
// back an agent leads within seconds: none has waited for kubelet or for a lease.
func apiServerAway(t *testing.T, long time.Duration, replicas ...int) {
	for _, replicas := range replicas {
		scaleAgents(t, replicas)
		before := restarts(t)
		name := state.Hub + "/apiserver"
		require.NoError(t, shared.Control.Do(t.Context(), control.Stop, name))
		select { // nothing tells that this time is over
		case <-time.After(long):
		case <-t.Context().Done():
		}
		require.NoError(t, shared.Control.Do(t.Context(), control.Start, name))
		back := time.Now()
		awaitLeader(t, back)
		led := time.Since(back)
		t.Logf("with %d replicas, led %.1f s after the API server was back", replicas, led.Seconds())
		assert.LessOrEqual(t, led, leadsWithin)
		for container, count := range restarts(t) {
			t.Logf("%s was started again %d times", container, count-before[container])
			assert.LessOrEqual(t, count-before[container], int32(1), "%s: only for the lost lease", container)
		}
		awaitAdmission(t)
		beginRun(t, "web")()
	}
}

// awaitAdmission waits until the API server of the hub, which has just started, can judge a run by the policies.
func awaitAdmission(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	require.NoError(t, access.WhenAdmitted(ctx, func(ctx context.Context) error {
		run := &placementv1beta1.ClusterStagedUpdateRun{ObjectMeta: metav1.ObjectMeta{Name: "tried"},
			Spec: placementv1beta1.UpdateRunSpec{PlacementName: "web", StagedUpdateStrategyName: "web"}}
		return shared.Hub.Create(ctx, run, client.DryRunAll)
	}))
}

// awaitLeader waits until an agent leads that has renewed its lease since a time.
func awaitLeader(t *testing.T, since time.Time) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	_, err := access.Await(ctx, shared.Hub, client.ObjectKey{Namespace: system, Name: lease}, func(held *coordinationv1.Lease) string {
		if held == nil || held.Spec.RenewTime == nil || held.Spec.HolderIdentity == nil || *held.Spec.HolderIdentity == "" {
			return "no agent leads"
		}
		if !held.Spec.RenewTime.After(since) {
			return "was not renewed since " + since.String()
		}
		return ""
	})
	require.NoError(t, err)
}

// restarts returns how often kubelet has started each container of the hub agent's Pods again.
func restarts(t *testing.T) map[string]int32 {
	t.Helper()
	pods := &corev1.PodList{}
	require.NoError(t, shared.Hub.List(t.Context(), pods, client.InNamespace(system), client.MatchingLabels{"app.kubernetes.io/name": "hub-agent"}))
	counts := map[string]int32{}
	for _, pod := range pods.Items {
		for _, c := range pod.Status.ContainerStatuses {
			counts[pod.Name+"/"+c.Name] = c.RestartCount
		}
	}
	return counts
}
