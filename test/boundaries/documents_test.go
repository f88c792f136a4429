package boundaries

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// walk calls visit with the path of every file of the repository from its root, hidden and built folders left out.
func walk(t *testing.T, visit func(path string)) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		hidden := strings.HasPrefix(entry.Name(), ".") && relative != "."
		if entry.IsDir() && (hidden || relative == "bin" || entry.Name() == "testdata") {
			return filepath.SkipDir
		}
		if !entry.IsDir() {
			visit(relative)
		}
		return nil
	})
	require.NoError(t, err)
}

// TestEveryPackageSaysWhatItIsFor leaves out what generators write.
func TestEveryPackageSaysWhatItIsFor(t *testing.T) {
	documented := map[string]bool{}
	walk(t, func(path string) {
		if filepath.Ext(path) != ".go" || filepath.Dir(path) == "." {
			return
		}
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, path), nil, parser.PackageClauseOnly|parser.ParseComments)
		if !assert.NoError(t, err) || ast.IsGenerated(file) {
			return
		}
		folder := filepath.Dir(path)
		comment := strings.TrimSpace(file.Doc.Text())
		documented[folder] = documented[folder] || strings.HasPrefix(comment, "Package ") || strings.HasPrefix(comment, "Command ")
	})
	require.NotEmpty(t, documented)
	for folder, yes := range documented {
		assert.True(t, yes, "no file of %s has a comment that begins with Package or Command", folder)
	}
}

var (
	// link is the target of a Markdown link, its anchor left out.
	link = regexp.MustCompile(`\]\(([^)#\s]+)`)
	// span is any span of code; a pattern in it can look like a link.
	span = regexp.MustCompile("`[^`\n]*`")
	// code is a span of code that names a path below a folder of the root; braces and stars may stand for several.
	code = regexp.MustCompile("`((?:\\.ci|apis|activities|cmd|controllers|deploy|test|worker|workflows)(?:/[\\w.{},*-]+)*)/?`")
	// program is what a command line runs or applies from this repository.
	program = regexp.MustCompile(`(?:\./|-f )((?:cmd|deploy|test)/[\w./-]+\w)`)
	// choice is a part of a path such as {a,b}.
	choice = regexp.MustCompile(`\{([^}]*)\}`)
)

func TestPathsInDocumentsExist(t *testing.T) {
	named := 0
	walk(t, func(path string) {
		if filepath.Ext(path) != ".md" {
			return
		}
		text, err := os.ReadFile(filepath.Join(root, path))
		if !assert.NoError(t, err) {
			return
		}
		for _, target := range pathsIn(string(text), filepath.Dir(path)) {
			named++
			found, err := filepath.Glob(filepath.Join(root, target))
			assert.NoError(t, err)
			assert.NotEmpty(t, found, "%s names %s, which does not exist", path, target)
		}
	})
	assert.Positive(t, named, "no document names a path")
}

// pathsIn returns the paths, from the root, that a document in a folder names.
func pathsIn(text, folder string) []string {
	var paths []string
	for _, found := range link.FindAllStringSubmatch(span.ReplaceAllString(text, ""), -1) {
		if !strings.Contains(found[1], ":") {
			paths = append(paths, expand(filepath.Join(folder, found[1]))...)
		}
	}
	for _, pattern := range []*regexp.Regexp{code, program} {
		for _, found := range pattern.FindAllStringSubmatch(text, -1) {
			paths = append(paths, expand(found[1])...)
		}
	}
	return paths
}

// expand writes out the choices of a path, as a shell does.
func expand(path string) []string {
	found := choice.FindStringSubmatchIndex(path)
	if found == nil {
		return []string{path}
	}
	var paths []string
	for option := range strings.SplitSeq(path[found[2]:found[3]], ",") {
		paths = append(paths, expand(path[:found[0]]+option+path[found[1]:])...)
	}
	return paths
}

func TestPathsAreFoundInText(t *testing.T) {
	text := "Read [this](../README.md#top), [not that](https://example.com), `cmd/{a,b}/main.go`, `deploy/`, `[a](b)?` and `kubectl apply`; " +
		"run `go run ./test/devfleet demo` and `kubectl apply -f deploy/samples/x.yaml`."
	assert.Equal(t, []string{"README.md", "cmd/a/main.go", "cmd/b/main.go", "deploy", "test/devfleet", "deploy/samples/x.yaml"}, pathsIn(text, "test"))
}

func TestTheReadmeNamesEveryPackage(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "README.md"))
	require.NoError(t, err)
	named := pathsIn(string(text), ".")
	for _, folder := range []string{"activities", "controllers", "workflows"} {
		for _, f := range parseFolders(t, folder) {
			assert.Contains(t, named, f.folder)
		}
	}
}

// maxWords bounds the glossary: what needs more words than these should use others.
const maxWords = 25

func TestTheGlossaryIsShort(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "README.md"))
	require.NoError(t, err)
	_, words, found := strings.Cut(string(text), "\n### Words\n")
	require.True(t, found)
	words, _, _ = strings.Cut(words, "\n## ")
	rows := strings.Count(words, "\n| ") - 1 // less the header
	assert.Positive(t, rows)
	assert.LessOrEqual(t, rows, maxWords)
}
