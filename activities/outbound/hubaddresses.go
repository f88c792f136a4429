package outbound

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// HubAddresses finds the addresses at which the hub's API server answers: that of the hub agent's configuration, and those that the
// API server itself publishes for the cluster. What it has found counts for a minute.
type HubAddresses struct {
	// URL is that of the configuration.
	URL  string
	Live client.Reader

	clock clock.PassiveClock
	mu    sync.Mutex
	until time.Time
	found Guard
}

// NewHubAddresses finds the addresses of an API server.
func NewHubAddresses(url string, live client.Reader, c clock.PassiveClock) *HubAddresses {
	return &HubAddresses{URL: url, Live: live, clock: c}
}

// hubAddressesAge is how long it is believed where the API server answers.
const hubAddressesAge = time.Minute

// addTo returns a guard that refuses the addresses, too.
func (h *HubAddresses) addTo(ctx context.Context, guard Guard) (Guard, error) {
	if h == nil {
		return guard, nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if now := h.clock.Now(); !now.Before(h.until) {
		found, err := h.readAddresses(ctx)
		if err != nil {
			return guard, err
		}
		h.found = found
		h.until = now.Add(hubAddressesAge)
	}
	guard.Hub, guard.HubPorts = slices.Concat(guard.Hub, h.found.Hub), slices.Concat(guard.HubPorts, h.found.HubPorts)
	return guard, nil
}

// kubernetesService is the Service, and the EndpointSlice, by which an API server says where it answers.
var kubernetesService = client.ObjectKey{Namespace: corev1.NamespaceDefault, Name: "kubernetes"}

func (h *HubAddresses) readAddresses(ctx context.Context) (found Guard, err error) {
	found.Hub = AddressesOfURL(ctx, h.URL)
	var service corev1.Service
	if err := client.IgnoreNotFound(h.Live.Get(ctx, kubernetesService, &service)); err != nil {
		return found, fmt.Errorf("reading Service %s, which has the addresses of the hub's API server: %w", kubernetesService, err)
	}
	for _, text := range append(service.Spec.ClusterIPs, service.Spec.ClusterIP) {
		if addr, err := netip.ParseAddr(text); err == nil {
			found.Hub = append(found.Hub, netip.AddrPortFrom(addr, 0)) // at any port
		}
	}
	var slice discoveryv1.EndpointSlice
	if err := client.IgnoreNotFound(h.Live.Get(ctx, kubernetesService, &slice)); err != nil {
		return found, fmt.Errorf("reading EndpointSlice %s, which has the addresses of the hub's API server: %w", kubernetesService, err)
	}
	for _, endpoint := range slice.Endpoints {
		for _, text := range endpoint.Addresses {
			for _, port := range slice.Ports {
				if port.Port == nil {
					continue
				}
				if at, err := netip.ParseAddrPort(net.JoinHostPort(text, strconv.Itoa(int(*port.Port)))); err == nil {
					found.HubPorts = append(found.HubPorts, at)
				}
			}
		}
	}
	return found, nil
}
