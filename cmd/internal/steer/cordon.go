package steer

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/fleetflow/fleetflow/activities/fence"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
)

// CordonTaint is the taint of a cordoned member. It is the one that KubeFleet's plugin sets, so that both know it.
var CordonTaint = clusterv1beta1.Taint{Key: "cordon-key", Value: "cordon-value", Effect: corev1.TaintEffectNoSchedule}

// Cordon keeps new placements off a member.
func Cordon() Verb {
	return onMember(Verb{
		Name:  "cordon",
		Short: "Keep new placements off a member",
		Long: `Keep new placements off a member by a taint (cordon-key=cordon-value:NoSchedule). What is placed there stays; placements
that tolerate the taint may still pick it. kubectl fleet uncordon takes it off again.`,
	}, func() *Request { return taintRequest(cordonMember, "is cordoned already", "cordoned") })
}

// Uncordon lets placements pick a member again.
func Uncordon() Verb {
	return onMember(Verb{
		Name: "uncordon", Aliases: []string{"uncordoncluster"},
		Short: "Let placements pick a member again",
		Long:  `Take the taint of kubectl fleet cordon or drain off a member, so that placements can pick it again.`,
	}, func() *Request {
		return taintRequest(func(ctx context.Context, call *Call, member *clusterv1beta1.MemberCluster) (bool, error) {
			return changeTaints(ctx, call, member, func(taints []clusterv1beta1.Taint) []clusterv1beta1.Taint {
				return slices.DeleteFunc(taints, isCordon)
			})
		}, "is not cordoned", "uncordoned")
	})
}

// onMember returns a verb about one member.
func onMember(verb Verb, request func() *Request) Verb {
	verb.Takes = "MEMBER"
	verb.Group = GroupMembers
	verb.Kinds = []hub.Kind{hub.KindMember}
	verb.Example = "  kubectl fleet " + verb.Name + " member-3"
	verb.CheckArguments = exactlyOne(verb.Name, "a member", verb.Name+" member-3")
	verb.New = request
	return verb
}

// taintRequest changes the taints of a member, and says whether there was something to change.
func taintRequest(change func(context.Context, *Call, *clusterv1beta1.MemberCluster) (bool, error), already, done string) *Request {
	return &Request{Prepare: func(_ context.Context, call *Call, target hub.Found) (Deed, error) {
		return Deed{Do: func(ctx context.Context) (Result, error) {
			changed, err := change(ctx, call, target.Member)
			if !changed {
				return resultSaying("member/%s %s", target.Member.Name, already), err
			}
			return resultSaying("member/%s %s", target.Member.Name, done), err
		}}, nil
	}}
}

func isCordon(taint clusterv1beta1.Taint) bool {
	return taint.Key == CordonTaint.Key && taint.Value == CordonTaint.Value && taint.Effect == CordonTaint.Effect
}

// cordonMember gives a member the taint, and reports whether it did not have it before.
func cordonMember(ctx context.Context, call *Call, member *clusterv1beta1.MemberCluster) (bool, error) {
	return changeTaints(ctx, call, member, func(taints []clusterv1beta1.Taint) []clusterv1beta1.Taint {
		if slices.ContainsFunc(taints, isCordon) {
			return taints
		}
		return append(taints, CordonTaint)
	})
}

// changeTaints replaces the taints of a member, and reports whether there was something to change.
func changeTaints(ctx context.Context, call *Call, member *clusterv1beta1.MemberCluster,
	edit func([]clusterv1beta1.Taint) []clusterv1beta1.Taint,
) (changed bool, err error) {
	decide := func(member *clusterv1beta1.MemberCluster) ([]fence.Op, error) {
		taints := edit(slices.Clone(member.Spec.Taints))
		switch changed = len(taints) != len(member.Spec.Taints); {
		case !changed || !call.Sends():
			return nil, nil
		case len(taints) == 0:
			return []fence.Op{fence.Remove("/spec/taints")}, nil
		default:
			return []fence.Op{fence.Add("/spec/taints", taints)}, nil
		}
	}
	if err := ChangeSpec(ctx, call.Writer(), member, decide); err != nil {
		return false, fmt.Errorf("changing member/%s: %w", member.Name, err)
	}
	return changed, nil
}
