package fleetview

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
)

// Reasons of events about Works, beside those of conditions.
const (
	eventConfigured = "Configured"
	eventDrifted    = "Drifted"
	eventRemoving   = "Removing"
	eventPruned     = "Pruned"
)

// Event is something that has happened with a placement.
type Event struct {
	At time.Time `json:"time"`
	// Type is Normal or Warning, as for the events of Kubernetes.
	Type   string `json:"type"`
	Reason string `json:"reason"`
	// Object is what it has happened to: on the member, or without one on the hub.
	Object EventObject `json:"object"`
	Member string      `json:"member,omitempty"`
	// Message says what has happened, to which object and on which member.
	Message string `json:"message"`

	// key is what the event is the latest word on, and state tells whether it says something else than before.
	key, state string
	// content tells whether an object that was applied is another one by now; empty if that is not known.
	content string
	// applied says that the event goes with an object that a Work has: that it no longer has it is an event, too.
	applied bool
}

// EventObject names an object.
type EventObject struct {
	Group     string `json:"group,omitempty"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// String is kind and name, with the namespace before it.
func (o EventObject) String() string {
	return strings.TrimSpace(o.Kind + " " + placementv1beta1.Scope{Namespace: o.Namespace}.String() + o.Name)
}

// EventColumns are those of events.
var EventColumns = []Column[Event]{
	{Name: "When", Text: func(e Event) string { return e.At.UTC().Format(time.RFC3339) }},
	{Name: "Type", Text: func(e Event) string { return e.Type }},
	{Name: "Reason", Text: func(e Event) string { return e.Reason }},
	{Name: "Message", Text: func(e Event) string { return strings.Join(strings.Fields(e.Message), " ") }},
	{Name: "Member", Wide: true, Text: func(e Event) string { return e.Member }},
	{Name: "Object", Wide: true, Text: func(e Event) string { return e.Object.String() }},
}

// Events returns what is known to have happened with a placement, the oldest first: of each object on a member when it came to be as it is,
// as its agent reports in Works, and the events of the hub about the placement, its runs, bindings, approval requests and evictions.
func Events(p hub.Placement, objects []client.Object) []Event {
	about := subjectsOf(p, objects)
	var all []Event
	for _, object := range objects {
		switch object := object.(type) {
		case *placementv1beta1.Work:
			if object.Labels[placementv1beta1.ParentPlacementLabel] == p.Name && object.Labels[placementv1beta1.ParentNamespaceLabel] == p.Namespace {
				all = append(all, eventsOfWork(object)...)
			}
		case *corev1.Event:
			if e, is := eventAbout(p, about, object); is {
				all = append(all, e)
			}
		}
	}
	slices.SortFunc(all, func(a, b Event) int { return cmp.Or(a.At.Compare(b.At), strings.Compare(a.key, b.key)) })
	return all
}

// subject is an object that events of the hub are about.
type subject struct{ kind, name string }

// eventAbout returns an event of the hub if it is about an object of a placement, or about one that had its name before and was of the
// placement. What has happened with an earlier placement of the same name has not happened with this one.
func eventAbout(p hub.Placement, about map[subject]types.UID, event *corev1.Event) (e Event, is bool) {
	of := event.InvolvedObject
	uid, named := about[subject{of.Kind, of.Name}]
	if !named {
		return Event{}, false
	}
	e = eventOfHub(event)
	if of.UID == "" || of.UID == uid {
		return e, true
	}
	e.Message += fmt.Sprintf(" (an earlier %s of that name)", of.Kind)
	return e, uid != p.Object.GetUID() && !e.At.Before(p.Object.GetCreationTimestamp().Time)
}

// subjectsOf returns the objects of a placement, with their UIDs.
func subjectsOf(p hub.Placement, objects []client.Object) map[subject]types.UID {
	scope := placementv1beta1.Scope{Namespace: p.Namespace}
	about := map[subject]types.UID{{scope.PlacementKind().Kind, p.Name}: p.Object.GetUID()}
	runs := map[string]bool{}
	for _, object := range objects {
		if run, is := object.(placementv1beta1.UpdateRunObject); is && run.GetUpdateRunSpec().PlacementName == p.Name {
			runs[run.GetName()] = true
			about[subject{scope.UpdateRunKind().Kind, run.GetName()}] = run.GetUID()
		}
	}
	for _, object := range objects {
		switch object := object.(type) {
		case placementv1beta1.BindingObject:
			about[subject{scope.BindingKind().Kind, object.GetName()}] = object.GetUID()
		case placementv1beta1.ApprovalRequestObject:
			if runs[object.GetApprovalRequestSpec().TargetUpdateRun] {
				about[subject{scope.ApprovalRequestKind().Kind, object.GetName()}] = object.GetUID()
			}
		case *placementv1beta1.ClusterResourcePlacementEviction:
			if object.Spec.PlacementName == p.Name {
				about[subject{"ClusterResourcePlacementEviction", object.Name}] = object.GetUID()
			}
		}
	}
	return about
}

// eventOfHub returns an event of the hub. One that has happened more than once has the time of the last.
func eventOfHub(e *corev1.Event) Event {
	at := e.CreationTimestamp.Time
	for _, other := range []time.Time{e.EventTime.Time, e.FirstTimestamp.Time, e.LastTimestamp.Time} {
		if !other.IsZero() {
			at = other
		}
	}
	times := e.Count
	if e.Series != nil {
		at = e.Series.LastObservedTime.Time
		times = e.Series.Count
	}
	out := Event{At: at, Type: e.Type, Reason: e.Reason, Message: e.Message, key: "event " + string(e.UID), state: at.String(),
		Object: EventObject{Kind: e.InvolvedObject.Kind, Namespace: e.InvolvedObject.Namespace, Name: e.InvolvedObject.Name}}
	if times > 1 {
		out.Message += fmt.Sprintf(" (%d times)", times)
	}
	if e.Related != nil && e.Related.Kind == clusterv1beta1.MemberClusterKind {
		out.Member = e.Related.Name
	}
	return out
}

// workEvents collects the events of a Work.
type workEvents struct {
	work   *placementv1beta1.Work
	member string
	events []Event
}

// eventsOfWork returns what a member reports in a Work.
func eventsOfWork(work *placementv1beta1.Work) []Event {
	member, _ := clusterv1beta1.MemberOfNamespace(work.Namespace)
	w := &workEvents{work: work, member: member}
	for i := range work.Status.ManifestConditions {
		w.addManifest(&work.Status.ManifestConditions[i])
	}
	of := EventObject{Kind: "Work", Namespace: work.Namespace, Name: work.Name}
	if said := meta.FindStatusCondition(work.Status.Conditions, placementv1beta1.ConditionTypeRemovalPending); said != nil {
		e := w.newEvent(of, said, "")
		e.Message = member + ": " + said.Message
		if said.Status == metav1.ConditionTrue {
			e.Type = corev1.EventTypeWarning
		}
		w.events = append(w.events, e)
	}
	if rules.IsDeleting(work) {
		w.events = append(w.events, Event{At: work.DeletionTimestamp.Time, Type: corev1.EventTypeNormal, Reason: eventRemoving, Object: of,
			Member: member, Message: "what Work " + work.Name + " has is being removed from " + member, key: "removing " + string(work.UID)})
	}
	return w.events
}

// newEvent makes the event of a condition.
func (w *workEvents) newEvent(of EventObject, said *metav1.Condition, message string) Event {
	at := said.LastTransitionTime.Time
	return Event{At: at, Type: corev1.EventTypeNormal, Reason: said.Reason, Object: of, Member: w.member, Message: message,
		key: strings.Join([]string{w.member, of.Group, of.String(), said.Type}, "|"), state: fmt.Sprint(said.Status, said.Reason, at)}
}

// addManifest adds what is said of the object of a manifest.
func (w *workEvents) addManifest(m *placementv1beta1.ManifestCondition) {
	of := EventObject{Group: m.Identifier.Group, Kind: m.Identifier.Kind, Namespace: m.Identifier.Namespace, Name: m.Identifier.Name}
	if of.Name == "" {
		of.Name = fmt.Sprintf("manifest %d of Work %s", m.Identifier.Ordinal, w.work.Name) // it could not be read
	}
	applied := meta.FindStatusCondition(m.Conditions, placementv1beta1.ConditionTypeApplied)
	for i := range m.Conditions {
		said := &m.Conditions[i]
		text, warns := describeCondition(said, applied)
		if text == "" {
			continue
		}
		e := w.newEvent(of, said, fmt.Sprintf("%s %s on %s", of, text, w.member))
		if warns {
			e.Type = corev1.EventTypeWarning
			e.Message += ": " + said.Message
		}
		if said == applied && said.Status == metav1.ConditionTrue {
			e.applied = true
			e.content = w.contentOf(m.Identifier.Ordinal)
		}
		w.events = append(w.events, e)
	}
	if drift := m.DriftDetails; drift != nil {
		since := metav1.Condition{Type: eventDrifted, Reason: eventDrifted, LastTransitionTime: drift.FirstDriftedObservedTime}
		e := w.newEvent(of, &since, fmt.Sprintf("%s was changed on %s: %s", of, w.member, driftedPaths(drift.ObservedDrifts)))
		e.Type = corev1.EventTypeWarning
		w.events = append(w.events, e)
	}
}

// describeCondition says what a condition of a manifest means, and whether it is a warning, whose message is told. The text is empty of
// what is told already.
func describeCondition(said, applied *metav1.Condition) (text string, warns bool) {
	isTrue := said.Status == metav1.ConditionTrue
	switch {
	case said == applied && isTrue && said.Reason != placementv1beta1.ReasonAppliedWithDifference:
		return "applied", false
	case said == applied && isTrue:
		return "applied with a difference", true
	case said == applied:
		return "not applied", true
	case said.Type == placementv1beta1.ConditionTypeAvailable:
		return describeAvailable(said, applied)
	case said.Type == placementv1beta1.ConditionTypeStalled:
		return "stalled", true
	case said.Type == placementv1beta1.ConditionTypeFailing:
		return "failing", true
	case said.Type == placementv1beta1.ConditionTypeDiffReported && isTrue:
		return "compared", said.Reason != placementv1beta1.ReasonNoDiffFound
	case said.Type == placementv1beta1.ConditionTypeDiffReported:
		return "not compared", true
	}
	return "", false
}

// describeAvailable does the same for what is said of whether an object is available. What is so as soon as it is applied need not be said.
func describeAvailable(said, applied *metav1.Condition) (text string, warns bool) {
	switch {
	case said.Status != metav1.ConditionTrue && said.Reason == placementv1beta1.ReasonManifestNotAvailableYet:
		return "not available yet", false
	case said.Status != metav1.ConditionTrue:
		return "not available", true
	case said.Reason == placementv1beta1.ReasonNotTrackable, applied != nil && applied.LastTransitionTime.Equal(&said.LastTransitionTime):
		return "", false
	}
	return "available", false
}

// mostPaths is how many fields a message names.
const mostPaths = 5

func driftedPaths(drifts []placementv1beta1.PatchDetail) string {
	var paths []string
	for i := range drifts[:min(len(drifts), mostPaths)] {
		paths = append(paths, drifts[i].Path)
	}
	if more := len(drifts) - mostPaths; more > 0 {
		paths = append(paths, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(paths, ", ")
}

// contentOf returns what a manifest is, if the member has reported on it as it is now.
func (w *workEvents) contentOf(ordinal int) string {
	said := meta.FindStatusCondition(w.work.Status.Conditions, placementv1beta1.ConditionTypeApplied)
	if said == nil || said.ObservedGeneration != w.work.Generation || ordinal < 0 || ordinal >= len(w.work.Spec.Workload.Manifests) {
		return ""
	}
	return string(w.work.Spec.Workload.Manifests[ordinal].Raw)
}

// EventLog tells what is new among events.
type EventLog struct {
	known map[string]Event
}

// News returns the events that say something else than before, and those of objects that were applied again as they are now or that no Work
// has any longer, which happen now. Objects of which a member has too much to report are not told to be gone.
func (l *EventLog) News(events []Event, complete bool, now time.Time) []Event {
	if l.known == nil {
		l.known = map[string]Event{}
	}
	var news []Event
	current := map[string]bool{}
	for _, e := range events {
		before, known := l.known[e.key]
		current[e.key] = true
		switch {
		case !known || before.state != e.state:
			news = append(news, e)
		case e.content != "" && before.content != "" && e.content != before.content:
			again := e
			again.At = now
			again.Reason = eventConfigured
			again.Message = fmt.Sprintf("%s configured on %s", e.Object, e.Member)
			news = append(news, again)
		}
		e.content = cmp.Or(e.content, before.content)
		l.known[e.key] = e
	}
	if !complete {
		return news
	}
	var gone []Event
	for key, before := range l.known {
		if current[key] {
			continue
		}
		delete(l.known, key)
		if before.applied {
			before.At = now
			before.Type = corev1.EventTypeNormal
			before.Reason = eventPruned
			before.Message = fmt.Sprintf("%s no longer placed on %s", before.Object, before.Member)
			gone = append(gone, before)
		}
	}
	slices.SortFunc(gone, func(a, b Event) int { return strings.Compare(a.key, b.key) })
	return append(news, gone...)
}

// ReportsAreComplete reports whether members have had room in their Works for all that they report.
func ReportsAreComplete(objects []client.Object) bool {
	return !slices.ContainsFunc(objects, func(object client.Object) bool {
		work, is := object.(*placementv1beta1.Work)
		return is && placementv1beta1.FindTrue(work.Status.Conditions, placementv1beta1.ConditionTypeStatusTrimmed) != nil
	})
}
