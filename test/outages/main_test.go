//go:build integration

package outages

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/fleetflow/fleetflow/test/devfleet/access"
)

const (
	// fleetEnv names the folder of a running fleet to use.
	fleetEnv = "FLEETFLOW_FLEET"
	// root is the repository, as seen from this package.
	root = "../.."
	// members is how many the specs need: one that goes down, and one that does not.
	members = 2
)

// shared is the fleet that all specs use, one after the other.
var shared *access.Access

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	log.SetLogger(logr.Discard())
	dir, down, err := bringUp()
	defer down()
	if err == nil {
		shared, err = access.Open(dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "outages:", err)
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
	if dir, err = filepath.Abs(filepath.Join(root, ".fleet-outages")); err != nil {
		return "", nothing, err
	}
	down = func() {
		if err := devfleet("down", "--dir", dir, "--purge"); err != nil {
			fmt.Fprintln(os.Stderr, "outages:", err)
		}
	}
	return dir, down, devfleet("up", "--dir", dir, "--members", fmt.Sprint(members), "--with-prometheus", "--hub-agent-arg=--cluster-unhealthy-threshold=1s")
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
