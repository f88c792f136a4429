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

// At returns when the writes happen that follow; without it, every grace period is over, and no hold has expired.
func (c *Checker) At(now time.Time) { c.clock = now }

// stopped judges that a write begins nothing on a cluster that a hold covers.
func (c *Checker) stopped(was, now *placementv1beta1.ClusterResourceBinding, gone bool) error {
	if c.byUser[now.Name] || c.leaving[now.Spec.TargetCluster] || !c.placement.DeletionTimestamp.IsZero() {
		return nil
	}
	for _, start := range c.starts(was, now, gone) {
		for _, hold := range c.holds {
			covers := hold.Holds(start) && hold.CoversPlacement(fleetflowv1alpha1.GateLabels(c.placement), nil) &&
				hold.CoversCluster(c.labels[now.Spec.TargetCluster])
			if c.isExempt(now, hold.Name) {
				continue
			}
			inForce := c.clock.IsZero() || hold.IsInForce(c.clock) && c.clock.After(hold.grace)
			if covers && inForce {
				return fmt.Errorf("%s: %s begins while hold %s covers it", now.Spec.TargetCluster, start, hold.Name)
			}
		}
	}
	return nil
}

// Exempt notes that an exemption was written, or is gone: from what it exempts, nothing is promised until the batch is written
// that had begun by its end.
func (c *Checker) Exempt(now *fleetflowv1alpha1.RolloutExemption, gone bool, at time.Time, batch time.Duration) {
	until := now.Spec.ExpirationTime.Time
	if gone && at.Before(until) {
		until = at
	}
	c.exemptions[now.Name] = storedExemption{now.DeepCopy(), until.Add(batch)}
}

// storedExemption is an exemption, and until when what it let go may be written.
type storedExemption struct {
	*fleetflowv1alpha1.RolloutExemption
	until time.Time
}

// isExempt reports whether what writes to a binding is exempt from a hold: the rolling update of its placement, or the run that has the
// binding.
func (c *Checker) isExempt(now *placementv1beta1.ClusterResourceBinding, hold string) bool {
	for _, exemption := range c.exemptions {
		if flaw, _ := exemption.Flaw(true); flaw != "" || exemption.Spec.TargetRef.Namespace != "" || !c.clock.IsZero() &&
			c.clock.After(exemption.until) {
			continue
		}
		run := now.Annotations[placementv1beta1.UpdateRunAnnotation]
		target := exemption.Spec.TargetRef
		for _, from := range exemption.Spec.ExemptFrom {
			if from.Covers(fleetflowv1alpha1.ExemptFromHold, hold) &&
				(target.IsPlacement() && target.Name == c.placement.Name || target.IsRun() && target.Name == run) {
				return true
			}
		}
	}
	return false
}

// starts returns the kinds of starts that a write is: one at most.
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

// givesOther reports whether a cluster is to have something else than before.
func givesOther(was, now *placementv1beta1.ClusterResourceBinding) bool {
	return was.Spec.ResourceSnapshotName != now.Spec.ResourceSnapshotName ||
		!equality.Semantic.DeepEqual(was.Spec.ApplyStrategy, now.Spec.ApplyStrategy) ||
		!equality.Semantic.DeepEqual(was.Spec.ClusterResourceOverrideSnapshots, now.Spec.ClusterResourceOverrideSnapshots) ||
		!equality.Semantic.DeepEqual(was.Spec.ResourceOverrideSnapshots, now.Spec.ResourceOverrideSnapshots)
}
