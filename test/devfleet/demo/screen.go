package demo

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"
)

// tone is how much a line of the live view wants to be noticed.
type tone int

const (
	toneQuiet tone = iota // work goes on
	toneGood              // something is finished
	toneWait              // the story waits for a cluster or for the user
	toneBad               // something went wrong
)

// The few colours; every other text has the terminal's own.
const (
	escBold   = "\x1b[1m"
	escDim    = "\x1b[2m"
	escRed    = "\x1b[31m"
	escGreen  = "\x1b[32m"
	escYellow = "\x1b[33m"
	escReset  = "\x1b[0m"
)

const clockFormat = "15:04:05.0"

// screen prints for people: whole lines with the time of day, in any order of callers.
type screen struct {
	mu     sync.Mutex
	out    io.Writer
	colour bool
	now    func() time.Time

	// held has the live lines that arrive while a command runs: they follow its answer.
	held    []string
	holding bool
}

func newScreen(out io.Writer) *screen {
	s := &screen{out: out, now: time.Now}
	if file, ok := out.(*os.File); ok {
		s.colour = term.IsTerminal(int(file.Fd())) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	}
	return s
}

// plain prints a line without a time.
func (s *screen) plain(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprintln(s.out, strings.TrimRight(fmt.Sprintf(format, args...), " "))
}

// title begins an act.
func (s *screen) title(title, about string) {
	const width = 100
	rule := strings.Repeat("─", max(3, width-len([]rune(title))-4))
	s.plain("\n%s", s.paint(escBold, "── "+title+" "+rule))
	for line := range strings.Lines(about) {
		s.plain("   %s", strings.TrimRight(line, "\n"))
	}
	if about != "" {
		s.plain("")
	}
}

// hold keeps live lines back until release, so that a command and its answer stay together.
func (s *screen) hold() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.holding = true
}

// release prints what was held back.
func (s *screen) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.held {
		fmt.Fprintln(s.out, l)
	}
	s.held = nil
	s.holding = false
}

// stamped prints a line with the time of day.
func (s *screen) stamped(format string, args ...any) {
	s.plain("%s  %s", s.dim(s.now().Format(clockFormat)), fmt.Sprintf(format, args...))
}

// did prints what the demo does to the fleet.
func (s *screen) did(format string, args ...any) { s.stamped("→ "+format, args...) }

// holds prints a statement that was checked.
func (s *screen) holds(statement string) { s.stamped("%s %s", s.good("✓"), statement) }

// output prints what a command answered.
func (s *screen) output(text string) {
	for line := range strings.Lines(strings.TrimRight(text, "\n")) {
		s.plain("              %s", s.dim(strings.TrimRight(line, "\n")))
	}
}

// live prints a line of the live view.
func (s *screen) live(l line) {
	escape := map[tone]string{toneGood: escGreen, toneWait: escYellow, toneBad: escRed}[l.tone]
	text := fmt.Sprintf("%s    %-10s %-10s %s", s.dim(s.now().Format(clockFormat)), l.stage, l.cluster, s.paint(escape, l.text))
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.holding {
		s.held = append(s.held, text)
		return
	}
	fmt.Fprintln(s.out, text)
}

func (s *screen) good(text string) string { return s.paint(escGreen, text) }

func (s *screen) dim(text string) string { return s.paint(escDim, text) }

func (s *screen) paint(escape, text string) string {
	if !s.colour || escape == "" || text == "" {
		return text
	}
	return escape + text + escReset
}

// seconds writes how long something fast took.
func seconds(d time.Duration) string { return fmt.Sprintf("%.2f s", d.Seconds()) }
