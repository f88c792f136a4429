package command

import (
	"context"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/base"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/cli"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/diagnosis"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/tree"
	"github.com/fleetflow/fleetflow/cmd/version"
)

// versionLimit is how long the hub may take to say what runs there.
const versionLimit = 10 * time.Second

// versions are what `version` prints.
type versions struct {
	Client clientVersion `json:"clientVersion"`
	// HubAgent is empty where the hub was not asked, or does not say.
	HubAgent     string               `json:"hubAgentVersion,omitempty"`
	MemberAgents []memberAgentVersion `json:"memberAgents,omitempty"`
}

// clientVersion is that of this program, with the names that kubectl has for its own.
type clientVersion struct {
	Version   string `json:"gitVersion"`
	GoVersion string `json:"goVersion"`
	Platform  string `json:"platform"`
}

// memberAgentVersion is that of the agent of a member; empty if the agent has not said it.
type memberAgentVersion struct {
	Member  string `json:"member"`
	Version string `json:"version"`
}

// versionOptions are what `version` was asked for.
type versionOptions struct {
	base.Viewing
	clientOnly bool
}

// NewVersion returns `kubectl fleet version`.
func NewVersion(f *cli.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	v := &versionOptions{Viewing: base.Viewing{Factory: f, Streams: streams}}
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the versions of this program, the hub agent and the member agents",
		Long: `Print the version of this program, and those of the hub agent and the member agents as they have noted them on the hub.
Where the hub cannot be asked, a warning says why. kubectl fleet check says whether the versions fit.`,
		Example: `  kubectl fleet version

  # Of this program alone, without asking the hub
  kubectl fleet version --client

  # The members whose agents are to be upgraded
  kubectl fleet version -o json | jq -r '.hubAgentVersion as $hub | .memberAgents[] | select(.version != $hub) | .member'`,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := v.Validate(); err != nil {
				return err
			}
			return v.printVersions(cmd.Context())
		},
	}
	v.AddFlags(cmd)
	cmd.Flags().BoolVar(&v.clientOnly, "client", false, "Only the version of this program; the hub is not asked.")
	return cmd
}

func (v *versionOptions) printVersions(ctx context.Context) error {
	found := versions{Client: clientVersion{version.Number(), runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH}}
	if !v.Structured() {
		cli.Printf(v.Streams.Out, "%s\n", version.Of("kubectl-fleet"))
	}
	if !v.clientOnly {
		if err := v.readVersions(ctx, &found); err != nil {
			cli.Printf(v.Streams.ErrOut, "Warning: the versions of the agents are not known: %v; --client does not ask for them\n", err)
		} else if !v.Structured() {
			v.printAgents(found)
		}
	}
	if v.Structured() {
		return v.Encode(v.Streams.Out, found)
	}
	return nil
}

// readVersions reads what the agents have noted on the hub.
func (v *versionOptions) readVersions(ctx context.Context, into *versions) error {
	ctx, cancel := context.WithTimeout(ctx, versionLimit)
	defer cancel()
	c, err := v.Factory.Client()
	if err != nil {
		return err
	}
	hubAgent, memberAgents, err := diagnosis.ReadVersions(ctx, c, v.Factory.Clock.Now())
	if err != nil {
		return err
	}
	into.HubAgent = hubAgent
	for member, of := range memberAgents {
		into.MemberAgents = append(into.MemberAgents, memberAgentVersion{member, of})
	}
	slices.SortFunc(into.MemberAgents, func(a, b memberAgentVersion) int { return strings.Compare(a.Member, b.Member) })
	return nil
}

// shownAgents bounds the members named of one version.
const shownAgents = 5

// printAgents prints the versions of the agents, members of one version together.
func (v *versionOptions) printAgents(found versions) {
	cli.Printf(v.Streams.Out, "hub agent %s\n", orNotKnown(found.HubAgent))
	byVersion := map[string][]string{}
	var order []string
	for _, agent := range found.MemberAgents {
		if byVersion[agent.Version] == nil {
			order = append(order, agent.Version)
		}
		byVersion[agent.Version] = append(byVersion[agent.Version], agent.Member)
	}
	slices.Sort(order)
	for _, of := range order {
		members := byVersion[of]
		named := strings.Join(members[:min(len(members), shownAgents)], ", ")
		if len(members) > shownAgents {
			named += ", …"
		}
		cli.Printf(v.Streams.Out, "%s %s: %s\n", tree.Plural(len(members), "member agent"), orNotKnown(of), named)
	}
}

func orNotKnown(of string) string {
	if of == "" {
		return "of unknown version"
	}
	return of
}
