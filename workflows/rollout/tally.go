package rollout

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Tally counts clusters that wait, by what they wait for, to tell people.
type Tally struct{ byCause map[Wait]int }

// Add counts a cluster that waits.
func (t *Tally) Add(wait Wait) {
	if t.byCause == nil {
		t.byCause = map[Wait]int{}
	}
	wait.Cluster = ""
	wait.Op = ""
	if wait.Kind != BrakeWindow {
		wait.Until = wait.Until.UTC() // equal instants are equal keys; those of a window are in its time zone
	}
	t.byCause[wait]++
}

// Count returns how many clusters wait.
func (t *Tally) Count() (n int) {
	for _, count := range t.byCause {
		n += count
	}
	return n
}

// Causes returns what clusters wait for, that which most of them wait for first.
func (t *Tally) Causes() []Wait {
	causes := make([]Wait, 0, len(t.byCause))
	for cause := range t.byCause {
		causes = append(causes, cause)
	}
	slices.SortFunc(causes, func(a, b Wait) int {
		return cmp.Or(-cmp.Compare(t.byCause[a], t.byCause[b]), strings.Compare(a.Kind, b.Kind), strings.Compare(a.Object, b.Object))
	})
	return causes
}

// Until returns when time alone ends the first of the waits; zero if it ends none.
func (t *Tally) Until() (first time.Time) {
	for cause := range t.byCause {
		first = EarlierOf(first, cause.Until)
	}
	return first
}

// maxTold is how many causes a text names.
const maxTold = 5

// moreTold is how a text ends that does not name all causes.
const moreTold = "and for %d more"

// Reason is that of the condition Held.
func (t *Tally) Reason() string {
	if causes := t.Causes(); len(causes) > 0 {
		return causes[0].Reason
	}
	return ""
}

// NamesFirst reports whether a text names the first causes only.
func NamesFirst(text string) bool {
	at := strings.LastIndex(text, "; ")
	more := 0
	n, err := fmt.Sscanf(text[at+1:], " "+moreTold, &more)
	return at >= 0 && n == 1 && err == nil && strings.HasSuffix(text, fmt.Sprintf("; "+moreTold, more))
}

// Text returns how many of so many clusters of something wait for what. It says nothing that time alone changes, so that it is
// not written again and again.
func (t *Tally) Text(of int, what string) string {
	var parts []string
	causes := t.Causes()
	for _, cause := range causes[:min(len(causes), maxTold)] {
		parts = append(parts, fmt.Sprintf("%d of %d cluster(s) of %s wait for %s", t.byCause[cause], of, what, cause.Text()))
	}
	if more := len(causes) - len(parts); more > 0 {
		parts = append(parts, fmt.Sprintf(moreTold, more))
	}
	return strings.Join(parts, "; ")
}
