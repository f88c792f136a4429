package overridesource

import (
	"bytes"
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/override"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// UnsettledError says that an override was changed a moment ago, and its snapshot does
// not show that yet.
type UnsettledError struct{ Override string }

// Error names the override.
func (e *UnsettledError) Error() string {
	return "the latest change of " + e.Override + " is not in a snapshot yet"
}

// Latest lists the snapshots that are in force and makes sure, with the overrides
// themselves, that nothing is missing in them that was changed before and can concern a
// ClusterResourcePlacement; an UnsettledError says that it is. Read live, it answers for
// everything that was written before.
func Latest(ctx context.Context, live client.Reader, placement string) (Snapshots, error) {
	var clusterWide placementv1beta1.ClusterResourceOverrideList
	if err := live.List(ctx, &clusterWide); err != nil {
		return Snapshots{}, fmt.Errorf("listing cluster resource overrides: %w", err)
	}
	var namespaced placementv1beta1.ResourceOverrideList
	if err := live.List(ctx, &namespaced); err != nil {
		return Snapshots{}, fmt.Errorf("listing resource overrides: %w", err)
	}
	inForce, err := InForce(ctx, live)
	if err != nil {
		return Snapshots{}, err
	}
	hashes := map[override.Source][]byte{}
	for i := range inForce.ClusterWide {
		s := &inForce.ClusterWide[i]
		hashes[override.Source{Name: s.Labels[placementv1beta1.ParentOverrideLabel]}] = s.Spec.OverrideHash
	}
	for i := range inForce.Namespaced {
		s := &inForce.Namespaced[i]
		hashes[override.Source{Namespace: s.Namespace, Name: s.Labels[placementv1beta1.ParentOverrideLabel]}] = s.Spec.OverrideHash
	}
	leaving := map[override.Source]bool{}
	for i := range clusterWide.Items {
		o := &clusterWide.Items[i]
		source := override.Source{Name: o.Name}
		leaving[source] = !o.DeletionTimestamp.IsZero()
		if leaving[source] || !isFor(o.Spec.Placement, placement) {
			continue
		}
		if err := settled(o, o.Status.Conditions, o.Spec, hashes[source]); err != nil {
			return Snapshots{}, err
		}
	}
	for i := range namespaced.Items {
		o := &namespaced.Items[i]
		source := override.Source{Namespace: o.Namespace, Name: o.Name}
		leaving[source] = !o.DeletionTimestamp.IsZero()
		if leaving[source] || !isFor(o.Spec.Placement, placement) {
			continue
		}
		if err := settled(o, o.Status.Conditions, o.Spec, hashes[source]); err != nil {
			return Snapshots{}, err
		}
	}
	return inForce.without(leaving), nil
}

// isFor says whether an override can concern a ClusterResourcePlacement.
func isFor(made *placementv1beta1.PlacementRef, placement string) bool {
	return made == nil || made.Name == placement && made.Scope != placementv1beta1.NamespaceScoped
}

// without leaves out the snapshots of overrides that are being deleted: they are about to
// lose their effect.
func (s Snapshots) without(leaving map[override.Source]bool) Snapshots {
	var kept Snapshots
	for _, snapshot := range s.ClusterWide {
		if !leaving[override.Source{Name: snapshot.Labels[placementv1beta1.ParentOverrideLabel]}] {
			kept.ClusterWide = append(kept.ClusterWide, snapshot)
		}
	}
	for _, snapshot := range s.Namespaced {
		if !leaving[override.Source{Namespace: snapshot.Namespace, Name: snapshot.Labels[placementv1beta1.ParentOverrideLabel]}] {
			kept.Namespaced = append(kept.Namespaced, snapshot)
		}
	}
	return kept
}

// settled says whether the snapshot in force, by its hash, shows an override as it is.
func settled[Spec placementv1beta1.ClusterResourceOverrideSpec | placementv1beta1.ResourceOverrideSpec](
	object client.Object, conditions []metav1.Condition, spec Spec, inForce []byte,
) error {
	hash, err := override.Hash(spec)
	if err != nil {
		return fmt.Errorf("hashing override %s: %w", object.GetName(), err)
	}
	valid := meta.FindStatusCondition(conditions, placementv1beta1.ConditionTypeValid)
	switch {
	case valid == nil || valid.ObservedGeneration != object.GetGeneration():
	case valid.Status == metav1.ConditionFalse:
		return nil // it has no effect, and its condition says why
	case bytes.Equal(hash, inForce):
		return nil
	}
	return unsettled(object)
}

func unsettled(object client.Object) error {
	name := object.GetName()
	if namespace := object.GetNamespace(); namespace != "" {
		name = namespace + "/" + name
	}
	return &UnsettledError{Override: "override " + name}
}
