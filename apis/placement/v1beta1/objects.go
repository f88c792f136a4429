package v1beta1

import (
	"reflect"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Most kinds of this group exist twice: cluster-scoped, and as a twin in a
// namespace. The interfaces below are what both have in common, and Scope makes
// objects of one or the other. The interfaces of kinds whose twins have the same
// spec are generated, as are the methods of Scope that choose between the two.

// Object is an API object.
//
// +kubebuilder:object:generate=false
type Object interface {
	metav1.Object
	runtime.Object
}

// ConditionedObject is an object whose status has conditions.
//
// +kubebuilder:object:generate=false
type ConditionedObject interface {
	Object
	GetConditions() []metav1.Condition
	SetConditions(conditions []metav1.Condition)
}

// overrideContent is what an override says, and its snapshots as well.
type overrideContent interface {
	// GetOverridePlacement returns the placement it was made for; nil for all.
	GetOverridePlacement() *PlacementRef
	// GetOverrideSelectors returns the resources it selects, with the namespace of the
	// override if it has one.
	GetOverrideSelectors() []ResourceIdentifier
	GetOverridePolicy() *OverridePolicy
	// GetOverrideSpec returns a pointer to the whole spec of the override, as it is written in JSON.
	GetOverrideSpec() any
}

// OverrideObject is a ClusterResourceOverride or a ResourceOverride.
//
// +kubebuilder:object:generate=false
type OverrideObject interface {
	ConditionedObject
	overrideContent
}

// OverrideSnapshotObject is a ClusterResourceOverrideSnapshot or a ResourceOverrideSnapshot.
//
// +kubebuilder:object:generate=false
type OverrideSnapshotObject interface {
	Object
	overrideContent
	GetOverrideHash() []byte
}

// ObjectList is a list whose items are spoken to by the interface of their twins.
//
// +kubebuilder:object:generate=false
type ObjectList[T Object] interface {
	metav1.ListInterface
	runtime.Object
	// Objects returns pointers to the items.
	Objects() []T
}

// Scope is where the objects of a placement or a run live: in a namespace or,
// if that is empty, cluster-scoped. The namespace also chooses the kind: of each
// pair of twins, the cluster-scoped or the namespaced one.
//
// +kubebuilder:object:generate=false
type Scope struct{ Namespace string }

// AnyNamespace is the scope of all namespaces together, for lists and watches of the kinds in namespaces. No object lives
// in it.
var AnyNamespace = Scope{Namespace: "*"}

// Scopes returns the scopes that have all objects between them: the cluster scope, and that of all namespaces.
func Scopes() []Scope { return []Scope{{}, AnyNamespace} }

// ScopeOf returns the scope that an object lives in.
func ScopeOf(o metav1.Object) Scope { return Scope{Namespace: o.GetNamespace()} }

// Namespaced reports whether the scope is a namespace.
func (s Scope) Namespaced() bool { return s.Namespace != "" }

// Key returns the key of an object of the scope.
func (s Scope) Key(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: s.Namespace, Name: name}
}

// ControllerName returns the name of the controller that does something for the kinds of the scope. Those of the kinds in
// namespaces have a name of their own, by which metrics and logs tell the two apart.
func (s Scope) ControllerName(does string) string { return does + twin(s, "", "-in-namespaces") }

// Word replaces, in a text that names cluster-scoped kinds, their names by those of the scope. No name of an object reads
// like that of a kind.
func (s Scope) Word(text string) string {
	if !s.Namespaced() {
		return text
	}
	return kindsInNamespaces.Replace(text)
}

// kindsInNamespaces names the kinds in namespaces instead of the cluster-scoped ones of which users' texts tell.
var kindsInNamespaces = func() *strings.Replacer {
	pairs := []string{"crp status", "rp status"}
	for _, kindOf := range []func(Scope) schema.GroupVersionKind{
		Scope.PlacementKind, Scope.PolicySnapshotKind, Scope.ResourceSnapshotKind, Scope.BindingKind,
		Scope.UpdateStrategyKind, Scope.UpdateRunKind, Scope.ApprovalRequestKind,
	} {
		clusterScoped := kindOf(Scope{}).Kind
		namespaced := kindOf(AnyNamespace).Kind
		pairs = append(pairs, clusterScoped, namespaced, lowerFirst(clusterScoped), lowerFirst(namespaced))
	}
	return strings.NewReplacer(pairs...)
}()

func lowerFirst(kind string) string { return strings.ToLower(kind[:1]) + kind[1:] }

// String returns the namespace and a slash, and empty for cluster-scoped objects: what
// comes before a name.
func (s Scope) String() string {
	if s.Namespace == "" {
		return ""
	}
	return s.Namespace + "/"
}

// twin returns the cluster-scoped or the namespaced one of two new objects.
func twin[T any](s Scope, clusterScoped, namespaced T) T {
	if s.Namespaced() {
		return namespaced
	}
	return clusterScoped
}

func named[T Object](s Scope, name string, o T) T {
	o.SetNamespace(s.Namespace)
	o.SetName(name)
	return o
}

// OverrideLists returns an empty list of the overrides of either kind: those of all
// namespaces concern the placements of the cluster scope, too.
func OverrideLists() []ObjectList[OverrideObject] {
	return []ObjectList[OverrideObject]{&ClusterResourceOverrideList{}, &ResourceOverrideList{}}
}

// OverrideSnapshotLists returns an empty list of the override snapshots of either kind.
func OverrideSnapshotLists() []ObjectList[OverrideSnapshotObject] {
	return []ObjectList[OverrideSnapshotObject]{&ClusterResourceOverrideSnapshotList{}, &ResourceOverrideSnapshotList{}}
}

// pointersTo returns pointers to the items of a list.
func pointersTo[T Object, E any, P interface {
	*E
	Object
}](items []E) []T {
	objects := make([]T, len(items))
	for i := range items {
		objects[i] = any(P(&items[i])).(T)
	}
	return objects
}

// DeepCopyOf returns a deep copy of an object.
func DeepCopyOf[T Object](o T) T { return o.DeepCopyObject().(T) }

// CopyInto makes an object what another of the same kind is.
func CopyInto[T Object](to, from T) {
	reflect.ValueOf(to).Elem().Set(reflect.ValueOf(from.DeepCopyObject()).Elem())
}
