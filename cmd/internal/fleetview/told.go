package fleetview

import (
	"context"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
)

// Told is a row about where records or messages go: a sink, a channel, or a rule that says what is told in which channels.
type Told struct {
	Kind, Name, Type, State string
	// Reason and Message are what the hub agent says of it, since Since.
	Reason, Message string
	Since           time.Time
	// Last is when it took a message; zero if that is not known. Pending is how many records are known to wait for it.
	Last    time.Time
	Pending int64
	Labels  map[string]string
}

// States of what records or messages go to.
const (
	ToldReady   = "ready"
	ToldFails   = "fails"
	ToldUnknown = "unknown"
)

// Kinds of what records or messages go to.
const (
	ToldSink    = "sink"
	ToldChannel = "channel"
	ToldRule    = "rule"
)

// SinkOf sums a sink up.
func SinkOf(sink *fleetflowv1alpha1.AuditSink, _ time.Time) Told {
	row := toldOf(ToldSink, string(sink.Spec.Type), sink, sink.Status.Conditions)
	row.Pending = sink.Status.Pending
	return row
}

// ChannelOf sums a channel up.
func ChannelOf(channel *fleetflowv1alpha1.NotificationChannel, _ time.Time) Told {
	row := toldOf(ToldChannel, string(channel.Spec.Type), channel, channel.Status.Conditions)
	if last := channel.Status.LastDeliveryTime; last != nil {
		row.Last = last.Time
	}
	return row
}

// RuleOf sums a rule up.
func RuleOf(rule *fleetflowv1alpha1.NotificationRule, _ time.Time) Told {
	return toldOf(ToldRule, "to "+strings.Join(rule.ChannelNames(), ", "), rule, rule.Status.Conditions)
}

func toldOf(kind, of string, object client.Object, conditions []metav1.Condition) Told {
	row := Told{Kind: kind, Name: object.GetName(), Type: of, State: ToldUnknown, Labels: object.GetLabels()}
	ready := meta.FindStatusCondition(conditions, fleetflowv1alpha1.ConditionTypeReady)
	if ready == nil {
		row.Message = "the hub agent has not looked at it yet"
		return row
	}
	row.Reason = ready.Reason
	row.Message = ready.Message
	row.Since = ready.LastTransitionTime.Time
	switch ready.Status {
	case metav1.ConditionTrue:
		row.State = ToldReady
	case metav1.ConditionFalse:
		row.State = ToldFails
	}
	return row
}

// ToldColumns are those of what records or messages go to.
var ToldColumns = []Column[Told]{
	{Page: "Kind", Text: func(t Told) string { return t.Kind }},
	{Name: "Name", Page: "Name", Text: func(t Told) string { return t.Name }},
	{Name: "Type", Page: "Type", Text: func(t Told) string { return t.Type }},
	{Name: "State", Page: "State", Text: func(t Told) string { return t.State }, Cell: func(t Told) Cell {
		if t.State == ToldFails {
			return Cell{Bad: t.State}
		}
		return Cell{Text: t.State}
	}},
	{Name: "Since", Page: "Since", Text: func(t Told) string { return formatTime(t.Since) }, Cell: func(t Told) Cell { return instantCell(t.Since) }},
	{Name: "Last Message", Page: "Last message", Text: func(t Told) string { return formatTime(t.Last) }, Cell: func(t Told) Cell { return instantCell(t.Last) }},
	{Name: "Pending", Page: "Undelivered", Text: func(t Told) string {
		if t.Kind != ToldSink {
			return ""
		}
		return fmt.Sprint(t.Pending)
	}},
	{Name: "Message", Page: "Message", Text: func(t Told) string { return t.Message }},
}

// instantCell shows a time, and none as nothing.
func instantCell(at time.Time) Cell {
	if at.IsZero() {
		return Cell{}
	}
	return Cell{At: &at}
}

// ReadTold reads what records and messages go to. A hub that does not serve the kinds has none.
func ReadTold(ctx context.Context, from client.Reader) ([]Told, error) {
	channels := fleetflowv1alpha1.NotificationChannelList{}
	rules := fleetflowv1alpha1.NotificationRuleList{}
	sinks := fleetflowv1alpha1.AuditSinkList{}
	for _, read := range []struct {
		words string
		list  client.ObjectList
	}{{"notification channels", &channels}, {"notification rules", &rules}, {"audit sinks", &sinks}} {
		if err := from.List(ctx, read.list); err != nil && !hub.Unserved(err) {
			return nil, fmt.Errorf("listing the %s: %w", read.words, err)
		}
	}
	var all []Told
	for i := range channels.Items {
		all = append(all, ChannelOf(&channels.Items[i], time.Time{}))
	}
	for i := range rules.Items {
		all = append(all, RuleOf(&rules.Items[i], time.Time{}))
	}
	for i := range sinks.Items {
		all = append(all, SinkOf(&sinks.Items[i], time.Time{}))
	}
	return all, nil
}
