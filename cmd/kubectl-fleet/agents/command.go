package agents

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	"github.com/fleetflow/fleetflow/cmd/internal/fleetview"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/base"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/cli"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
)

// listing shows the agents of members.
type listing struct {
	base.Viewing
	members chosenMembers
}

// New returns `kubectl fleet agents`.
func New(f *cli.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	l := &listing{Viewing: base.Viewing{Factory: f, Streams: streams}}
	cmd := &cobra.Command{
		Use:   "agents [MEMBER ...]",
		Short: "Show the agents of members, upgrade them, send them to another address, renew their tokens",
		Long: `Show the agents of members as they last reported: their version, when their token for the hub expires, and how far they
are with what was asked of them last. -o wide has their images and the addresses by which they reach the hub, too.

The commands below ask agents to change themselves, as far as the owners of their clusters let them (selfUpdate of the agent's
chart). The old agent works on until the new one has shown that it can report, and is back if it does not report in time.`,
		Example: `  # All of them
  kubectl fleet agents

  # The images of those in the west
  kubectl fleet agents -l region=west -o wide

  # The members whose agents could not do what was asked, for a script
  kubectl fleet agents -o json | jq -r '.agents[] | select(.state == "Failed" or .state == "Refused") | .member'`,
		ValidArgsFunction: base.CompleteNames(f, hub.KindMember),
		RunE: func(cmd *cobra.Command, args []string) error {
			l.members.names = args
			return l.listAgents(cmd.Context())
		},
	}
	l.AddFlags(cmd)
	l.members.addFlags(cmd)
	cmd.AddCommand(newUpgrade(f, streams), newReaddress(f, streams), newRenewToken(f, streams))
	return cmd
}

// chosenMembers are the members that a command is about: those that are named, or those with labels.
type chosenMembers struct {
	names []string
	base.Selector
}

func (m *chosenMembers) addFlags(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&m.Text, "selector", "l", "", "Only the members with these labels, as in: -l region=west,tier!=test.")
}

// chooseFrom returns the members that are chosen, by name.
func (m *chosenMembers) chooseFrom(all []clusterv1beta1.MemberCluster) ([]clusterv1beta1.MemberCluster, error) {
	if err := m.Parse(); err != nil {
		return nil, err
	}
	for _, name := range m.names {
		if !slices.ContainsFunc(all, func(member clusterv1beta1.MemberCluster) bool { return member.Name == name }) {
			return nil, fmt.Errorf("there is no member named %q; kubectl fleet get members lists what there is", name)
		}
	}
	chosen := slices.DeleteFunc(all, func(member clusterv1beta1.MemberCluster) bool {
		return len(m.names) > 0 && !slices.Contains(m.names, member.Name) || !m.Selects(member.Labels)
	})
	slices.SortFunc(chosen, func(a, b clusterv1beta1.MemberCluster) int { return strings.Compare(a.Name, b.Name) })
	return chosen, nil
}

func (l *listing) listAgents(ctx context.Context) error {
	if err := l.Validate(); err != nil {
		return err
	}
	reader, err := base.NewReader(l.Factory)
	if err != nil {
		return err
	}
	var found []clusterv1beta1.MemberCluster
	if err := l.Factory.Patiently(l.Streams, "reading the members", func() (err error) {
		found, err = reader.Members(ctx)
		return err
	}); err != nil {
		return err
	}
	members, err := l.members.chooseFrom(found)
	if err != nil {
		return err
	}
	all := []Agent{}
	for i := range members {
		all = append(all, Read(&members[i]))
	}
	if l.Structured() {
		return l.Encode(l.Streams.Out, map[string]any{"agents": all})
	}
	l.SayStandstill(ctx, reader)
	if len(all) == 0 {
		cli.Printf(l.Streams.ErrOut, "No members.\n")
		return nil
	}
	columns := []cli.Column{
		{Name: "Member"}, {Name: "Version"}, {Name: "Request"}, {Name: "Token ends"}, {Name: "Last report"},
		{Name: "Image", Wide: true}, {Name: "Hub address", Wide: true}, {Name: "Message", Wide: true},
	}
	var rows [][]string
	for i := range all {
		rows = append(rows, agentRow(&all[i], l.Factory.Clock.Now()))
	}
	return l.PrintTable(l.Streams.Out, columns, rows)
}

// agentRow returns the row of an agent in the table.
func agentRow(agent *Agent, now time.Time) []string {
	token := agent.TokenEnds
	if ends, err := time.Parse(time.RFC3339, agent.TokenEnds); err == nil {
		token = "in " + fleetview.Age(now, ends)
		if ends.Before(now) {
			token = fleetview.Age(ends, now) + " ago"
		}
	}
	report := "never"
	if agent.LastReport != nil {
		report = fleetview.Age(agent.LastReport.Time, now) + " ago"
	}
	return []string{agent.Member, known(agent.Version), known(describeRequest(agent)), known(token), report, known(agent.Image),
		known(agent.HubAddress), agent.Message}
}

// known stands in a table for what an agent has not said.
func known(value string) string {
	if value == "" {
		return "-"
	}
	return value
}

// describeRequest returns what was asked of an agent last, and how far it is.
func describeRequest(agent *Agent) string {
	if agent.Request == nil {
		return ""
	}
	what := wordsOf(agent.Request.Image, agent.Request.HubURL, agent.Request.RenewToken)
	switch agent.State {
	case Done:
		return what + ": done"
	case Refused:
		return what + ": refused"
	case Failed:
		return what + ": failed"
	}
	return what + ": under way"
}

// wordsOf says in short what a request asks for.
func wordsOf(image, hubURL string, renewToken bool) string {
	var words []string
	if image != "" {
		words = append(words, image[strings.LastIndex(image, "/")+1:])
	}
	if hubURL != "" {
		words = append(words, "hub at "+hubURL)
	}
	if renewToken {
		words = append(words, "new token")
	}
	return strings.Join(words, ", ")
}
