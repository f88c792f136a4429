//go:build integration

package integration

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/test/devfleet/controlplane"
	"github.com/fleetflow/fleetflow/test/devfleet/state"
	"github.com/fleetflow/fleetflow/test/devfleet/supervisor"
)

const (
	// guestTimeout bounds the start of a guest, scriptTimeout a run of one of the scripts.
	guestTimeout  = 2 * time.Minute
	scriptTimeout = 3 * time.Minute
)

// standIn takes the place of helm: it does with a chart what a spec needs of an installation, which is to run its agent
// with the values that are set. It fails on a flag that it does not know.
const standIn = `#!/usr/bin/env bash
set -euo pipefail
stop() { if [[ -f "$STAND/pid" ]]; then kill -9 "$(cat "$STAND/pid")" 2>/dev/null || true; rm -f "$STAND/pid"; fi; }
verb=$1; shift
[[ "$verb" == upgrade || "$verb" == uninstall ]]
chart="" context="" namespace=""
while (( $# )); do
  case "$1" in
    --kube-context) context=$2; shift 2 ;;
    --namespace) namespace=$2; shift 2 ;;
    --install | --ignore-not-found | --reset-then-reuse-values | member-agent) shift ;;
    --set | --set-string)
      case "$2" in
        config.hubURL=*) export HUB_SERVER_URL=${2#*=} ;;
        config.memberClusterName=*) export MEMBER_CLUSTER_NAME=${2#*=} ;;
        config.hubCA=*) export HUB_CERTIFICATE_AUTHORITY=${2#*=} ;;
        *) echo "no such value: $2" >&2; exit 1 ;;
      esac
      shift 2 ;;
    -*) echo "no such flag: $1" >&2; exit 1 ;;
    *) chart=$1; shift ;;
  esac
done
stop
[[ "$verb" == upgrade ]] || exit 0
"$KUBECTL" --context "$context" apply --server-side -f "$chart/crds" >/dev/null
"$KUBECTL" --context "$context" get secret hub-kubeconfig-secret --namespace "$namespace" -o go-template='{{.data.token | base64decode}}' >"$STAND/token"
export CONFIG_PATH="$STAND/token"
nohup "$AGENT" --kubeconfig "$STAND/agent.kubeconfig" --leader-elect=false --metrics-bind-address=0 --health-probe-bind-address=0 \
  >>"$STAND/agent.log" 2>&1 </dev/null &
echo $! >"$STAND/pid"
`

// guest is a cluster of its own that no fleet knows yet.
type guest struct {
	*cluster
	spec *spec
	// dir has what the scripts need.
	dir string
}

// guest brings up a cluster for the time of the spec: an API server and Kubernetes' own controllers.
func (s *spec) guest(name string) *guest {
	s.Helper()
	dir := s.TempDir()
	lone := &state.Fleet{Dir: dir, Tools: s.Fleet.Tools}
	var err error
	lone.Ports, err = state.AssignPorts(dir, state.Listeners(0), nil, state.PortIsFree)
	require.NoError(s, err)
	controlplane.AddTokens(lone)
	require.NoError(s, controlplane.Prepare(lone))
	needed := []string{state.Hub + "/etcd", state.Hub + "/apiserver", state.Hub + "/controller-manager"}
	processes, err := supervisor.New(0, slices.DeleteFunc(controlplane.Components(lone), func(c supervisor.Spec) bool {
		return !slices.Contains(needed, c.Name)
	}))
	require.NoError(s, err)
	running, end := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		processes.Run(running)
	}()
	s.Cleanup(func() {
		end()
		<-ended
	})
	waiting, cancel := context.WithTimeout(s.Context(), guestTimeout)
	defer cancel()
	for _, component := range needed {
		require.NoError(s, processes.WaitReady(waiting, component))
	}
	config, err := controlplane.RESTConfig(lone, state.Hub)
	require.NoError(s, err)
	c, err := client.NewWithWatch(config, client.Options{Scheme: controlplane.Scheme()})
	require.NoError(s, err)
	g := &guest{cluster: &cluster{WithWatch: c, name: name}, spec: s, dir: dir}
	g.equip(lone)
	return g
}

// equip writes what the scripts need: the stand-in for helm, and one kubeconfig with the hub's context and the guest's.
func (g *guest) equip(lone *state.Fleet) {
	s := g.spec
	own, err := clientcmd.LoadFromFile(lone.Kubeconfig())
	require.NoError(s, err)
	require.NoError(s, clientcmd.WriteToFile(*own, filepath.Join(g.dir, "agent.kubeconfig")))
	both, err := clientcmd.LoadFromFile(s.Fleet.Kubeconfig())
	require.NoError(s, err)
	both.Clusters[g.name] = own.Clusters[state.Hub]
	both.AuthInfos[g.name] = own.AuthInfos[state.Hub]
	login := own.Contexts[state.Hub].DeepCopy()
	login.Cluster = g.name
	login.AuthInfo = g.name
	both.Contexts[g.name] = login
	require.NoError(s, clientcmd.WriteToFile(*both, filepath.Join(g.dir, "both.kubeconfig")))
	require.NoError(s, os.WriteFile(filepath.Join(g.dir, "helm"), []byte(standIn), 0o700)) //nolint:gosec // it is a program
	s.Cleanup(g.killAgent)
}

// killAgent ends the agent, if one runs, without giving it the time to say good-bye.
func (g *guest) killAgent() {
	content, err := os.ReadFile(filepath.Join(g.dir, "pid"))
	if err != nil {
		return
	}
	if g.spec.Failed() {
		g.spec.Logf("===== last lines of the guest's agent\n%s", lastLines(filepath.Join(g.dir, "agent.log"), logLines))
	}
	if pid, err := strconv.Atoi(strings.TrimSpace(string(content))); err == nil {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}

// script runs a script of deploy/join with the variables that KubeFleet's documentation names, and others.
func (g *guest) script(name string, variables ...string) string {
	s := g.spec
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), scriptTimeout)
	defer cancel()
	command := exec.CommandContext(ctx, filepath.Join(root, "deploy", "join", name))
	command.Env = append(os.Environ(),
		"HUB_CLUSTER_CONTEXT="+state.Hub, "HUB_CLUSTER_ADDRESS="+s.Fleet.APIServerURL(state.Hub),
		"MEMBER_CLUSTER="+g.name, "MEMBER_CLUSTER_CONTEXT="+g.name,
		"HUB_ACCESS_NAMESPACE="+s.name+"-access", "KUBECONFIG="+filepath.Join(g.dir, "both.kubeconfig"),
		"KUBECTL="+s.Fleet.Path("bin", "kubectl"), "HELM="+filepath.Join(g.dir, "helm"),
		"STAND="+g.dir, "AGENT="+s.Fleet.Path("bin", "member-agent"),
	)
	command.Env = append(command.Env, variables...)
	out, err := command.CombinedOutput()
	require.NoError(s, err, "%s:\n%s", name, out)
	return string(out)
}
