package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// reference is the folder that is generated from the help of kubectl fleet: its examples are those of the commands.
const reference = "deploy/docs/cli/"

// TestEveryCommandIsRunOrSaysWhyNot fails if a document prints a command that no test runs and no mark excuses.
func TestEveryCommandIsRunOrSaysWhyNot(t *testing.T) {
	runs := map[string]bool{}
	for _, pattern := range Run {
		paths, err := filepath.Glob(filepath.Join(repository, pattern))
		require.NoError(t, err)
		require.NotEmpty(t, paths, pattern)
		for _, path := range paths {
			runs[path] = true
		}
	}
	for _, path := range documents(t) {
		if strings.Contains(filepath.ToSlash(path), reference) {
			continue
		}
		content, err := os.ReadFile(path)
		require.NoError(t, err)
		for _, problem := range unexcused(string(content), runs[path]) {
			assert.Fail(t, path+": "+problem)
		}
	}
}

// unexcused are the commands of a document that no test runs and no mark excuses.
func unexcused(content string, isRun bool) (found []string) {
	block := ""
	marked := false
	for line := range strings.Lines(content) {
		line = strings.TrimRight(line, "\n")
		if info, isFence := strings.CutPrefix(strings.TrimSpace(line), fence); isFence {
			if block != "" {
				block = ""
				marked = false
				continue
			}
			block = "block " + info
			_, why, _ := strings.Cut(info, notRun)
			marked = strings.HasPrefix(info, language) && (isRun || strings.TrimSpace(why) != "")
			if strings.HasSuffix(info, notRun) {
				found = append(found, "a mark without a reason: "+info)
			}
			continue
		}
		if block != "" && !marked && typed.MatchString(line) {
			found = append(found, "no test runs “"+strings.TrimSpace(line)+"”: begin the block with "+fence+language+", or with "+fence+language+" "+notRun+" and the reason")
			marked = true // one for each block
		}
	}
	return found
}

func TestCommandsThatNoTestRunsAreFound(t *testing.T) {
	for sentence, test := range map[string]struct {
		content string
		isRun   bool
		want    int
	}{
		"a session of a document that is run":         {"```console\n$ ls\n```\n", true, 0},
		"a session of one that is not":                {"```console\n$ ls\n```\n", false, 1},
		"an excuse":                                   {"```console not run: needs a cloud\n$ ls\n```\n", false, 0},
		"an excuse without a reason":                  {"```console not run:\n$ ls\n```\n", true, 1},
		"a command in a block of another language":    {"```sh\nkubectl get pods\n```\n", true, 1},
		"a command in a block without a language":     {"```\n$ ls\n```\n", true, 1},
		"a manifest":                                  {"```yaml\nkind: A\n```\n", false, 0},
		"two commands of one block are one complaint": {"```sh\nkubectl get pods\nkubectl get nodes\n```\nkubectl is a program\n", true, 1},
	} {
		t.Run(sentence, func(t *testing.T) {
			assert.Len(t, unexcused(test.content, test.isRun), test.want)
		})
	}
}

// That the first page can be followed is for TestDocuments of test/integration, which runs it and prints how long that took; this is that
// there is a staged run to its end on it.
func TestTheFirstPageLeadsToAFinishedStagedRun(t *testing.T) {
	content, err := os.ReadFile(filepath.Join(repository, "README.md"))
	require.NoError(t, err)
	steps, err := Parse(string(content))
	require.NoError(t, err)
	finished := slices.IndexFunc(steps, func(s Step) bool {
		return s.Skipped == "" && strings.Contains(s.Command, "--for=condition=Succeeded csur/")
	})
	require.Positive(t, finished)
	assert.True(t, slices.ContainsFunc(steps[:finished], func(s Step) bool {
		return s.Skipped == "" && strings.HasPrefix(s.Command, "kubectl fleet approve ")
	}))
}

// apiVersion is a version of the placement API in a manifest.
var apiVersion = regexp.MustCompile(`placement\.kubernetes-fleet\.io/v1\w*`)

// The samples have KubeFleet's manifests as KubeFleet prints them, in whatever version; guides have one.
func TestGuidesHaveOneVersionOfTheAPI(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join(repository, guides, "*.md"))
	require.NoError(t, err)
	found := 0
	for _, path := range paths {
		content, err := os.ReadFile(path)
		require.NoError(t, err)
		for line := range strings.Lines(string(content)) {
			if version := apiVersion.FindString(line); version != "" && strings.HasPrefix(strings.TrimSpace(line), "apiVersion:") {
				found++
				assert.Equal(t, "placement.kubernetes-fleet.io/v1beta1", version, path)
			}
		}
	}
	assert.Greater(t, found, 20)
}
