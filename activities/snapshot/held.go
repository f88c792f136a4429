package snapshot

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// heldKinds are the kinds whose propagation is disabled: placements keep their objects as the latest snapshot has them.
type heldKinds struct {
	// served are the names of those that the hub serves, by kind.
	served map[schema.GroupKind]string
	// unserved are the names of the others. Snapshots may hold objects of them from before.
	unserved map[string]bool
	// contents are those that would be placed with a namespace.
	contents []string
}

// Holding returns the catalog with some kinds held, each named <plural>.<group>, or <plural> in the core group.
func (c *Catalog) Holding(names []string) *Catalog {
	if len(names) == 0 {
		return c
	}
	held := *c
	held.contents = nil
	held.held = heldKinds{served: map[schema.GroupKind]string{}, unserved: map[string]bool{}}
	for _, name := range names {
		if kind, served := c.ServedAs(name); served {
			held.held.served[kind.GroupKind()] = name
		} else {
			held.held.unserved[name] = true
		}
	}
	for _, kind := range c.contents {
		if name, is := held.HeldAs(kind.GroupKind()); is {
			held.held.contents = append(held.held.contents, name)
		} else {
			held.contents = append(held.contents, kind)
		}
	}
	return &held
}

// ServedAs returns a kind by its name, <plural>.<group>, or <plural> in the core group; false if the hub does not serve it.
func (c *Catalog) ServedAs(name string) (Kind, bool) {
	kind, served := c.resources[schema.ParseGroupResource(name)]
	return kind, served
}

// SimilarTo returns the name of a kind that a name may have been meant for, being its singular or its kind; empty if there
// is none.
func (c *Catalog) SimilarTo(name string) string {
	meant := schema.ParseGroupKind(name)
	for _, resource := range slices.SortedFunc(maps.Keys(c.resources), func(a, b schema.GroupResource) int {
		return strings.Compare(a.String(), b.String())
	}) {
		kind := c.resources[resource]
		if strings.EqualFold(kind.Kind, meant.Kind) && (kind.Group == meant.Group || meant.Group == "") || resource.Resource == meant.Kind &&
			meant.Group == "" {
			return resource.String()
		}
	}
	return ""
}

// HeldAs returns the name by which a kind is held; false if it is not.
func (c *Catalog) HeldAs(gk schema.GroupKind) (name string, held bool) {
	if name, held = c.held.served[gk]; held || len(c.held.unserved) == 0 {
		return name, held
	}
	if _, served := c.namespaced[gk]; served {
		return "", false
	}
	plural, _ := meta.UnsafeGuessKindToResource(gk.WithVersion("v1")) // what was served so once, most often
	name = plural.GroupResource().String()
	return name, c.held.unserved[name]
}

// HoldsAny reports whether any kind is held.
func (c *Catalog) HoldsAny() bool { return len(c.held.served)+len(c.held.unserved) > 0 }

// Holds reports whether a kind is held, by its name.
func (c *Catalog) Holds(name string) bool {
	kind, served := c.ServedAs(name)
	return c.held.unserved[name] || served && c.held.served[kind.GroupKind()] == name
}

// holdKind notes that the selection can have objects of a kind that is held.
func (s *Selection) holdKind(name string) {
	if !slices.Contains(s.Held, name) {
		s.Held = append(s.Held, name)
		slices.Sort(s.Held)
	}
}

// holdNamespaces notes the kinds that are held of what would be placed with the selected namespaces.
func (s *Selection) holdNamespaces(catalog *Catalog) {
	for _, rule := range s.Rules {
		if rule.Kind.GroupKind() != NamespaceKind {
			continue
		}
		if name, held := catalog.HeldAs(NamespaceKind); held {
			s.holdKind(name)
		}
		if _, all := s.Contents(rule); all {
			for _, name := range catalog.held.contents {
				s.holdKind(name)
			}
		}
	}
}

// CanHold reports whether the placement could select objects of a kind that is held, by its name.
func (s *Selection) CanHold(name string) bool { return slices.Contains(s.Held, name) }

// SameHeld reports whether a selection that goes by the catalog would hold what an earlier one has recorded that it held.
func (s *Selection) SameHeld(recorded []string, catalog *Catalog) bool {
	for _, name := range s.Held {
		if !slices.Contains(recorded, name) {
			return false
		}
	}
	return !slices.ContainsFunc(recorded, func(name string) bool { return !catalog.Holds(name) })
}

// KeepHeld replaces what was selected of the held kinds by what the latest snapshot holds of them, and returns it with the names
// of the kinds that are held. Nothing is placed with a namespace that is held and not in the snapshot.
func KeepHeld(catalog *Catalog, selection *Selection, selected []Item,
	former map[Identity][]byte) (items []Item, held []string, err error) {
	held = slices.Clone(selection.Held)
	namespaces := map[string]bool{}
	for id, manifest := range former {
		name, is := catalog.HeldAs(id.GroupKind)
		if !is {
			continue
		}
		item, err := itemOfManifest(id, manifest)
		if err != nil {
			return nil, nil, err
		}
		items = append(items, item)
		if id.GroupKind == NamespaceKind {
			namespaces[id.Name] = true
		}
		if !slices.Contains(held, name) {
			held = append(held, name)
		}
	}
	slices.Sort(held)
	_, bare := catalog.HeldAs(NamespaceKind)
	for i := range selected {
		item := &selected[i]
		homeless := bare && item.Namespace != "" && !selection.insideOne && !namespaces[item.Namespace]
		if _, is := catalog.HeldAs(item.GroupKind); !is && !homeless {
			items = append(items, *item)
		}
	}
	return items, held, nil
}

// itemOfManifest makes an item of a manifest of a snapshot.
func itemOfManifest(id Identity, manifest []byte) (Item, error) {
	var head metav1.PartialObjectMetadata
	if err := json.Unmarshal(manifest, &head); err != nil {
		return Item{}, fmt.Errorf("decoding %s %s of the latest snapshot: %w", id.Kind, id.Name, err)
	}
	item := Item{Identity: id, Manifest: manifest, apiVersion: head.APIVersion}
	_, item.Envelope = EnvelopeType(id.GroupKind, head.Annotations)
	return item, nil
}
