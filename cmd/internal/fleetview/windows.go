package fleetview

import (
	"fmt"
	"strings"
	"time"

	"github.com/fleetflow/fleetflow/activities/brake"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/tree"
)

// WindowMatches returns how many clusters or placements a window is about, or which stages.
func WindowMatches(w *brake.Window, members []clusterv1beta1.MemberCluster, placements []hub.Placement,
	namespaces map[string]map[string]string) string {
	switch w.Spec.Scope {
	case fleetflowv1alpha1.WindowStage:
		if len(w.Spec.Stages) == 0 {
			return "stages that name it"
		}
		return fmt.Sprintf("stage(s) %s", strings.Join(w.Spec.Stages, ", "))
	case fleetflowv1alpha1.WindowPlacement:
		n := 0
		for _, placement := range placements {
			if w.CoversPlacement(fleetflowv1alpha1.GateLabels(placement.Object), namespaces[placement.Namespace]) {
				n++
			}
		}
		return fmt.Sprintf("%d placement(s)", n)
	}
	n := 0
	for i := range members {
		if w.CoversCluster(members[i].Labels) {
			n++
		}
	}
	return fmt.Sprintf("%d cluster(s)", n)
}

// Window is what is shown of a window.
type Window struct {
	Name     string     `json:"name"`
	Type     string     `json:"type"`
	Scope    string     `json:"scope"`
	TimeZone string     `json:"timeZone"`
	Message  string     `json:"message,omitempty"`
	State    string     `json:"state"`
	Fault    string     `json:"fault,omitempty"`
	Changes  *time.Time `json:"changes,omitempty"`
	Matches  string     `json:"matches,omitempty"`
	Openings []Opening  `json:"openings,omitempty"`
	// Labels are not among what programs read of a view: they read the window.
	Labels map[string]string `json:"-"`
}

// Opening is a time in which a window is open.
type Opening struct {
	Opens     time.Time  `json:"opens"`
	LastStart *time.Time `json:"lastStart,omitempty"`
	Closes    *time.Time `json:"closes,omitempty"`
}

// WindowOf sums a window up, its times in a time zone; nil for its own.
func WindowOf(w *brake.Window, now time.Time, in *time.Location) Window {
	v := Window{
		Name: w.Name, Type: string(w.Spec.Type), Scope: string(w.Spec.Scope), TimeZone: w.Spec.TimeZone, Message: w.Spec.Message, State: "closed",
		Labels: w.Labels,
	}
	if w.IsOpen(now) {
		v.State = "open"
	}
	if w.Fault != nil {
		v.Fault = w.Fault.Reason + ": " + w.Fault.Message
		v.State = fmt.Sprintf("%s (not valid: %s)", v.State, w.Fault.Reason)
		return v
	}
	v.Changes = timeIn(w.Calendar.Changes(now), in)
	return v
}

// AddOpenings adds the next openings of a window.
func (v *Window) AddOpenings(w *brake.Window, now time.Time, in *time.Location, next int) {
	if w.Calendar == nil {
		return
	}
	for _, opening := range w.Calendar.Openings(now, next) {
		v.Openings = append(v.Openings, Opening{Opens: *timeIn(opening.Start, in), LastStart: timeIn(opening.Close, in),
			Closes: timeIn(opening.End, in)})
	}
}

// timeIn returns a time in a time zone; nil if there is none.
func timeIn(at time.Time, in *time.Location) *time.Time {
	if at.IsZero() {
		return nil
	}
	if in != nil {
		at = at.In(in)
	}
	return &at
}

// WithUTC writes a time with its zone, and in UTC unless that is its zone.
func WithUTC(at *time.Time) string {
	if at == nil {
		return ""
	}
	text := at.Format("Mon 2006-01-02 15:04:05 -07:00")
	text = strings.Replace(text, ":00 ", " ", 1)
	if _, offset := at.Zone(); offset == 0 {
		return strings.Replace(text, "+00:00", "UTC", 1)
	}
	return fmt.Sprintf("%s (%s UTC)", text, at.UTC().Format("15:04"))
}

// WindowColumns returns those of windows, as of a time.
func WindowColumns(now time.Time) []Column[Window] {
	return []Column[Window]{
		{Name: "Name", Text: func(v Window) string { return v.Name }},
		{Name: "Type", Text: func(v Window) string { return v.Type }},
		{Name: "Scope", Text: func(v Window) string { return v.Scope }},
		{Name: "State", Text: func(v Window) string { return v.State }},
		{Name: "Next Change", Text: func(v Window) string { return WithUTC(v.Changes) }},
		{Name: "In", Text: func(v Window) string {
			if v.Changes == nil {
				return ""
			}
			return tree.Elapsed(v.Changes.Sub(now))
		}},
		{Name: "Matches", Text: func(v Window) string { return v.Matches }},
		{Name: "Zone", Wide: true, Text: func(v Window) string { return v.TimeZone }},
		{Name: "Message", Wide: true, Text: func(v Window) string { return v.Message }},
	}
}

// OpeningColumns are those of the openings of a window.
var OpeningColumns = []Column[Opening]{
	{Name: "Opens", Text: func(o Opening) string { return WithUTC(&o.Opens) }},
	{Name: "Last Start", Text: func(o Opening) string {
		if o.LastStart == nil || o.LastStart.Equal(*o.Closes) {
			return ""
		}
		return WithUTC(o.LastStart)
	}},
	{Name: "Closes", Text: func(o Opening) string { return WithUTC(o.Closes) }},
	{Name: "Lasts", Text: func(o Opening) string {
		if o.Closes == nil {
			return "for good"
		}
		return tree.Elapsed(o.Closes.Sub(o.Opens))
	}},
}
