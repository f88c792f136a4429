package work

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/controllers/member/apply"
)

// rivalFinder finds Works that have manifests of the same objects. One of them owns the object. When that gives it up, because the
// hub splits the Works of a binding anew, or because its placement ends, the object is handed over to another that has a
// manifest of it: it is not deleted and created again. A placement of a higher priority takes it over earlier.
type rivalFinder struct {
	hub       client.Client
	member    client.Client
	namespace string

	// change is what Works would have manifests of after a change, by their names: none if they are gone then. It goes before what they
	// have.
	change map[string][]apply.Key

	mu    sync.Mutex
	known map[string]knownKeys // by the name of a Work
}

var _ apply.RivalFinder = (*rivalFinder)(nil)

// Find returns the references that point to an AppliedWork that exists, each with whether its Work
// gives the object up.
func (f *rivalFinder) Find(
	ctx context.Context, me metav1.OwnerReference, key apply.Key, refs []metav1.OwnerReference,
) ([]apply.Rival, error) {
	mine, err := f.readWork(ctx, me.Name)
	if err != nil {
		return nil, err
	}
	var out []apply.Rival
	for _, ref := range refs {
		applied := &placementv1beta1.AppliedWork{}
		err := f.member.Get(ctx, types.NamespacedName{Name: ref.Name}, applied)
		if apierrors.IsNotFound(err) || err == nil && applied.UID != ref.UID {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("reading AppliedWork %s: %w", ref.Name, err)
		}
		rival := apply.Rival{Name: ref.Name}
		other, err := f.readWork(ctx, ref.Name)
		if err != nil {
			return nil, err
		}
		if other != nil {
			rival.Placement = parentPlacement(other)
			rival.Yields = !f.wants(other, key) || yieldsByRank(mine, other)
		}
		out = append(out, rival)
	}
	return out, nil
}

// claim is a manifest of another Work.
type claim struct {
	work, placement string
	key             apply.Key
}

// describe names the object of a claim and who wants it.
func (c claim) named() string {
	by := "Work " + c.work
	if c.placement != "" {
		by = "placement " + c.placement
	}
	return fmt.Sprintf("%s of %s", c.key, by)
}

// claims are what the Works of this cluster want of some objects and of what is in them.
type claims struct {
	heirs      map[apply.Key]string
	namespaces map[string][]claim
	kinds      map[schema.GroupKind][]claim
}

// findClaims finds which Works want some objects that a Work gives up, objects in those of them that are Namespaces, and objects
// of the given kinds. A Work that is being deleted wants nothing, and one that only reports differences takes nothing over.
func (f *rivalFinder) findClaims(ctx context.Context, work string, keys []apply.Key, kinds map[schema.GroupKind]bool) (claims, error) {
	found := claims{heirs: map[apply.Key]string{}, namespaces: map[string][]claim{}, kinds: map[schema.GroupKind][]claim{}}
	asked := map[apply.Key]bool{}
	namespaces := map[string]bool{}
	for _, key := range keys {
		asked[key] = true
		if key.GroupKind() == namespaceKind {
			namespaces[key.Name] = true
		}
	}
	list := &placementv1beta1.WorkList{}
	if err := f.hub.List(ctx, list, client.InNamespace(f.namespace), client.UnsafeDisableDeepCopy); err != nil {
		return claims{}, fmt.Errorf("listing the Works that may still want what Work %s gives up: %w", work, err)
	}
	for i := range list.Items {
		other := &list.Items[i]
		if !other.DeletionTimestamp.IsZero() || onlyReports(other) {
			continue
		}
		for _, key := range f.keysOf(other) {
			c := claim{work: other.Name, placement: parentPlacement(other), key: key}
			if asked[key] && other.Name != work {
				found.heirs[key] = other.Name
			}
			if namespaces[key.Namespace] {
				found.namespaces[key.Namespace] = append(found.namespaces[key.Namespace], c)
			}
			if kinds[key.GroupKind()] {
				found.kinds[key.GroupKind()] = append(found.kinds[key.GroupKind()], c)
			}
		}
	}
	return found, nil
}

// onlyReports reports whether a Work writes nothing to the cluster.
func onlyReports(work *placementv1beta1.Work) bool {
	return rules.EffectiveApplyStrategy(work.Spec.ApplyStrategy).Type == placementv1beta1.ApplyStrategyTypeReportDiff
}

// knownKeys are the objects that a version of a Work has manifests of.
type knownKeys struct {
	uid        types.UID
	generation int64
	keys       []apply.Key
}

// keysOf returns the objects that a Work has manifests of. It remembers them: when many Works end together, each looks into all
// others.
func (f *rivalFinder) keysOf(work *placementv1beta1.Work) []apply.Key {
	if keys, changes := f.change[work.Name]; changes {
		return keys
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	known := f.known[work.Name]
	if known.uid != work.UID || known.generation != work.Generation || known.keys == nil {
		known = knownKeys{uid: work.UID, generation: work.Generation, keys: manifestKeys(work)}
		if f.known == nil {
			f.known = map[string]knownKeys{}
		}
		f.known[work.Name] = known
	}
	return known.keys
}

// wants reports whether a Work has a manifest of an object and is not being deleted.
func (f *rivalFinder) wants(work *placementv1beta1.Work, key apply.Key) bool {
	if keys, changes := f.change[work.Name]; changes {
		return slices.Contains(keys, key)
	}
	return hasManifestOf(work, key)
}

// forget drops what is remembered of a Work that is gone.
func (f *rivalFinder) forget(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.known, name)
}

// yieldsByRank reports whether a Work gives an object up to one of another placement, both of which have a priority: the hub has
// decided that, and takes the object out of the Work that yields.
func yieldsByRank(mine, other *placementv1beta1.Work) bool {
	if mine == nil {
		return false
	}
	rank, ok := rules.RankOfWork(mine)
	of, also := rules.RankOfWork(other)
	return ok && also && rank.TakesFrom(of)
}

// readWork returns a Work of the namespace, nil if there is none.
func (f *rivalFinder) readWork(ctx context.Context, name string) (*placementv1beta1.Work, error) {
	work := &placementv1beta1.Work{}
	err := f.hub.Get(ctx, types.NamespacedName{Namespace: f.namespace, Name: name}, work)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading Work %s: %w", name, err)
	}
	return work, nil
}

func parentPlacement(work *placementv1beta1.Work) string {
	name := work.Labels[placementv1beta1.ParentPlacementLabel]
	if namespace := work.Labels[placementv1beta1.ParentNamespaceLabel]; namespace != "" && name != "" {
		return namespace + "/" + name
	}
	return name
}

// hasManifestOf reports whether a Work has a manifest of an object and is not being deleted.
func hasManifestOf(work *placementv1beta1.Work, key apply.Key) bool {
	if !work.DeletionTimestamp.IsZero() {
		return false
	}
	return slices.Contains(manifestKeys(work), key)
}

// manifestKeys returns the objects that a Work has manifests of.
func manifestKeys(work *placementv1beta1.Work) []apply.Key {
	keys := make([]apply.Key, 0, len(work.Spec.Workload.Manifests))
	for _, m := range work.Spec.Workload.Manifests {
		var head metav1.PartialObjectMetadata
		if json.Unmarshal(m.Raw, &head) != nil {
			continue // it describes no object
		}
		gvk := schema.FromAPIVersionAndKind(head.APIVersion, head.Kind)
		keys = append(keys, apply.Key{Group: gvk.Group, Kind: gvk.Kind, Namespace: head.Namespace, Name: head.Name})
	}
	return keys
}
