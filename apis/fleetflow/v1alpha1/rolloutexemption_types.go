package v1alpha1

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// RolloutExemption lets one update run, or one placement, go in spite of single things that hold it back: a hold, a window, an
// analysis. It says who has made it, why and until when. It never stands for an approval. Its spec does not change; an exemption
// that is over is kept for the record.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:metadata:annotations="versions=v1alpha1"
// +kubebuilder:resource:scope=Cluster,shortName=rex,categories={fleet,fleet-placement}
// +kubebuilder:printcolumn:name="Run",type=string,JSONPath=`.spec.run`
// +kubebuilder:printcolumn:name="Placement",type=string,JSONPath=`.spec.placement`
// +kubebuilder:printcolumn:name="From",type=string,JSONPath=`.spec.from[*].kind`
// +kubebuilder:printcolumn:name="By",type=string,JSONPath=`.status.by`
// +kubebuilder:printcolumn:name="Accepted",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Accepted")].status`
// +kubebuilder:printcolumn:name="Effective",type=string,JSONPath=`.status.conditions[?(@.type=="Effective")].status`
// +kubebuilder:printcolumn:name="Expires",type=string,JSONPath=`.spec.expirationTime`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Namespace",type=string,priority=1,JSONPath=`.spec.namespace`
// +kubebuilder:printcolumn:name="Ticket",type=string,priority=1,JSONPath=`.spec.ticket`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.spec.message`
type RolloutExemption struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec says what is exempt from what, why and until when. It is immutable.
	// +kubebuilder:validation:Required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="an exemption does not change: delete it, and create another one"
	Spec RolloutExemptionSpec `json:"spec"`

	// Status says who has made the exemption, and whether it counts.
	Status RolloutExemptionStatus `json:"status,omitempty"`
}

// RolloutExemptionSpec says what is exempt from what, why and until when.
//
// +kubebuilder:validation:XValidation:rule="has(self.run) != has(self.placement)",message="an exemption is for one run or for one placement: set exactly one of run and placement"
// +kubebuilder:validation:XValidation:rule="has(self.run) || self.from.all(f, f.kind != 'Analysis')",message="an Analysis belongs to an update run: set run instead of placement"
type RolloutExemptionSpec struct {
	// Run is the name of the ClusterStagedUpdateRun that is exempt, or, with namespace, of the StagedUpdateRun.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Run string `json:"run,omitempty"`

	// Placement is the name of the ClusterResourcePlacement whose rolling updates and evictions are exempt, or, with namespace,
	// of the ResourcePlacement. Its update runs are not: each of them takes an exemption of its own.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Placement string `json:"placement,omitempty"`

	// Namespace of the run or placement, if it is in one.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace,omitempty"`

	// UID is that of the run or placement, which kubectl fleet exempt fills in. The exemption is for that one only, and not for
	// another that gets its name afterwards. Without it, the exemption is for what was there when it was made.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	UID string `json:"uid,omitempty"`

	// From is what no longer holds it back.
	// +kubebuilder:validation:Required
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=20
	From []ExemptFrom `json:"from"`

	// Message says to people why. It is repeated in events and in the record of the run.
	// +kubebuilder:validation:Required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Message string `json:"message"`

	// Ticket is where more is to be read, such as INC-9.
	// +kubebuilder:validation:MaxLength=128
	Ticket string `json:"ticket,omitempty"`

	// ExpirationTime is when the exemption ends: within 24 hours of its creation.
	// +kubebuilder:validation:Required
	ExpirationTime metav1.Time `json:"expirationTime"`
}

// ExemptFrom is one thing that no longer holds a run or placement back.
//
// +kubebuilder:validation:XValidation:rule="self.kind != 'Hold' || has(self.name)",message="name the hold: a line that is stopped later would not be"
// +kubebuilder:validation:XValidation:rule="(self.kind == 'Analysis') == has(self.stage)",message="stage belongs to kind Analysis, which needs the name of the stage"
// +kubebuilder:validation:XValidation:rule="self.kind != 'Analysis' || !has(self.name)",message="an Analysis is named by its stage, without name"
type ExemptFrom struct {
	// Kind is Hold, Window or Analysis.
	// +kubebuilder:validation:Required
	Kind ExemptKind `json:"kind"`

	// Name of the RolloutHold, or of the RolloutWindow; without it, all windows. An Allow from which something is exempt counts
	// for it as open, a Deny as not there.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`

	// Stage of the run whose analyses are waived.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Stage string `json:"stage,omitempty"`
}

// ExemptKind is a kind of things from which there are exemptions. Approvals are none: who may approve does.
//
// +kubebuilder:validation:Enum=Hold;Window;Analysis
type ExemptKind string

const (
	// ExemptFromHold is exempt from a RolloutHold.
	ExemptFromHold ExemptKind = "Hold"
	// ExemptFromWindow is exempt from RolloutWindows.
	ExemptFromWindow ExemptKind = "Window"
	// ExemptFromAnalysis waives the analyses of a stage.
	ExemptFromAnalysis ExemptKind = "Analysis"
)

// RolloutExemptionStatus says who has made an exemption, and whether it counts.
type RolloutExemptionStatus struct {
	// By is the user who has created the exemption, as the hub's API server knows the user; unverified if it has not said so.
	By string `json:"by,omitempty"`

	// Conditions: Accepted is False if the exemption can never count: who has made it is not verified, and has to be, or it lasts too
	// long. Effective is True while the exemption counts, and says otherwise why it does not: it has expired, who has made
	// it is not verified, it lasts too long, or there is no such run or placement.
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// RolloutExemptions is what RolloutExemptions are in URLs.
var RolloutExemptions = schema.GroupResource{Group: GroupName, Resource: "rolloutexemptions"}

// Unverified is what status.by says if the hub's API server has not said who has made an exemption.
const Unverified = "unverified"

// MaxExemption is for how long an exemption may last.
const MaxExemption = 24 * time.Hour

// exemptionSlack is by how much the clocks of those who make exemptions may differ from that of the hub's API server.
const exemptionSlack = time.Minute

// Reasons of the condition Effective of an exemption.
const (
	ReasonExemptionInForce    = "ExemptionInForce"    // the exemption counts
	ReasonExemptionExpired    = "ExemptionExpired"    // the time of spec.expirationTime has come
	ReasonExemptionUnverified = "ExemptionUnverified" // who has made it is not verified, and has to be
	ReasonExemptionTooLong    = "ExemptionTooLong"    // it lasts for more than 24 hours
	ReasonExemptionNoTarget   = "NoSuchTarget"        // there is no such run or placement now, or only one that came after the exemption
)

// MadeBy is who has made the exemption, and whether the hub's API server vouches for that: it notes the creator in an annotation,
// as on update runs.
func (e *RolloutExemption) MadeBy() (who string, verified bool) {
	if by := e.Annotations[placementv1beta1.CreatorAnnotation]; by != "" {
		return by, true
	}
	return Unverified, false
}

// Flaw says why an exemption does not count whatever the time; empty if it may. With onlyVerified, one does not count of which
// the hub's API server does not say who has made it.
func (e *RolloutExemption) Flaw(onlyVerified bool) (reason, message string) {
	if _, verified := e.MadeBy(); !verified && onlyVerified {
		return ReasonExemptionUnverified, "The exemption does not count: the hub's API server has not noted who has made it, which Kubernetes 1.36 does. " +
			"Create it with kubectl fleet exempt, or set requireVerifiedExemptions of the hub agent's chart to false"
	}
	if lasts := e.Spec.ExpirationTime.Sub(e.CreationTimestamp.Time); !e.CreationTimestamp.IsZero() && lasts > MaxExemption+exemptionSlack {
		return ReasonExemptionTooLong, fmt.Sprintf("The exemption does not count: it would last for %s, and may for %s: create one with an earlier expirationTime",
			lasts.Round(time.Minute), MaxExemption)
	}
	return "", ""
}

// IsFor says whether the exemption is for a run or placement of its name, by the UID of that and by when it was created: one that
// got the name after the exemption was made may be something else than what the maker has looked at.
func (e *RolloutExemption) IsFor(uid types.UID, created metav1.Time) bool {
	if e.Spec.UID != "" {
		return e.Spec.UID == string(uid)
	}
	return e.CreationTimestamp.IsZero() || !e.CreationTimestamp.Before(&created)
}

// IsInForce says whether the exemption counts at an instant.
func (e *RolloutExemption) IsInForce(now time.Time, onlyVerified bool) bool {
	reason, _ := e.Flaw(onlyVerified)
	return reason == "" && e.DeletionTimestamp.IsZero() && now.Before(e.Spec.ExpirationTime.Time)
}

// Record says who has exempted what from what, until when and why, with the name of the exemption.
func (e *RolloutExemption) Record() string {
	by, _ := e.MadeBy()
	text := fmt.Sprintf("exemption %s: %s exempts %s from %s until %s: %s", e.Name, by, e.Spec.TargetText(), e.Spec.FromText(),
		e.Spec.ExpirationTime.UTC().Format(time.RFC3339), e.Spec.Message)
	if e.Spec.Ticket != "" {
		text += " (" + e.Spec.Ticket + ")"
	}
	return text
}

// TargetText names what is exempt, such as run/web-17 or placement/team-a/web.
func (s *RolloutExemptionSpec) TargetText() string {
	kind, name := "run", s.Run
	if s.Placement != "" {
		kind, name = "placement", s.Placement
	}
	if s.Namespace != "" {
		name = s.Namespace + "/" + name
	}
	return kind + "/" + name
}

// FromText says from what.
func (s *RolloutExemptionSpec) FromText() string {
	var all []string
	for _, from := range s.From {
		all = append(all, from.Text())
	}
	return strings.Join(all, ", ")
}

// Text names it, such as hold/incident-4711, window or analysis/canary.
func (f ExemptFrom) Text() string {
	word := strings.ToLower(string(f.Kind))
	if name := f.Name + f.Stage; name != "" {
		return word + "/" + name
	}
	return word
}

// Covers says whether it is a hold or window of that name, or the analyses of that stage.
func (f ExemptFrom) Covers(kind ExemptKind, name string) bool {
	switch {
	case f.Kind != kind:
		return false
	case kind == ExemptFromAnalysis:
		return f.Stage == name
	}
	return f.Name == name || kind == ExemptFromWindow && f.Name == ""
}
