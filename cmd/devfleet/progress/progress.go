// Package progress shows named steps with the time each takes: as lines that update in place on a terminal, as plain
// lines elsewhere. It writes to the given writer and starts one goroutine while steps are active.
package progress

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/term"
	"k8s.io/utils/clock"
)

const (
	redrawEvery = 150 * time.Millisecond
	// remindEvery is how often a plain log is told that a slow step is still running.
	remindEvery = 30 * time.Second
)

// Display shows steps; several may run at once.
type Display struct {
	out      io.Writer
	terminal bool
	width    int
	clock    clock.WithTicker

	mu     sync.Mutex
	active []*Step
	drawn  int
	stop   chan struct{}
}

// Step is one piece of work being shown.
type Step struct {
	display  *Display
	name     string
	note     string
	started  time.Time
	reminded time.Time
}

// New returns a display for the writer; a terminal gets lines that update in place.
func New(out io.Writer) *Display {
	d := &Display{out: out, clock: clock.RealClock{}}
	if file, ok := out.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		d.terminal = true
		d.width, _, _ = term.GetSize(int(file.Fd()))
	}
	return d
}

// newPlain returns a display of plain lines on a clock of the caller's.
func newPlain(out io.Writer, c clock.WithTicker) *Display {
	return &Display{out: out, clock: c}
}

// Line prints a finished line above the steps that are running.
func (d *Display) Line(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.printAbove(fmt.Sprintf(format, args...))
}

// Step starts showing a step.
func (d *Display) Step(format string, args ...any) *Step {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.clock.Now()
	s := &Step{display: d, name: fmt.Sprintf(format, args...), started: now, reminded: now}
	d.active = append(d.active, s)
	if !d.terminal {
		fmt.Fprintf(d.out, "  … %s\n", s.name)
	}
	if d.stop == nil {
		d.stop = make(chan struct{})
		go d.tick(d.stop)
	}
	return s
}

// Note adds a short remark to the running step, such as what it waits for.
func (s *Step) Note(format string, args ...any) {
	s.display.mu.Lock()
	defer s.display.mu.Unlock()
	s.note = fmt.Sprintf(format, args...)
}

// End ends the step by the outcome of its work and returns that outcome.
func (s *Step) End(err error) error {
	switch {
	case err == nil:
		s.end("✓", "")
	case errors.Is(err, context.Canceled):
		s.end("–", " ended after")
	default:
		s.end("✗", " failed after")
	}
	return err
}

func (s *Step) end(mark, word string) {
	d := s.display
	d.mu.Lock()
	defer d.mu.Unlock()
	for i, other := range d.active {
		if other == s {
			d.active = append(d.active[:i], d.active[i+1:]...)
			break
		}
	}
	d.printAbove(fmt.Sprintf("  %s %s%s %s", mark, s.name, word, Elapsed(d.clock.Since(s.started))))
	if len(d.active) == 0 && d.stop != nil {
		close(d.stop)
		d.stop = nil
	}
}

func (d *Display) tick(stop <-chan struct{}) {
	ticker := d.clock.NewTicker(redrawEvery)
	defer ticker.Stop()
	for {
		select {
		case <-stop:
			return
		case <-ticker.C():
			d.refresh()
		}
	}
}

func (d *Display) refresh() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.terminal {
		d.redraw()
		return
	}
	for _, s := range d.active {
		if d.clock.Since(s.reminded) >= remindEvery {
			s.reminded = d.clock.Now()
			fmt.Fprintf(d.out, "  … %s: still going, %s%s\n", s.name, Elapsed(d.clock.Since(s.started)), s.remark())
		}
	}
}

func (d *Display) printAbove(line string) {
	if !d.terminal {
		fmt.Fprintln(d.out, line)
		return
	}
	d.erase()
	fmt.Fprintln(d.out, line)
	d.redraw()
}

func (d *Display) erase() {
	if d.drawn > 0 {
		fmt.Fprintf(d.out, "\x1b[%dA\x1b[J", d.drawn)
		d.drawn = 0
	}
}

func (d *Display) redraw() {
	d.erase()
	for _, s := range d.active {
		line := fmt.Sprintf("  … %s %s%s", s.name, Elapsed(d.clock.Since(s.started)), s.remark())
		fmt.Fprintln(d.out, truncateLine(line, d.width))
		d.drawn++
	}
}

func (s *Step) remark() string {
	if s.note == "" {
		return ""
	}
	return " (" + s.note + ")"
}

// truncateLine keeps a line within the terminal's width: a wrapped line could not be erased.
func truncateLine(line string, width int) string {
	runes := []rune(line)
	if width < 2 || len(runes) < width {
		return line
	}
	return string(runes[:width-2]) + "…"
}

// Elapsed writes a duration the way the display shows it: 0.4s, 12s, 3m12s.
func Elapsed(d time.Duration) string {
	if d < 10*time.Second {
		return fmt.Sprintf("%.1fs", d.Seconds())
	}
	return d.Round(time.Second).String()
}
