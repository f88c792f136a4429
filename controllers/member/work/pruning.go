package work

import (
	"cmp"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/controllers/member/availability"
)

// PruningOptions say how objects that left a Work are removed, unless its placement says more. The zero value removes them at once.
type PruningOptions struct {
	// Propagation is how the dependents of a removed object are deleted; in the background by
	// default.
	Propagation metav1.DeletionPropagation
	// PropagationFixed has Propagation count whatever a placement says: it is the word of the cluster's owner.
	PropagationFixed bool
	// ReconcileTimeout, if it is set, keeps objects that left a Work until all others are
	// available. If that takes longer, the hub is told, and they are still kept.
	ReconcileTimeout time.Duration
	// PruneTimeout, if it is set, is after how long the hub is told that removed objects still
	// exist, most likely because a controller does not remove its finalizer.
	PruneTimeout time.Duration
}

// of returns the options for a Work: what its placement says, and the others of the agent.
func (o PruningOptions) of(work *placementv1beta1.Work) PruningOptions {
	said := rules.PruningOfWork(work)
	if !o.PropagationFixed {
		o.Propagation = cmp.Or(said.PrunePropagationPolicy, o.Propagation)
	}
	if said.ReconcileTimeoutSeconds != nil {
		o.ReconcileTimeout = time.Duration(*said.ReconcileTimeoutSeconds) * time.Second
	}
	if said.PruneTimeoutSeconds != nil {
		o.PruneTimeout = time.Duration(*said.PruneTimeoutSeconds) * time.Second
	}
	return o
}

// patience is how long a removal may take before the hub is told.
func (o PruningOptions) patience() time.Duration { return cmp.Or(o.PruneTimeout, removalPatience) }

func allAvailable(steps []*step) bool {
	for _, s := range steps {
		o := s.outcome
		if o.problem != nil || o.availabilityError != "" || o.availability == availability.NotYet || o.availability == availability.Failed {
			return false
		}
	}
	return true
}
