//go:build integration

package pods

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/test/devfleet/controlplane"
	"github.com/fleetflow/fleetflow/test/devfleet/state"
)

const (
	// queue is the number of the queue in which the kernel asks about connections.
	queue = "100"
	// queued is the rule that has the kernel ask about each new connection of a Pod.
	queued = "FORWARD -m conntrack --ctstate NEW -j NFQUEUE --queue-num " + queue
	// answers is how long one may take to accept a connection. A policy lets the first packet vanish, so that nothing answers.
	answers = 3 * time.Second
	// metricsPort and healthPort are those of an agent.
	metricsPort = 8080
	healthPort  = 8081
)

// elsewhere serves on the hub, in a namespace in which Pods may run.
const elsewhere = `
apiVersion: v1
kind: Namespace
metadata: {name: ` + metricsFrom + `}
---
apiVersion: v1
kind: Pod
metadata: {name: elsewhere, namespace: ` + metricsFrom + `}
spec:
  containers: [{name: main, image: "devfleet.local/workload:1", ports: [{containerPort: 8080}]}]
`

// connection is one that a Pod tries to make.
type connection struct {
	name     string
	from     *corev1.Pod
	host     string
	port     int
	accepted bool
}

// policiesKept has the NetworkPolicies of the hub's chart kept, and makes connections: those that an agent needs are accepted, others are
// not, though all are without the policies. Agents that start under them lead, and carry runs on.
func policiesKept(t *testing.T) {
	require.NoError(t, goCommand(filepath.Join(root, "test", "controlplane", "policies"), "build", "-o", bin+"/", "."))
	server := shared.Fleet.Ports[state.Hub+"/apiserver"]
	upgradeHub(t, fmt.Sprintf("--set 'networkPolicy.apiServerPorts={443,%d}'", server))
	apply(t, elsewhere)
	sh(t, "kubectl --context hub -n "+metricsFrom+" wait pod/elsewhere --for=condition=Ready --timeout=60s")
	other := &corev1.Pod{}
	require.NoError(t, shared.Hub.Get(t.Context(), client.ObjectKey{Namespace: metricsFrom, Name: "elsewhere"}, other))
	host := shared.Fleet.HostAddress(state.Hub)
	connections := func() []connection {
		agent := leader(t)
		return []connection{
			{"an agent reaches the API server", agent, host, server, true},
			{"an agent reaches nothing else of the machine", agent, host, shared.Fleet.Ports["temporal"], false},
			{"an agent reaches no other Pod", agent, other.Status.PodIP, metricsPort, false},
			{"another Pod reaches the metrics of an agent", other, agent.Status.PodIP, metricsPort, true},
			{"another Pod does not reach the health of an agent", other, agent.Status.PodIP, healthPort, false},
			{"another Pod reaches the machine, as no policy is for it", other, host, shared.Fleet.Ports["temporal"], true},
		}
	}
	for _, c := range connections() {
		assert.True(t, c.tried(t), "without policies: %s", c.name)
	}
	keepPolicies(t, state.Hub)
	for _, c := range connections() {
		assert.Equal(t, c.accepted, c.tried(t), c.name)
	}
	agentReplaced(t)
	for _, c := range connections() {
		assert.Equal(t, c.accepted, c.tried(t), "after agents were replaced: %s", c.name)
	}
}

// tried says whether a connection from the network of a Pod is accepted.
func (c connection) tried(t *testing.T) bool {
	t.Helper()
	_, id, _ := strings.Cut(c.from.Status.ContainerStatuses[0].ContainerID, "://")
	processes := processesOf(t, id)
	require.NotEmpty(t, processes, c.from.Name)
	ctx, cancel := context.WithTimeout(t.Context(), answers)
	defer cancel()
	return inNetworkOf(ctx, processes[0], "bash", "-c", fmt.Sprintf("exec 3<>/dev/tcp/%s/%d", c.host, c.port)).Run() == nil
}

// inNetworkOf is a command in the network of a process.
func inNetworkOf(ctx context.Context, process int, args ...string) *exec.Cmd {
	return exec.CommandContext(ctx, "nsenter", append([]string{"--target", strconv.Itoa(process), "--net", "--"}, args...)...)
}

// keepPolicies has a cluster's node keep NetworkPolicies until the spec ends: a rule has its kernel ask about each new connection of Pods,
// and a program decides. The rule is one of iptables, as few kernels can say it to nftables, which that program would.
func keepPolicies(t *testing.T, cluster string) {
	t.Helper()
	node := insideOf(t, cluster)
	server := "https://" + net.JoinHostPort(shared.Fleet.HostAddress(cluster), strconv.Itoa(shared.Fleet.Ports[cluster+"/apiserver"]))
	log, err := os.Create(shared.Fleet.Path("logs", "policies.log"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = log.Close() })
	decides := inNetworkOf(context.Background(), node, filepath.Join(bin, "policies"), "--server", server,
		"--kubeconfig", shared.Fleet.Kubeconfig(), "--node", controlplane.NodeName(cluster), "--queue", queue)
	decides.Stdout = log
	decides.Stderr = log
	require.NoError(t, decides.Start())
	t.Cleanup(func() {
		_ = decides.Process.Kill() // it may be gone
		_ = decides.Wait()
	})
	awaitQueue(t, node)
	rule := func(verb string) {
		out, err := inNetworkOf(context.Background(), node, append([]string{shared.Fleet.Tools["iptables"], "--wait", "--table", "mangle", verb}, strings.Fields(queued)...)...).CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	rule("--append")
	t.Cleanup(func() { rule("--delete") }) // before its program ends
}

// awaitQueue waits until a program answers what the kernel asks in the queue, which nothing tells.
func awaitQueue(t *testing.T, node int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		content, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/netfilter/nfnetlink_queue", node))
		require.NoError(t, err)
		if fields := strings.Fields(string(content)); len(fields) > 0 && fields[0] == queue {
			return
		}
		select {
		case <-ctx.Done():
			require.FailNow(t, "no program answers the queue", "%s", shared.Fleet.Path("logs", "policies.log"))
		case <-time.After(askAgain):
		}
	}
}

// insideOf returns process 1 of the node of a cluster, by this machine's numbers: the only child of the process that the supervisor runs.
func insideOf(t *testing.T, cluster string) int {
	t.Helper()
	status, err := shared.Control.Status(t.Context())
	require.NoError(t, err)
	node, is := status.Component(controlplane.Node(cluster))
	require.True(t, is)
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", node.PID))
	require.NoError(t, err)
	for _, file := range files {
		content, _ := os.ReadFile(file) // a thread may have ended
		for child := range strings.FieldsSeq(string(content)) {
			number, err := strconv.Atoi(child)
			require.NoError(t, err)
			return number
		}
	}
	require.FailNow(t, "the node has no process")
	return 0
}
