package v1beta1

// ClusterLifecycle has the hooks at which a controller of the user's takes part in what happens to
// the clusters of a placement. Hooks are labels and finalizers of the bindings, which that controller
// puts on and takes off; where a cluster stands is in the binding's label
// fleetflow.io/lifecycle-state. Nothing but such a controller, or a user, answers a hook, and a
// cluster waits for it without a limit in time.
//
// +kubebuilder:validation:MinProperties=1
type ClusterLifecycle struct {
	// PreUpdate makes a cluster wait before it is updated, by a rolling update or an update run: it is in
	// state PreparingUpdate, and counts as unavailable, while its binding has any of the labels and
	// finalizers. Then it is written to (Updating) and, once its resources are available, waits until
	// the binding has all of them again (Updated). A cluster that has none of them does not wait.
	// +optional
	PreUpdate *ClusterDrainHook `json:"preUpdate,omitempty"`

	// PreRemove makes a cluster wait before its resources are removed because it is no longer picked, or
	// evicted: it is in state PreparingRemove, and counts as unavailable, while its binding has any of
	// the labels and finalizers. Deletions do not wait: of the placement, its binding, or the
	// MemberCluster.
	// +optional
	PreRemove *ClusterDrainHook `json:"preRemove,omitempty"`

	// PreAvailable makes a cluster wait that gets the resources for the first time: it is in state
	// PreparingAvailable, and does not count as available, until its binding has all of the labels
	// and finalizers.
	// +optional
	PreAvailable *ClusterHook `json:"preAvailable,omitempty"`
}

// ClusterHook is a set of labels and finalizers of bindings.
//
// +kubebuilder:validation:XValidation:rule="has(self.labelsHandler) && size(self.labelsHandler) > 0 || has(self.finalizersHandler) && size(self.finalizersHandler) > 0",message="a hook needs at least one label in labelsHandler or one finalizer in finalizersHandler: without them no cluster would wait",reason=FieldValueRequired,fieldPath=".labelsHandler"
type ClusterHook struct {
	// LabelsHandler are labels of the binding, each with its value. Those of the fleet,
	// kubernetes-fleet.io/... and fleetflow.io/..., are not for hooks.
	// +kubebuilder:validation:MaxProperties=10
	// +kubebuilder:validation:XValidation:rule=`self.all(k, k.matches("^([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$"))`,message="labelsHandler has a key that no label can have: give keys such as example.com/in-service"
	// +kubebuilder:validation:XValidation:rule=`self.all(k, !k.matches("^([^/]*[.])?(kubernetes-fleet|fleetflow)[.]io/"))`,message="labelsHandler has a label of the fleet, kubernetes-fleet.io/... or fleetflow.io/..., which only the hub agent sets: take a domain of your own"
	// +kubebuilder:validation:XValidation:rule=`self.all(k, self[k].matches("^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$"))`,message="labelsHandler has a value that no label can have: at most 63 letters, digits, '-', '_' and '.'"
	// +optional
	LabelsHandler map[string]HookLabelValue `json:"labelsHandler,omitempty"`

	// FinalizersHandler are finalizers of the binding, with a domain of your own. The hub agent takes
	// them off a binding that is deleted once the resources are gone from the cluster.
	// +kubebuilder:validation:MaxItems=10
	// +kubebuilder:validation:items:MaxLength=317
	// +kubebuilder:validation:XValidation:rule=`self.all(f, f.matches("^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$"))`,message="finalizersHandler needs finalizers with a domain, such as example.com/drain"
	// +kubebuilder:validation:XValidation:rule=`self.all(f, !f.matches("^([^/]*[.])?(kubernetes-fleet|fleetflow)[.]io/"))`,message="finalizersHandler has a finalizer of the fleet, kubernetes-fleet.io/... or fleetflow.io/..., which only the hub agent sets: take a domain of your own"
	// +listType=set
	// +optional
	FinalizersHandler []string `json:"finalizersHandler,omitempty"`
}

// HookLabelValue is the value of a label.
//
// +kubebuilder:validation:MaxLength=63
type HookLabelValue string

// ClusterDrainHook is a hook before a cluster is taken out of service.
//
// +kubebuilder:validation:XValidation:rule="!has(self.gracePeriodSeconds) || self.gracePeriodSeconds == 0 || has(self.markNotServing) && self.markNotServing",message="gracePeriodSeconds counts from the condition Serving: set markNotServing to true, or remove it",reason=FieldValueForbidden,fieldPath=".gracePeriodSeconds"
type ClusterDrainHook struct {
	ClusterHook `json:",inline"`

	// MarkNotServing sets the binding's condition Serving to False from when the cluster waits for the hook
	// until the change is done, for those who steer traffic.
	// +optional
	MarkNotServing bool `json:"markNotServing,omitempty"`

	// GracePeriodSeconds is how long to wait, at least, from the time at which the condition Serving
	// has become False to the change.
	// +kubebuilder:validation:Minimum=0
	// +optional
	GracePeriodSeconds int32 `json:"gracePeriodSeconds,omitempty"`
}

// LifecycleState is where a cluster stands between its hooks: the value of the label
// fleetflow.io/lifecycle-state on its binding. The annotation
// fleetflow.io/lifecycle-since says since when. Both are missing from a binding that has not waited for a hook yet.
type LifecycleState string

const (
	// LifecyclePreparingAvailable means that the cluster gets the resources for the first time.
	LifecyclePreparingAvailable LifecycleState = "PreparingAvailable"
	// LifecycleNormal means that the cluster waits for no hook.
	LifecycleNormal LifecycleState = "Normal"
	// LifecyclePreparingUpdate means that the cluster is to be updated once it may.
	LifecyclePreparingUpdate LifecycleState = "PreparingUpdate"
	// LifecycleUpdating means that the update is written.
	LifecycleUpdating LifecycleState = "Updating"
	// LifecycleUpdated means that the update is done, or was given up before it was written, and that
	// the labels and finalizers are to come back.
	LifecycleUpdated LifecycleState = "Updated"
	// LifecyclePreparingRemove means that the cluster is to be left once it may.
	LifecyclePreparingRemove LifecycleState = "PreparingRemove"
)
