package override

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/override"
	"github.com/fleetflow/fleetflow/activities/snapshot"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/controllers/hub/fieldindex"
)

const (
	// pageSize is how many objects are read at a time.
	pageSize = 500
	// scanAge is how long a list of references is valid for overrides that existed when it was read. A hundred
	// overrides that were made at once then share a few lists.
	scanAge = 5 * time.Second
)

// usage is which snapshots of overrides are referenced, by override: the namespace of a ClusterResourceOverride is
// empty.
type usage map[types.NamespacedName]sets.Set[int]

// addRefs adds references in the form by which bindings are indexed.
func (u usage) addRefs(names ...string) {
	for _, name := range names {
		namespace, snapshot, namespaced := strings.Cut(name, "/")
		if !namespaced {
			namespace = ""
			snapshot = name
		}
		parent, index, ok := parseName(snapshot)
		if !ok {
			continue
		}
		key := types.NamespacedName{Namespace: namespace, Name: parent}
		if u[key] == nil {
			u[key] = sets.New[int]()
		}
		u[key].Insert(index)
	}
}

// addObject adds the references of a binding, an update run or a placement.
func (u usage) addObject(o runtime.Object) {
	switch o := o.(type) {
	case placementv1beta1.BindingObject:
		u.addRefs(override.RefsOf(*o.GetBindingSpec())...)
	case placementv1beta1.UpdateRunObject:
		u.addRun(o)
	case *metav1.PartialObjectMetadata:
		// Only the selection writes the annotation; one that cannot be read is written anew.
		verdict, _ := snapshot.DecodeVerdict(o.Annotations[placementv1beta1.SelectionVerdictAnnotation])
		u.addRefs(verdict.Overrides...)
	}
}

// addRun adds the references of an update run, unless it is over.
func (u usage) addRun(run placementv1beta1.UpdateRunObject) {
	if rules.IsRunOver(run) {
		return
	}
	status := run.GetUpdateRunStatus()
	for i := range status.StagesStatus {
		for j := range status.StagesStatus[i].Clusters {
			cluster := &status.StagesStatus[i].Clusters[j]
			u.addRefs(override.RefsOf(placementv1beta1.ResourceBindingSpec{
				ClusterResourceOverrideSnapshots: cluster.ClusterResourceOverrideSnapshots,
				ResourceOverrideSnapshots:        cluster.ResourceOverrideSnapshots,
			})...)
		}
	}
}

// listsOfUsers are empty lists of the kinds that can reference a snapshot of an override. Of placements, metadata is
// enough.
func listsOfUsers() []client.ObjectList {
	var lists []client.ObjectList
	for _, scope := range placementv1beta1.Scopes() {
		kind := scope.PlacementKind()
		placements := &metav1.PartialObjectMetadataList{}
		placements.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		lists = append(lists, scope.NewBindingList(), scope.NewUpdateRunList(), placements)
	}
	return lists
}

// readUsage reads all references past the cache.
func readUsage(ctx context.Context, live client.Reader) (usage, error) {
	u := usage{}
	for _, empty := range listsOfUsers() {
		for next, more := "", true; more; more = next != "" {
			page := empty.DeepCopyObject().(client.ObjectList)
			if err := live.List(ctx, page, client.Limit(pageSize), client.Continue(next)); err != nil {
				return nil, fmt.Errorf("reading which snapshots of overrides are named in a %T: %w", page, err)
			}
			next = page.GetContinue()
			if err := meta.EachListItem(page, func(o runtime.Object) error { u.addObject(o); return nil }); err != nil {
				return nil, fmt.Errorf("reading a %T: %w", page, err)
			}
		}
	}
	return u, nil
}

// scan is the last list of references. A reconciliation that needs one while another reads it waits for that.
type scan struct {
	mu    sync.Mutex
	began time.Time
	// seen are the overrides that were there when it began.
	seen  sets.Set[types.UID]
	named usage
}

// listReferencedLive returns the referenced indexes of an override, read after the override existed: those of an
// earlier one of the same name are among them.
func (r *Reconciler) listReferencedLive(ctx context.Context, s *overrideState) (sets.Set[int], error) {
	last := &r.scan
	last.mu.Lock()
	defer last.mu.Unlock()
	if !last.seen.Has(s.override.GetUID()) || r.clock.Since(last.began) > scanAge {
		began := r.clock.Now()
		named, err := readUsage(ctx, r.live)
		if err != nil {
			return nil, err
		}
		last.began = began
		last.seen = s.seen
		last.named = named
	}
	return last.named[s.key], nil
}

// listReferencedCached returns which of the indexes that matter are referenced by a binding in the cache: those
// beyond the history limit, and those of the next snapshots.
func (r *Reconciler) listReferencedCached(ctx context.Context, s *overrideState) (sets.Set[int], error) {
	named := sets.New[int]()
	own := ownVersions(s.versions)
	for i := historyLimit - 1; i < len(own); i++ {
		if err := r.addIfReferenced(ctx, s.key, own[i].index, named); err != nil {
			return nil, err
		}
	}
	for {
		candidate := nextIndex(s.versions, named)
		if err := r.addIfReferenced(ctx, s.key, candidate, named); err != nil {
			return nil, err
		}
		if !named.Has(candidate) {
			return named, nil
		}
	}
}

// addIfReferenced adds an index if a binding in the cache references the snapshot that has it.
func (r *Reconciler) addIfReferenced(ctx context.Context, key types.NamespacedName, at int, named sets.Set[int]) error {
	name := placementv1beta1.OverrideSnapshotName(key.Name, at)
	if key.Namespace != "" {
		name = key.Namespace + "/" + name
	}
	for _, scope := range placementv1beta1.Scopes() {
		list := scope.NewBindingList()
		err := r.client.List(ctx, list, client.MatchingFields{fieldindex.ByOverrideSnapshot: name}, client.Limit(1), client.UnsafeDisableDeepCopy)
		if err != nil {
			return fmt.Errorf("listing the bindings that name %s: %w", name, err)
		}
		if len(list.Objects()) > 0 {
			named.Insert(at)
		}
	}
	return nil
}
