package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fleetflow/fleetflow/test/devfleet/control"
	"github.com/fleetflow/fleetflow/test/devfleet/controlplane"
	"github.com/fleetflow/fleetflow/test/devfleet/progress"
	"github.com/fleetflow/fleetflow/test/devfleet/state"
	"github.com/fleetflow/fleetflow/test/devfleet/toolchain"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

const (
	defaultMembers = 3
	// allMembers is the number of members for --real-nodes without one.
	allMembers = -1
)

// upOptions are what "up" was asked for.
type upOptions struct {
	dir string
	// members is the wanted number, 0 for whatever the fleet has, or the default for a new one.
	members int
	// withoutMembers gives a new fleet none: the caller plays them.
	withoutMembers bool
	// hubAgentArgs are further flags of the hub agent.
	hubAgentArgs []string
	// withoutAgents leaves this repository's agents unbuilt and stopped.
	withoutAgents bool
	// bare leaves the clusters without the definitions and rights of the agents, too: their charts bring them.
	bare bool
	// withPrometheus starts a Prometheus, and traffic for it to measure.
	withPrometheus bool
	// withTemporalServer brings Temporal's server for production.
	withTemporalServer bool
	// realNodes is how many members get a real node, realHub whether the hub gets one. allMembers means all.
	realNodes int
	realHub   bool
	// programs is where programs come from that are missing, as the flag says it.
	programs string
}

// addProgramsFlag adds the flag that says where missing programs come from.
func addProgramsFlag(cmd *cobra.Command, programs *string) {
	cmd.Flags().StringVar(programs, "programs", "", fmt.Sprintf(
		"where missing programs come from: auto (downloaded where their publishers can be reached, else built), build, download (default $%s, else %s)", toolchain.ProgramsEnv, toolchain.Auto))
}

func upCommand(dir *fleetDir) *cobra.Command {
	options := upOptions{}
	cmd := &cobra.Command{
		Use: "up", Short: "Bring what is missing, start the fleet and wait until all members have joined", Args: cobra.NoArgs,
		Long: `Up brings what is missing, starts the fleet in the background and returns when every member has joined the hub.

On a fleet that is up it builds the agents, restarts those that changed, checks the rest and returns. A fleet that
was taken down continues with its data; "down --purge" forgets it. Ctrl-C while it starts takes everything down.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			options.dir = dir.path
			fleet, err := up(cmd.Context(), options, progress.New(os.Stdout))
			if err != nil {
				return err
			}
			printWelcome(os.Stdout, fleet)
			return nil
		},
	}
	cmd.Flags().IntVar(&options.members, "members", 0, fmt.Sprintf(
		"number of member clusters, 1 to %d (default: as the fleet has, %d for a new one)", state.MaxMembers, defaultMembers))
	cmd.Flags().BoolVar(&options.withoutMembers, "without-members", false,
		"start a hub without members, for a program that plays them, as test/bench does")
	cmd.MarkFlagsMutuallyExclusive("members", "without-members")
	cmd.Flags().StringArrayVar(&options.hubAgentArgs, "hub-agent-arg", nil,
		"a further flag of the hub agent, as in --hub-agent-arg=--resource-snapshot-bytes-per-second=2Mi; the fleet keeps it until up is given others")
	cmd.Flags().BoolVar(&options.withPrometheus, "with-prometheus", false,
		"also start a Prometheus, which measures the agents, and the requests that are played to the members' Deployments; the fleet keeps it")
	cmd.Flags().BoolVar(&options.withoutAgents, "without-agents", false, "start the clusters and Temporal only")
	cmd.Flags().IntVar(&options.realNodes, "real-nodes", 0, "give a new fleet's first members, without a number all, a real node: kubelet, "+
		"containerd and kube-proxy instead of KWOK; needs root and packages, which it names")
	cmd.Flags().Lookup("real-nodes").NoOptDefVal = strconv.Itoa(allMembers)
	cmd.Flags().BoolVar(&options.realHub, "real-hub", false, "give a new fleet's hub a real node, too")
	addProgramsFlag(cmd, &options.programs)
	_ = cmd.Flags().MarkHidden("without-agents") // fails only for a flag that does not exist
	cmd.Flags().BoolVar(&options.bare, "bare", false,
		"with --without-agents: leave the clusters without definitions and rights, for the charts to bring")
	_ = cmd.Flags().MarkHidden("bare") // fails only for a flag that does not exist
	cmd.MarkFlagsMutuallyExclusive("with-prometheus", "without-agents")
	return cmd
}

func toolsCommand() *cobra.Command {
	options := upOptions{}
	cmd := &cobra.Command{
		Use: "tools", Short: "Bring the programs of Kubernetes, etcd, KWOK and Temporal that are missing, as the first up does",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			root, err := toolchain.FindRoot(".")
			if err != nil {
				return err
			}
			_, err = ensureTools(cmd.Context(), options, root, progress.New(os.Stdout))
			return err
		},
	}
	cmd.Flags().BoolVar(&options.withPrometheus, "with-prometheus", false, "bring Prometheus, too")
	cmd.Flags().BoolVar(&options.realHub, "with-nodes", false, "bring kubelet and kube-proxy, too, which only fleets with real nodes run")
	cmd.Flags().BoolVar(&options.withTemporalServer, "with-temporal-server", false,
		"bring Temporal's server for production and its schemas, too, which no local fleet runs, but test/principals and test/charts")
	addProgramsFlag(cmd, &options.programs)
	return cmd
}

// ensureTools returns the paths of all tools, and brings those that are missing; those on demand only if they are wanted.
func ensureTools(ctx context.Context, options upOptions, root string, display *progress.Display) (map[string]string, error) {
	programs, err := toolchain.ParsePrograms(options.programs)
	if err != nil {
		return nil, err
	}
	provider, err := toolchain.New(root, programs, display)
	if err != nil {
		return nil, err
	}
	tools, err := provider.Ensure(ctx)
	if err == nil && options.withPrometheus {
		_, err = provider.Ensure(ctx, toolchain.Prometheus)
	}
	if err == nil && options.wantsRealNodes() {
		_, err = provider.Ensure(ctx, toolchain.Kubelet, toolchain.KubeProxy)
	}
	if err == nil && options.withTemporalServer {
		_, err = provider.Ensure(ctx, toolchain.TemporalServer, toolchain.TemporalSchema)
	}
	return tools, err
}

// up brings the fleet up and returns it; it is the way in for every verb that needs a running fleet.
func up(ctx context.Context, options upOptions, display *progress.Display) (*state.Fleet, error) {
	if options.members < 0 || options.members > state.MaxMembers {
		return nil, fmt.Errorf("--members %d is out of range: 1 to %d", options.members, state.MaxMembers)
	}
	release, err := lock(options.dir, upLock)
	if errors.Is(err, errLocked) {
		return nil, fmt.Errorf("%s is bringing up the fleet in %s: wait for it, or name another folder with --dir",
			describeHolder(options.dir, upLock), options.dir)
	}
	if err != nil {
		return nil, err
	}
	defer release()
	workDir, err := os.Getwd()
	if err != nil {
		return nil, fmt.Errorf("finding the current folder: %w", err)
	}
	root, err := toolchain.FindRoot(workDir)
	if err != nil {
		return nil, err
	}
	started := time.Now()
	client, err := control.Dial(options.dir)
	switch {
	case err == nil:
		err = checkMembers(ctx, client, options)
	case errors.Is(err, control.ErrNotRunning):
		client = nil
		err = nil
	}
	if err != nil {
		return nil, err
	}
	fleet, err := bringUp(ctx, options, root, client, display)
	if err != nil {
		return nil, err
	}
	display.Line("The fleet is up after %s.", progress.Elapsed(time.Since(started)))
	return fleet, nil
}

// checkMembers refuses to change the number of members of a running fleet.
func checkMembers(ctx context.Context, client *control.Client, options upOptions) error {
	status, err := client.Status(ctx)
	if err != nil {
		return fmt.Errorf("asking the running fleet: %w", err)
	}
	if options.members == 0 || options.members == status.Members {
		return nil
	}
	program := callOf(options.dir)
	return fmt.Errorf("the fleet in %s is running with %d members, not %d; to change that: %s down && %s up --members %d",
		options.dir, status.Members, options.members, program, program, options.members)
}

// bringUp starts a fleet, or, given the client of a running one, brings that up to date.
func bringUp(ctx context.Context, options upOptions, root string, client *control.Client, display *progress.Display) (*state.Fleet, error) {
	running := client != nil
	options.withPrometheus = options.withPrometheus || !options.withoutAgents && hasPrometheus(options.dir)
	options.rememberNodes()
	machine, err := machineFor(options)
	if err != nil {
		return nil, err
	}
	tools, err := ensureTools(ctx, options, root, display)
	if err != nil {
		return nil, err
	}
	maps.Copy(tools, machine)
	if err := writeNodeImages(ctx, options, root, display); err != nil {
		return nil, err
	}
	changed, err := buildPrograms(ctx, options, root, display)
	if err != nil {
		return nil, err
	}
	var fleet *state.Fleet
	if running {
		fleet, err = keepState(options)
	} else {
		fleet, client, err = launch(ctx, options, tools)
	}
	if err != nil {
		return nil, err
	}
	s := &startup{fleet: fleet, client: client, root: root, display: display, bare: options.bare}
	err = s.run(ctx, changed, !options.withoutAgents)
	if err == nil && options.withPrometheus {
		err = s.startPrometheus(ctx, changed)
	}
	if err != nil {
		return nil, s.abandon(ctx, running, err)
	}
	return fleet, nil
}

// hasPrometheus reports whether the fleet of a folder was given a Prometheus before.
func hasPrometheus(dir string) bool {
	fleet, err := state.Load(dir)
	return err == nil && fleet.Prometheus // the callers that need the state report what is wrong with it
}

// buildPrograms builds the programs of this repository that the fleet runs, and returns the names of those that changed.
func buildPrograms(ctx context.Context, options upOptions, root string, display *progress.Display) ([]string, error) {
	var further []string
	if options.withPrometheus {
		further = append(further, toolchain.TrafficPackage)
	}
	if options.withoutAgents {
		return nil, nil
	}
	return toolchain.BuildAgents(ctx, root, filepath.Join(options.dir, "bin"), display, further...)
}

// keepState returns the state of a fleet that runs, with what it is to have from now on.
func keepState(options upOptions) (*state.Fleet, error) {
	fleet, err := state.Load(options.dir)
	if err != nil || fleet.Prometheus || !options.withPrometheus {
		return fleet, err
	}
	fleet.Prometheus = true
	return fleet, fleet.Save()
}

// launch prepares the fleet's folder and starts its supervisor.
func launch(ctx context.Context, options upOptions, tools map[string]string) (*state.Fleet, *control.Client, error) {
	fleet, err := prepareState(options, tools)
	if err != nil {
		return nil, nil, err
	}
	if err := controlplane.Prepare(fleet); err != nil {
		return nil, nil, err
	}
	if err := linkTools(fleet); err != nil {
		return nil, nil, err
	}
	client, err := startSupervisor(ctx, fleet)
	return fleet, client, err
}

// prepareState makes the state of a new fleet or brings a remembered one up to date.
func prepareState(options upOptions, tools map[string]string) (*state.Fleet, error) {
	fleet, err := state.Load(options.dir)
	isNew := errors.Is(err, state.ErrNone)
	if isNew {
		fleet = &state.Fleet{Dir: options.dir}
		err = nil
	}
	if err != nil {
		return nil, err
	}
	if len(options.hubAgentArgs) > 0 {
		fleet.HubAgentArgs = options.hubAgentArgs
	}
	fleet.Prometheus = fleet.Prometheus || options.withPrometheus
	if fleet.Members, err = memberCount(fleet.Members, options); err != nil {
		return nil, fmt.Errorf("%w; to start afresh: %s down --purge", err, callOf(options.dir))
	}
	if err := decideNodes(fleet, isNew, options); err != nil {
		return nil, fmt.Errorf("%w; to start afresh: %s down --purge", err, callOf(options.dir))
	}
	fleet.Tools = tools
	fleet.Ports, err = state.AssignPorts(options.dir, state.Listeners(fleet.Members), fleet.Ports, state.PortIsFree)
	if err != nil {
		return nil, err
	}
	controlplane.AddTokens(fleet)
	return fleet, fleet.Save()
}

// memberCount decides how many members the fleet gets: a fleet can grow, but the hub of a smaller one would wait for
// members that are gone.
func memberCount(remembered int, options upOptions) (int, error) {
	wanted := options.members
	switch {
	case options.withoutMembers && remembered > 0:
		return 0, fmt.Errorf("the fleet's data is of %d members, more than none", remembered)
	case options.withoutMembers:
		return 0, nil
	case wanted == 0 && remembered == 0:
		return defaultMembers, nil
	case wanted == 0:
		return remembered, nil
	case wanted < remembered:
		return 0, fmt.Errorf("the fleet's data is of %d members, more than %d", remembered, wanted)
	}
	return wanted, nil
}

// linkTools puts the programs people use with the fleet into its bin folder.
func linkTools(fleet *state.Fleet) error {
	bin := fleet.Path("bin")
	if err := os.MkdirAll(bin, 0o755); err != nil {
		return fmt.Errorf("making %s: %w", bin, err)
	}
	for _, tool := range []string{"kubectl", "temporal"} {
		link := filepath.Join(bin, tool)
		if err := os.Remove(link); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("replacing the link to %s: %w", tool, err)
		}
		if err := os.Symlink(fleet.Tools[tool], link); err != nil {
			return fmt.Errorf("linking %s: %w", tool, err)
		}
	}
	return nil
}

// abandon takes down what an interrupted "up" has started. After any other failure the fleet stays up for a look.
func (s *startup) abandon(ctx context.Context, wasRunning bool, cause error) error {
	if wasRunning {
		return cause
	}
	program := callOf(s.fleet.Dir)
	if ctx.Err() == nil {
		return fmt.Errorf("%w\n\nWhat runs is left running for a look (%s status, %s logs); %s down ends it", cause, program, program, program)
	}
	step := s.display.Step("interrupted: taking the fleet down")
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer cancel()
	if err := step.End(s.client.Shutdown(ending)); err != nil {
		return fmt.Errorf("interrupted; taking the fleet down failed, try %s down: %w", program, err)
	}
	return errors.New("interrupted; everything that was started is down again")
}

// printWelcome says how to look around.
func printWelcome(out io.Writer, fleet *state.Fleet) {
	program := callOf(fleet.Dir)
	contexts := "hub (current)"
	if fleet.Members > 0 {
		contexts += fmt.Sprintf(", %s to %s; as in: kubectl --context member-1 get nodes", state.MemberName(1), state.MemberName(fleet.Members))
	}
	fmt.Fprintf(out, `
  export %s
  export PATH=%s:$PATH

Contexts      %s
Dashboard     %s
Temporal UI   %s
Temporal CLI  temporal --address %s --namespace %s workflow list
Approvals     through Temporal count under any name, for this Temporal knows no users (--temporal-approvals=any)
Logs          %s; as in: %s logs hub-agent -f
Next          kubectl get memberclusters
              %s status
              %s down
`, strings.Join(fleet.Environment(), "\n  export "), fleet.Path("bin"), contexts,
		aboutDashboard(fleet, program, "NAME"), fleet.TemporalUI(), fleet.Address("temporal"), wf.DefaultNamespace, fleet.LogDir(), program,
		program, program)
	if fleet.Prometheus {
		fmt.Fprintf(out, "\nPrometheus answers queries at %s, and also reads the targets that files in %s name.\n", fleet.PrometheusURL(),
			controlplane.PrometheusTargets(fleet))
	}
}

// aboutDashboard returns how the dashboard is opened, and where it shows a run then.
func aboutDashboard(fleet *state.Fleet, program, run string) string {
	link := dashboardLink(fleet)
	if fleet.DashboardLink() == "" {
		return link
	}
	return fmt.Sprintf("%s\n              works once, and %s restart dashboard makes another; then %s shows a run", link, program,
		fleet.Dashboard("/runs/"+run))
}

// dashboardLink returns how the dashboard is opened, or why it is not.
func dashboardLink(fleet *state.Fleet) string {
	return cmp.Or(fleet.DashboardLink(), "not started")
}
