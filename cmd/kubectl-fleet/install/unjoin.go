package install

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/fence"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	"github.com/fleetflow/fleetflow/cmd/internal/steer"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/base"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/cli"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/tree"
)

// unjoinTimeout is longer than the hub waits for a silent agent by default.
const unjoinTimeout = 20 * time.Minute

// unjoinOptions are what `unjoin` was asked for.
type unjoinOptions struct {
	installing
	memberContext string
	// kubeconfig is where the member's context is, the usual one if empty.
	kubeconfig string
	all, keep  bool
	timeout    time.Duration
	hub        client.WithWatch
}

// NewUnjoin returns `kubectl fleet unjoin`.
func NewUnjoin(f *cli.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	return newUnjoin(f, streams, installedHelm())
}

func newUnjoin(f *cli.Factory, streams genericiooptions.IOStreams, h helm) *cobra.Command {
	o := &unjoinOptions{installing: installing{Steering: base.Steering{Factory: f, Streams: streams}, helm: h}}
	cmd := &cobra.Command{
		Use:   "unjoin MEMBER [--member-context CONTEXT]",
		Short: "Have a member leave the fleet",
		Long: `Have a member leave the fleet, in the order that leaves nothing behind: what was placed on it is removed, its agent
leaves, and only then the agent is uninstalled (with --member-context) and the member's account on the hub deleted.

The hub does not wait for ever for a cluster that is gone for good: after 15 minutes it removes the member without the
cluster's agent, unless the hub agent was started with another --force-delete-wait-time.`,
		Example: `  kubectl fleet unjoin member-4 --member-context kind-member-4

  # Leave on the cluster what is placed there
  kubectl fleet unjoin member-4 --keep-placed

  # Dissolve the fleet
  kubectl fleet unjoin --all`,
		ValidArgsFunction: base.CompleteNames(f, hub.KindMember),
		RunE:              func(cmd *cobra.Command, args []string) error { return o.unjoin(cmd.Context(), args) },
	}
	o.AddFlags(cmd)
	cmd.Flags().StringVar(&o.memberContext, "member-context", "", "Context of the kubeconfig for the member, to uninstall its agent.")
	_ = cmd.RegisterFlagCompletionFunc("member-context", base.Completed(f, base.KubeContexts)) // fails only for a flag that is not there
	cmd.Flags().BoolVar(&o.all, "all", false, "All members of the fleet.")
	cmd.Flags().BoolVar(&o.keep, "keep-placed", false, "Leave on the member what is placed there.")
	cmd.Flags().DurationVar(&o.timeout, "timeout", unjoinTimeout, "How long to wait until a member has left.")
	return cmd
}

func (o *unjoinOptions) unjoin(ctx context.Context, args []string) (err error) {
	if err := o.checkArguments(args); err != nil {
		return err
	}
	if o.hub, err = o.Factory.Client(); err != nil {
		return err
	}
	members, err := o.readMembers(ctx, args)
	if err != nil {
		return err
	}
	if err := o.checkCluster(ctx, members); err != nil {
		return err
	}
	question, err := o.consentQuestion(ctx, members)
	if err != nil {
		return err
	}
	if err := o.Ask(o.Streams, question); err != nil {
		return err
	}
	steps := o.leaveSteps(members)
	for i := range members {
		steps = append(steps, o.stepsAfterDeletion(&members[i])...)
	}
	return o.takeSteps(ctx, steps)
}

// leaveSteps returns the steps that have members leave, all at the same time: none waits for another that is gone for good.
func (o *unjoinOptions) leaveSteps(members []clusterv1beta1.MemberCluster) []step {
	var steps []step
	for i := range members {
		steps = append(steps, step{title: "having " + members[i].Name + " leave", checked: true,
			do: func(ctx context.Context) error { return o.deleteMember(ctx, &members[i]) }})
	}
	return steps
}

func (o *unjoinOptions) checkArguments(args []string) error {
	switch {
	case o.all && (len(args) > 0 || o.memberContext != ""):
		return cli.Usagef("--all takes neither names nor --member-context: agents are uninstalled one by one")
	case !o.all && len(args) != 1:
		return cli.Usagef("kubectl fleet unjoin needs one member, as in: kubectl fleet unjoin member-4; or --all")
	}
	if o.memberContext != "" && !o.Dry() && !o.helm.there() {
		return errors.New("helm is not installed, which uninstalls the agent: nothing was changed. Leave --member-context out and uninstall the agent otherwise, once the member has left")
	}
	return o.Validate()
}

func (o *unjoinOptions) readMembers(ctx context.Context, args []string) ([]clusterv1beta1.MemberCluster, error) {
	reader := hub.Reader{Reader: o.hub}
	if o.all {
		members, err := reader.Members(ctx)
		if err == nil && len(members) == 0 {
			err = cmp.Or(reader.CheckHub(ctx), errNoMembers)
		}
		return members, err
	}
	found, err := base.Find(ctx, o.Factory, o.hub, args[0], hub.KindMember)
	if err != nil {
		return nil, err
	}
	return []clusterv1beta1.MemberCluster{*found.Member}, nil
}

// checkCluster makes sure that the agent is not uninstalled from another cluster than the member, as far as clusters are
// known by what join has noted of them.
func (o *unjoinOptions) checkCluster(ctx context.Context, members []clusterv1beta1.MemberCluster) error {
	if o.memberContext == "" {
		return nil
	}
	cluster, err := o.clientOfMember(o.kubeconfig, o.memberContext)
	if err != nil {
		return err
	}
	uid, err := uidOf(ctx, cluster)
	if err != nil {
		return fmt.Errorf("looking at %s: %w; without --member-context the agent is left where it is", o.memberContext, err)
	}
	for i := range members {
		if known := members[i].Annotations[clusterv1beta1.ClusterUIDAnnotation]; known != "" && uid != "" && known != uid {
			return fmt.Errorf("%s is not member/%s but another cluster: nothing was changed", o.memberContext, members[i].Name)
		}
	}
	return nil
}

var errNoMembers = errors.New("the fleet has no members")

// consentQuestion returns what will happen to what is placed on the members.
func (o *unjoinOptions) consentQuestion(ctx context.Context, members []clusterv1beta1.MemberCluster) (string, error) {
	loads, err := steer.ReadLoads(ctx, o.hub)
	if err != nil {
		return "", err
	}
	said := make([]string, 0, len(members))
	for i := range members {
		l := loads(members[i].Name)
		said = append(said, fmt.Sprintf("%s (%s)", members[i].Name, tree.Plural(len(l.Evict)+len(l.Stays), "placement")))
	}
	fate := "What is placed there will be removed from it."
	if o.keep {
		fate = "What is placed there will stay on it."
	}
	return fmt.Sprintf("%s Have %s leave the fleet?", fate, strings.Join(said, ", ")), nil
}

// deleteMember deletes a member.
func (o *unjoinOptions) deleteMember(ctx context.Context, member *clusterv1beta1.MemberCluster) error {
	write := o.Writer(o.hub)
	if o.keep {
		keep := func(member *clusterv1beta1.MemberCluster) ([]fence.Op, error) {
			return fence.Annotate(member.Annotations, clusterv1beta1.KeepPlacedAnnotation, clusterv1beta1.KeepPlacedValue), nil
		}
		if err := steer.ChangeSpec(ctx, write, member, keep); err != nil {
			return fmt.Errorf("asking to keep what is placed on member/%s: %w", member.Name, err)
		}
	}
	if err := client.IgnoreNotFound(write.Delete(ctx, member, client.Preconditions{UID: &member.UID})); err != nil {
		return fmt.Errorf("deleting member/%s: %w", member.Name, err)
	}
	return nil
}

// stepsAfterDeletion returns the steps once a member was told to leave.
func (o *unjoinOptions) stepsAfterDeletion(member *clusterv1beta1.MemberCluster) []step {
	steps := []step{{title: "waiting until " + member.Name + " has left",
		do: func(ctx context.Context) error { return o.awaitLeft(ctx, member) }}}
	if o.memberContext != "" {
		steps = append(steps, step{title: "uninstalling the agent from " + o.memberContext, do: o.uninstallChart})
	}
	identity := member.Spec.Identity
	if identity.Kind == rbacv1.ServiceAccountKind && identity.Name == accountOf(member.Name) {
		steps = append(steps, step{title: fmt.Sprintf("deleting service account %s/%s", identity.Namespace, identity.Name), checked: true,
			do: func(ctx context.Context) error {
				return o.deleteAll(ctx, o.hub, accountObjects(identity.Namespace, identity.Name)...)
			}})
	}
	return steps
}

func (o *unjoinOptions) awaitLeft(ctx context.Context, member *clusterv1beta1.MemberCluster) error {
	last := member.DeepCopy()
	gone := func(m *clusterv1beta1.MemberCluster, there bool) bool {
		if there {
			m.DeepCopyInto(last)
		}
		return !there || m.UID != member.UID
	}
	now := &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: member.Name}}
	if err := steer.Await(ctx, o.hub, now, &clusterv1beta1.MemberClusterList{}, o.timeout, gone, steer.ByName(now)...); err != nil {
		return fmt.Errorf("%w; %s", err, conditionsOf(last))
	}
	return nil
}

func (o *unjoinOptions) uninstallChart(ctx context.Context) error {
	cluster, err := o.clientOfMember(o.kubeconfig, o.memberContext)
	if err != nil {
		return err
	}
	args := []string{"uninstall", agentRelease, "--kube-context", o.memberContext, "--namespace", agentNamespace, "--ignore-not-found"}
	args = append(args, o.helmKubeconfig(o.kubeconfig)...)
	if err := o.helm.run(ctx, args...); err != nil {
		return err
	}
	// The agent can no longer give its lease back: its rights went with it. The next one would wait until the lease runs out.
	return o.deleteAll(ctx, cluster, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: agentNamespace, Name: tokenSecret}},
		&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: agentNamespace, Name: agentLease}})
}

func (o *unjoinOptions) deleteAll(ctx context.Context, c client.WithWatch, objects ...client.Object) error {
	for _, object := range objects {
		if err := client.IgnoreNotFound(o.Writer(c).Delete(ctx, object)); err != nil {
			return fmt.Errorf("deleting %s/%s: %w", object.GetNamespace(), object.GetName(), err)
		}
	}
	return nil
}
