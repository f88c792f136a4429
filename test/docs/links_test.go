package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const guides = "deploy/docs"

// written are the files and folders with documents that people read.
var written = []string{"README.md", ".github", "deploy", "test/README.md"}

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	inline  = regexp.MustCompile("`[^`]*`")
	named   = regexp.MustCompile(`<a (?:id|name)="([^"]+)">`)
	heading = regexp.MustCompile(`^#+ +(.*)$`)
	dropped = regexp.MustCompile(`[^a-z0-9 _-]`)
)

func TestEveryGuideIsListed(t *testing.T) {
	content, err := os.ReadFile(filepath.Join(repository, guides, "README.md"))
	require.NoError(t, err)
	listed := map[string]bool{}
	for _, target := range links(string(content)) {
		listed[target] = true
	}
	paths, err := filepath.Glob(filepath.Join(repository, guides, "*"))
	require.NoError(t, err)
	require.Greater(t, len(paths), 20)
	for _, path := range paths {
		// What is not a document, such as the pictures, is for documents to refer to.
		if name := filepath.Base(path); filepath.Ext(name) == ".md" && name != "README.md" {
			assert.True(t, listed[name], "deploy/docs/README.md has no link to %s", name)
		}
	}
}

func TestLinksLeadSomewhere(t *testing.T) {
	found := 0
	for _, from := range documents(t) {
		content, err := os.ReadFile(from)
		require.NoError(t, err)
		for _, target := range links(string(content)) {
			if strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
				continue
			}
			found++
			assert.NoError(t, leads(from, target), "%s links to %s", from, target)
		}
	}
	assert.Greater(t, found, 100, "links found")
}

func TestLinksThatLeadNowhereAreFound(t *testing.T) {
	from := filepath.Join(t.TempDir(), "a.md")
	require.NoError(t, os.WriteFile(from, []byte("# What `it` does: all\n```\n# no heading\n```\n"), 0o600))
	assert.NoError(t, leads(from, "a.md"))
	assert.NoError(t, leads(from, "#what-it-does-all"))
	assert.Error(t, leads(from, "b.md"))
	assert.Error(t, leads(from, "a.md#what-it-does"))
	assert.Error(t, leads(from, "#no-heading"))
}

// documents are the paths of all that is written.
func documents(t *testing.T) []string {
	t.Helper()
	var paths []string
	for _, root := range written {
		require.NoError(t, filepath.WalkDir(filepath.Join(repository, root), func(path string, entry fs.DirEntry, err error) error {
			if err == nil && !entry.IsDir() && strings.HasSuffix(path, ".md") {
				paths = append(paths, path)
			}
			return err
		}))
	}
	return paths
}

// prose is a document without its blocks of code.
func prose(document string) []string {
	var lines []string
	inside := false
	for line := range strings.Lines(document) {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			inside = !inside
			continue
		}
		if !inside {
			lines = append(lines, strings.TrimRight(line, "\n"))
		}
	}
	return lines
}

func links(document string) []string {
	var targets []string
	for _, found := range link.FindAllStringSubmatch(inline.ReplaceAllString(strings.Join(prose(document), "\n"), ""), -1) {
		targets = append(targets, found[1])
	}
	return targets
}

// leads says what is wrong with a link of a document.
func leads(from, target string) error {
	path, anchor, _ := strings.Cut(target, "#")
	to := from
	if path != "" {
		to = filepath.Join(filepath.Dir(from), path)
	}
	if _, err := os.Stat(to); err != nil || anchor == "" {
		return err
	}
	content, err := os.ReadFile(to)
	if err != nil {
		return err
	}
	for _, line := range prose(string(content)) {
		if name := named.FindStringSubmatch(line); name != nil && name[1] == anchor {
			return nil
		}
		if title := heading.FindStringSubmatch(line); title != nil && anchorOf(title[1]) == anchor {
			return nil
		}
	}
	return &fs.PathError{Op: "finding heading", Path: target, Err: fs.ErrNotExist}
}

// anchorOf is what a heading is linked by, as on GitHub.
func anchorOf(title string) string {
	return strings.ReplaceAll(dropped.ReplaceAllString(strings.ToLower(title), ""), " ", "-")
}
