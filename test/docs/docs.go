// Package docs reads the commands that documents print, with what they are said to print, so that a test can run them
// and compare. A block of language console is a session: a line that begins with "$ " is a command, with all lines
// that continue it (after a backslash, or up to the end of a here-document), and the lines below it are its output.
package docs

import (
	"bufio"
	"fmt"
	"regexp"
	"strings"
)

// Run are the documents whose commands a test runs on a fleet, as seen from the repository.
var Run = []string{"README.md", "deploy/docs/*.md"}

// Step is one command of a document.
type Step struct {
	// Line is where the command begins and Last where it ends, counted from 1.
	Line, Last int
	// Command is what a shell is given.
	Command string
	// Output is what the document says the command prints; empty where it does not say.
	Output []string
	// Skipped says why a test does not run the command. It is the text after "console not run:" in the first line of
	// the block.
	Skipped string
}

const (
	fence    = "```"
	language = "console"
	notRun   = "not run:"
	prompt   = "$ "
	// Gap stands for any number of lines of output.
	Gap = "..."
)

var hereDocument = regexp.MustCompile(`<<-?\s*['"]?([A-Za-z_]+)['"]?`)

// Parse returns the commands of a Markdown document in their order. It is an error if a block has output before its
// first command, or a command that never ends.
func Parse(document string) ([]Step, error) {
	r := reader{}
	lines := bufio.NewScanner(strings.NewReader(document))
	for number := 1; lines.Scan(); number++ {
		if err := r.line(number, lines.Text()); err != nil {
			return nil, err
		}
	}
	if r.inside || r.until != "" || r.continued {
		return nil, fmt.Errorf("the last block does not end")
	}
	return r.steps, lines.Err()
}

type reader struct {
	steps []Step
	// inside a fence, of a session or another.
	inside, session bool
	skipped         string
	// until ends a here-document, continued says that the command goes on in the next line.
	until     string
	continued bool
	first     int
}

func (r *reader) line(number int, text string) error {
	if trimmed := strings.TrimSpace(text); strings.HasPrefix(trimmed, fence) && r.until == "" {
		return r.fence(number, strings.TrimPrefix(trimmed, fence))
	}
	if !r.session {
		return nil
	}
	switch {
	case r.until != "" || r.continued:
		r.extend(number, text)
	case strings.HasPrefix(text, prompt):
		r.steps = append(r.steps, Step{Line: number, Skipped: r.skipped})
		r.extend(number, strings.TrimPrefix(text, prompt))
	case len(r.steps) == r.first:
		return fmt.Errorf("line %d: output before the first command: begin commands with %q", number, prompt)
	default:
		last := &r.steps[len(r.steps)-1]
		last.Output = append(last.Output, text)
	}
	return nil
}

func (r *reader) fence(number int, info string) error {
	if r.inside {
		if r.continued {
			return fmt.Errorf("line %d: the command above goes on after the block", number)
		}
		r.inside = false
		r.session = false
		return nil
	}
	r.inside, r.first = true, len(r.steps)
	info, isSession := strings.CutPrefix(info, language)
	r.session = isSession
	r.skipped = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(info), notRun))
	return nil
}

// extend adds a line to the last command and sees whether it is complete.
func (r *reader) extend(number int, text string) {
	last := &r.steps[len(r.steps)-1]
	last.Last = number
	if last.Command != "" {
		last.Command += "\n"
	}
	last.Command += text
	switch found := hereDocument.FindStringSubmatch(text); {
	case r.until != "":
		if strings.TrimSpace(text) == r.until {
			r.until = ""
		}
	case found != nil:
		r.until = found[1]
	}
	r.continued = r.until == "" && strings.HasSuffix(text, `\`)
}

// Fill returns the document with an output, by the last line of its command, where none was printed.
func Fill(document string, outputs map[int]string) string {
	var out strings.Builder
	number := 0
	for line := range strings.Lines(document) {
		number++
		out.WriteString(line)
		if text := strings.TrimRight(outputs[number], "\n"); text != "" {
			out.WriteString(text + "\n")
		}
	}
	return out.String()
}

// varying are parts of an output that differ each time: times, ages, identities.
var varying = []*regexp.Regexp{
	regexp.MustCompile(`\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?( ?(Z|UTC|[+-]\d\d:?\d\d))?`),
	regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`),
	regexp.MustCompile(`\b\d\d:\d\d(:\d\d)?Z?\b`),
	regexp.MustCompile(`\b(\d+(\.\d+)?(d|h|m|s|ms|µs))+\b`),
	regexp.MustCompile(`\b[0-9a-f]{8,64}\b`),
}

// Canonical returns a line of output without what differs each time, and with single spaces.
func Canonical(line string) string {
	for _, v := range varying {
		line = v.ReplaceAllString(line, "~")
	}
	return strings.Join(strings.Fields(line), " ")
}

// Matches reports whether the output is as the document prints it. A line of "..." stands for any lines, "..." within a
// line for any text; times, ages and identities may differ, and so may the width of columns.
func Matches(printed []string, output string) bool {
	want := canonical(printed)
	if len(want) == 0 {
		return true
	}
	return match(want, canonical(strings.Split(output, "\n")))
}

func canonical(lines []string) []string {
	var out []string
	for _, line := range lines {
		if line = Canonical(line); line != "" {
			out = append(out, line)
		}
	}
	return out
}

// match is the usual match with one wildcard, which is a line.
func match(want, got []string) bool {
	if len(want) == 0 {
		return len(got) == 0
	}
	if want[0] == Gap {
		for i := range len(got) + 1 {
			if match(want[1:], got[i:]) {
				return true
			}
		}
		return false
	}
	return len(got) > 0 && matchLine(want[0], got[0]) && match(want[1:], got[1:])
}

func matchLine(want, got string) bool {
	parts := strings.Split(want, Gap)
	if len(parts) == 1 {
		return want == got
	}
	for i, part := range parts {
		part = strings.TrimSpace(part)
		at := strings.Index(got, part)
		if at < 0 || (i == 0 && at > 0) || (i == len(parts)-1 && !strings.HasSuffix(got, part)) {
			return false
		}
		got = got[at+len(part):]
		if i == len(parts)-2 && strings.TrimSpace(parts[i+1]) == "" {
			return true
		}
	}
	return true
}
