package selection

import (
	"context"
	"strconv"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/envelope"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// ReadKinds reads live which kinds of what is in the latest snapshot of a placement clusters have to serve; nil if its policy does not ask
// for that.
func ReadKinds(ctx context.Context, live client.Reader, placement placementv1beta1.PlacementObject) ([]schema.GroupVersionKind, error) {
	policy := placement.GetPlacementSpec().Policy
	if policy == nil || policy.UnservedKinds != placementv1beta1.UnservedKindsExclude {
		return nil, nil
	}
	existing, err := listSeries(ctx, live, placement)
	if err != nil {
		return nil, err
	}
	latest := existing.latestGroup()
	if latest == nil {
		return nil, nil
	}
	manifests, err := readSnapshotManifests(ctx, live, placement, strconv.Itoa(latest.index))
	if err != nil {
		return nil, err
	}
	return rules.KindsToServe(policy, envelope.KindsIn(manifests)), nil
}

// ReadDemands reads live what the workloads in the latest snapshot of a placement ask for whose replicas its policy divides. It is
// nil if the policy divides none, and never nil if it does.
func ReadDemands(ctx context.Context, live client.Reader, placement placementv1beta1.PlacementObject) ([]rules.ReplicaDemand, error) {
	policy := placement.GetPlacementSpec().Policy
	if !rules.DividesReplicas(policy) {
		return nil, nil
	}
	existing, err := listSeries(ctx, live, placement)
	if err != nil {
		return nil, err
	}
	latest := existing.latestGroup()
	if latest == nil {
		return []rules.ReplicaDemand{}, nil
	}
	manifests, err := readSnapshotManifests(ctx, live, placement, strconv.Itoa(latest.index))
	if err != nil {
		return nil, err
	}
	demands, err := rules.ReadReplicaDemands(policy, manifests)
	if err != nil {
		return nil, err
	}
	return rules.WithReplicaCounts(demands, latest.master.Annotations[placementv1beta1.ReplicaCountsAnnotation]), nil
}
