package main

import (
	"errors"
	"fmt"
	"os"
	"strings"
)

// begin and end are the lines of a page between which its table is written.
const (
	begin = "<!-- figures: written by make figures -->"
	end   = "<!-- end of figures -->"
)

// beside is what KubeFleet takes for the same, by figure: measured beside ours on two cores with simulated members, or published
// for a large set-up in its performance report of 2026-04-07. The page says more about both.
var beside = map[string]string{
	"1 run(s) of 100 clusters, creating: p90":     "96.5 s measured, 96 s published",
	"1 run(s) of 100 clusters, changing: p90":     "96.5 s measured, 96 s published",
	"20 run(s) of 100 clusters, creating: p90":    "323 s measured",
	"20 run(s) of 100 clusters, changing: p90":    "323 s measured",
	"100 run(s) of 100 clusters, creating: p90":   "135 s published",
	"restart with 10000 bindings at rest: ready":  "675 s published, with 100,000 bindings",
	"restart with 100000 bindings at rest: ready": "675 s published",
}

// writePage replaces the table of a page by that of results, and keeps the results beside the page, as page.jsonl for page.md. It
// writes neither unless both are in order.
func writePage(path, results string) error {
	all, err := readFile(results)
	if err != nil {
		return err
	}
	if len(all) == 0 {
		return fmt.Errorf("%s has no results", results)
	}
	page, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read the page: %w", err)
	}
	written, err := replaceTable(string(page), table(all))
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	kept, err := os.ReadFile(results)
	if err != nil {
		return fmt.Errorf("read the results: %w", err)
	}
	if err := os.WriteFile(strings.TrimSuffix(path, ".md")+".jsonl", kept, 0o644); err != nil {
		return fmt.Errorf("keep the results: %w", err)
	}
	if err := os.WriteFile(path, []byte(written), 0o644); err != nil {
		return fmt.Errorf("write the page: %w", err)
	}
	return nil
}

// replaceTable returns a page with a table between its markers.
func replaceTable(page, table string) (string, error) {
	before, rest, found := strings.Cut(page, begin+"\n")
	_, after, closed := strings.Cut(rest, end+"\n")
	if !found || !closed {
		return "", errors.New("the page needs a line " + begin + " and, after it, a line " + end)
	}
	return before + begin + "\n\n" + table + "\n" + end + "\n" + after, nil
}
