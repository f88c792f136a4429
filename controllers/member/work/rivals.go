package work

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/controllers/member/apply"
)

// rivalFinder finds Works that have manifests of the same objects. The Works of one binding share
// the objects of their placement. When the hub splits them anew, an object may move from one Work
// to another: it is handed over, not deleted and created again. So it is between placements that have a
// priority. Works of other placements never share an object.
type rivalFinder struct {
	hub       client.Client
	member    client.Client
	namespace string
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
			rival.Yields = hasSameBinding(mine, other) && !hasManifestOf(other, key) || yieldsByRank(mine, other, key)
		}
		out = append(out, rival)
	}
	return out, nil
}

// splitInherited splits the stale objects of a Work into those that another Work of the same binding has now, or one of
// another placement if both have a priority, and will take over, and the rest.
func (f *rivalFinder) splitInherited(
	ctx context.Context, work *placementv1beta1.Work, stale []placementv1beta1.AppliedResourceMeta,
) (inherited, rest []placementv1beta1.AppliedResourceMeta, err error) {
	binding := work.Labels[placementv1beta1.ParentBindingLabel]
	if binding == "" || len(stale) == 0 {
		return nil, stale, nil
	}
	options := []client.ListOption{client.InNamespace(f.namespace), client.MatchingLabels{placementv1beta1.ParentBindingLabel: binding}}
	_, ranked := placementv1beta1.RankOfWork(work)
	if ranked {
		options = options[:1]
	}
	list := &placementv1beta1.WorkList{}
	if err = f.hub.List(ctx, list, options...); err != nil {
		return nil, nil, fmt.Errorf("listing the Works that may take over from those of binding %s: %w", binding, err)
	}
	held := map[apply.Key]bool{}
	for i := range list.Items {
		heir := &list.Items[i]
		isOther := heir.Labels[placementv1beta1.ParentBindingLabel] != binding
		if isOther {
			_, also := placementv1beta1.RankOfWork(heir)
			isOther = ranked && also
		}
		if heir.Name != work.Name && heir.DeletionTimestamp.IsZero() && (isOther || hasSameBindingUID(work, heir)) {
			for _, key := range manifestKeys(heir) {
				held[key] = true
			}
		}
	}
	for _, item := range stale {
		if held[apply.KeyOf(item.WorkResourceIdentifier)] {
			inherited = append(inherited, item)
		} else {
			rest = append(rest, item)
		}
	}
	return inherited, rest, nil
}

// yieldsByRank tells whether a Work gives an object up to one of another placement, both of which have a priority: because it has
// it no more, or because the other placement takes it over. The hub has decided that, and takes the object out of the
// Work that yields.
func yieldsByRank(mine, other *placementv1beta1.Work, key apply.Key) bool {
	if mine == nil {
		return false
	}
	rank, ok := placementv1beta1.RankOfWork(mine)
	of, also := placementv1beta1.RankOfWork(other)
	return ok && also && (!hasManifestOf(other, key) || rank.TakesFrom(of))
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

func hasSameBinding(a, b *placementv1beta1.Work) bool {
	binding := b.Labels[placementv1beta1.ParentBindingLabel]
	return a != nil && binding != "" && a.Labels[placementv1beta1.ParentBindingLabel] == binding
}

// hasSameBindingUID tells whether two Works are of the very same binding, and not of bindings that
// had the same name one after the other. A binding that was deleted and created again takes nothing
// over.
func hasSameBindingUID(a, b *placementv1beta1.Work) bool {
	return a.Annotations[placementv1beta1.BindingUIDAnnotation] == b.Annotations[placementv1beta1.BindingUIDAnnotation]
}

// hasManifestOf tells whether a Work has a manifest of an object and is not being deleted.
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
