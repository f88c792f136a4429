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

// metricName is how the names of our metrics begin: KubeFleet's and our own.
const metricName = `(?:fleet_|fleetflow_|work_apply_|scheduling_)[a-z_]+`

// TestEveryMetricIsExplained compares the metrics that agents register with the reference.
func TestEveryMetricIsExplained(t *testing.T) {
	content, err := os.ReadFile(filepath.Join(repository, "deploy/dashboards/README.md"))
	require.NoError(t, err)
	explained := map[string]bool{}
	for line := range strings.SplitSeq(string(content), "\n") {
		if cells := strings.Split(line, "|"); len(cells) > 2 {
			for _, name := range regexp.MustCompile("`("+metricName+")`").FindAllStringSubmatch(cells[1], -1) {
				explained[name[1]] = true
			}
		}
	}
	registered := registeredMetrics(t)
	require.Greater(t, len(registered), 15, "metrics found")
	for name, where := range registered {
		assert.True(t, explained[name], "%s registers %s, of which deploy/dashboards/README.md says nothing", where, name)
		delete(explained, name)
	}
	for name := range explained {
		assert.Fail(t, "deploy/dashboards/README.md explains a metric that nothing registers", name)
	}
}

// registeredMetrics are the names of metrics in the code of agents, and a place of each.
func registeredMetrics(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	quoted := regexp.MustCompile(`"(` + metricName + `)"`)
	for _, folder := range emitters {
		err := filepath.WalkDir(filepath.Join(repository, folder), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			content, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			for _, name := range quoted.FindAllStringSubmatch(string(content), -1) {
				found[name[1]] = path
			}
			return nil
		})
		require.NoError(t, err)
	}
	return found
}
