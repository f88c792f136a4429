//go:build integration

package pods

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// quickstartWalked runs what the quickstart for kind says once hub and members are there, as it stands there, but with the names of this
// fleet's: those before are what installed does.
func quickstartWalked(t *testing.T) {
	lines := placedIn(t, filepath.Join(root, "deploy", "docs", "quickstart-kind.md"))
	ours := strings.NewReplacer("kind-member-2", member, "namespace web", "namespace quick", "ns web", "ns quick", "-n web", "-n quick",
		"crp/web", "crp/quick", "placement/web", "placement/quick", " --watch", "")
	var printed []string
	for _, line := range lines {
		printed = append(printed, sh(t, ours.Replace(line)))
	}
	all := strings.Join(printed, "")
	assert.Contains(t, all, "blue\n")
	assert.Contains(t, all, "placement/quick")
	sh(t, "kubectl --context "+member+" -n quick wait cm/config --for=jsonpath='{.data.colour}'=green --timeout=60s")
	sh(t, "kubectl --context hub delete crp/quick ns/quick --timeout=60s")
}

// placedIn returns the commands of the step of a quickstart that places something.
func placedIn(t *testing.T, file string) (commands []string) {
	t.Helper()
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	_, step, found := strings.Cut(string(content), "**6. Place something**")
	require.True(t, found, "%s has such a step", file)
	_, block, found := strings.Cut(step, "```console")
	require.True(t, found)
	block, _, _ = strings.Cut(block, "```")
	for line := range strings.Lines(block) {
		if command, is := strings.CutPrefix(line, "$ "); is {
			commands = append(commands, strings.TrimSpace(command))
		}
	}
	require.NotEmpty(t, commands)
	return commands
}
