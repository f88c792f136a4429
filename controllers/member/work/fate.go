package work

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// end is why an object of a Work is not wanted by it any more.
type end int

const (
	// endDeleted: the Work is deleted, with its placement, its binding or its envelope.
	endDeleted end = iota
	// endDropped: the object has left the Work: it is deselected, an override deletes it for this cluster, or it has left an
	// envelope.
	endDropped
	// endLeave: the cluster leaves the fleet, and all Works end with this one.
	endLeave
)

// departure is what decides about an object of a Work that does not want it any more.
type departure struct {
	end  end
	kind schema.GroupKind
	// abandon is whether the user wants the object to stay on the cluster.
	abandon bool
	// byProduct is whether the cluster makes an object of this name for itself.
	byProduct bool
	// heir is another Work of this cluster that has a manifest of the object; empty if none has.
	heir string
	// residents are objects of others in a Namespace, or of a kind that is defined; they would go with it.
	residents []string
}

// fate is what is done to such an object.
type fate int

const (
	// fateRemove deletes the object.
	fateRemove fate = iota
	// fateHandOver keeps the object until another Work owns it.
	fateHandOver
	// fateRelease takes the marks of the fleet off, and leaves the object to the cluster.
	fateRelease
	// fateHold keeps the object, and what owns it, until nothing of others is in it.
	fateHold
)

var (
	namespaceKind = schema.GroupKind{Kind: "Namespace"}
	claimKind     = schema.GroupKind{Kind: "PersistentVolumeClaim"}
)

// decideFate decides what happens to an object that a Work does not want any more: nothing that is still wanted is removed. It is
// pure.
func decideFate(d departure) fate {
	switch {
	case d.heir != "" && d.end != endLeave:
		return fateHandOver
	case d.abandon:
		return fateRelease
	case d.end == endDropped && (d.byProduct || d.kind == claimKind):
		// That it is no longer selected may only mean that it was a by-product on the hub. The cluster has its own, and a claim
		// has data: neither is to be deleted for that.
		return fateRelease
	case len(d.residents) == 0:
		return fateRemove
	case d.end == endLeave:
		return fateRelease // no agent would be there to say for what it waits, nor to remove it later
	default:
		return fateHold
	}
}

// holdsOthers reports whether the removal of an object of a kind removes objects of others.
func holdsOthers(kind schema.GroupKind) bool { return kind == namespaceKind || kind == definitionKind }
