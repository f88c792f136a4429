package stagedupdate

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
)

// readNamedWindows reads the windows that stages of the strategy name. It reads live: a window may have been created a moment
// before the run.
func (p *planner) readNamedWindows(ctx context.Context, f *facts) error {
	if f.strategy == nil {
		return nil
	}
	f.windows = map[string]*fleetflowv1alpha1.RolloutWindow{}
	for _, stage := range f.strategy.GetUpdateStrategySpec().Stages {
		for _, name := range stage.Windows {
			window := &fleetflowv1alpha1.RolloutWindow{}
			err := p.acts.Live.Get(ctx, client.ObjectKey{Name: name}, window)
			if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
				continue
			}
			if err != nil {
				return fmt.Errorf("reading rollout window %s: %w", name, err)
			}
			f.windows[name] = window
		}
	}
	return nil
}
