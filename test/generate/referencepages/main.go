// Command referencepages divides the reference of the API, which crd-ref-docs writes as one file, into a page for each kind, and
// README.md with the list of them. The arguments are that file, which it removes, and the folder of the pages, of which it removes
// the pages of kinds that are gone.
//
// crd-ref-docs itself writes one file, or one for each API group.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

const (
	// list is the page that links to the others, and extension that of all pages.
	list, extension = "README.md", ".md"
	// kindMark begins the heading of a kind, and groupMark that of a group of kinds.
	kindMark, groupMark = "### ", "## "
)

var (
	heading = regexp.MustCompile(`^#+ (\S.*)$`)
	local   = regexp.MustCompile(`\]\(#([^)]+)\)`)
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: referencepages FILE FOLDER")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "referencepages:", err)
		os.Exit(1)
	}
}

func run(file, folder string) error {
	whole, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("reading the reference: %w", err)
	}
	pages := divide(string(whole))
	if err := os.RemoveAll(folder); err != nil {
		return fmt.Errorf("removing the earlier pages: %w", err)
	}
	if err := os.MkdirAll(folder, 0o755); err != nil { //nolint:gosec // documents
		return fmt.Errorf("making the folder of the pages: %w", err)
	}
	for name, text := range pages {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil { //nolint:gosec // a document
			return fmt.Errorf("writing a page: %w", err)
		}
	}
	return os.Remove(file)
}

// divide returns the text of each page by its name. Links lead to the page that has what they name.
func divide(whole string) map[string]string {
	texts := map[string]*strings.Builder{list: {}}
	homes := map[string]string{}
	at := list
	for line := range strings.Lines(whole) {
		kind, isKind := strings.CutPrefix(line, kindMark)
		switch {
		case isKind:
			at = strings.ToLower(strings.TrimSpace(kind)) + extension
			texts[at] = &strings.Builder{}
			line = "# " + kind
		case strings.HasPrefix(line, groupMark):
			at = list
		case at != list:
			// What a kind consists of comes two levels below the page's title otherwise.
			if strings.HasPrefix(line, "#### ") {
				line = line[len("##"):]
			}
		}
		if title := heading.FindStringSubmatch(strings.TrimSpace(line)); title != nil {
			homes[strings.ToLower(title[1])] = at
		}
		texts[at].WriteString(line)
	}
	pages := map[string]string{}
	for name, text := range texts {
		pages[name] = strings.TrimRight(linked(text.String(), name, homes), "\n") + "\n"
	}
	return pages
}

// linked returns the text of a page whose links lead to the pages that are the homes of what they name.
func linked(text, page string, homes map[string]string) string {
	return local.ReplaceAllStringFunc(text, func(link string) string {
		anchor := local.FindStringSubmatch(link)[1]
		home, known := homes[anchor]
		switch {
		case !known || home == page:
			return link
		case home == anchor+extension:
			return "](" + home + ")"
		default:
			return "](" + home + "#" + anchor + ")"
		}
	})
}
