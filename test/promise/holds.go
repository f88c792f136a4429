package promise

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// storedHold is a hold that is stored.
type storedHold struct {
	*fleetflowv1alpha1.RolloutHold
	// grace is until when the batch may be written that had begun.
	grace time.Time
}

// Hold notes that a hold was written at an instant, or is gone. For a while after it was created the batch may be written that
// had begun.
func (c *Checker) Hold(now *fleetflowv1alpha1.RolloutHold, gone bool, at time.Time, batch time.Duration) {
	if gone {
		delete(c.holds, now.Name)
		return
	}
	grace := at.Add(batch)
	if known := c.holds[now.Name]; known != nil && known.Generation == now.Generation {
		grace = known.grace
	}
	c.holds[now.Name] = &storedHold{now.DeepCopy(), grace}
}

// Labels notes which labels a member cluster has.
func (c *Checker) Labels(cluster string, labels map[string]string) { c.labels[cluster] = labels }

// At is when the writes happen that follow; without it, every grace period is over, and no hold has expired.
func (c *Checker) At(now time.Time) { c.clock = now }

// stopped judges that a write begins nothing on a cluster that a hold covers.
func (c *Checker) stopped(was, now *placementv1beta1.ClusterResourceBinding, gone bool) error {
	if c.byUser[now.Name] || c.leaving[now.Spec.TargetCluster] || !c.placement.DeletionTimestamp.IsZero() {
		return nil
	}
	for _, start := range c.starts(was, now, gone) {
		for _, hold := range c.holds {
			covers := hold.Holds(start) && hold.CoversPlacement(c.placement.Labels) && hold.CoversCluster(c.labels[now.Spec.TargetCluster])
			inForce := c.clock.IsZero() || hold.IsInForce(c.clock) && c.clock.After(hold.grace)
			if covers && inForce {
				return fmt.Errorf("%s: %s begins while hold %s covers it", now.Spec.TargetCluster, start, hold.Name)
			}
		}
	}
	return nil
}

// starts are the kinds of starts that a write is: one at most.
func (c *Checker) starts(was, now *placementv1beta1.ClusterResourceBinding, gone bool) []fleetflowv1alpha1.Start {
	switch {
	case begins(was, now, gone) && !placed(was):
		return nil // nothing is taken away
	case begins(was, now, gone) && was.Spec.State == placementv1beta1.BindingStateUnscheduled && !c.asked(was.Spec.TargetCluster):
		return []fleetflowv1alpha1.Start{fleetflowv1alpha1.StartRemovals}
	case begins(was, now, gone) && was.Spec.State != placementv1beta1.BindingStateUnscheduled:
		return []fleetflowv1alpha1.Start{fleetflowv1alpha1.StartEvictions}
	case gone || !placed(now):
		return nil
	case !placed(was):
		return []fleetflowv1alpha1.Start{fleetflowv1alpha1.StartFirstPlacements}
	case givesOther(was, now):
		return []fleetflowv1alpha1.Start{fleetflowv1alpha1.StartUpdates}
	}
	return nil
}

// givesOther says that a cluster is to have something else than before.
func givesOther(was, now *placementv1beta1.ClusterResourceBinding) bool {
	return was.Spec.ResourceSnapshotName != now.Spec.ResourceSnapshotName ||
		!equality.Semantic.DeepEqual(was.Spec.ApplyStrategy, now.Spec.ApplyStrategy) ||
		!equality.Semantic.DeepEqual(was.Spec.ClusterResourceOverrideSnapshots, now.Spec.ClusterResourceOverrideSnapshots) ||
		!equality.Semantic.DeepEqual(was.Spec.ResourceOverrideSnapshots, now.Spec.ResourceOverrideSnapshots)
}
