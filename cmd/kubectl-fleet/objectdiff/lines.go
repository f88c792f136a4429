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
	before = endLine(before)
	after = endLine(after)
	diff, err := udiff.ToUnifiedDiff("", "", before, udiff.Lines(before, after), around)
	if err != nil {
		panic(err) // the edits are those of this text
	}
	signs := map[udiff.OpKind]string{udiff.Delete: "-", udiff.Insert: "+", udiff.Equal: " "}
	var lines []string
	grown := 0 // by so many lines is the other text longer up to here: the library's ToLine leaves out lines between two changes of a hunk
	for _, hunk := range diff.Hunks {
		left := 0
		right := 0
		for _, line := range hunk.Lines {
			if line.Kind != udiff.Insert {
				left++
			}
			if line.Kind != udiff.Delete {
				right++
			}
		}
		lines = append(lines, fmt.Sprintf("@@ -%s +%s @@", formatSpan(hunk.FromLine, left), formatSpan(hunk.FromLine+grown, right)))
		grown += right - left
		for _, line := range hunk.Lines {
			lines = append(lines, signs[line.Kind]+strings.TrimSuffix(line.Content, "\n"))
		}
	}
	return lines
}

// formatSpan returns a range of lines as GNU diff writes it: the number of lines is left out where it is one, and one without lines begins at the
// line before it.
func formatSpan(first, lines int) string {
	switch lines {
	case 0:
		return fmt.Sprintf("%d,0", first-1)
	case 1:
		return fmt.Sprint(first)
	default:
		return fmt.Sprintf("%d,%d", first, lines)
	}
}

// endLine ends the last line of a text.
func endLine(text string) string {
	if text == "" || strings.HasSuffix(text, "\n") {
		return text
	}
	return text + "\n"
}
