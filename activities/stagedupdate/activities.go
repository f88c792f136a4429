// Package stagedupdate has the activities of an update run: they freeze its
// plan, bring clusters to its snapshot, keep its gates and write its status.
// Each loads, decides by a pure function, and stores; each may run twice, or at
// the same time as an earlier attempt of itself.
package stagedupdate

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/analysis"
	"github.com/fleetflow/fleetflow/activities/attempt"
	"github.com/fleetflow/fleetflow/activities/brake"
	"github.com/fleetflow/fleetflow/activities/clusterwait"
	"github.com/fleetflow/fleetflow/activities/hubread"
	"github.com/fleetflow/fleetflow/activities/override"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// Snapshotter makes sure that the latest resource snapshot of a placement holds
// what it selects now, and says which one that is.
type Snapshotter interface {
	Select(ctx context.Context, placement placementv1beta1.PlacementObject) (wf.SelectResult, error)
	// Overrides are those that concern the snapshot with an index; nil if there are none.
	Overrides(ctx context.Context, placement placementv1beta1.PlacementObject, index string) (*override.Matcher, error)
}

// WorkSyncer writes the Works a binding needs.
type WorkSyncer interface {
	Sync(ctx context.Context, binding placementv1beta1.BindingObject) error
}

// EventRecorder emits Kubernetes events about an object.
type EventRecorder interface {
	Eventf(regarding, related runtime.Object, eventtype, reason, action, note string, args ...any)
}

// Identities tells who sent what to a workflow.
type Identities interface {
	// Approver is who sent the newest approval of a stage through a channel;
	// verified says that the server vouches for it. It is empty if the history has no such approval.
	Approver(ctx context.Context, request wf.ApprovalRequest) (who string, verified bool, err error)
	// Canceller is who asked to cancel a workflow; empty if its history has no such request. Without an execution it
	// looks into the newest.
	Canceller(ctx context.Context, workflow, execution string) (who string, err error)
}

// Activities of an update run.
type Activities struct {
	// Client writes, and reads from the informer cache; Live reads the API
	// server.
	Client     client.Client
	Live       client.Reader
	Works      WorkSyncer
	Snapshots  Snapshotter
	Notifier   *clusterwait.Notifier
	Events     EventRecorder
	Identities Identities
	// Approvals says which approvals count that come through Temporal.
	Approvals ApprovalPolicy
	Clock     clock.WithTicker
	// Vocabulary is in which words the runs that begin write their status.
	Vocabulary placementv1beta1.Vocabulary
	// ClusterWrites bounds the clusters that this process writes to at the same time,
	// FleetReads the copies of the fleet that it holds.
	ClusterWrites, FleetReads attempt.Limit
	// Outages knows when the API server could not be reached; nil if that is not observed.
	Outages *APIServerOutages
	// Sources says which metric sources can be used; nil if that is not looked at before they are.
	Sources SourceChecker
	// Reach is what metrics may reach on the hub.
	Reach analysis.Reach
	// Exemptions says which exemptions count.
	Exemptions hubread.ExemptionRule

	refusals brake.Refusals
	gaps     observationGaps
	plans    planChecks
	pace     statusPace
}

func (a *Activities) runs() runStore {
	return runStore{client: a.Client, live: a.Live, events: a.Events, clock: a.Clock, pace: &a.pace}
}

func (a *Activities) planner(scope placementv1beta1.Scope) *planner {
	return &planner{acts: a, scope: scope}
}

// scopeOf returns where a run lives, and all that belongs to it.
func scopeOf(ref wf.Ref) placementv1beta1.Scope {
	return placementv1beta1.Scope{Namespace: ref.Namespace}
}
