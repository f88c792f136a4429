package brake

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
)

// Tally counts clusters that are closed, by what closes them, to tell people.
type Tally struct{ byClosure map[Closure]int }

// Add counts a closed cluster.
func (t *Tally) Add(closure Closure) {
	if t.byClosure == nil {
		t.byClosure = map[Closure]int{}
	}
	if closure.Kind == kindHold {
		closure.Until = closure.Until.UTC() // equal instants are equal keys; those of a window are in its time zone
	}
	t.byClosure[closure]++
}

// Count returns how many clusters are closed.
func (t *Tally) Count() (n int) {
	for _, count := range t.byClosure {
		n += count
	}
	return n
}

// Closures returns what closes clusters, that which closes most of them first.
func (t *Tally) Closures() []Closure {
	closures := make([]Closure, 0, len(t.byClosure))
	for closure := range t.byClosure {
		closures = append(closures, closure)
	}
	slices.SortFunc(closures, func(a, b Closure) int {
		return cmp.Or(-cmp.Compare(t.byClosure[a], t.byClosure[b]), strings.Compare(a.Kind, b.Kind), strings.Compare(a.Name, b.Name))
	})
	return closures
}

// Until returns when time alone opens the first of the clusters; zero if it opens none.
func (t *Tally) Until() (first time.Time) {
	for closure := range t.byClosure {
		first = earlierOf(first, closure.Until)
	}
	return first
}

// maxTold is how many closures a text names.
const maxTold = 5

// Reason is that of the condition Held.
func (t *Tally) Reason() string {
	if closures := t.Closures(); len(closures) > 0 {
		return closures[0].Reason
	}
	return ""
}

// Text returns how many of so many clusters of something wait for what. It says nothing that time alone changes, so that it is
// not written again and again.
func (t *Tally) Text(of int, what string) string {
	var parts []string
	closures := t.Closures()
	for _, closure := range closures[:min(len(closures), maxTold)] {
		parts = append(parts, fmt.Sprintf("%d of %d cluster(s) of %s wait for %s", t.byClosure[closure], of, what, closure.Text()))
	}
	if more := len(closures) - len(parts); more > 0 {
		parts = append(parts, fmt.Sprintf("and for %d more", more))
	}
	return strings.Join(parts, "; ")
}

// Title names what closes a cluster.
func (c Closure) Title() string {
	if c.Kind == kindHold {
		return "hold " + c.Name
	}
	return "window " + c.Name
}

// Text names what closes a cluster, why, and until when if time alone opens it.
func (c Closure) Text() string {
	text := c.Title()
	if c.Why != "" {
		text += " (" + c.Why + ")"
	}
	switch {
	case c.Until.IsZero():
	case c.Reason == fleetflowv1alpha1.ReasonOutsideAllowedWindow:
		text += ": opens " + c.Until.Format(time.RFC3339)
	case c.Reason == fleetflowv1alpha1.ReasonWindowClosed:
		text += ": ends " + c.Until.Format(time.RFC3339)
	default:
		text += " until " + c.Until.UTC().Format(time.RFC3339)
	}
	return text
}
