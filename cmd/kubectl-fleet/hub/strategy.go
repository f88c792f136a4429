package hub

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// Strategy reads the strategy that runs of a placement call by a name; nil if there is none.
func (r Reader) Strategy(ctx context.Context, namespace, name string) (*placementv1beta1.UpdateStrategySpec, error) {
	var err error
	var spec *placementv1beta1.UpdateStrategySpec
	key := Ref{Namespace: namespace, Name: name}.key()
	if namespace != "" {
		strategy := &placementv1beta1.StagedUpdateStrategy{}
		err, spec = r.Get(ctx, key, strategy), &strategy.Spec
	} else {
		strategy := &placementv1beta1.ClusterStagedUpdateStrategy{}
		err, spec = r.Get(ctx, key, strategy), &strategy.Spec
	}
	switch {
	case err == nil:
		return spec, nil
	case apierrors.IsNotFound(err) || Unserved(err):
		return nil, nil
	default:
		return nil, fmt.Errorf("reading strategy %s: %w", name, err)
	}
}
