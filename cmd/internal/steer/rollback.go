package steer

import (
	"context"
	"fmt"
	"slices"

	"github.com/fleetflow/fleetflow/apis/placement/updaterun"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
)

// Rollback takes the clusters that a run has updated back to what they had before.
func Rollback() Verb {
	return Verb{
		Name: "rollback", Takes: "RUN", Group: GroupRollout, Kinds: []hub.Kind{hub.KindRun}, Asks: true,
		Short: "Take the clusters that a run has updated back to what they had before",
		Long: `Take each cluster that a staged update run has updated back to the snapshot it had before, the last stage first. That
is a run of its own, to be watched and stopped as any other. It does not wait between stages, and asks for the approvals
that the strategy asks for, unless the strategy says rollbackApprovals: Skip. If the run rolled back has not ended, it
ends now.

To take all clusters to one older snapshot, through the gates, create a run with its index instead:
kubectl fleet run PLACEMENT --strategy NAME --index N.`,
		Example: `  # Back, and watch it
  kubectl fleet rollback web-17 --reason "checkout fails" && kubectl fleet status web-17-rollback --watch`,
		CheckArguments: exactlyOne("rollback", "a run", "rollback web-17"),
		New: func() *Request {
			r := &rollback{}
			return &Request{Prepare: r.prepare, Fields: []Field{
				r.reason.keptOn("the run that rolls back"),
				{Name: "name", Into: &r.name, Usage: "Name of the run that rolls back. (default: RUN-rollback, cut if that is too long)"},
			}}
		},
		Form: &Form{
			Kinds: []hub.Kind{hub.KindRun},
			Links: func(target hub.Found) []Link {
				if !hasUpdated(*target.Run) || target.Run.Spec.RollbackOf != "" {
					return nil
				}
				return []Link{{Label: "Roll back"}}
			},
			Rights: createsRun,
			Page: func(view View) Page {
				run := view.Target.Run
				page := Page{Title: "Roll back " + run.Name, Button: "Roll back " + run.Name,
					Lead: "Each cluster that the run has updated goes back to the snapshot it had before, the last stage first. That is a run of its own. " +
						"It has no soak times and no analyses, and asks for the approvals of the strategy unless the strategy says rollbackApprovals: Skip."}
				if isUnderWay(*run) {
					page.Notes = []string{fmt.Sprintf("%s has not ended, and ends by this.", run.Ref)}
				}
				if !hasUpdated(*run) {
					page.Refusal = "The run has not updated any cluster: there is nothing to roll back."
				}
				return page
			},
		},
	}
}

// createsRun returns the right that it takes to create a run of the scope of a run or a placement.
func createsRun(target hub.Found) []Right {
	scope := placementv1beta1.Scope{Namespace: target.Ref().Namespace}
	run := scope.NewUpdateRun("")
	run.SetNamespace(scope.Namespace)
	return []Right{{Verb: "create", Object: run}}
}

// hasUpdated reports whether a run has begun to update clusters.
func hasUpdated(run hub.Run) bool {
	return slices.ContainsFunc(updaterun.Read(run.Object).Stages, func(stage updaterun.Stage) bool {
		return slices.ContainsFunc(stage.Clusters, func(c updaterun.Cluster) bool { return !c.Started.IsZero() })
	})
}

// rollback is what was asked for.
type rollback struct {
	name   string
	reason Reason
}

func (r *rollback) prepare(_ context.Context, call *Call, target hub.Found) (Deed, error) {
	run := *target.Run
	if taken := run.Spec.RollbackOf; taken != "" {
		return Deed{}, fmt.Errorf("%s is a rollback itself, of %s: kubectl fleet run with --index brings what it took back, and waits for approvals and holds", run.Ref, taken)
	}
	started, of := startedClusters(run)
	if started == 0 {
		return Deed{}, fmt.Errorf("%s has not updated any cluster: there is nothing to roll back", run.Ref)
	}
	ref := hub.Ref{Kind: hub.KindRun, Namespace: run.Namespace, Name: r.name}
	if ref.Name == "" {
		ref.Name = placementv1beta1.RollbackName(run.Name, run.Object.GetUID())
	}
	question := fmt.Sprintf("Take %d of %d clusters of %s back to what they had before it?", started, of, run.Ref)
	if isUnderWay(run) {
		question = fmt.Sprintf("%s has not ended and will be. %s", run.Ref, question)
	}
	spec := placementv1beta1.UpdateRunSpec{
		PlacementName: run.Spec.PlacementName, StagedUpdateStrategyName: run.Spec.StagedUpdateStrategyName, RollbackOf: run.Name,
		State: placementv1beta1.StateRun,
	}
	return Deed{Question: question, Do: func(ctx context.Context) (Result, error) {
		return resultSaying("%s created: it takes %d clusters back; watch it with kubectl fleet status %s --watch", ref, started, ref.Flags()),
			call.createRun(ctx, ref, spec, nil, r.reason)
	}}, nil
}

// startedClusters counts the clusters of a run, and those of them that it has begun to update.
func startedClusters(run hub.Run) (started, all int) {
	for i := range run.Status.StagesStatus {
		clusters := run.Status.StagesStatus[i].Clusters
		all += len(clusters)
		for j := range clusters {
			if updaterun.WasStarted(&clusters[j]) {
				started++
			}
		}
	}
	return started, all
}
