package work

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
)

const (
	firstRetry = 200 * time.Millisecond
	lastRetry  = time.Minute
	// lastReconnect is how long to wait at most if hub or member cannot be reached: what was found
	// meanwhile is to be told soon after they are back.
	lastReconnect = 15 * time.Second
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

// tries tells how often in a row it was tried in vain to apply a manifest. Each manifest backs
// off by itself: one that fails for long neither holds up the others nor is tried again because
// of them.
type tries struct {
	count int
	last  time.Time
}

func (t tries) another(now time.Time) tries { return tries{count: t.count + 1, last: now} }

// next is when to try again.
func (t tries) next() time.Time { return t.last.Add(backoff(t.count)) }

// nextTry is when the first manifest that failed is to be tried again; zero if none has.
func nextTry(outcomes []outcome) time.Time {
	var first time.Time
	for _, o := range outcomes {
		if next := o.tries.next(); o.retry && (first.IsZero() || next.Before(first)) {
			first = next
		}
	}
	return first
}

// rests tells whether a manifest that failed is not to be tried again yet.
func (o outcome) rests(now time.Time) bool {
	return o.retry && o.tries.count > 0 && now.Before(o.tries.next())
}

// stirredBy lets a manifest that failed be tried again soon if what it may have failed for has
// changed. It still waits as long as after a first failure: what changes all the time must not
// be tried all the time.
func (o outcome) stirredBy(stirred map[object]bool) outcome {
	if o.tries.count > 1 && o.concernedBy(stirred) {
		o.tries.count = 1
	}
	return o
}

// concernedBy tells whether one of the objects may be why a manifest failed: it is the
// manifest's own, its namespace or, as its kind may have been unknown, a definition. An object
// without a name stands for all of its kind.
func (o outcome) concernedBy(stirred map[object]bool) bool {
	if len(stirred) == 0 {
		return false
	}
	for _, mine := range []object{
		o.object(), {gvr: o.gvr},
		{gvr: namespaceResource, name: types.NamespacedName{Name: o.id.Namespace}}, {gvr: namespaceResource},
	} {
		if stirred[mine] {
			return true
		}
	}
	for other := range stirred {
		if other.gvr == definitionResource {
			return true
		}
	}
	return false
}

// stir notes that an object has changed, if it may help a Work of which a manifest has failed.
func (m *memories) stir(name string, o object) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.unapplied[name] == nil {
		return
	}
	if m.stirred[name] == nil {
		m.stirred[name] = map[object]bool{}
	}
	m.stirred[name][o] = true
}

// takeStirred returns what has changed since it was last asked for.
func (m *memories) takeStirred(name string) map[object]bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	taken := m.stirred[name]
	delete(m.stirred, name)
	return taken
}
