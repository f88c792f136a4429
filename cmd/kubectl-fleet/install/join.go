package install

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/base"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/cli"
	"github.com/fleetflow/fleetflow/deploy/charts"
)

// Names that KubeFleet's documentation gives to what a joining cluster needs.
const (
	// accessNamespace is the namespace on the hub of the accounts of members.
	accessNamespace = "connect-to-fleet"
	// agentNamespace is the namespace on the member of its agent.
	agentNamespace = "fleet-system"
	// agentRelease is the Helm release of the agent.
	agentRelease = "member-agent"
	// agentLease is the lease by which agents agree who works.
	agentLease = "member-agent.fleetflow.io"
	// tokenSecret is the Secret on the member with the token for the hub.
	tokenSecret = "hub-kubeconfig-secret" //nolint:gosec // the name of a Secret
)

// What installs the agent.
const (
	agentByHelm = "helm"
	agentByNone = "none"
)

const (
	joinTimeout      = 5 * time.Minute
	defaultHeartbeat = 15
	// tokenDuration is how long a token holds that the agent does not renew.
	tokenDuration = 24 * time.Hour
	// minTokenDuration is the shortest that an API server gives.
	minTokenDuration = 10 * time.Minute
)

// joinOptions are what `join` was asked for.
type joinOptions struct {
	installing
	member, memberContext      string
	address, authority, access string
	agent, chart               string
	files, values              []string
	heartbeat                  int32
	tokenDuration, timeout     time.Duration
	hub, cluster               client.WithWatch
	config                     *rest.Config
	token                      string
	// known is the uid of the cluster that has the member's name on the hub, uid that of the cluster which joins; empty
	// if it is not known.
	known, uid string
	// heard is when the member reported last with a token that counts no more; zero if it never did.
	heard time.Time
	// invited says that the hub has the member, move that a name may go from one cluster to another, movedFrom are the
	// members that this cluster was so far.
	invited, move bool
	movedFrom     []*clusterv1beta1.MemberCluster
	// labels are those of the MemberCluster, kubeconfig is where the member's context is, the usual one if empty.
	labels     map[string]string
	kubeconfig string
	// taken notes which clusters join at the same time, nil if this one joins alone.
	taken *takenClusters
}

// NewJoin returns `kubectl fleet join`.
func NewJoin(f *cli.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	return newJoin(f, streams, installedHelm())
}

func newJoin(f *cli.Factory, streams genericiooptions.IOStreams, h helm) *cobra.Command {
	o := &joinOptions{installing: installing{Steering: base.Steering{Factory: f, Streams: streams}, helm: h}}
	many := &joinMany{joinOptions: o}
	cmd := &cobra.Command{
		Use:   "join MEMBER --member-context CONTEXT | --from-file FILE",
		Short: "Make a cluster, or all clusters of a file, members of the fleet",
		Long: `Make a cluster a member of the fleet, from the kubeconfig's contexts of the hub (--context, or the current one) and of
the cluster: gives it a service account on the hub, creates its MemberCluster, puts the account's token on the cluster,
installs the member agent there with helm, and waits until it has joined.

The token ends after --token-duration; the agent renews it half-way, with the right of the account to do that for itself.
The command may be run again, to revoke a token for instance: the account is made anew, so that all its earlier tokens stop
working at once. The rest stays as it is: the values of the agent's chart too, such as its veto, unless --set changes them.

One cluster is one member: a cluster that is a member under another name is refused, and so is a name that another cluster
has. A cluster is recognized by the uid of its namespace kube-system. --move gives the name to this cluster anyway.

The agent pulls from the hub, so the cluster has to reach the hub's address, and nothing has to reach the cluster.

With --from-file all clusters of a file join, several at a time. One that fails does not stop the others: it is named in the end,
and the command exits with 1. Run again, it skips those that have joined, unless --all is given, for example for new tokens or
a new address. The file, in which only the name is required:

  clusters:
    - name: member-4
      context: kind-member-4       # of the kubeconfig; else the name
      kubeconfig: member-4.yaml    # where the context is; else the usual kubeconfig
      labels: {region: west}       # of the MemberCluster
      set: [logVerbosity=1]        # values of the agent's chart, after those of --set`,
		Example: `  # The hub is the current context
  kubectl fleet join member-4 --member-context kind-member-4

  # As the cluster sees the hub, with a token that holds while the cluster is away for a month
  kubectl fleet join member-4 --member-context kind-member-4 --hub-address https://hub.example.com:6443 --token-duration 1440h

  # With values of the agent's chart
  kubectl fleet join member-4 --member-context kind-member-4 --values values-members.yaml --set image.tag=v1

  # All clusters of a file
  kubectl fleet join --from-file clusters.yaml --hub-address https://hub.example.com:6443`,
		Args: func(cmd *cobra.Command, args []string) error {
			if many.file != "" {
				return many.checkArguments(args)
			}
			return base.ExactlyOne("the member", "kubectl fleet join member-4 --member-context kind-member-4")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if many.file != "" {
				return many.joinClusters(cmd.Context())
			}
			if many.all {
				return cli.Usagef("--all is for the clusters of a file: give --from-file, too")
			}
			o.member = args[0]
			if err := o.complete(); err != nil {
				return err
			}
			return o.joinCluster(cmd.Context())
		},
	}
	o.AddFlags(cmd)
	flags := cmd.Flags()
	flags.StringVar(&o.memberContext, "member-context", "", "Context of the kubeconfig for the cluster that joins (required).")
	_ = cmd.RegisterFlagCompletionFunc("member-context", base.Completed(f, base.KubeContexts)) // fails only for a flag that is not there
	flags.StringVar(&o.address, "hub-address", "", "Address of the hub's API server, as the cluster sees it. (default: that of the hub's context)")
	flags.StringVar(&o.authority, "hub-ca", "", "File with the CA of the hub's API server. (default: that of the hub's context)")
	flags.StringVar(&o.access, "access-namespace", accessNamespace, "Namespace on the hub for the cluster's service account.")
	flags.Int32Var(&o.heartbeat, "heartbeat", defaultHeartbeat, "How often the cluster reports, in seconds.")
	flags.DurationVar(&o.tokenDuration, "token-duration", tokenDuration,
		"How long a token holds. The agent renews it half-way; a cluster that is away for longer has to join again. For more than 48h, raise memberTokenHours of the hub agent's chart first.")
	flags.StringVar(&o.agent, "agent", agentByHelm, "What installs the agent: helm, or none if it is there or comes otherwise.")
	flags.StringVar(&o.chart, "chart", "", "Folder or archive of the agent's chart. (default: the one built in)")
	flags.StringArrayVarP(&o.files, "values", "f", nil, "A file with values of the agent's chart, as for helm; may be given several times.")
	flags.StringArrayVar(&o.values, "set", nil, "A value of the agent's chart, as for helm; may be given several times.")
	flags.BoolVar(&o.move, "move", false, "Give the name to this cluster, though another cluster has it, or this one has another name.")
	flags.DurationVar(&o.timeout, "timeout", joinTimeout, "How long to wait until the cluster has joined.")
	many.addFlags(flags)
	return cmd
}

// checkFlags refuses flags that are invalid, before anything is asked.
func (o *joinOptions) checkFlags() error {
	if err := o.Validate(); err != nil {
		return err
	}
	switch {
	case o.tokenDuration < minTokenDuration:
		return cli.Usagef("--token-duration %s is too short: an API server gives no token for less than %s", o.tokenDuration, minTokenDuration)
	case o.agent != agentByHelm && o.agent != agentByNone:
		return cli.Usagef("--agent %q is not known: use helm or none", o.agent)
	}
	if o.agent == agentByHelm && !o.Dry() && !o.helm.there() {
		return errors.New("helm is not installed, which installs the agent: nothing was changed. Install helm, or give --agent none and install the chart deploy/charts/member-agent otherwise")
	}
	return nil
}

func (o *joinOptions) complete() (err error) {
	if o.memberContext == "" {
		return cli.Usagef("--member-context is missing: name the context of the cluster that joins; kubectl config get-contexts lists what there is")
	}
	if err := o.completeHub(); err != nil {
		return err
	}
	o.cluster, err = o.Factory.ClientOf(o.memberContext)
	return err
}

// completeHub makes what all clusters that join need.
func (o *joinOptions) completeHub() (err error) {
	if err := o.checkFlags(); err != nil {
		return err
	}
	if o.config, err = o.Factory.Configure(""); err != nil {
		return err
	}
	if o.address == "" {
		o.address = o.config.Host
		if o.agent == agentByHelm {
			o.warnOfLoopback()
		}
	}
	if at, err := url.Parse(o.address); err != nil || at.Scheme != "https" || at.Host == "" {
		return cli.Usagef("--hub-address %q is not an address such as https://hub.example.com:6443", o.address)
	}
	o.hub, err = o.Factory.Client()
	return err
}

// warnOfLoopback warns of an address that means another machine wherever it is used, as kubeconfigs of kind have it.
func (o *joinOptions) warnOfLoopback() {
	at, err := url.Parse(o.address)
	if err != nil {
		return // it is about to be refused
	}
	if host := at.Hostname(); host == "localhost" || net.ParseIP(host).IsLoopback() {
		cli.Printf(o.Streams.ErrOut, "Warning: the hub's address in the kubeconfig is %s, which is this machine only: an agent that runs in a Pod does not reach the hub by it. --hub-address says by which it does.\n", o.address)
	}
}

func (o *joinOptions) accountName() string { return accountOf(o.member) }

func (o *joinOptions) joinCluster(ctx context.Context) error {
	steps := []step{
		{title: "looking at the hub", looks: true, do: o.checkHub},
		{title: "looking at " + o.memberContext, looks: true, do: o.checkMember},
		{title: fmt.Sprintf("giving %s an identity on the hub: service account %s/%s", o.member, o.access, o.accountName()), do: o.makeIdentity},
		{title: "inviting " + o.member, checked: true, do: o.createMember},
		{title: fmt.Sprintf("putting the token on %s: Secret %s/%s", o.memberContext, agentNamespace, tokenSecret), do: o.putToken},
	}
	if o.agent == agentByHelm {
		steps = append(steps, step{title: "installing the agent on " + o.memberContext, do: o.installChart})
	}
	steps = append(steps, step{title: "waiting until " + o.member + " has joined", do: o.awaitJoined})
	return o.takeSteps(ctx, steps)
}

// installChart has helm install the agent's chart.
func (o *joinOptions) installChart(ctx context.Context) error {
	authority, err := authorityOf(o.config, o.authority)
	if err != nil {
		return err
	}
	args := []string{
		"--kube-context", o.memberContext, "--namespace", agentNamespace, "--reset-then-reuse-values",
		"--set-string", "config.hubURL=" + o.address, "--set-string", "config.memberClusterName=" + o.member,
		"--set-string", "config.hubCA=" + authority, // also without one: that of an earlier hub does not stay
	}
	args = slices.Concat(args, o.helmKubeconfig(o.kubeconfig), imageTag(o.chart), flagForEach("--values", o.files), flagForEach("--set", o.values))
	if err := o.breakOldLease(ctx); err != nil {
		return err
	}
	return o.helm.installChart(ctx, agentRelease, o.chart, unpacked{charts.MemberAgent, charts.MemberAgentFolder}, args...)
}
