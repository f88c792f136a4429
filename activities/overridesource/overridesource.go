// Package overridesource reads what the pure package override decides from: the snapshots of
// overrides that are in force, those that a decision names, and the labels of clusters.
package overridesource

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/override"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// Snapshots are snapshots of overrides of both kinds. They may be shared with a cache
// and must not be changed.
type Snapshots []placementv1beta1.OverrideSnapshotObject

// shortForms returns all snapshots in short form.
func (s Snapshots) shortForms() []string {
	refs := make([]string, 0, len(s))
	for _, snapshot := range s {
		refs = append(refs, override.SourceOf(snapshot).Ref())
	}
	return refs
}

// MissingError says that an override snapshot that was picked does not exist any more:
// its override was deleted.
type MissingError struct{ Source override.Source }

// Error names the missing snapshot, and says what to do.
func (e *MissingError) Error() string {
	return e.Source.String() + " does not exist any more, as its override was deleted: what the cluster has stays as it is; " +
		"the next rollout, or another update run, goes by the overrides there are by then"
}

// InForce lists the snapshots that are in force: the latest of each valid override.
func InForce(ctx context.Context, reader client.Reader) (Snapshots, error) {
	latest := []client.ListOption{
		client.MatchingLabels{placementv1beta1.IsLatestSnapshotLabel: placementv1beta1.LabelValueTrue}, client.UnsafeDisableDeepCopy,
	}
	var all Snapshots
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
func keepNewest(snapshots Snapshots) Snapshots {
	best := map[types.NamespacedName]int{}
	var kept Snapshots
	for _, snapshot := range snapshots {
		if !snapshot.GetDeletionTimestamp().IsZero() {
			continue
		}
		of := overrideOf(snapshot)
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

// overrideOf names the override that a snapshot was taken of.
func overrideOf(snapshot placementv1beta1.OverrideSnapshotObject) types.NamespacedName {
	return placementv1beta1.ScopeOf(snapshot).Key(snapshot.GetLabels()[placementv1beta1.ParentOverrideLabel])
}

// Load reads the snapshots that a decision names. Their specs never change, so the cache
// will do; what it does not have is read live. A MissingError says that one is gone.
func Load(ctx context.Context, cached, live client.Reader, refs []string) (Snapshots, error) {
	var all Snapshots
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
		return &MissingError{Source: source}
	case err != nil:
		return fmt.Errorf("reading %s: %w", source, err)
	}
	return nil
}

// RefsOf returns the snapshots that a binding names, in short form.
func RefsOf(spec placementv1beta1.ResourceBindingSpec) []string {
	return Refs(spec.ClusterResourceOverrideSnapshots, spec.ResourceOverrideSnapshots)
}

// Refs are snapshots of both kinds, in short form.
func Refs(clusterWide []string, namespaced []placementv1beta1.NamespacedName) []string {
	refs := append([]string(nil), clusterWide...)
	for _, name := range namespaced {
		refs = append(refs, name.Namespace+"/"+name.Name)
	}
	return refs
}

// Cluster reads what overrides know of a cluster. One that does not exist has no labels.
func Cluster(ctx context.Context, reader client.Reader, name string) (override.Cluster, error) {
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

// Annotations returns those of a binding whose overrides are applied from inputs; nil if it
// has none.
func Annotations(inputs string) map[string]string {
	if inputs == "" {
		return nil
	}
	return map[string]string{placementv1beta1.OverrideInputsAnnotation: inputs}
}

// Inputs returns those of the overrides that were picked for a cluster before.
func Inputs(ctx context.Context, cached, live client.Reader, refs []string, name string) (string, error) {
	if len(refs) == 0 {
		return "", nil
	}
	picked, err := Load(ctx, cached, live, refs)
	if err != nil {
		return "", err
	}
	cluster, err := Cluster(ctx, cached, name)
	if err != nil {
		return "", err
	}
	return override.Picked(picked).Inputs(cluster), nil
}
