package outbound

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/fleetflow/fleetflow/test/fixture"
)

func TestTheAPIServerIsNotCalledBehindItsService(t *testing.T) {
	meta := metav1.ObjectMeta{Namespace: "default", Name: "kubernetes"}
	hub := fixture.NewClientBuilder(fixture.Scheme(t, corev1.AddToScheme, discoveryv1.AddToScheme)).WithObjects(
		&corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{ClusterIP: "10.96.0.1", ClusterIPs: []string{"10.96.0.1", "fd00:10::1"}}},
		&discoveryv1.EndpointSlice{ObjectMeta: meta, Ports: []discoveryv1.EndpointPort{{Port: new(int32(6443))}}, Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"192.168.7.1"}}}},
	).Build()
	c := clocktesting.NewFakePassiveClock(time.Now())
	addresses := NewHubAddresses("https://203.0.113.9:8443", hub, c)
	for address, refused := range map[string]bool{
		"203.0.113.9:8443": true, "203.0.113.9:10250": true, // as the hub agent is configured
		"10.96.0.1:443": true, "[fd00:10::1]:443": true, "[2002:a60:1::]:443": true, // the Service
		"192.168.7.1:6443": true, "[::192.168.7.1]:6443": true, // behind it
		"192.168.7.1:30090": false, "192.168.7.2:6443": false,
	} {
		guard, err := addresses.addTo(t.Context(), Guard{})
		require.NoError(t, err)
		assert.Equal(t, refused, guard.Refuse(netip.MustParseAddrPort(address)) != "", address)
	}

	var slice discoveryv1.EndpointSlice
	require.NoError(t, hub.Get(t.Context(), kubernetesService, &slice))
	slice.Endpoints[0].Addresses = []string{"192.168.7.2"}
	require.NoError(t, hub.Update(t.Context(), &slice))
	moved := netip.MustParseAddrPort("192.168.7.2:6443")
	c.SetTime(c.Now().Add(hubAddressesAge))
	guard, err := addresses.addTo(t.Context(), Guard{})
	require.NoError(t, err)
	assert.NotEmpty(t, guard.Refuse(moved), "a minute later")

	_, err = (&HubAddresses{Live: fixture.NewClientBuilder(fixture.Scheme(t, corev1.AddToScheme)).Build(), clock: c}).addTo(t.Context(), Guard{})
	assert.ErrorContains(t, err, "reading EndpointSlice default/kubernetes", "what cannot be read lets nothing pass")
}
