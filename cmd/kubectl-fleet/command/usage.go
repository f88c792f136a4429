package command

import (
	"strings"

	"github.com/spf13/cobra"
)

// globalFlags is the section of cobra's usage that repeats, below every command, the two dozen flags all of them have.
const globalFlags = `{{if .HasAvailableInheritedFlags}}

Global Flags:
{{.InheritedFlags.FlagUsages | trimTrailingWhitespaces}}{{end}}`

// pointer stands in its place.
const pointer = `{{if .HasAvailableInheritedFlags}}

Flags of all commands, such as --context, --kubeconfig and --namespace: kubectl fleet options{{end}}`

// ownFlags is the section of a command's own flags, which the root has only because the others inherit them.
const ownFlags = `{{if .HasAvailableLocalFlags}}

Flags:`

// shortenUsage has commands point to the flags they share, as kubectl's do.
func shortenUsage(root *cobra.Command) {
	template := strings.Replace(root.UsageTemplate(), globalFlags, pointer, 1)
	root.SetUsageTemplate(strings.Replace(template, ownFlags, strings.Replace(ownFlags, ".HasAvailableLocalFlags",
		"and .HasAvailableLocalFlags .HasParent", 1), 1))
	root.AddCommand(&cobra.Command{
		Use:                   "options",
		Short:                 "List the flags that all commands have",
		DisableFlagsInUseLine: true,
		Args:                  cobra.NoArgs,
		Run: func(cmd *cobra.Command, _ []string) {
			cmd.Println("Every command takes these flags:")
			cmd.Println()
			cmd.Print(cmd.InheritedFlags().FlagUsagesWrapped(widthOf(cmd.OutOrStdout()) - 1))
		},
	})
}
