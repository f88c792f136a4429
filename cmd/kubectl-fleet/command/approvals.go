package command

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/cmd/internal/fleetview"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/base"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
)

// runApprovals shows the approval requests that wait for an answer; those that are named in any case.
func (l *lists) runApprovals(ctx context.Context, names []string) error {
	reader, err := l.newReader()
	if err != nil {
		return err
	}
	var all []hub.Approval
	var runs []hub.Run
	err = l.Factory.Patiently(l.Streams, "reading approval requests", func() (err error) {
		if all, err = reader.AllApprovals(ctx); err == nil {
			runs, err = reader.Runs(ctx)
		}
		return err
	})
	if err != nil {
		return err
	}
	if len(all) == 0 {
		if err := reader.CheckHub(ctx); err != nil {
			return err
		}
	}
	shown, err := l.chooseApprovals(all, runs, names)
	if err != nil {
		return err
	}
	rows := make([]fleetview.Approval, 0, len(shown))
	for _, a := range shown {
		rows = append(rows, fleetview.ApprovalOf(a, runs, l.Factory.Clock.Now()))
	}
	labels := labelColumns(&l.labelled, false, func(a fleetview.Approval) map[string]string { return a.Labels })
	return base.Show(&l.Viewing, approvalList(shown), slices.Concat(fleetview.ApprovalColumns, labels), rows, "No run waits for an approval.")
}

// chooseApprovals returns the requests to show: those that are named, else those of runs under way that are not approved.
func (l *lists) chooseApprovals(all []hub.Approval, runs []hub.Run, names []string) ([]hub.Approval, error) {
	for _, name := range names {
		if !slices.ContainsFunc(all, func(a hub.Approval) bool { return a.Object.GetName() == name }) {
			return nil, fmt.Errorf("there is no approval request %q; kubectl fleet get approvals lists those that wait", name)
		}
	}
	shown := slices.DeleteFunc(all, func(a hub.Approval) bool {
		if !l.Selects(a.Object.GetLabels()) {
			return true
		}
		if len(names) > 0 {
			return !slices.Contains(names, a.Object.GetName())
		}
		run := fleetview.RunOfApproval(a, runs)
		return fleetview.ApprovalOf(a, nil, time.Time{}).State == fleetview.Approved || run != nil && run.Outcome() != ""
	})
	slices.SortFunc(shown, func(a, b hub.Approval) int {
		return cmp.Or(a.Object.GetCreationTimestamp().Compare(b.Object.GetCreationTimestamp().Time),
			cmp.Compare(a.Object.GetName(), b.Object.GetName()))
	})
	return shown, nil
}

func approvalList(shown []hub.Approval) map[string]any {
	items := []client.Object{}
	for _, a := range shown {
		a.Object.GetObjectKind().SetGroupVersionKind(placementv1beta1.ScopeOf(a.Object).ApprovalRequestKind())
		items = append(items, a.Object)
	}
	return listOf(items)
}
