package docs

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Checks says, for each program whose printed commands are read by a test where no test runs them, which test that is. What is
// printed of other programs is read as a shell reads it, and no more: they are not of this repository.
var Checks = map[string]string{
	"make":          "test/docs: make knows target and variables, bash reads what it would run",
	"go":            "test/docs: go knows verb and flags, packages are there, -run names a test",
	"devfleet":      "test/devfleet: the verb is there, with these flags",
	"kubectl-fleet": "cmd/kubectl-fleet/command: the verb is there, with these flags",
}

// Printed is a text of the repository that a reader may copy into a shell.
type Printed struct {
	// Where is the file, as seen from the repository, and the line.
	Where string
	// Folder is where it is to be run.
	Folder string
	// Text is what a shell is given.
	Text string
	// Run says that a test runs it, on a fleet.
	Run bool
	// Told says that it is in running text, where other words may follow.
	Told bool
}

// Call is one command of a text: its words, without assignments before it.
type Call struct {
	Printed
	// Program is that of the repository or of the machine, and Words are its arguments. kubectl fleet and go run ./test/devfleet are
	// the programs kubectl-fleet and devfleet.
	Program string
	Words   []string
}

// AllPrinted returns what the repository prints for people to type: in blocks and spans of documents, in the Makefile, in comments,
// helps and advice of programs, in charts and samples.
func AllPrinted(repository string) ([]Printed, error) {
	run := map[string]bool{}
	for _, pattern := range Run {
		paths, err := filepath.Glob(filepath.Join(repository, pattern))
		if err != nil {
			return nil, fmt.Errorf("pattern %s: %w", pattern, err)
		}
		for _, path := range paths {
			run[path] = true
		}
	}
	var all []Printed
	err := filepath.WalkDir(repository, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := entry.Name()
		if entry.IsDir() {
			if unread(name) && path != repository {
				return filepath.SkipDir
			}
			return nil
		}
		read := readerOf(name, path)
		if read == nil {
			return nil
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		where, err := filepath.Rel(repository, path)
		if err != nil {
			return err
		}
		found, err := read(string(content))
		if err != nil {
			return fmt.Errorf("%s: %w", where, err)
		}
		for _, p := range found {
			p.Folder = filepath.Dir(where)
			p.Where = where + ":" + p.Where
			p.Run = p.Run && run[path]
			all = append(all, p)
		}
		return nil
	})
	return all, err
}

// unread reports whether a folder has nothing that people read: it is hidden, built, or has what a test compares.
func unread(name string) bool {
	return strings.HasPrefix(name, ".") && name != ".github" && name != ".ci" || name == "bin" || name == "testdata" || name == "recorded"
}

// readerOf returns what finds commands in a file; nil if it prints none.
func readerOf(name, path string) func(string) ([]Printed, error) {
	switch {
	case name == "Makefile":
		return inMakefile
	case strings.HasSuffix(name, ".md"):
		return inDocument
	case strings.HasSuffix(name, "_test.go"):
		// What tests have in strings is for them to judge.
		return func(content string) ([]Printed, error) { return inText(content, inComment), nil }
	case slices.Contains([]string{".go", ".yaml", ".txt", ".tpl", ".html", ".sh"}, filepath.Ext(name)),
		filepath.Base(filepath.Dir(path)) == ".ci", name == "Dockerfile":
		return func(content string) ([]Printed, error) { return inText(content, nil), nil }
	}
	return nil
}

var (
	inComment = regexp.MustCompile(`^\s*//`)
	// free are commands in text: where they begin is told from other words, and they end with the sentence, the string or the line.
	free = regexp.MustCompile(`(?:(?:\x60|\brun:? |\bas in:? |\bwith |//\t|\bis )((?:[A-Z_]+=\S+ )*make [a-z]+(?:-[a-z]+)*(?: [A-Z_]+=(?:'[^']*'|[^\s,;)"'\x60\\]+))*(?: [a-z]+(?:-[a-z]+)*\x60)?))` +
		`|((?:cd \S+ && )?(?:[A-Z_]+=\S+ )*go (?:test|run) [-./][^";,()|&\\\n\x60]*)` +
		`|(kubectl fleet [a-z](?:--?[a-z-]+ "[^"\n]*"|[^";:,()|&>\\\n\x60])*)`)
	// assigned is a variable of make in the text of its target.
	assigned  = regexp.MustCompile(`[A-Z_]+=(?:'[^']*'|[^\s,;)]+)(?: [A-Z_]+=(?:'[^']*'|[^\s,;)]+))*`)
	described = regexp.MustCompile(`^([a-z][a-z-]*):.*?## (.*)$`)
	span      = regexp.MustCompile("`([^`\n]+)`")
	// spanned is how a span of code begins that is a command.
	spanned = regexp.MustCompile(`^(?:[A-Z_]+=\S+ )*(?:kubectl|make|go (?:run|test|build|get|mod|tool|generate|vet)|devfleet|temporal|helm|docker|cosign|apt-get|git|curl)\s+\S`)
)

// inText finds commands in lines of text; only is what lines must match.
func inText(content string, only *regexp.Regexp) []Printed {
	var found []Printed
	number := 0
	for line := range strings.Lines(content) {
		number++
		named := strings.Contains(line, "make ") || strings.Contains(line, "go ") || strings.Contains(line, "kubectl fleet ")
		if !named || only != nil && !only.MatchString(line) {
			continue
		}
		for _, match := range free.FindAllStringSubmatch(line, -1) {
			text := match[1] + match[2] + match[3]
			found = append(found, Printed{Where: fmt.Sprint(number), Text: sentence(text), Told: true})
		}
	}
	return found
}

// sentenceEnd is a full stop; the dot of a folder stands alone.
var sentenceEnd = regexp.MustCompile(`\S\. `)

// sentence returns a text up to the end of its first sentence, without what is filled in later.
func sentence(text string) string {
	if end := sentenceEnd.FindStringIndex(text); end != nil {
		text = text[:end[0]+1]
	}
	text, _, _ = strings.Cut(text, "#")
	text, _, _ = strings.Cut(text, "{{")
	text = strings.NewReplacer("%s", "X", "%d", "1", "%q", "X", "%v", "X").Replace(text)
	if count := strings.Count(text, "'"); count%2 == 1 {
		text = text[:strings.LastIndex(text, "'")]
	}
	return strings.TrimRight(strings.TrimSpace(text), ".`")
}

// inMakefile finds targets, what their texts say about variables, and commands in comments and messages. What its recipes run is
// for make to say.
func inMakefile(content string) ([]Printed, error) {
	found := slices.DeleteFunc(inText(content, nil), func(p Printed) bool { return !strings.Contains(p.Text, "make ") })
	number := 0
	for line := range strings.Lines(content) {
		number++
		match := described.FindStringSubmatch(strings.TrimSuffix(line, "\n"))
		if match == nil {
			continue
		}
		found = append(found, Printed{Where: fmt.Sprint(number), Text: "make " + match[1]})
		for _, variables := range assigned.FindAllString(match[2], -1) {
			found = append(found, Printed{Where: fmt.Sprint(number), Text: "make " + match[1] + " " + variables})
		}
	}
	return found, nil
}

// inDocument finds the commands of sessions, of other blocks and of spans.
func inDocument(content string) ([]Printed, error) {
	steps, err := Parse(content)
	if err != nil {
		return nil, err
	}
	var found []Printed
	for _, step := range steps {
		found = append(found, Printed{Where: fmt.Sprint(step.Line), Text: step.Command, Run: step.Skipped == ""})
	}
	number := 0
	block := ""
	for line := range strings.Lines(content) {
		number++
		line = strings.TrimRight(line, "\n")
		if info, isFence := strings.CutPrefix(strings.TrimSpace(line), fence); isFence {
			if block == "" {
				block = "block " + info
			} else {
				block = ""
			}
			continue
		}
		switch {
		case strings.HasPrefix(block, "block "+language):
		case block != "" && typed.MatchString(line) && !strings.Contains(line, "[flags]"):
			found = append(found, Printed{Where: fmt.Sprint(number), Text: strings.TrimPrefix(strings.TrimSpace(line), prompt)})
		case block == "":
			for _, match := range span.FindAllStringSubmatch(line, -1) {
				if spanned.MatchString(match[1]) {
					found = append(found, Printed{Where: fmt.Sprint(number), Text: strings.ReplaceAll(match[1], `\|`, "|")})
				}
			}
		}
	}
	return found, nil
}

// typed is how a line begins that readers may copy into a shell.
var typed = regexp.MustCompile(`^\s*(\$ |(?:sudo )?(?:kubectl|helm|kind|docker|make|temporal|temporal-sql-tool|temporal-server|cosign|curl|flux|argocd|git|go (?:run|get|test|build))\s)`)

// placeholder is what a reader replaces, such as <run>. A shell would read a file.
var placeholder = regexp.MustCompile(`<[a-z][A-Za-z /'-]*>`)

// Calls returns the commands of a text, those in loops, pipes and conditions included. It is an error if no shell reads it.
func (p Printed) Calls() ([]Call, error) {
	file, err := syntax.NewParser().Parse(strings.NewReader(placeholder.ReplaceAllString(p.Text, "X")), "")
	if err != nil {
		return nil, fmt.Errorf("%s: no shell reads %q: %w", p.Where, p.Text, err)
	}
	var calls []Call
	folder := p.Folder
	syntax.Walk(file, func(node syntax.Node) bool {
		expression, isCall := node.(*syntax.CallExpr)
		if !isCall || len(expression.Args) == 0 {
			return true
		}
		words := make([]string, 0, len(expression.Args))
		for _, word := range expression.Args {
			words = append(words, given(word))
		}
		if words[0] == "cd" && len(words) == 2 {
			folder = words[1]
		}
		call := Call{Printed: p, Program: words[0], Words: words[1:]}
		call.Folder = folder
		calls = append(calls, call.ofRepository())
		return true
	})
	return calls, nil
}

// ofRepository names the programs of the repository, however they are called.
func (c Call) ofRepository() Call {
	switch {
	case c.Program == "kubectl" && len(c.Words) > 0 && c.Words[0] == "fleet":
		c.Program = "kubectl-fleet"
		c.Words = c.Words[1:]
	case c.Program == "go" && len(c.Words) > 1 && c.Words[0] == "run" && c.Words[1] == "./test/devfleet":
		c.Program = "devfleet"
		c.Words = c.Words[2:]
	}
	return c
}

// given returns a word as a program gets it; what a shell fills in is X.
func given(word *syntax.Word) string {
	var text strings.Builder
	var write func(parts []syntax.WordPart)
	write = func(parts []syntax.WordPart) {
		for _, part := range parts {
			switch part := part.(type) {
			case *syntax.Lit:
				text.WriteString(strings.ReplaceAll(part.Value, `\`, ""))
			case *syntax.SglQuoted:
				text.WriteString(part.Value)
			case *syntax.DblQuoted:
				write(part.Parts)
			default:
				text.WriteString("X")
			}
		}
	}
	write(word.Parts)
	return text.String()
}

// Made returns what make would run for a call of it, nothing of which is run but make itself.
func (c Call) Made(ctx context.Context, repository string) (Printed, error) {
	command := exec.CommandContext(ctx, "make", append([]string{"-n"}, c.Words...)...)
	command.Dir = repository
	// Variables of a make that has started this would count, too.
	command.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME")}
	var failure bytes.Buffer
	command.Stderr = &failure
	out, err := command.Output()
	if err != nil {
		return Printed{}, fmt.Errorf("%s: make -n of %q: %w\n%s", c.Where, c.Text, err, failure.String())
	}
	return Printed{Where: c.Where + ": make " + strings.Join(c.Words, " "), Folder: ".", Text: string(out)}, nil
}
