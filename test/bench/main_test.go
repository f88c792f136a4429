//go:build bench

package bench

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

const (
	// fleetEnv names the folder of a running fleet without members to use.
	fleetEnv = "FLEETFLOW_FLEET"
	// agentArgsEnv has further flags of the hub agent of a fleet that is started for the measurements.
	agentArgsEnv = "FLEETFLOW_BENCH_AGENT_ARGS"
	// root is the repository, as seen from this package.
	root = "../.."
)

// shared is the one fleet that all measurements use, one after the other.
var shared *fleet

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	log.SetLogger(logr.Discard())
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	dir, down, err := bringUp()
	defer down()
	if err == nil {
		shared, err = open(ctx, dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		return 1
	}
	defer shared.Close()
	code := m.Run()
	shared.figures.print(os.Stdout)
	path, err := shared.figures.keep(filepath.Join(root, "bin", "bench"))
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		return 1
	}
	fmt.Println("bench: kept in", path)
	return code
}

// bringUp returns the folder of a running fleet and what takes it down again.
func bringUp() (dir string, down func(), err error) {
	nothing := func() {}
	if dir = os.Getenv(fleetEnv); dir != "" {
		dir, err = filepath.Abs(dir)
		return dir, nothing, err
	}
	if dir, err = filepath.Abs(filepath.Join(root, ".fleet-bench")); err != nil {
		return "", nothing, err
	}
	down = func() {
		if err := devfleet("down", "--dir", dir, "--purge"); err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
		}
	}
	args := []string{"up", "--dir", dir, "--without-members"}
	for _, arg := range strings.Fields(os.Getenv(agentArgsEnv)) {
		args = append(args, "--hub-agent-arg="+arg)
	}
	return dir, down, devfleet(args...)
}

// devfleet runs the program with its progress shown.
func devfleet(args ...string) error {
	command := exec.Command("go", append([]string{"run", "./test/devfleet"}, args...)...)
	command.Dir = root
	command.Stdout = os.Stdout
	command.Stderr = os.Stderr
	if err := command.Run(); err != nil {
		return fmt.Errorf("devfleet %s: %w", args[0], err)
	}
	return nil
}

// within bounds one wait; the default is generous, because how fast a machine is, is not for a test.
func within(t *testing.T, limit time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	return ctx
}
