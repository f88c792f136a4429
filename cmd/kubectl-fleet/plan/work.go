package plan

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/brake"
	"github.com/fleetflow/fleetflow/activities/hubread"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
)

// Work reads the facts of a plan and makes it, with when its waves may begin.
func Work(ctx context.Context, c client.Reader, now time.Time, placement hub.Placement, wish Wish) (Plan, error) {
	facts, unsure, err := Read(ctx, c, placement, wish)
	if err != nil {
		return Plan{}, err
	}
	made, err := Make(facts)
	made.Notes = append(made.Notes, unsure...)
	if wish.PlanHash != nil {
		made.PlanHash = *wish.PlanHash
		made.Outline = nil
	}
	if err != nil {
		return made, err
	}
	return made, readOpenings(ctx, c, now, facts, &made)
}

// Index reads the index of a snapshot; nil if there is none.
func Index(text string) *int {
	index, err := strconv.Atoi(text)
	if err != nil {
		return nil
	}
	return &index
}

// readOpenings adds when the waves may begin, if holds or windows keep them from it.
func readOpenings(ctx context.Context, c client.Reader, now time.Time, facts Facts, made *Plan) error {
	subject := brake.SubjectOf(facts.Placement.Object)
	subject.Placement = ""
	subject.Run = facts.Run
	subject.Rollback = facts.RollbackOf != ""
	subject.UID = ""
	subject.Created = metav1.Time{Time: now} // a run that is not there yet has no exemption
	for i := range facts.Runs {
		if facts.Runs[i].Name == facts.Run {
			subject.UID = facts.Runs[i].Object.GetUID()
			subject.Created = facts.Runs[i].Object.GetCreationTimestamp()
			subject.Rollback = rules.RestoresWhatSucceeded(facts.Runs[i].Object)
		}
	}
	gates := map[string]*brake.Chain{}
	for _, stage := range made.Stages {
		subject.Stage = stage.Name
		subject.Windows = stage.Windows
		gate, err := hubread.BrakesOf(ctx, c, c, facts.Members, hubread.ExemptionRule{}, subject, now)
		if apierrors.IsForbidden(err) {
			made.Notes = append(made.Notes, "when it may begin is not known: you may not read rollout holds, windows and the namespace, the role hub-agent-viewer may")
			return nil
		}
		if err != nil {
			return err
		}
		gates[stage.Name] = gate
	}
	labels := map[string]map[string]string{}
	for i := range facts.Members {
		labels[facts.Members[i].Name] = facts.Members[i].Labels
	}
	made.AddOpenings(func(stage Stage) *brake.Chain { return gates[stage.Name] }, labels, now)
	if facts.Frozen != nil {
		return nil // it is initialized
	}
	return checkNamedWindows(ctx, c, made)
}

// checkNamedWindows notes windows that stages name and that would keep the run from being initialized.
func checkNamedWindows(ctx context.Context, c client.Reader, made *Plan) error {
	if !slices.ContainsFunc(made.Stages, func(s Stage) bool { return len(s.Windows) > 0 }) {
		return nil
	}
	var windows fleetflowv1alpha1.RolloutWindowList
	if err := c.List(ctx, &windows); err != nil && !hub.Unserved(err) {
		return fmt.Errorf("listing the rollout windows: %w", err)
	}
	made.CheckWindows(windows.Items)
	return nil
}
