//go:build integration

package pods

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/fleetflow/fleetflow/test/devfleet/access"
	"github.com/fleetflow/fleetflow/test/devfleet/realnode"
	"github.com/fleetflow/fleetflow/test/devfleet/state"
)

const (
	// fleetEnv names the folder of a running fleet to use: one that was made with the flags below, and has its images.
	fleetEnv = "FLEETFLOW_PODS_FLEET"
	// root is the repository, as seen from this package.
	root   = "../.."
	member = "member-1"
	system = "fleet-system"
	// patience is how long a spec waits for what takes a few seconds on idle cores.
	patience = 2 * time.Minute
)

// shared is the fleet that all specs use, one after the other; bin has its programs.
var (
	shared *access.Access
	bin    string
)

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	log.SetLogger(logr.Discard())
	if _, err := realnode.Find(); err != nil {
		fmt.Println("NOT RUN: the specs on real Pods, as", err)
		return 0
	}
	dir, down, err := bringUp()
	defer down()
	if err == nil {
		shared, err = access.Open(dir)
	}
	if err == nil {
		err = buildPrograms()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "pods:", err)
		return 1
	}
	defer shared.Close()
	return m.Run()
}

// bringUp returns the folder of a running fleet and what takes it down again.
func bringUp() (dir string, down func(), err error) {
	nothing := func() {}
	if dir = os.Getenv(fleetEnv); dir != "" {
		dir, err = filepath.Abs(dir)
		return dir, nothing, err
	}
	if dir, err = filepath.Abs(filepath.Join(root, ".fleet-pods")); err != nil {
		return "", nothing, err
	}
	down = func() {
		if err := devfleet("down", "--dir", dir, "--purge"); err != nil {
			fmt.Fprintln(os.Stderr, "pods: taking the fleet down:", err)
		}
	}
	if err = devfleet("up", "--dir", dir, "--members", "1", "--real-nodes", "--real-hub", "--without-agents", "--bare"); err == nil {
		err = devfleet("images", "--dir", dir)
	}
	return dir, down, err
}

func devfleet(args ...string) error {
	return goCommand(root, append([]string{"run", "./test/devfleet"}, args...)...)
}

// buildPrograms builds what a user works with: helm, from the module that pins it, and the plugin, which the images have, too. And a registry.
func buildPrograms() error {
	bin = filepath.Join(shared.Fleet.Dir, "bin")
	if err := goCommand(root, "build", "-o", bin+"/", "./cmd/kubectl-fleet"); err != nil {
		return err
	}
	return goCommand(filepath.Join(root, "test", "charts"), "build", "-o", bin+"/", "helm.sh/helm/v4/cmd/helm", "./registry")
}

func goCommand(folder string, args ...string) error {
	command := exec.Command("go", args...)
	command.Dir = folder
	command.Stdout = os.Stdout
	command.Stderr = os.Stderr
	return command.Run()
}

// command is a command as a user types it in the repository's folder.
func command(t *testing.T, line string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "bash", "-c", "set -eu; "+line)
	cmd.Dir = root
	home := filepath.Join(bin, "home")
	cmd.Env = append(os.Environ(), "KUBECONFIG="+shared.Fleet.Kubeconfig(), "HOME="+home, "HELM_CACHE_HOME="+home, "HELM_CONFIG_HOME="+home,
		"HELM_DATA_HOME="+home, "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	return cmd
}

// sh runs a command, which has to succeed, and returns what it prints.
func sh(t *testing.T, line string) string {
	t.Helper()
	began := time.Now()
	out, err := command(t, line).CombinedOutput()
	require.NoError(t, err, "%s\n%s", line, out)
	t.Logf("%6.1f s  %s", time.Since(began).Seconds(), line)
	return string(out)
}

// apply applies manifests to the hub.
func apply(t *testing.T, manifests string) {
	t.Helper()
	cmd := command(t, "kubectl --context hub apply -f -")
	cmd.Stdin = bytes.NewBufferString(manifests)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s\n%s", manifests, out)
}

// awaitNext waits before what nothing tells is asked once more, and ends the spec once its time is over.
func awaitNext(ctx context.Context, t *testing.T, why string) {
	t.Helper()
	select {
	case <-ctx.Done():
		require.FailNow(t, why)
	case <-time.After(askAgain):
	}
}

// hubForMembers is where Pods of the member find the hub.
func hubForMembers() string { return shared.Fleet.ServerForPods(member, state.Hub) }
