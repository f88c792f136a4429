package fleetview

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/hubread"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
)

// Takers are who gets records.
type Takers struct {
	Sinks []fleetflowv1alpha1.AuditSink
	Rules []fleetflowv1alpha1.NotificationRule
	// Channels are the names of those that there are.
	Channels map[string]bool
	// Placement knows the labels of the placements of records.
	Placement fleetflowv1alpha1.PlacementOf
	// LeftOut are the kinds that the user may not list: what they ask for is not known here.
	LeftOut []string
}

// Waiting names who has not got a record yet: sinks, and channels behind the rules that ask for them; empty if each has, or the record is
// complete. What depends on an expression of a rule, or on a placement that cannot be read, is not known here, which "?" says.
func (t *Takers) Waiting(record *fleetflowv1alpha1.AuditRecord) string {
	if record.Status.Complete {
		return ""
	}
	var waiting []string
	for i := range t.Sinks {
		if record.Delivery(fleetflowv1alpha1.AuditSinkKind, t.Sinks[i].Name) != nil {
			continue
		}
		switch isWanted, err := t.Sinks[i].Wants(record, t.Placement); {
		case err != nil:
			waiting = append(waiting, t.Sinks[i].Name+"?")
		case isWanted:
			waiting = append(waiting, t.Sinks[i].Name)
		}
	}
	return strings.Join(append(waiting, t.waitingChannels(record)...), ", ")
}

// waitingChannels names the channels that have not got a record yet, each with the first rule that asks for it.
func (t *Takers) waitingChannels(record *fleetflowv1alpha1.AuditRecord) (waiting []string) {
	had := map[string]bool{}
	for _, d := range record.Status.Deliveries {
		if _, channel, is := strings.Cut(d.Name, "/"); is && d.Kind == fleetflowv1alpha1.NotificationRuleKind {
			had[channel] = true
		}
	}
	for i := range t.Rules {
		rule := &t.Rules[i]
		isTold, err := rule.MayTell(record, t.Placement)
		if !isTold && err == nil {
			continue
		}
		for _, channel := range rule.ChannelNames() {
			if had[channel] || !t.Channels[channel] {
				continue
			}
			name := rule.Name + "/" + channel
			if rule.Spec.When == "" && err == nil {
				had[channel] = true // no other rule tells it there
			} else {
				name += "?"
			}
			waiting = append(waiting, name)
		}
	}
	return waiting
}

// Undelivered returns the records that a sink or a channel has not got yet, and their columns.
func (t *Takers) Undelivered(all []fleetflowv1alpha1.AuditRecord) ([]fleetflowv1alpha1.AuditRecord, []Column[fleetflowv1alpha1.AuditRecord]) {
	waiting := map[string]string{}
	var left []fleetflowv1alpha1.AuditRecord
	for i := range all {
		if who := t.Waiting(&all[i]); who != "" {
			waiting[all[i].Name] = who
			left = append(left, all[i])
		}
	}
	return left, append(slices.Clone(RecordColumns), Column[fleetflowv1alpha1.AuditRecord]{
		Name: "Waits for", Text: func(r fleetflowv1alpha1.AuditRecord) string { return waiting[r.Name] },
	})
}

// None says that nothing waits, as far as is known.
func (t *Takers) None() string {
	switch {
	case len(t.LeftOut) > 0:
		return "Every AuditSink has got what it is to get."
	case len(t.Sinks)+len(t.Rules) == 0:
		return "There is no AuditSink and no NotificationRule: no record is delivered."
	default:
		return "Every AuditSink and every channel has got what it is to get."
	}
}

// TakersOf reads who gets records. The placements are read when they are asked for, each once.
func TakersOf(ctx context.Context, from client.Reader) (*Takers, error) {
	sinks := fleetflowv1alpha1.AuditSinkList{}
	rules := fleetflowv1alpha1.NotificationRuleList{}
	channels := fleetflowv1alpha1.NotificationChannelList{}
	err := from.List(ctx, &sinks)
	if hub.Unserved(err) {
		return nil, errors.New("this hub delivers no records: it does not serve AuditSinks; upgrade the chart of the hub agent")
	}
	if err != nil {
		return nil, fmt.Errorf("listing the audit sinks: %w", err)
	}
	var leftOut []string
	for what, list := range map[string]client.ObjectList{"rules": &rules, "channels": &channels} {
		switch err := from.List(ctx, list); {
		case err == nil, hub.Unserved(err):
		case apierrors.IsForbidden(err):
			leftOut = append(leftOut, "notification "+what)
		default:
			return nil, fmt.Errorf("listing the notification %s: %w", what, err)
		}
	}
	slices.Sort(leftOut)
	names := map[string]bool{}
	for i := range channels.Items {
		names[channels.Items[i].Name] = true
	}
	type found struct {
		labels  map[string]string
		isThere bool
		err     error
	}
	known := map[types.NamespacedName]found{}
	read := hubread.PlacementOf(ctx, from)
	return &Takers{
		Sinks: sinks.Items, Rules: rules.Items, Channels: names, LeftOut: leftOut,
		Placement: func(record *fleetflowv1alpha1.AuditRecord) (map[string]string, bool, error) {
			key := types.NamespacedName{Namespace: record.Spec.SubjectRef.Namespace, Name: record.Spec.PlacementName}
			of, is := known[key]
			if !is {
				of.labels, of.isThere, of.err = read(record)
				known[key] = of
			}
			return of.labels, of.isThere, of.err
		},
	}, nil
}
