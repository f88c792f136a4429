package command

import (
	"context"
	"fmt"
	"regexp"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/fence"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/cli"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
)

// NewPause returns `kubectl fleet pause`.
func NewPause(f *cli.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	return steeringVerb(f, streams, hub.KindPlacement, &cobra.Command{
		Use:   "pause PLACEMENT",
		Short: "Pause the rolling update of a placement: no more clusters are updated",
		Long: `Pause the rolling update of a placement by setting its spec.strategy.rollingUpdate.paused. Clusters that were updated stay so,
removals, evictions and first placements go on. kubectl fleet resume placement/NAME goes on from there.`,
		Example: `  kubectl fleet pause web`,
		Args:    exactlyOne("a placement", "kubectl fleet pause web"),
	}, func(ctx context.Context, s *steering, c client.WithWatch, found hub.Found, _ []string) error {
		return s.setPaused(ctx, c, *found.Placement, true)
	})
}

// setPaused pauses the rolling update of a placement, or resumes it. It is no harm to ask for what is the case.
func (s *steering) setPaused(ctx context.Context, c client.WithWatch, p hub.Placement, paused bool) error {
	done := "resumed"
	already := "is not paused"
	if paused {
		done = "paused"
		already = "is paused already"
	}
	if placementv1beta1.RollingUpdateOf(p.Object).Paused == paused {
		s.Done(s.streams, "%s %s", p.Ref, already)
		return nil
	}
	if err := s.changeRollingUpdate(ctx, c, p, func(config *placementv1beta1.RollingUpdateConfig) { config.Paused = paused }); err != nil {
		return err
	}
	s.Done(s.streams, "%s %s", p.Ref, done)
	return nil
}

// partitionForm is how a partition is written.
var partitionForm = regexp.MustCompile(`^([0-9]{1,9}|(100|[0-9]{1,2})%)$`)

// NewPartition returns `kubectl fleet partition`.
func NewPartition(f *cli.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	return steeringVerb(f, streams, hub.KindPlacement, &cobra.Command{
		Use:   "partition PLACEMENT (NUMBER | PERCENT%)",
		Short: "Keep a number of clusters of a placement on the older snapshot",
		Long: `Set how many clusters of a placement stay on the older resource snapshot (spec.strategy.rollingUpdate.partition): a number, or
a percentage of the clusters asked for, rounded up. A smaller one takes the rollout on, 0 to its end; a larger one takes
nothing back.`,
		Example: `  kubectl fleet partition web 3
  kubectl fleet partition web 50%`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 2 {
				return fmt.Errorf("%s needs a placement and how many of its clusters stay on the older snapshot, as in: kubectl fleet partition web 3",
					cmd.CommandPath())
			}
			if !partitionForm.MatchString(args[1]) {
				return fmt.Errorf("%q is no partition: give a number of clusters, or a percentage from 0%% to 100%%", args[1])
			}
			return nil
		},
	}, func(ctx context.Context, s *steering, c client.WithWatch, found hub.Found, args []string) error {
		p := *found.Placement
		partition := intstr.Parse(args[0])
		given := placementv1beta1.RollingUpdateOf(p.Object).Partition
		if given != nil && *given == partition {
			s.Done(s.streams, "the partition of %s is %s already", p.Ref, args[0])
			return nil
		}
		if err := s.changeRollingUpdate(ctx, c, p, func(config *placementv1beta1.RollingUpdateConfig) { config.Partition = &partition }); err != nil {
			return err
		}
		s.Done(s.streams, "partition of %s set to %s", p.Ref, args[0])
		return nil
	})
}

// changeRollingUpdate changes the settings of the rolling update of a placement, which may have none yet.
func (s *steering) changeRollingUpdate(ctx context.Context, c client.WithWatch, p hub.Placement,
	change func(*placementv1beta1.RollingUpdateConfig)) error {
	if p.External() {
		return fmt.Errorf("%s is rolled out by update runs: stop and resume its run instead, as with kubectl fleet stop", p.Ref)
	}
	return s.changeStrategy(ctx, c, p, "rollingUpdate", func(strategy *placementv1beta1.RolloutStrategy) any {
		config := ptr.Deref(strategy.RollingUpdate, placementv1beta1.RollingUpdateConfig{})
		change(&config)
		strategy.RollingUpdate = &config
		return config
	})
}

// changeStrategy changes a field of the strategy of a placement, which may have none yet. change sets it, and returns its
// value; nil takes the field away.
func (s *steering) changeStrategy(ctx context.Context, c client.WithWatch, p hub.Placement, field string,
	change func(*placementv1beta1.RolloutStrategy) any) error {
	if !s.Sends() {
		return nil
	}
	err := changeSpec(ctx, s.writer(c), p.Object, func(object placementv1beta1.PlacementObject) ([]fence.Op, error) {
		strategy := placementv1beta1.StrategyOf(object)
		value := change(&strategy)
		path := "/spec/strategy/" + field
		switch {
		case object.GetPlacementSpec().Strategy == nil:
			return []fence.Op{fence.Add("/spec/strategy", strategy)}, nil
		case value == nil:
			return []fence.Op{fence.Remove(path)}, nil
		}
		return []fence.Op{fence.Add(path, value)}, nil
	})
	if err != nil {
		return fmt.Errorf("changing %s: %w", p.Ref, err)
	}
	return nil
}
