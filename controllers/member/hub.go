package member

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/cluster"
)

// hubConnection runs the caches of the hub's objects. A manager waits at its start for the caches that it knows as such; the
// agent starts without the hub, which may be away, or not let it in yet.
type hubConnection struct {
	hub cluster.Cluster
}

// Start runs the caches until ctx ends.
func (h *hubConnection) Start(ctx context.Context) error {
	return h.hub.Start(ctx)
}
