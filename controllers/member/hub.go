package member

import (
	"context"
	"math/rand/v2"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/log"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
)

const (
	firstAttempt = 200 * time.Millisecond
	lastAttempt  = 5 * time.Second
)

// hubConnection starts watching the hub once it lets the agent in. The hub may be away, or not
// know of this member yet; watches that were refused come back ever more slowly, so the agent
// knocks first and joins soon after it is invited.
type hubConnection struct {
	hub       cluster.Cluster
	namespace string
}

// Start waits for the hub and runs the caches of its objects until ctx ends.
func (h *hubConnection) Start(ctx context.Context) error {
	logger := log.FromContext(ctx).WithName("hub")
	delay, told := firstAttempt, ""
	for {
		err := h.hub.GetAPIReader().List(ctx, &clusterv1beta1.InternalMemberClusterList{},
			client.InNamespace(h.namespace), client.Limit(1))
		if err == nil {
			break
		}
		if text := err.Error(); text != told {
			logger.Info("The hub does not let the agent in yet; trying again", "namespace", h.namespace, "cause", text)
			told = text
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(delay + time.Duration(rand.Int64N(int64(delay/4)))): //nolint:gosec // spreading load needs no secrecy
		}
		delay = min(delay*2, lastAttempt)
	}
	logger.Info("Connected to the hub", "namespace", h.namespace)
	return h.hub.Start(ctx)
}
