package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// PropagatedType switches the propagation of one kind of objects, over all placements of the
// hub. Its name is that of the kind as in URLs, <plural>.<group> or, in the core group,
// <plural>: deployments.apps, configmaps. A kind without a PropagatedType is propagated.
// While it is Disabled, no change, addition or removal of its objects reaches members.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:metadata:annotations="versions=v1alpha1"
// +kubebuilder:resource:scope=Cluster,shortName=pt,categories={fleet,fleet-placement}
// +kubebuilder:printcolumn:name="Propagation",type=string,JSONPath=`.spec.propagation`
// +kubebuilder:printcolumn:name="Accepted",type=string,JSONPath=`.status.conditions[?(@.type=="Accepted")].status`
// +kubebuilder:printcolumn:name="Placements",type=integer,JSONPath=`.status.placements`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Reason",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Accepted")].reason`
// +kubebuilder:validation:XValidation:rule="!self.metadata.name.matches('(^|[.])(kubernetes-fleet|fleetflow)[.]io$')",message="metadata.name is a kind of the fleet itself, which is not placed as other kinds are: name a kind of another API group, as <plural>.<group>",reason=FieldValueInvalid,fieldPath=".metadata"
type PropagatedType struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec says whether the kind is propagated.
	// +optional
	// +kubebuilder:default={}
	Spec PropagatedTypeSpec `json:"spec,omitempty,omitzero"`

	// Status says whether the hub serves the kind, and how many placements it concerns.
	// +optional
	Status PropagatedTypeStatus `json:"status,omitempty"`
}

// PropagatedTypeSpec says whether a kind is propagated.
type PropagatedTypeSpec struct {
	// Propagation is Enabled, which is the default, or Disabled. While it is Disabled, placements
	// keep the objects of the kind as their latest resource snapshot has them, and a placement
	// without a snapshot gets none of them. All else is placed as usual. Once it is Enabled again,
	// the objects on the hub count, and members get them as the rollout strategy allows.
	// +optional
	// +kubebuilder:default=Enabled
	Propagation Propagation `json:"propagation,omitempty"`
}

// Propagation says whether a kind is propagated.
//
// +kubebuilder:validation:Enum=Enabled;Disabled
type Propagation string

const (
	// PropagationEnabled lets what happens on the hub reach members.
	PropagationEnabled Propagation = "Enabled"
	// PropagationDisabled keeps what members have.
	PropagationDisabled Propagation = "Disabled"
)

// PropagatedTypeStatus says what the hub makes of a PropagatedType.
type PropagatedTypeStatus struct {
	// Conditions: Accepted is True once selections go by the spec, and False, with the reason
	// KindNotServed, if the hub serves no such kind, or, with the reason KindNotPlaced, if objects
	// of the kind are never placed.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// Placements is the number of placements whose selectors can select objects of the kind.
	// +optional
	Placements int32 `json:"placements"`
}

// PropagatedTypes is what PropagatedTypes are in URLs.
var PropagatedTypes = schema.GroupResource{Group: GroupName, Resource: "propagatedtypes"}

// Reasons of the condition Accepted of a PropagatedType: selections go by it.
const (
	ReasonPropagationEnabled  = "PropagationEnabled"  // changes of the kind reach members
	ReasonPropagationDisabled = "PropagationDisabled" // changes of the kind do not reach members
	ReasonKindNotServed       = "KindNotServed"       // the hub serves no kind of this name
	ReasonKindNotPlaced       = "KindNotPlaced"       // objects of the kind are never placed
)

// IsDisabled reports whether changes of the kind are kept from members.
func (t *PropagatedType) IsDisabled() bool { return t.Spec.Propagation == PropagationDisabled }
