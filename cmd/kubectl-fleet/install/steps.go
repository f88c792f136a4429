package install

import (
	"context"
	"fmt"
	"time"
)

// step is one thing to do of several.
type step struct {
	// title says what it does, such as "inviting member-4".
	title string
	do    func(ctx context.Context) error
	// looks says that it changes nothing: it is done on a dry run, too. checked says that the hub can check it without
	// doing it, whatever has become of the steps before.
	looks, checked bool
}

// isDryStep reports whether a step is only said.
func (s *installing) isDryStep(one step) bool {
	return s.Dry() && !one.looks && (!one.checked || !s.Sends())
}

// takeSteps takes the steps in order and shows each with the time it took. On a dry run it says them, and does what changes
// nothing.
func (s *installing) takeSteps(ctx context.Context, steps []step) error {
	for _, one := range steps {
		if s.isDryStep(one) {
			s.Done(s.Streams, "%s", one.title)
			continue
		}
		began := s.Factory.Clock.Now()
		if err := s.Factory.Patiently(s.Streams, one.title, func() error { return one.do(ctx) }); err != nil {
			return fmt.Errorf("%s: %w", one.title, err)
		}
		if s.Dry() {
			s.Done(s.Streams, "%s", one.title)
			continue
		}
		s.Done(s.Streams, "%s (%s)", one.title, s.Factory.Clock.Now().Sub(began).Round(100*time.Millisecond))
	}
	return nil
}
