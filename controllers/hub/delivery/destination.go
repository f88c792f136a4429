package delivery

import (
	"context"
	"time"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
)

// Destination takes records.
type Destination interface {
	// Deliver sends records and returns when all of them are taken, or none: after an error they are sent again. It has as long as the context.
	// Errors are shown to people: they must not quote credentials, and of what a server says no more than outbound.Answer.Words
	// returns. A RefusedError and a RetryError say more than that it has failed.
	Deliver(ctx context.Context, records []fleetflowv1alpha1.AuditRecord) error
}

// RefusedError says that trying again is no use until the destination is set up in another way.
type RefusedError struct {
	Why string
	// Content is whether it is what was sent that is refused, and not who sends it: other records may be taken.
	Content bool
}

func (e *RefusedError) Error() string { return e.Why }

// RetryError says that the destination asks not to be called for some time.
type RetryError struct {
	Why   string
	After time.Duration
}

func (e *RetryError) Error() string { return e.Why }

// Key names a destination, as the deliveries in the status of a record do.
type Key struct{ Kind, Name string }

// Route says which records go to a destination, and how.
type Route struct {
	Key Key
	// Version tells the settings of the destination from others, with those of its Secrets: what was refused is tried again when it changes.
	Version string
	// FilterVersion tells what Wants goes by from what it went by before: a record that was wanted stays so until that changes. If it is empty,
	// a record is judged again whenever it is seen or the destination is put.
	FilterVersion string
	// Since is from when on records are for the destination, by their creation: it exists since then. Of more destinations than are served, those
	// that exist the longest are, sinks first.
	Since time.Time
	// Wants reports whether a record is for the destination; with nil all are. After an error the record waits, and it is asked again. It is called without the engine's lock, for one record at a
	// time: what is slow holds up its own destination.
	Wants func(*fleetflowv1alpha1.AuditRecord) (bool, error)
	// Batch is how many records are sent at once at most; 0 is one. Those of one subject are in their order.
	Batch int
	// OneSubject has all records of a batch be of one subject.
	OneSubject bool
	// Collect is for how long the first record waits for others to be sent with it.
	Collect time.Duration
	// Together has all that waits be sent at a time: when the first of it has waited for as long as Collect says, and no sooner than that
	// after the last time.
	Together bool
	// Patience is after how long of failing a record is given up; 0 is never: it is tried for as long as it is kept.
	Patience time.Duration
	// To takes the records.
	To Destination
}

// wants reports whether a record is for the destination.
func (r *Route) wants(record *fleetflowv1alpha1.AuditRecord) (bool, error) {
	switch {
	case r.isBefore(record):
		return false, nil
	case r.Wants == nil:
		return true, nil
	default:
		return r.Wants(record)
	}
}

// isBefore reports whether a record was there before the destination was.
func (r *Route) isBefore(record *fleetflowv1alpha1.AuditRecord) bool {
	return record.CreationTimestamp.Time.Before(r.Since.Truncate(time.Second))
}

// Report is what became of the records for a destination, since this agent leads.
type Report struct {
	// Delivered counts the records that the destination has taken, GivenUp those that it never will.
	Delivered, GivenUp int64
	// Pending is how many wait, and OldestPending when the first of them was written; zero if none does.
	Pending       int
	OldestPending time.Time
	// LastError says why the last attempt has failed, or what keeps a record from its end; empty if nothing does. Refused is whether it waits for other settings.
	LastError string
	Refused   bool
	// Unserved is whether it waits until there are fewer destinations: a record has place for fleetflowv1alpha1.MaxDeliveries.
	Unserved bool
}

// Routes is where destinations are made known: Engine is it.
type Routes interface {
	// Put makes a destination known, or changes it. What waits for it stays.
	Put(route Route)
	// Remove has nothing be delivered any more to a destination.
	Remove(key Key)
	// Report returns what became of the records for a destination.
	Report(key Key) Report
	// OnChange has a function be told the name of a destination of a kind whose report has changed. It is set before the engine starts.
	OnChange(kind string, tell func(name string))
}
