package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/cli"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/overview"
)

// approvalWords are what `get` calls approval requests.
var approvalWords = map[string]bool{
	"approvals": true, "approval": true, "clusterapprovalrequests": true, "clusterapprovalrequest": true, "careq": true,
	"approvalrequests": true, "approvalrequest": true, "areq": true,
}

// runApprovals shows the approval requests that wait for an answer; those that are named in any case.
func (o *getOptions) runApprovals(ctx context.Context, names []string) error {
	if err := errors.Join(o.Validate(), o.labelled.parse()); err != nil {
		return err
	}
	if o.watch {
		return cli.Usagef("--watch is for members, placements and runs: kubectl fleet get runs --watch shows which begin to wait for an approval")
	}
	reader, err := o.reader()
	if err != nil {
		return err
	}
	var all []hub.Approval
	var runs []hub.Run
	err = o.factory.Patiently(o.streams, "reading approval requests", func() (err error) {
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
	shown, err := o.chooseApprovals(all, runs, names)
	if err != nil {
		return err
	}
	if o.Structured() {
		return o.Encode(o.streams.Out, approvalList(shown))
	}
	if len(shown) == 0 {
		cli.Printf(o.streams.ErrOut, "No run waits for an approval.\n")
		return nil
	}
	return o.PrintTable(o.streams.Out, append([]cli.Column{
		{Name: "Name"}, {Name: "Run"}, {Name: "Stage"}, {Name: "Placement"}, {Name: "State"}, {Name: "Waits"}, {Name: "Comment", Wide: true},
	}, o.labelColumns(false)...), o.approvalRows(shown, runs))
}

// chooseApprovals are the requests to show: those that are named, else those of runs under way that are not approved.
func (o *getOptions) chooseApprovals(all []hub.Approval, runs []hub.Run, names []string) ([]hub.Approval, error) {
	for _, name := range names {
		if !slices.ContainsFunc(all, func(a hub.Approval) bool { return a.Object.GetName() == name }) {
			return nil, fmt.Errorf("there is no approval request %q; kubectl fleet get approvals lists those that wait", name)
		}
	}
	shown := slices.DeleteFunc(all, func(a hub.Approval) bool {
		if !o.selects(a.Object.GetLabels()) {
			return true
		}
		if len(names) > 0 {
			return !slices.Contains(names, a.Object.GetName())
		}
		run := runOfApproval(a, runs)
		return approvalState(a) == approvedState || run != nil && run.Outcome() != ""
	})
	slices.SortFunc(shown, func(a, b hub.Approval) int {
		return cmp.Or(a.Object.GetCreationTimestamp().Compare(b.Object.GetCreationTimestamp().Time),
			cmp.Compare(a.Object.GetName(), b.Object.GetName()))
	})
	return shown, nil
}

func (o *getOptions) approvalRows(shown []hub.Approval, runs []hub.Run) [][]string {
	rows := make([][]string, 0, len(shown))
	for _, a := range shown {
		placement := ""
		if run := runOfApproval(a, runs); run != nil {
			placement = run.Spec.PlacementName
		}
		comment := ""
		if answer := meta.FindStatusCondition(a.Status.Conditions, placementv1beta1.ConditionTypeApproved); answer != nil {
			comment = answer.Message
		}
		rows = append(rows, append([]string{
			qualified(a.Object.GetNamespace(), a.Object.GetName()), a.Spec.ParentStageRollout, a.Spec.TargetStage, placement, approvalState(a),
			overview.Age(a.Object.GetCreationTimestamp().Time, o.factory.Clock.Now()), comment,
		}, o.labelCells(a.Object.GetLabels())...))
	}
	return rows
}

// approvedState is what a request is at once it is approved.
const approvedState = "approved"

// approvalState is what a request is at.
func approvalState(a hub.Approval) string {
	answer := meta.FindStatusCondition(a.Status.Conditions, placementv1beta1.ConditionTypeApproved)
	switch {
	case answer == nil:
		return "waiting"
	case answer.Status == metav1.ConditionTrue:
		return approvedState
	case answer.Reason == rejectedReason:
		return "rejected"
	}
	return "not " + approvedState
}

// runOfApproval is the run that a request belongs to; nil if it is gone.
func runOfApproval(a hub.Approval, runs []hub.Run) *hub.Run {
	for i := range runs {
		if runs[i].Name == a.Spec.ParentStageRollout && runs[i].Namespace == a.Object.GetNamespace() {
			return &runs[i]
		}
	}
	return nil
}

func approvalList(shown []hub.Approval) map[string]any {
	items := []client.Object{}
	for _, a := range shown {
		a.Object.GetObjectKind().SetGroupVersionKind(placementv1beta1.ScopeOf(a.Object).ApprovalRequestKind())
		a.Object.SetManagedFields(nil)
		items = append(items, a.Object)
	}
	return map[string]any{"apiVersion": "v1", "kind": "List", "metadata": metav1.ListMeta{}, "items": items}
}
