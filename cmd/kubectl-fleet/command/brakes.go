package command

import (
	"context"
	"time"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	"github.com/fleetflow/fleetflow/cmd/internal/fleetview"
	"github.com/fleetflow/fleetflow/cmd/internal/steer"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
)

// readHolds reads the holds.
func readHolds(reader hub.Reader, ctx context.Context) ([]*fleetflowv1alpha1.RolloutHold, error) {
	var list fleetflowv1alpha1.RolloutHoldList
	if err := reader.List(ctx, &list); err != nil {
		return nil, steer.ExplainHolds(err, "listing the holds")
	}
	return pointersTo(list.Items, func(h *fleetflowv1alpha1.RolloutHold) {
		h.SetGroupVersionKind(fleetflowv1alpha1.GroupVersion.WithKind("RolloutHold"))
	}), nil
}

// readExemptions reads the exemptions.
func readExemptions(reader hub.Reader, ctx context.Context) ([]*fleetflowv1alpha1.RolloutExemption, error) {
	var list fleetflowv1alpha1.RolloutExemptionList
	if err := reader.List(ctx, &list); err != nil {
		return nil, steer.ExplainExemptions(err, "listing the exemptions")
	}
	return pointersTo(list.Items, func(e *fleetflowv1alpha1.RolloutExemption) {
		e.SetGroupVersionKind(fleetflowv1alpha1.GroupVersion.WithKind("RolloutExemption"))
	}), nil
}

// runWindows shows the rollout windows as kubectl fleet windows does; programs get the windows themselves.
func (l *lists) runWindows(ctx context.Context, names []string) error {
	views := map[string]fleetview.Window{}
	now := l.Factory.Clock.Now()
	return rowsOf[*fleetflowv1alpha1.RolloutWindow, fleetview.Window]{
		word: "window", words: "windows", columns: fleetview.WindowColumns(now), none: noWindows,
		labels: func(w fleetview.Window) map[string]string { return w.Labels },
		row:    func(w *fleetflowv1alpha1.RolloutWindow, _ time.Time) fleetview.Window { return views[w.Name] },
		read: func(_ hub.Reader, ctx context.Context) ([]*fleetflowv1alpha1.RolloutWindow, error) {
			windows := &windowsOptions{Viewing: l.Viewing}
			all, err := windows.readWindows(ctx)
			if err != nil {
				return nil, err
			}
			seen, err := windows.makeViews(ctx, all, now)
			found := make([]*fleetflowv1alpha1.RolloutWindow, len(seen))
			for i := range seen {
				views[seen[i].Name] = seen[i]
				found[i] = all[i].RolloutWindow
				found[i].SetGroupVersionKind(fleetflowv1alpha1.GroupVersion.WithKind("RolloutWindow"))
			}
			return found, err
		},
	}.run(l, ctx, names)
}

// pointersTo returns pointers to objects of a list, each with its kind.
func pointersTo[T any](items []T, setKind func(*T)) []*T {
	found := make([]*T, len(items))
	for i := range items {
		setKind(&items[i])
		found[i] = &items[i]
	}
	return found
}
