//go:build integration

package security

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/fleetflow/fleetflow/test/devfleet/control"
	"github.com/fleetflow/fleetflow/test/devfleet/controlplane"
)

func TestHubWithoutGuardRails(t *testing.T) {
	attempt(t, attacks{
		"an editor makes a ConfigMap an envelope of a ClusterRoleBinding where there are no guard rails": func(s *spec) {
			s.withoutGuardRails(func() {
				s.createAs(editor.session(s), envelopeMap)
				s.awaitMarker(placed)
				s.awaitFailure(placed, "ClusterRoleBinding seized is cluster-scoped, and on this hub a ConfigMap holds namespaced objects only")
				s.requireAbsent(seize)
			})
		},
	})
}

// withoutGuardRails takes the guard rails down, runs the hub agent as it runs without them, and puts both back.
func (s *spec) withoutGuardRails(do func()) {
	s.Helper()
	restore := s.suspendPolicies()
	defer restore()
	s.swapAgents(controlplane.HubAgent, unguardedAgent)
	defer s.swapAgents(unguardedAgent, controlplane.HubAgent)
	do()
}

// swapAgents stops one hub agent and starts the other.
func (s *spec) swapAgents(from, to string) {
	s.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.Context()), patience)
	defer cancel()
	require.NoError(s, s.order(ctx, control.Stop, from))
	require.NoError(s, s.order(ctx, control.Start, to))
	require.NoError(s, s.processes.WaitReady(ctx, to))
}

// suspendPolicies takes all admission policies out of force and returns what puts them back.
func (s *spec) suspendPolicies() (restore func()) {
	s.Helper()
	bindings := &admissionv1.ValidatingAdmissionPolicyBindingList{}
	require.NoError(s, s.hub.List(s.Context(), bindings))
	for i := range bindings.Items {
		require.NoError(s, s.hub.Delete(s.Context(), &bindings.Items[i]))
	}
	ctx, cancel := context.WithTimeout(s.Context(), patience)
	defer cancel()
	require.NoError(s, wait.PollUntilContextCancel(ctx, probeEvery, true, func(ctx context.Context) (bool, error) {
		return s.guardRailsHold(ctx, false)
	}))
	return func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(s.Context()), patience)
		defer cancel()
		for _, binding := range bindings.Items {
			binding.ObjectMeta = metav1.ObjectMeta{Name: binding.Name, Labels: binding.Labels}
			require.NoError(s, s.hub.Create(ctx, &binding))
		}
		require.NoError(s, s.awaitGuardRails(ctx))
	}
}

const (
	// writes are how many there are of each kind in each of the four rounds: with, without, without and with guard rails.
	writes = 150
	// allowance is what the guard rails may add to a write on a machine that does other things, too. On a quiet one it is
	// less than 2 ms.
	allowance = 20 * time.Millisecond
)

// TestGuardRailsCostLittle measures writes with and without the guard rails, as a user whom they look at.
func TestGuardRailsCostLittle(t *testing.T) {
	s := &spec{T: t, fleet: target}
	s.create(`{apiVersion: v1, kind: Namespace, metadata: {name: quiet}}`)
	with := s.timeWrites()
	without := []time.Duration(nil)
	restore := s.suspendPolicies()
	without = append(s.timeWrites(), s.timeWrites()...)
	restore()
	with = append(with, s.timeWrites()...)
	t.Logf("a write takes %s with the guard rails and %s without them (p50 of %d)", median(with), median(without), len(with))
	assert.Less(t, median(with)-median(without), allowance)
}

// timeWrites times changes of a ConfigMap.
func (s *spec) timeWrites() []time.Duration {
	s.Helper()
	user := clusterEditor.session(s)
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "quiet", Name: fmt.Sprintf("timed-%d", rounds.Add(1))}}
	require.NoError(s, user.Create(s.Context(), object))
	var times []time.Duration
	for i := range writes {
		object.Data = map[string]string{"round": strings.Repeat("x", i)}
		began := time.Now()
		require.NoError(s, user.Update(s.Context(), object))
		times = append(times, time.Since(began))
	}
	return times
}

func median(times []time.Duration) time.Duration {
	sorted := slices.Sorted(slices.Values(times))
	return sorted[len(sorted)/2]
}
