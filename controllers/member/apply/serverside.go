package apply

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/csaupgrade"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// beforeFirstApply is the manager the API server gives fields that had none when an object
// was first applied server-side.
const beforeFirstApply = "before-first-apply"

// neverStored is a version at which no object ever stands: those of the API server begin higher. An
// apply at it creates the object, and is refused if somebody else has created it meanwhile, whose
// object would else become ours without having been judged.
const neverStored = "1"

// serverSide applies a manifest server-side. Live is nil if the object does not exist.
func (e *Engine) serverSide(ctx context.Context, req Request, live *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	object := Marked(req.Manifest, req.Owner)
	if live == nil {
		object.SetResourceVersion(neverStored)
	} else {
		retainReplicas(live, object)
		if stands(live, object) {
			return live, nil
		}
		if err := e.adoptFields(ctx, live); err != nil {
			return nil, err
		}
		// What is carried over, or was compared, must not have changed in between.
		if carryReplicas(live, object) || req.Strategy.WhenToApply == placementv1beta1.WhenToApplyTypeIfNotDrifted {
			object.SetResourceVersion(live.GetResourceVersion())
		}
	}
	data, err := json.Marshal(object.Object)
	if err != nil {
		return nil, fmt.Errorf("encoding the manifest: %w", err)
	}
	options := []client.PatchOption{client.FieldOwner(FieldManager)}
	if mustForce(req.Strategy, live) {
		options = append(options, client.ForceOwnership)
	}
	return object, e.Client.Patch(ctx, object, client.RawPatch(types.ApplyPatchType, data), options...)
}

// stands tells whether an object was applied server-side and has all that it would be given.
func stands(live, object *unstructured.Unstructured) bool {
	if !slices.ContainsFunc(live.GetManagedFields(), isOurs) {
		return false
	}
	wanted := object.DeepCopy()
	wanted.SetOwnerReferences(live.GetOwnerReferences()) // ours is among them by now
	patch, err := merge(nil, live, wanted)
	return err == nil && patch.Empty()
}

// mustForce tells whether fields are taken from other managers. Without a setting that says so
// only our own are: a conflict with ourselves would help nobody. A manifest that is too large to
// be applied client-side overwrites what others have changed, as it would if it were smaller.
func mustForce(strategy placementv1beta1.ApplyStrategy, live *unstructured.Unstructured) bool {
	if strategy.Type != placementv1beta1.ApplyStrategyTypeServerSideApply ||
		strategy.ServerSideApplyConfig != nil && strategy.ServerSideApplyConfig.Force {
		return true
	}
	return live != nil && onlyOurs(live.GetManagedFields())
}

func onlyOurs(fields []metav1.ManagedFieldsEntry) bool {
	for _, entry := range fields {
		if entry.Subresource == "" && entry.Manager != FieldManager && entry.Manager != beforeFirstApply {
			return false
		}
	}
	return true
}

// adoptFields hands the fields we once set client-side to our server-side manager. Otherwise
// they would stay for ever when they leave the manifest.
func (e *Engine) adoptFields(ctx context.Context, live *unstructured.Unstructured) error {
	data, err := csaupgrade.UpgradeManagedFieldsPatch(live, sets.New(FieldManager), FieldManager)
	if err != nil {
		return fmt.Errorf("working out whose fields are whose: %w", err)
	}
	if data == nil {
		return nil
	}
	if err := e.Client.Patch(ctx, live, client.RawPatch(types.JSONPatchType, data), client.FieldOwner(FieldManager)); err != nil {
		return fmt.Errorf("taking over the fields applied client-side: %w", err)
	}
	return nil
}
