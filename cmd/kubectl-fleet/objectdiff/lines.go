// Package objectdiff compares two sets of objects and shows what differs line by line, with what is secret masked. It is
// pure.
package objectdiff

import (
	"fmt"
	"strings"

	"github.com/aymanbagabas/go-udiff"
)

// context is how many lines are shown around a change.
const context = 3

// Lines compares two texts. It returns nothing if they are the same, else the changed lines with a few around each, in
// the form of unified diffs.
func Lines(before, after string) []string { return unifiedDiff(before, after, context) }

func unifiedDiff(before, after string, around int) []string {
	before, after = endLine(before), endLine(after)
	diff, err := udiff.ToUnifiedDiff("", "", before, udiff.Lines(before, after), around)
	if err != nil {
		panic(err) // the edits are those of this text
	}
	signs := map[udiff.OpKind]string{udiff.Delete: "-", udiff.Insert: "+", udiff.Equal: " "}
	var lines []string
	for _, hunk := range diff.Hunks {
		lines = append(lines, fmt.Sprintf("@@ -%d +%d @@", hunk.FromLine, hunk.ToLine))
		for _, line := range hunk.Lines {
			lines = append(lines, signs[line.Kind]+strings.TrimSuffix(line.Content, "\n"))
		}
	}
	return lines
}

// endLine ends the last line of a text.
func endLine(text string) string {
	if text == "" || strings.HasSuffix(text, "\n") {
		return text
	}
	return text + "\n"
}
