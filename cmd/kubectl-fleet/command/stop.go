package command

import (
	"context"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/fence"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/cli"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
)

// NewStop returns `kubectl fleet stop`.
func NewStop(f *cli.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	cmd := steeringVerb(f, streams, hub.KindRun, &cobra.Command{
		Use:   "stop RUN",
		Short: "Stop a run: clusters that are being updated finish, no others start",
		Long: `Stop a staged update run by setting its spec.state to Stop. Clusters that are being updated finish, no others start, and
soak time that has been served is not lost. kubectl fleet resume goes on from there.`,
		Example: `  kubectl fleet stop web-17`,
		Args:    exactlyOne("a run", "kubectl fleet stop web-17"),
	}, func(ctx context.Context, s *steering, c client.WithWatch, found hub.Found, _ []string) error {
		run := *found.Run
		return s.setState(ctx, c, run, placementv1beta1.StateStop, "stopping", "is stopped already")
	})
	cmd.ValidArgsFunction = completeRuns(f, isUnderWay)
	return cmd
}

// NewResume returns `kubectl fleet resume`.
func NewResume(f *cli.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	s := &steering{factory: f, streams: streams}
	cmd := &cobra.Command{
		Use:     "resume (RUN | placement/NAME)",
		Aliases: []string{"start"},
		Short:   "Go on with a run that was stopped, or a placement that was paused; start a run that was only initialized",
		Long: `Go on with a staged update run by setting its spec.state to Run: one that was stopped, or one that was created with
kubectl fleet run --initialize to look at its plan first. Or go on with the rolling update of a placement that was paused
with kubectl fleet pause.`,
		Example: `  kubectl fleet resume web-17
  kubectl fleet resume placement/web`,
		Args:              exactlyOne("a run", "kubectl fleet resume web-17"),
		ValidArgsFunction: completeRefs(f, hub.KindRun, hub.KindPlacement),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, found, err := s.findOne(cmd.Context(), args[0], hub.KindRun, hub.KindPlacement)
			switch {
			case err != nil:
				return err
			case found.Placement != nil:
				return s.setPaused(cmd.Context(), c, *found.Placement, false)
			}
			return s.setState(cmd.Context(), c, *found.Run, placementv1beta1.StateRun, "running", "is not stopped")
		},
	}
	s.AddFlags(cmd)
	return cmd
}

// setState changes what a run is to do. It is no harm to ask for what is the case.
func (s *steering) setState(ctx context.Context, c client.WithWatch, run hub.Run, state placementv1beta1.UpdateRunState, done,
	already string) error {
	if err := unfinished(run); err != nil {
		return err
	}
	if run.Spec.State == state || run.Spec.State == "" && state == placementv1beta1.StateRun {
		s.Done(s.streams, "%s %s", run.Ref, already)
		return nil
	}
	if err := s.patchRun(ctx, c, run, fence.Add("/spec/state", state)); err != nil {
		return err
	}
	s.Done(s.streams, "%s %s", run.Ref, done)
	return nil
}
