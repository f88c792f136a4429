package command

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/fence"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/cli"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
)

// cordon is the taint of a cordoned member. It is the one that KubeFleet's plugin sets, so that both know it.
var cordon = clusterv1beta1.Taint{Key: "cordon-key", Value: "cordon-value", Effect: corev1.TaintEffectNoSchedule}

// NewCordon returns `kubectl fleet cordon`.
func NewCordon(f *cli.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	return memberVerb(f, streams, &cobra.Command{
		Use:   "cordon MEMBER",
		Short: "Keep new placements off a member",
		Long: `Keep new placements off a member by a taint (cordon-key=cordon-value:NoSchedule). What is placed there stays; placements
that tolerate the taint may still pick it. kubectl fleet uncordon takes it off again.`,
		Example: `  kubectl fleet cordon member-3`,
	}, func(ctx context.Context, s *steering, c client.WithWatch, member *clusterv1beta1.MemberCluster) error {
		changed, err := s.cordonMember(ctx, c, member)
		if err != nil {
			return err
		}
		if !changed {
			s.Done(s.streams, "member/%s is cordoned already", member.Name)
			return nil
		}
		s.Done(s.streams, "member/%s cordoned", member.Name)
		return nil
	})
}

// NewUncordon returns `kubectl fleet uncordon`.
func NewUncordon(f *cli.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	cmd := memberVerb(f, streams, &cobra.Command{
		Use:     "uncordon MEMBER",
		Aliases: []string{"uncordoncluster"},
		Short:   "Let placements pick a member again",
		Long:    `Take the taint of kubectl fleet cordon or drain off a member, so that placements can pick it again.`,
		Example: `  kubectl fleet uncordon member-3`,
	}, func(ctx context.Context, s *steering, c client.WithWatch, member *clusterv1beta1.MemberCluster) error {
		changed, err := s.changeTaints(ctx, c, member, func(taints []clusterv1beta1.Taint) []clusterv1beta1.Taint {
			return slices.DeleteFunc(taints, isCordon)
		})
		if err != nil {
			return err
		}
		if !changed {
			s.Done(s.streams, "member/%s is not cordoned", member.Name)
			return nil
		}
		s.Done(s.streams, "member/%s uncordoned", member.Name)
		return nil
	})
	waitsForNothing(cmd)
	return cmd
}

// memberVerb makes a command about one member: the verb changes it once it is found.
func memberVerb(f *cli.Factory, streams genericiooptions.IOStreams, cmd *cobra.Command,
	do func(ctx context.Context, s *steering, c client.WithWatch, member *clusterv1beta1.MemberCluster) error) *cobra.Command {
	s := &steering{factory: f, streams: streams}
	var name string
	cmd.ValidArgsFunction = completeNames(f, hub.KindMember)
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if name != "" {
			args = append(args, name)
		}
		return exactlyOne("a member", strings.TrimSpace(cmd.Example))(cmd, args)
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		s.Yes = s.Yes || isCalledAsInKubeFleet(cmd)
		c, found, err := s.findOne(cmd.Context(), append(args, name)[0], hub.KindMember)
		if err != nil {
			return err
		}
		return do(cmd.Context(), s, c, found.Member)
	}
	s.AddFlags(cmd)
	cmd.Flags().StringVar(&name, "cluster-name", "", "The member, for scripts that name it so.")
	asInKubeFleet(f, cmd, "cluster-name")
	return cmd
}

func isCordon(taint clusterv1beta1.Taint) bool {
	return taint.Key == cordon.Key && taint.Value == cordon.Value && taint.Effect == cordon.Effect
}

// cordonMember gives a member the taint, and says whether it did not have it before.
func (s *steering) cordonMember(ctx context.Context, c client.WithWatch, member *clusterv1beta1.MemberCluster) (bool, error) {
	return s.changeTaints(ctx, c, member, func(taints []clusterv1beta1.Taint) []clusterv1beta1.Taint {
		if slices.ContainsFunc(taints, isCordon) {
			return taints
		}
		return append(taints, cordon)
	})
}

// changeTaints replaces the taints of a member, and says whether there was something to change.
func (s *steering) changeTaints(ctx context.Context, c client.WithWatch, member *clusterv1beta1.MemberCluster,
	edit func([]clusterv1beta1.Taint) []clusterv1beta1.Taint,
) (changed bool, err error) {
	decide := func(member *clusterv1beta1.MemberCluster) ([]fence.Op, error) {
		taints := edit(slices.Clone(member.Spec.Taints))
		switch changed = len(taints) != len(member.Spec.Taints); {
		case !changed || !s.Sends():
			return nil, nil
		case len(taints) == 0:
			return []fence.Op{fence.Remove("/spec/taints")}, nil
		default:
			return []fence.Op{fence.Add("/spec/taints", taints)}, nil
		}
	}
	if err := changeSpec(ctx, s.writer(c), member, decide); err != nil {
		return false, fmt.Errorf("changing member/%s: %w", member.Name, err)
	}
	return changed, nil
}
