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

// Pruning says how what left a Work is removed. The zero value removes it at once.
type Pruning struct {
	// Propagation is what becomes of what depends on a removed object; empty is in the
	// background.
	Propagation metav1.DeletionPropagation
	// ReconcileTimeout, if it is set, keeps what left a Work until all that is in it is
	// available. If that takes longer, the log says so; what left stays nevertheless.
	ReconcileTimeout time.Duration
	// PruneTimeout, if it is set, is after how long the log says which removed objects are
	// still there, most likely for want of somebody who takes their finalizers off.
	PruneTimeout time.Duration
}

// pruning is how far the removal of what left a Work is.
type pruning struct {
	generation      int64     // of the Work
	began           time.Time // when something was to be removed first
	removed         time.Time // when it was removed first; zero if it is put off
	toldOff, toldOn bool      // whether the log says that it takes long
}

// of returns the pruning of a generation, begun anew if that is another one.
func (p *pruning) of(generation int64, now time.Time) *pruning {
	if p.generation != generation || p.began.IsZero() {
		*p = pruning{generation: generation, began: now}
	}
	return p
}

// putsOff tells whether what left a Work stays until the rest is available.
func (r *Reconciler) putsOff(ctx context.Context, work *placementv1beta1.Work, mem *memory, steps []*step) bool {
	p, now := mem.pruning.of(work.Generation, r.Clock.Now()), r.Clock.Now()
	if r.Pruning.ReconcileTimeout <= 0 || allAvailable(steps) {
		return false
	}
	if !p.toldOff && now.Sub(p.began) >= r.Pruning.ReconcileTimeout {
		p.toldOff = true
		log.FromContext(ctx).Info("What left the Work is not removed, as not all that is in it has become available in time", "timeout", r.Pruning.ReconcileTimeout)
	}
	return true
}

func allAvailable(steps []*step) bool {
	for _, s := range steps {
		if s.outcome.problem != nil || s.outcome.failure != "" || s.outcome.verdict == availability.NotYet {
			return false
		}
	}
	return true
}

// sayIfSlow logs once what is still there too long after it was removed.
func (r *Reconciler) sayIfSlow(ctx context.Context, work *placementv1beta1.Work, mem *memory, left []placementv1beta1.AppliedResourceMeta) {
	p, now := mem.pruning.of(work.Generation, r.Clock.Now()), r.Clock.Now()
	if p.removed.IsZero() {
		p.removed = now
	}
	if len(left) == 0 || r.Pruning.PruneTimeout <= 0 || p.toldOn || now.Sub(p.removed) < r.Pruning.PruneTimeout {
		return
	}
	p.toldOn = true
	log.FromContext(ctx).Info("Removed objects are still there; look at their finalizers", "timeout", r.Pruning.PruneTimeout,
		"remaining", len(left), "first", apply.KeyOf(left[0].WorkResourceIdentifier).String())
}
