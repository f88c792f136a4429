package as

import (
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// MaxWrites is how many writes a user may make within a minute.
const MaxWrites = 10

// Outcomes are what has become of forms by their keys, so that one that is sent twice is carried out once.
type Outcomes struct {
	mutex sync.Mutex
	byKey map[string]*Outcome
	// writes are the times of the latest.
	writes []time.Time
}

// Outcome is what has become of a form.
type Outcome struct {
	// Once carries the form out.
	Once sync.Once
	// Status is the HTTP status that the form is answered with.
	Status int
	// Done and Refused are sentences, one of which is empty.
	Done, Refused string
	at            time.Time
}

// keep is how long an outcome is known.
const keep = 10 * time.Minute

// Of returns the outcome of a form, new if it is sent the first time; nil if there were too many writes.
func (o *Outcomes) Of(key string, clock clock.PassiveClock) *Outcome {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	now := clock.Now()
	for known, outcome := range o.byKey {
		if now.Sub(outcome.at) > keep {
			delete(o.byKey, known)
		}
	}
	if known := o.byKey[key]; known != nil && key != "" {
		return known
	}
	recent := o.writes[:0]
	for _, at := range o.writes {
		if now.Sub(at) < time.Minute {
			recent = append(recent, at)
		}
	}
	o.writes = recent
	if len(recent) >= MaxWrites {
		return nil
	}
	o.writes = append(o.writes, now)
	if o.byKey == nil {
		o.byKey = map[string]*Outcome{}
	}
	made := &Outcome{at: now}
	o.byKey[key] = made
	return made
}

// Said returns the sentence about a form that was carried out.
func (o *Outcomes) Said(key string) string {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	if known := o.byKey[key]; known != nil {
		return known.Done
	}
	return ""
}
