package command

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
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/agents"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/cli"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
)

// NewAgents returns `kubectl fleet agents`.
func NewAgents(f *cli.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	v := &viewing{factory: f, streams: streams}
	chosen := &chosenMembers{}
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
		ValidArgsFunction: completeNames(f, hub.KindMember),
		RunE: func(cmd *cobra.Command, args []string) error {
			chosen.names = args
			return v.listAgents(cmd.Context(), chosen)
		},
	}
	v.AddFlags(cmd)
	chosen.addFlags(cmd)
	cmd.AddCommand(newAgentsUpgrade(f, streams), newAgentsReaddress(f, streams), newAgentsRenewToken(f, streams))
	return cmd
}

// chosenMembers are the members that a command is about: those that are named, or those with labels.
type chosenMembers struct {
	names []string
	labelled
}

func (m *chosenMembers) addFlags(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&m.selector, "selector", "l", "", "Only the members with these labels, as in: -l region=west,tier!=test.")
}

// of returns the members that are chosen, by name.
func (m *chosenMembers) of(all []clusterv1beta1.MemberCluster) ([]clusterv1beta1.MemberCluster, error) {
	if err := m.parse(); err != nil {
		return nil, err
	}
	for _, name := range m.names {
		if !slices.ContainsFunc(all, func(member clusterv1beta1.MemberCluster) bool { return member.Name == name }) {
			return nil, fmt.Errorf("there is no member named %q; kubectl fleet get members lists what there is", name)
		}
	}
	chosen := slices.DeleteFunc(all, func(member clusterv1beta1.MemberCluster) bool {
		return len(m.names) > 0 && !slices.Contains(m.names, member.Name) || !m.selects(member.Labels)
	})
	slices.SortFunc(chosen, func(a, b clusterv1beta1.MemberCluster) int { return strings.Compare(a.Name, b.Name) })
	return chosen, nil
}

func (v *viewing) listAgents(ctx context.Context, chosen *chosenMembers) error {
	if err := v.Validate(); err != nil {
		return err
	}
	reader, err := newReader(v.factory)
	if err != nil {
		return err
	}
	var found []clusterv1beta1.MemberCluster
	if err := v.factory.Patiently(v.streams, "reading the members", func() (err error) {
		found, err = reader.Members(ctx)
		return err
	}); err != nil {
		return err
	}
	members, err := chosen.of(found)
	if err != nil {
		return err
	}
	all := []agents.Agent{}
	for i := range members {
		all = append(all, agents.Read(&members[i]))
	}
	if v.Structured() {
		return v.Encode(v.streams.Out, map[string]any{"agents": all})
	}
	v.sayStandstill(ctx, reader)
	if len(all) == 0 {
		cli.Printf(v.streams.ErrOut, "No members.\n")
		return nil
	}
	columns := []cli.Column{
		{Name: "Member"}, {Name: "Version"}, {Name: "Request"}, {Name: "Token ends"}, {Name: "Last report"},
		{Name: "Image", Wide: true}, {Name: "Hub address", Wide: true}, {Name: "Message", Wide: true},
	}
	var rows [][]string
	for i := range all {
		rows = append(rows, agentRow(&all[i], v.factory.Clock.Now()))
	}
	return v.PrintTable(v.streams.Out, columns, rows)
}

// agentRow returns the row of an agent in the table.
func agentRow(agent *agents.Agent, now time.Time) []string {
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
func describeRequest(agent *agents.Agent) string {
	if agent.Request == nil {
		return ""
	}
	what := wordsOf(agent.Request.Image, agent.Request.HubURL, agent.Request.RenewToken)
	switch agent.State {
	case agents.Done:
		return what + ": done"
	case agents.Refused:
		return what + ": refused"
	case agents.Failed:
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
