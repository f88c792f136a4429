package demo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/test/devfleet/access"
)

const (
	// waitLimit is how long anything may take that takes a second on an idle machine.
	waitLimit = time.Minute
	// eventLimit bounds the events printed with a failure.
	eventLimit = 6
)

// Failure says that the fleet is not as it should be.
type Failure struct {
	// Object that was looked at, such as "ClusterResourcePlacement example-placement".
	Object string
	// Expected is the statement that does not hold.
	Expected string
	// Found is what was found instead.
	Found string
	// Events are the last ones about the object, the newest last.
	Events []string
	cause  error
}

// Error returns the whole report, on several lines.
func (f *Failure) Error() string {
	events := "none"
	if len(f.Events) > 0 {
		events = strings.Join(f.Events, "\n            ")
	}
	return fmt.Sprintf("not as it should be\n  object    %s\n  expected  %s\n  found     %s\n  events    %s", f.Object, f.Expected,
		f.Found, events)
}

// Unwrap returns what ended the waiting, if there was any.
func (f *Failure) Unwrap() error { return f.cause }

// holds prints a statement that was checked, or fails with what was found instead.
func (s *story) holds(ctx context.Context, object, statement, finding string) error {
	if finding != "" {
		return s.failure(ctx, object, statement, finding, nil)
	}
	s.checked++
	s.screen.holds(statement)
	return nil
}

// failure makes the report, with the last events of the object.
func (s *story) failure(ctx context.Context, object, statement, finding string, cause error) error {
	f := &Failure{Object: object, Expected: statement, Found: finding, cause: cause}
	if _, name, found := strings.Cut(object, " "); found {
		f.Events = s.eventsOf(ctx, name[strings.LastIndex(name, "/")+1:])
	}
	return f
}

// eventsOf returns the last events about the hub's objects of a name.
func (s *story) eventsOf(ctx context.Context, name string) []string {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	list := &corev1.EventList{}
	if err := s.Hub.List(ctx, list, &client.ListOptions{FieldSelector: fields.OneTermEqualSelector("involvedObject.name", name)}); err != nil {
		return []string{"could not be listed: " + err.Error()}
	}
	slices.SortFunc(list.Items, func(a, b corev1.Event) int { return eventTime(&a).Compare(eventTime(&b)) })
	// Events of an earlier demo are about other objects of the same names.
	list.Items = slices.DeleteFunc(list.Items, func(e corev1.Event) bool { return eventTime(&e).Before(s.began.Truncate(time.Second)) })
	var lines []string
	for _, e := range list.Items[max(0, len(list.Items)-eventLimit):] {
		lines = append(lines, fmt.Sprintf("%s %s %s: %s", eventTime(&e).Local().Format(time.TimeOnly), e.Type, e.Reason, e.Message))
	}
	return lines
}

// eventTime returns when an event was last seen, in whichever of its fields that is.
func eventTime(e *corev1.Event) time.Time {
	switch {
	case e.Series != nil:
		return e.Series.LastObservedTime.Time
	case !e.LastTimestamp.IsZero():
		return e.LastTimestamp.Time
	case !e.EventTime.IsZero():
		return e.EventTime.Time
	}
	return e.CreationTimestamp.Time
}

// becomes waits until an object is as the statement says, and prints how long that took.
func becomes[T any, P access.Object[T]](ctx context.Context, s *story, c client.WithWatch, key client.ObjectKey, statement string,
	missing func(P) string) (P, error) {
	began := time.Now()
	limited, cancel := context.WithTimeout(ctx, waitLimit)
	defer cancel()
	object, err := access.Await(limited, c, key, missing)
	return object, s.waited(ctx, statement, began, err)
}

// allBecome waits until all objects of a kind are as the statement says, and prints how long that took.
func allBecome[T any, P access.Object[T]](ctx context.Context, s *story, c client.WithWatch, statement string, missing func([]P) string,
	options ...client.ListOption) error {
	began := time.Now()
	limited, cancel := context.WithTimeout(ctx, waitLimit)
	defer cancel()
	_, err := access.AwaitAll(limited, c, missing, options...)
	return s.waited(ctx, statement, began, err)
}

// waited reports the end of a wait.
func (s *story) waited(ctx context.Context, statement string, began time.Time, err error) error {
	unmet, found := errors.AsType[*access.UnmetError](err)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case found:
		return s.failure(ctx, unmet.What, statement, fmt.Sprintf("%s (after waiting %s)", unmet.Finding, seconds(unmet.Waited)), err)
	case err != nil:
		return err
	}
	s.checked++
	s.screen.holds(statement + "  " + s.screen.dim("("+seconds(time.Since(began))+")"))
	return nil
}
