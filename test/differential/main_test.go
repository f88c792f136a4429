//go:build integration

package differential

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
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
	// apiServer is the component that serves the cluster.
	apiServer = state.Hub + "/apiserver"
	// startTimeout is generous: the server is ready within seconds, unless the machine is busy.
	startTimeout = 2 * time.Minute
	// buildTimeout is for a machine that has no API server yet.
	buildTimeout = 30 * time.Minute
)

var (
	pairs = flag.Int("pairs", 500, "how many pairs of manifests are drawn")
	seed  = flag.Uint64("seed", 1, "what they are drawn from; 0 takes a seed by chance and prints it")
	only  = flag.Int("only", -1, "the number of the only trial to run, as a failure prints it")
)

// cluster is the API server that the trials run on.
var cluster *rest.Config

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	log.SetLogger(logr.Discard())
	dir, err := os.MkdirTemp("", "fleetflow-differential-")
	if err != nil {
		fmt.Fprintln(os.Stderr, "differential:", err)
		return 1
	}
	config, down, err := start(dir)
	defer down()
	if err != nil {
		fmt.Fprintf(os.Stderr, "differential: %v\nthe logs are in %s\n", err, filepath.Join(dir, "logs"))
		return 1
	}
	cluster = config
	code := m.Run()
	_ = os.RemoveAll(dir) // what stays is in the folder for temporary files
	return code
}

// start brings up an API server on which no controller runs, so that nothing but the trials writes, and returns what takes it down.
func start(dir string) (config *rest.Config, down func(), err error) {
	down = func() {}
	building, cancel := context.WithTimeout(context.Background(), buildTimeout)
	defer cancel()
	tools, err := toolchain.Ensure(building, root, progress.New(os.Stdout), "etcd", "kube-apiserver")
	if err != nil {
		return nil, down, err
	}
	fleet := &state.Fleet{Dir: dir, Tools: tools}
	if fleet.Ports, err = state.AssignPorts(dir, state.Listeners(0), nil, state.PortIsFree); err != nil {
		return nil, down, err
	}
	controlplane.AddTokens(fleet)
	if err := controlplane.Prepare(fleet); err != nil {
		return nil, down, err
	}
	wanted := []string{state.Hub + "/etcd", apiServer}
	specs := slices.DeleteFunc(controlplane.Components(fleet), func(spec supervisor.Spec) bool {
		return !slices.Contains(wanted, spec.Name)
	})
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
	if err := owner.WaitReady(waiting, apiServer); err != nil {
		return nil, down, err
	}
	if config, err = controlplane.RESTConfig(fleet, state.Hub); err != nil {
		return nil, down, err
	}
	config.QPS = -1
	config.Burst = 0 // the trials wait for nothing but the server
	config.WarningHandler = rest.NoWarnings{}
	return config, down, nil
}
