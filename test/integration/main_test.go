//go:build integration

package integration

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	temporal "go.temporal.io/sdk/client"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/cmd/devfleet/control"
	"github.com/fleetflow/fleetflow/cmd/devfleet/controlplane"
	"github.com/fleetflow/fleetflow/cmd/devfleet/state"
)

const (
	// fleetEnv names the folder of a running fleet to use.
	fleetEnv = "FLEETFLOW_FLEET"
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
	log.SetLogger(ctrl.Log)
	dir, down, err := bringUp()
	defer down()
	if err == nil {
		shared, err = open(dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "integration:", err)
		return 1
	}
	defer shared.temporal.Close()
	return m.Run()
}

// bringUp returns the folder of a running fleet and what takes it down again.
func bringUp() (dir string, down func(), err error) {
	nothing := func() {}
	if dir = os.Getenv(fleetEnv); dir != "" {
		dir, err = filepath.Abs(dir)
		return dir, nothing, err
	}
	if dir, err = filepath.Abs(filepath.Join(root, ".fleet-test")); err != nil {
		return "", nothing, err
	}
	down = func() {
		if err := devfleet("down", "--dir", dir, "--purge"); err != nil {
			fmt.Fprintln(os.Stderr, "integration:", err)
		}
	}
	return dir, down, devfleet("up", "--dir", dir, "--members", fmt.Sprint(members))
}

// devfleet runs the program with its progress shown.
func devfleet(args ...string) error {
	command := exec.Command("go", append([]string{"run", "./cmd/devfleet"}, args...)...)
	command.Dir, command.Stdout, command.Stderr = root, os.Stdout, os.Stderr
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
	*state.Fleet
	control  *control.Client
	temporal temporal.Client
	hub      *cluster
	members  []*cluster
}

// open connects to a running fleet of the shape that the specs need.
func open(dir string) (*fleet, error) {
	remembered, err := state.Load(dir)
	if err != nil {
		return nil, err
	}
	if remembered.Members != members {
		return nil, fmt.Errorf("the fleet in %s has %d members, the specs need %d", dir, remembered.Members, members)
	}
	f := &fleet{Fleet: remembered}
	if f.control, err = control.Dial(dir); err != nil {
		return nil, err
	}
	scheme := runtime.NewScheme()
	err = errors.Join(clientgoscheme.AddToScheme(scheme), placementv1beta1.AddToScheme(scheme), clusterv1beta1.AddToScheme(scheme))
	if err != nil {
		return nil, fmt.Errorf("registering types: %w", err)
	}
	if f.hub, err = connect(remembered, state.Hub, scheme); err != nil {
		return nil, err
	}
	for _, name := range remembered.MemberNames() {
		member, err := connect(remembered, name, scheme)
		if err != nil {
			return nil, err
		}
		f.members = append(f.members, member)
	}
	f.temporal, err = temporal.NewLazyClient(temporal.Options{
		HostPort: remembered.Address("temporal"), Identity: "integration", Logger: quietLogger{},
	})
	if err != nil {
		return nil, fmt.Errorf("preparing the Temporal client: %w", err)
	}
	return f, nil
}

func connect(fleet *state.Fleet, name string, scheme *runtime.Scheme) (*cluster, error) {
	config, err := controlplane.RESTConfig(fleet, name)
	if err != nil {
		return nil, err
	}
	config.WarningHandler = rest.NoWarnings{}
	// Specs run side by side, each with a handful of watches.
	config.QPS, config.Burst = 500, 1000
	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("making a client of %s: %w", name, err)
	}
	return &cluster{WithWatch: c, name: name}, nil
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
	command := exec.CommandContext(ctx, f.Path("bin", program), args...)
	command.Env = append(os.Environ(), "KUBECONFIG="+f.Kubeconfig(), "TEMPORAL_ADDRESS="+f.Address("temporal"))
	out, err := command.CombinedOutput()
	return string(out), err
}

// quietLogger drops what the Temporal client logs: specs take the server away on purpose.
type quietLogger struct{}

func (quietLogger) Debug(string, ...any) {}
func (quietLogger) Info(string, ...any)  {}
func (quietLogger) Warn(string, ...any)  {}
func (quietLogger) Error(string, ...any) {}
