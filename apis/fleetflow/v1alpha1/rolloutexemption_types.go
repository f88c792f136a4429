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

// RolloutExemption lets one update run, or one placement, go despite single things that hold it back: a hold, a window, an
// analysis. It says who has made it, why and until when. It never stands for an approval. Its spec does not change; an exemption
// that is over is kept for the record.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:metadata:annotations="versions=v1alpha1"
// +kubebuilder:resource:scope=Cluster,shortName=rex,categories={fleet,fleet-placement}
// +kubebuilder:selectablefield:JSONPath=`.spec.targetRef.kind`
// +kubebuilder:selectablefield:JSONPath=`.spec.targetRef.namespace`
// +kubebuilder:selectablefield:JSONPath=`.spec.targetRef.name`
// +kubebuilder:printcolumn:name="Kind",type=string,JSONPath=`.spec.targetRef.kind`
// +kubebuilder:printcolumn:name="Target",type=string,JSONPath=`.spec.targetRef.name`
// +kubebuilder:printcolumn:name="Exempt-From",type=string,JSONPath=`.spec.exemptFrom[*].kind`
// +kubebuilder:printcolumn:name="Created-By",type=string,JSONPath=`.status.createdBy.username`
// +kubebuilder:printcolumn:name="Accepted",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Accepted")].status`
// +kubebuilder:printcolumn:name="Effective",type=string,JSONPath=`.status.conditions[?(@.type=="Effective")].status`
// +kubebuilder:printcolumn:name="Expires",type=string,JSONPath=`.spec.expirationTime`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Namespace",type=string,priority=1,JSONPath=`.spec.targetRef.namespace`
// +kubebuilder:printcolumn:name="Ticket",type=string,priority=1,JSONPath=`.spec.ticket`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.spec.message`
type RolloutExemption struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec says what is exempt from what, why and until when. It is immutable.
	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="an exemption does not change: delete it, and create another one",reason=FieldValueInvalid
	Spec RolloutExemptionSpec `json:"spec"`

	// Status says who has made the exemption, and whether it counts.
	// +optional
	Status RolloutExemptionStatus `json:"status,omitempty"`
}

// RolloutExemptionSpec says what is exempt from what, why and until when.
//
// +kubebuilder:validation:XValidation:rule="self.targetRef.kind in ['ClusterStagedUpdateRun', 'StagedUpdateRun'] || self.exemptFrom.all(f, f.kind != 'StageAnalysis')",message="a StageAnalysis belongs to an update run: name a ClusterStagedUpdateRun or a StagedUpdateRun in targetRef",reason=FieldValueInvalid,fieldPath=".exemptFrom"
type RolloutExemptionSpec struct {
	// TargetRef names the update run that is exempt, or the placement whose rolling updates and evictions are. The update runs of a
	// placement are not: each of them takes an exemption of its own.
	// +required
	TargetRef ExemptTarget `json:"targetRef"`

	// ExemptFrom is what no longer holds it back.
	// +required
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=20
	// +listType=atomic
	ExemptFrom []ExemptFrom `json:"exemptFrom"`

	// Message says to people why. It is repeated in events and in the record of the run.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Message string `json:"message"`

	// Ticket is where more is to be read, such as INC-9.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Ticket string `json:"ticket,omitempty"`

	// ExpirationTime is when the exemption ends: within 24 hours of its creation.
	// +required
	ExpirationTime metav1.Time `json:"expirationTime"`
}

// ExemptTarget names an update run or a placement.
//
// +kubebuilder:validation:XValidation:rule="has(self.__namespace__) == (self.kind in ['StagedUpdateRun', 'ResourcePlacement'])",message="namespace belongs to the kinds StagedUpdateRun and ResourcePlacement, which need it: add namespace, or name the kind that is in none",reason=FieldValueInvalid,fieldPath=".namespace"
type ExemptTarget struct {
	// Kind is ClusterStagedUpdateRun, StagedUpdateRun, ClusterResourcePlacement or ResourcePlacement.
	// +required
	// +kubebuilder:validation:Enum=ClusterStagedUpdateRun;StagedUpdateRun;ClusterResourcePlacement;ResourcePlacement
	Kind string `json:"kind"`

	// Namespace of a StagedUpdateRun or ResourcePlacement.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace,omitempty"`

	// Name of the run or placement.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// UID of the run or placement, which kubectl fleet exempt fills in. The exemption is for that one only, and not for
	// another that gets its name afterwards. Without it, the exemption is for what was there when it was made.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	UID string `json:"uid,omitempty"`
}

// IsRun reports whether it names an update run.
func (t ExemptTarget) IsRun() bool {
	return t.Kind == t.scope().UpdateRunKind().Kind
}

// IsPlacement reports whether it names a placement.
func (t ExemptTarget) IsPlacement() bool {
	return t.Kind == t.scope().PlacementKind().Kind
}

func (t ExemptTarget) scope() placementv1beta1.Scope {
	return placementv1beta1.Scope{Namespace: t.Namespace}
}

// ExemptRun names an update run.
func ExemptRun(namespace, name string) ExemptTarget {
	t := ExemptTarget{Namespace: namespace, Name: name}
	t.Kind = t.scope().UpdateRunKind().Kind
	return t
}

// ExemptPlacement names a placement.
func ExemptPlacement(namespace, name string) ExemptTarget {
	t := ExemptTarget{Namespace: namespace, Name: name}
	t.Kind = t.scope().PlacementKind().Kind
	return t
}

// ExemptFrom is one thing that no longer holds a run or placement back.
//
// +kubebuilder:validation:XValidation:rule="self.kind != 'RolloutHold' || has(self.name)",message="name the hold: a line that is stopped later would not be",reason=FieldValueRequired,fieldPath=".name"
// +kubebuilder:validation:XValidation:rule="(self.kind == 'StageAnalysis') == has(self.stage)",message="stage belongs to kind StageAnalysis, which needs the name of the stage",reason=FieldValueInvalid,fieldPath=".stage"
// +kubebuilder:validation:XValidation:rule="self.kind != 'StageAnalysis' || !has(self.name)",message="the analyses of a stage are named by the stage, without name",reason=FieldValueForbidden,fieldPath=".name"
type ExemptFrom struct {
	// Kind is RolloutHold, RolloutWindow, StageAnalysis or BusyCluster: a cluster whose owner has asked that nothing begins on it.
	// +required
	Kind ExemptKind `json:"kind"`

	// Name of the RolloutHold, of the RolloutWindow or of the cluster; without it, all windows, or all clusters. An Allow from which something is exempt counts
	// for it as open, a Deny as not there.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`

	// Stage of the run whose analyses are waived.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Stage string `json:"stage,omitempty"`
}

// ExemptKind is a kind of things from which there are exemptions. Approvals are none: who may approve does.
//
// +kubebuilder:validation:Enum=RolloutHold;RolloutWindow;StageAnalysis;BusyCluster
type ExemptKind string

const (
	// ExemptFromHold is exempt from a RolloutHold.
	ExemptFromHold ExemptKind = "RolloutHold"
	// ExemptFromWindow is exempt from RolloutWindows.
	ExemptFromWindow ExemptKind = "RolloutWindow"
	// ExemptFromAnalysis waives the analyses of a stage.
	ExemptFromAnalysis ExemptKind = "StageAnalysis"
	// ExemptFromBusy is exempt from what owners of clusters have asked for.
	ExemptFromBusy ExemptKind = "BusyCluster"
)

// RolloutExemptionStatus says who has made an exemption, and whether it counts.
type RolloutExemptionStatus struct {
	// CreatedBy is the user who has created the exemption.
	// +optional
	CreatedBy *ExemptionCreator `json:"createdBy,omitempty"`

	// Conditions: Accepted is False if the exemption can never count: who has made it is not verified, and has to be, or it lasts too
	// long. Effective is True while the exemption counts, and says otherwise why it does not: it has expired, who has made
	// it is not verified, it lasts too long, or there is no such run or placement.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// RolloutExemptions is what RolloutExemptions are in URLs.
var RolloutExemptions = schema.GroupResource{Group: GroupName, Resource: "rolloutexemptions"}

// ExemptionCreator is a user who has created an exemption.
type ExemptionCreator struct {
	// Username is the name by which the hub's API server knows the user; empty if it has not said so.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Username string `json:"username,omitempty"`

	// Verified says whether the hub's API server vouches for the name.
	// +optional
	Verified bool `json:"verified"`
}

// Unverified stands in texts for the name of a user whom the hub's API server has not named.
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

// MadeBy returns who has made the exemption, and whether the hub's API server vouches for that: it notes the creator in an annotation,
// as on update runs.
func (e *RolloutExemption) MadeBy() (who string, verified bool) {
	if by := e.Annotations[placementv1beta1.CreatorAnnotation]; by != "" {
		return by, true
	}
	return Unverified, false
}

// Flaw returns why an exemption does not count whatever the time; empty if it may. With onlyVerified, one does not count of which
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

// IsFor reports whether the exemption is for a run or placement of its name, by the UID of that and by when it was created: one that
// got the name after the exemption was made may be something else than what the maker has looked at.
func (e *RolloutExemption) IsFor(uid types.UID, created metav1.Time) bool {
	if e.Spec.TargetRef.UID != "" {
		return e.Spec.TargetRef.UID == string(uid)
	}
	return e.CreationTimestamp.IsZero() || !e.CreationTimestamp.Before(&created)
}

// IsInForce reports whether the exemption counts at an instant.
func (e *RolloutExemption) IsInForce(now time.Time, onlyVerified bool) bool {
	reason, _ := e.Flaw(onlyVerified)
	return reason == "" && e.DeletionTimestamp.IsZero() && now.Before(e.Spec.ExpirationTime.Time)
}

// Record returns who has exempted what from what, until when and why, with the name of the exemption.
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
	kind := "run"
	name := s.TargetRef.Name
	if s.TargetRef.IsPlacement() {
		kind = "placement"
	}
	if s.TargetRef.Namespace != "" {
		name = s.TargetRef.Namespace + "/" + name
	}
	return kind + "/" + name
}

// FromText returns from what.
func (s *RolloutExemptionSpec) FromText() string {
	var all []string
	for _, from := range s.ExemptFrom {
		all = append(all, from.Text())
	}
	return strings.Join(all, ", ")
}

// Text names it, such as hold/incident-4711, window or analysis/canary.
func (f ExemptFrom) Text() string {
	word := map[ExemptKind]string{ExemptFromHold: "hold", ExemptFromWindow: "window", ExemptFromAnalysis: "analysis", ExemptFromBusy: "busy"}[f.Kind]
	if name := f.Name + f.Stage; name != "" {
		return word + "/" + name
	}
	return word
}

// Covers reports whether it is a hold, window or busy cluster of that name, or the analyses of that stage.
func (f ExemptFrom) Covers(kind ExemptKind, name string) bool {
	switch {
	case f.Kind != kind:
		return false
	case kind == ExemptFromAnalysis:
		return f.Stage == name
	}
	return f.Name == name || kind != ExemptFromHold && f.Name == ""
}
