package member

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/log"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
)

const (
	minRetryDelay = 200 * time.Millisecond
	maxRetryDelay = 5 * time.Second
)

// hubConnection starts watching the hub once the hub admits the agent. The hub may be away, or this
// member may not be registered yet. Informers retry refused watches with growing delays, so the
// agent first polls with short delays and joins soon after it is admitted.
type hubConnection struct {
	hub       cluster.Cluster
	namespace string
}

// Start waits for the hub and runs the caches of its objects until ctx ends.
func (h *hubConnection) Start(ctx context.Context) error {
	logger := log.FromContext(ctx).WithName("hub")
	lastCause := ""
	delays := wait.Backoff{Duration: minRetryDelay, Factor: 2, Jitter: 0.25, Steps: 10, Cap: maxRetryDelay}.DelayFunc()
	letIn := func(ctx context.Context) (bool, error) {
		err := h.hub.GetAPIReader().List(ctx, &clusterv1beta1.InternalMemberClusterList{},
			client.InNamespace(h.namespace), client.Limit(1))
		if err != nil && err.Error() != lastCause {
			lastCause = err.Error()
			logger.Info("The hub does not let the agent in yet; trying again", "namespace", h.namespace, "cause", lastCause)
		}
		return err == nil, nil
	}
	if delays.Until(ctx, true, true, letIn) != nil {
		return nil //nolint:nilerr // only the end of the agent ends the wait
	}
	logger.Info("Connected to the hub", "namespace", h.namespace)
	return h.hub.Start(ctx)
}
