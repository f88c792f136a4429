package work

import (
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/controllers/member/apply"
	"github.com/fleetflow/fleetflow/controllers/member/availability"
)

// outcome is the result of the last attempt at one manifest.
type outcome struct {
	id   placementv1beta1.WorkResourceIdentifier
	gvr  schema.GroupVersionResource
	hash string
	// problem is why the manifest is not applied; nil if it is.
	problem *apply.Problem
	// retry is whether another attempt may succeed although neither the Work nor the object
	// changes.
	retry       bool
	failedTries failedTries

	struggle struggle

	// observed is whether the object was read, or found to be absent: the outcome holds as long as
	// the object has this version.
	observed   bool
	version    objectVersion // zero for an absent object
	generation int64
	// differences are what an applied object lacks of its manifest, answered what the API server made of it then.
	differences apply.Differences
	answered    string
	// findings are the fields in which the object differs from the manifest, if they were compared.
	findings apply.Findings

	// The rest is set if the manifest is applied.
	availability      availability.Status
	availabilityError string    // why availability is unknown
	failing           failing   // what is found out about an object that is not available
	run               jobRun    // the run of a Job that the cluster removes by itself
	objectStatus      []byte    // the object's own status, if it is to be reported
	pods              *podCount // its pods, if they are to be counted
	// stateValues are the values of its status that are to be reported.
	stateValues []placementv1beta1.StateValue
}

func (o outcome) ref() objectRef {
	return objectRef{gvr: o.gvr, name: types.NamespacedName{Namespace: o.id.Namespace, Name: o.id.Name}}
}

// memory is what the agent remembers of a Work from its last pass. Losing it costs reads, never
// correctness.
type memory struct {
	// uid of the Work; a Work of the same name with another UID starts anew.
	uid types.UID
	// generation of the Work and the settings that led to the outcomes.
	generation int64
	settings   applySettings
	// ownerUID is the UID of the AppliedWork that owns the objects of the outcomes.
	ownerUID types.UID
	// checked is when every object was last read.
	checked time.Time
	// complete is whether no manifest of that generation is to be tried again.
	complete bool
	// hasStaleObjects is whether objects that left the Work are still on the member.
	hasStaleObjects bool
	// remnants are since when those are to go, told what the status says of them, and tellAt when it says more; zero if it will not by
	// time alone.
	remnants remnantsSince
	told     []remnant
	tellAt   time.Time
	// statusReports limits how often a changed status of objects is reported.
	statusReports reportLimit
	// countReports limits how often other numbers of pods are reported.
	countReports reportLimit
	// valueReports limits how often other values of the status of objects are reported.
	valueReports reportLimit
	// struggles are the repairs of this generation. They outlast a pass that fails: a hub that is away stops no counting.
	struggles struggles
	// unsent are the reports in a row that the hub did not take.
	unsent unsent
	// outcomes by ordinal.
	outcomes []outcome
	// status as last written; the cache may lag behind it.
	status *placementv1beta1.WorkStatus
	// applied is the AppliedWork as last written.
	applied *placementv1beta1.AppliedWork
	// released is whether the finalizer was removed already; the cache may lag behind it.
	released bool
	// deletedWork is the Work without its content, once it was seen being deleted: its objects are
	// to be removed even if it vanishes before they are. Nil if they are to stay.
	deletedWork *placementv1beta1.Work
}

// applySettings are what a Work says about how it is applied, beside its manifests. Outcomes of other settings do not hold.
type applySettings struct {
	strategy     placementv1beta1.ApplyStrategy
	mirrorStatus bool
	statePaths   []string
}

func (w applySettings) isEqual(other applySettings) bool {
	return w.mirrorStatus == other.mirrorStatus && slices.Equal(w.statePaths, other.statePaths) &&
		equality.Semantic.DeepEqual(w.strategy, other.strategy)
}

// lastOutcomes returns the outcomes of the last pass that still apply to these manifests, by
// ordinal. Of another generation these are the outcomes of manifests that were applied and have not
// changed, so that a change of one manifest does not cause reads of the others. Manifests that
// failed, and repairs that are held back, start anew with a new generation.
func (m *memory) lastOutcomes(generation int64, manifests []apply.Manifest) map[int]outcome {
	last := map[int]outcome{}
	if m.generation == generation {
		for _, o := range m.outcomes {
			last[o.id.Ordinal] = o
		}
		return last
	}
	before := map[apply.Key]outcome{}
	for _, o := range m.outcomes {
		if o.observed && !o.retry && !o.struggle.held {
			before[apply.KeyOf(o.id)] = o
		}
	}
	for _, manifest := range manifests {
		o, ok := before[apply.KeyOf(manifest.Identifier)]
		if !ok || manifest.Problem != nil || o.hash != manifest.Hash || o.id.Version != manifest.Identifier.Version {
			continue
		}
		o.id.Ordinal = manifest.Identifier.Ordinal
		last[o.id.Ordinal] = o
	}
	return last
}

// memories keeps one memory per Work. A Work is reconciled by one worker at a time, so only the
// maps need a lock.
type memories struct {
	mu     sync.Mutex
	byName map[string]*memory
	// unapplied has the API groups of the objects that could not be applied, by Work.
	unapplied map[string]map[string]bool
	// changedObjects has the objects that changed since the last pass, for Works in unapplied.
	changedObjects map[string]map[objectRef]bool
	// vanished has the names of Works that are gone although the agent never saw them being
	// deleted.
	vanished map[string]bool
	// holding has the names of Works that wait until others want nothing of what they have.
	holding map[string]bool
}

// reportLimits returns what limits how often each kind of report on objects is made again.
func (m *memory) reportLimits() []*reportLimit {
	return []*reportLimit{&m.statusReports, &m.countReports, &m.valueReports}
}

func newMemories() *memories {
	return &memories{
		byName: map[string]*memory{}, unapplied: map[string]map[string]bool{},
		changedObjects: map[string]map[objectRef]bool{}, vanished: map[string]bool{},
		holding: map[string]bool{},
	}
}

// memoryOf returns the memory of a Work, an empty one if there is none for its UID.
func (m *memories) memoryOf(work *placementv1beta1.Work) *memory {
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

func (m *memories) forgetWork(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.byName, name)
	delete(m.unapplied, name)
	delete(m.changedObjects, name)
	delete(m.vanished, name)
	delete(m.holding, name)
}

// markHolding records whether a Work waits until others want nothing of what it has.
func (m *memories) markHolding(name string, holding bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if delete(m.holding, name); holding {
		m.holding[name] = true
	}
}

// holdingWorks returns the Works that wait so, except one.
func (m *memories) holdingWorks(except string) []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var names []string
	for name := range m.holding {
		if name != except {
			names = append(names, name)
		}
	}
	return names
}

// deletedWork returns the Work of a name that was seen being deleted, nil if none was.
func (m *memories) deletedWork(name string) *placementv1beta1.Work {
	m.mu.Lock()
	defer m.mu.Unlock()
	if mem, ok := m.byName[name]; ok {
		return mem.deletedWork
	}
	return nil
}

// hasReleased reports whether the finalizer of a Work was removed, after its objects had been dealt
// with.
func (m *memories) hasReleased(name string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	mem, ok := m.byName[name]
	return ok && mem.released
}

func (m *memories) hasVanished(name string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.vanished[name]
}

// markVanished forgets a Work and remembers that it vanished, until a Work of that name exists
// again.
func (m *memories) markVanished(name string) {
	m.forgetWork(name)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.vanished[name] = true
}

// recordUnapplied records the API groups in which a Work has objects that could not be applied.
func (m *memories) recordUnapplied(name string, outcomes []outcome) {
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
		delete(m.changedObjects, name)
		return
	}
	m.unapplied[name] = groups
}

// worksLacking returns the Works with objects of an API group that could not be applied, perhaps
// because their definition is missing.
func (m *memories) worksLacking(group string) []string {
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

// repairs counts how often an object had to be written although the Work has not changed. If
// another client keeps overwriting it, each repair waits longer than the one before.
type repairs struct {
	count int
	last  time.Time
}

const (
	// immediateRepairs is how many repairs are made without waiting.
	immediateRepairs = 4
	// repairResetPeriod is how long an object must need no repair for the count to start anew.
	repairResetPeriod = 10 * time.Minute
)

// nextAllowed returns when the next repair may be made.
func (r repairs) nextAllowed() time.Time {
	if r.count <= immediateRepairs {
		return r.last
	}
	return r.last.Add(retryDelay(r.count - immediateRepairs))
}

func (r repairs) mustWait(now time.Time) bool { return now.Before(r.nextAllowed()) }

func (r repairs) addRepair(now time.Time) repairs {
	if now.Sub(r.last) > repairResetPeriod {
		return repairs{count: 1, last: now}
	}
	return repairs{count: r.count + 1, last: now}
}

// earliestRepair returns when the first object that is held back may be repaired; zero if none is.
func earliestRepair(outcomes []outcome) time.Time {
	return earliestOf(outcomes, func(o outcome) (time.Time, bool) { return o.struggle.repairs.nextAllowed(), o.struggle.held })
}

// earliestOf returns the earliest of the times that some outcomes have; zero if none has one.
func earliestOf(outcomes []outcome, timeOf func(outcome) (time.Time, bool)) time.Time {
	var earliest time.Time
	for _, o := range outcomes {
		if at, has := timeOf(o); has && (earliest.IsZero() || at.Before(earliest)) {
			earliest = at
		}
	}
	return earliest
}

// lastStatus returns the status on the hub: what this agent wrote last, which the cache may lack yet, or what an earlier agent wrote.
func (m *memory) lastStatus(work *placementv1beta1.Work) placementv1beta1.WorkStatus {
	if m.status != nil {
		return *m.status
	}
	return work.Status
}
