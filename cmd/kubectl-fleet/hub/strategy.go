package hub

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// Strategy reads the strategy that runs of a placement call by a name; nil if there is none.
func (r Reader) Strategy(ctx context.Context, namespace, name string) (*placementv1beta1.UpdateStrategySpec, error) {
	scope := placementv1beta1.Scope{Namespace: namespace}
	strategy := scope.NewUpdateStrategy(name)
	err := r.Get(ctx, scope.Key(name), strategy)
	switch {
	case err == nil:
		return strategy.GetUpdateStrategySpec(), nil
	case apierrors.IsNotFound(err) || Unserved(err):
		return nil, nil
	default:
		return nil, fmt.Errorf("reading strategy %s: %w", name, err)
	}
}
