//go:build integration

package admission

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/fleetflow/fleetflow/test/devfleet/controlplane"
	"github.com/fleetflow/fleetflow/test/devfleet/progress"
	"github.com/fleetflow/fleetflow/test/devfleet/state"
	"github.com/fleetflow/fleetflow/test/devfleet/supervisor"
	"github.com/fleetflow/fleetflow/test/devfleet/toolchain"
)

const (
	// root is the repository, as seen from this package.
	root = "../.."
	// apiServer is the component that serves the hub.
	apiServer = state.Hub + "/apiserver"
	// startTimeout is generous: the server is ready within seconds, unless the machine is busy.
	startTimeout = 2 * time.Minute
	// buildTimeout is for a machine that has no API server yet.
	buildTimeout = 30 * time.Minute
)

// admin is an administrator of hub, the one that all tests share.
var (
	admin *session
	hub   *state.Fleet
)

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	log.SetLogger(logr.Discard())
	dir, err := os.MkdirTemp("", "fleetflow-admission-")
	if err != nil {
		fmt.Fprintln(os.Stderr, "admission:", err)
		return 1
	}
	fleet, down, err := start(dir)
	hub = fleet
	if err == nil {
		err = setUp(fleet)
	}
	if err != nil {
		down()
		fmt.Fprintf(os.Stderr, "admission: %v\nthe logs are in %s\n", err, filepath.Join(dir, "logs"))
		return 1
	}
	defer func() {
		down()
		_ = os.RemoveAll(dir) // what stays is in the folder for temporary files
	}()
	return m.Run()
}

// start brings up a hub in a folder and returns what takes it down. Flags are given to its API server.
func start(dir string, flags ...string) (fleet *state.Fleet, down func(), err error) {
	down = func() {}
	building, cancel := context.WithTimeout(context.Background(), buildTimeout)
	defer cancel()
	tools, err := toolchain.Ensure(building, root, progress.New(os.Stdout), "etcd", "kube-apiserver", "kubectl")
	if err != nil {
		return nil, down, err
	}
	fleet = &state.Fleet{Dir: dir, Tools: tools}
	if fleet.Ports, err = state.AssignPorts(dir, state.Listeners(0), nil, state.PortIsFree); err != nil {
		return nil, down, err
	}
	controlplane.AddTokens(fleet)
	if err := controlplane.Prepare(fleet); err != nil {
		return nil, down, err
	}
	// Nothing acts on the hub: what is written to it is admitted or refused, and then stays as it is.
	wanted := []string{state.Hub + "/etcd", apiServer}
	specs := slices.DeleteFunc(controlplane.Components(fleet), func(spec supervisor.Spec) bool {
		return !slices.Contains(wanted, spec.Name)
	})
	if err := encryptAtRest(fleet, specs); err != nil {
		return nil, down, fmt.Errorf("configuring encryption at rest: %w", err)
	}
	for i := range specs {
		if specs[i].Name == apiServer {
			specs[i].Command = append(specs[i].Command, flags...)
		}
	}
	owner, err := supervisor.New(0, specs)
	if err != nil {
		return nil, down, fmt.Errorf("listing the components: %w", err)
	}
	running, end := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		owner.Run(running)
	}()
	down = func() {
		end()
		<-ended
	}
	waiting, cancel := context.WithTimeout(running, startTimeout)
	defer cancel()
	return fleet, down, owner.WaitReady(waiting, apiServer)
}

// setUp installs what is tested and waits until all of it is in force.
func setUp(fleet *state.Fleet) error {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	if err := controlplane.SetUpHub(ctx, fleet, root); err != nil {
		return err
	}
	// One server has the definitions of both charts.
	if err := controlplane.InstallDefinitions(fleet, state.Hub, filepath.Join(root, "deploy", "charts", "member-agent")); err != nil {
		return err
	}
	config, err := controlplane.RESTConfig(fleet, state.Hub)
	if err != nil {
		return err
	}
	config.QPS = -1
	config.Burst = 0 // the tests wait for nothing but the server
	if admin, err = newSession(config); err != nil {
		return err
	}
	return errors.Join(letEverybodyWrite(ctx), awaitPolicies(ctx))
}
