package v1beta1

// GetOverridePlacement returns the placement it was made for; nil for all.
func (o *ClusterResourceOverride) GetOverridePlacement() *PlacementRef { return o.Spec.Placement }

// GetOverrideSelectors returns the resources it selects.
func (o *ClusterResourceOverride) GetOverrideSelectors() []ResourceIdentifier {
	selected := make([]ResourceIdentifier, 0, len(o.Spec.ClusterResourceSelectors))
	for i := range o.Spec.ClusterResourceSelectors {
		s := &o.Spec.ClusterResourceSelectors[i]
		selected = append(selected, ResourceIdentifier{Group: s.Group, Version: s.Version, Kind: s.Kind, Name: s.Name})
	}
	return selected
}

// GetOverridePolicy returns the policy, which may be changed in place.
func (o *ClusterResourceOverride) GetOverridePolicy() *OverridePolicy { return &o.Spec.Policy }

// GetOverrideSpec returns a pointer to the whole spec.
func (o *ClusterResourceOverride) GetOverrideSpec() any { return &o.Spec }

// Objects returns pointers to the items.
func (l *ClusterResourceOverrideList) Objects() []OverrideObject {
	return pointersTo[OverrideObject](l.Items)
}

// GetOverridePlacement returns the placement it was made for; nil for all.
func (o *ClusterResourceOverrideSnapshot) GetOverridePlacement() *PlacementRef {
	return o.Spec.OverrideSpec.Placement
}

// GetOverrideSelectors returns the resources it selects.
func (o *ClusterResourceOverrideSnapshot) GetOverrideSelectors() []ResourceIdentifier {
	selected := make([]ResourceIdentifier, 0, len(o.Spec.OverrideSpec.ClusterResourceSelectors))
	for i := range o.Spec.OverrideSpec.ClusterResourceSelectors {
		s := &o.Spec.OverrideSpec.ClusterResourceSelectors[i]
		selected = append(selected, ResourceIdentifier{Group: s.Group, Version: s.Version, Kind: s.Kind, Name: s.Name})
	}
	return selected
}

// GetOverridePolicy returns the policy, which may be changed in place.
func (o *ClusterResourceOverrideSnapshot) GetOverridePolicy() *OverridePolicy {
	return &o.Spec.OverrideSpec.Policy
}

// GetOverrideHash returns the hash of the override that the snapshot was taken of.
func (o *ClusterResourceOverrideSnapshot) GetOverrideHash() []byte { return o.Spec.OverrideHash }

// Objects returns pointers to the items.
func (l *ClusterResourceOverrideSnapshotList) Objects() []OverrideSnapshotObject {
	return pointersTo[OverrideSnapshotObject](l.Items)
}

// GetOverridePlacement returns the placement it was made for; nil for all.
func (o *ResourceOverride) GetOverridePlacement() *PlacementRef { return o.Spec.Placement }

// GetOverrideSelectors returns the resources it selects.
func (o *ResourceOverride) GetOverrideSelectors() []ResourceIdentifier {
	selected := make([]ResourceIdentifier, 0, len(o.Spec.ResourceSelectors))
	for i := range o.Spec.ResourceSelectors {
		s := &o.Spec.ResourceSelectors[i]
		selected = append(selected, ResourceIdentifier{Group: s.Group, Version: s.Version, Kind: s.Kind, Namespace: o.Namespace, Name: s.Name})
	}
	return selected
}

// GetOverridePolicy returns the policy, which may be changed in place.
func (o *ResourceOverride) GetOverridePolicy() *OverridePolicy { return &o.Spec.Policy }

// GetOverrideSpec returns a pointer to the whole spec.
func (o *ResourceOverride) GetOverrideSpec() any { return &o.Spec }

// Objects returns pointers to the items.
func (l *ResourceOverrideList) Objects() []OverrideObject { return pointersTo[OverrideObject](l.Items) }

// GetOverridePlacement returns the placement it was made for; nil for all.
func (o *ResourceOverrideSnapshot) GetOverridePlacement() *PlacementRef {
	return o.Spec.OverrideSpec.Placement
}

// GetOverrideSelectors returns the resources it selects.
func (o *ResourceOverrideSnapshot) GetOverrideSelectors() []ResourceIdentifier {
	selected := make([]ResourceIdentifier, 0, len(o.Spec.OverrideSpec.ResourceSelectors))
	for i := range o.Spec.OverrideSpec.ResourceSelectors {
		s := &o.Spec.OverrideSpec.ResourceSelectors[i]
		selected = append(selected, ResourceIdentifier{Group: s.Group, Version: s.Version, Kind: s.Kind, Namespace: o.Namespace, Name: s.Name})
	}
	return selected
}

// GetOverridePolicy returns the policy, which may be changed in place.
func (o *ResourceOverrideSnapshot) GetOverridePolicy() *OverridePolicy {
	return &o.Spec.OverrideSpec.Policy
}

// GetOverrideHash returns the hash of the override that the snapshot was taken of.
func (o *ResourceOverrideSnapshot) GetOverrideHash() []byte { return o.Spec.OverrideHash }

// Objects returns pointers to the items.
func (l *ResourceOverrideSnapshotList) Objects() []OverrideSnapshotObject {
	return pointersTo[OverrideSnapshotObject](l.Items)
}
