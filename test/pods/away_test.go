//go:build integration

package pods

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/test/devfleet/access"
	"github.com/fleetflow/fleetflow/test/devfleet/control"
	"github.com/fleetflow/fleetflow/test/devfleet/state"
)

const (
	// lease is what the hub agent that leads renews.
	lease = "hub-agent.fleetflow.io"
	// leadsWithin is how long no agent may lead once the API server is back: a lease that was renewed after an agent has looked last
	// counts for its whole time, 15 s, from the agent's next look on.
	leadsWithin = 30 * time.Second
	awayFor     = time.Minute
)

// agentReplaced has all Pods of the hub agent replaced while a run is under way.
func agentReplaced(t *testing.T) {
	apply(t, fmt.Sprintf(web, 1))
	apply(t, fmt.Sprintf(webRun, "web-3"))
	sh(t, "kubectl --context hub -n "+system+" rollout restart deployment/hub-agent")
	awaitRun(t, "web-3")
	awaitVersion(t, 1)
	sh(t, "kubectl --context hub -n "+system+" rollout status deployment/hub-agent --timeout=120s")
}

// apiServerAway takes the API server of the hub away for longer than a lease lasts: the leader ends, and kubelet starts it again while
// there still is none. Once it is back an agent leads within seconds, so no agent has waited for kubelet.
func apiServerAway(t *testing.T) {
	name := state.Hub + "/apiserver"
	require.NoError(t, shared.Control.Do(t.Context(), control.Stop, name))
	select { // nothing tells that a minute is over
	case <-time.After(awayFor):
	case <-t.Context().Done():
	}
	require.NoError(t, shared.Control.Do(t.Context(), control.Start, name))
	back := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	_, err := access.Await(ctx, shared.Hub, client.ObjectKey{Namespace: system, Name: lease}, func(held *coordinationv1.Lease) string {
		if held == nil || held.Spec.RenewTime == nil || held.Spec.HolderIdentity == nil || *held.Spec.HolderIdentity == "" {
			return "nobody leads"
		}
		if !held.Spec.RenewTime.After(back) {
			return "was not renewed since the API server is back"
		}
		return ""
	})
	require.NoError(t, err)
	led := time.Since(back)
	t.Logf("led %.1f s after the API server was back", led.Seconds())
	assert.LessOrEqual(t, led, leadsWithin)
	pods := &corev1.PodList{}
	require.NoError(t, shared.Hub.List(t.Context(), pods, client.InNamespace(system), client.MatchingLabels{"app.kubernetes.io/name": "hub-agent"}))
	for _, pod := range pods.Items {
		for _, c := range pod.Status.ContainerStatuses {
			t.Logf("%s of %s was started again %d times", c.Name, pod.Name, c.RestartCount)
			assert.LessOrEqual(t, c.RestartCount, int32(1), "%s of %s: only for the lost lease", c.Name, pod.Name)
		}
	}
	apply(t, fmt.Sprintf(web, 2))
	apply(t, fmt.Sprintf(webRun, "web-4"))
	awaitRun(t, "web-4")
	awaitVersion(t, 2)
}
