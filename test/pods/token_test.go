//go:build integration

package pods

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	"github.com/fleetflow/fleetflow/test/devfleet/access"
	"github.com/fleetflow/fleetflow/test/devfleet/state"
)

const (
	// tokenSecret is the Secret of the member's token, which the agent's Pods have mounted.
	tokenSecret = "hub-kubeconfig-secret" //nolint:gosec // the name of a Secret
	// tokenTakenUp is how long the agent may take to show a new token: kubelet has to bring it into the Pod.
	tokenTakenUp = 2 * time.Minute
	// askAgain is how soon the API server is asked again whether it still takes a token, which nothing tells.
	askAgain = 200 * time.Millisecond
)

// tokenReplaced has the member join again. That puts another token into the Secret and revokes the one before: heartbeats go on with
// the new one, from the same Pods, in which nothing was started again.
func tokenReplaced(t *testing.T) {
	before := tokenOfMember(t)
	agents := agentsOfMember(t)
	require.NotEmpty(t, agents)
	sh(t, join+hubForMembers())
	require.NotEqual(t, before, tokenOfMember(t))
	replaced := time.Now()
	awaitRefused(t, before)
	refused := time.Now()
	awaitHeartbeat(t, refused)
	t.Logf("the token before was refused after %.1f s, a heartbeat came with the new one after %.1f s", refused.Sub(replaced).Seconds(), time.Since(replaced).Seconds())
	assert.LessOrEqual(t, time.Since(replaced), tokenTakenUp)
	assert.Equal(t, agents, agentsOfMember(t), "the same Pods, in which nothing was started again")
}

func tokenOfMember(t *testing.T) string {
	t.Helper()
	secret := &corev1.Secret{}
	require.NoError(t, shared.Members[member].Get(t.Context(), client.ObjectKey{Namespace: system, Name: tokenSecret}, secret))
	return string(secret.Data[corev1.ServiceAccountTokenKey])
}

// agentsOfMember returns how often the container of each Pod of the member agent was started again, by the Pod's uid.
func agentsOfMember(t *testing.T) map[string]int32 {
	t.Helper()
	pods := &corev1.PodList{}
	require.NoError(t, shared.Members[member].List(t.Context(), pods, client.InNamespace(system), client.MatchingLabels{"app.kubernetes.io/name": "member-agent"}))
	found := map[string]int32{}
	for _, pod := range pods.Items {
		for _, container := range pod.Status.ContainerStatuses {
			found[string(pod.UID)+"/"+container.Name] = container.RestartCount
		}
	}
	return found
}

// awaitRefused waits until the hub does not take a token: its API server remembers for ten seconds whom it has let in.
func awaitRefused(t *testing.T, token string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	server := shared.Fleet.APIServerURL(state.Hub)
	asks, err := rest.HTTPClientFor(&rest.Config{
		Host: server, BearerToken: token, TLSClientConfig: rest.TLSClientConfig{CAFile: shared.Fleet.CertificateAuthority(state.Hub)},
	})
	require.NoError(t, err)
	for {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, server+"/api", http.NoBody)
		require.NoError(t, err)
		answer, err := asks.Do(request)
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		if answer.StatusCode == http.StatusUnauthorized {
			return
		}
		select {
		case <-ctx.Done():
			require.FailNow(t, "the hub still takes the token of before", answer.Status)
		case <-time.After(askAgain):
		}
	}
}

// awaitHeartbeat waits until the hub has a heartbeat of the member that is later than a time.
func awaitHeartbeat(t *testing.T, after time.Time) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), tokenTakenUp)
	defer cancel()
	_, err := access.Await(ctx, shared.Hub, client.ObjectKey{Name: member}, func(m *clusterv1beta1.MemberCluster) string {
		if m == nil {
			return "there is none"
		}
		for _, agent := range m.Status.AgentStatus {
			if agent.LastReceivedHeartbeat.After(after) {
				return ""
			}
		}
		return "has no heartbeat after " + after.String()
	})
	require.NoError(t, err)
}
