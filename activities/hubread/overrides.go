package hubread

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/override"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// OverrideMissingError says that an override snapshot that was picked does not exist any more:
// its override was deleted.
type OverrideMissingError struct{ Source override.Source }

// Error names the missing snapshot, and says what to do.
func (e *OverrideMissingError) Error() string {
	return e.Source.String() + " does not exist any more, as its override was deleted: what the cluster has stays as it is; " +
		"the next rollout, or another update run, goes by the overrides there are by then"
}

// OverridesInForce lists the snapshots that are in force: the latest of each valid override.
func OverridesInForce(ctx context.Context, reader client.Reader) (override.Snapshots, error) {
	latest := []client.ListOption{
		client.MatchingLabels{placementv1beta1.IsLatestSnapshotLabel: placementv1beta1.LabelValueTrue}, client.UnsafeDisableDeepCopy,
	}
	var all override.Snapshots
	for _, list := range placementv1beta1.OverrideSnapshotLists() {
		if err := reader.List(ctx, list, latest...); err != nil {
			return nil, fmt.Errorf("listing the snapshots of overrides: %w", err)
		}
		all = append(all, keepNewest(list.Objects())...)
	}
	return all, nil
}

// keepNewest keeps one snapshot of each override: should a crash have left two that say they
// are the latest, the one with the higher index.
func keepNewest(snapshots override.Snapshots) override.Snapshots {
	best := map[types.NamespacedName]int{}
	var kept override.Snapshots
	for _, snapshot := range snapshots {
		if !snapshot.GetDeletionTimestamp().IsZero() {
			continue
		}
		of := override.KeyOf(snapshot)
		at, known := best[of]
		switch {
		case !known:
			best[of] = len(kept)
			kept = append(kept, snapshot)
		case rules.IndexOf(snapshot, placementv1beta1.OverrideIndexLabel) >
			rules.IndexOf(kept[at], placementv1beta1.OverrideIndexLabel):
			kept[at] = snapshot
		}
	}
	return kept
}

// LoadOverrides reads the snapshots that a decision names. Their specs never change, so the cache
// will do; what it does not have is read live. An OverrideMissingError says that one is gone.
func LoadOverrides(ctx context.Context, cached, live client.Reader, refs []string) (override.Snapshots, error) {
	var all override.Snapshots
	for _, ref := range refs {
		source, err := override.ParseRef(ref)
		if err != nil {
			return nil, err
		}
		snapshot := placementv1beta1.Scope{Namespace: source.Namespace}.NewOverrideSnapshot(source.Name)
		if err := getSnapshot(ctx, cached, live, source, snapshot); err != nil {
			return nil, err
		}
		all = append(all, snapshot)
	}
	return all, nil
}

func getSnapshot(ctx context.Context, cached, live client.Reader, source override.Source, into client.Object) error {
	key := types.NamespacedName{Namespace: source.Namespace, Name: source.Name}
	err := cached.Get(ctx, key, into)
	if apierrors.IsNotFound(err) {
		err = live.Get(ctx, key, into)
	}
	switch {
	case apierrors.IsNotFound(err):
		return &OverrideMissingError{Source: source}
	case err != nil:
		return fmt.Errorf("reading %s: %w", source, err)
	}
	return nil
}

// OverrideCluster reads what overrides know of a cluster. One that does not exist has no labels.
func OverrideCluster(ctx context.Context, reader client.Reader, name string) (override.Cluster, error) {
	member := &clusterv1beta1.MemberCluster{}
	err := reader.Get(ctx, types.NamespacedName{Name: name}, member)
	switch {
	case apierrors.IsNotFound(err):
		return override.Cluster{Name: name, Gone: true}, nil
	case err != nil:
		return override.Cluster{}, fmt.Errorf("reading member cluster %s: %w", name, err)
	}
	return override.ClusterOf(member), nil
}

// OverrideInputs returns those of the overrides that were picked for a cluster before.
func OverrideInputs(ctx context.Context, cached, live client.Reader, refs []string, name string) (string, error) {
	if len(refs) == 0 {
		return "", nil
	}
	picked, err := LoadOverrides(ctx, cached, live, refs)
	if err != nil {
		return "", err
	}
	cluster, err := OverrideCluster(ctx, cached, name)
	if err != nil {
		return "", err
	}
	return override.Picked(picked).Inputs(cluster), nil
}

// OverrideUnsettledError says that an override was changed a moment ago, and its snapshot does
// not show that yet.
type OverrideUnsettledError struct{ Override string }

// Error names the override.
func (e *OverrideUnsettledError) Error() string {
	return "the latest change of " + e.Override + " is not in a snapshot yet"
}

// LatestOverrides lists the snapshots that are in force and makes sure, with the overrides
// themselves, that nothing is missing in them that was changed before and can concern the
// placement; an OverrideUnsettledError says that it is. Read live, it answers for
// everything that was written before.
func LatestOverrides(ctx context.Context, live client.Reader, placement override.Placement) (override.Snapshots, error) {
	var overrides []placementv1beta1.OverrideObject
	for _, list := range placementv1beta1.OverrideLists() {
		if err := live.List(ctx, list); err != nil {
			return nil, fmt.Errorf("listing overrides: %w", err)
		}
		overrides = append(overrides, list.Objects()...)
	}
	inForce, err := OverridesInForce(ctx, live)
	if err != nil {
		return nil, err
	}
	snapshots := map[types.NamespacedName]placementv1beta1.OverrideSnapshotObject{}
	for _, snapshot := range inForce {
		snapshots[override.KeyOf(snapshot)] = snapshot
	}
	leaving := map[types.NamespacedName]bool{}
	for _, o := range overrides {
		key := client.ObjectKeyFromObject(o)
		leaving[key] = !o.GetDeletionTimestamp().IsZero()
		if leaving[key] || !override.Concerns(o.GetOverridePlacement(), o.GetNamespace(), placement) {
			continue
		}
		if err := checkSettled(o, snapshots[key]); err != nil {
			return nil, err
		}
	}
	// override.Snapshots of overrides that are being deleted are about to lose their effect.
	return slices.DeleteFunc(inForce, func(snapshot placementv1beta1.OverrideSnapshotObject) bool {
		return leaving[override.KeyOf(snapshot)]
	}), nil
}

// checkSettled says whether the snapshot in force, nil if there is none, shows an override as it is.
func checkSettled(o placementv1beta1.OverrideObject, inForce placementv1beta1.OverrideSnapshotObject) error {
	hash, err := override.Hash(o)
	if err != nil {
		return fmt.Errorf("hashing override %s: %w", o.GetName(), err)
	}
	shown := false
	if inForce != nil {
		if shown, err = override.IsSnapshotOf(inForce, hash); err != nil {
			return fmt.Errorf("hashing snapshot %s: %w", inForce.GetName(), err)
		}
	}
	valid := meta.FindStatusCondition(o.GetConditions(), placementv1beta1.ConditionTypeValid)
	switch {
	case valid == nil || valid.ObservedGeneration != o.GetGeneration():
	case valid.Status == metav1.ConditionFalse && valid.Reason != placementv1beta1.ReasonOverridePlacementNotFound:
		return nil // it has no effect, and its condition says why
	case shown:
		return nil
	}
	return &OverrideUnsettledError{Override: "override " + placementv1beta1.ScopeOf(o).String() + o.GetName()}
}
