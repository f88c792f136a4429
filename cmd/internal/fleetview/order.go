package fleetview

import (
	"cmp"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/fleetflow/fleetflow/apis/placement/updaterun"
	"github.com/fleetflow/fleetflow/apis/quantity"
)

// Order is by which column of a page rows are sorted, as its URL says.
type Order struct {
	// By is the heading of the column; empty for rows in the order of the page itself.
	By string
	// Down says that the last comes first.
	Down bool

	query url.Values
}

// sortParameter is what a URL says it by: a heading, with a - before it if the last comes first.
const sortParameter = "sort"

// OrderOf returns the order that a query asks for.
func OrderOf(query url.Values) Order {
	o := Order{query: query}
	o.By, o.Down = strings.CutPrefix(query.Get(sortParameter), "-")
	return o
}

// Link returns where the heading of a column leads, which sorts by it, and by it the other way round if that is so already; empty if
// rows cannot be sorted.
func (o Order) Link(column string) string {
	if o.query == nil {
		return ""
	}
	query := url.Values{}
	for name, values := range o.query {
		if name != "page" && name != "done" { // another order has other pages
			query[name] = values
		}
	}
	if o.By == column && !o.Down {
		column = "-" + column
	}
	query.Set(sortParameter, column)
	return "?" + query.Encode()
}

// State returns how rows are sorted by a column, in the words of aria-sort; empty if they are not.
func (o Order) State(column string) string {
	switch {
	case o.query == nil || o.By != column:
		return ""
	case o.Down:
		return "descending"
	}
	return "ascending"
}

// Heading is the heading of a column.
type Heading struct{ Name, Link, State string }

// Heading returns the heading of a column, with where it leads and how rows are sorted by it.
func (o Order) Heading(column string) Heading {
	return Heading{column, o.Link(column), o.State(column)}
}

// Value returns what a form that keeps the order sends; empty without one.
func (o Order) Value() string { return o.query.Get(sortParameter) }

// Sort returns rows in an order, those that are the same as they were. What names no column leaves them as they are.
func Sort[R any](rows []R, columns []Column[R], o Order) []R {
	at := slices.IndexFunc(columns, func(c Column[R]) bool { return c.Page != "" && c.Page == o.By })
	if at < 0 {
		return rows
	}
	compare := columns[at].Compare
	if compare == nil {
		compare = func(a, b R) int { return compareCells(columns[at].CellOf(a), columns[at].CellOf(b)) }
	}
	sorted := slices.Clone(rows)
	slices.SortStableFunc(sorted, func(a, b R) int {
		if o.Down {
			return compare(b, a)
		}
		return compare(a, b)
	})
	return sorted
}

// urgencies sorts states: what people should look at comes first.
var urgencies = []updaterun.Phase{
	updaterun.PhaseFailed, updaterun.PhaseStuck, updaterun.PhaseWaiting, updaterun.PhaseRunning, updaterun.PhaseStopping, updaterun.PhaseStopped,
	updaterun.PhaseInitialized, updaterun.PhasePending, updaterun.PhaseDeleting, updaterun.PhaseSkipped, updaterun.PhaseSucceeded,
}

func urgencyOf(phase updaterun.Phase) int {
	if at := slices.Index(urgencies, phase); at >= 0 {
		return at
	}
	return len(urgencies)
}

// compareCells compares what two rows show in a column. An instant that is not known, or is yet to come, is after all others.
func compareCells(a, b Cell) int {
	switch {
	case a.At != nil && b.At != nil && a.At.IsZero() != b.At.IsZero():
		return b.At.Compare(*a.At)
	case a.At != nil && b.At != nil:
		return a.At.Compare(*b.At)
	case a.State != b.State:
		return urgencyOf(a.State) - urgencyOf(b.State)
	}
	return cmp.Or(CompareNatural(a.Text, b.Text), CompareNatural(strings.Join(a.Words, " "), strings.Join(b.Words, " ")))
}

// CompareNatural compares texts as people do: the numbers in them by what they count, so that edge-9 comes before edge-10.
func CompareNatural(a, b string) int {
	restA := a
	restB := b
	for restA != "" && restB != "" {
		numberA := leadingDigits(restA)
		numberB := leadingDigits(restB)
		if numberA != "" && numberB != "" {
			if order := compareDigits(numberA, numberB); order != 0 {
				return order
			}
			restA = restA[len(numberA):]
			restB = restB[len(numberB):]
			continue
		}
		if restA[0] != restB[0] {
			return cmp.Compare(restA[0], restB[0])
		}
		restA = restA[1:]
		restB = restB[1:]
	}
	return cmp.Or(len(restA)-len(restB), strings.Compare(a, b))
}

// leadingDigits returns the number that a text begins with; empty if it begins with none.
func leadingDigits(text string) string {
	end := strings.IndexFunc(text, func(r rune) bool { return r < '0' || r > '9' })
	if end < 0 {
		return text
	}
	return text[:end]
}

// compareDigits compares numbers of any length.
func compareDigits(a, b string) int {
	a = strings.TrimLeft(a, "0")
	b = strings.TrimLeft(b, "0")
	return cmp.Or(len(a)-len(b), strings.Compare(a, b))
}

// compareQuantities compares amounts such as 31500m/96 by what is before the slash. What is none comes first.
func compareQuantities(a, b string) int {
	amount := func(text string) (resource.Quantity, bool) {
		before, _, _ := strings.Cut(text, "/")
		parsed, err := quantity.Parse(before)
		return parsed, err == nil
	}
	amountA, isA := amount(a)
	amountB, isB := amount(b)
	if !isA || !isB {
		return strings.Compare(strconv.FormatBool(isA), strconv.FormatBool(isB))
	}
	return amountA.Cmp(amountB)
}
