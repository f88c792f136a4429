package worksync

import (
	"context"

	"github.com/fleetflow/fleetflow/activities/workmodel"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// Composition is what Sync would bring about for a binding.
type Composition struct {
	// Works that the binding would have, with their manifests, the first part first.
	Works []placementv1beta1.Work
	// Removed are the names of the Works that it has and would lose.
	Removed []string
	// HeldBack and Invalid are the objects that would stay as they are, and the envelopes that cannot be unpacked; nil if there are none.
	HeldBack, Invalid error
}

// Compose returns what Sync would bring about for a binding, and writes nothing. The binding may be one that is not stored so. An
// error of Sync that only people can correct is one of Compose.
func (s *Syncer) Compose(ctx context.Context, binding placementv1beta1.BindingObject) (Composition, error) {
	existing, err := s.Of(ctx, binding)
	if err != nil {
		return Composition{}, err
	}
	content, err := s.contentFor(ctx, binding)
	if err != nil {
		return Composition{}, err
	}
	wanted, err := s.generate(ctx, binding, content, content.HeldBack() != nil)
	if err != nil {
		return Composition{}, err
	}
	keepEnvelopeNames(binding, wanted, existing)
	kept := map[string]bool{}
	for i := range wanted {
		kept[wanted[i].Name] = true
	}
	c := Composition{Works: wanted, HeldBack: content.HeldBack(), Invalid: content.Invalid()}
	for i := range existing {
		if work := &existing[i]; !kept[work.Name] && workmodel.Owns(binding, work) && work.DeletionTimestamp.IsZero() {
			c.Removed = append(c.Removed, work.Name)
		}
	}
	return c, nil
}

// contentFor returns the content of the snapshot that a binding names, as its cluster is to have it.
func (s *Syncer) contentFor(ctx context.Context, binding placementv1beta1.BindingObject) (*workmodel.Content, error) {
	content, err := s.snapshots.loadContent(ctx, binding)
	if err != nil {
		return nil, err
	}
	return s.overrides.applyOverrides(ctx, binding, content)
}

// generate makes the Works of a binding, with what is held back as it is now if that is asked for.
func (s *Syncer) generate(ctx context.Context, binding placementv1beta1.BindingObject, content *workmodel.Content,
	withFormer bool) (wanted []placementv1beta1.Work, err error) {
	if withFormer {
		wanted, err = generateWithFormer(ctx, s.live, binding, content)
	} else {
		wanted, err = workmodel.Generate(binding, content)
	}
	if err != nil {
		return nil, err
	}
	return wanted, s.addFromPlacement(ctx, binding, wanted)
}
