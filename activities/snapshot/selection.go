package snapshot

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// InvalidError describes what is wrong with resource selectors if only a person can correct it, and how.
type InvalidError struct {
	Message string
	// Reason is empty if the selectors themselves are invalid.
	Reason string
}

// ReasonTooMuch is the reason of an InvalidError and of a verdict if the selectors select too
// much.
const ReasonTooMuch = "TooMuch"

// Error returns the message for the user.
func (e *InvalidError) Error() string { return e.Message }

func newInvalidError(format string, args ...any) error {
	return &InvalidError{Message: fmt.Sprintf(format, args...)}
}

// Rule is a resource selector that was checked against what the hub serves.
type Rule struct {
	// Index of the selector in the placement.
	Index int
	Kind  Kind
	// Namespace of what the rule selects, if it is one of a placement in a namespace.
	Namespace string
	// Name of the one object the rule selects; empty if it goes by labels.
	Name string
	// Labels the objects must have; everything matches if the selector had none.
	Labels labels.Selector
	// Scope says what is placed with a Namespace.
	Scope placementv1beta1.SelectionScope

	filter Filter
}

// Matches reports whether the rule selects an object of its kind.
func (r Rule) Matches(object metav1.Object) bool {
	if r.Kind.GroupKind() == NamespaceKind && r.filter.SkipsNamespace(object.GetName()) {
		return false
	}
	if r.Namespace != "" && object.GetNamespace() != r.Namespace {
		return false
	}
	if r.Name != "" {
		return object.GetName() == r.Name
	}
	return r.Labels.Matches(labels.Set(object.GetLabels()))
}

// Selection is what a placement selects, checked and ready to be matched.
type Selection struct {
	// Rules that apply by themselves: over cluster-scoped kinds, Namespaces included, or, for
	// a placement in a namespace, over what is in that.
	Rules []Rule
	// Inside are rules over namespaced kinds; they apply within the selected
	// Namespace if its scope is NamespaceWithResourceSelectors, and only then exist.
	Inside []Rule
	// Held are the kinds that the placement can select and that are held, by name, sorted. Rules over
	// them are left out, except over Namespaces: they tell which other objects are selected.
	Held []string

	// insideOne says that the placement is in a namespace and selects there.
	insideOne bool
}

// Contents returns the rules that decide what is placed with a Namespace that a rule selected: nil rules and all=false if it is the
// Namespace alone.
func (s *Selection) Contents(rule Rule) (rules []Rule, all bool) {
	switch rule.Scope {
	case placementv1beta1.NamespaceOnly:
		return nil, false
	case placementv1beta1.NamespaceWithResourceSelectors:
		return s.Inside, false
	default:
		return nil, true
	}
}

// Compile checks the resource selectors of a placement of a scope against what the hub
// serves. The error is an InvalidError, unless it is only that an API group cannot be read
// now.
func Compile(scope placementv1beta1.Scope, terms []placementv1beta1.ResourceSelectorTerm, catalog *Catalog) (*Selection, error) {
	selection := &Selection{insideOne: scope.Namespaced()}
	if err := checkScope(scope, catalog); err != nil {
		return nil, err
	}
	byRules := bySelectors(terms)
	for i := range terms {
		rule, err := compileTerm(i, &terms[i], catalog)
		if err != nil {
			return nil, err
		}
		name, held := catalog.HeldAs(rule.Kind.GroupKind())
		refusal := catalog.filter.refuseTerm(rule.Kind.GroupKind(), rule.Name, rule.Scope)
		switch {
		case scope.Namespaced() && !rule.Kind.Namespaced:
			return nil, newInvalidError("resourceSelectors[%d] selects %s, which is cluster-scoped, and a ResourcePlacement selects what is in its own namespace: remove the selector, or have it placed by a ClusterResourcePlacement", i, rule.Kind)
		case !scope.Namespaced() && rule.Kind.Namespaced && !byRules:
			return nil, newInvalidError("resourceSelectors[%d] selects %s, which lives in namespaces: select its Namespace instead, and everything in it is placed with it", i, rule.Kind)
		case !rule.Kind.Namespaced && refusal != "":
			return nil, newInvalidError("resourceSelectors[%d] selects %s, and %s", i, describeTerm(rule), refusal)
		case held && rule.Kind.GroupKind() != NamespaceKind:
			selection.holdKind(name)
		case scope.Namespaced():
			rule.Namespace = scope.Namespace
			selection.Rules = append(selection.Rules, rule)
		case !rule.Kind.Namespaced:
			selection.Rules = append(selection.Rules, rule)
		default:
			selection.Inside = append(selection.Inside, rule)
		}
	}
	selection.holdNamespaces(catalog)
	return selection, nil
}

// checkScope refuses the placements of a namespace from which nothing is placed.
func checkScope(scope placementv1beta1.Scope, catalog *Catalog) error {
	switch {
	case ReservedNamespace(scope.Namespace):
		return newInvalidError("the placement is in namespace %q, which is reserved: nothing in namespaces named default, kube-* and fleet-* is ever placed; move the placement and what you want to place to another namespace", scope.Namespace)
	case scope.Namespaced() && catalog.filter.SkipsNamespace(scope.Namespace):
		return newInvalidError("the placement is in namespace %q, which the hub agent's flag --%s keeps from being placed: move it to another namespace, or have the flag changed", scope.Namespace, SkippedNamespacesFlag)
	}
	if refusal := catalog.filter.refuseElsewhere(scope.Namespace); scope.Namespaced() && refusal != "" {
		return newInvalidError("the placement is in namespace %q, and %s: move it to one of these, or have the flag changed",
			scope.Namespace, refusal)
	}
	return nil
}

// describeTerm names what a rule selects.
func describeTerm(rule Rule) string {
	switch {
	case rule.Name == "":
		return rule.Kind.String()
	case rule.Kind.GroupKind() == NamespaceKind:
		return fmt.Sprintf("namespace %q", rule.Name)
	}
	return fmt.Sprintf("%s %q", rule.Kind, rule.Name)
}

// bySelectors reports whether a Namespace is selected together with selectors for
// its contents.
func bySelectors(terms []placementv1beta1.ResourceSelectorTerm) bool {
	return slices.ContainsFunc(terms, func(term placementv1beta1.ResourceSelectorTerm) bool {
		return term.Kind == NamespaceKind.Kind && term.Group == NamespaceKind.Group &&
			term.SelectionScope == placementv1beta1.NamespaceWithResourceSelectors
	})
}

func compileTerm(i int, term *placementv1beta1.ResourceSelectorTerm, catalog *Catalog) (Rule, error) {
	gvk := schema.GroupVersionKind{Group: term.Group, Version: term.Version, Kind: term.Kind}
	rule := Rule{Index: i, Name: term.Name, Labels: labels.Everything(), Scope: term.SelectionScope, filter: catalog.filter}
	if Disabled(gvk.GroupKind()) {
		return rule, newInvalidError("resourceSelectors[%d] selects %s, a kind that is never placed: remove the selector", i,
			Kind{GroupVersionKind: gvk})
	}
	kind, ok := catalog.Lookup(gvk)
	switch {
	case !ok:
		return rule, unknownKind(i, gvk, catalog)
	case catalog.filter.reasonToExclude(gvk) != "":
		return rule, newInvalidError("resourceSelectors[%d] selects %s, a kind that %s: remove the selector, or have the flag changed", i, kind,
			catalog.filter.reasonToExclude(gvk))
	case !kind.Placeable:
		return rule, newInvalidError("resourceSelectors[%d] selects %s, which cannot be listed, watched and created: remove the selector", i, kind)
	case gvk.GroupKind() == NamespaceKind && ReservedNamespace(term.Name):
		return rule, newInvalidError("resourceSelectors[%d] selects namespace %q, which is reserved: namespaces named default, kube-* and fleet-* are never placed; move what you want to place to another namespace", i, term.Name)
	case gvk.GroupKind() == NamespaceKind && catalog.filter.SkipsNamespace(term.Name):
		return rule, newInvalidError("resourceSelectors[%d] selects namespace %q, which the hub agent's flag --%s keeps from being placed: remove the selector, or have the flag changed", i, term.Name, SkippedNamespacesFlag)
	case term.Name != "" && term.LabelSelector != nil:
		return rule, newInvalidError("resourceSelectors[%d] has both a name and a labelSelector: remove one of them", i)
	}
	rule.Kind = kind
	if term.LabelSelector != nil {
		selector, err := metav1.LabelSelectorAsSelector(term.LabelSelector)
		if err != nil {
			return rule, newInvalidError("resourceSelectors[%d] has a labelSelector that cannot be read: %v", i, err)
		}
		rule.Labels = selector
	}
	return rule, nil
}

func unknownKind(i int, gvk schema.GroupVersionKind, catalog *Catalog) error {
	kind := Kind{GroupVersionKind: gvk}
	if versions := catalog.Versions(gvk.GroupKind()); len(versions) > 0 {
		return newInvalidError("resourceSelectors[%d] selects %s, but the hub serves this kind as %s: correct the version", i, kind,
			strings.Join(versions, ", "))
	}
	if cause, ok := catalog.unreadable[gvk.Group]; ok {
		return fmt.Errorf("resourceSelectors[%d] selects %s, whose API group cannot be read now: %w", i, kind, cause)
	}
	return newInvalidError("resourceSelectors[%d] selects %s, a kind the hub does not serve: correct group, version and kind, or install its CustomResourceDefinition on the hub", i, kind)
}

// NamespaceMissing refuses a Namespace that other selectors need, and that is not placed for now. It begins with
// KubeFleet's sentence.
func (r Rule) NamespaceMissing(unfit bool) error {
	return newInvalidError("NamespaceWithResourceSelectors mode requires exactly one namespace, but no namespaces were selected: %s",
		r.Missing(unfit))
}

// SelectedTwice refuses an object that another rule has selected before. It ends with KubeFleet's sentence.
func (r Rule) SelectedTwice(first Rule, object Identity) error {
	name := placementv1beta1.Scope{Namespace: object.Namespace}.String() + object.Name
	return newInvalidError("resourceSelectors[%d] and resourceSelectors[%d] both select %s %q: change one of them so that each object is selected once, "+
		"or remove it (found duplicate resource)", first.Index, r.Index, r.Kind, name)
}

// All returns a rule that selects every object of a kind.
func All(kind Kind) Rule {
	return Rule{Kind: kind, Labels: labels.Everything()}
}

// Missing says that the one object the rule selects is not placed for now: there is
// none, or it is unfit because it is on its way out or was made by a controller.
func (r Rule) Missing(unfit bool) string {
	why := "which does not exist on the hub; it is placed as soon as it does"
	if unfit {
		why = "which is being deleted, or is none that is placed because Kubernetes or the fleet makes it itself"
	}
	return fmt.Sprintf("resourceSelectors[%d] selects %s %q, %s", r.Index, r.Kind, r.Name, why)
}
