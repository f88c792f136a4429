package onemember

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/test/devfleet/control"
	"github.com/fleetflow/fleetflow/test/devfleet/controlplane"
	"github.com/fleetflow/fleetflow/test/devfleet/progress"
	"github.com/fleetflow/fleetflow/test/devfleet/state"
	"github.com/fleetflow/fleetflow/test/devfleet/supervisor"
	"github.com/fleetflow/fleetflow/test/devfleet/toolchain"
)

const (
	// startTimeout is generous: the servers are ready within seconds, unless the machine is busy.
	startTimeout = 3 * time.Minute
	// buildTimeout is for a machine that has no API server yet.
	buildTimeout = 30 * time.Minute
)

// Member is the name of the member.
const Member = "member-1"

// The components that tests disturb.
const (
	HubServer    = state.Hub + "/apiserver"
	MemberServer = Member + "/apiserver"
	// Controllers are Kubernetes' own controllers on the member.
	Controllers = Member + "/controller-manager"
)

// Agent is the component that is the member agent.
var Agent = controlplane.MemberAgent(Member)

// Rig is a hub, a member and its agent.
type Rig struct {
	// Fleet is where everything is.
	Fleet *state.Fleet
	// Hub and Member read, write and watch with an administrator's rights, as fast as the servers can.
	Hub, Member client.WithWatch

	processes *supervisor.Supervisor
	end       context.CancelFunc
	ended     chan struct{}
	configs   map[string]*rest.Config
}

// Start brings everything up in a folder; root is the repository. The agent has joined when it returns. Flags are
// given to the agent.
func Start(root, dir string, flags ...string) (*Rig, error) {
	fleet, err := prepare(root, dir)
	if err != nil {
		return nil, err
	}
	specs, err := components(fleet, flags)
	if err != nil {
		return nil, err
	}
	processes, err := supervisor.New(1, specs)
	if err != nil {
		return nil, fmt.Errorf("listing the components: %w", err)
	}
	running, end := context.WithCancel(context.Background())
	r := &Rig{Fleet: fleet, processes: processes, end: end, ended: make(chan struct{}), configs: map[string]*rest.Config{}}
	go func() {
		defer close(r.ended)
		processes.Run(running)
	}()
	if err := r.setUp(root); err != nil {
		r.Close()
		return nil, fmt.Errorf("%w; the logs are in %s", err, fleet.LogDir())
	}
	return r, nil
}

// Close ends every process. What they wrote stays in the folder.
func (r *Rig) Close() {
	r.end()
	<-r.ended
}

// prepare builds what is missing and writes the files the components read.
func prepare(root, dir string) (*state.Fleet, error) {
	ctx, cancel := context.WithTimeout(context.Background(), buildTimeout)
	defer cancel()
	display := progress.New(os.Stdout)
	tools, err := toolchain.Ensure(ctx, root, display, "etcd", "kube-apiserver", "kube-controller-manager")
	if err != nil {
		return nil, err
	}
	fleet := &state.Fleet{Dir: dir, Members: 1, Tools: tools}
	if err := buildAgent(ctx, root, fleet.Binary("member-agent")); err != nil {
		return nil, err
	}
	if fleet.Ports, err = state.AssignPorts(dir, state.Listeners(1), nil, state.PortIsFree); err != nil {
		return nil, err
	}
	controlplane.AddTokens(fleet)
	return fleet, controlplane.Prepare(fleet)
}

// buildAgent builds this repository's member agent, and nothing that it does not need.
func buildAgent(ctx context.Context, root, target string) error {
	build := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-o", target, "./cmd/member-agent")
	build.Dir = root
	if output, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("building the member agent: %w\n%s", err, output)
	}
	return nil
}

// components returns the part of a fleet that the rig runs.
func components(fleet *state.Fleet, flags []string) ([]supervisor.Spec, error) {
	audit, err := auditArguments(fleet.Dir)
	if err != nil {
		return nil, err
	}
	wanted := []string{
		state.Hub + "/etcd", HubServer, Member + "/etcd", MemberServer, Controllers, Agent,
	}
	specs := slices.DeleteFunc(controlplane.Components(fleet), func(spec supervisor.Spec) bool {
		return !slices.Contains(wanted, spec.Name)
	})
	for i := range specs {
		switch specs[i].Name {
		case Agent:
			specs[i].Command = append(specs[i].Command, flags...)
			specs[i].Needs = nil // it is to be there while they are away
		case MemberServer:
			specs[i].Command = append(specs[i].Command, audit...)
		}
	}
	return specs, nil
}

func (r *Rig) setUp(root string) error {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	if err := errors.Join(r.processes.WaitReady(ctx, HubServer), r.processes.WaitReady(ctx, MemberServer)); err != nil {
		return err
	}
	if err := errors.Join(
		controlplane.SetUpHub(ctx, r.Fleet, root),
		controlplane.SetUpMember(ctx, r.Fleet, root, Member),
	); err != nil {
		return err
	}
	var err error
	if r.Hub, err = r.connect(state.Hub); err != nil {
		return err
	}
	if r.Member, err = r.connect(Member); err != nil {
		return err
	}
	if err := r.invite(ctx); err != nil {
		return err
	}
	if err := r.Do(ctx, control.Start, Agent); err != nil {
		return err
	}
	return r.AwaitJoined(ctx)
}

func (r *Rig) connect(cluster string) (client.WithWatch, error) {
	config, err := controlplane.RESTConfig(r.Fleet, cluster)
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	config.Burst = 0 // the tests wait for nothing but the server
	r.configs[cluster] = config
	c, err := client.NewWithWatch(config, client.Options{Scheme: controlplane.Scheme()})
	if err != nil {
		return nil, fmt.Errorf("making a client of %s: %w", cluster, err)
	}
	return c, nil
}

// Do starts, stops, kills or restarts a component and waits for the effect.
func (r *Rig) Do(ctx context.Context, verb control.Verb, component string) error {
	if err := r.processes.Do(ctx, control.Request{Verb: verb, Component: component}); err != nil {
		return fmt.Errorf("%s of %s: %w", verb, component, err)
	}
	return nil
}

// Process returns what the supervisor knows of a component.
func (r *Rig) Process(component string) control.Component {
	status := r.processes.Status()
	found, _ := status.Component(component)
	return found
}
