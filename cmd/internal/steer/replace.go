package steer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/fence"
	"github.com/fleetflow/fleetflow/activities/scheduler"
	clusterrules "github.com/fleetflow/fleetflow/apis/cluster/rules"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/tree"
)

// Replace moves what is placed on a member to another.
func Replace() Verb {
	verb := onMember(Verb{
		Name: "replace", Asks: true,
		Short: "Move what is placed on a member to another member",
		Long: `Move every placement of a member to another member, which takes its place: first the new copy is made, and only once that
is available with the latest resources, and the new member is known to be healthy, the old one is removed. If the new member fails before,
the old copies stay. Each placement moves within maxUnavailable and maxSurge, and waits for holds, windows and lifecycle hooks. Nothing
new is placed on the old member meanwhile.

It is told before which placements move and which stay, with the reason: --dry-run=client changes nothing. A placement stays that names its
clusters (PickFixed), that update runs roll out (External), that only reports differences, or that could not pick the new member in place of
the old one. No spec is edited.

If the old member has the label fleetflow.io/cluster-alias, the new one gets it first, unless it has one: what chooses a member by its alias, or
has the alias in a value, finds the new one.

The name of the new member goes into the annotation fleetflow.io/replaced-by of the old one, whose condition Replaced says how far it is. Once
it is True, the old member can be deleted. --cancel gives the replacement up: what has not moved stays, and what is still on
the old member while its new copy is made stays as well, without the new copy.`,
	}, func() *Request {
		r := &replacement{}
		return &Request{
			Fields: []Field{
				{Name: "by", Argument: true, Into: &r.named, Complete: namesOfMembers},
				{Name: "cancel", Into: &r.cancel, Usage: "Give the replacement of the member up."},
			},
			Validate: r.validate, Prepare: r.prepare,
		}
	})
	verb.Takes = "OLD NEW"
	verb.Example = "  kubectl fleet replace member-1 member-4 --dry-run=client\n  kubectl fleet replace member-1 member-4\n" +
		"  kubectl wait --for=condition=Replaced mc/member-1 --timeout=30m"
	verb.CheckArguments = func(args []string) error {
		if len(args) == 1 || len(args) == 2 {
			return nil
		}
		return errors.New("kubectl fleet replace needs the names of the old and of the new member, as in: kubectl fleet replace member-1 member-4")
	}
	return verb
}

func namesOfMembers(ctx context.Context, reader hub.Reader, _ hub.Found) ([]string, error) {
	members, err := reader.Members(ctx)
	if err != nil {
		return nil, err
	}
	names := make([]string, 0, len(members))
	for i := range members {
		names = append(names, members[i].Name)
	}
	return names, nil
}

// replacement is what was asked for.
type replacement struct {
	// named are the names behind the old member: that of the new one, which is by.
	named  []string
	by     string
	cancel bool
}

func (r *replacement) validate(*Call) error {
	if len(r.named) == 1 && !r.cancel {
		r.by = r.named[0]
		return nil
	}
	if len(r.named) > 0 || !r.cancel {
		return errors.New("name the new member, or give the replacement up with --cancel")
	}
	return nil
}

func (r *replacement) prepare(ctx context.Context, call *Call, target hub.Found) (Deed, error) {
	member := target.Member
	if r.cancel {
		return r.giveUp(call, member), nil
	}
	if by := clusterrules.ReplacedBy(member); by == r.by {
		return nothingToDo("member/%s is being replaced by %s already", member.Name, by), nil
	} else if by != "" {
		return Deed{}, fmt.Errorf("member/%s is being replaced by %s already: give that up first, with kubectl fleet replace %s --cancel", member.Name,
			by, member.Name)
	}
	reader := hub.Reader{Reader: call.Client}
	members, err := reader.Members(ctx)
	if err != nil {
		return Deed{}, err
	}
	if refused := clusterrules.RefuseReplacement(member, r.by, members); refused != "" {
		return Deed{}, fmt.Errorf("member/%s cannot be replaced by %s: %s", member.Name, r.by, refused)
	}
	moves, stays, err := planReplacement(ctx, call, reader, member.Name, r.by, r.simulateMembers(member, members))
	if err != nil {
		return Deed{}, err
	}
	plan := slices.Concat(moves, stays)
	return Deed{
		Question: fmt.Sprintf("Replace member/%s by %s? %s move(s), %d stay(s):\n  %s\n", member.Name, r.by, tree.Plural(len(moves), "placement"), len(stays),
			strings.Join(plan, "\n  ")),
		Do: func(ctx context.Context) (Result, error) {
			for _, line := range plan {
				call.Progress(line)
			}
			if err := r.tryReplacement(ctx, call, member, members); err != nil {
				return Result{}, err
			}
			if err := r.giveAlias(ctx, call, member, members); err != nil {
				return Result{}, err
			}
			return r.replaceMember(ctx, call, member)
		},
	}, nil
}

// aliasFor returns the alias that the new member gets from the old one; empty if it gets none.
func (r *replacement) aliasFor(member *clusterv1beta1.MemberCluster, members []clusterv1beta1.MemberCluster) string {
	if members[r.findNewMember(members)].Labels[clusterv1beta1.ClusterAliasLabel] != "" {
		return ""
	}
	return member.Labels[clusterv1beta1.ClusterAliasLabel]
}

// findNewMember returns where the new member is.
func (r *replacement) findNewMember(members []clusterv1beta1.MemberCluster) int {
	return slices.IndexFunc(members, func(m clusterv1beta1.MemberCluster) bool { return m.Name == r.by })
}

// tryReplacement asks the API server, where the alias is to be given before, whether the user may have the member replaced: nothing is changed for one who
// may not.
func (r *replacement) tryReplacement(ctx context.Context, call *Call, member *clusterv1beta1.MemberCluster, members []clusterv1beta1.MemberCluster) error {
	if r.aliasFor(member, members) == "" || call.Dry() {
		return nil
	}
	return r.writeRequest(ctx, client.NewDryRunClient(call.Writer()), member.DeepCopy())
}

// giveAlias gives the alias of the old member to the new one, unless that has one. It comes before anything is placed on the new member, so
// that its copies have the alias from the beginning.
func (r *replacement) giveAlias(ctx context.Context, call *Call, member *clusterv1beta1.MemberCluster, members []clusterv1beta1.MemberCluster) error {
	alias := r.aliasFor(member, members)
	if alias == "" {
		return nil
	}
	call.Progress(fmt.Sprintf("member/%s gets the alias %s", r.by, alias))
	if !call.Sends() {
		return nil
	}
	err := ChangeSpec(ctx, call.Writer(), &members[r.findNewMember(members)], func(newer *clusterv1beta1.MemberCluster) ([]fence.Op, error) {
		switch {
		case newer.Labels[clusterv1beta1.ClusterAliasLabel] != "":
			return nil, nil
		case len(newer.Labels) == 0:
			return []fence.Op{fence.Test("/metadata/labels", nil), fence.Add("/metadata/labels", map[string]string{clusterv1beta1.ClusterAliasLabel: alias})}, nil
		}
		return []fence.Op{fence.Add(fence.LabelPath(clusterv1beta1.ClusterAliasLabel), alias)}, nil
	})
	if err != nil {
		return fmt.Errorf("giving member/%s the alias %s: %w", r.by, alias, err)
	}
	return nil
}

// replaceMember asks for the replacement.
func (r *replacement) replaceMember(ctx context.Context, call *Call, member *clusterv1beta1.MemberCluster) (Result, error) {
	if call.Sends() {
		if err := r.writeRequest(ctx, call.Writer(), member); err != nil {
			return Result{}, err
		}
	}
	return resultSaying("member/%s is being replaced by %s: kubectl wait --for=condition=Replaced mc/%s", member.Name, r.by, member.Name), nil
}

// writeRequest writes that the member is to be replaced, unless another replacement was asked for meanwhile.
func (r *replacement) writeRequest(ctx context.Context, writer client.Client, member *clusterv1beta1.MemberCluster) error {
	err := ChangeSpec(ctx, writer, member, func(member *clusterv1beta1.MemberCluster) ([]fence.Op, error) {
		if by := clusterrules.ReplacedBy(member); by != "" {
			return nil, fmt.Errorf("it is being replaced by %s already", by)
		}
		ops := fence.Annotate(member.Annotations, clusterv1beta1.ReplacedByAnnotation, r.by)
		if len(member.Annotations) > 0 {
			ops = append([]fence.Op{fence.Test(fence.AnnotationPath(clusterv1beta1.ReplacedByAnnotation), nil)}, ops...)
		}
		return ops, nil
	})
	if err != nil {
		return fmt.Errorf("changing member/%s: %w", member.Name, err)
	}
	return nil
}

// giveUp gives the replacement of a member up.
func (r *replacement) giveUp(call *Call, member *clusterv1beta1.MemberCluster) Deed {
	by := clusterrules.ReplacedBy(member)
	if by == "" {
		return nothingToDo("member/%s is not being replaced", member.Name)
	}
	return Deed{
		Question: fmt.Sprintf("Give up that %s replaces member/%s? What is still on %s stays there, also if a new copy is being made.", by, member.Name, member.Name),
		Do: func(ctx context.Context) (Result, error) {
			if call.Sends() {
				err := ChangeSpec(ctx, call.Writer(), member, func(member *clusterv1beta1.MemberCluster) ([]fence.Op, error) {
					if clusterrules.ReplacedBy(member) == "" {
						return nil, nil
					}
					return []fence.Op{fence.Remove(fence.AnnotationPath(clusterv1beta1.ReplacedByAnnotation))}, nil
				})
				if err != nil {
					return Result{}, fmt.Errorf("changing member/%s: %w", member.Name, err)
				}
			}
			return resultSaying("member/%s is not replaced by %s any more", member.Name, by), nil
		},
	}
}

// simulateMembers returns the members as they are once the replacement is asked for.
func (r *replacement) simulateMembers(member *clusterv1beta1.MemberCluster, members []clusterv1beta1.MemberCluster) []clusterv1beta1.MemberCluster {
	alias := r.aliasFor(member, members)
	members = slices.Clone(members)
	for i := range members {
		switch name := members[i].Name; {
		case name == member.Name:
			members[i] = *members[i].DeepCopy()
			metav1.SetMetaDataAnnotation(&members[i].ObjectMeta, clusterv1beta1.ReplacedByAnnotation, r.by)
		case name == r.by && alias != "":
			members[i] = *members[i].DeepCopy()
			metav1.SetMetaDataLabel(&members[i].ObjectMeta, clusterv1beta1.ClusterAliasLabel, alias)
		}
	}
	return members
}

// planReplacement says of each placement of a member, as the scheduler of the hub would decide, whether it moves or stays, and why.
func planReplacement(ctx context.Context, call *Call, reader hub.Reader, old, by string,
	members []clusterv1beta1.MemberCluster) (moves, stays []string, err error) {
	placements, err := reader.Placements(ctx)
	if err != nil {
		return nil, nil, err
	}
	all, err := reader.Bindings(ctx)
	if err != nil {
		return nil, nil, err
	}
	bindings := map[string][]placementv1beta1.BindingObject{}
	on := map[string]bool{}
	for _, b := range all {
		key := b.Object.GetNamespace() + "/" + b.Object.GetLabels()[placementv1beta1.ParentPlacementLabel]
		bindings[key] = append(bindings[key], b.Object)
		on[key] = on[key] || b.Spec.TargetCluster == old && rules.IsLiveBinding(b.Object)
	}
	for _, p := range placements {
		key := p.Namespace + "/" + p.Name
		if !on[key] {
			continue
		}
		snapshots, err := reader.Of(p.Ref).PolicySnapshots(ctx)
		if err != nil {
			return nil, nil, err
		}
		var latest placementv1beta1.PolicySnapshotObject
		if policy := hub.LatestPolicy(snapshots); policy != nil {
			latest, _ = policy.Object.(placementv1beta1.PolicySnapshotObject)
		}
		decision := scheduler.Decide(scheduler.FactsOf(p.Object, latest, bindings[key], members, call.Clock.Now()))
		switch reason := decision.Stays[old]; {
		case reason != "":
			stays = append(stays, fmt.Sprintf("%s stays: %s", p.Ref, reason))
		case len(decision.Replaced) > 0:
			moves = append(moves, fmt.Sprintf("%s moves to %s", p.Ref, by))
		default:
			stays = append(stays, fmt.Sprintf("%s stays: it leaves %s anyway, whatever replaces that", p.Ref, old))
		}
	}
	slices.Sort(moves)
	slices.Sort(stays)
	return moves, stays, nil
}
