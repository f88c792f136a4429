package override

import (
	"bytes"
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/apis/placement/rules"
)

// historyLimit is how many snapshots of an override are kept, beside those that are referenced.
const historyLimit = 10

// desired is the state that the snapshots of an override have to reflect.
type desired struct {
	// exists says that the override exists and is not being deleted.
	exists bool
	// valid says that the hub applies it.
	valid bool
	hash  []byte
	// frozen are the indexes that running update runs still need when the override is gone.
	frozen sets.Set[int]
}

// mark is what the labels of a snapshot say of it.
type mark int

const (
	// unclear labels are missing or contradict each other.
	unclear mark = iota
	// retired is a snapshot of the past.
	retired
	// inForce is the snapshot that placements use.
	inForce
)

// version is a snapshot of an override.
type version struct {
	index int
	hash  []byte
	mark  mark
	// kinship is what it is to the override.
	kinship rules.Kinship
	// leaving says that it is being deleted.
	leaving bool
	// object is the snapshot itself, to be read only.
	object client.Object
}

// action is something to do with a snapshot.
type action int

const (
	// create takes a snapshot; it is in force from the start.
	create action = iota
	// adopt makes the override the owner of a snapshot taken before it got its UID.
	adopt
	// enforce and retire label a snapshot.
	enforce
	retire
	// remove deletes a snapshot.
	remove
	// prune deletes a snapshot unless it is referenced.
	prune
)

// step is one write.
type step struct {
	do    action
	index int
	// version is nil for create.
	version *version
}

// planSteps returns which writes make the snapshots reflect an override. The order matters: the process may die after
// each step, and the next one continues from there. The new snapshot is in force before the previous one is retired,
// so that a reader always finds one; of two that are in force, the one with the higher index counts.
//
// named are the indexes that are referenced. No new snapshot gets one of those, nor a lower one: an earlier override
// of the same name may have had them, and a name must not change its meaning while it is referenced.
func planSteps(want desired, there []version, named sets.Set[int]) []step {
	if !want.exists {
		return planRemoval(want, there)
	}
	own := ownVersions(there)
	var steps []step
	for _, v := range own {
		if v.kinship == rules.KinshipInherited {
			steps = append(steps, step{adopt, v.index, v})
		}
	}
	latest := -1
	kept := historyLimit
	switch {
	case !want.valid:
	case len(own) > 0 && bytes.Equal(own[0].hash, want.hash):
		latest = own[0].index
		if own[0].mark != inForce {
			steps = append(steps, step{enforce, latest, own[0]})
		}
	default:
		latest = nextIndex(there, named)
		kept--
		steps = append(steps, step{create, latest, nil})
	}
	for _, v := range own {
		if v.index != latest && v.mark != retired {
			steps = append(steps, step{retire, v.index, v})
		}
	}
	for i, v := range own {
		if i >= kept && !named.Has(v.index) {
			steps = append(steps, step{prune, v.index, v})
		}
	}
	return steps
}

// planRemoval retires the snapshots that are still needed and deletes the others.
func planRemoval(want desired, there []version) []step {
	var steps []step
	for i := range there {
		if v := &there[i]; want.frozen.Has(v.index) && !v.leaving && v.mark != retired {
			steps = append(steps, step{retire, v.index, v})
		}
	}
	return append(steps, deletionsOf(there, func(v *version) bool { return !want.frozen.Has(v.index) })...)
}

// deletionsOf returns the steps that delete some snapshots.
func deletionsOf(there []version, which func(*version) bool) []step {
	var steps []step
	for i := range there {
		if v := &there[i]; !v.leaving && which(v) {
			steps = append(steps, step{remove, v.index, v})
		}
	}
	return steps
}

// ownVersions returns the snapshots of the override, the newest first.
func ownVersions(there []version) []*version {
	own := make([]*version, 0, len(there))
	for i := range there {
		if there[i].kinship != rules.KinshipDisputed && !there[i].leaving {
			own = append(own, &there[i])
		}
	}
	slices.SortFunc(own, func(a, b *version) int { return cmp.Compare(b.index, a.index) })
	return own
}

// nextIndex returns the index of a new snapshot.
func nextIndex(there []version, named sets.Set[int]) int {
	highest := -1
	for i := range there {
		highest = max(highest, there[i].index)
	}
	for index := range named {
		highest = max(highest, index)
	}
	return highest + 1
}
