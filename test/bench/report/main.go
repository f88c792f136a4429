// Command report shows the results that the benches keep: two of them side by side, or all of one as the page of the guides.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
)

const usage = `usage:
  report compare OLD NEW      the medians of both files and how many times as much the new one is
  report page RESULTS         the tables of deploy/docs/figures-all.md
  report write PAGE RESULTS   the plots and the rows that matter in the page, between its markers, all rows in the page beside it
                              (page-all.md), the drawings in the folder images, and the results beside the page (page.jsonl)
  report quick RESULTS        the rows that matter with their ratios, and which target is missed
  report strict RESULTS       the same, and a missed target is an error`

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	switch {
	case len(args) == 3 && args[0] == "compare":
		before, err := readFile(args[1])
		if err != nil {
			return err
		}
		after, err := readFile(args[2])
		if err != nil {
			return err
		}
		return writeComparison(out, summarize(before), summarize(after))
	case len(args) == 2 && args[0] == "page":
		all, err := readFile(args[1])
		if err != nil {
			return err
		}
		_, err = io.WriteString(out, table(all))
		return err
	case len(args) == 2 && (args[0] == "quick" || args[0] == "strict"):
		all, err := readFile(args[1])
		if err != nil {
			return err
		}
		return quick(out, all, args[0] == "strict")
	case len(args) == 3 && args[0] == "write":
		return writePage(args[1], args[2])
	}
	return errors.New(usage)
}

func readFile(path string) ([]result, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open results: %w", err)
	}
	defer file.Close()
	all, err := readResults(file)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return all, nil
}

// writeComparison prints the figures of both side by side; one that only one of them has is printed with a dash for the other.
func writeComparison(out io.Writer, before, after []summary) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "FIGURE\tOLD\tNEW\tNEW/OLD\tSPREAD OF OLD\tSPREAD OF NEW")
	olds := map[string]summary{}
	for _, s := range before {
		olds[s.figure] = s
	}
	for _, s := range after {
		old, both := olds[s.figure]
		delete(olds, s.figure)
		if !both {
			fmt.Fprintf(w, "%s\t-\t%s\t-\t-\t%s\n", s.figure, amount(s.median, s.unit), s.spread())
			continue
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", s.figure, amount(old.median, old.unit), amount(s.median, s.unit),
			ratio(old.median, s.median), old.spread(), s.spread())
	}
	for _, s := range before {
		if _, left := olds[s.figure]; left {
			fmt.Fprintf(w, "%s\t%s\t-\t-\t%s\t-\n", s.figure, amount(s.median, s.unit), s.spread())
		}
	}
	return w.Flush()
}

func ratio(old, recent float64) string {
	if old == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f", recent/old)
}

// table returns the tables of all rows, in Markdown: one for each commit and machine, that with most rows first.
func table(all []result) string {
	var b strings.Builder
	for i, g := range groups(all) {
		if i > 0 {
			b.WriteString("\n")
		}
		fmt.Fprintf(&b, "## Commit %s, %s\n\nMachine: %s.\n\n", g.commit, g.days(), g.machine)
		b.WriteString("| figure | target | median | spread | KubeFleet | load | command |\n|---|---|---|---|---|---|---|\n")
		for _, s := range summarize(g.results) {
			fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s | `%s` |\n",
				s.figure, s.goal(), amount(s.median, s.unit), s.spread(), beside[s.figure].text, s.load, strings.ReplaceAll(s.command, "|", `\|`))
		}
	}
	return b.String()
}
