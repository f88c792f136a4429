// Package live keeps a picture on a terminal up to date without flicker, or reports its changes line by line where there is no
// terminal.
package live

import (
	"bytes"
	"fmt"
	"io"
	"slices"

	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/tree"
)

// Screen draws lines over those it drew before. It rewrites only the lines that differ, in one write, and never clears
// what it is about to draw again: so nothing flickers.
type Screen struct {
	// Out is the terminal.
	Out io.Writer
	// Size returns its width and height; a height of 0 is unknown.
	Size func() (width, height int)

	drawn []string
	width int
}

// Draw shows lines in place of those shown before.
func (s *Screen) Draw(lines []string) error {
	width, height := s.Size()
	lines = fitHeight(lines, height)
	if width != s.width {
		// The terminal has wrapped what is there in its own way: begin anew below.
		s.drawn = nil
		s.width = width
	}
	var frame bytes.Buffer
	if len(s.drawn) > 0 {
		fmt.Fprintf(&frame, "\x1b[%dA\r", len(s.drawn))
	}
	for i, line := range lines {
		switch {
		case i >= len(s.drawn):
			frame.WriteString(line + "\x1b[K\n")
		case line == s.drawn[i]:
			frame.WriteString("\n")
		default:
			frame.WriteString("\r" + line + "\x1b[K\n")
		}
	}
	if len(lines) < len(s.drawn) {
		frame.WriteString("\x1b[J")
	}
	if slices.Equal(s.drawn, lines) {
		return nil
	}
	s.drawn = lines
	if _, err := s.Out.Write(frame.Bytes()); err != nil {
		return fmt.Errorf("drawing: %w", err)
	}
	return nil
}

// fitHeight leaves out what does not fit: a line that has scrolled away cannot be rewritten.
func fitHeight(lines []string, height int) []string {
	room := height - 1 // the cursor is below the last line
	if height <= 0 || len(lines) <= room {
		return lines
	}
	if room < 2 {
		return lines[:max(room, 1)]
	}
	left := len(lines) - (room - 1)
	return append(append([]string{}, lines[:room-1]...), fmt.Sprintf("… %d more lines: make the window higher", left))
}

// Events reports changes in a tree, a line each, for output that is no terminal.
type Events struct {
	before map[string]string
}

// Changes returns a line for every node that is at something else than before: of the root, stages, gates and steps all
// of it, of clusters how they end, and the objects that fail.
func (e *Events) Changes(root tree.Node) []string {
	now := map[string]string{}
	var lines []string
	e.collect("", root, now, &lines)
	e.before = now
	return lines
}

func (e *Events) collect(above string, node tree.Node, now map[string]string, lines *[]string) {
	name := above + node.Name
	if said := say(node); said != "" {
		if _, twice := now[name]; !twice && e.before[name] != said {
			*lines = append(*lines, name+"  "+said)
		}
		now[name] = said
	}
	for _, child := range node.Children {
		e.collect(name+" › ", child, now, lines)
	}
}

// say returns what is worth a line about a node.
func say(node tree.Node) string {
	quiet := node.State == "Pending" || node.State == ""
	if quiet || node.Kind == "cluster" && node.State == "Running" {
		return ""
	}
	text := string(node.State)
	if node.Count != nil && node.Kind != "cluster" {
		text += fmt.Sprintf("  %d/%d", node.Count.Over(), node.Count.Total)
	}
	if node.Detail != "" {
		text += "  " + node.Detail
	}
	return text
}
