package steer

import (
	"fmt"
	"time"
)

// InvalidError means that a value of a request cannot be.
type InvalidError struct{ err error }

func (e *InvalidError) Error() string { return e.err.Error() }

// Unwrap returns what is wrong with the value.
func (e *InvalidError) Unwrap() error { return e.err }

// newInvalidError returns an error about a value.
func newInvalidError(format string, args ...any) error {
	return &InvalidError{fmt.Errorf(format, args...)}
}

// NotEvictedError means that the hub has refused an eviction.
type NotEvictedError struct{ Eviction, Message string }

func (e *NotEvictedError) Error() string { return sayOutcome(e.Eviction, e.Message) }

// NoOutcomeError means that an eviction was not decided in time.
type NoOutcomeError struct {
	Eviction string
	Waited   time.Duration
}

func (e *NoOutcomeError) Error() string {
	return fmt.Sprintf("eviction %q has no outcome after %s: it stays pending and may still be executed; kubectl delete crpe %s withdraws it",
		e.Eviction, e.Waited, e.Eviction)
}

// exactlyOne wants one argument, and says what it is for.
func exactlyOne(verb, what, example string) func([]string) error {
	return func(args []string) error {
		switch {
		case len(args) == 0:
			return fmt.Errorf("kubectl fleet %s needs the name of %s, as in: kubectl fleet %s", verb, what, example)
		case len(args) > 1:
			return fmt.Errorf("kubectl fleet %s takes one name, not %d, as in: kubectl fleet %s", verb, len(args), example)
		default:
			return nil
		}
	}
}
