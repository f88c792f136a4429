package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/fleetflow/fleetflow/test/devfleet/access"
	"github.com/fleetflow/fleetflow/test/devfleet/control"
	"github.com/fleetflow/fleetflow/test/devfleet/demo"
	"github.com/fleetflow/fleetflow/test/devfleet/progress"
	"github.com/fleetflow/fleetflow/test/devfleet/realnode"
	"github.com/fleetflow/fleetflow/test/devfleet/state"
)

// minSoak is long enough to kill something in the middle of it.
const minSoak = time.Second

// demoOptions are what "demo" was asked for.
type demoOptions struct {
	dir         string
	members     int
	soak        time.Duration
	interactive bool
	keep        bool
	// real is whether a member of a new fleet gets a real node.
	real     bool
	programs string
}

func demoCommand(dir *fleetDir) *cobra.Command {
	o := demoOptions{}
	cmd := &cobra.Command{
		Use: "demo", Short: "Play staged rollouts on the fleet and check every step", Args: cobra.NoArgs,
		Long: `Demo brings the fleet up and takes a namespace through it: placed, rolled out in stages with a soak and an approval
(by a Temporal signal, a Temporal update and kubectl), rolled back, then with the hub agent killed in the middle of a
run and with all of Temporal's data deleted in the middle of another. Every statement it prints was checked; it ends
with an error at the first that does not hold. What an earlier demo has left is removed first. With --real a member of a
new fleet has a real node, and a version that crashes there is found and taken back.

A fleet that the demo has started is taken down at the end, unless --keep is given; one that ran before stays up.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.soak < minSoak {
				return fmt.Errorf("--soak %s is too short for something to happen in it: at least %s", o.soak, minSoak)
			}
			o.dir = dir.path
			return runDemo(cmd.Context(), o)
		},
	}
	cmd.Flags().IntVar(&o.members, "members", 0, fmt.Sprintf("number of member clusters, at least 3 (default: as the fleet has, %d for a new one)", defaultMembers))
	cmd.Flags().DurationVar(&o.soak, "soak", 5*time.Second, "how long the first stage waits after its clusters are updated")
	cmd.Flags().BoolVarP(&o.interactive, "interactive", "i", false, "wait for you before each approval: press Enter, or approve yourself")
	cmd.Flags().BoolVar(&o.keep, "keep", false, "leave the fleet up")
	cmd.Flags().BoolVar(&o.real, "real", false, "give a new fleet's first member a real node, and play an act on it; left out, with a sentence, where root or packages are missing")
	addProgramsFlag(cmd, &o.programs)
	return cmd
}

// runDemo brings the fleet up, plays, and leaves the fleet as it found it.
func runDemo(ctx context.Context, o demoOptions) error {
	release, err := lock(o.dir, demoLock)
	if errors.Is(err, errLocked) {
		return fmt.Errorf("%s is playing the demo on the fleet in %s: wait for it, or name another folder with --dir",
			describeHolder(o.dir, demoLock), o.dir)
	}
	if err != nil {
		return err
	}
	defer release()
	_, err = control.Dial(o.dir)
	running := err == nil
	display := progress.New(os.Stdout)
	options := upOptions{dir: o.dir, members: o.members, programs: o.programs, realNodes: realNodesFor(o, running, display)}
	fleet, err := up(ctx, options, display)
	if err != nil {
		return err
	}
	if o.real && running && !fleet.HasRealNodes() {
		display.Line("Left out: the act on a real node, as the fleet that runs has none. To have one: %s down --purge && %[1]s demo --real",
			callOf(o.dir))
	}
	display.Line("To watch it in a browser, open this link, which works once: %s", dashboardLink(fleet))
	err = playDemo(ctx, o, running || o.keep)
	if running || o.keep {
		return withAdvice(err, o.dir)
	}
	// The demo may have been interrupted; what it started ends all the same.
	if problem := down(context.WithoutCancel(ctx), o.dir, false, display); problem != nil {
		return errors.Join(err, problem)
	}
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("%w\n\nThe fleet is down; its logs are in %s/logs. To keep it up for a look: %s demo --keep", err, o.dir, callOf(o.dir))
	}
	if err == nil {
		display.Line("To look around on it afterwards: %s demo --keep", callOf(o.dir))
	}
	return err
}

// realNodesFor returns how many members of the demo's fleet get a real node. Where they cannot have one, it says so once.
func realNodesFor(o demoOptions, running bool, display *progress.Display) int {
	if fleet, err := state.Load(o.dir); !o.real || running || err == nil && fleet.HasRealNodes() {
		return 0 // it keeps what it has
	}
	if _, err := realnode.Find(); err != nil {
		display.Line("Left out: the act on a real node, as %v", err)
		return 0
	}
	return 1
}

// withAdvice returns how to look at a fleet on which something was not as it should be.
func withAdvice(err error, dir string) error {
	if _, found := errors.AsType[*demo.Failure](err); !found {
		return err
	}
	program := callOf(dir)
	return fmt.Errorf("%w\n\nThe fleet is up for a look: %s status, %s logs hub-agent", err, program, program)
}

func playDemo(ctx context.Context, o demoOptions, stays bool) error {
	fleet, err := access.Open(o.dir)
	if err != nil {
		return err
	}
	defer fleet.Close()
	err = demo.Run(ctx, fleet, demo.Options{
		Soak: o.soak, Interactive: o.interactive, In: os.Stdin, Out: os.Stdout, Program: callOf(o.dir),
	})
	if err == nil && stays {
		demo.LookAround(os.Stdout, fleet, callOf(o.dir))
	}
	return err
}
