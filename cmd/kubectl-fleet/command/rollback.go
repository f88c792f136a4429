package command

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/apis/placement/updaterun"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/cli"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
)

// NewRollback returns `kubectl fleet rollback`.
func NewRollback(f *cli.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	var name string
	s := &steering{factory: f, streams: streams}
	cmd := s.about(hub.KindRun, &cobra.Command{
		Use:   "rollback RUN",
		Short: "Take the clusters that a run has updated back to what they had before",
		Long: `Take each cluster that a staged update run has updated back to the snapshot it had before, the last stage first. That
is a run of its own, to be watched and stopped as any other. It does not wait between stages, and asks for the approvals
that the strategy asks for, unless the strategy says rollbackApprovals: Skip. If the run rolled back has not ended, it
ends now.

To take all clusters to one older snapshot, through the gates, create a run with its index instead:
kubectl fleet run PLACEMENT --strategy NAME --index N.`,
		Example: `  # Back, and watch it
  kubectl fleet rollback web-17 --reason "checkout fails" && kubectl fleet status web-17-rollback --watch`,
		Args: exactlyOne("a run", "kubectl fleet rollback web-17"),
	}, func(ctx context.Context, s *steering, c client.WithWatch, found hub.Found, _ []string) error {
		run := *found.Run
		return s.rollback(ctx, c, run, name)
	})
	s.addReason(cmd, "the run that rolls back")
	cmd.Flags().StringVar(&name, "name", "", "Name of the run that rolls back. (default: RUN-rollback, cut if that is too long)")
	return cmd
}

func (s *steering) rollback(ctx context.Context, c client.WithWatch, run hub.Run, name string) error {
	if taken := run.Spec.RollbackOf; taken != "" {
		return fmt.Errorf("%s is a rollback itself, of %s: kubectl fleet run with --index brings what it took back, and waits for approvals and holds", run.Ref, taken)
	}
	started, of := startedClusters(run)
	if started == 0 {
		return fmt.Errorf("%s has not updated any cluster: there is nothing to roll back", run.Ref)
	}
	if name == "" {
		name = placementv1beta1.RollbackName(run.Name, run.Object.GetUID())
	}
	question := fmt.Sprintf("Take %d of %d clusters of %s back to what they had before it?", started, of, run.Ref)
	if run.Outcome() == "" {
		question = fmt.Sprintf("%s has not ended and will be. %s", run.Ref, question)
	}
	if err := s.Ask(s.streams, question); err != nil {
		return err
	}
	spec := placementv1beta1.UpdateRunSpec{
		PlacementName: run.Spec.PlacementName, StagedRolloutStrategyName: run.Spec.StagedRolloutStrategyName, RollbackOf: run.Name,
		State: placementv1beta1.StateRun,
	}
	ref := hub.Ref{Kind: hub.KindRun, Namespace: run.Namespace, Name: name}
	if err := s.createRun(ctx, c, ref, spec); err != nil {
		return err
	}
	s.Done(s.streams, "%s created: it takes %d clusters back; watch it with kubectl fleet status %s --watch", ref, started, ref.Flags())
	return nil
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

// createRun creates a run of either scope.
func (s *steering) createRun(ctx context.Context, c client.WithWatch, ref hub.Ref, spec placementv1beta1.UpdateRunSpec) error {
	if !s.Sends() {
		return nil
	}
	run := placementv1beta1.Scope{Namespace: ref.Namespace}.NewUpdateRun(ref.Name)
	*run.GetUpdateRunSpec() = spec
	who, err := askWhoIAm(ctx, c)
	if err != nil {
		return err
	}
	if who.Username != "" { // the API server checks it, or writes it itself where it can
		run.SetAnnotations(map[string]string{placementv1beta1.CreatorAnnotation: who.Username})
	}
	s.annotate(run)
	err = s.writer(c).Create(ctx, run)
	if hub.Unserved(err) {
		return errors.New("this hub has no staged update runs: it does not serve their kind")
	}
	if err != nil {
		return fmt.Errorf("creating %s: %w", ref, err)
	}
	return nil
}
