package work

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/controllers/member/apply"
	"github.com/fleetflow/fleetflow/controllers/member/availability"
)

// PruningOptions say how objects that left a Work are removed. The zero value removes them at once.
type PruningOptions struct {
	// Propagation is how the dependents of a removed object are deleted; in the background by
	// default.
	Propagation metav1.DeletionPropagation
	// ReconcileTimeout, if it is set, keeps objects that left a Work until all others are
	// available. If that takes longer, the agent logs it and still keeps them.
	ReconcileTimeout time.Duration
	// PruneTimeout, if it is set, is after how long the agent logs that removed objects still
	// exist, most likely because a controller does not remove its finalizer.
	PruneTimeout time.Duration
}

// pruningProgress is how far the removal of objects that left a Work is.
type pruningProgress struct {
	generation                  int64     // of the Work
	began                       time.Time // when it was first asked for
	removed                     time.Time // when objects were first removed; zero if that is postponed
	loggedPostponed, loggedSlow bool      // whether the log says that it takes long
}

// forGeneration returns the progress at a generation, and starts it anew for another generation.
func (p *pruningProgress) forGeneration(generation int64, now time.Time) *pruningProgress {
	if p.generation != generation || p.began.IsZero() {
		*p = pruningProgress{generation: generation, began: now}
	}
	return p
}

// postponesPruning reports whether objects that left a Work stay until the others are available.
func (r *Reconciler) postponesPruning(ctx context.Context, work *placementv1beta1.Work, mem *memory, steps []*step) bool {
	p := mem.pruning.forGeneration(work.Generation, r.Clock.Now())
	now := r.Clock.Now()
	if r.Pruning.ReconcileTimeout <= 0 || allAvailable(steps) {
		return false
	}
	if !p.loggedPostponed && now.Sub(p.began) >= r.Pruning.ReconcileTimeout {
		p.loggedPostponed = true
		log.FromContext(ctx).Info("What left the Work is not removed, as not all that is in it has become available in time", "timeout",
			r.Pruning.ReconcileTimeout)
	}
	return true
}

func allAvailable(steps []*step) bool {
	for _, s := range steps {
		if s.outcome.problem != nil || s.outcome.availabilityError != "" || s.outcome.availability == availability.NotYet {
			return false
		}
	}
	return true
}

// logSlowRemoval logs once that removed objects still exist after the timeout.
func (r *Reconciler) logSlowRemoval(
	ctx context.Context, work *placementv1beta1.Work, mem *memory, left []placementv1beta1.AppliedResourceMeta,
) {
	p := mem.pruning.forGeneration(work.Generation, r.Clock.Now())
	now := r.Clock.Now()
	if p.removed.IsZero() {
		p.removed = now
	}
	if len(left) == 0 || r.Pruning.PruneTimeout <= 0 || p.loggedSlow || now.Sub(p.removed) < r.Pruning.PruneTimeout {
		return
	}
	p.loggedSlow = true
	log.FromContext(ctx).Info("Removed objects are still there; look at their finalizers", "timeout", r.Pruning.PruneTimeout,
		"remaining", len(left), "first", apply.KeyOf(left[0].WorkResourceIdentifier).String())
}
