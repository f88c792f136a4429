//go:build integration

package integration

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/fleetflow/fleetflow/test/devfleet/access"
	"github.com/fleetflow/fleetflow/test/devfleet/state"
)

const (
	// fleetEnv names the folder of a running fleet to use.
	fleetEnv = "FLEETFLOW_FLEET"
	// ownFleetEnv names the folder in the repository of the fleet that is brought up otherwise, so that two of them can be side by side. Its hub
	// agent keeps no workflow in memory.
	ownFleetEnv = "FLEETFLOW_OWN_FLEET"
	// root is the repository, as seen from this package.
	root = "../.."
	// members is how many the specs need: those of the staged update how-to.
	members = 3
)

// shared is the one fleet that all specs use.
var shared *fleet

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	log.SetLogger(logr.Discard())
	dir, down, err := bringUp()
	defer down()
	if err == nil {
		shared, err = open(dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "integration:", err)
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
	own := os.Getenv(ownFleetEnv)
	if dir, err = filepath.Abs(filepath.Join(root, cmp.Or(own, ".fleet-test"))); err != nil {
		return "", nothing, err
	}
	up := []string{"up", "--dir", dir, "--members", fmt.Sprint(members), "--hub-agent-arg=--records"}
	if own != "" {
		// Each step of a workflow is a replay there: one that is not the same twice shows.
		up = append(up, "--hub-agent-arg=--workflow-cache-size=0")
	}
	down = func() {
		if err := devfleet("down", "--dir", dir, "--purge"); err != nil {
			fmt.Fprintln(os.Stderr, "integration:", err)
		}
	}
	return dir, down, devfleet(up...)
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

// cluster is an administrator's access to one cluster.
type cluster struct {
	client.WithWatch
	name string
}

// fleet is the access to everything that runs.
type fleet struct {
	*access.Access
	hub     *cluster
	members []*cluster
}

// open connects to a running fleet of the shape that the specs need.
func open(dir string) (*fleet, error) {
	a, err := access.Open(dir)
	if err != nil {
		return nil, err
	}
	if a.Fleet.Members != members {
		return nil, fmt.Errorf("the fleet in %s has %d members, the specs need %d", dir, a.Fleet.Members, members)
	}
	f := &fleet{Access: a, hub: &cluster{WithWatch: a.Hub, name: state.Hub}}
	for _, name := range a.Fleet.MemberNames() {
		f.members = append(f.members, &cluster{WithWatch: a.Members[name], name: name})
	}
	return f, nil
}

// member returns the access to a member by name.
func (f *fleet) member(name string) *cluster {
	for _, m := range f.members {
		if m.name == name {
			return m
		}
	}
	panic("no member " + name)
}

// command runs one of the programs that come with the fleet, pointed at the hub and at Temporal, as a user would.
func (f *fleet) command(ctx context.Context, program string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, f.Fleet.Path("bin", program), args...)
	command.Env = append(append(os.Environ(), f.Fleet.Environment()...),
		"PATH="+f.Fleet.Path("bin")+string(os.PathListSeparator)+os.Getenv("PATH")) // kubectl finds its plugins there
	out, err := command.CombinedOutput()
	return string(out), err
}
