package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// AppliedWork lives on the member and owns what was applied there for one Work. It has
// the Work's name; deleting it removes what the Work brought.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:metadata:annotations="versions=v1,v1beta1"
// +kubebuilder:resource:scope=Cluster,categories={fleet,fleet-placement}
// +kubebuilder:printcolumn:name="Work-Namespace",type=string,priority=1,JSONPath=`.spec.workNamespace`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type AppliedWork struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec says which Work this belongs to.
	// +required
	Spec AppliedWorkSpec `json:"spec"`

	// Status lists what was applied.
	// +optional
	Status AppliedWorkStatus `json:"status,omitempty"`
}

// AppliedWorkSpec says which Work an AppliedWork belongs to.
type AppliedWorkSpec struct {
	// WorkName is the name of the Work on the hub.
	// +required
	WorkName string `json:"workName"`

	// WorkNamespace is the namespace of the Work on the hub.
	// +required
	WorkNamespace string `json:"workNamespace"`
}

// AppliedWorkStatus lists what was applied.
type AppliedWorkStatus struct {
	// AppliedResources are the objects applied for the Work. An object leaves the list when
	// its manifest leaves the Work; it is removed from the cluster then.
	// +kubebuilder:validation:MaxItems=20000
	// +optional
	AppliedResources []AppliedResourceMeta `json:"appliedResources,omitempty"`
}

// AppliedResourceMeta identifies an object that was applied.
type AppliedResourceMeta struct {
	// The object.
	WorkResourceIdentifier `json:",inline"`

	// UID of the object, so that an object of the same name that another user made is never
	// taken for it.
	// +optional
	UID types.UID `json:"uid,omitempty"`

	// RunOf is the hash of the manifest of a Job that the cluster removes some time after it has
	// finished (ttlSecondsAfterFinished). Such a Job runs once for each version of its manifest, and
	// is not created again when it is gone. It is empty for other objects. An addition of
	// fleetflow.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	RunOf string `json:"runOf,omitempty"`

	// RunResult is how that run ended, Complete or Failed. It is empty as long as the Job runs, and
	// if it was gone before the agent saw its end. An addition of fleetflow.
	// +kubebuilder:validation:MaxLength=16
	// +optional
	RunResult string `json:"runResult,omitempty"`
}
