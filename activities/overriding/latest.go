package overriding

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
// themselves, that nothing that was changed before is missing in them; an UnsettledError
// says that it is. Read live, it answers for everything that was written before.
func Latest(ctx context.Context, live client.Reader) (Snapshots, error) {
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
	for i := range clusterWide.Items {
		o := &clusterWide.Items[i]
		if err := settled(o, o.Status.Conditions, o.Spec, hashes[override.Source{Name: o.Name}]); err != nil {
			return Snapshots{}, err
		}
	}
	for i := range namespaced.Items {
		o := &namespaced.Items[i]
		if err := settled(o, o.Status.Conditions, o.Spec, hashes[override.Source{Namespace: o.Namespace, Name: o.Name}]); err != nil {
			return Snapshots{}, err
		}
	}
	return inForce, nil
}

// settled says whether the snapshot in force, by its hash, shows an override as it is.
func settled[Spec placementv1beta1.ClusterResourceOverrideSpec | placementv1beta1.ResourceOverrideSpec](
	object client.Object, conditions []metav1.Condition, spec Spec, inForce []byte,
) error {
	if !object.GetDeletionTimestamp().IsZero() {
		if inForce == nil {
			return nil
		}
		return unsettled(object)
	}
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
