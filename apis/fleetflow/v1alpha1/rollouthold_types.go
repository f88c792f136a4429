package v1alpha1

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// RolloutHold stops the line: as long as it is there, and has not expired, no update, first placement, removal or eviction
// begins on the clusters that it covers, whether by a rolling update or by an update run. What is under way ends; soak
// times and approvals, the repair of drift, the deletion of placements, and members that join or leave are not held.
// Deleting it releases what it held.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:metadata:annotations="versions=v1alpha1"
// +kubebuilder:resource:scope=Cluster,shortName=rhold,categories={fleet,fleet-placement}
// +kubebuilder:printcolumn:name="Accepted",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Accepted")].status`
// +kubebuilder:printcolumn:name="Effective",type=string,JSONPath=`.status.conditions[?(@.type=="Effective")].status`
// +kubebuilder:printcolumn:name="Quiet",type=string,JSONPath=`.status.conditions[?(@.type=="Quiet")].status`
// +kubebuilder:printcolumn:name="Held-Runs",type=integer,JSONPath=`.status.heldRuns`
// +kubebuilder:printcolumn:name="Held-Placements",type=integer,JSONPath=`.status.heldPlacements`
// +kubebuilder:printcolumn:name="In-Flight",type=integer,JSONPath=`.status.inFlight`
// +kubebuilder:printcolumn:name="Expires",type=string,JSONPath=`.spec.expirationTime`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.spec.message`
type RolloutHold struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec says what is held, and why.
	// +required
	Spec RolloutHoldSpec `json:"spec"`

	// Status says what waits for the hold to end, and what is still under way.
	// +optional
	Status RolloutHoldStatus `json:"status,omitempty"`
}

// RolloutHoldSpec says what is held, and why.
type RolloutHoldSpec struct {
	// Message tells people why nothing begins. It is repeated wherever something waits for the hold.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Message string `json:"message"`

	// ClusterSelector is matched against the labels of the MemberClusters: the hold covers those that match. Without it, and
	// if it is empty, it covers every cluster.
	// +optional
	// +kubebuilder:validation:XValidation:rule=`!has(self.matchExpressions) || self.matchExpressions.all(e, e.operator in ["In", "NotIn"] ? has(e.values) && size(e.values) > 0 : e.operator in ["Exists", "DoesNotExist"] && (!has(e.values) || size(e.values) == 0))`,message="an operator of matchExpressions is In or NotIn, with values, or Exists or DoesNotExist, without",reason=FieldValueInvalid,fieldPath=".matchExpressions"
	ClusterSelector *metav1.LabelSelector `json:"clusterSelector,omitempty"`

	// NamespaceSelector is matched against the labels of the Namespaces that placements are in: the hold covers the placements of
	// those that match, with their update runs. Without it, and if it is empty, it covers those of every Namespace. A
	// ClusterResourcePlacement is in none, and counts as in one without labels. Who may write a placement cannot change these
	// labels, and so cannot leave the hold.
	// +optional
	// +kubebuilder:validation:XValidation:rule=`!has(self.matchExpressions) || self.matchExpressions.all(e, e.operator in ["In", "NotIn"] ? has(e.values) && size(e.values) > 0 : e.operator in ["Exists", "DoesNotExist"] && (!has(e.values) || size(e.values) == 0))`,message="an operator of matchExpressions is In or NotIn, with values, or Exists or DoesNotExist, without",reason=FieldValueInvalid,fieldPath=".matchExpressions"
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty"`

	// PlacementSelector is matched against the labels of placements: the hold covers those that match, with their update
	// runs. Without it, and if it is empty, it covers every placement. Who may write a placement may change its labels, but not
	// fleetflow.io/placement-name and fleetflow.io/placement-namespace, which every placement has here.
	// +optional
	// +kubebuilder:validation:XValidation:rule=`!has(self.matchExpressions) || self.matchExpressions.all(e, e.operator in ["In", "NotIn"] ? has(e.values) && size(e.values) > 0 : e.operator in ["Exists", "DoesNotExist"] && (!has(e.values) || size(e.values) == 0))`,message="an operator of matchExpressions is In or NotIn, with values, or Exists or DoesNotExist, without",reason=FieldValueInvalid,fieldPath=".matchExpressions"
	PlacementSelector *metav1.LabelSelector `json:"placementSelector,omitempty"`

	// Starts are the kinds of starts that are held: Updates, FirstPlacements, Removals, Evictions. All of them, if it is left out.
	// +optional
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=4
	// +kubebuilder:default={Updates,FirstPlacements,Removals,Evictions}
	// +listType=set
	Starts []Start `json:"starts,omitempty"`

	// Rollbacks is Gated, which is the default: update runs that roll another back wait, too. Exempt lets those
	// go that take clusters back to nothing but what a run forward had brought that has succeeded.
	// +optional
	// +kubebuilder:default=Gated
	Rollbacks Rollbacks `json:"rollbacks,omitempty"`

	// ExpirationTime is when the hold ends by itself. It is kept for the record then, and holds nothing. Without it, the hold ends
	// when it is deleted.
	// +optional
	ExpirationTime *metav1.Time `json:"expirationTime,omitempty"`
}

// RolloutHoldStatus says what waits for a hold to end, and what is still under way.
type RolloutHoldStatus struct {
	// HeldRuns is the number of update runs that have clusters waiting for the hold to end.
	// +optional
	HeldRuns int32 `json:"heldRuns"`

	// HeldPlacements is the number of placements that have clusters waiting for it, apart from those of update runs.
	// +optional
	HeldPlacements int32 `json:"heldPlacements"`

	// InFlight is the number of clusters, counted for each placement, on which changes that began before are under way.
	// +optional
	InFlight int32 `json:"inFlight"`

	// Conditions: Accepted is False if a selector cannot be read: the hold then covers everything that it could. Effective is True
	// while the hold is in force, and False once it has expired. Quiet is True when nothing that it covers is under way any more,
	// and False once it has expired.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// RolloutHolds is what RolloutHolds are in URLs.
var RolloutHolds = schema.GroupResource{Group: GroupName, Resource: "rolloutholds"}

// Conditions of a RolloutHold.
const (
	ConditionTypeEffective = "Effective"
	ConditionTypeQuiet     = "Quiet"
)

// Reasons of the conditions Effective and Quiet. That of an effective hold is ReasonHoldInForce. One that is not accepted has
// ReasonInvalidSelector.
const (
	ReasonHoldExpired     = "HoldExpired"     // the time of spec.expirationTime has come
	ReasonNothingInFlight = "NothingInFlight" // no change that the hold covers is under way
	ReasonChangesInFlight = "ChangesInFlight" // changes that began before are under way
)

// Flaw returns what is wrong with the selectors of a hold, which then select everything; nil if nothing is.
func (h *RolloutHold) Flaw() error {
	for _, selector := range []struct {
		name string
		of   *metav1.LabelSelector
	}{{"clusterSelector", h.Spec.ClusterSelector}, {"namespaceSelector", h.Spec.NamespaceSelector},
		{"placementSelector", h.Spec.PlacementSelector}} {
		if _, err := metav1.LabelSelectorAsSelector(selector.of); err != nil {
			return fmt.Errorf("%s: %w", selector.name, err)
		}
	}
	return nil
}

// Expires returns when the hold ends by itself; zero if it does not.
func (h *RolloutHold) Expires() time.Time {
	if h.Spec.ExpirationTime == nil {
		return time.Time{}
	}
	return h.Spec.ExpirationTime.Time
}

// IsInForce reports whether the hold holds anything at an instant.
func (h *RolloutHold) IsInForce(now time.Time) bool {
	return h.Spec.ExpirationTime == nil || now.Before(h.Spec.ExpirationTime.Time)
}

// Holds reports whether the hold is about a kind of start.
func (h *RolloutHold) Holds(start Start) bool {
	return includes(h.Spec.Starts, start)
}

// CoversCluster reports whether the hold covers a cluster with these labels, CoversPlacement a placement. A selector that cannot
// be read selects everything: a line that is to be stopped had better stand.
func (h *RolloutHold) CoversCluster(of map[string]string) bool {
	return selects(h.Spec.ClusterSelector, of)
}

// CoversPlacement reports whether the hold covers a placement with these labels (GateLabels), in a Namespace with these; nil for a
// ClusterResourcePlacement.
func (h *RolloutHold) CoversPlacement(of, namespace map[string]string) bool {
	return selects(h.Spec.PlacementSelector, of) && selects(h.Spec.NamespaceSelector, namespace)
}

func selects(selector *metav1.LabelSelector, of map[string]string) bool {
	if selector == nil {
		return true
	}
	compiled, err := metav1.LabelSelectorAsSelector(selector)
	return err != nil || compiled.Matches(labels.Set(of))
}
