package agents

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/fence"
	"github.com/fleetflow/fleetflow/activities/planning"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/cmd/internal/steer"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/base"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/cli"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/tree"
	"github.com/fleetflow/fleetflow/workflows/rollout"
)

const (
	// agentPatience is how long an agent may take; it is longer than the agent itself waits for its successor.
	agentPatience = 15 * time.Minute
	// agentsPause is the least time between two looks at the members, whose reports wake the command.
	agentsPause = time.Second
	// agentsLook is the longest time between two looks.
	agentsLook = 5 * time.Second
)

// asking is what agents are asked, and in which order.
type asking struct {
	base.Steering
	wish       Wish
	members    chosenMembers
	strategy   string
	until      string
	concurrent string
	// said is the state of each member that the user has read last.
	said map[string]State
}

const howAgentsAreAsked = `
The agents are asked in the stages of a ClusterStagedUpdateStrategy (--strategy), in its order and with its maxConcurrency; without
one all are in one stage. Waits, approvals and analyses of the strategy do not apply, as they belong to runs; --until-stage
ends after a stage instead. If an agent refuses, fails, or does not answer within --timeout, no further agent is asked.

What was asked and what has become of it is kept on the MemberClusters: the command can be ended at any time and run again. It
goes on where the agents are, and asks those again that have failed.

Exits with 1 if an agent has refused or failed.`

func newUpgrade(f *cli.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	a := &asking{Steering: base.Steering{Factory: f, Streams: streams}}
	cmd := a.newCommand(&cobra.Command{
		Use:   "upgrade [MEMBER ...] --version VERSION | --image IMAGE",
		Short: "Have the agents of members run another image, in stages",
		Long: `Have the agents of members run another image, in stages. Each agent changes its own Deployment on its cluster; its flags and the
veto of the cluster's owner stay. The new agent takes over once the hub has taken a report of it on trial. If none reports
within 10 minutes, the old one is back and the request has failed.
` + howAgentsAreAsked,
		Example: `  # The version of all agents, the stages of canary first
  kubectl fleet agents upgrade --version v0.2.0 --strategy canary

  # What would be asked of which agents
  kubectl fleet agents upgrade --version v0.2.0 --strategy canary --dry-run

  # Two members, by an image of your own
  kubectl fleet agents upgrade member-1 member-2 --image registry.example.com/member-agent:v0.2.0`,
	}, func() error {
		if (a.wish.Image == "") == (a.wish.Tag == "") {
			return cli.Usagef("give either --version, which is the tag of the image that each agent has, or --image")
		}
		return nil
	})
	cmd.Flags().StringVar(&a.wish.Tag, "version", "", "The tag of the image, whose repository is that of the image which the agent runs.")
	cmd.Flags().StringVar(&a.wish.Image, "image", "", "The image, with its tag or digest.")
	return cmd
}

func newReaddress(f *cli.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	a := &asking{Steering: base.Steering{Factory: f, Streams: streams}}
	cmd := a.newCommand(&cobra.Command{
		Use:   "readdress [MEMBER ...] --hub-url URL",
		Short: "Have the agents of members reach the hub at another address, in stages",
		Long: `Have the agents of members reach the hub at another address, in stages. The certificate there has to be of the authority that
the agents know, or the address one that the owner of the cluster has named (selfUpdate.hubURLs of the agent's chart). An agent
that does not reach the hub there does not take over: the old one works on, at the old address. Keep both addresses until
all are done.
` + howAgentsAreAsked,
		Example: `  kubectl fleet agents readdress --hub-url https://hub.example.com:6443 --strategy canary`,
	}, func() error {
		if at, err := url.Parse(a.wish.HubURL); err != nil || at.Scheme != "https" || at.Host == "" {
			return cli.Usagef("--hub-url %q is not an address such as https://hub.example.com:6443", a.wish.HubURL)
		}
		return nil
	})
	cmd.Flags().StringVar(&a.wish.HubURL, "hub-url", "", "Address of the hub's API server, as the clusters see it (required).")
	return cmd
}

func newRenewToken(f *cli.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	a := &asking{Steering: base.Steering{Factory: f, Streams: streams}, wish: Wish{RenewToken: true}}
	return a.newCommand(&cobra.Command{
		Use:   "renew-token [MEMBER ...]",
		Short: "Have the agents of members renew their tokens for the hub now",
		Long: `Have the agents of members renew their tokens for the hub now, before half of their life is over, for example because a cluster
will be away. The earlier tokens stay valid until they expire: kubectl fleet join, run again, revokes them.
` + howAgentsAreAsked,
		Example: `  kubectl fleet agents renew-token member-1`,
	}, func() error { return nil })
}

// newCommand makes a command that asks agents.
func (a *asking) newCommand(cmd *cobra.Command, check func() error) *cobra.Command {
	cmd.ValidArgsFunction = base.CompleteNames(a.Factory, hub.KindMember)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := check(); err != nil {
			return err
		}
		a.members.names = args
		return a.askAgents(cmd.Context())
	}
	a.AddFlags(cmd)
	a.members.addFlags(cmd)
	cmd.Flags().StringVar(&a.strategy, "strategy", "", "A ClusterStagedUpdateStrategy whose stages have the members by their labels.")
	cmd.Flags().StringVar(&a.until, "until-stage", "", "With --strategy: end after this stage.")
	cmd.Flags().StringVar(&a.concurrent, "max-concurrency", "1",
		"Without --strategy: how many agents are asked at the same time, a number or a percentage.")
	cmd.Flags().DurationVar(&a.wish.Patience, "timeout", agentPatience, "How long an agent may take before it counts as failed.")
	return cmd
}

func (a *asking) askAgents(ctx context.Context) error {
	c, err := a.Connect()
	if err != nil {
		return err
	}
	a.wish.Began = a.Factory.Clock.Now()
	a.said = map[string]State{}
	reader := hub.Reader{Reader: c}
	found, err := reader.Members(ctx)
	if err != nil {
		return err
	}
	members, err := a.members.chooseFrom(found)
	if err != nil {
		return err
	}
	stages, err := a.readStages(ctx, reader, members)
	if err != nil {
		return err
	}
	states, err := a.judgeAgents(members)
	if err != nil {
		return err
	}
	left := a.printPlan(stages, states)
	if left == 0 {
		return nil
	}
	what := wordsOf(strings.TrimPrefix(a.wish.Image+":"+a.wish.Tag, ":"), a.wish.HubURL, a.wish.RenewToken)
	if err := a.Ask(a.Streams, fmt.Sprintf("Ask %s for %s?", tree.Plural(left, "agent"), strings.Trim(what, ":"))); err != nil {
		return err
	}
	if a.Dry() {
		return a.tryAsking(ctx, c, stages, states)
	}
	return a.followStages(ctx, c, stages)
}

// readStages returns the stages with the members that are chosen.
func (a *asking) readStages(ctx context.Context, reader hub.Reader, members []clusterv1beta1.MemberCluster) ([]Stage, error) {
	names := make([]string, len(members))
	labels := map[string]map[string]string{}
	for i := range members {
		names[i] = members[i].Name
		labels[names[i]] = members[i].Labels
	}
	if a.strategy == "" {
		if a.until != "" {
			return nil, cli.Usagef("--until-stage is for the stages of a strategy: give --strategy, too")
		}
		atOnce, err := rollout.Concurrency(a.concurrent, len(names))
		if err != nil {
			return nil, cli.Usagef("--max-concurrency: %w", err)
		}
		return []Stage{{Name: "all", Members: names, AtOnce: atOnce}}, nil
	}
	strategy, err := reader.Strategy(ctx, "", a.strategy)
	if err != nil {
		return nil, err
	}
	if strategy == nil {
		return nil, fmt.Errorf("there is no ClusterStagedUpdateStrategy %q", a.strategy)
	}
	assigned, err := planning.AssignClusters(*strategy, names, labels)
	if err != nil {
		return nil, fmt.Errorf("assigning the members to the stages of %s: %w", a.strategy, err)
	}
	if len(assigned.Unassigned) > 0 && len(assigned.Clusters) == len(strategy.Stages) {
		return nil, fmt.Errorf("no stage of %s has %s: widen the labelSelector of a stage, or leave these members out by -l",
			a.strategy, strings.Join(assigned.Unassigned, ", "))
	}
	return a.stagesOf(assigned)
}

// stagesOf returns the stages of a strategy, up to that of --until-stage.
func (a *asking) stagesOf(assigned planning.Assignment) ([]Stage, error) {
	var stages []Stage
	for i := range assigned.Strategy.Stages {
		config := &assigned.Strategy.Stages[i]
		value := "1"
		if config.MaxConcurrency != nil {
			value = config.MaxConcurrency.String()
		}
		atOnce, err := rollout.Concurrency(value, len(assigned.Clusters[i]))
		if err != nil {
			return nil, fmt.Errorf("reading stage %s of %s: %w", config.Name, a.strategy, err)
		}
		stages = append(stages, Stage{Name: config.Name, Members: assigned.Clusters[i], AtOnce: atOnce})
		if config.Name == a.until {
			return stages, nil
		}
		if hasTasks(config) {
			cli.Printf(a.Streams.ErrOut, "Warning: the tasks of stage %s belong to runs and are not waited for; --until-stage ends after a stage\n",
				config.Name)
		}
	}
	if a.until != "" {
		return nil, cli.Usagef("%s has no stage %q", a.strategy, a.until)
	}
	return stages, nil
}

func hasTasks(stage *placementv1beta1.StageConfig) bool {
	return len(stage.BeforeStageTasks)+len(stage.DuringStageTasks)+len(stage.AfterStageTasks) > 0
}

// judgeAgents says of each member how far its agent is.
func (a *asking) judgeAgents(members []clusterv1beta1.MemberCluster) (map[string]Agent, error) {
	states := map[string]Agent{}
	for i := range members {
		agent, err := a.wish.Judge(Read(&members[i]), a.Factory.Clock.Now())
		if err != nil {
			return nil, err
		}
		states[agent.Member] = agent
	}
	return states, nil
}

// printPlan returns what is to be done in which stage, and returns how many agents are not as wanted.
func (a *asking) printPlan(stages []Stage, states map[string]Agent) (left int) {
	for _, stage := range stages {
		var open []string
		for _, member := range stage.Members {
			a.said[member] = states[member].State
			if states[member].State != Done {
				open = append(open, member)
			}
		}
		left += len(open)
		rest := ""
		if len(open) > 0 {
			rest = fmt.Sprintf("; %d at the same time: %s", stage.AtOnce, strings.Join(open, ", "))
		}
		cli.Printf(a.Streams.Out, "stage %s: %d of %s as wanted%s\n", stage.Name, len(stage.Members)-len(open),
			tree.Plural(len(stage.Members), "agent"), rest)
	}
	return left
}

// tryAsking has the hub check what would be asked, on a dry run.
func (a *asking) tryAsking(ctx context.Context, c client.WithWatch, stages []Stage, states map[string]Agent) error {
	for _, stage := range stages {
		for _, member := range stage.Members {
			if states[member].State != Unasked {
				continue
			}
			if err := a.askAgent(ctx, c, states[member]); err != nil {
				return err
			}
		}
	}
	return nil
}

// askAgent writes what is asked of an agent.
func (a *asking) askAgent(ctx context.Context, c client.WithWatch, agent Agent) error {
	request, err := a.wish.Request(agent)
	if err != nil {
		return err
	}
	if a.Sends() {
		member := &clusterv1beta1.MemberCluster{}
		member.Name = agent.Member
		if err := c.Get(ctx, client.ObjectKeyFromObject(member), member); err != nil {
			return fmt.Errorf("reading member/%s: %w", agent.Member, err)
		}
		if err := steer.ChangeSpec(ctx, a.Writer(c), member, func(*clusterv1beta1.MemberCluster) ([]fence.Op, error) {
			return []fence.Op{fence.Add("/spec/agent", request)}, nil
		}); err != nil {
			return fmt.Errorf("asking the agent of member/%s: %w", agent.Member, err)
		}
	}
	a.Done(a.Streams, "member/%s asked for %s", agent.Member, wordsOf(request.Image, request.HubURL, request.RenewToken))
	return nil
}

// followStages asks the agents stage by stage until all are as wanted, or one is not in the end.
func (a *asking) followStages(ctx context.Context, c client.WithWatch, stages []Stage) error {
	watcher, err := c.Watch(ctx, &clusterv1beta1.MemberClusterList{})
	if err != nil {
		return fmt.Errorf("watching the members: %w", err)
	}
	defer func() { watcher.Stop() }()
	for {
		over, err := a.askNext(ctx, c, stages)
		if over || err != nil {
			return err
		}
		select { // reports come often in a large fleet
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(agentsPause):
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(agentsLook):
		case _, open := <-watcher.ResultChan():
			if open {
				continue
			}
			if watcher, err = c.Watch(ctx, &clusterv1beta1.MemberClusterList{}); err != nil {
				return fmt.Errorf("watching the members: %w", err)
			}
		}
	}
}

// askNext looks once, tells what is new and asks those whose turn it is.
func (a *asking) askNext(ctx context.Context, c client.WithWatch, stages []Stage) (over bool, err error) {
	members, err := (hub.Reader{Reader: c}).Members(ctx)
	if err != nil {
		return false, err
	}
	members = slices.DeleteFunc(members, func(member clusterv1beta1.MemberCluster) bool {
		_, chosen := a.said[member.Name]
		return !chosen
	})
	states, err := a.judgeAgents(members)
	if err != nil {
		return false, err
	}
	for _, stage := range stages {
		for _, member := range stage.Members {
			a.tellOutcome(stage.Name, member, states[member])
		}
	}
	next := Next(stages, states)
	for _, member := range next.Ask {
		agent, there := states[member]
		if !there {
			return false, fmt.Errorf("member/%s has left the fleet meanwhile: run the command again", member)
		}
		if err := a.askAgent(ctx, c, agent); err != nil {
			return false, err
		}
	}
	if !next.Over {
		return false, nil
	}
	return true, outcomeError(stages, next)
}

// tellOutcome says what has become of an agent, once.
func (a *asking) tellOutcome(stage, member string, agent Agent) {
	if a.said[member] == agent.State {
		return
	}
	a.said[member] = agent.State
	switch agent.State {
	case Done:
		cli.Printf(a.Streams.Out, "stage %s: member/%s is as wanted (version %s)\n", stage, member, known(agent.Version))
	case Refused, Failed:
		cli.Printf(a.Streams.Out, "stage %s: member/%s is not: %s\n", stage, member, agent.Message)
	}
}

// outcomeError is the error with which the command ends, if it ends with one.
func outcomeError(stages []Stage, last Step) error {
	if len(last.Failed) == 0 {
		return nil
	}
	var failed []error
	for i := range last.Failed {
		failed = append(failed, fmt.Errorf("member/%s: %s", last.Failed[i].Member, last.Failed[i].Message))
	}
	return fmt.Errorf("stage %s has agents that are not as wanted; no other was asked. Correct that and run the command again, or leave them out:\n%w",
		stages[last.Stage].Name, errors.Join(failed...))
}
