// Package objectdiff compares two sets of objects and shows what differs line by line, with what is secret masked. It is
// pure.
package objectdiff

import (
	"fmt"
	"slices"
	"strings"
)

// context is how many lines are shown around a change.
const context = 3

// maxEdits bounds the effort of finding a short difference; beyond it, everything between the common beginning and end
// is shown as replaced.
const maxEdits = 2000

// edit is a line of a difference: kept (' '), removed ('-') or added ('+').
type edit struct {
	op   byte
	line string
}

// Lines compares two texts. It returns nothing if they are the same, else the changed lines with a few around each, in
// the form of unified diffs.
func Lines(before, after string) []string {
	if before == after {
		return nil
	}
	return hunks(edits(split(before), split(after)))
}

func split(text string) []string {
	text = strings.TrimSuffix(text, "\n")
	if text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}

// edits is the shortest way from one text to the other, with what both begin and end with set aside first.
func edits(a, b []string) []edit {
	start := 0
	for start < len(a) && start < len(b) && a[start] == b[start] {
		start++
	}
	end := 0
	for end < len(a)-start && end < len(b)-start && a[len(a)-1-end] == b[len(b)-1-end] {
		end++
	}
	all := same(a[:start])
	all = append(all, shortest(a[start:len(a)-end], b[start:len(b)-end])...)
	return append(all, same(a[len(a)-end:])...)
}

func same(lines []string) []edit {
	all := make([]edit, 0, len(lines))
	for _, line := range lines {
		all = append(all, edit{' ', line})
	}
	return all
}

// shortest finds the shortest difference by Myers' algorithm: it follows, for more and more edits d, the farthest point
// reached on every diagonal k, and then goes the way back.
func shortest(a, b []string) []edit {
	var trace []map[int]int
	reached := map[int]int{1: 0}
	for d := 0; d <= min(len(a)+len(b), maxEdits); d++ {
		next := make(map[int]int, d+1)
		trace = append(trace, reached)
		for k := -d; k <= d; k += 2 {
			x := farthest(reached, k, d)
			for x < len(a) && x-k < len(b) && a[x] == b[x-k] {
				x++
			}
			next[k] = x
			if x >= len(a) && x-k >= len(b) {
				return back(trace, a, b)
			}
		}
		reached = next
	}
	return replaced(a, b)
}

// farthest is where diagonal k is entered with edit d: from the diagonal above by adding, or below by removing.
func farthest(reached map[int]int, k, d int) int {
	if k == -d || k != d && reached[k-1] < reached[k+1] {
		return reached[k+1]
	}
	return reached[k-1] + 1
}

// back goes the way back from the end and notes every step.
func back(trace []map[int]int, a, b []string) []edit {
	var reversed []edit
	x, y := len(a), len(b)
	for d, reached := range slices.Backward(trace) {
		k := x - y
		previous := k - 1
		if k == -d || k != d && reached[k-1] < reached[k+1] {
			previous = k + 1
		}
		fromX := reached[previous]
		fromY := fromX - previous
		for x > fromX && y > fromY && x > 0 && y > 0 {
			x, y = x-1, y-1
			reversed = append(reversed, edit{' ', a[x]})
		}
		if d == 0 {
			break
		}
		if x == fromX {
			y--
			reversed = append(reversed, edit{'+', b[y]})
		} else {
			x--
			reversed = append(reversed, edit{'-', a[x]})
		}
	}
	slices.Reverse(reversed)
	return reversed
}

func replaced(a, b []string) []edit {
	all := make([]edit, 0, len(a)+len(b))
	for _, line := range a {
		all = append(all, edit{'-', line})
	}
	for _, line := range b {
		all = append(all, edit{'+', line})
	}
	return all
}

// hunks leaves out what is far from any change.
func hunks(all []edit) []string {
	near := make([]bool, len(all))
	for i, e := range all {
		if e.op == ' ' {
			continue
		}
		for j := max(0, i-context); j <= min(len(all)-1, i+context); j++ {
			near[j] = true
		}
	}
	var lines []string
	left, right := 1, 1
	for i, e := range all {
		if near[i] && (i == 0 || !near[i-1]) {
			lines = append(lines, fmt.Sprintf("@@ -%d +%d @@", left, right))
		}
		if near[i] {
			lines = append(lines, string(e.op)+e.line)
		}
		if e.op != '+' {
			left++
		}
		if e.op != '-' {
			right++
		}
	}
	return lines
}
