package rollingupdate

import (
	"context"
	"fmt"

	"github.com/fleetflow/fleetflow/activities/override"
	"github.com/fleetflow/fleetflow/activities/overridesource"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// overrides reads those that a rollout is to apply; nil if there are none.
func (r *Activities) overrides(ctx context.Context, refs []string) (*override.Matcher, error) {
	if len(refs) == 0 {
		return nil, nil
	}
	named, err := overridesource.Load(ctx, r.Client, r.Live, refs)
	if err != nil {
		return nil, fmt.Errorf("reading the overrides to roll out: %w", err)
	}
	return override.Picked(named), nil
}

// applicable are the overrides that apply to a cluster, and what they are applied from.
type applicable struct {
	override.Applicable
	inputs string
}

// applyTo works out which overrides apply to the clusters of bindings.
func (a *advanceCall) applyTo(ctx context.Context, bindings []placementv1beta1.ClusterResourceBinding) error {
	if a.overrides == nil {
		return nil
	}
	all := make(map[string]applicable, len(bindings))
	for i := range bindings {
		cluster, err := overridesource.Cluster(ctx, a.Client, bindings[i].Spec.TargetCluster)
		if err != nil {
			return err
		}
		all[cluster.Name] = applicable{a.overrides.Applicable(cluster), a.overrides.Inputs(cluster)}
	}
	a.applicable = all
	return nil
}
