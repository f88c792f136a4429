package cli

import (
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/spf13/pflag"
	"golang.org/x/term"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/tree"
)

const (
	// quiet is how long a command may be silent.
	quiet = 2 * time.Second
	// tick is how often the sign of life changes.
	tick = time.Second
	// narrow is the width taken for a terminal that does not tell its own.
	narrow = 120
)

// IsTerminal reports whether a stream is a terminal that can rewrite lines.
func IsTerminal(stream any) bool {
	file, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(file.Fd())) && os.Getenv("TERM") != "dumb" //nolint:gosec // a file descriptor is a small number
}

// Size returns the width and height of a terminal, and zeros for other streams.
func Size(stream any) (width, height int) {
	if !IsTerminal(stream) {
		return 0, 0
	}
	width, height, err := term.GetSize(int(stream.(*os.File).Fd())) //nolint:gosec // as above
	if err != nil || width <= 0 {
		return narrow, 0
	}
	return width, height
}

// Values of --color.
const (
	colourAuto   = "auto"
	colourAlways = "always"
	colourNever  = "never"
)

// addColourFlag adds --color.
func (f *Factory) addColourFlag(flags *pflag.FlagSet) {
	flags.StringVar(&f.colour, "color", colourAuto, "When to use colours: auto (on terminals, unless NO_COLOR is set), always or never.")
}

// validateColour refuses values there are not.
func (f *Factory) validateColour() error {
	if f.colour != "" && !slices.Contains([]string{colourAuto, colourAlways, colourNever}, f.colour) {
		return Usagef("--color %q is not known: use auto, always or never", f.colour)
	}
	return nil
}

// Colours reports whether to use colours on a stream: on terminals, unless the user wants it otherwise.
func (f *Factory) Colours(stream any) bool {
	return f.colour == colourAlways || f.colour != colourNever && IsTerminal(stream) && os.Getenv("NO_COLOR") == ""
}

// Printf formats as fmt.Fprintf does, for a stream that may be a terminal: what others have written into the texts is shown,
// and no terminal acts on it.
func Printf(out io.Writer, format string, args ...any) {
	_, _ = io.WriteString(out, tree.Printable(fmt.Sprintf(format, args...))) // a command whose output is closed ends by its signal
}

// PrintStyled prints a line that has colours. All other texts in it have been made printable.
func PrintStyled(out io.Writer, line string) {
	_, _ = io.WriteString(out, line+"\n") // as above
}

// Patiently runs work and, if it takes longer than two seconds, says what it is busy with: on a terminal in a line that
// goes away again, elsewhere once.
func (f *Factory) Patiently(streams genericiooptions.IOStreams, what string, work func() error) error {
	done := make(chan error, 1)
	go func() { done <- work() }()
	wait := f.Clock.NewTimer(quiet)
	defer wait.Stop()
	select {
	case err := <-done:
		return err
	case <-wait.C():
	}
	if !IsTerminal(streams.ErrOut) {
		Printf(streams.ErrOut, "%s …\n", what)
		return <-done
	}
	return f.showSpinner(streams.ErrOut, what, done)
}

// showSpinner shows what takes so long, and for how long by now.
func (f *Factory) showSpinner(out io.Writer, what string, done <-chan error) error {
	ticker := f.Clock.NewTicker(tick)
	defer ticker.Stop()
	defer fmt.Fprint(out, "\r\x1b[K")
	for seconds := int(quiet / time.Second); ; seconds++ {
		fmt.Fprintf(out, "\r\x1b[K%s … %ds", tree.Printable(what), seconds)
		select {
		case err := <-done:
			return err
		case <-ticker.C():
		}
	}
}

// Painter returns what makes texts printable, and colours them if it is to.
func Painter(colours bool) func(colour, text string) string {
	return func(colour, text string) string {
		text = tree.Printable(text)
		if !colours {
			return text
		}
		return "\x1b[" + colour + "m" + text + "\x1b[0m"
	}
}

// Colours of differences.
const (
	Red   = "31"
	Green = "32"
	Cyan  = "36"
)
