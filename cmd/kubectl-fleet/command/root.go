// Package command has the commands of `kubectl fleet`. What changes rollouts and members is a verb of package steer, from which a command
// is made. Each other command is a file, named New<Command>: it reads flags, loads objects, has a pure package make a model of them, and
// prints it. Those that install the fleet are in package install, those about its agents in package agents, those that move a hub in
// package migrate, and those about analyses in package analyses.
package command

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/fleetflow/fleetflow/cmd/internal/steer"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/agents"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/analyses"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/base"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/cli"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/install"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/migrate"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/notify"
	"github.com/fleetflow/fleetflow/cmd/version"
)

// Groups of commands, as the help lists them beside those of verbs.
const (
	groupLook = "look"
	groupHub  = "hub"
)

// verb makes a command.
type verb func(f *cli.Factory, streams genericiooptions.IOStreams) *cobra.Command

// commandsByGroup returns the commands by group that are no verbs of package steer.
func commandsByGroup() map[string][]verb {
	return map[string][]verb{
		groupLook:          {NewGet, NewCheck, NewStatus, NewWhy, NewPlan, NewRehearse, NewDiff, NewHistory, NewRecords, NewEvents, NewWindows, analyses.New, NewDashboard},
		steer.GroupRollout: {NewFederate, NewOrphaning},
		steer.GroupMembers: {install.NewJoin, install.NewUnjoin, agents.New},
		groupHub:           {install.NewInit, install.NewUninstall, migrate.New, NewConvert, NewDisable, NewEnable, notify.New},
	}
}

// unasked are the commands, beside verbs that say so themselves, that change something and do not ask, as each can be undone by another.
var unasked = []string{"federate", "orphaning enable", "init", "join", "enable", "notify test"}

// settleFlags has every command refuse what is wrong with its command line alike, and hides --yes where nothing is asked. It
// returns the commands that ask.
func settleFlags(f *cli.Factory, of *cobra.Command, above string) (asking []string) {
	for _, cmd := range of.Commands() {
		name := strings.TrimSpace(above + " " + cmd.Name())
		if args := cmd.Args; args != nil {
			cmd.Args = func(cmd *cobra.Command, given []string) error { return cli.Usage(args(cmd, given)) }
		}
		if run := cmd.RunE; run != nil {
			cmd.RunE = func(cmd *cobra.Command, args []string) error {
				if err := f.Validate(); err != nil {
					return err
				}
				return run(cmd, args)
			}
		}
		if slices.Contains(unasked, name) {
			cli.Unasked(cmd)
		}
		if cli.Asks(cmd) {
			asking = append(asking, name)
		}
		asking = append(asking, settleFlags(f, cmd, name)...)
	}
	return asking
}

// refuseFlag refuses a command line whose flags cannot be read, with the flags that have nearly the name of an unknown one.
func refuseFlag(cmd *cobra.Command, err error) error {
	unknown, is := errors.AsType[*pflag.NotExistError](err)
	if !is || unknown.GetSpecifiedShortnames() != "" {
		return cli.Usage(err)
	}
	var names []string
	cmd.Flags().VisitAll(func(flag *pflag.Flag) {
		if !flag.Hidden {
			names = append(names, flag.Name)
		}
	})
	hint := fmt.Sprintf("; %s --help lists them all", cmd.CommandPath())
	if near := base.Nearest(unknown.GetSpecifiedName(), names); len(near) > 0 {
		hint = "; do you mean --" + strings.Join(near, " or --") + "?"
	}
	return cli.Usagef("%w%s", err, hint)
}

// NewRoot returns `kubectl fleet`.
func NewRoot(f *cli.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	root := &cobra.Command{
		Use:   "kubectl-fleet",
		Short: "See and steer what a fleet of clusters runs",
		Long: `See and steer what a fleet of clusters runs, from the hub's kubeconfig.

Objects are named as kubectl does: run/NAME, placement/NAME or crp/NAME, rp/NAME with -n; a name alone is enough
where only one object has it.

Commands exit with 0 if all is well, with 1 if something failed, the rollout they watched included, and with 2 if the
command line is wrong; status has more. Every command that changes something takes --dry-run, which shows what would be
done. These ask first, and --yes answers:
%s.

To complete commands and names in your shell, put this program on your PATH a second time as
kubectl_complete-fleet (a link is enough): kubectl, once its own completion is set up, then completes
'kubectl fleet' too. For the name kubectl-fleet itself, see 'kubectl fleet completion --help'.`,
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl fleet"},
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          base.RefuseUnknown,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetIn(streams.In)
	root.SetOut(streams.Out)
	root.SetErr(streams.ErrOut)
	root.AddGroup(
		&cobra.Group{ID: groupLook, Title: "See what is going on:"},
		&cobra.Group{ID: steer.GroupRollout, Title: "Steer rollouts:"},
		&cobra.Group{ID: steer.GroupMembers, Title: "Manage members:"},
		&cobra.Group{ID: groupHub, Title: "Manage the hub:"},
	)
	for group, of := range commandsByGroup() {
		for _, make := range of {
			cmd := make(f, streams)
			cmd.GroupID = group
			root.AddCommand(cmd)
		}
	}
	for _, verb := range steer.Verbs() {
		if verb.Group != "" {
			root.AddCommand(newVerb(f, streams, verb))
		}
	}
	root.Version = version.Number()
	root.AddCommand(NewVersion(f, streams))
	f.AddFlags(root.PersistentFlags())
	shortenUsage(root)
	fitHelp(root, streams)
	root.SetFlagErrorFunc(refuseFlag)
	asking := settleFlags(f, root, "")
	slices.Sort(asking)
	root.Long = fmt.Sprintf(root.Long, wrapWords(strings.Join(asking, ", "), helpWidth))
	return root
}
