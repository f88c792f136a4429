package rollingupdate

import (
	"context"
	"errors"
	"fmt"

	"go.temporal.io/sdk/activity"
	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/attempt"
	"github.com/fleetflow/fleetflow/activities/bind"
	"github.com/fleetflow/fleetflow/activities/hubread"
	"github.com/fleetflow/fleetflow/activities/snapshot"
	"github.com/fleetflow/fleetflow/activities/workmodel"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// ScaleReplicas brings the replicas that are decided for the clusters of a placement into force, as far as the pods that are ready
// allow it now. It changes no version, and waits for nothing: reports of further pods wake the workflow again.
func (a *Activities) ScaleReplicas(ctx context.Context, in wf.ScaleRequest) (wf.ScaleResult, error) {
	placement, err := hubread.CurrentPlacement(ctx, a.Live, in.Placement)
	if err != nil {
		return wf.ScaleResult{}, err
	}
	if placement == nil || rules.IsDeleting(placement) {
		return wf.ScaleResult{Gone: true}, nil
	}
	// What cannot be read was not selected: the next selection writes it anew.
	if verdict, _ := snapshot.DecodeVerdict(placement.GetAnnotations()[placementv1beta1.SelectionVerdictAnnotation]); verdict.OverridesLacking != nil {
		return wf.ScaleResult{}, nil // nothing is written to clusters; once they are there, the selection that finds them scales
	}
	list := placementv1beta1.ScopeOf(placement).NewBindingList()
	err = a.Live.List(ctx, list, client.InNamespace(placement.GetNamespace()), client.MatchingLabels{placementv1beta1.ParentPlacementLabel: placement.GetName()})
	if err != nil {
		return wf.ScaleResult{}, fmt.Errorf("listing the bindings of placement %s: %w", placement.GetName(), err)
	}
	clusters, err := DividedClusters(ctx, a.Client, placement, list.Objects())
	if err != nil {
		return wf.ScaleResult{}, err
	}
	changes := workmodel.NextAssignments(clusters, in.Snapshot)
	for _, shrinks := range []bool{false, true} {
		if err := a.assignEach(ctx, changes, shrinks); err != nil {
			return wf.ScaleResult{}, err
		}
	}
	return wf.ScaleResult{Scaled: len(changes)}, nil
}

// DividedClusters gathers what the scaling of replicas is decided from, for the bindings of a placement; the reports of members are
// from the cache. Clusters that leave the fleet are left out.
func DividedClusters(ctx context.Context, cached client.Reader, placement placementv1beta1.PlacementObject,
	bindings []placementv1beta1.BindingObject) ([]workmodel.DividedCluster, error) {
	clusters := make([]workmodel.DividedCluster, 0, len(bindings))
	for _, binding := range bindings {
		name := binding.GetBindingSpec().TargetCluster
		member := &clusterv1beta1.MemberCluster{}
		err := cached.Get(ctx, types.NamespacedName{Name: name}, member)
		if apierrors.IsNotFound(err) || err == nil && rules.IsDeleting(member) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("reading member cluster %s: %w", name, err)
		}
		var works placementv1beta1.WorkList
		err = cached.List(ctx, &works, client.InNamespace(placementv1beta1.MemberNamespace(name)),
			client.MatchingLabels{placementv1beta1.ParentBindingLabel: binding.GetName()}, hubread.NearBinding(binding.GetName()),
			client.UnsafeDisableDeepCopy)
		if err != nil {
			return nil, fmt.Errorf("listing the Works of binding %s: %w", binding.GetName(), err)
		}
		clusters = append(clusters, workmodel.DividedCluster{Binding: binding, Works: works.Items, Frozen: rules.IsSuspended(placement, name)})
	}
	return clusters, nil
}

// assignEach writes those of the changes that shrink a cluster, or the others, and their Works.
func (a *Activities) assignEach(ctx context.Context, changes []workmodel.AssignmentChange, shrinks bool) error {
	var group errgroup.Group
	for _, change := range changes {
		if change.Shrinks != shrinks {
			continue
		}
		group.Go(func() error {
			release, err := attempt.Acquire(ctx, a.ClusterWrites)
			if err != nil {
				return err
			}
			defer release()
			assigned, err := bind.Assign(ctx, a.Client, change.Binding, change.Assignments)
			if errors.Is(err, bind.ErrFenced) {
				return nil // it is decided about anew, from the binding as it is now
			}
			if err != nil {
				return err
			}
			if err := a.Works.Sync(ctx, assigned); err != nil {
				// The binding controller tries again, and says on the binding what is wrong.
				activity.GetLogger(ctx).Warn("The Works of a cluster could not be written", "cluster", assigned.GetBindingSpec().TargetCluster, "error", err)
			}
			return nil
		})
	}
	return group.Wait()
}
