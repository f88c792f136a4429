package hubread

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/envelope"
	"github.com/fleetflow/fleetflow/activities/snapshot"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
)

const (
	// maxCatalogAge bounds the use of a catalog, for kinds of aggregated API servers: no
	// object that could be watched announces those.
	maxCatalogAge = 5 * time.Minute
	// maxIncompleteAge bounds the use of a catalog without an API group that could not be
	// read.
	maxIncompleteAge = 10 * time.Second
	// servedWithin is how long after its creation a CustomResourceDefinition may take
	// until the hub serves it; one that takes longer is not waited for.
	servedWithin = 30 * time.Second
)

// Discovery is the part of a discovery client that tells what the hub serves.
type Discovery interface {
	ServerGroupsAndResourcesWithContext(ctx context.Context) ([]*metav1.APIGroup, []*metav1.APIResourceList, error)
}

// ServedKinds keeps the catalog of what the hub serves. Discovery is slow, so it is
// repeated only when the CustomResourceDefinitions have changed, which is read
// live each time: a kind that was just installed is never overlooked. Selections and the watcher of selected resources share it.
type ServedKinds struct {
	// Discovery reads the catalog.
	Discovery Discovery
	// Live reads the CustomResourceDefinitions.
	Live client.Reader
	// Clock tells the age of the catalog.
	Clock clock.PassiveClock
	// Filter is what the operator of the hub keeps from being placed.
	Filter snapshot.Filter
	// ClusterScopedInConfigMaps lets ConfigMap envelopes hold cluster-scoped objects.
	ClusterScopedInConfigMaps bool

	mu sync.Mutex
	// discovered is what the hub serves, catalog the same with the kinds held whose propagation is disabled.
	discovered, catalog *snapshot.Catalog
	held                []string
	version             string
	read                time.Time
	// served is what was last read of each group version and is not known to be gone.
	served map[string]*metav1.APIResourceList
}

// NewServedKinds returns a cache that reads the catalog of the hub that the configuration is of.
func NewServedKinds(config *rest.Config, live client.Reader, clk clock.PassiveClock, filter snapshot.Filter) (*ServedKinds, error) {
	withoutWarnings := rest.CopyConfig(config)
	withoutWarnings.WarningHandlerWithContext = rest.NoWarnings{} // users chose the versions, not we
	catalog, err := discovery.NewDiscoveryClientForConfig(withoutWarnings)
	if err != nil {
		return nil, fmt.Errorf("creating the discovery client: %w", err)
	}
	return &ServedKinds{Discovery: catalog, Live: live, Clock: clk, Filter: filter}, nil
}

// Catalog returns what the hub serves, as of a revision of its store or later; an
// empty revision stands for now.
func (c *ServedKinds) Catalog(ctx context.Context, revision string) (*snapshot.Catalog, error) {
	definitions := &metav1.PartialObjectMetadataList{}
	definitions.SetGroupVersionKind(schema.GroupVersionKind{
		Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinitionList",
	})
	if err := c.Live.List(ctx, definitions, SinceRevision(revision)); err != nil {
		return nil, fmt.Errorf("listing CustomResourceDefinitions: %w", err)
	}
	version := versionOf(definitions)
	held, err := c.listHeld(ctx, definitions, revision)
	if err != nil {
		return nil, err
	}

	c.mu.Lock()
	defer c.mu.Unlock()
	if c.catalog == nil || c.version != version || c.Clock.Since(c.read) >= maxAgeOf(c.catalog) {
		discovered, err := c.discoverCatalog(ctx, definitions)
		if err != nil {
			return nil, err
		}
		c.discovered, c.catalog, c.version, c.read = discovered, discovered.Holding(held), version, c.Clock.Now()
		if c.lacksDefinition(definitions, discovered) {
			c.version = ""
		}
	} else if !slices.Equal(c.held, held) {
		c.catalog = c.discovered.Holding(held)
	}
	c.held = held
	return c.catalog, nil
}

// listHeld lists the kinds whose propagation is disabled, by name. A hub whose CustomResourceDefinitions are older than the
// agent has none.
func (c *ServedKinds) listHeld(ctx context.Context, definitions *metav1.PartialObjectMetadataList, revision string) ([]string, error) {
	if !slices.ContainsFunc(definitions.Items, func(d metav1.PartialObjectMetadata) bool { return d.Name == fleetflowv1alpha1.PropagatedTypes.String() }) {
		return nil, nil
	}
	types := &fleetflowv1alpha1.PropagatedTypeList{}
	if err := c.Live.List(ctx, types, SinceRevision(revision)); err != nil {
		return nil, fmt.Errorf("listing PropagatedTypes: %w", err)
	}
	var held []string
	for i := range types.Items {
		if types.Items[i].IsDisabled() {
			held = append(held, types.Items[i].Name)
		}
	}
	slices.Sort(held)
	return held, nil
}

// EnvelopeRules returns what envelopes may hold, as far as the hub knows now.
func (c *ServedKinds) EnvelopeRules(ctx context.Context) (envelope.Rules, error) {
	catalog, err := c.Catalog(ctx, "")
	if err != nil {
		return envelope.Rules{}, err
	}
	restricted := len(c.Filter.PlaceableNamespaces()) > 0
	return envelope.Rules{Scope: envelope.Served(catalog), Filter: c.Filter, ClusterScopedInConfigMaps: c.ClusterScopedInConfigMaps &&
		!restricted}, nil
}

// maxAgeOf returns how long a catalog is used before it is read again.
func maxAgeOf(catalog *snapshot.Catalog) time.Duration {
	if catalog.Incomplete() {
		return maxIncompleteAge
	}
	return maxCatalogAge
}

// Lagging reports whether the hub did not serve all CustomResourceDefinitions yet when the
// last catalog was read: it must be read again.
func (c *ServedKinds) Lagging() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.catalog != nil && c.version == ""
}

// versionOf tells states of the CustomResourceDefinitions apart.
func versionOf(definitions *metav1.PartialObjectMetadataList) string {
	ids := make([]snapshot.Identity, 0, len(definitions.Items))
	for i := range definitions.Items {
		ids = append(ids, snapshot.Identify(snapshot.DefinitionKind, &definitions.Items[i]))
	}
	return snapshot.Fingerprint(ids)
}

// lacksDefinition reports whether a definition is not served yet though it should be soon.
func (c *ServedKinds) lacksDefinition(definitions *metav1.PartialObjectMetadataList, catalog *snapshot.Catalog) bool {
	for i := range definitions.Items {
		definition := &definitions.Items[i]
		resource, group, _ := strings.Cut(definition.Name, ".")
		if definition.DeletionTimestamp == nil &&
			!catalog.Serves(schema.GroupResource{Group: group, Resource: resource}) &&
			c.Clock.Since(definition.CreationTimestamp.Time) < servedWithin {
			return true
		}
	}
	return false
}

// discoverCatalog reads the catalog. An API group that cannot be read would look as if its
// objects had been deleted: its last known kinds are kept, and if none are known, the
// catalog says so. Groups of which nothing is ever placed may be missing.
func (c *ServedKinds) discoverCatalog(ctx context.Context, definitions *metav1.PartialObjectMetadataList) (*snapshot.Catalog, error) {
	groups, lists, err := c.Discovery.ServerGroupsAndResourcesWithContext(ctx)
	failed, partial := discovery.GroupDiscoveryFailedErrorGroups(err)
	if err != nil && !partial {
		return nil, fmt.Errorf("discovering what the hub serves: %w", err)
	}
	served := make(map[string]*metav1.APIResourceList, len(lists))
	for _, list := range lists {
		served[list.GroupVersion] = list
	}
	unreadable := map[string]error{}
	outdated := false
	for gv, cause := range failed {
		last, known := c.served[gv.String()]
		switch {
		case snapshot.DisabledGroup(gv.Group) || served[gv.String()] != nil:
		case known:
			served[gv.String()] = last
			outdated = true
			lists = append(lists, last)
		default:
			unreadable[gv.Group] = cause
		}
	}
	c.served = served
	names := make([]string, 0, len(definitions.Items))
	for i := range definitions.Items {
		names = append(names, definitions.Items[i].Name)
	}
	catalog := snapshot.NewCatalog(groups, lists, names, c.Filter)
	catalog.Doubt(unreadable, outdated)
	return catalog, nil
}
