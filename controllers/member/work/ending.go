package work

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/controllers/member/apply"
)

// ending is why objects of a Work end.
type ending struct {
	work    string
	end     end
	abandon bool
	// dependents is what happens to what depends on the objects.
	dependents metav1.DeletionPropagation
	// owner is the AppliedWork that owns the objects.
	owner metav1.OwnerReference
}

// departureFinder finds out what decides about objects that are to end. It only reads.
type departureFinder struct {
	engine    *apply.Engine
	rivals    *rivalFinder
	contents  *contentLister
	member    client.Client
	mapper    meta.RESTMapper
	namespace string
}

func (r *Reconciler) departures() departureFinder {
	return departureFinder{engine: r.engine, rivals: r.rivals, contents: r.contents, member: r.Member, mapper: r.Mapper, namespace: r.Namespace}
}

// endObjects deals with objects that a Work does not want any more, as decideFate says. It returns those that are not gone, handed
// over or left to the cluster yet.
func (r *Reconciler) endObjects(ctx context.Context, why ending, items []placementv1beta1.AppliedResourceMeta) ([]remnant, error) {
	if len(items) == 0 {
		return nil, nil
	}
	found, err := r.departures().findClaimsOn(ctx, why, items)
	if err != nil {
		return asRemnants(items), err
	}
	mine := uidsOf(items)
	if slices.ContainsFunc(items, func(item placementv1beta1.AppliedResourceMeta) bool {
		return holdsOthers(apply.KeyOf(item.WorkResourceIdentifier).GroupKind())
	}) {
		r.memories.markHolding(why.work, true) // a Work that ends during the look wakes this one
	}
	left, err := disposeInWaves(items, func(item placementv1beta1.AppliedResourceMeta) (remnant, bool, error) {
		return r.endObject(ctx, why, item, found, mine)
	})
	r.memories.markHolding(why.work, slices.ContainsFunc(left, func(l remnant) bool { return l.forWorks }))
	return left, err
}

// findClaimsOn finds what other Works want of these objects. Nothing is wanted of a cluster that leaves.
func (f departureFinder) findClaimsOn(ctx context.Context, why ending, items []placementv1beta1.AppliedResourceMeta) (claims, error) {
	if why.end == endLeave {
		return claims{}, nil
	}
	keys := make([]apply.Key, 0, len(items))
	kinds := map[schema.GroupKind]bool{}
	for _, item := range items {
		key := apply.KeyOf(item.WorkResourceIdentifier)
		keys = append(keys, key)
		if kind, ok := f.definedKind(key); ok {
			kinds[kind] = true
		}
	}
	return f.rivals.findClaims(ctx, why.work, keys, kinds)
}

// definedKind returns the kind that a CustomResourceDefinition defines, if the cluster serves it.
func (f departureFinder) definedKind(definition apply.Key) (schema.GroupKind, bool) {
	plural, group, ok := strings.Cut(definition.Name, ".")
	if definition.GroupKind() != definitionKind || !ok {
		return schema.GroupKind{}, false
	}
	kind, err := f.mapper.KindFor(schema.GroupVersionResource{Group: group, Resource: plural})
	return kind.GroupKind(), err == nil
}

func (r *Reconciler) endObject(
	ctx context.Context, why ending, item placementv1beta1.AppliedResourceMeta, found claims, mine map[types.UID]bool,
) (remnant, bool, error) {
	id := item.WorkResourceIdentifier
	key := apply.KeyOf(id)
	left := remnant{item: item}
	d, forWorks, err := r.departures().findDeparture(ctx, why, item, found, mine)
	if err != nil {
		return left, false, err
	}
	left.forWorks = forWorks
	var gone bool
	switch decideFate(d) {
	case fateHandOver:
		if gone, err = r.engine.HandOver(ctx, id, why.owner); !gone && err == nil {
			r.wakeHeir(d.heir, item)
			left.reason = placementv1beta1.ReasonWaitingForHandover
			left.message = fmt.Sprintf("%s is wanted by Work %s too, which has not taken it over yet", key, d.heir)
		}
	case fateRelease:
		gone, err = r.engine.Disown(ctx, id, why.owner)
	case fateHold:
		left.reason = placementv1beta1.ReasonInUse
		left.message = heldMessage(key, d.residents)
	default:
		gone, err = r.engine.Remove(ctx, id, why.owner, why.dependents)
	}
	return left, gone, err
}

// findDeparture finds what decides about an object, and whether it may have to wait for other Works.
func (f departureFinder) findDeparture(
	ctx context.Context, why ending, item placementv1beta1.AppliedResourceMeta, found claims, mine map[types.UID]bool,
) (d departure, forWorks bool, err error) {
	key := apply.KeyOf(item.WorkResourceIdentifier)
	d = departure{end: why.end, kind: key.GroupKind(), abandon: why.abandon, heir: found.heirs[key],
		byProduct: rules.HasByProductName(key.GroupKind(), key.Name)}
	if !holdsOthers(d.kind) || decideFate(d) != fateRemove {
		return d, false, nil
	}
	live, err := f.engine.FindRemovable(ctx, item.WorkResourceIdentifier, why.owner)
	if err != nil || live == nil {
		return d, false, err
	}
	if d.residents, forWorks, err = f.findResidents(ctx, why, live, found, mine); err != nil {
		return d, false, fmt.Errorf("finding out what others have in %s: %w", key, err)
	}
	return d, forWorks, nil
}

// wakeHeir has a Work look at once at an object that it can take over now.
func (r *Reconciler) wakeHeir(heir string, item placementv1beta1.AppliedResourceMeta) {
	if gvr, ok := resourceOf(item.WorkResourceIdentifier); ok {
		r.enqueueAfterEvent(heir, objectRef{gvr: gvr, name: types.NamespacedName{Namespace: item.Namespace, Name: item.Name}})
	}
}

// namedResidents is how many objects of others a message names.
const namedResidents = 5

// heldMessage returns why a Namespace or a definition is not removed, and what to do.
func heldMessage(key apply.Key, residents []string) string {
	named := strings.Join(residents[:min(len(residents), namedResidents)], ", ")
	if len(residents) > namedResidents {
		named += ", and more"
	}
	what := "in it"
	if key.GroupKind() == definitionKind {
		what = "of its kind"
	}
	return fmt.Sprintf("%s is not removed, as others have objects %s, which would go with it: %s. It is removed once they are gone; "+
		"or annotate it on the cluster with %s=%s to let them go as well", key, what, named,
		placementv1beta1.RemoveContentAnnotation, placementv1beta1.LabelValueTrue)
}

// findResidents names the objects of others in a Namespace or of a kind that is defined, as many as a message names and one more.
// An annotation on the object lets those of the cluster go with it, but not those that another Work wants. It also tells whether
// Works have some of them, so that the next change of a Work may free the object.
func (f departureFinder) findResidents(
	ctx context.Context, why ending, live *unstructured.Unstructured, found claims, mine map[types.UID]bool,
) (named []string, ofWorks bool, err error) {
	key := apply.Key{Kind: live.GetKind(), Group: live.GroupVersionKind().Group, Name: live.GetName()}
	wanted := found.namespaces[live.GetName()]
	if key.GroupKind() == definitionKind {
		kind, _ := f.definedKind(key)
		wanted = found.kinds[kind]
	}
	for _, c := range wanted {
		named = append(named, c.named())
	}
	if len(named) > 0 || live.GetAnnotations()[placementv1beta1.RemoveContentAnnotation] == placementv1beta1.LabelValueTrue {
		return named[:min(len(named), namedResidents+1)], len(named) > 0, nil
	}
	err = f.contents.visit(ctx, live, func(kind schema.GroupKind, object *metav1.PartialObjectMetadata) (bool, error) {
		owner, resides, err := f.residentOwner(ctx, why, kind, object, mine)
		if err != nil {
			return false, err
		}
		if resides {
			key := apply.Key{Group: kind.Group, Kind: kind.Kind, Namespace: object.Namespace, Name: object.Name}
			named = append(named, key.String()+" of "+owner)
			ofWorks = ofWorks || owner != ownerCluster
		}
		return len(named) <= namedResidents, nil
	})
	return named, ofWorks, err
}

// ownerCluster is who has what no Work has placed.
const ownerCluster = "the cluster"

// residentOwner reports whether an object in a Namespace or of a defined kind belongs to others, for whom it would be lost, and to whom.
// What the ending Works have placed does not. Nor does what a controller made for another object: that one is looked at, too.
func (f departureFinder) residentOwner(
	ctx context.Context, why ending, kind schema.GroupKind, object *metav1.PartialObjectMetadata, mine map[types.UID]bool,
) (string, bool, error) {
	made := rules.IsByProduct(kind, object) || rules.IsMadeByControllers(kind, object.ManagedFields)
	if !object.DeletionTimestamp.IsZero() || made && kind != claimKind { // a claim has data, whatever made it
		return "", false, nil
	}
	others := false
	for _, ref := range object.OwnerReferences {
		switch {
		case ref.UID == why.owner.UID || mine[ref.UID]:
			return "", false, nil
		case !apply.IsAppliedWork(ref):
			others = true
		default:
			ends, err := f.endsToo(ctx, why, ref.Name)
			return "AppliedWork " + ref.Name, !ends, err
		}
	}
	return ownerCluster, !others || object.Namespace == "", nil
}

// endsToo reports whether what another AppliedWork has ends with what is looked at: a rehearsed change ends it, too, or the cluster
// leaves with all Works of this fleet, except those that are deleted and leave their objects. A Work that ends otherwise but has not
// yet done so may leave its objects on the cluster, too.
func (f departureFinder) endsToo(ctx context.Context, why ending, name string) (bool, error) {
	if why.end != endLeave {
		_, changes := f.rivals.change[name]
		return changes, nil
	}
	applied := &placementv1beta1.AppliedWork{}
	if err := f.member.Get(ctx, types.NamespacedName{Name: name}, applied); err != nil {
		return false, fmt.Errorf("reading AppliedWork %s: %w", name, err)
	}
	work, err := f.rivals.readWork(ctx, name)
	if err != nil {
		return false, err
	}
	keeps := work != nil && !work.DeletionTimestamp.IsZero() && abandonsObjects(work)
	return applied.Spec.WorkNamespace == f.namespace && !keeps, nil
}

func uidsOf(items []placementv1beta1.AppliedResourceMeta) map[types.UID]bool {
	out := map[types.UID]bool{}
	for _, item := range items {
		if item.UID != "" {
			out[item.UID] = true
		}
	}
	return out
}

func asRemnants(items []placementv1beta1.AppliedResourceMeta) []remnant {
	out := make([]remnant, 0, len(items))
	for _, item := range items {
		out = append(out, remnant{item: item})
	}
	return out
}

func itemsOf(left []remnant) []placementv1beta1.AppliedResourceMeta {
	var out []placementv1beta1.AppliedResourceMeta
	for _, l := range left {
		out = append(out, l.item)
	}
	return out
}
