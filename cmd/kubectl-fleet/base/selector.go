package base

import (
	"k8s.io/apimachinery/pkg/labels"

	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/cli"
)

// Selector is the value of --selector.
type Selector struct {
	// Text is as the user has written it.
	Text   string
	parsed labels.Selector
}

// Parse reads the selector.
func (s *Selector) Parse() (err error) {
	if s.parsed, err = labels.Parse(s.Text); err != nil {
		return cli.Usagef("--selector %q is no label selector, such as region=west: %v", s.Text, err)
	}
	return nil
}

// Selects reports whether the selector, once it is read, selects an object by its labels.
func (s *Selector) Selects(of map[string]string) bool { return s.parsed.Matches(labels.Set(of)) }
