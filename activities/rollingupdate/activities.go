package rollingupdate

import (
	"context"

	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/attempt"
	"github.com/fleetflow/fleetflow/activities/brake"
	"github.com/fleetflow/fleetflow/activities/clusterwait"
	"github.com/fleetflow/fleetflow/activities/hubread"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// WorkSyncer writes the Works of a binding.
type WorkSyncer interface {
	Sync(ctx context.Context, binding placementv1beta1.BindingObject) error
}

// Activities roll placements out and conclude evictions.
type Activities struct {
	Client   client.Client
	Live     client.Reader
	Works    WorkSyncer
	Notifier *clusterwait.Notifier
	Clock    clock.WithTicker
	// Events records the outcomes of evictions; nil records none.
	Events events.EventRecorder
	// ClusterWrites bounds the clusters that this process writes to at the same time.
	ClusterWrites attempt.Limit
	// Exemptions says which exemptions count.
	Exemptions hubread.ExemptionRule

	refusals brake.Refusals
}
