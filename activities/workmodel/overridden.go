package workmodel

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/fleetflow/fleetflow/activities/override"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// OverrideError says that the overrides of a binding cannot be applied. Trying again does
// not help: a user has to change an override, a resource or the labels of the cluster.
type OverrideError struct{ Cause error }

// Error says which rule of which override fails on which object, and why.
func (e *OverrideError) Error() string { return e.Cause.Error() }

// Unwrap returns the cause.
func (e *OverrideError) Unwrap() error { return e.Cause }

// Override returns the content as one cluster is to have it. The error is an
// *OverrideError if a rule cannot be carried out there.
func (c *Content) Override(patch *override.Patch) (*Content, error) {
	prepared, err := c.objects()
	if err != nil {
		return nil, err
	}
	changed := &Content{parts: c.parts, invalid: c.invalid, units: make([]workUnit, len(c.units)), objects: c.objects}
	copy(changed.units, c.units)
	for i := range changed.units {
		p := &changed.units[i]
		if p.invalid {
			continue
		}
		if p.manifests, err = overriddenManifests(prepared[i], patch); err != nil {
			return nil, err
		}
	}
	return changed, nil
}

func overriddenManifests(objects []*override.Object, patch *override.Patch) ([]placementv1beta1.Manifest, error) {
	manifests := make([]placementv1beta1.Manifest, 0, len(objects))
	for _, object := range objects {
		result, err := patch.Apply(object)
		if err != nil {
			return nil, &OverrideError{Cause: err}
		}
		if !result.Removed {
			manifests = append(manifests, placementv1beta1.Manifest{RawExtension: runtime.RawExtension{Raw: result.Manifest}})
		}
	}
	return manifests, nil
}

// readObjects reads the manifests of all units, so that they can be changed for any number
// of clusters.
func readObjects(units []workUnit) ([][]*override.Object, error) {
	all := make([][]*override.Object, len(units))
	for i := range units {
		if units[i].invalid {
			continue
		}
		for _, manifest := range units[i].manifests {
			object, err := override.NewObject(manifest.Raw)
			if err != nil {
				return nil, fmt.Errorf("reading an object to override: %w", err)
			}
			all[i] = append(all[i], object)
		}
	}
	return all, nil
}
