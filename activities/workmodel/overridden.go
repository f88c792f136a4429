package workmodel

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/fleetflow/fleetflow/activities/envelope"
	"github.com/fleetflow/fleetflow/activities/override"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// OverrideError says that overrides of a binding cannot be applied. Trying again does not
// help: a user has to change an override, a resource or the labels of the cluster.
type OverrideError struct {
	Cause error
	// Held are the objects that a rule fails on, which alone are kept back. If there are none,
	// nothing is written.
	Held []HeldObject
}

// HeldObject is an object that stays on a cluster as it is, or stays away, because an override
// of it cannot be applied.
type HeldObject struct {
	placementv1beta1.ResourceIdentifier
	// Cause says which rule of which override fails, and why.
	Cause error
	// unit and at are where its manifest belongs.
	unit, at int
}

// toldHeld is how many objects that are held back a message names.
const toldHeld = 3

// Error returns which rule of which override fails on which object, and why.
func (e *OverrideError) Error() string {
	if len(e.Held) == 0 {
		return e.Cause.Error()
	}
	told := make([]string, 0, toldHeld+1)
	for _, held := range e.Held[:min(len(e.Held), toldHeld)] {
		told = append(told, held.Cause.Error())
	}
	if more := len(e.Held) - len(told); more > 0 {
		told = append(told, fmt.Sprintf("%d more", more))
	}
	return strings.Join(told, "; ") + fmt.Sprintf(" (%d resource(s) stay as they were on the cluster, and keep no others back)", len(e.Held))
}

// Unwrap returns the cause.
func (e *OverrideError) Unwrap() error { return e.Cause }

// Override returns the content as one cluster is to have it. Objects that a rule cannot be
// carried out on are left out of it; HeldBack names them.
func (c *Content) Override(patch *override.Patch) (*Content, error) {
	prepared, err := c.objects()
	if err != nil {
		return nil, err
	}
	changed := &Content{parts: c.parts, invalid: c.invalid, units: make([]workUnit, len(c.units)), objects: c.objects, assigned: c.assigned}
	copy(changed.units, c.units)
	for i := range changed.units {
		if !changed.units[i].invalid {
			changed.overrideUnit(i, prepared[i], patch)
		}
	}
	return changed, nil
}

func (c *Content) overrideUnit(unit int, objects []*override.Object, patch *override.Patch) {
	manifests := make([]placementv1beta1.Manifest, 0, len(objects))
	for _, object := range objects {
		result, err := patch.Apply(object)
		switch {
		case err != nil:
			held := HeldObject{ResourceIdentifier: object.Identifier(), Cause: err, unit: unit, at: len(manifests)}
			held.Envelope = c.units[unit].envelope
			c.held = append(c.held, held)
		case !result.Removed:
			c.noteOverriddenReplicas(unit, object, patch, result.Manifest)
			manifests = append(manifests, placementv1beta1.Manifest{RawExtension: runtime.RawExtension{Raw: result.Manifest}})
		}
	}
	c.units[unit].manifests = manifests
}

// HeldBack is an *OverrideError if objects are held back, else nil.
func (c *Content) HeldBack() error {
	if len(c.held) == 0 {
		return nil
	}
	return &OverrideError{Cause: c.held[0].Cause, Held: c.held}
}

// KeepFormer returns the content with the objects that are held back as Works of the binding
// have them, whichever they are in.
func (c *Content) KeepFormer(works []placementv1beta1.Work) *Content {
	former := map[envelope.ObjectKey]placementv1beta1.Manifest{}
	for i := range works {
		for _, manifest := range works[i].Spec.Workload.Manifests {
			var head metav1.PartialObjectMetadata
			if err := json.Unmarshal(manifest.Raw, &head); err == nil { // else it is no object that a member has
				former[envelope.KeyOf(&head)] = manifest
			}
		}
	}
	kept := &Content{parts: c.parts, invalid: c.invalid, units: slices.Clone(c.units), objects: c.objects, held: c.held, assigned: c.assigned,
		overridden: c.overridden}
	for _, held := range slices.Backward(c.held) { // the last first, so that the places of the others stay
		manifest, ok := former[envelope.ObjectKey{Group: held.Group, Kind: held.Kind, Namespace: held.Namespace, Name: held.Name}]
		if ok {
			unit := &kept.units[held.unit]
			unit.manifests = slices.Insert(slices.Clone(unit.manifests), held.at, manifest)
		}
	}
	return kept
}

// HeldBackAnnotation is on Works that have to do without what an override asks for; it tells
// apart what is held back. Such a Work is not what the binding asks for, though it has its
// revision.
const HeldBackAnnotation = placementv1beta1.OwnPrefix + "held-back"

// heldBackIn tells apart what is held back in a unit; empty if nothing is.
func (c *Content) heldBackIn(unit int) string {
	digest := sha256.New()
	any := false
	for _, held := range c.held {
		if held.unit == unit {
			any = true
			_, _ = fmt.Fprintf(digest, "%+v %v\n", held.ResourceIdentifier, held.Cause) // writing to a hash never fails
		}
	}
	if !any {
		return ""
	}
	return hex.EncodeToString(digest.Sum(nil)[:8])
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
