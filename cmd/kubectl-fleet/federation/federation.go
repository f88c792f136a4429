// Package federation makes placements of objects that there are.
package federation

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fleetflow/fleetflow/activities/snapshot"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// Object is what is to be placed.
type Object struct {
	schema.GroupVersionKind
	// Namespace is empty if the object is cluster-scoped.
	Namespace string
	Name      string
}

// String returns the object as users name it.
func (o Object) String() string { return strings.ToLower(o.Kind) + "/" + o.Name }

func namespaceOf(name string) Object {
	return Object{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: snapshot.NamespaceKind.Kind}, Name: name}
}

// Check returns why an object cannot be placed by its name.
func Check(o Object) error {
	switch {
	case snapshot.Disabled(o.GroupKind()):
		return fmt.Errorf("%s is of a kind that is never placed", o)
	case o.GroupKind() == snapshot.NamespaceKind && snapshot.ReservedNamespace(o.Name):
		return fmt.Errorf("%s is reserved: default, kube-* and fleet-* are never placed", o)
	case o.Namespace != "" && snapshot.ReservedNamespace(o.Namespace):
		return fmt.Errorf("%s lives in namespace %s, which is reserved: default, kube-* and fleet-* are never placed, nor is anything in them; "+
			"--namespace names another one", o, o.Namespace)
	default:
		return nil
	}
}

// Gather leaves out what is placed with a namespace that is placed as a whole, and what comes twice. The notes say which objects
// are placed with which namespace.
func Gather(objects []Object) (kept []Object, notes []string) {
	for _, o := range objects {
		switch {
		case slices.Contains(kept, o):
		case o.Namespace != "" && slices.Contains(objects, namespaceOf(o.Namespace)):
			notes = append(notes, fmt.Sprintf("%s is placed with namespace/%s, as is everything else in it", o, o.Namespace))
		default:
			kept = append(kept, o)
		}
	}
	return kept, notes
}

// Together returns why objects do not go into one placement: it names objects of one namespace, and then no other namespace.
func Together(objects []Object) error {
	home := ""
	for _, o := range objects {
		if o.Namespace != "" && home != "" && o.Namespace != home {
			return fmt.Errorf("a placement names objects of one namespace, not of %s and %s: make one placement for each", home, o.Namespace)
		}
		home = max(home, o.Namespace)
	}
	for _, o := range objects {
		if home != "" && o.GroupKind() == snapshot.NamespaceKind {
			return fmt.Errorf("a placement that names objects of namespace %s cannot also have %s: make one placement for each", home, o)
		}
	}
	return nil
}

// Lift replaces objects that live in namespaces with their namespaces. The order stays; nothing comes twice. The notes say which
// objects are placed with which namespace.
func Lift(objects []Object) (lifted []Object, notes []string) {
	for _, o := range objects {
		if o.Namespace != "" {
			notes = append(notes, fmt.Sprintf("%s is placed with namespace/%s, as is everything else in it", o, o.Namespace))
			o = namespaceOf(o.Namespace)
		}
		if !slices.Contains(lifted, o) {
			lifted = append(lifted, o)
		}
	}
	return lifted, notes
}

// Options are where and how objects are placed.
type Options struct {
	// Name of the placement; that of the first object if empty.
	Name string
	// Clusters are all of them if empty.
	Clusters []string
	// Strategy is RollingUpdate if empty.
	Strategy placementv1beta1.RolloutStrategyType
	// NamespaceOnly leaves all that is in a namespace out.
	NamespaceOnly bool
	// Inside are the only kinds that are placed with the namespace; all of them if nil.
	Inside []schema.GroupVersionKind
}

// Validate refuses what no placement can say.
func (o Options) Validate() error {
	switch o.Strategy {
	case "", placementv1beta1.RollingUpdateRolloutStrategyType, placementv1beta1.ExternalRolloutStrategyType:
		return nil
	default:
		return fmt.Errorf("--strategy %q is not known: use %s or %s",
			o.Strategy, placementv1beta1.RollingUpdateRolloutStrategyType, placementv1beta1.ExternalRolloutStrategyType)
	}
}

// Placement returns the placement of objects. One that lives in a namespace is placed with the namespace and nothing else of
// it.
func Placement(objects []Object, o Options) (*placementv1beta1.ClusterResourcePlacement, error) {
	if len(objects) == 0 {
		return nil, errors.New("there is nothing to place")
	}
	if err := Together(objects); err != nil {
		return nil, err
	}
	p := &placementv1beta1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: o.Name}}
	p.SetGroupVersionKind(placementv1beta1.GroupVersion.WithKind("ClusterResourcePlacement"))
	if p.Name == "" {
		// Names of roles, say, may have colons in them; names of placements may not.
		p.Name = strings.Trim(strings.NewReplacer(":", "-", ".", "-").Replace(strings.ToLower(objects[0].Name)), "-")
	}
	p.Spec.ResourceSelectors = selectorTerms(objects, o)
	p.Spec.Policy = &placementv1beta1.PlacementPolicy{PlacementType: placementv1beta1.PickAllPlacementType}
	if len(o.Clusters) > 0 {
		p.Spec.Policy = &placementv1beta1.PlacementPolicy{PlacementType: placementv1beta1.PickFixedPlacementType, ClusterNames: o.Clusters}
	}
	if o.Strategy != "" {
		p.Spec.Strategy = &placementv1beta1.RolloutStrategy{Type: o.Strategy}
	}
	return p, nil
}

// selectorTerms select objects.
func selectorTerms(objects []Object, o Options) []placementv1beta1.ResourceSelectorTerm {
	var all []placementv1beta1.ResourceSelectorTerm
	housed := false
	for _, object := range objects {
		term := placementv1beta1.ResourceSelectorTerm{Group: object.Group, Version: object.Version, Kind: object.Kind, Name: object.Name}
		switch {
		case object.Namespace != "" && !housed:
			home := namespaceOf(object.Namespace)
			all = append(all, placementv1beta1.ResourceSelectorTerm{
				Version: home.Version, Kind: home.Kind, Name: home.Name, SelectionScope: placementv1beta1.NamespaceWithResourceSelectors,
			})
			housed = true
		case object.GroupKind() != snapshot.NamespaceKind:
		case o.NamespaceOnly:
			term.SelectionScope = placementv1beta1.NamespaceOnly
		case o.Inside != nil:
			term.SelectionScope = placementv1beta1.NamespaceWithResourceSelectors
		}
		all = append(all, term)
	}
	for _, kind := range o.Inside {
		all = append(all, placementv1beta1.ResourceSelectorTerm{Group: kind.Group, Version: kind.Version, Kind: kind.Kind})
	}
	return all
}

// Skip splits kinds into those that are left out and those that stay. An entry is a resource such as configmaps or
// deployments.apps, a group such as apps, or a group with a version such as apps/v1. The idle entries leave nothing out.
func Skip(kinds []snapshot.Kind, entries []string) (kept []snapshot.Kind, idle []string) {
	used := map[string]bool{}
	for _, kind := range kinds {
		skipped := false
		for _, entry := range entries {
			if matchesKind(kind, entry) {
				used[entry] = true
				skipped = true
			}
		}
		if !skipped {
			kept = append(kept, kind)
		}
	}
	for _, entry := range entries {
		if !used[entry] {
			idle = append(idle, entry)
		}
	}
	return kept, idle
}

func matchesKind(kind snapshot.Kind, entry string) bool {
	switch strings.ToLower(entry) {
	case "":
		return false
	case kind.Resource, strings.ToLower(kind.Kind), kind.GVR().GroupResource().String(), kind.Group, kind.GroupVersion().String():
		return true
	default:
		return false
	}
}
