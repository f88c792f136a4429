package command

import (
	"context"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	"github.com/fleetflow/fleetflow/cmd/internal/fleetview"
	"github.com/fleetflow/fleetflow/cmd/internal/steer"
)

// holdsWord and exemptionsWord are what `get` calls RolloutHolds and RolloutExemptions.
const (
	holdsWord      = "holds"
	exemptionsWord = "exemptions"
)

// runHolds shows the holds.
func (o *getOptions) runHolds(ctx context.Context, names []string) error {
	var list fleetflowv1alpha1.RolloutHoldList
	if err := o.readAll(ctx, &list, holdsWord, steer.ExplainHolds); err != nil {
		return err
	}
	shown := named(list.Items, names, func(h fleetflowv1alpha1.RolloutHold) string { return h.Name })
	rows := make([]fleetview.Hold, 0, len(shown))
	for i := range shown {
		shown[i].SetGroupVersionKind(fleetflowv1alpha1.GroupVersion.WithKind("RolloutHold"))
		rows = append(rows, fleetview.HoldOf(&shown[i], o.factory.Clock.Now()))
	}
	return show(&o.viewing, shown, fleetview.HoldColumns, rows, "Nothing is held.")
}

// runExemptions shows the exemptions, those that are over too: they are kept for the record.
func (o *getOptions) runExemptions(ctx context.Context, names []string) error {
	var list fleetflowv1alpha1.RolloutExemptionList
	if err := o.readAll(ctx, &list, exemptionsWord, steer.ExplainExemptions); err != nil {
		return err
	}
	shown := named(list.Items, names, func(e fleetflowv1alpha1.RolloutExemption) string { return e.Name })
	rows := make([]fleetview.Exemption, 0, len(shown))
	for i := range shown {
		shown[i].SetGroupVersionKind(fleetflowv1alpha1.GroupVersion.WithKind("RolloutExemption"))
		rows = append(rows, fleetview.ExemptionOf(&shown[i], o.factory.Clock.Now()))
	}
	return show(&o.viewing, shown, fleetview.ExemptionColumns, rows, "Nothing is exempt.")
}

// readAll reads a list; explain says what to do if that cannot be done.
func (o *getOptions) readAll(ctx context.Context, list client.ObjectList, word string, explain func(err error, doing string) error) error {
	if err := o.Validate(); err != nil {
		return err
	}
	c, err := o.factory.Client()
	if err != nil {
		return err
	}
	if err := o.factory.Patiently(o.streams, "reading the "+word, func() error { return c.List(ctx, list) }); err != nil {
		return explain(err, "listing the "+word)
	}
	return nil
}

// named keeps what has one of some names, with or without its kind before it; all if there are none.
func named[T any](all []T, names []string, nameOf func(T) string) []T {
	return slices.DeleteFunc(all, func(one T) bool {
		return len(names) > 0 && !slices.ContainsFunc(names, func(wanted string) bool {
			return wanted == nameOf(one) || strings.HasSuffix(wanted, "/"+nameOf(one))
		})
	})
}
