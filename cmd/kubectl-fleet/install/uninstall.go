package install

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/base"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/cli"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/migration"
)

// uninstallOptions are what `uninstall` was asked for.
type uninstallOptions struct {
	installing
	file             string
	keep, placements bool
	timeout          time.Duration
	hub              client.WithWatch
	// contexts are those of the members whose agents are uninstalled, by the names of members.
	contexts map[string]clusterEntry
}

// NewUninstall returns `kubectl fleet uninstall`.
func NewUninstall(f *cli.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	return newUninstall(f, streams, installedHelm())
}

func newUninstall(f *cli.Factory, streams genericiooptions.IOStreams, h helm) *cobra.Command {
	o := &uninstallOptions{installing: installing{Steering: base.Steering{Factory: f, Streams: streams}, helm: h}}
	cmd := &cobra.Command{
		Use:   "uninstall [--from-file FILE]",
		Short: "Dissolve the fleet and uninstall the hub agent",
		Long: `Dissolve the fleet, from the edge to the centre: all members leave, the agents of those in the file are uninstalled, and then the
hub agent is.

What a member has of the fleet is removed from it as it leaves, unless --keep-placed is given. While there are placements, the
command refuses, unless --placements-stay is given: they stay on the hub, and nothing works for them.

These stay, and the command names them in the end: the definitions of the fleet's kinds with all objects of them, the namespaces
fleet-system and connect-to-fleet, Temporal with its histories, other charts such as the dashboard's, and the agents of members that no
file names.`,
		Example: `  kubectl fleet uninstall --dry-run

  # With the file that the clusters have joined by: their agents are uninstalled, too
  kubectl fleet uninstall --from-file clusters.yaml

  # What is placed goes on running, and the placements are there for another hub agent
  kubectl fleet uninstall --placements-stay --keep-placed`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.uninstall(cmd.Context()) },
	}
	o.AddFlags(cmd)
	flags := cmd.Flags()
	flags.StringVar(&o.file, "from-file", "", "A file of clusters, as for join: the agents of these members are uninstalled.")
	flags.BoolVar(&o.keep, "keep-placed", false, "Leave on the members what is placed there.")
	flags.BoolVar(&o.placements, "placements-stay", false, "Uninstall though there are placements, which stay on the hub.")
	flags.DurationVar(&o.timeout, "timeout", unjoinTimeout, "How long to wait until a member has left.")
	return cmd
}

func (o *uninstallOptions) uninstall(ctx context.Context) error {
	members, err := o.checkDissolvable(ctx)
	if err != nil {
		return err
	}
	leave := o.unjoinAll()
	question := "The fleet has no members. Uninstall the hub agent?"
	if len(members) > 0 {
		if question, err = leave.consentQuestion(ctx, members); err != nil {
			return err
		}
		question = strings.TrimSuffix(question, "?") + ", and uninstall the hub agent?"
	}
	if err := o.Ask(o.Streams, question); err != nil {
		return err
	}
	steps := leave.leaveSteps(members)
	for i := range members {
		steps = append(steps, o.leavingOf(members[i].Name).stepsAfterDeletion(&members[i])...)
	}
	steps = append(steps, step{title: "uninstalling the hub agent", do: o.uninstallHub})
	if err := o.takeSteps(ctx, steps); err != nil {
		return err
	}
	o.sayWhatStays(members)
	return nil
}

// unjoinAll returns how members leave.
func (o *uninstallOptions) unjoinAll() *unjoinOptions {
	return &unjoinOptions{installing: o.installing, keep: o.keep, timeout: o.timeout, hub: o.hub}
}

// leavingOf returns how a member leaves; the agent of one that the file names is uninstalled.
func (o *uninstallOptions) leavingOf(member string) *unjoinOptions {
	leave := o.unjoinAll()
	leave.memberContext = o.contexts[member].Context
	leave.kubeconfig = o.contexts[member].Kubeconfig
	return leave
}

// checkDissolvable makes sure that the fleet can be dissolved, before anything is changed, and returns its members.
func (o *uninstallOptions) checkDissolvable(ctx context.Context) ([]clusterv1beta1.MemberCluster, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if !o.Dry() && !o.helm.there() {
		return nil, errors.New("helm is not installed, which uninstalls the agents: nothing was changed")
	}
	o.contexts = map[string]clusterEntry{}
	if o.file != "" {
		entries, err := readClusters(o.file)
		if err != nil {
			return nil, err
		}
		for i := range entries {
			o.contexts[entries[i].Name] = entries[i]
		}
	}
	var err error
	if o.hub, err = o.Factory.Client(); err != nil {
		return nil, err
	}
	fleet := hub.Reader{Reader: o.hub}
	if err := fleet.CheckHub(ctx); err != nil {
		return nil, err
	}
	if err := o.checkHub(ctx, fleet); err != nil {
		return nil, err
	}
	members, err := fleet.Members(ctx)
	if err != nil {
		return nil, err
	}
	return members, o.checkMembers(ctx, members)
}

// checkHub refuses a hub from which helm would delete the definitions, and one that has placements, unless these are to stay.
func (o *uninstallOptions) checkHub(ctx context.Context, fleet hub.Reader) error {
	if err := migration.RefuseReleases(ctx, o.hub, o.contextFlag()); err != nil {
		return err
	}
	placements, err := fleet.Placements(ctx)
	if err != nil {
		return err
	}
	if len(placements) > 0 && !o.placements {
		return fmt.Errorf("there are placements, %d of them, the first is %s: delete them first, or give --placements-stay, and they stay on the hub without effect", len(placements), placements[0].Ref)
	}
	return nil
}

// checkMembers makes sure that each context is that of its member, so that no agent of another cluster is uninstalled.
func (o *uninstallOptions) checkMembers(ctx context.Context, members []clusterv1beta1.MemberCluster) error {
	for i := range members {
		if err := o.leavingOf(members[i].Name).checkCluster(ctx, members[i:i+1]); err != nil {
			return err
		}
	}
	return nil
}

// uninstallHub has helm uninstall the hub agent. Its lease goes, too: the agent can no longer give it back, as its rights went with it,
// and the next one would wait until it runs out.
func (o *uninstallOptions) uninstallHub(ctx context.Context) error {
	args := []string{"uninstall", hubRelease, "--namespace", agentNamespace, "--ignore-not-found", "--wait"}
	if named := o.contextFlag(); named != "" {
		args = append(args, "--kube-context", named)
	}
	if err := o.helm.run(ctx, append(args, o.helmKubeconfig("")...)...); err != nil {
		return err
	}
	for _, name := range []string{migration.HubAgentLease.Name, clusterv1beta1.TemporalLease} {
		lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: agentNamespace, Name: name}}
		if err := client.IgnoreNotFound(o.Writer(o.hub).Delete(ctx, lease)); err != nil {
			return fmt.Errorf("deleting lease %s/%s: %w", agentNamespace, name, err)
		}
	}
	return nil
}

// sayWhatStays names what is left, with what removes it.
func (o *uninstallOptions) sayWhatStays(members []clusterv1beta1.MemberCluster) {
	out := o.Streams.Out
	cli.Printf(out, "\nThese stay on the hub:\n")
	cli.Printf(out, "  the definitions of the fleet's kinds, and all objects of them, such as placements and snapshots\n")
	cli.Printf(out, "  the namespaces %s and %s\n", agentNamespace, accessNamespace)
	cli.Printf(out, "  Temporal, its database, and other charts, such as that of the dashboard\n")
	var agents []string
	for i := range members {
		if _, named := o.contexts[members[i].Name]; !named {
			agents = append(agents, members[i].Name)
		}
	}
	if len(agents) > 0 {
		cli.Printf(out, "The member agent stays on %s: helm uninstall %s --namespace %s, with the context of each\n", strings.Join(agents, ", "),
			agentRelease, agentNamespace)
	}
	if o.keep && len(members) > 0 {
		cli.Printf(out, "What was placed stays on the members\n")
	}
}
