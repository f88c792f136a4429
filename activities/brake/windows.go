package brake

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	"github.com/fleetflow/fleetflow/workflows/rollout"
)

// Window is a RolloutWindow that can be asked.
type Window struct {
	*fleetflowv1alpha1.RolloutWindow
	// Calendar has its openings; nil if the window can not be followed, and then Fault says why.
	Calendar *Calendar
	Fault    *CalendarFault

	clusters, placements, namespaces labels.Selector
}

// CompileWindows reads windows: the oldest first, as many as are followed, and the rest with a fault.
func CompileWindows(all []fleetflowv1alpha1.RolloutWindow) []Window {
	windows := make([]Window, 0, len(all))
	for i := range all {
		if all[i].DeletionTimestamp.IsZero() {
			windows = append(windows, Window{RolloutWindow: &all[i]})
		}
	}
	slices.SortFunc(windows, func(a, b Window) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), strings.Compare(a.Name, b.Name))
	})
	for i := range windows {
		windows[i].compile()
		if i >= fleetflowv1alpha1.MaxRolloutWindows {
			windows[i].Calendar, windows[i].Fault = nil, &CalendarFault{Reason: fleetflowv1alpha1.ReasonTooManyWindows,
				Message: fmt.Sprintf("there are %d windows, and the oldest %d are followed: delete some", len(windows),
					fleetflowv1alpha1.MaxRolloutWindows)}
		}
	}
	return windows
}

// CompileWindow reads one window.
func CompileWindow(window *fleetflowv1alpha1.RolloutWindow) Window {
	w := Window{RolloutWindow: window}
	w.compile()
	return w
}

func (w *Window) compile() {
	w.Calendar, w.Fault = CompileCalendar(&w.Spec)
	w.clusters = w.selector("clusterSelector", w.Spec.ClusterSelector)
	w.placements = w.selector("placementSelector", w.Spec.PlacementSelector)
	w.namespaces = w.selector("namespaceSelector", w.Spec.NamespaceSelector)
}

// selector reads a selector. One that can not be read selects everything, and nothing starts there: the window is there to
// hold something back.
func (w *Window) selector(name string, of *metav1.LabelSelector) labels.Selector {
	if of == nil {
		return labels.Everything()
	}
	selector, err := metav1.LabelSelectorAsSelector(of)
	if err != nil {
		w.Calendar = nil
		w.Fault = &CalendarFault{Reason: fleetflowv1alpha1.ReasonInvalidSelector, Message: fmt.Sprintf("%s: %v", name, err)}
		return labels.Everything()
	}
	return selector
}

// CoversCluster reports whether the window is about a cluster with these labels; one that is not of scope Cluster is about all.
func (w *Window) CoversCluster(of map[string]string) bool { return w.clusters.Matches(labels.Set(of)) }

// CoversPlacement reports whether the window is about a placement with these labels (GateLabels), in a Namespace with these; one of
// scope Fleet or Cluster is about all.
func (w *Window) CoversPlacement(of, namespace map[string]string) bool {
	return w.placements.Matches(labels.Set(of)) && w.namespaces.Matches(labels.Set(namespace))
}

// Concerns reports whether the window is about a subject, on some clusters at least.
func (w *Window) Concerns(of Subject) bool {
	switch {
	case of.Rollback && w.Spec.Rollbacks == fleetflowv1alpha1.RollbacksExempt:
		return false
	case w.Spec.Scope == fleetflowv1alpha1.WindowStage && !slices.Contains(w.Spec.Stages, of.Stage) && !slices.Contains(of.Windows, w.Name):
		return false
	}
	return w.CoversPlacement(of.PlacementLabels, of.NamespaceLabels)
}

// WhyNotNamed returns why a stage of a strategy cannot name a window in windows, given nil if there is none of that name; empty if
// it can.
func WhyNotNamed(window *fleetflowv1alpha1.RolloutWindow) string {
	switch {
	case window == nil:
		return "there is none: create it, or remove the name"
	case window.Spec.Scope != fleetflowv1alpha1.WindowStage:
		return fmt.Sprintf("its scope is %s, and stages name windows of scope Stage: it counts without being named, or create another",
			window.Spec.Scope)
	case window.Spec.PlacementSelector != nil:
		return "it has a placementSelector, which says what it counts for: remove that, or the name"
	case window.Spec.NamespaceSelector != nil:
		return "it has a namespaceSelector, which says what it counts for: remove that, or the name"
	}
	return ""
}

// IsOpen reports whether the window is open. An Allow that can not be followed is closed, and such a Deny is open.
func (w *Window) IsOpen(now time.Time) bool {
	if w.Calendar == nil {
		return w.isDeny()
	}
	return w.Calendar.IsOpen(now)
}

func (w *Window) isDeny() bool { return w.Spec.Type == fleetflowv1alpha1.WindowDeny }

// windows are the windows that concern a subject.
type windows struct {
	all []Window
	// exemptUntil is until when the subject is exempt from each of them.
	exemptUntil []time.Time
	// states are those of the last instant that was asked for: between two changes they are the same for all clusters.
	states atomic.Pointer[windowStates]
}

// windowStates are what windows do from an instant until one of them opens or closes.
type windowStates struct {
	from, until time.Time
	closed      []bool
	opens       []time.Time
}

// WindowsOf returns the windows that concern a subject. One that its stage names and that is gone is among them, and closed: what is
// deleted lets nothing begin that waited for it.
func WindowsOf(all []Window, of Subject) []Window {
	var concern []Window
	gone := slices.Clone(of.Windows)
	for _, w := range all {
		if w.Concerns(of) {
			concern = append(concern, w)
		}
		gone = slices.DeleteFunc(gone, func(name string) bool { return name == w.Name })
	}
	for _, name := range gone {
		concern = append(concern, goneWindow(name))
	}
	return concern
}

// goneWindow returns what stands for a window of which the name alone is known: a Deny that does not end.
func goneWindow(name string) Window {
	spec := fleetflowv1alpha1.RolloutWindowSpec{Type: fleetflowv1alpha1.WindowDeny, Scope: fleetflowv1alpha1.WindowStage}
	return Window{
		RolloutWindow: &fleetflowv1alpha1.RolloutWindow{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec},
		Fault: &CalendarFault{Reason: fleetflowv1alpha1.ReasonNotAccepted,
			Message: "it was deleted, and the strategy of the run names it: create it again, or exempt the run from it"},
		clusters: labels.Everything(), placements: labels.Everything(), namespaces: labels.Everything(),
	}
}

// Windows makes a source of the windows that concern a subject; nil if there are none.
func Windows(all []fleetflowv1alpha1.RolloutWindow, of Subject) Source {
	concern := WindowsOf(CompileWindows(all), of)
	if len(concern) == 0 {
		return nil
	}
	exemptUntil := make([]time.Time, len(concern))
	for i := range concern {
		exemptUntil[i] = of.Exemptions.until(fleetflowv1alpha1.ExemptFromWindow, concern[i].Name)
	}
	return &windows{all: concern, exemptUntil: exemptUntil}
}

// statesAt returns what the windows do at an instant.
func (w *windows) statesAt(now time.Time) *windowStates {
	if s := w.states.Load(); s != nil && !now.Before(s.from) && (s.until.IsZero() || now.Before(s.until)) {
		return s
	}
	s := &windowStates{from: now, closed: make([]bool, len(w.all)), opens: make([]time.Time, len(w.all))}
	for i := range w.all {
		window := &w.all[i]
		if now.Before(w.exemptUntil[i]) { // an Allow counts as open, a Deny as not there
			s.until = rollout.EarlierOf(s.until, w.exemptUntil[i])
			continue
		}
		s.closed[i] = window.IsOpen(now) == window.isDeny()
		if window.Calendar == nil {
			continue
		}
		changes := window.Calendar.Changes(now)
		s.until = rollout.EarlierOf(s.until, changes)
		if s.closed[i] {
			s.opens[i] = changes
		}
	}
	w.states.Store(s)
	return s
}

// Closed reports whether a cluster is closed: a Deny that is about it is open, or of one scope there are Allows for it of which
// none is open. Of several windows that close it, it names the one that opens it last.
func (w *windows) Closed(cluster Cluster, start Start, now time.Time) (rollout.Wait, bool) {
	s := w.statesAt(now)
	last := none
	// first is, for each scope with Allows for the cluster, the one that opens first; of an open scope it is open.
	first := [len(scopes)]int{none, none, none, none}
	for i := range w.all {
		window := &w.all[i]
		if !window.Holds(start) || !window.CoversCluster(cluster.Labels) {
			continue
		}
		if window.isDeny() {
			last = s.lastToOpen(last, i)
			continue
		}
		scope := max(slices.Index(scopes[:], window.Spec.Scope), 0)
		if best := first[scope]; best == none || s.opensBefore(i, best) {
			first[scope] = i
		}
	}
	for _, i := range first {
		last = s.lastToOpen(last, i)
	}
	if last == none {
		return rollout.Wait{}, false
	}
	return w.all[last].wait(s.opens[last]), true
}

// none is the place of no window.
const none = -1

// lastToOpen is that of two windows that closes clusters longer; none if neither closes any.
func (s *windowStates) lastToOpen(last, i int) int {
	switch {
	case i == none || !s.closed[i]:
		return last
	case last == none || !s.opens[last].IsZero() && (s.opens[i].IsZero() || s.opens[i].After(s.opens[last])):
		return i
	}
	return last
}

var scopes = [...]fleetflowv1alpha1.WindowScope{
	fleetflowv1alpha1.WindowFleet, fleetflowv1alpha1.WindowPlacement, fleetflowv1alpha1.WindowStage, fleetflowv1alpha1.WindowCluster,
}

// opensBefore reports whether a window is open, or opens, before another one.
func (s *windowStates) opensBefore(i, other int) bool {
	switch {
	case !s.closed[other]:
		return false
	case !s.closed[i]:
		return true
	}
	return !s.opens[i].IsZero() && (s.opens[other].IsZero() || s.opens[i].Before(s.opens[other]))
}

// wait returns what a cluster waits for that the window closes.
func (w *Window) wait(opens time.Time) rollout.Wait {
	c := rollout.Wait{
		Kind: rollout.BrakeWindow, Object: w.Name, Reason: fleetflowv1alpha1.ReasonOutsideAllowedWindow, Why: w.Spec.Message, Until: opens,
	}
	if w.isDeny() {
		c.Reason = fleetflowv1alpha1.ReasonWindowClosed
	}
	if w.Fault != nil {
		c.Why = fmt.Sprintf("it is not valid: %s", w.Fault.Message)
	}
	return c
}

// NextChange returns when the next window opens or closes.
func (w *windows) NextChange(now time.Time) time.Time { return w.statesAt(now).until }
