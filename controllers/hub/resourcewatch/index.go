package resourcewatch

import (
	"maps"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fleetflow/fleetflow/activities/snapshot"
)

// place is where the objects of a kind are: in a namespace or, if that is empty, cluster-scoped.
type place struct {
	kind      schema.GroupKind
	namespace string
}

// placeOf returns where the objects are that a rule selects.
func placeOf(rule snapshot.Rule) place { return place{rule.Kind.GroupKind(), rule.Namespace} }

// named is the key by which placements are found that select an object by name.
type named struct {
	place
	name string
}

// Index finds the placements that select an object without going through all of them: by name, by namespace, and only
// selectors by label are tried one by one.
type Index struct {
	mu         sync.RWMutex
	selections map[string]*snapshot.Selection
	named      map[named]map[string]bool
	broad      map[place]map[string]bool
	// namespaces are the labels of the hub's namespaces; inside caches which placements select a namespace.
	namespaces map[string]labels.Set
	inside     map[string][]string
}

// NewIndex returns an empty index.
func NewIndex() *Index {
	return &Index{
		selections: map[string]*snapshot.Selection{},
		named:      map[named]map[string]bool{},
		broad:      map[place]map[string]bool{},
		namespaces: map[string]labels.Set{},
		inside:     map[string][]string{},
	}
}

// Set makes a placement select something, instead of what it selected before.
func (i *Index) Set(placement string, selection *snapshot.Selection) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.removePlacement(placement)
	i.selections[placement] = selection
	for _, rule := range selection.Rules {
		if rule.Name != "" {
			addToSet(i.named, named{placeOf(rule), rule.Name}, placement)
		} else {
			addToSet(i.broad, placeOf(rule), placement)
		}
	}
	clear(i.inside)
}

// Remove forgets a placement.
func (i *Index) Remove(placement string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.removePlacement(placement)
	clear(i.inside)
}

func (i *Index) removePlacement(placement string) {
	selection, ok := i.selections[placement]
	if !ok {
		return
	}
	delete(i.selections, placement)
	for _, rule := range selection.Rules {
		dropFromSet(i.named, named{placeOf(rule), rule.Name}, placement)
		dropFromSet(i.broad, placeOf(rule), placement)
	}
}

func addToSet[K comparable](sets map[K]map[string]bool, key K, placement string) {
	if sets[key] == nil {
		sets[key] = map[string]bool{}
	}
	sets[key][placement] = true
}

func dropFromSet[K comparable](sets map[K]map[string]bool, key K, placement string) {
	delete(sets[key], placement)
	if len(sets[key]) == 0 {
		delete(sets, key)
	}
}

// Namespace notes the labels of a namespace; nil if it is gone.
func (i *Index) Namespace(name string, set labels.Set) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if set == nil {
		delete(i.namespaces, name)
	} else {
		i.namespaces[name] = set
	}
	delete(i.inside, name)
}

// Selecting returns the placements that select an object of a kind: those whose selectors match it, or its namespace and what is
// placed with it.
func (i *Index) Selecting(kind snapshot.Kind, object metav1.Object) []string {
	if !snapshot.Candidate(kind.GroupKind(), object) {
		return nil
	}
	var inside []string
	if kind.Namespaced {
		inside = i.selectingInside(kind, object)
	}
	i.mu.RLock()
	defer i.mu.RUnlock()
	return append(inside, i.matchSelectors(kind, object)...)
}

// matchSelectors returns the placements whose selectors match an object itself: those of the cluster scope a cluster-scoped one,
// those of a namespace one in it; and both one that what they select depends on.
func (i *Index) matchSelectors(kind snapshot.Kind, object metav1.Object) []string {
	at := place{kind.GroupKind(), object.GetNamespace()}
	found := slices.Collect(maps.Keys(i.named[named{at, object.GetName()}]))
	for placement := range i.broad[at] {
		if anyRuleSelects(i.selections[placement].Rules, kind, object) {
			found = append(found, placement)
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

func (i *Index) selectingInside(kind snapshot.Kind, object metav1.Object) []string {
	placements := i.Inside(object.GetNamespace())
	if len(placements) == 0 {
		return nil
	}
	i.mu.RLock()
	defer i.mu.RUnlock()
	var found []string
	for _, placement := range placements {
		selection, ok := i.selections[placement]
		if ok && selectsInside(selection, i.namespaces[object.GetNamespace()], kind, object) {
			found = append(found, placement)
		}
	}
	return found
}

// Inside returns the placements that select a namespace.
func (i *Index) Inside(namespace string) []string {
	i.mu.RLock()
	found, known := i.inside[namespace]
	i.mu.RUnlock()
	if known {
		return found
	}
	if snapshot.ReservedNamespace(namespace) {
		return nil
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	object := &metav1.ObjectMeta{Name: namespace, Labels: i.namespaces[namespace]}
	found = i.matchSelectors(snapshot.Kind{GroupVersionKind: snapshot.NamespaceKind.WithVersion("v1")}, object)
	i.inside[namespace] = found
	return found
}

// anyRuleSelects reports whether one of the rules selects an object of a kind.
func anyRuleSelects(rules []snapshot.Rule, kind snapshot.Kind, object metav1.Object) bool {
	return slices.ContainsFunc(rules, func(rule snapshot.Rule) bool {
		return rule.Kind.GroupKind() == kind.GroupKind() && rule.Matches(object)
	})
}

// selectsInside reports whether an object is placed with its namespace.
func selectsInside(selection *snapshot.Selection, set labels.Set, kind snapshot.Kind, object metav1.Object) bool {
	namespace := &metav1.ObjectMeta{Name: object.GetNamespace(), Labels: set}
	for _, rule := range selection.Rules {
		if rule.Kind.GroupKind() != snapshot.NamespaceKind || !rule.Matches(namespace) {
			continue
		}
		rules, all := selection.Contents(rule)
		if all || anyRuleSelects(rules, kind, object) {
			return true
		}
	}
	return false
}

// Kinds returns the kinds that the placements select, with what the catalog says is placed with namespaces.
func (i *Index) Kinds(catalog *snapshot.Catalog) map[schema.GroupKind]snapshot.Kind {
	i.mu.RLock()
	defer i.mu.RUnlock()
	kinds := map[schema.GroupKind]snapshot.Kind{}
	for _, selection := range i.selections {
		for _, kind := range kindsOf(selection, catalog) {
			// Selected in several versions, a kind is watched in one, always the same.
			if known, ok := kinds[kind.GroupKind()]; !ok || kind.Version < known.Version {
				kinds[kind.GroupKind()] = kind
			}
		}
	}
	return kinds
}

// kindsOf returns the kinds one placement selects.
func kindsOf(selection *snapshot.Selection, catalog *snapshot.Catalog) []snapshot.Kind {
	var kinds []snapshot.Kind
	for _, rule := range selection.Rules {
		kinds = append(kinds, rule.Kind)
		if rule.Kind.GroupKind() != snapshot.NamespaceKind {
			continue
		}
		rules, all := selection.Contents(rule)
		if all {
			kinds = append(kinds, catalog.Contents()...)
		}
		for _, inside := range rules {
			kinds = append(kinds, inside.Kind)
		}
	}
	return kinds
}
