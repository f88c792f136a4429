package delivery

import (
	"cmp"
	"maps"
	"slices"
	"time"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
)

// queues are those of all destinations that were put.
type queues map[Key]*queue

// serve has those destinations be served that are there the longest, sinks before the ways of rules, as many as the status of a record describes,
// and returns those of which that has changed. What is for the others waits.
func (all queues) serve() (changed []Key) {
	sorted := slices.SortedFunc(maps.Keys(all), func(a, b Key) int {
		return cmp.Or(rank(a)-rank(b), all[a].route.Since.Compare(all[b].route.Since), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
	for i, key := range sorted {
		isServed := i < fleetflowv1alpha1.MaxDeliveries
		if all[key].isServed != isServed {
			all[key].isServed = isServed
			changed = append(changed, key)
		}
	}
	return changed
}

// rank puts sinks first: what is for them is for the archive.
func rank(key Key) int {
	if key.Kind == fleetflowv1alpha1.AuditSinkKind {
		return 0
	}
	return 1
}

// nextBatches returns what to send now to each destination that is served and not blocked, and when there is more; zero if only something that
// happens changes that.
func (all queues) nextBatches(blocked map[Key]bool, now time.Time) (batches map[Key][]*waiting, again time.Time) {
	batches = map[Key][]*waiting{}
	for key, q := range all {
		if !q.isServed || blocked[key] {
			continue // a mark that is written, or fails, has this be looked at again
		}
		batch, from := q.next(now)
		if len(batch) == 0 {
			again = earliest(again, from)
			continue
		}
		batches[key] = batch
	}
	return batches, again
}

// toJudge returns the queues that are to find out now which records they want, and when others are.
func (all queues) toJudge(now time.Time) (asking []*queue, again time.Time) {
	for _, q := range all {
		switch {
		case !q.isServed, q.isJudging, len(q.toJudge) == 0:
		case now.Before(q.judgeAgain):
			again = earliest(again, q.judgeAgain)
		default:
			q.isJudging = true
			asking = append(asking, q)
		}
	}
	return asking, again
}

// isMissed reports whether one of those that want a record was not put yet, and does not have it.
func (all queues) isMissed(record *fleetflowv1alpha1.AuditRecord, wanting []Key) bool {
	return slices.ContainsFunc(wanting, func(key Key) bool {
		return all[key] == nil && !hasDelivery(record.Status.Deliveries, key)
	})
}

// isUnknown reports whether it is not known yet if a destination wants a record.
func (all queues) isUnknown(t *tracked) bool {
	for _, q := range all {
		if q.toJudge[t.record.Name] != nil {
			return true
		}
	}
	return false
}

// isOwed reports whether a destination waits for a record, or may.
func (all queues) isOwed(t *tracked) bool {
	for _, q := range all {
		if q.byName[t.record.Name] != nil {
			return true
		}
	}
	return false
}

// isExpected reports whether another destination that takes what it gets is to get a record soon: both are in one mark then.
func (all queues) isExpected(t *tracked, now time.Time) bool {
	for _, q := range all {
		if w := q.byName[t.record.Name]; w != nil && (w.underWay && q.failures == 0 || w.isReady(q, now)) {
			return true
		}
	}
	return false
}
