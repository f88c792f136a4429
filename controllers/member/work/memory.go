package work

import (
	"sync"
	"time"

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

	// The rest is set if the manifest is applied.
	seen       sighting
	generation int64
	verdict    availability.Verdict
	failure    string // why there is no verdict
}

func (o outcome) object() object {
	return object{gvr: o.gvr, name: types.NamespacedName{Namespace: o.id.Namespace, Name: o.id.Name}}
}

// memory is what the agent knows of a Work from its last pass. Losing it costs reads, never
// correctness.
type memory struct {
	// uid of the Work; a Work of the same name with another uid starts anew.
	uid types.UID
	// generation of the Work the outcomes are of.
	generation int64
	// checked is when every object was last read.
	checked time.Time
	// settled is whether nothing is left to do for that generation.
	settled bool
	// leaving is whether objects that left the Work are still on the member.
	leaving bool
	// outcomes by ordinal.
	outcomes []outcome
	// status as last written; the cache may lag behind it.
	status *placementv1beta1.WorkStatus
	// applied is the AppliedWork as last written.
	applied *placementv1beta1.AppliedWork
	// failures counts passes in a row that left something to retry.
	failures int
}

// memories keeps one memory per Work. A Work is looked at by one worker at a time, so only
// the map needs a lock.
type memories struct {
	mu     sync.Mutex
	byName map[string]*memory
}

func newMemories() *memories { return &memories{byName: map[string]*memory{}} }

// of returns the memory of a Work, empty if there is none of the Work with this uid.
func (m *memories) of(work *placementv1beta1.Work) *memory {
	m.mu.Lock()
	defer m.mu.Unlock()
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
}

const (
	firstRetry = 200 * time.Millisecond
	lastRetry  = time.Minute
)

// backoff is how long to wait before the next try after so many failures in a row.
func backoff(failures int) time.Duration {
	delay := firstRetry
	for range failures - 1 {
		delay *= 2
		if delay >= lastRetry {
			return lastRetry
		}
	}
	return delay
}
