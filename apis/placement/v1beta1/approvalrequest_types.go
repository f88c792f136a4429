package v1beta1

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ClusterApprovalRequest asks for the approval of a stage of an update run. Set the
// condition Approved to True in its status to approve.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:metadata:annotations="versions=v1,v1beta1,v1alpha1"
// +kubebuilder:resource:scope=Cluster,shortName=careq,categories={fleet,fleet-placement}
// +kubebuilder:selectablefield:JSONPath=`.spec.parentStageRollout`
// +kubebuilder:selectablefield:JSONPath=`.spec.targetStage`
// +kubebuilder:printcolumn:name="Update-Run",type=string,JSONPath=`.spec.parentStageRollout`
// +kubebuilder:printcolumn:name="Stage",type=string,JSONPath=`.spec.targetStage`
// +kubebuilder:printcolumn:name="Approved",type=string,JSONPath=`.status.conditions[?(@.type=="Approved")].status`
// +kubebuilder:printcolumn:name="ApprovalAccepted",type=string,JSONPath=`.status.conditions[?(@.type=="ApprovalAccepted")].status`
// +kubebuilder:printcolumn:name="Votes",type=string,priority=1,JSONPath=`.status.tally`
// +kubebuilder:printcolumn:name="Expires",type=string,priority=1,JSONPath=`.spec.expirationTime`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ClusterApprovalRequest struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec says which stage of which run is to be approved.
	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="The spec field is immutable"
	Spec ApprovalRequestSpec `json:"spec"`

	// Status says whether it was approved.
	// +optional
	Status ApprovalRequestStatus `json:"status,omitempty"`
}

// ApprovalRequestSpec says which stage of which run is to be approved.
type ApprovalRequestSpec struct {
	// TargetUpdateRun (parentStageRollout in YAML) is the name of the update run.
	// +required
	TargetUpdateRun string `json:"parentStageRollout"`

	// TargetStage is the name of the stage.
	// +required
	TargetStage string `json:"targetStage"`

	// Votes says which votes approve the stage. Without it, the condition Approved of one user does. It is an
	// addition of fleetflow to the API.
	// +optional
	Votes *VoteRules `json:"votes,omitempty"`

	// ExpirationTime is until when the stage can be approved; nil if it can for as long as it takes. It is an addition of fleetflow.
	// +optional
	ExpirationTime *metav1.Time `json:"expirationTime,omitempty"`
}

// VoteRules say which votes approve a stage, as the task of the strategy has them.
type VoteRules struct {
	// Required is how many users have to vote for it.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=5
	// +required
	Required int32 `json:"required"`

	// Groups are those whose users may vote; all may if left out. Users of requireGroups may as well.
	// +kubebuilder:validation:MaxItems=10
	// +kubebuilder:validation:items:MaxLength=256
	// +listType=set
	// +optional
	Groups []string `json:"groups,omitempty"`

	// RequireGroups are those of each of which one user has to vote for it.
	// +kubebuilder:validation:MaxItems=5
	// +kubebuilder:validation:items:MaxLength=256
	// +listType=set
	// +optional
	RequireGroups []string `json:"requireGroups,omitempty"`

	// Comment is Required if users have to say why they vote for it, else Optional.
	// +kubebuilder:validation:Enum=Optional;Required
	// +optional
	Comment CommentPolicy `json:"comment,omitempty"`

	// ValidFor is how long a vote counts while others are missing; for as long as it takes if left out.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=64
	// +optional
	ValidFor *metav1.Duration `json:"validFor,omitempty"`
}

// Vote is what one user says of a stage, for one plan. It is an addition of fleetflow.
type Vote struct {
	// Username is who votes. The API server compares it with the sender.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +required
	Username string `json:"username"`

	// Groups are those that the rules name and the user is in. The API server compares them with those of the sender.
	// +kubebuilder:validation:MaxItems=15
	// +kubebuilder:validation:items:MaxLength=256
	// +listType=set
	// +optional
	Groups []string `json:"groups,omitempty"`

	// Channel is the channel by which the vote came: Kubectl or Dashboard.
	// +kubebuilder:validation:Enum=Kubectl;Dashboard
	// +required
	Channel ApprovalChannel `json:"channel"`

	// Rejects is true for a vote against it, which takes back all votes.
	// +optional
	Rejects bool `json:"rejects,omitempty"`

	// Comment of the user who votes.
	// +kubebuilder:validation:MaxLength=8192
	// +optional
	Comment string `json:"comment,omitempty"`

	// PlanHash is the plan that the vote is for, as the annotation fleetflow.io/plan-hash of the request has it, or its beginning
	// with 12 digits or more.
	// +kubebuilder:validation:Pattern="^sha256:[0-9a-f]{12,64}$"
	// +optional
	PlanHash string `json:"planHash,omitempty"`

	// At is when the hub counted the vote.
	// +optional
	At *metav1.Time `json:"at,omitempty"`
}

// ApprovalRequestStatus says whether a stage was approved.
type ApprovalRequestStatus struct {
	// Conditions: Approved is set by the user who approves, ApprovalAccepted by the hub. After
	// that, taking the approval back has no effect.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// Approval records who approved and how. The hub writes it when it accepts an approval.
	// It is an addition of fleetflow to the API.
	// +optional
	Approval *ApprovalRecord `json:"approval,omitempty"`

	// Vote is the vote that a user casts, until the hub has counted it. It is an addition of fleetflow to the API.
	// +optional
	Vote *Vote `json:"vote,omitempty"`

	// Votes are those for the stage that the hub has counted, one a user. They are an addition of fleetflow to the API.
	// +kubebuilder:validation:MaxItems=20
	// +listType=map
	// +listMapKey=username
	// +optional
	Votes []Vote `json:"votes,omitempty"`

	// Tally says how many votes of how many there are, such as 1/2. It is an addition of fleetflow to the API.
	// +kubebuilder:validation:MaxLength=16
	// +optional
	Tally string `json:"tally,omitempty"`
}

// ApprovalChannel is the way an approval came in.
type ApprovalChannel string

const (
	// ApprovalChannelKubectl is the condition Approved on the approval request.
	ApprovalChannelKubectl ApprovalChannel = "Kubectl"
	// ApprovalChannelTemporalSignal is a signal to the run's workflow.
	ApprovalChannelTemporalSignal ApprovalChannel = "TemporalSignal"
	// ApprovalChannelTemporalUpdate is an update of the run's workflow.
	ApprovalChannelTemporalUpdate ApprovalChannel = "TemporalUpdate"
	// ApprovalChannelDashboard is the condition Approved, written through the dashboard in the name of its user.
	ApprovalChannelDashboard ApprovalChannel = "Dashboard"
)

// ApprovalChannelExtra is the attribute of a user by which the API server tells what the dashboard writes in the user's name: its
// value is then ApprovalChannelDashboard. RBAC lets only the dashboard's account set it, with the verb impersonate.
const ApprovalChannelExtra = OwnPrefix + "channel"

// Vouched reports whether the API server itself tells who approves by this channel.
func (c ApprovalChannel) Vouched() bool {
	return c == ApprovalChannelKubectl || c == ApprovalChannelDashboard
}

// Text names the channel in a sentence.
func (c ApprovalChannel) Text() string {
	switch c {
	case ApprovalChannelKubectl:
		return "kubectl"
	case ApprovalChannelTemporalSignal:
		return "a Temporal signal"
	case ApprovalChannelTemporalUpdate:
		return "a Temporal update"
	case ApprovalChannelDashboard:
		return "the dashboard"
	}
	return string(c)
}

// ApprovalRecord says who approved a stage and how. It is an addition of fleetflow.
type ApprovalRecord struct {
	// Username is who approved, as far as known. It is empty where the API server
	// cannot say who set the condition Approved.
	// +optional
	Username string `json:"username,omitempty"`

	// At is when it was approved.
	// +required
	At metav1.Time `json:"at"`

	// Channel is the channel by which the approval came: Kubectl, TemporalSignal, TemporalUpdate or Dashboard.
	// +kubebuilder:validation:Enum=Kubectl;TemporalSignal;TemporalUpdate;Dashboard
	// +required
	Channel ApprovalChannel `json:"channel"`

	// Verified tells whether username was established by the API server and not just claimed.
	// +required
	Verified bool `json:"verified"`

	// Comment of the user who approved.
	// +optional
	Comment string `json:"comment,omitempty"`

	// PlanHash is the plan that the approval is for, as the annotation fleetflow.io/plan-hash of the request has it, or its beginning
	// with 12 digits or more. If the run has another plan by then, the approval does not count.
	// +kubebuilder:validation:Pattern="^sha256:[0-9a-f]{12,64}$"
	// +optional
	PlanHash string `json:"planHash,omitempty"`
}

// How says by whom and through which channel an approval came, in words that follow "approved".
func (r ApprovalRecord) How() string {
	switch {
	case r.Username == "":
		return fmt.Sprintf("through %s (not verified: this API server cannot say who)", r.Channel.Text())
	case !r.Verified:
		return fmt.Sprintf("by %s through %s (not verified)", r.Username, r.Channel.Text())
	}
	return fmt.Sprintf("by %s through %s", r.Username, r.Channel.Text())
}

// ApprovalRequest asks for the approval of a stage of an update run in its namespace. Set the
// condition Approved to True in its status to approve.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:metadata:annotations="versions=v1,v1beta1"
// +kubebuilder:resource:scope=Namespaced,shortName=areq,categories={fleet,fleet-placement}
// +kubebuilder:selectablefield:JSONPath=`.spec.parentStageRollout`
// +kubebuilder:selectablefield:JSONPath=`.spec.targetStage`
// +kubebuilder:printcolumn:name="Update-Run",type=string,JSONPath=`.spec.parentStageRollout`
// +kubebuilder:printcolumn:name="Stage",type=string,JSONPath=`.spec.targetStage`
// +kubebuilder:printcolumn:name="Approved",type=string,JSONPath=`.status.conditions[?(@.type=="Approved")].status`
// +kubebuilder:printcolumn:name="ApprovalAccepted",type=string,JSONPath=`.status.conditions[?(@.type=="ApprovalAccepted")].status`
// +kubebuilder:printcolumn:name="Votes",type=string,priority=1,JSONPath=`.status.tally`
// +kubebuilder:printcolumn:name="Expires",type=string,priority=1,JSONPath=`.spec.expirationTime`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ApprovalRequest struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec says which stage of which run is to be approved.
	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="The spec field is immutable"
	Spec ApprovalRequestSpec `json:"spec"`

	// Status says whether it was approved.
	// +optional
	Status ApprovalRequestStatus `json:"status,omitempty"`
}
