package command

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/fence"
	"github.com/fleetflow/fleetflow/apis/placement/updaterun"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/cli"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
)

// NewSkip returns `kubectl fleet skip`.
func NewSkip(f *cli.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	s := &steering{factory: f, streams: streams}
	cmd := s.about(hub.KindRun, &cobra.Command{
		Use:   "skip RUN CLUSTER [CLUSTER ...]",
		Short: "Let a run go on without some of its clusters",
		Long: `Let a staged update run go on without some of its clusters. One that waits for its turn is left as it is; one that is
being updated gives its place to another, and keeps what was written to it. The run says which were skipped.

kubectl fleet retry takes it back.`,
		Example: `  # member-3 is down for the week
  kubectl fleet skip web-17 member-3 --reason "its disk is being replaced"`,
		Args: runAndClusters("skip"),
	}, func(ctx context.Context, s *steering, c client.WithWatch, found hub.Found, clusters []string) error {
		run := *found.Run
		question := fmt.Sprintf("Let %s go on without %s?", run.Ref, strings.Join(clusters, ", "))
		return s.act(ctx, c, run, clusters, placementv1beta1.ClusterActionSkip, question)
	})
	s.addReason(cmd, "the run")
	cmd.ValidArgsFunction = thenClusters(f, completeRuns(f, isUnderWay), hub.KindRun)
	return cmd
}

// NewRetry returns `kubectl fleet retry`.
func NewRetry(f *cli.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	cmd := steeringVerb(f, streams, hub.KindRun, &cobra.Command{
		Use:   "retry RUN CLUSTER [CLUSTER ...]",
		Short: "Write to some clusters of a run once more",
		Long: `Write to some clusters of a staged update run once more, and count their deadline from then. Clusters that were
skipped, or counted as failed, wait for a place in the stage first. There is nothing to retry for a cluster that is
updated, or whose stage is over or soaks.`,
		Example: `  kubectl fleet retry web-17 member-3`,
		Args:    runAndClusters("retry"),
	}, func(ctx context.Context, s *steering, c client.WithWatch, found hub.Found, clusters []string) error {
		run := *found.Run
		return s.act(ctx, c, run, clusters, placementv1beta1.ClusterActionRetry, "")
	})
	cmd.ValidArgsFunction = thenClusters(f, completeRuns(f, isUnderWay), hub.KindRun)
	return cmd
}

func runAndClusters(verb string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) < 2 {
			return fmt.Errorf("kubectl fleet %[1]s needs a run and at least one of its clusters, as in: kubectl fleet %[1]s web-17 member-3", verb)
		}
		return nil
	}
}

// act asks a run for an action on some of its clusters.
func (s *steering) act(ctx context.Context, c client.WithWatch, run hub.Run, clusters []string, action placementv1beta1.ClusterActionType,
	question string) error {
	if err := errors.Join(unfinished(run), inRun(run, clusters)); err != nil {
		return err
	}
	clusters, err := s.inTime(run, clusters, action)
	if err != nil {
		return err
	}
	if question != "" {
		if err := s.Ask(s.streams, question); err != nil {
			return err
		}
	}
	if err := s.keepReason(ctx, c, run.Object); err != nil {
		return err
	}
	actions := withActions(run.Spec.ClusterActions, clusters, action)
	if err := s.patchRun(ctx, c, run, fence.Add("/spec/clusterActions", actions)); err != nil {
		return err
	}
	done := map[placementv1beta1.ClusterActionType]string{
		placementv1beta1.ClusterActionSkip: "goes on without", placementv1beta1.ClusterActionRetry: "retries",
	}[action]
	s.Done(s.streams, "%s %s %s", run.Ref, done, strings.Join(clusters, ", "))
	return nil
}

// inRun is an error if a run has a plan and one of the clusters is not in it.
func inRun(run hub.Run, clusters []string) error {
	if len(run.Status.StagesStatus) == 0 {
		return nil
	}
	var planned []string
	for i := range run.Status.StagesStatus {
		planned = append(planned, updaterun.ClusterNames(&run.Status.StagesStatus[i])...)
	}
	for _, cluster := range clusters {
		if !slices.Contains(planned, cluster) {
			return fmt.Errorf("%s has no cluster %q; kubectl fleet status %s --all shows those it has", run.Ref, cluster, run.Flags())
		}
	}
	return nil
}

// inTime are those of some clusters that a run still does something about, with a warning for each of the others; if there
// are only such, that is an error.
func (s *steering) inTime(run hub.Run, clusters []string, action placementv1beta1.ClusterActionType) ([]string, error) {
	late := tooLate(run, clusters, action)
	var left []string
	var why []error
	for i, cluster := range clusters {
		reason := late[cluster]
		switch {
		case slices.Contains(clusters[:i], cluster): // named twice
		case reason != nil:
			why = append(why, reason)
		default:
			left = append(left, cluster)
		}
	}
	if len(left) == 0 {
		return nil, errors.Join(why...)
	}
	for _, reason := range why {
		cli.Printf(s.streams.ErrOut, "Warning: %s\n", reason)
	}
	return left, nil
}

// tooLate says of clusters why a run does nothing about them any more, whatever it is asked for.
func tooLate(run hub.Run, clusters []string, action placementv1beta1.ClusterActionType) map[string]error {
	late := map[string]error{}
	for _, stage := range updaterun.Read(run.Object).Stages {
		for _, c := range stage.Clusters {
			if stage.Deletion || !slices.Contains(clusters, c.Name) {
				continue
			}
			another := "a new run takes it along, as with kubectl fleet run " + run.Placement().Flags()
			switch {
			case c.Phase == updaterun.PhaseSucceeded:
				late[c.Name] = fmt.Errorf("%s has updated %s already: there is nothing to %s", run.Ref, c.Name, strings.ToLower(string(action)))
			case stage.Passed() && c.Phase == updaterun.PhaseFailed:
				late[c.Name] = fmt.Errorf("%s has gone on without %s, as stage %s is over or soaks: what was written to the cluster stays, and %s",
					run.Ref, c.Name, stage.Name, another)
			case stage.Passed():
				late[c.Name] = fmt.Errorf("%s has gone on without %s, as stage %s is over or soaks: %s", run.Ref, c.Name, stage.Name, another)
			}
		}
	}
	return late
}

// withActions returns the actions of a run with one more for each of the clusters: another retry is the next attempt.
func withActions(actions []placementv1beta1.ClusterAction, clusters []string,
	action placementv1beta1.ClusterActionType) []placementv1beta1.ClusterAction {
	result := slices.Clone(actions)
	for _, cluster := range clusters {
		next := placementv1beta1.ClusterAction{Cluster: cluster, Action: action, Attempt: 1}
		at := slices.IndexFunc(result, func(a placementv1beta1.ClusterAction) bool { return a.Cluster == cluster })
		if at < 0 {
			result = append(result, next)
			continue
		}
		if action == placementv1beta1.ClusterActionRetry {
			next.Attempt = result[at].Attempt + 1
		}
		result[at] = next
	}
	return result
}
