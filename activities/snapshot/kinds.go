package snapshot

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// NamespaceKind is the kind whose selection places everything inside, too.
var NamespaceKind = schema.GroupKind{Kind: "Namespace"}

// DefinitionKind is the kind whose objects decide what else the hub serves.
var DefinitionKind = schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}

// Kind is a kind the hub serves.
type Kind struct {
	schema.GroupVersionKind
	// Resource is the plural name in URLs.
	Resource string
	// Namespaced says that objects of the kind live in namespaces.
	Namespaced bool
	// Placeable says that objects of the kind may be placed at all.
	Placeable bool
	// Native says that the hub itself stores the kind, built in or by a
	// CustomResourceDefinition: its resource versions count with those of all other
	// native kinds.
	Native bool
}

// GVR returns what clients address the kind by.
func (k Kind) GVR() schema.GroupVersionResource {
	return k.GroupVersion().WithResource(k.Resource)
}

// String returns the kind as users write it, such as "Deployment (apps/v1)".
func (k Kind) String() string {
	return k.Kind + " (" + k.GroupVersion().String() + ")"
}

// Catalog is everything the hub serves, as its discovery told.
type Catalog struct {
	kinds     map[schema.GroupVersionKind]Kind
	resources map[schema.GroupResource]Kind
	contents  []Kind
	// namespaced are the kinds served, with their scope.
	namespaced map[schema.GroupKind]bool
	// unreadable are the groups nothing is known of, outdated says that something
	// is known only from before.
	unreadable map[string]error
	outdated   bool
	filter     Filter
	held       heldKinds
}

// NewCatalog reads discovery. The groups say which version of a kind is preferred,
// the definitions are the names of the CustomResourceDefinitions there are, and the
// filter is what the operator of the hub keeps from being placed.
func NewCatalog(groups []*metav1.APIGroup, lists []*metav1.APIResourceList, definitions []string, filter Filter) *Catalog {
	c := &Catalog{
		filter:     filter,
		kinds:      map[schema.GroupVersionKind]Kind{},
		resources:  map[schema.GroupResource]Kind{},
		namespaced: map[schema.GroupKind]bool{},
	}
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			continue
		}
		for i := range list.APIResources {
			c.addKind(gv, &list.APIResources[i], definitions)
		}
	}
	c.contents = c.preferredKinds(versionRanks(groups))
	return c
}

func (c *Catalog) addKind(gv schema.GroupVersion, resource *metav1.APIResource, definitions []string) {
	if strings.Contains(resource.Name, "/") {
		return // a subresource
	}
	kind := Kind{GroupVersionKind: gv.WithKind(resource.Kind), Resource: resource.Name, Namespaced: resource.Namespaced}
	kind.Placeable = !Disabled(kind.GroupKind()) && supportsVerbs(resource, "get", "list", "watch", "create")
	kind.Native = builtIn(gv.Group) || slices.Contains(definitions, kind.GVR().GroupResource().String())
	c.kinds[kind.GroupVersionKind] = kind
	c.namespaced[kind.GroupKind()] = kind.Namespaced
	c.resources[kind.GVR().GroupResource()] = kind
}

// builtIn reports whether an API group is Kubernetes' own.
func builtIn(group string) bool {
	return !strings.Contains(group, ".") || strings.HasSuffix(group, ".k8s.io") && group != "metrics.k8s.io" &&
		!strings.HasSuffix(group, ".metrics.k8s.io")
}

func supportsVerbs(resource *metav1.APIResource, verbs ...string) bool {
	return sets.New(resource.Verbs...).HasAll(verbs...)
}

// versionRanks orders the versions of each group: the preferred one is 0.
func versionRanks(groups []*metav1.APIGroup) map[schema.GroupVersion]int {
	ranks := map[schema.GroupVersion]int{}
	for _, group := range groups {
		for i, version := range group.Versions {
			ranks[schema.GroupVersion{Group: group.Name, Version: version.Version}] = i + 1
		}
		ranks[schema.GroupVersion{Group: group.Name, Version: group.PreferredVersion.Version}] = 0
	}
	return ranks
}

// preferredKinds lists the placeable namespaced kinds, each once, in its preferred version;
// where only some APIs are allowed, in the best of those. A kind whose preferred
// version is skipped is left out: its objects are the same in every version.
func (c *Catalog) preferredKinds(ranks map[schema.GroupVersion]int) []Kind {
	best := map[schema.GroupKind]Kind{}
	for _, kind := range c.kinds {
		if !kind.Namespaced || !kind.Placeable || len(c.filter.allowed) > 0 && c.filter.reasonToExclude(kind.GroupVersionKind) != "" {
			continue
		}
		current, ok := best[kind.GroupKind()]
		if !ok || ranks[kind.GroupVersion()] < ranks[current.GroupVersion()] {
			best[kind.GroupKind()] = kind
		}
	}
	kinds := make([]Kind, 0, len(best))
	for _, kind := range best {
		if c.filter.reasonToExclude(kind.GroupVersionKind) == "" {
			kinds = append(kinds, kind)
		}
	}
	slices.SortFunc(kinds, func(a, b Kind) int { return strings.Compare(a.String(), b.String()) })
	return kinds
}

// Lookup finds a kind by exactly the version asked for.
func (c *Catalog) Lookup(gvk schema.GroupVersionKind) (Kind, bool) {
	kind, ok := c.kinds[gvk]
	return kind, ok
}

// Namespaced reports whether the objects of a kind live in namespaces, whatever the version; false
// if the hub does not serve it.
func (c *Catalog) Namespaced(gk schema.GroupKind) (namespaced, served bool) {
	namespaced, served = c.namespaced[gk]
	return namespaced, served
}

// Versions returns the versions of a kind the hub serves, in alphabetical order.
func (c *Catalog) Versions(gk schema.GroupKind) []string {
	var versions []string
	for gvk := range c.kinds {
		if gvk.GroupKind() == gk {
			versions = append(versions, gvk.Version)
		}
	}
	slices.Sort(versions)
	return versions
}

// Contents returns the kinds that are placed with a namespace: all that are namespaced and may be placed, each in its preferred
// version.
func (c *Catalog) Contents() []Kind { return c.contents }

// Doubt records what discovery could not read: groups of which therefore nothing is
// known, with the cause, and whether others are known only from before.
func (c *Catalog) Doubt(unreadable map[string]error, outdated bool) {
	c.unreadable = unreadable
	c.outdated = outdated
}

// Unreadable returns the API groups that could not be read and of which nothing is known
// from before, with the cause.
func (c *Catalog) Unreadable() map[string]error { return c.unreadable }

// Incomplete reports whether some API group could not be read.
func (c *Catalog) Incomplete() bool { return len(c.unreadable) > 0 || c.outdated }

// Serves reports whether the resource was known when the catalog was read.
func (c *Catalog) Serves(resource schema.GroupResource) bool {
	_, served := c.resources[resource]
	return served
}

// disabledGroups are never placed as a whole.
var disabledGroups = map[string]bool{
	clusterv1beta1.GroupVersion.Group: true,
	fleetflowv1alpha1.GroupName:       true,
	"events.k8s.io":                   true,
	"coordination.k8s.io":             true,
	"metrics.k8s.io":                  true,
	"custom.metrics.k8s.io":           true,
	"external.metrics.k8s.io":         true,
}

// disabledKinds are never placed though their group may be.
var disabledKinds = map[schema.GroupKind]bool{
	{Kind: "Pod"}:       true,
	{Kind: "Node"}:      true,
	{Kind: "Event"}:     true,
	{Kind: "Endpoints"}: true, // made by Kubernetes, for Services that are placed

	{Group: "networking.fleet.azure.com", Kind: "ServiceImport"}:         true,
	{Group: "networking.fleet.azure.com", Kind: "TrafficManagerProfile"}: true,
	{Group: "networking.fleet.azure.com", Kind: "TrafficManagerBackend"}: true,
}

// Disabled reports whether objects of a kind are never placed.
func Disabled(gk schema.GroupKind) bool {
	if gk.Group == placementv1beta1.GroupVersion.Group {
		return !envelopes[gk.Kind]
	}
	return DisabledGroup(gk.Group) || disabledKinds[gk]
}

// DisabledGroup reports whether nothing of an API group is ever placed.
func DisabledGroup(group string) bool { return disabledGroups[group] }

// ReservedNamespace reports whether a namespace belongs to Kubernetes or to the
// fleet and is therefore never placed.
func ReservedNamespace(name string) bool {
	return name == clusterv1beta1.DefaultNamespace ||
		strings.HasPrefix(name, clusterv1beta1.KubeNamespacePrefix) ||
		strings.HasPrefix(name, clusterv1beta1.FleetNamespacePrefix)
}
