// Command clireference writes the reference of `kubectl fleet` from its commands, as Markdown: a page for each verb, and README.md
// with the list. The argument is the folder, of which it removes the pages of verbs that are gone.
//
// cobra/doc repeats the flags of all commands on each page, leaves out the groups that `kubectl fleet help` has, and needs two more
// modules (go-md2man, blackfriday).
package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/cli"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/command"
)

const (
	generated    = "<!-- Written by go generate ./cmd/kubectl-fleet: change the commands, not this file. -->\n\n"
	introduction = generated + "# Commands of kubectl fleet\n\n" +
		"What `kubectl fleet help` says of every command. [See and steer a fleet with kubectl fleet](../kubectl-fleet.md) shows them in use.\n\n"
	// list is the page that links to the others, and extension that of all pages.
	list, extension = "README.md", ".md"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: clireference FOLDER")
		os.Exit(2)
	}
	if err := writePages(os.Args[1], makePages()); err != nil {
		fmt.Fprintln(os.Stderr, "clireference:", err)
		os.Exit(1)
	}
}

// writePages makes the Markdown files of a folder these pages.
func writePages(folder string, pages map[string]string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil { //nolint:gosec // documents
		return fmt.Errorf("making the folder of the reference: %w", err)
	}
	present, err := filepath.Glob(filepath.Join(folder, "*"+extension))
	if err != nil {
		return fmt.Errorf("listing the pages of %s: %w", folder, err)
	}
	for _, path := range present {
		if _, stays := pages[filepath.Base(path)]; !stays {
			if err := os.Remove(path); err != nil {
				return fmt.Errorf("removing the page of a command that is gone: %w", err)
			}
		}
	}
	for name, text := range pages {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil { //nolint:gosec // a document
			return fmt.Errorf("writing a page of the reference: %w", err)
		}
	}
	return nil
}

// makePages returns the text of each page by its name.
func makePages() map[string]string {
	root := command.NewRoot(cli.NewFactory(), genericiooptions.IOStreams{In: strings.NewReader(""), Out: io.Discard, ErrOut: io.Discard})
	// The default would be where the one who generates has it.
	root.PersistentFlags().Lookup("cache-dir").DefValue = "$HOME/.kube/cache"
	out := &strings.Builder{}
	out.WriteString(introduction)
	writeParagraphs(out, root.Long)
	writeIndex(out, root)
	out.WriteString("## Flags of all commands\n\n")
	writeBlock(out, root.PersistentFlags().FlagUsages())
	found := map[string]string{list: endWithBreak(out)}
	for _, group := range root.Groups() {
		for _, cmd := range commandsOf(root, group.ID) {
			page := &strings.Builder{}
			page.WriteString(generated)
			writeCommand(page, cmd, "#")
			page.WriteString("[Flags of all commands](" + list + "#flags-of-all-commands)\n")
			found[cmd.Name()+extension] = endWithBreak(page)
		}
	}
	return found
}

// endWithBreak returns a text that ends with one line break.
func endWithBreak(out *strings.Builder) string { return strings.TrimRight(out.String(), "\n") + "\n" }

// commandsOf returns the commands of a group by name.
func commandsOf(root *cobra.Command, group string) []*cobra.Command {
	var found []*cobra.Command
	for _, cmd := range root.Commands() {
		if cmd.GroupID == group && !cmd.Hidden {
			found = append(found, cmd)
		}
	}
	slices.SortFunc(found, func(a, b *cobra.Command) int { return strings.Compare(a.Name(), b.Name()) })
	return found
}

func writeIndex(out *strings.Builder, root *cobra.Command) {
	out.WriteString("| | |\n|---|---|\n")
	for _, group := range root.Groups() {
		fmt.Fprintf(out, "| **%s** | |\n", strings.TrimSuffix(group.Title, ":"))
		for _, cmd := range commandsOf(root, group.ID) {
			fmt.Fprintf(out, "| [%s](%s) | %s |\n", cmd.Name(), cmd.Name()+extension, escapeMarkdown(cmd.Short))
		}
	}
	out.WriteString("\n")
}

// writeCommand writes a command under a heading of that level, and those below it.
func writeCommand(out *strings.Builder, cmd *cobra.Command, level string) {
	fmt.Fprintf(out, "%s %s\n\n", level, cmd.CommandPath())
	text := cmd.Long
	if text == "" {
		text = cmd.Short + "."
	}
	writeParagraphs(out, text)
	if cmd.Runnable() && !cmd.HasAvailableSubCommands() {
		usage := cmd.UseLine()
		if len(cmd.Aliases) > 0 {
			usage += "\n\nAlso called: " + strings.Join(cmd.Aliases, ", ")
		}
		writeBlock(out, usage)
	}
	writeTitled(out, "Examples", unindentExamples(cmd.Example))
	writeTitled(out, "Flags", cmd.LocalFlags().FlagUsages())
	for _, below := range cmd.Commands() {
		if below.IsAvailableCommand() {
			writeCommand(out, below, level+"#")
		}
	}
}

func writeParagraphs(out *strings.Builder, text string) {
	out.WriteString(escapeMarkdown(strings.TrimSpace(text)) + "\n\n")
}

// escapeMarkdown keeps what Markdown would take for its own.
func escapeMarkdown(text string) string {
	return strings.NewReplacer("<", "&lt;", "*", `\*`, "|", `\|`).Replace(text)
}

// writeTitled writes text as it is under a title, if there is any.
func writeTitled(out *strings.Builder, title, text string) {
	if strings.Trim(text, "\n") != "" {
		out.WriteString("**" + title + "**\n\n")
		writeBlock(out, text)
	}
}

// writeBlock writes text as it is, if there is any.
func writeBlock(out *strings.Builder, text string) {
	if text = strings.Trim(text, "\n"); text == "" {
		return
	}
	out.WriteString("```text\n")
	for line := range strings.Lines(text) {
		out.WriteString(strings.TrimRight(line, " \n") + "\n")
	}
	out.WriteString("```\n\n")
}

// unindentExamples takes away what examples are indented by in the help.
func unindentExamples(text string) string {
	return strings.ReplaceAll(strings.TrimPrefix(text, "  "), "\n  ", "\n")
}
