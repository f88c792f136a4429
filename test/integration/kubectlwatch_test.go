//go:build integration

package integration

import (
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"

	"github.com/stretchr/testify/require"

	"github.com/fleetflow/fleetflow/test/devfleet/controlplane"
	"github.com/fleetflow/fleetflow/test/devfleet/state"
	"github.com/fleetflow/fleetflow/test/viewer"
)

// width and height are those of a terminal in which a picture of three clusters has room.
const width, height = 120, 40

// watchRunOnTerminal follows a run with the plugin on a terminal. What it returns waits for the end, and asserts that
// the plugin has watched each kind by one watch and asked for nothing else, and that it has drawn only what changed.
func (s *spec) watchRunOnTerminal(run string) (end func()) {
	s.Helper()
	config, err := controlplane.RESTConfig(s.Fleet, state.Hub)
	require.NoError(s, err)
	proxy, err := viewer.NewProxy(config)
	require.NoError(s, err)
	s.Cleanup(proxy.Close)
	kubeconfig := filepath.Join(s.TempDir(), "kubeconfig")
	require.NoError(s, proxy.WriteKubeconfig(kubeconfig))
	terminal, err := viewer.OpenTerminal(width, height)
	require.NoError(s, err)
	command := exec.CommandContext(s.Context(), s.Fleet.Path("bin", "kubectl-fleet"), "status", "run/"+run, "--watch")
	command.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "TERM=xterm")
	command.Stdout = terminal.Screen
	require.NoError(s, command.Start())
	return func() {
		s.Helper()
		ended := command.Wait()
		sent, err := terminal.Close()
		require.NoError(s, err)
		require.NoError(s, ended, sent)
		s.requireOneWatchAKind(proxy.Requests())
		s.requireNoFlicker(sent)
	}
}

// requireOneWatchAKind looks at what was asked for from the first watch on. A run is over before a watch is.
func (s *spec) requireOneWatchAKind(requests []viewer.Request) {
	s.Helper()
	first := slices.IndexFunc(requests, func(r viewer.Request) bool { return r.Verb == "list" })
	require.GreaterOrEqual(s, first, 0, "%v", requests)
	var asked []string
	doubts := 0
	for _, r := range requests[first:] {
		if ask := r.Verb + " " + path.Base(r.Path); ask == "list leases" {
			doubts++ // no watch shows that no hub agent works: that is asked at the beginning, and every 15 seconds
		} else {
			asked = append(asked, ask)
		}
	}
	require.Positive(s, doubts)
	require.ElementsMatch(s, []string{
		"list clusterstagedupdateruns", "list clusterapprovalrequests", "list clusterresourcebindings",
		"list clusterresourceplacements", "list rolloutholds", "list rolloutwindows", "list rolloutexemptions",
		"watch clusterstagedupdateruns", "watch clusterapprovalrequests", "watch clusterresourcebindings",
		"watch clusterresourceplacements", "watch rolloutholds", "watch rolloutwindows", "watch rolloutexemptions",
	}, asked)
}

func (s *spec) requireNoFlicker(sent string) {
	s.Helper()
	pictures, err := viewer.Pictures(sent)
	require.NoError(s, err)
	require.Greater(s, len(pictures), 1, sent)
	for i, p := range pictures {
		require.Zero(s, p.Same, "picture %d draws what was there: %q", i+1, p.Lines)
	}
	require.Contains(s, pictures[len(pictures)-1].Lines[0], "Succeeded")
}
