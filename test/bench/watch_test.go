//go:build bench

package bench

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/test/devfleet/controlplane"
	"github.com/fleetflow/fleetflow/test/devfleet/state"
	"github.com/fleetflow/fleetflow/test/viewer"
)

const (
	// width and height are those of a terminal in which all of the picture has room.
	width, height = 160, 100
	// maxPictures is how many times in a second the picture may be drawn.
	maxPictures = 5
	// watchLasts is how long a watch lasts at least, before the client asks for another one.
	watchLasts = 5 * time.Minute
)

// TestWatchedRun follows a run of 1,000 clusters with kubectl fleet status --watch on a terminal, and looks at what the
// plugin asks of the hub for it and how it draws.
func TestWatchedRun(t *testing.T) {
	f := shared
	name := "watched"
	f.grow(t, many)
	f.strategy(t, staged(name))
	f.content(t, name)
	f.place(t, func(int) *placementv1beta1.PlacementPolicy { return allOf(many) }, external(), name)
	f.awaitPlacements(t, placementv1beta1.ConditionTypeScheduled, "0", name)
	program := filepath.Join(t.TempDir(), "kubectl-fleet")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, "./cmd/kubectl-fleet")
	build.Dir = root
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)

	runs := f.startRuns(t, "run", name, name)
	began := time.Now()
	seen := f.onTerminal(t, program, "status", "run/"+name+"-run", "--watch")
	took := time.Since(began)
	f.awaitRuns(t, time.Minute, runs)
	title := fmt.Sprintf("status --watch of a run of %d clusters", many)

	requests := map[string]int{}
	for _, r := range seen.requests {
		requests[r.Verb+" "+path.Base(r.Path)]++
	}
	t.Logf("requests: %v", requests)
	watches := 1 + int(took/watchLasts)
	for _, kind := range []string{"clusterstagedupdateruns", "clusterapprovalrequests", "clusterresourcebindings"} {
		assert.Equal(t, 1, requests["list "+kind], "%s are listed once", kind)
		assert.LessOrEqual(t, requests["watch "+kind], watches, "%s", kind)
		assert.Positive(t, requests["watch "+kind], "%s", kind)
	}
	first := slices.IndexFunc(seen.requests, func(r viewer.Request) bool { return r.Verb == "watch" })
	later := slices.DeleteFunc(slices.Clone(seen.requests[first:]), func(r viewer.Request) bool { return r.Verb == "watch" || r.Verb == "list" })
	assert.Empty(t, later, "once it watches, it asks for nothing else")
	f.figures.add(t, title+": requests", "one list and one watch a kind", count(len(seen.requests)))

	require.NotEmpty(t, seen.pictures)
	written := 0
	lines := 0
	same := 0
	sent := 0
	for _, p := range seen.pictures {
		written = written + p.Written
		lines = lines + len(p.Lines)
		same = same + p.Same
		sent = sent + p.Bytes
	}
	assert.Zero(t, same, "lines that were drawn though they had been there")
	assert.LessOrEqual(t, float64(len(seen.pictures)), took.Seconds()*maxPictures+1)
	assert.Contains(t, seen.pictures[len(seen.pictures)-1].Lines[0], "Succeeded")
	f.figures.add(t, title+": pictures", "<= 5 a second", quantity{float64(len(seen.pictures)) / took.Seconds(), "a second"})
	pictures := float64(len(seen.pictures))
	f.figures.add(t, title+": lines drawn per picture", fmt.Sprintf("those that differ, of %.1f", float64(lines)/pictures), quantity{float64(written) / pictures, ""})
	f.figures.add(t, title+": sent per picture", "-", quantity{float64(sent) / pictures, "bytes"})
	f.figures.add(t, title+": CPU time of the plugin per picture", "-", milliseconds(seen.cpu/time.Duration(len(seen.pictures))))
}

// sight is what a program has asked and drawn.
type sight struct {
	requests []viewer.Request
	pictures []viewer.Picture
	cpu      time.Duration
}

// onTerminal runs a program on a terminal, with a proxy between it and the hub.
func (f *fleet) onTerminal(t *testing.T, program string, args ...string) sight {
	t.Helper()
	config, err := controlplane.RESTConfig(f.Fleet, state.Hub)
	require.NoError(t, err)
	proxy, err := viewer.NewProxy(config)
	require.NoError(t, err)
	defer proxy.Close()
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, proxy.WriteKubeconfig(kubeconfig))
	terminal, err := viewer.OpenTerminal(width, height)
	require.NoError(t, err)
	var problems bytes.Buffer
	command := exec.CommandContext(within(t, 20*time.Minute), program, args...)
	command.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "TERM=xterm")
	command.Stdout = terminal.Screen
	command.Stderr = &problems
	err = command.Run()
	sent, closed := terminal.Close()
	require.NoError(t, closed)
	require.NoError(t, err, "%s\n%s", problems.String(), sent[max(0, len(sent)-4000):])
	pictures, err := viewer.Pictures(sent)
	require.NoError(t, err)
	return sight{requests: proxy.Requests(), pictures: pictures, cpu: command.ProcessState.UserTime() + command.ProcessState.SystemTime()}
}
