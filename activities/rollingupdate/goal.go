package rollingupdate

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/bind"
	"github.com/fleetflow/fleetflow/activities/hubread"
	"github.com/fleetflow/fleetflow/activities/override"
	"github.com/fleetflow/fleetflow/activities/workmodel"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// goal is what a rollout brings the bindings to.
type goal struct {
	snapshot string
	strategy *placementv1beta1.RolloutStrategy
	// matcher has the overrides that concern the snapshot, nil if there are none;
	// overrides are those that apply to each cluster, by its labels when last read.
	matcher   *override.Matcher
	overrides map[string]clusterOverrides
}

// clusterOverrides are the overrides that apply to a cluster, and the fingerprint of what
// they are applied from.
type clusterOverrides struct {
	override.Applicable
	inputs string
}

// readOverrides reads the overrides that a rollout is to apply; nil if there are none.
func readOverrides(ctx context.Context, cached, live client.Reader, refs []string) (*override.Matcher, error) {
	if len(refs) == 0 {
		return nil, nil
	}
	named, err := hubread.LoadOverrides(ctx, cached, live, refs)
	if err != nil {
		return nil, fmt.Errorf("reading the overrides to roll out: %w", err)
	}
	return override.Picked(named), nil
}

// matchClusters works out which overrides apply to the clusters of bindings. A cluster that is gone keeps those that it has:
// while its removal is held, its agent may still be at work.
func (g *goal) matchClusters(ctx context.Context, reader client.Reader, bindings []placementv1beta1.BindingObject) error {
	if g.matcher == nil {
		return nil
	}
	all := make(map[string]clusterOverrides, len(bindings))
	for _, binding := range bindings {
		cluster, err := hubread.OverrideCluster(ctx, reader, binding.GetBindingSpec().TargetCluster)
		if err != nil {
			return err
		}
		if spec := binding.GetBindingSpec(); cluster.Gone {
			all[cluster.Name] = clusterOverrides{
				override.Applicable{ClusterResourceOverrideSnapshots: spec.ClusterResourceOverrideSnapshots,
					ResourceOverrideSnapshots: spec.ResourceOverrideSnapshots},
				binding.GetAnnotations()[placementv1beta1.OverrideInputsAnnotation],
			}
			continue
		}
		all[cluster.Name] = clusterOverrides{g.matcher.Applicable(cluster), g.matcher.Inputs(cluster)}
	}
	g.overrides = all
	return nil
}

// targetOf returns what the binding of a cluster should say.
func (g *goal) targetOf(cluster string) bind.Target {
	overrides := g.overrides[cluster]
	t := bind.Target{
		Annotations:                      override.InputsAnnotations(overrides.inputs),
		Snapshot:                         g.snapshot,
		ClusterResourceOverrideSnapshots: overrides.ClusterResourceOverrideSnapshots,
		ResourceOverrideSnapshots:        overrides.ResourceOverrideSnapshots,
	}
	if g.strategy != nil {
		t.ApplyStrategy = g.strategy.ApplyStrategy
	}
	return t
}

// at returns the goal with another snapshot.
func (g goal) at(snapshot string) *goal {
	g.snapshot = snapshot
	return &g
}

// isOld reports whether a binding names another snapshot than it should.
func (g *goal) isOld(b placementv1beta1.BindingObject) bool {
	given := b.GetBindingSpec().ResourceSnapshotName
	return given != "" && given != g.snapshot
}

// isReached reports whether a binding says what it should.
func (g *goal) isReached(b placementv1beta1.BindingObject) bool {
	target := g.targetOf(b.GetBindingSpec().TargetCluster)
	if _, noted := b.GetAnnotations()[placementv1beta1.OverrideInputsAnnotation]; !noted {
		target.Annotations = nil // another author has picked its overrides; the binding controller notes what they are applied from
	}
	return b.GetBindingSpec().State == placementv1beta1.BindingStateBound && !rules.IsDeleting(b) &&
		workmodel.Revision(b) == target.RevisionAt(b)
}
