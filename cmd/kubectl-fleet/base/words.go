package base

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/cli"
)

// Farthest is in how many letters a word may differ from one that is suggested for it, as cobra has it where it suggests by itself.
const Farthest = 2

// RefuseUnknown refuses a command that there is not, with those that have nearly its name.
func RefuseUnknown(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	cmd.SuggestionsMinimumDistance = Farthest
	hint := "; kubectl fleet --help lists them all"
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		hint = "; do you mean " + strings.Join(near, " or ") + "?"
	}
	return cli.Usagef("unknown command %q for %q%s", args[0], cmd.CommandPath(), hint)
}

// Nearest returns the words that a mistyped one may be meant for, found as cobra finds commands.
func Nearest(word string, among []string) []string {
	words := &cobra.Command{SuggestionsMinimumDistance: Farthest}
	for _, name := range among {
		words.AddCommand(&cobra.Command{Use: name, Run: func(*cobra.Command, []string) {}})
	}
	return words.SuggestionsFor(word)
}
