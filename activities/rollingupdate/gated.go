package rollingupdate

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/brake"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
	"github.com/fleetflow/fleetflow/workflows/rollout"
)

// observeClosed adds for what the clusters are closed. What a binding that is being deleted leaves is under way.
func (o observer) observeClosed(ctx context.Context, f *rolloutFacts) error {
	if o.gates.IsOpen() {
		return nil
	}
	for i := range f.Clusters {
		c := &f.Clusters[i]
		for _, kind := range []struct {
			start brake.Start
			op    rollout.Op
		}{
			{fleetflowv1alpha1.StartUpdates, rollout.Update}, {fleetflowv1alpha1.StartFirstPlacements, rollout.Add},
			{fleetflowv1alpha1.StartRemovals, rollout.Remove}, {fleetflowv1alpha1.StartEvictions, rollout.Evict},
		} {
			wait, closed, err := o.gates.Closed(ctx, c.Name, kind.start)
			if err != nil {
				return err
			}
			if closed {
				wait.Op = kind.op
				c.Waits = append(c.Waits, wait)
			}
		}
	}
	return nil
}

// startOf returns which kind of start a change is; empty if it is none.
func startOf(change wf.Change) brake.Start {
	switch change.Op {
	case wf.OpUpdate, wf.OpPrepareUpdate:
		return fleetflowv1alpha1.StartUpdates
	case wf.OpAdd, wf.OpAddStable:
		return fleetflowv1alpha1.StartFirstPlacements
	case wf.OpEvict:
		return fleetflowv1alpha1.StartEvictions
	case wf.OpRemove, wf.OpPrepareRemove:
		return fleetflowv1alpha1.StartRemovals
	}
	return ""
}

// mayWrite reports whether the spec of the placement is in force that a change was decided for. An eviction was asked for by itself.
func (w batchWriter) mayWrite(ctx context.Context, start brake.Start) (bool, error) {
	if start == fleetflowv1alpha1.StartEvictions {
		return true, nil
	}
	outdated, err := w.isOutdated(ctx)
	return err == nil && !outdated, err
}

// isOutdated reports whether the cache knows a later spec of the placement than the batch was decided for. The user may want fewer clusters
// by now, or may have paused the rollout; a call that waits in turn for its writes would not notice.
func (w batchWriter) isOutdated(ctx context.Context) (bool, error) {
	cached := placementv1beta1.ScopeOf(w.placement).NewPlacement(w.placement.GetName())
	err := w.acts.Client.Get(ctx, client.ObjectKeyFromObject(w.placement), cached, client.UnsafeDisableDeepCopy)
	if err != nil {
		return false, client.IgnoreNotFound(err)
	}
	return cached.GetUID() == w.placement.GetUID() && cached.GetGeneration() > w.placement.GetGeneration(), nil
}

// reportClosed tells the workflow how many clusters wait because they are closed, for what, and when time opens the first.
func (c *advanceCall) reportClosed(out *wf.AdvanceResult, facts *rolloutFacts, plan rollout.Plan) {
	var tally rollout.Tally
	for _, wait := range plan.Closed() {
		tally.Add(wait)
	}
	if out.Closed = tally.Count(); out.Closed == 0 {
		return
	}
	out.ClosedBy = tally.Text(len(facts.Clusters), "the placement")
	if until := tally.Until(); !until.IsZero() {
		out.OpensAt = until.UTC()
	}
}
