package hub

import (
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

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

// Flags are the arguments that name the object on a command line.
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
	Object client.Object
	// Spec and Status are those of the object.
	Spec   *placementv1beta1.PlacementSpec
	Status *placementv1beta1.PlacementStatus
}

// ClusterPlacement returns the view of a ClusterResourcePlacement.
func ClusterPlacement(p *placementv1beta1.ClusterResourcePlacement) Placement {
	p.SetGroupVersionKind(placementv1beta1.GroupVersion.WithKind("ClusterResourcePlacement"))
	return Placement{Ref{KindPlacement, "", p.Name}, p, &p.Spec, &p.Status}
}

// NamespacedPlacement returns the view of a ResourcePlacement.
func NamespacedPlacement(p *placementv1beta1.ResourcePlacement) Placement {
	p.SetGroupVersionKind(placementv1beta1.GroupVersion.WithKind("ResourcePlacement"))
	return Placement{Ref{KindPlacement, p.Namespace, p.Name}, p, &p.Spec, &p.Status}
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

// External says whether staged update runs roll the placement out.
func (p Placement) External() bool {
	return p.Spec.Strategy != nil && p.Spec.Strategy.Type == placementv1beta1.ExternalRolloutStrategyType
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
	Object client.Object
	// Spec and Status are those of the object.
	Spec   *placementv1beta1.UpdateRunSpec
	Status *placementv1beta1.UpdateRunStatus
}

// ClusterRun returns the view of a ClusterStagedUpdateRun.
func ClusterRun(r *placementv1beta1.ClusterStagedUpdateRun) Run {
	r.SetGroupVersionKind(placementv1beta1.GroupVersion.WithKind("ClusterStagedUpdateRun"))
	return Run{Ref{KindRun, "", r.Name}, r, &r.Spec, &r.Status}
}

// NamespacedRun returns the view of a StagedUpdateRun.
func NamespacedRun(r *placementv1beta1.StagedUpdateRun) Run {
	r.SetGroupVersionKind(placementv1beta1.GroupVersion.WithKind("StagedUpdateRun"))
	return Run{Ref{KindRun, r.Namespace, r.Name}, r, &r.Spec, &r.Status}
}

// Condition returns a condition of the run as a whole, nil if it has none of the type.
func (r Run) Condition(conditionType string) *metav1.Condition {
	return meta.FindStatusCondition(r.Status.Conditions, conditionType)
}

// Placement names the placement that the run rolls out.
func (r Run) Placement() Ref { return Ref{KindPlacement, r.Namespace, r.Spec.PlacementName} }

// Outcome is how a run ended: True, False, or empty while it has not.
func (r Run) Outcome() metav1.ConditionStatus {
	if c := r.Condition(placementv1beta1.ConditionTypeSucceeded); c != nil && c.Status != metav1.ConditionUnknown {
		return c.Status
	}
	if meta.IsStatusConditionFalse(r.Status.Conditions, placementv1beta1.ConditionTypeInitialized) {
		return metav1.ConditionFalse
	}
	return ""
}

// Binding is a ClusterResourceBinding or a ResourceBinding.
type Binding struct {
	// Object is the object itself.
	Object client.Object
	// Spec and Status are those of the object.
	Spec   *placementv1beta1.ResourceBindingSpec
	Status *placementv1beta1.ResourceBindingStatus
}

// BindingOf returns the view of a binding of either kind, and whether the object is one.
func BindingOf(object client.Object) (Binding, bool) {
	switch b := object.(type) {
	case *placementv1beta1.ClusterResourceBinding:
		return Binding{b, &b.Spec, &b.Status}, true
	case *placementv1beta1.ResourceBinding:
		return Binding{b, &b.Spec, &b.Status}, true
	default:
		return Binding{}, false
	}
}

// Approval is a ClusterApprovalRequest or an ApprovalRequest.
type Approval struct {
	// Object is the object itself.
	Object client.Object
	// Spec and Status are those of the object.
	Spec   *placementv1beta1.ApprovalRequestSpec
	Status *placementv1beta1.ApprovalRequestStatus
}

// ApprovalOf returns the view of an approval request of either kind, and whether the object is one.
func ApprovalOf(object client.Object) (Approval, bool) {
	switch a := object.(type) {
	case *placementv1beta1.ClusterApprovalRequest:
		return Approval{a, &a.Spec, &a.Status}, true
	case *placementv1beta1.ApprovalRequest:
		return Approval{a, &a.Spec, &a.Status}, true
	default:
		return Approval{}, false
	}
}
