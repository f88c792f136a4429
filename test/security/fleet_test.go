//go:build integration

package security

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	temporalclient "go.temporal.io/sdk/client"
	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/test/devfleet/access"
	"github.com/fleetflow/fleetflow/test/devfleet/control"
	"github.com/fleetflow/fleetflow/test/devfleet/controlplane"
	"github.com/fleetflow/fleetflow/test/devfleet/progress"
	"github.com/fleetflow/fleetflow/test/devfleet/state"
	"github.com/fleetflow/fleetflow/test/devfleet/supervisor"
	"github.com/fleetflow/fleetflow/test/devfleet/toolchain"
)

const (
	// root is the repository, as seen from this package.
	root = "../.."
	// members is how many the specs need: one is staging, one canary.
	members = 2
	// patience is how long anything may take; what takes longer never comes.
	patience = time.Minute
	// startTimeout is generous: the servers are ready within seconds, unless the machine is busy.
	startTimeout = 5 * time.Minute
	// buildTimeout is for a machine that has no API server yet.
	buildTimeout = 30 * time.Minute
	// skippedAPI is what the operator of the hub keeps from being placed.
	skippedAPI = "networking.k8s.io"
	// selectionCeiling is how many objects a placement may select on this hub.
	selectionCeiling = 120
	// vetoedKind is what the owner of member-2 keeps from being placed there.
	vetoedKind = "PriorityClass.scheduling.k8s.io"
	// unguardedAgent is the hub agent of a hub without guard rails, which runs instead of the other.
	unguardedAgent = "hub-agent/unguarded"
)

// fleet is a hub, its members, Temporal and our agents, with an administrator's access to each.
type fleet struct {
	*state.Fleet
	processes *supervisor.Supervisor
	end       func()
	hub       client.WithWatch
	members   map[string]client.WithWatch
	temporal  temporalclient.Client
}

// startFleet brings the fleet up in a folder: all members have joined, and the placement that the attackers are after is
// available.
func startFleet(dir string) (*fleet, error) {
	building, cancel := context.WithTimeout(context.Background(), buildTimeout)
	defer cancel()
	shape, err := prepareFleet(building, dir)
	if err != nil {
		return nil, err
	}
	processes, err := supervisor.New(members, components(shape))
	if err != nil {
		return nil, fmt.Errorf("listing the components: %w", err)
	}
	running, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		processes.Run(running)
	}()
	f := &fleet{Fleet: shape, processes: processes, members: map[string]client.WithWatch{}}
	f.end = func() {
		if f.temporal != nil {
			f.temporal.Close()
		}
		stop()
		<-ended
	}
	starting, cancel := context.WithTimeout(running, startTimeout)
	defer cancel()
	if err := errors.Join(f.setUpClusters(starting), f.connect()); err != nil {
		f.end()
		return nil, err
	}
	if err := errors.Join(f.startAgents(starting), f.createVictims(starting)); err != nil {
		f.end()
		return nil, err
	}
	return f, nil
}

// prepareFleet builds what is missing and writes the files that the components read.
func prepareFleet(ctx context.Context, dir string) (*state.Fleet, error) {
	tools, err := toolchain.Ensure(ctx, root, progress.New(os.Stdout), "etcd", "kube-apiserver", "kube-controller-manager", "temporal")
	if err != nil {
		return nil, err
	}
	shape := &state.Fleet{Dir: dir, Members: members, Tools: tools}
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-o", shape.Path("bin")+string(filepath.Separator), "./cmd/hub-agent", "./cmd/member-agent", "./cmd/fleet-dashboard")
	build.Dir = root
	if output, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("building the agents: %w\n%s", err, output)
	}
	if shape.Ports, err = state.AssignPorts(dir, state.Listeners(members), nil, state.PortIsFree); err != nil {
		return nil, err
	}
	controlplane.AddTokens(shape)
	return shape, controlplane.Prepare(shape)
}

// components are those of a local fleet, without nodes and pods, which no attack needs. The hub agent runs as the chart
// runs it: approvals through Temporal have to be verified.
func components(shape *state.Fleet) []supervisor.Spec {
	specs := slices.DeleteFunc(controlplane.Components(shape), func(spec supervisor.Spec) bool {
		cluster, part, _ := strings.Cut(spec.Name, "/")
		return slices.Contains([]string{"scheduler", "kwok"}, part) || part == "controller-manager" && cluster != state.Hub
	})
	at := slices.IndexFunc(specs, func(spec supervisor.Spec) bool { return spec.Name == controlplane.HubAgent })
	specs[at].Command = append(slices.Clone(specs[at].Command), "--temporal-approvals", "verified", "--skipped-propagating-apis", skippedAPI,
		"--selection-max-objects", strconv.Itoa(selectionCeiling))
	owned := slices.IndexFunc(specs, func(spec supervisor.Spec) bool { return spec.Name == controlplane.MemberAgent("member-2") })
	specs[owned].Command = append(slices.Clone(specs[owned].Command), "--denied-kinds="+vetoedKind)
	unguarded := specs[at]
	unguarded.Name = unguardedAgent
	unguarded.LogFile = shape.LogFile(unguardedAgent)
	unguarded.Command = append(slices.Clone(unguarded.Command), "--configmap-envelopes", "namespaced")
	return append(specs, unguarded)
}

// setUpClusters gives the clusters their definitions, the agents their access and the hub its guard rails.
func (f *fleet) setUpClusters(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, cluster := range f.Clusters() {
		group.Go(func() error {
			if err := f.processes.WaitReady(ctx, cluster+"/apiserver"); err != nil {
				return err
			}
			if cluster == state.Hub {
				return controlplane.SetUpHub(ctx, f.Fleet, root)
			}
			return controlplane.SetUpMember(ctx, f.Fleet, root, cluster)
		})
	}
	return group.Wait()
}

// connect opens every door with an administrator's rights.
func (f *fleet) connect() (err error) {
	if f.hub, err = controlplane.Client(f.Fleet, state.Hub); err != nil {
		return err
	}
	for _, member := range f.MemberNames() {
		if f.members[member], err = controlplane.Client(f.Fleet, member); err != nil {
			return err
		}
	}
	f.temporal, err = f.temporalAs("administrator")
	return err
}

// temporalAs returns a client of Temporal that calls itself by a name.
func (f *fleet) temporalAs(identity string) (temporalclient.Client, error) {
	return (&access.Access{Fleet: f.Fleet}).TemporalAs(identity)
}

// startAgents starts our agents and returns when all members have joined.
func (f *fleet) startAgents(ctx context.Context) error {
	if err := f.processes.WaitReady(ctx, controlplane.Temporal); err != nil {
		return err
	}
	began := time.Now()
	for _, agent := range controlplane.AgentNames(f.Fleet) {
		if err := f.order(ctx, control.Start, agent); err != nil {
			return err
		}
	}
	return controlplane.AwaitJoined(ctx, f.hub, f.Fleet, began, func([]string) {})
}

// order has a component started or stopped.
func (f *fleet) order(ctx context.Context, verb control.Verb, component string) error {
	return f.processes.Do(ctx, control.Request{Verb: verb, Component: component, NoWait: verb == control.Start})
}
