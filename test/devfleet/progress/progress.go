// Package progress shows named steps with the time each takes: as lines that update in place on a terminal, as plain
// lines elsewhere. It writes to the given writer and starts one goroutine while steps are active.
package progress

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"time"

	"golang.org/x/term"
	"k8s.io/utils/clock"
)

// done marks what has ended well.
const done = "✓"

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
	display *Display
	// whole is the step that this one is a part of, if it is one.
	whole    *Step
	name     string
	remark   func() string
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
	return d.begin(nil, fmt.Sprintf(format, args...))
}

// Part starts showing a part of a step. Where lines are plain, the step reminds for its parts, and shows its remark when one
// of them has ended well.
func (s *Step) Part(format string, args ...any) *Step {
	return s.display.begin(s, fmt.Sprintf(format, args...))
}

func (d *Display) begin(whole *Step, name string) *Step {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.clock.Now()
	s := &Step{display: d, whole: whole, name: name, started: now, reminded: now}
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
	note := fmt.Sprintf(format, args...)
	s.Remark(func() string { return note })
}

// Remark adds a remark to the running step that is asked for whenever it is shown, such as how long the step may still take.
// The function must not use the display.
func (s *Step) Remark(remark func() string) {
	s.display.mu.Lock()
	defer s.display.mu.Unlock()
	s.remark = remark
}

// Drop ends the step without a line: what it came to is said elsewhere.
func (s *Step) Drop() {
	s.display.mu.Lock()
	defer s.display.mu.Unlock()
	s.display.forget(s)
	if s.display.terminal {
		s.display.redraw()
	}
}

// End ends the step by the outcome of its work and returns that outcome.
func (s *Step) End(err error) error {
	switch {
	case err == nil:
		s.end(done, "")
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
	d.forget(s)
	d.printAbove(fmt.Sprintf("  %s %s%s %s", mark, s.name, word, Elapsed(d.clock.Since(s.started))))
	if mark == done && s.whole != nil && !d.terminal && s.whole.shownRemark() != "" {
		s.whole.remind()
	}
}

// forget takes a step from those that are shown, and ends the ticking with the last one.
func (d *Display) forget(s *Step) {
	d.active = slices.DeleteFunc(d.active, func(other *Step) bool { return other == s })
	if len(d.active) == 0 && d.stop != nil {
		close(d.stop)
		d.stop = nil
	}
}

// remind prints a plain line that says how far a running step is.
func (s *Step) remind() {
	s.reminded = s.display.clock.Now()
	fmt.Fprintf(s.display.out, "  … %s: still going, %s%s\n", s.name, Elapsed(s.display.clock.Since(s.started)), s.shownRemark())
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
		if s.whole == nil && d.clock.Since(s.reminded) >= remindEvery {
			s.remind()
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
		line := fmt.Sprintf("  … %s %s%s", s.name, Elapsed(d.clock.Since(s.started)), s.shownRemark())
		fmt.Fprintln(d.out, truncateLine(line, d.width))
		d.drawn++
	}
}

func (s *Step) shownRemark() string {
	if s.remark == nil {
		return ""
	}
	if remark := s.remark(); remark != "" {
		return " (" + remark + ")"
	}
	return ""
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
