package cli

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// ErrDeclined means that the user was asked and said no.
var ErrDeclined = errors.New("nothing was changed: the answer was no")

// yesFlag is the flag that answers in advance.
const yesFlag = "yes"

// Values of --dry-run.
const (
	dryRunNone   = "none"
	dryRunClient = "client"
	dryRunServer = "server"
)

// Consent is how a command that changes something gets the user's consent: it asks, unless --yes is given, and with
// --dry-run it changes nothing.
//
// A command calls Validate first, works out what it would do, prints that, calls Ask, and writes through Client. What
// it has done it says through Done.
type Consent struct {
	// Yes is the answer given beforehand.
	Yes bool
	// DryRun is none; client to send nothing; or server to have the API server check everything and store nothing.
	DryRun string
	// Output is how the objects are printed that a dry run would write; without a format they are not.
	Output Output
}

// AddFlags adds --yes and --dry-run to a command.
func (c *Consent) AddFlags(cmd *cobra.Command) {
	cmd.Flags().BoolVarP(&c.Yes, yesFlag, "y", false, "Do it without asking.")
	cmd.Flags().StringVar(&c.DryRun, "dry-run", dryRunNone,
		"Change nothing. client: only say what would be done; server: also let the hub check it. Without a value: client.")
	cmd.Flags().Lookup("dry-run").NoOptDefVal = dryRunClient
	_ = cmd.RegisterFlagCompletionFunc("dry-run", cobra.FixedCompletions([]string{dryRunNone, dryRunClient, dryRunServer}, cobra.ShellCompDirectiveNoFileComp)) // fails only for a flag that is not there
}

// AddOutputFlag adds -o to a command that does nothing but write objects to the hub.
func (c *Consent) AddOutputFlag(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&c.Output.Format, "output", "o", "",
		"With --dry-run, print the objects that would be written, as yaml or json. What would be deleted is not printed.")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{FormatYAML, FormatJSON}, cobra.ShellCompDirectiveNoFileComp)) // fails only for a flag that is not there
}

// Unasked hides --yes of a command that does not ask: scripts may give it to every command that changes something.
func Unasked(cmd *cobra.Command) {
	flag := cmd.Flags().Lookup(yesFlag)
	flag.Hidden = true
	flag.Usage = "This command does not ask."
}

// Asks reports whether a command asks before it changes something.
func Asks(cmd *cobra.Command) bool {
	flag := cmd.Flags().Lookup(yesFlag)
	return flag != nil && !flag.Hidden
}

// Validate refuses values there are not.
func (c *Consent) Validate() error {
	switch c.DryRun {
	case "", dryRunNone, dryRunClient, dryRunServer:
	default:
		return Usagef("--dry-run %q is not known: use none, client or server", c.DryRun)
	}
	switch {
	case !c.Shows():
		return nil
	case c.Output.Format != FormatYAML && c.Output.Format != FormatJSON:
		return Usagef("--output %q is not a format of an object: use yaml or json", c.Output.Format)
	case !c.Dry():
		return Usagef("--output prints what would be written: give --dry-run with it")
	}
	return nil
}

// Dry reports whether nothing is to be changed.
func (c *Consent) Dry() bool { return c.DryRun == dryRunClient || c.DryRun == dryRunServer }

// Shows reports whether the objects are printed that would be written.
func (c *Consent) Shows() bool { return c.Output.Format != "" }

// Sends reports whether writes are made, be it only to be checked by the API server or to be shown. A command that does not send skips them.
func (c *Consent) Sends() bool { return c.DryRun != dryRunClient || c.Shows() }

// Ask asks a question that yes answers with consent, such as "Remove member-3 from the fleet?". It does not ask on a
// dry run or if the answer was given beforehand. Without a terminal it fails.
func (c *Consent) Ask(streams genericiooptions.IOStreams, question string) error {
	if c.Dry() || c.Yes {
		return nil
	}
	Printf(streams.ErrOut, "%s [y/N] ", question)
	line, err := bufio.NewReader(streams.In).ReadString('\n')
	answer := strings.ToLower(strings.TrimSpace(line))
	switch {
	case answer == "y" || answer == "yes":
		return nil
	case errors.Is(err, io.EOF) && answer == "":
		Printf(streams.ErrOut, "\n")
		return errors.New("nothing was changed: there is no terminal to ask on; give --yes to do it, or --dry-run to see what would be done")
	case err != nil && !errors.Is(err, io.EOF):
		return fmt.Errorf("reading the answer: %w", err)
	default:
		return ErrDeclined
	}
}

// AskOnTerminal asks as Ask does, but only where a terminal is: without one it goes on.
func (c *Consent) AskOnTerminal(streams genericiooptions.IOStreams, question string) error {
	if !IsTerminal(streams.In) {
		return nil
	}
	return c.Ask(streams, question)
}

// Done says what was done, such as "run/web stopped", and that it was not if this is a dry run. Beside objects it goes to the
// standard error.
func (c *Consent) Done(streams genericiooptions.IOStreams, format string, args ...any) {
	suffix := ""
	switch c.DryRun {
	case dryRunClient:
		suffix = " (dry run)"
	case dryRunServer:
		suffix = " (server dry run)"
	}
	out := streams.Out
	if c.Shows() {
		out = streams.ErrOut
	}
	Printf(out, "%s%s\n", fmt.Sprintf(format, args...), suffix)
}
