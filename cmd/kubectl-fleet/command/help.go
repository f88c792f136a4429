package command

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/cli"
)

const (
	// plainWidth is how wide help is where no terminal says its width.
	plainWidth = 80
	// helpWidth is how wide help is at most: longer lines are hard to read.
	helpWidth = 118
	// narrowest is how narrow help is at least.
	narrowest = 40
)

// widthOf returns how wide help is on a stream.
func widthOf(stream any) int {
	width, _ := cli.Size(stream)
	if width == 0 {
		return plainWidth
	}
	return max(narrowest, min(width, helpWidth))
}

// fitHelp has the help of all commands fit the terminal. Commands of examples keep their lines, so that they can be copied.
func fitHelp(root *cobra.Command, streams genericiooptions.IOStreams) {
	width := widthOf(streams.Out)
	// The library wraps flags below their descriptions, and keeps to a width only that is somewhat larger.
	wrapped := fmt.Sprintf(".LocalFlags.FlagUsagesWrapped %d", width-1)
	root.SetUsageTemplate(strings.ReplaceAll(root.UsageTemplate(), ".LocalFlags.FlagUsages", wrapped))
	plain := root.HelpFunc()
	root.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		out := cmd.OutOrStdout()
		long := cmd.Long
		text := &bytes.Buffer{}
		cmd.Long = reflowParagraphs(long, width)
		cmd.SetOut(text)
		plain(cmd, args)
		cmd.SetOut(out)
		cmd.Long = long
		cli.Printf(out, "%s", wrapHelp(text.String(), width))
	})
}

// reflowParagraphs writes the paragraphs of a text anew in lines of a width. Lines that are indented stay lines.
func reflowParagraphs(text string, width int) string {
	paragraphs := strings.Split(strings.TrimSpace(text), "\n\n")
	for i, paragraph := range paragraphs {
		if !strings.HasPrefix(paragraph, " ") && !strings.Contains(paragraph, "\n ") && !strings.Contains(paragraph, "\n\t") {
			paragraphs[i] = wrapWords(paragraph, width)
		}
	}
	return strings.Join(paragraphs, "\n\n")
}

// listed is the beginning of a line of a list of commands, up to what is said of one.
var listed = regexp.MustCompile(`^ +\S+ {2,}`)

// wrapHelp breaks the lines of a help that are too long, below where their text begins.
func wrapHelp(text string, width int) string {
	var lines []string
	examples := false
	for line := range strings.SplitSeq(text, "\n") {
		if line != "" && line[0] != ' ' {
			examples = line == "Examples:"
		}
		command := examples && !strings.HasPrefix(strings.TrimSpace(line), "#")
		if command || utf8.RuneCountInString(line) <= width {
			lines = append(lines, line)
			continue
		}
		indent := len(line) - len(strings.TrimLeft(line, " "))
		if item := listed.FindString(line); item != "" {
			indent = len(item)
		}
		head := line[:indent]
		rest := line[indent:]
		begin := "" // of the lines below
		if strings.HasPrefix(rest, "# ") {
			begin = "# "
		}
		for i, part := range strings.Split(wrapWords(rest, width-indent-len(begin)), "\n") {
			if i > 0 {
				head = strings.Repeat(" ", indent) + begin
			}
			lines = append(lines, head+part)
		}
	}
	return strings.Join(lines, "\n")
}

// wrapWords breaks a text into lines.
func wrapWords(text string, width int) string {
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(text) {
		if line != "" && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > width {
			lines, line = append(lines, line), ""
		}
		line = strings.TrimSpace(line + " " + word)
	}
	return strings.Join(append(lines, line), "\n")
}
