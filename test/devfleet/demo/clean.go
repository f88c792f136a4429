package demo

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/test/devfleet/access"
)

// clean deletes what an earlier demo has left and returns when hub and members are rid of it.
func (s *story) clean(ctx context.Context) error {
	left, err := s.deleteLeftovers(ctx)
	if err != nil || left == 0 {
		return err
	}
	s.screen.plain("")
	s.screen.did("removing what an earlier demo has left")
	began := time.Now()
	limited, cancel := context.WithTimeout(ctx, waitLimit)
	defer cancel()
	if err := s.awaitClean(limited); err != nil {
		return s.waited(ctx, "nothing of an earlier demo is left", began, err)
	}
	s.screen.stamped("  hub and members are clean after %s", seconds(time.Since(began)))
	return nil
}

// deleteLeftovers asks for the deletion of everything the demo makes; it returns how much there was.
func (s *story) deleteLeftovers(ctx context.Context) (int, error) {
	runs := &placementv1beta1.ClusterStagedUpdateRunList{}
	if err := s.Hub.List(ctx, runs); err != nil {
		return 0, fmt.Errorf("listing the runs: %w", err)
	}
	objects := []client.Object{
		&placementv1beta1.ClusterResourcePlacement{ObjectMeta: named(placementName)},
		&placementv1beta1.ClusterStagedUpdateStrategy{ObjectMeta: named(strategyName)},
		&placementv1beta1.ClusterStagedUpdateStrategy{ObjectMeta: named(analysedStrategyName)},
		&placementv1beta1.ClusterStagedUpdateStrategy{ObjectMeta: named(guardedStrategyName)},
		&fleetflowv1alpha1.StageAnalysis{ObjectMeta: named(analysisName)},
		&fleetflowv1alpha1.MetricSource{ObjectMeta: named(sourceName)},
		&corev1.Namespace{ObjectMeta: named(namespaceName)},
	}
	for i := range runs.Items {
		if runs.Items[i].Spec.PlacementName == placementName {
			objects = append(objects, &runs.Items[i])
		}
	}
	left := 0
	for _, object := range objects {
		err := s.Hub.Delete(ctx, object)
		switch {
		case err == nil:
			left++
		case !apierrors.IsNotFound(err):
			return left, fmt.Errorf("deleting %T %s: %w", object, object.GetName(), err)
		}
	}
	return left, nil
}

// awaitClean returns when nothing of the demo is left, including what was made from it.
func (s *story) awaitClean(ctx context.Context) error {
	for _, wait := range []func(context.Context) error{s.awaitNoRuns, s.awaitNoPlacement} {
		if err := wait(ctx); err != nil {
			return err
		}
	}
	if err := access.AwaitGone[corev1.Namespace](ctx, s.Hub, client.ObjectKey{Name: namespaceName}); err != nil {
		return err
	}
	for _, member := range s.Fleet.MemberNames() {
		if err := access.AwaitGone[corev1.Namespace](ctx, s.Members[member], client.ObjectKey{Name: namespaceName}); err != nil {
			return fmt.Errorf("on %s: %w", member, err)
		}
	}
	return nil
}

func (s *story) awaitNoRuns(ctx context.Context) error {
	err := awaitNone(ctx, s, func(run *placementv1beta1.ClusterStagedUpdateRun) bool {
		return run.Spec.PlacementName == placementName
	})
	if err != nil {
		return err
	}
	return awaitNone(ctx, s, func(request *placementv1beta1.ClusterApprovalRequest) bool {
		return strings.HasPrefix(request.Spec.TargetUpdateRun, runName(1))
	})
}

func (s *story) awaitNoPlacement(ctx context.Context) error {
	if err := access.AwaitGone[placementv1beta1.ClusterResourcePlacement](ctx, s.Hub, placementKey); err != nil {
		return err
	}
	if err := awaitNone(ctx, s, func(*placementv1beta1.ClusterResourceBinding) bool { return true }, ofPlacement); err != nil {
		return err
	}
	if err := awaitNone(ctx, s, func(*placementv1beta1.Work) bool { return true }, ofPlacement); err != nil {
		return err
	}
	return awaitNone(ctx, s, func(*placementv1beta1.ClusterResourceSnapshot) bool { return true }, ofPlacement)
}

// awaitNone returns when nothing of a kind is left that an earlier demo has made.
func awaitNone[T any, P access.Object[T]](ctx context.Context, s *story, made func(P) bool, options ...client.ListOption) error {
	_, err := access.AwaitAll(ctx, s.Hub, func(objects []P) string {
		left := slices.DeleteFunc(objects, func(o P) bool { return !made(o) })
		if len(left) == 0 {
			return ""
		}
		return fmt.Sprintf("there still are %d, one is %s", len(left), left[0].GetName())
	}, options...)
	return err
}
