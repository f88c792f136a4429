package placement

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/snapshot"
)

const (
	// catalogAge bounds how long a catalog is believed, for kinds of aggregated API
	// servers: nothing announces those.
	catalogAge = 5 * time.Minute
	// servedWithin is how long after its creation a CustomResourceDefinition may take
	// until the hub serves it; one that takes longer is not waited for.
	servedWithin = 30 * time.Second
)

// Discovery is the part of a discovery client that tells what the hub serves.
type Discovery interface {
	ServerGroupsAndResourcesWithContext(ctx context.Context) ([]*metav1.APIGroup, []*metav1.APIResourceList, error)
}

// Kinds keeps the catalog of what the hub serves. Discovery is slow, so it is
// repeated only when the CustomResourceDefinitions have changed, which is read
// live each time: a kind that was just installed is never overlooked.
type Kinds struct {
	// Discovery reads the catalog.
	Discovery Discovery
	// Live reads the CustomResourceDefinitions.
	Live client.Reader
	// Clock tells the age of the catalog.
	Clock clock.PassiveClock

	mu      sync.Mutex
	catalog *snapshot.Catalog
	version string
	read    time.Time
}

// Catalog returns what the hub serves, as of a revision of its store or later; an
// empty revision stands for now.
func (k *Kinds) Catalog(ctx context.Context, revision string) (*snapshot.Catalog, error) {
	definitions := &metav1.PartialObjectMetadataList{}
	definitions.SetGroupVersionKind(schema.GroupVersionKind{
		Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinitionList",
	})
	options := notOlderThan(revision)
	if err := k.Live.List(ctx, definitions, &client.ListOptions{Raw: &options}); err != nil {
		return nil, fmt.Errorf("listing CustomResourceDefinitions: %w", err)
	}
	version := versionOf(definitions)

	k.mu.Lock()
	defer k.mu.Unlock()
	if k.catalog != nil && k.version == version && k.Clock.Since(k.read) < catalogAge {
		return k.catalog, nil
	}
	catalog, err := k.discover(ctx, definitions)
	if err != nil {
		return nil, err
	}
	k.catalog, k.version, k.read = catalog, version, k.Clock.Now()
	if k.lagging(definitions, catalog) {
		k.version = ""
	}
	return catalog, nil
}

// Lagging says whether the last catalog was read before the hub served all
// CustomResourceDefinitions there were: another look will tell more.
func (k *Kinds) Lagging() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.catalog != nil && k.version == ""
}

// versionOf tells states of the CustomResourceDefinitions apart.
func versionOf(definitions *metav1.PartialObjectMetadataList) string {
	ids := make([]snapshot.Identity, 0, len(definitions.Items))
	for i := range definitions.Items {
		ids = append(ids, snapshot.Identify(schema.GroupKind{}, &definitions.Items[i]))
	}
	return snapshot.Fingerprint(ids)
}

// lagging says whether a definition is not served yet though it should be soon.
func (k *Kinds) lagging(definitions *metav1.PartialObjectMetadataList, catalog *snapshot.Catalog) bool {
	for i := range definitions.Items {
		definition := &definitions.Items[i]
		resource, group, _ := strings.Cut(definition.Name, ".")
		if definition.DeletionTimestamp == nil &&
			!catalog.Serves(schema.GroupResource{Group: group, Resource: resource}) &&
			k.Clock.Since(definition.CreationTimestamp.Time) < servedWithin {
			return true
		}
	}
	return false
}

// discover reads the catalog. An API group that cannot be read would look as if
// its objects had been deleted, so it is an error, unless nothing of it is ever
// placed.
func (k *Kinds) discover(ctx context.Context, definitions *metav1.PartialObjectMetadataList) (*snapshot.Catalog, error) {
	groups, lists, err := k.Discovery.ServerGroupsAndResourcesWithContext(ctx)
	if failed, partial := discovery.GroupDiscoveryFailedErrorGroups(err); partial {
		err = nil
		for gv, cause := range failed {
			if !snapshot.DisabledGroup(gv.Group) {
				err = fmt.Errorf("API group %s: %w", gv, cause)
			}
		}
	}
	if err != nil {
		return nil, fmt.Errorf("discovering what the hub serves: %w", err)
	}
	names := make([]string, 0, len(definitions.Items))
	for i := range definitions.Items {
		names = append(names, definitions.Items[i].Name)
	}
	return snapshot.NewCatalog(groups, lists, names), nil
}
