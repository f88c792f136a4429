//go:build integration

package takeover

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/fleetflow/fleetflow/test/devfleet/control"
	"github.com/fleetflow/fleetflow/test/devfleet/controlplane"
	"github.com/fleetflow/fleetflow/test/devfleet/progress"
	"github.com/fleetflow/fleetflow/test/devfleet/state"
	"github.com/fleetflow/fleetflow/test/devfleet/supervisor"
	"github.com/fleetflow/fleetflow/test/devfleet/toolchain"
	"github.com/fleetflow/fleetflow/test/kubefleet"
)

const (
	// root is the repository, as seen from this package.
	root = "../.."
	// patience is how long anything may take; what takes longer never comes.
	patience = 10 * time.Minute
	// buildTimeout is for a machine that has no API server yet.
	buildTimeout = 30 * time.Minute
)

// rig is a hub and members, bare API servers, with Temporal and our agents ready to be started. Kubernetes' own
// controllers are held: every write is that of an agent.
type rig struct {
	*testing.T
	ctx context.Context
	// restored has the hub's objects loaded as from a backup.
	restored  bool
	fleet     *state.Fleet
	processes *supervisor.Supervisor
	configs   map[string]*rest.Config
	clients   map[string]client.WithWatch
}

// newRig makes a rig; the flags are the hub agent's, beside those of a local fleet.
func newRig(t *testing.T, members int, flags ...string) *rig {
	t.Helper()
	log.SetLogger(logr.Discard())
	dir, err := os.MkdirTemp("", "fleetflow-takeover-") //nolint:usetesting // after a failure it stays, with the logs of the agents
	require.NoError(t, err)
	building, cancel := context.WithTimeout(t.Context(), buildTimeout)
	defer cancel()
	display := progress.New(os.Stdout)
	tools, err := toolchain.Ensure(building, root, display, "etcd", "kube-apiserver", "kube-controller-manager", "temporal")
	require.NoError(t, err)
	fleet := &state.Fleet{Dir: dir, Members: members, Tools: tools}
	buildAgents(building, t, fleet)
	fleet.Ports, err = state.AssignPorts(dir, state.Listeners(members), nil, state.PortIsFree)
	require.NoError(t, err)
	controlplane.AddTokens(fleet)
	require.NoError(t, controlplane.Prepare(fleet))

	specs := slices.DeleteFunc(controlplane.Components(fleet), func(spec supervisor.Spec) bool {
		_, part, _ := strings.Cut(spec.Name, "/")
		return slices.Contains([]string{"scheduler", "kwok"}, part) || spec.Name == state.Hub+"/controller-manager"
	})
	for i := range specs {
		specs[i].Held = specs[i].Held || strings.HasSuffix(specs[i].Name, "/controller-manager")
		if specs[i].Name == controlplane.HubAgent {
			specs[i].Command = append(specs[i].Command, flags...)
		}
	}
	processes, err := supervisor.New(members, specs)
	require.NoError(t, err)
	running, end := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		processes.Run(running)
	}()
	t.Cleanup(func() {
		end()
		<-ended
		if !t.Failed() {
			_ = os.RemoveAll(dir) // what stays is in the folder for temporary files
		} else {
			t.Log("the logs are in", fleet.LogDir())
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	r := &rig{T: t, ctx: ctx, fleet: fleet, processes: processes, configs: map[string]*rest.Config{}, clients: map[string]client.WithWatch{}}
	r.setUp()
	return r
}

// buildAgents builds our agents and the plug-in of kubectl, in a folder that stays: what has not changed is not linked again.
func buildAgents(ctx context.Context, t *testing.T, fleet *state.Fleet) {
	t.Helper()
	kept, err := filepath.Abs(filepath.Join(root, ".fleet-takeover"))
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(kept, 0o755))
	build := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-o", kept+string(filepath.Separator), "./cmd/hub-agent", "./cmd/member-agent", "./cmd/kubectl-fleet")
	build.Dir = root
	output, err := build.CombinedOutput()
	require.NoError(t, err, "building the agents: %s", output)
	require.NoError(t, os.Symlink(kept, fleet.Path("bin")))
}

// setUp gives the clusters their definitions and the agents' access. The hub knows no members.
func (r *rig) setUp() {
	r.Helper()
	for _, cluster := range r.fleet.Clusters() {
		require.NoError(r, r.processes.WaitReady(r.ctx, cluster+"/apiserver"))
	}
	alone := *r.fleet
	alone.Members = 0
	failures := make([]error, len(r.fleet.Clusters()))
	done := make(chan int)
	for i, cluster := range r.fleet.Clusters() {
		go func() {
			defer func() { done <- i }()
			if cluster == state.Hub {
				failures[i] = controlplane.SetUpHub(r.ctx, &alone, root)
			} else {
				failures[i] = controlplane.SetUpMember(r.ctx, r.fleet, root, cluster)
			}
		}()
	}
	for range failures {
		<-done
	}
	require.NoError(r, errors.Join(failures...))
	for _, cluster := range r.fleet.Clusters() {
		config, err := controlplane.RESTConfig(r.fleet, cluster)
		require.NoError(r, err)
		config.QPS = -1
		config.Burst = 0 // the tests wait for nothing but the servers
		r.configs[cluster] = config
		r.clients[cluster], err = client.NewWithWatch(config, client.Options{Scheme: controlplane.Scheme()})
		require.NoError(r, err)
	}
}

func (r *rig) hub() client.WithWatch { return r.clients[state.Hub] }

// load loads what KubeFleet left on the hub and on the members. Changes are made to the objects of the hub before.
func (r *rig) load(changes ...func([]*unstructured.Unstructured) []*unstructured.Unstructured) {
	r.Helper()
	objects, err := kubefleet.Hub()
	require.NoError(r, err)
	for _, change := range append(changes, identifyAgents) {
		objects = change(objects)
	}
	load := kubefleet.Load
	if r.restored {
		load = kubefleet.Restore
	}
	require.NoError(r, load(r.ctx, r.configs[state.Hub], objects))
	for i, member := range r.fleet.MemberNames() {
		objects, err := kubefleet.Member(i + 1)
		require.NoError(r, err)
		require.NoError(r, kubefleet.Load(r.ctx, r.configs[member], objects))
	}
}

// identifyAgents has the member agents come as the users they are here.
func identifyAgents(objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	for _, member := range kubefleet.OfKinds(objects, "MemberCluster") {
		member.Object["spec"].(map[string]any)["identity"] = map[string]any{
			"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": member.GetName(),
		}
	}
	return objects
}

// takeOver loads what KubeFleet left, with changes to the objects of the hub, starts our agents and waits for what they make of
// it. It returns what they have written, and what they write from then on.
func (r *rig) takeOver(changes ...func([]*unstructured.Unstructured) []*unstructured.Unstructured) *recorder {
	r.Helper()
	r.load(changes...)
	writes := r.record()
	r.startAgents()
	writes.awaitQuiet(r, quiet)
	return writes
}

// startAgents starts our agents and returns when.
func (r *rig) startAgents() time.Time {
	r.Helper()
	require.NoError(r, r.processes.WaitReady(r.ctx, controlplane.Temporal))
	began := time.Now()
	for _, agent := range controlplane.AgentNames(r.fleet) {
		require.NoError(r, r.processes.Do(r.ctx, control.Request{Verb: control.Start, Component: agent, NoWait: true}))
	}
	return began
}

// kubectlFleet runs kubectl fleet on the hub, and returns what it prints and its exit code.
func (r *rig) kubectlFleet(t *testing.T, args ...string) (printed string, code int) {
	t.Helper()
	command := exec.CommandContext(r.ctx, r.fleet.Binary("kubectl-fleet"), args...)
	command.Env = append(os.Environ(), "KUBECONFIG="+r.fleet.Kubeconfig())
	out, err := command.CombinedOutput()
	if exit, is := errors.AsType[*exec.ExitError](err); is {
		return string(out), exit.ExitCode()
	}
	require.NoError(t, err, "%s", out)
	return string(out), 0
}
