package work

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/controllers/member/apply"
	"github.com/fleetflow/fleetflow/controllers/member/availability"
)

// outcome is what became of one manifest.
type outcome struct {
	id   placementv1beta1.WorkResourceIdentifier
	gvr  schema.GroupVersionResource
	hash string
	// problem is why the manifest is not applied; nil if it is.
	problem *apply.Problem
	// retry is whether trying again may help without the Work or the object changing.
	retry bool
	// tries counts how often it was tried in vain.
	tries tries

	// repairs counts how often the object had to be written for the same manifest.
	repairs repairs
	// held is whether the object was only looked at, because it is repaired too often.
	held bool

	// looked is whether the object was read, or found to be absent: what is said of it holds as
	// long as it stands as it was seen.
	looked     bool
	seen       sighting // of an absent object, nothing
	generation int64
	// findings is in which fields the object differs from the manifest, if they were compared.
	findings apply.Findings

	// The rest is set if the manifest is applied.
	verdict availability.Verdict
	failure string // why there is no verdict
	excerpt []byte // the object's own status, if it is to be reported
}

func (o outcome) object() object {
	return object{gvr: o.gvr, name: types.NamespacedName{Namespace: o.id.Namespace, Name: o.id.Name}}
}

// memory is what the agent knows of a Work from its last pass. Losing it costs reads, never
// correctness.
type memory struct {
	// uid of the Work; a Work of the same name with another uid starts anew.
	uid types.UID
	// generation of the Work the outcomes are of, and the way it was carried out.
	generation int64
	way        way
	// owner is the AppliedWork that owns what the outcomes are of.
	owner types.UID
	// checked is when every object was last read.
	checked time.Time
	// settled is whether nothing is left to do for that generation.
	settled bool
	// leaving is whether objects that left the Work are still on the member.
	leaving bool
	// mirroring is how far the reports of the objects' own status are.
	mirroring mirroring
	// pruning is how far the removal of what left that generation is.
	pruning pruning
	// outcomes by ordinal.
	outcomes []outcome
	// status as last written; the cache may lag behind it.
	status *placementv1beta1.WorkStatus
	// applied is the AppliedWork as last written.
	applied *placementv1beta1.AppliedWork
	// released is whether the finalizer was removed already; the cache may lag behind.
	released bool
	// removing is the Work without its content, once it was seen being deleted: what it has
	// brought is to go, whatever becomes of it. Nil if that was to stay.
	removing *placementv1beta1.Work
}

// way is how a Work is carried out, besides its manifests. In another way, nothing that was found
// out holds.
type way struct {
	strategy placementv1beta1.ApplyStrategy
	mirrored bool
}

func (w way) is(other way) bool {
	return w.mirrored == other.mirrored && equality.Semantic.DeepEqual(w.strategy, other.strategy)
}

// known returns what the last pass found out that still concerns these manifests, by their
// ordinal. Of another generation that is what went well with a manifest that is still the same:
// a change of one object does not make the others be read. What failed, or is held back, starts
// anew with a new generation.
func (m *memory) known(generation int64, manifests []apply.Manifest) map[int]outcome {
	known := map[int]outcome{}
	if m.generation == generation {
		for _, o := range m.outcomes {
			known[o.id.Ordinal] = o
		}
		return known
	}
	before := map[apply.Key]outcome{}
	for _, o := range m.outcomes {
		if o.looked && !o.retry && !o.held {
			before[apply.KeyOf(o.id)] = o
		}
	}
	for _, manifest := range manifests {
		o, ok := before[apply.KeyOf(manifest.Identifier)]
		if !ok || manifest.Problem != nil || o.hash != manifest.Hash || o.id.Version != manifest.Identifier.Version {
			continue
		}
		o.id.Ordinal = manifest.Identifier.Ordinal
		known[o.id.Ordinal] = o
	}
	return known
}

// memories keeps one memory per Work. A Work is looked at by one worker at a time, so only
// the map needs a lock.
type memories struct {
	mu     sync.Mutex
	byName map[string]*memory
	// unapplied has the API groups of which a Work has objects that could not be applied.
	unapplied map[string]map[string]bool
	// stirred has what has changed since the last pass over a Work that has such objects.
	stirred map[string]map[object]bool
	// vanished has the names of Works that are gone though nobody was seen deleting them.
	vanished map[string]bool
}

func newMemories() *memories {
	return &memories{
		byName: map[string]*memory{}, unapplied: map[string]map[string]bool{},
		stirred: map[string]map[object]bool{}, vanished: map[string]bool{},
	}
}

// of returns the memory of a Work, empty if there is none of the Work with this uid.
func (m *memories) of(work *placementv1beta1.Work) *memory {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.vanished, work.Name)
	mem, ok := m.byName[work.Name]
	if !ok || mem.uid != work.UID {
		mem = &memory{uid: work.UID}
		m.byName[work.Name] = mem
	}
	return mem
}

func (m *memories) forget(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.byName, name)
	delete(m.unapplied, name)
	delete(m.stirred, name)
	delete(m.vanished, name)
}

// removing returns the Work of a name that was seen being deleted, nil if none was.
func (m *memories) removing(name string) *placementv1beta1.Work {
	m.mu.Lock()
	defer m.mu.Unlock()
	if mem, ok := m.byName[name]; ok {
		return mem.removing
	}
	return nil
}

// hasReleased tells whether a Work was let go of, after what it had brought was dealt with.
func (m *memories) hasReleased(name string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	mem, ok := m.byName[name]
	return ok && mem.released
}

// hasVanished tells whether a Work is known to have vanished.
func (m *memories) hasVanished(name string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.vanished[name]
}

// vanish forgets a Work and notes that it has vanished, until there is one of that name again.
func (m *memories) vanish(name string) {
	m.forget(name)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.vanished[name] = true
}

// await notes of which API groups a Work has objects that could not be applied.
func (m *memories) await(name string, outcomes []outcome) {
	groups := map[string]bool{}
	for _, o := range outcomes {
		if o.retry {
			groups[o.id.Group] = true
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(groups) == 0 {
		delete(m.unapplied, name)
		delete(m.stirred, name)
		return
	}
	m.unapplied[name] = groups
}

// waitingFor returns the Works that have objects of an API group that could not be applied, be
// it for want of their definition.
func (m *memories) waitingFor(group string) []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var names []string
	for name, groups := range m.unapplied {
		if groups[group] {
			names = append(names, name)
		}
	}
	return names
}

// repairs tells how often an object had to be written though the Work has not changed. If
// somebody else keeps writing it differently, each repair waits longer for the next.
type repairs struct {
	count int
	last  time.Time
}

const (
	// freeRepairs are made at once.
	freeRepairs = 4
	// repairsForgotten is how long an object must have been left alone to count as new.
	repairsForgotten = 10 * time.Minute
)

// until is when the next repair may be made.
func (r repairs) until() time.Time {
	if r.count <= freeRepairs {
		return r.last
	}
	return r.last.Add(backoff(r.count - freeRepairs))
}

func (r repairs) hold(now time.Time) bool { return now.Before(r.until()) }

func (r repairs) another(now time.Time) repairs {
	if now.Sub(r.last) > repairsForgotten {
		return repairs{count: 1, last: now}
	}
	return repairs{count: r.count + 1, last: now}
}

// heldUntil is when the first object that is held back may be repaired; zero if none is.
func heldUntil(outcomes []outcome) time.Time {
	var first time.Time
	for _, o := range outcomes {
		if until := o.repairs.until(); o.held && (first.IsZero() || until.Before(first)) {
			first = until
		}
	}
	return first
}
