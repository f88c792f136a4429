package v1beta1

// GetPlacementSpec returns the spec, which may be changed in place.
func (o *ClusterResourcePlacement) GetPlacementSpec() *PlacementSpec { return &o.Spec }

// GetPlacementStatus returns the status, which may be changed in place.
func (o *ClusterResourcePlacement) GetPlacementStatus() *PlacementStatus { return &o.Status }

// Objects returns pointers to the items.
func (l *ClusterResourcePlacementList) Objects() []PlacementObject {
	return pointersTo[PlacementObject](l.Items)
}

// GetPlacementSpec returns the spec, which may be changed in place.
func (o *ResourcePlacement) GetPlacementSpec() *PlacementSpec { return &o.Spec }

// GetPlacementStatus returns the status, which may be changed in place.
func (o *ResourcePlacement) GetPlacementStatus() *PlacementStatus { return &o.Status }

// Objects returns pointers to the items.
func (l *ResourcePlacementList) Objects() []PlacementObject {
	return pointersTo[PlacementObject](l.Items)
}

// GetPolicySnapshotSpec returns the spec, which may be changed in place.
func (o *ClusterSchedulingPolicySnapshot) GetPolicySnapshotSpec() *SchedulingPolicySnapshotSpec {
	return &o.Spec
}

// GetPolicySnapshotStatus returns the status, which may be changed in place.
func (o *ClusterSchedulingPolicySnapshot) GetPolicySnapshotStatus() *SchedulingPolicySnapshotStatus {
	return &o.Status
}

// Objects returns pointers to the items.
func (l *ClusterSchedulingPolicySnapshotList) Objects() []PolicySnapshotObject {
	return pointersTo[PolicySnapshotObject](l.Items)
}

// GetPolicySnapshotSpec returns the spec, which may be changed in place.
func (o *SchedulingPolicySnapshot) GetPolicySnapshotSpec() *SchedulingPolicySnapshotSpec {
	return &o.Spec
}

// GetPolicySnapshotStatus returns the status, which may be changed in place.
func (o *SchedulingPolicySnapshot) GetPolicySnapshotStatus() *SchedulingPolicySnapshotStatus {
	return &o.Status
}

// Objects returns pointers to the items.
func (l *SchedulingPolicySnapshotList) Objects() []PolicySnapshotObject {
	return pointersTo[PolicySnapshotObject](l.Items)
}

// GetResourceSnapshotSpec returns the spec, which may be changed in place.
func (o *ClusterResourceSnapshot) GetResourceSnapshotSpec() *ResourceSnapshotSpec { return &o.Spec }

// GetResourceSnapshotStatus returns the status, which may be changed in place.
func (o *ClusterResourceSnapshot) GetResourceSnapshotStatus() *ResourceSnapshotStatus {
	return &o.Status
}

// Objects returns pointers to the items.
func (l *ClusterResourceSnapshotList) Objects() []ResourceSnapshotObject {
	return pointersTo[ResourceSnapshotObject](l.Items)
}

// GetResourceSnapshotSpec returns the spec, which may be changed in place.
func (o *ResourceSnapshot) GetResourceSnapshotSpec() *ResourceSnapshotSpec { return &o.Spec }

// GetResourceSnapshotStatus returns the status, which may be changed in place.
func (o *ResourceSnapshot) GetResourceSnapshotStatus() *ResourceSnapshotStatus { return &o.Status }

// Objects returns pointers to the items.
func (l *ResourceSnapshotList) Objects() []ResourceSnapshotObject {
	return pointersTo[ResourceSnapshotObject](l.Items)
}

// GetBindingSpec returns the spec, which may be changed in place.
func (o *ClusterResourceBinding) GetBindingSpec() *ResourceBindingSpec { return &o.Spec }

// GetBindingStatus returns the status, which may be changed in place.
func (o *ClusterResourceBinding) GetBindingStatus() *ResourceBindingStatus { return &o.Status }

// Objects returns pointers to the items.
func (l *ClusterResourceBindingList) Objects() []BindingObject {
	return pointersTo[BindingObject](l.Items)
}

// GetBindingSpec returns the spec, which may be changed in place.
func (o *ResourceBinding) GetBindingSpec() *ResourceBindingSpec { return &o.Spec }

// GetBindingStatus returns the status, which may be changed in place.
func (o *ResourceBinding) GetBindingStatus() *ResourceBindingStatus { return &o.Status }

// Objects returns pointers to the items.
func (l *ResourceBindingList) Objects() []BindingObject { return pointersTo[BindingObject](l.Items) }

// GetUpdateStrategySpec returns the spec, which may be changed in place.
func (o *ClusterStagedUpdateStrategy) GetUpdateStrategySpec() *UpdateStrategySpec { return &o.Spec }

// Objects returns pointers to the items.
func (l *ClusterStagedUpdateStrategyList) Objects() []UpdateStrategyObject {
	return pointersTo[UpdateStrategyObject](l.Items)
}

// GetUpdateStrategySpec returns the spec, which may be changed in place.
func (o *StagedUpdateStrategy) GetUpdateStrategySpec() *UpdateStrategySpec { return &o.Spec }

// Objects returns pointers to the items.
func (l *StagedUpdateStrategyList) Objects() []UpdateStrategyObject {
	return pointersTo[UpdateStrategyObject](l.Items)
}

// GetUpdateRunSpec returns the spec, which may be changed in place.
func (o *ClusterStagedUpdateRun) GetUpdateRunSpec() *UpdateRunSpec { return &o.Spec }

// GetUpdateRunStatus returns the status, which may be changed in place.
func (o *ClusterStagedUpdateRun) GetUpdateRunStatus() *UpdateRunStatus { return &o.Status }

// Objects returns pointers to the items.
func (l *ClusterStagedUpdateRunList) Objects() []UpdateRunObject {
	return pointersTo[UpdateRunObject](l.Items)
}

// GetUpdateRunSpec returns the spec, which may be changed in place.
func (o *StagedUpdateRun) GetUpdateRunSpec() *UpdateRunSpec { return &o.Spec }

// GetUpdateRunStatus returns the status, which may be changed in place.
func (o *StagedUpdateRun) GetUpdateRunStatus() *UpdateRunStatus { return &o.Status }

// Objects returns pointers to the items.
func (l *StagedUpdateRunList) Objects() []UpdateRunObject {
	return pointersTo[UpdateRunObject](l.Items)
}

// GetApprovalRequestSpec returns the spec, which may be changed in place.
func (o *ClusterApprovalRequest) GetApprovalRequestSpec() *ApprovalRequestSpec { return &o.Spec }

// GetApprovalRequestStatus returns the status, which may be changed in place.
func (o *ClusterApprovalRequest) GetApprovalRequestStatus() *ApprovalRequestStatus { return &o.Status }

// Objects returns pointers to the items.
func (l *ClusterApprovalRequestList) Objects() []ApprovalRequestObject {
	return pointersTo[ApprovalRequestObject](l.Items)
}

// GetApprovalRequestSpec returns the spec, which may be changed in place.
func (o *ApprovalRequest) GetApprovalRequestSpec() *ApprovalRequestSpec { return &o.Spec }

// GetApprovalRequestStatus returns the status, which may be changed in place.
func (o *ApprovalRequest) GetApprovalRequestStatus() *ApprovalRequestStatus { return &o.Status }

// Objects returns pointers to the items.
func (l *ApprovalRequestList) Objects() []ApprovalRequestObject {
	return pointersTo[ApprovalRequestObject](l.Items)
}

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
