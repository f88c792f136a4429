package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// begin and end are the lines of a page between which what was measured is written.
const (
	begin = "<!-- figures: written by make figures -->"
	end   = "<!-- end of figures -->"
)

// images is the folder of drawings beside a page.
const images = "images"

// written is a file with what is to be in it.
type written struct {
	path    string
	content []byte
}

// writePage writes what was measured: into a page, page.md, the plots and the rows that matter; into the page beside it, page-all.md,
// all rows; the drawings into the folder of images; and the results beside the page, as page.jsonl. It writes nothing unless all of it
// is in order.
func writePage(path, results string) error {
	files, err := pages(path, results)
	if err != nil {
		return err
	}
	for _, file := range files {
		if err := os.MkdirAll(filepath.Dir(file.path), 0o755); err != nil {
			return fmt.Errorf("make the folder of the drawings: %w", err)
		}
		if err := os.WriteFile(file.path, file.content, 0o644); err != nil {
			return fmt.Errorf("write what was measured: %w", err)
		}
	}
	return nil
}

// pages returns all files that are written for a page.
func pages(path, results string) ([]written, error) {
	all, err := readFile(results)
	if err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s has no results", results)
	}
	kept, err := os.ReadFile(results)
	if err != nil {
		return nil, fmt.Errorf("read the results: %w", err)
	}
	name := strings.TrimSuffix(path, ".md")
	found := groups(all)
	drawn := drawings(found)
	files := []written{{name + ".jsonl", kept}}
	for _, one := range []struct{ path, content string }{{path, front(found, drawn)}, {name + "-all.md", table(all)}} {
		page, err := os.ReadFile(one.path)
		if err != nil {
			return nil, fmt.Errorf("read the page: %w", err)
		}
		content, err := replaceTable(string(page), one.content)
		if err != nil {
			return nil, fmt.Errorf("write %s: %w", one.path, err)
		}
		files = append(files, written{one.path, []byte(content)})
	}
	for _, d := range drawn {
		if d.absent != "" {
			continue
		}
		content, err := d.svg()
		if err != nil {
			return nil, fmt.Errorf("draw %s: %w", d.file, err)
		}
		files = append(files, written{filepath.Join(filepath.Dir(path), images, d.file+".svg"), content})
	}
	return files, nil
}

// front returns the plots, and the rows that matter of the page's commit.
func front(found []group, drawn []drawing) string {
	var b strings.Builder
	for _, d := range drawn {
		if d.absent != "" {
			fmt.Fprintf(&b, "*%s*: not drawn, %s.\n\n", d.title, d.absent)
			continue
		}
		fmt.Fprintf(&b, "![%s](%s/%s.svg)\n\n", d.text(), images, d.file)
	}
	own := found[0]
	fmt.Fprintf(&b, "## Ten rows that matter\n\nCommit %s, %s, on %s.\n\n%s", own.commit, own.days(), own.machine, matters(summarize(own.results)))
	return b.String()
}

// replaceTable returns a page with what is between its markers replaced.
func replaceTable(page, table string) (string, error) {
	before, rest, found := strings.Cut(page, begin+"\n")
	_, after, closed := strings.Cut(rest, end+"\n")
	if !found || !closed {
		return "", errors.New("the page needs a line " + begin + " and, after it, a line " + end)
	}
	return before + begin + "\n\n" + table + "\n" + end + "\n" + after, nil
}
