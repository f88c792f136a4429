package live

import (
	"context"
	"fmt"
	"io"
	"time"

	"k8s.io/utils/clock"

	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/tree"
)

const (
	// Frame is the least time between two pictures: there are at most five a second.
	Frame = 200 * time.Millisecond
	// Beat is how often a picture is drawn for the sake of its times alone.
	Beat = time.Second
)

// Picture is what to show, and whether there is more to come.
type Picture struct {
	Root tree.Node
	// Note is a line below, such as a warning.
	Note string
	// Over says that this is the last one.
	Over bool
}

// Loop shows pictures until the last one.
type Loop struct {
	Clock clock.WithTicker
	// Changed receives when there may be something new to show.
	Changed <-chan struct{}
	// Picture makes the picture of now.
	Picture func() Picture
	// Show shows it.
	Show func(Picture) error
}

// Run shows a picture at once, then after every change and every second, until one is the last or the context ends.
func (l *Loop) Run(ctx context.Context) error {
	beat := l.Clock.NewTicker(Beat)
	defer beat.Stop()
	for {
		picture := l.Picture()
		if err := l.Show(picture); err != nil || picture.Over {
			return err
		}
		frame := l.Clock.NewTimer(Frame)
		select {
		case <-ctx.Done():
			frame.Stop()
			return ctx.Err()
		case <-frame.C():
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-l.Changed:
		case <-beat.C():
		}
	}
}

// OnScreen shows pictures on a terminal.
func OnScreen(screen *Screen, now func() time.Time, colours bool) func(Picture) error {
	return func(p Picture) error {
		width, _ := screen.Size()
		lines := tree.Lines(p.Root, tree.Style{Now: now(), Width: width, Colours: colours})
		if p.Note != "" {
			lines = append(lines, tree.Cut(tree.Printable(p.Note), width, width > 0))
		}
		return screen.Draw(lines)
	}
}

// AsLines reports what changes from picture to picture.
func AsLines(out io.Writer, now func() time.Time) func(Picture) error {
	events := &Events{}
	note := ""
	return func(p Picture) error {
		lines := events.Changes(p.Root)
		if p.Note != note {
			note = p.Note
			lines = append(lines, note)
		}
		for _, line := range lines {
			if line == "" {
				continue
			}
			if _, err := fmt.Fprintf(out, "%s  %s\n", now().Format(time.TimeOnly), tree.Printable(line)); err != nil {
				return fmt.Errorf("printing: %w", err)
			}
		}
		return nil
	}
}
