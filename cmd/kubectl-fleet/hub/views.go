package hub

import (
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// Kind is what an object is to the user.
type Kind string

// Kinds of objects that commands are about.
const (
	KindPlacement Kind = "placement"
	KindRun       Kind = "run"
	KindMember    Kind = "member"
)

// Ref names an object as users do.
type Ref struct {
	Kind Kind `json:"kind"`
	// Namespace is empty for cluster-scoped objects.
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// String is kind/name, or kind/namespace/name.
func (r Ref) String() string {
	if r.Namespace == "" {
		return string(r.Kind) + "/" + r.Name
	}
	return string(r.Kind) + "/" + r.Namespace + "/" + r.Name
}

// Qualified is namespace/name for namespaced objects, else the name.
func (r Ref) Qualified() string {
	if r.Namespace == "" {
		return r.Name
	}
	return r.Namespace + "/" + r.Name
}

// Path returns where a dashboard shows the object: /runs/web-17, or /ns/shop/runs/nightly.
func (r Ref) Path() string {
	path := "/" + map[Kind]string{KindPlacement: "placements", KindRun: "runs", KindMember: "clusters"}[r.Kind] + "/" + r.Name
	if r.Namespace == "" {
		return path
	}
	return "/ns/" + r.Namespace + path
}

// Flags returns the arguments that name the object on a command line.
func (r Ref) Flags() string {
	if r.Namespace == "" {
		return string(r.Kind) + "/" + r.Name
	}
	return string(r.Kind) + "/" + r.Name + " -n " + r.Namespace
}

// Placement is a ClusterResourcePlacement or a ResourcePlacement.
type Placement struct {
	Ref
	// Object is the object itself.
	Object placementv1beta1.PlacementObject
	// Spec and Status are those of the object.
	Spec   *placementv1beta1.PlacementSpec
	Status *placementv1beta1.PlacementStatus
}

// PlacementOf returns the view of a placement.
func PlacementOf(p placementv1beta1.PlacementObject) Placement {
	scope := placementv1beta1.ScopeOf(p)
	p.GetObjectKind().SetGroupVersionKind(scope.PlacementKind())
	return Placement{Ref{KindPlacement, scope.Namespace, p.GetName()}, p, p.GetPlacementSpec(), p.GetPlacementStatus()}
}

// Condition returns the condition of a placement as a whole by its plain type, such as Applied; nil if it has none.
func (p Placement) Condition(plain string) *metav1.Condition {
	for i := range p.Status.Conditions {
		if condition := &p.Status.Conditions[i]; Plain(condition.Type) == plain {
			return condition
		}
	}
	return nil
}

// Current returns a condition of the placement as a whole if it is about the placement as it is now.
func (p Placement) Current(plain string) *metav1.Condition {
	condition := p.Condition(plain)
	if condition == nil || condition.ObservedGeneration < p.Object.GetGeneration() {
		return nil
	}
	return condition
}

// External reports whether staged update runs roll the placement out.
func (p Placement) External() bool {
	return rules.IsExternal(p.Object)
}

// Plain returns a condition type of a placement as a whole without the kind it begins with.
func Plain(conditionType string) string {
	for _, prefix := range []string{"ClusterResourcePlacement", "ResourcePlacement"} {
		if plain, ok := strings.CutPrefix(conditionType, prefix); ok && plain != "" {
			return plain
		}
	}
	return conditionType
}

// Run is a ClusterStagedUpdateRun or a StagedUpdateRun.
type Run struct {
	Ref
	// Object is the object itself.
	Object placementv1beta1.UpdateRunObject
	// Spec and Status are those of the object.
	Spec   *placementv1beta1.UpdateRunSpec
	Status *placementv1beta1.UpdateRunStatus
}

// RunOf returns the view of a run.
func RunOf(r placementv1beta1.UpdateRunObject) Run {
	scope := placementv1beta1.ScopeOf(r)
	r.GetObjectKind().SetGroupVersionKind(scope.UpdateRunKind())
	return Run{Ref{KindRun, scope.Namespace, r.GetName()}, r, r.GetUpdateRunSpec(), r.GetUpdateRunStatus()}
}

// Condition returns a condition of the run as a whole, nil if it has none of the type.
func (r Run) Condition(conditionType string) *metav1.Condition {
	return meta.FindStatusCondition(r.Status.Conditions, conditionType)
}

// Placement names the placement that the run rolls out.
func (r Run) Placement() Ref { return Ref{KindPlacement, r.Namespace, r.Spec.PlacementName} }

// Outcome returns how a run ended: True, False, or empty while it has not.
func (r Run) Outcome() metav1.ConditionStatus {
	switch {
	case !rules.IsRunOver(r.Object):
		return ""
	case meta.IsStatusConditionTrue(r.Status.Conditions, placementv1beta1.ConditionTypeSucceeded):
		return metav1.ConditionTrue
	}
	return metav1.ConditionFalse
}

// Binding is a ClusterResourceBinding or a ResourceBinding.
type Binding struct {
	// Object is the object itself.
	Object placementv1beta1.BindingObject
	// Spec and Status are those of the object.
	Spec   *placementv1beta1.ResourceBindingSpec
	Status *placementv1beta1.ResourceBindingStatus
}

// BindingOf returns the view of a binding.
func BindingOf(b placementv1beta1.BindingObject) Binding {
	return Binding{b, b.GetBindingSpec(), b.GetBindingStatus()}
}

// Approval is a ClusterApprovalRequest or an ApprovalRequest.
type Approval struct {
	// Object is the object itself.
	Object placementv1beta1.ApprovalRequestObject
	// Spec and Status are those of the object.
	Spec   *placementv1beta1.ApprovalRequestSpec
	Status *placementv1beta1.ApprovalRequestStatus
}

// ApprovalOf returns the view of an approval request.
func ApprovalOf(a placementv1beta1.ApprovalRequestObject) Approval {
	return Approval{a, a.GetApprovalRequestSpec(), a.GetApprovalRequestStatus()}
}
