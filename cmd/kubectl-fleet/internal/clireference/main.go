// Command clireference writes the reference of `kubectl fleet` from its commands, as Markdown. The argument is the file
// it writes.
//
// cobra/doc writes a page for each command: it repeats the flags of all commands on each of 25 pages, links them to
// files, leaves out the groups that `kubectl fleet help` has, and needs two more modules (go-md2man, blackfriday).
package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/cli"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/command"
)

const introduction = `<!-- Written by go generate ./cmd/kubectl-fleet: change the commands, not this file. -->

# kubectl fleet: reference

What ` + "`kubectl fleet help`" + ` says of every command. [Steer a fleet with kubectl fleet](kubectl-fleet.md) shows them in use.

`

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: clireference FILE")
		os.Exit(2)
	}
	if err := os.WriteFile(os.Args[1], []byte(reference()), 0o644); err != nil { //nolint:gosec // a document
		fmt.Fprintln(os.Stderr, "clireference:", err)
		os.Exit(1)
	}
}

// reference is the whole document.
func reference() string {
	root := command.NewRoot(cli.NewFactory(), genericiooptions.IOStreams{In: strings.NewReader(""), Out: io.Discard, ErrOut: io.Discard})
	// The default would be where the one who generates has it.
	root.PersistentFlags().Lookup("cache-dir").DefValue = "$HOME/.kube/cache"
	out := &strings.Builder{}
	out.WriteString(introduction)
	paragraphs(out, root.Long)
	index(out, root)
	for _, group := range root.Groups() {
		for _, cmd := range of(root, group.ID) {
			describe(out, cmd)
		}
	}
	out.WriteString("## Flags of all commands\n\n")
	block(out, root.PersistentFlags().FlagUsages())
	return strings.TrimRight(out.String(), "\n") + "\n"
}

// of are the commands of a group by name.
func of(root *cobra.Command, group string) []*cobra.Command {
	var found []*cobra.Command
	for _, cmd := range root.Commands() {
		if cmd.GroupID == group && !cmd.Hidden {
			found = append(found, cmd)
		}
	}
	slices.SortFunc(found, func(a, b *cobra.Command) int { return strings.Compare(a.Name(), b.Name()) })
	return found
}

func index(out *strings.Builder, root *cobra.Command) {
	out.WriteString("| | |\n|---|---|\n")
	for _, group := range root.Groups() {
		fmt.Fprintf(out, "| **%s** | |\n", strings.TrimSuffix(group.Title, ":"))
		for _, cmd := range of(root, group.ID) {
			fmt.Fprintf(out, "| [%s](#%s) | %s |\n", cmd.Name(), anchor(cmd), escape(cmd.Short))
		}
	}
	out.WriteString("\n")
}

// describe writes a command and those below it.
func describe(out *strings.Builder, cmd *cobra.Command) {
	fmt.Fprintf(out, "## %s\n\n", title(cmd))
	text := cmd.Long
	if text == "" {
		text = cmd.Short + "."
	}
	paragraphs(out, text)
	if cmd.Runnable() && !cmd.HasAvailableSubCommands() {
		usage := cmd.UseLine()
		if len(cmd.Aliases) > 0 {
			usage += "\n\nAlso called: " + strings.Join(cmd.Aliases, ", ")
		}
		block(out, usage)
	}
	block(out, unindent(cmd.Example))
	block(out, cmd.LocalFlags().FlagUsages())
	for _, below := range cmd.Commands() {
		if below.IsAvailableCommand() {
			describe(out, below)
		}
	}
}

func title(cmd *cobra.Command) string {
	if cmd.Parent() == cmd.Root() {
		return cmd.Name()
	}
	return title(cmd.Parent()) + " " + cmd.Name()
}

func anchor(cmd *cobra.Command) string { return strings.ReplaceAll(title(cmd), " ", "-") }

func paragraphs(out *strings.Builder, text string) {
	out.WriteString(escape(strings.TrimSpace(text)) + "\n\n")
}

// escape keeps what Markdown would take for its own.
func escape(text string) string {
	return strings.NewReplacer("<", "&lt;", "*", `\*`, "|", `\|`).Replace(text)
}

// block writes text as it is, if there is any.
func block(out *strings.Builder, text string) {
	if text = strings.Trim(text, "\n"); text == "" {
		return
	}
	out.WriteString("```text\n")
	for line := range strings.Lines(text) {
		out.WriteString(strings.TrimRight(line, " \n") + "\n")
	}
	out.WriteString("```\n\n")
}

// unindent takes away what examples are indented by in the help.
func unindent(text string) string {
	return strings.ReplaceAll(strings.TrimPrefix(text, "  "), "\n  ", "\n")
}
