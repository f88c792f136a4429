//go:build integration

package charts

import (
	"bytes"
	"cmp"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
)

const memberClusters = "cluster.kubernetes-fleet.io/v1beta1"

// operator is somebody at a command line, with kubectl, helm and kubectl-fleet, and a kubeconfig with all clusters.
type operator struct {
	t     *testing.T
	fleet *fleet
	// kubeconfig is the operator's own, that of the fleet if empty; folder is where the operator is, the repository if empty.
	kubeconfig, folder string
}

// newOperator builds helm, from the module that the other tests render charts with, the plugin and the agents.
func newOperator(t *testing.T, f *fleet) *operator {
	t.Helper()
	for folder, programs := range map[string][]string{
		".": {"helm.sh/helm/v4/cmd/helm"}, root: {"./cmd/hub-agent", "./cmd/member-agent", "./cmd/kubectl-fleet"},
	} {
		build := exec.CommandContext(t.Context(), "go", append([]string{"build", "-ldflags=-s -w", "-o", f.bin + "/"}, programs...)...)
		build.Dir = folder
		out, err := build.CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	require.NoError(t, os.Symlink(f.tool("kubectl"), filepath.Join(f.bin, "kubectl")))
	return &operator{t: t, fleet: f}
}

// command is a command, as one would type it in the repository's folder.
func (o *operator) command(line string) *exec.Cmd {
	o.t.Helper()
	command := exec.CommandContext(o.t.Context(), "bash", "-c", "set -eu; "+line)
	command.Dir = cmp.Or(o.folder, root)
	home := filepath.Join(o.fleet.bin, "home")
	command.Env = append(os.Environ(), "KUBECONFIG="+cmp.Or(o.kubeconfig, filepath.Join(o.fleet.dir, "kubeconfig")), "HOME="+home,
		"HELM_CACHE_HOME="+home, "HELM_CONFIG_HOME="+home, "HELM_DATA_HOME="+home,
		"PATH="+o.fleet.bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	return command
}

// start starts a command and returns what waits for its end.
func (o *operator) start(line string) (end func() string) {
	o.t.Helper()
	command := o.command(line)
	var out bytes.Buffer
	command.Stdout = &out
	command.Stderr = &out
	require.NoError(o.t, command.Start())
	waited := false
	o.t.Cleanup(func() {
		if !waited {
			_ = command.Wait() // the end of the test has ended it
			o.t.Logf("%s\n%s", line, out.String())
		}
	})
	return func() string {
		waited = true
		o.t.Helper()
		require.NoError(o.t, command.Wait(), "%s\n%s", line, out.String())
		return out.String()
	}
}

func (o *operator) run(line string) string {
	o.t.Helper()
	return o.start(line)()
}

// play does what a kubelet does of a Deployment: it waits until it is there and runs its agent, until it is told to end.
func (c *cluster) play(t *testing.T, name string) (end func()) {
	t.Helper()
	return c.playAs(t, name, name)
}

// playAs plays a Deployment that runs a program of another name, with further arguments.
func (c *cluster) playAs(t *testing.T, name, program string, further ...string) (end func()) {
	t.Helper()
	a := c.deployed(t, name)
	a.program, a.args = program, append(a.args, further...)
	a.health = "127.0.0.1:" + freePort(t)
	a.args = append(a.args, "--kubeconfig="+c.kubeconfig(t, a), "--metrics-bind-address=127.0.0.1:"+freePort(t), "--health-probe-bind-address="+a.health)
	a.log = filepath.Join(t.TempDir(), name+".log")
	log, err := os.Create(a.log)
	require.NoError(t, err)
	running, stop := context.WithCancel(context.Background())
	command := exec.CommandContext(running, filepath.Join(c.fleet.bin, a.program), a.args...)
	command.Env = append(os.Environ(), a.env...)
	command.Stdout = log
	command.Stderr = log
	command.Cancel, command.WaitDelay = func() error { return command.Process.Signal(syscall.SIGTERM) }, agentStop
	require.NoError(t, command.Start(), a.program)
	ended := false
	end = func() {
		if ended {
			return
		}
		ended = true
		stop()
		_ = command.Wait() // it was told to end
		log.Close()
		if t.Failed() {
			content, _ := os.ReadFile(a.log)
			t.Logf("===== the end of the log of %s on %s\n%s", name, c.name, content[max(0, len(content)-4000):])
		}
	}
	t.Cleanup(end)
	return end
}

// deployed waits for a Deployment and reads its agent.
func (c *cluster) deployed(t *testing.T, name string) *agent {
	t.Helper()
	d := &appsv1.Deployment{}
	await(t, "Deployment "+name+" on "+c.name, func() bool {
		object, err := c.get(t, "apps/v1", "Deployment", namespace, name)
		return err == nil && runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, d) == nil
	})
	return c.agentOf(t, name, d)
}

func (c *cluster) awaitNo(t *testing.T, version, kind, namespace, name string) {
	t.Helper()
	await(t, kind+" "+name+" is gone from "+c.name, func() bool {
		_, err := c.get(t, version, kind, namespace, name)
		return apierrors.IsNotFound(err)
	})
}

// TestInstalledByHelm has an operator work with helm itself: the hub agent is installed as KubeFleet's documentation
// prints it, clusters join and leave with kubectl fleet, and everything is uninstalled in order. Only Pods are played.
func TestInstalledByHelm(t *testing.T) {
	f := bringUp(t)
	o := newOperator(t, f)
	began := time.Now()
	// The other way around: the fleet's hub has what its agent needs already, made by other means than helm.
	hub := f.cluster(t, "member-1")
	one := f.cluster(t, "hub")
	options := "temporal.address=" + f.temporal
	if _, err := hub.get(t, "v1", "Namespace", "", namespace); err == nil {
		options += ",createNamespace=false" // as for any namespace that helm has not made
	}
	o.run(`helm install hub-agent deploy/charts/hub-agent/ --kube-context member-1 \
		--set image.pullPolicy=Always --set image.repository=registry.example.com/hub-agent --set image.tag=v0.1 \
		--set logVerbosity=2 --set namespace=fleet-system --set enableWebhook=true --set webhookClientConnectionType=service \
		--set enableV1Alpha1APIs=false --set enableV1Beta1APIs=true --set ` + options)
	hub.mapper.Reset()
	endHub := hub.play(t, "hub-agent")
	hub.apply(t, manifest(`{apiVersion: v1, kind: Namespace, metadata: {name: shop}}`))
	await(t, "placements are served", func() bool {
		_, err := hub.get(t, "placement.kubernetes-fleet.io/v1beta1", "ClusterResourcePlacement", "", "shop")
		return apierrors.IsNotFound(err)
	})
	hub.apply(t, manifest(`
apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: ClusterResourcePlacement
metadata: {name: shop}
spec:
  resourceSelectors: [{group: "", version: v1, kind: Namespace, name: shop}]
  policy: {placementType: PickAll}`))
	await(t, "the hub agent works", func() bool {
		return hub.condition(t, "placement.kubernetes-fleet.io/v1beta1", "ClusterResourcePlacement", "", "shop", "ClusterResourcePlacementScheduled")
	})

	for _, leave := range []string{"unjoin one --member-context hub", "unjoin --all"} {
		end := joinByPlugin(t, o, one, "one")
		await(t, "what is placed is on the cluster", func() bool {
			_, err := one.get(t, "v1", "Namespace", "", "shop")
			return err == nil
		})
		t.Log(o.run("kubectl fleet " + leave + " --yes --context member-1"))
		hub.awaitNo(t, memberClusters, "MemberCluster", "", "one")
		hub.awaitNo(t, "v1", "ServiceAccount", "connect-to-fleet", "one-hub-cluster-access")
		one.awaitNo(t, "v1", "Namespace", "", "shop")
		if !strings.Contains(leave, "--member-context") {
			o.run("helm uninstall member-agent --namespace fleet-system --kube-context hub")
		}
		end()
		one.requireNoAgent(t, o)
	}
	hub.delete(t, "placement.kubernetes-fleet.io/v1beta1", "ClusterResourcePlacement", "shop")
	hub.awaitNo(t, "placement.kubernetes-fleet.io/v1beta1", "ClusterResourcePlacement", "", "shop")
	o.run("helm uninstall hub-agent --kube-context member-1")
	endHub()
	assert.NotContains(t, o.run("helm list --all-namespaces --kube-context member-1"), "hub-agent")
	_, err := hub.get(t, "apps/v1", "Deployment", namespace, "hub-agent")
	assert.True(t, apierrors.IsNotFound(err))
	t.Logf("all of it took %s, without building", time.Since(began).Round(time.Second))
}

// joinByPlugin makes a cluster a member, as a Pod of it would run as soon as helm has installed it.
func joinByPlugin(t *testing.T, o *operator, c *cluster, name string) (end func()) {
	t.Helper()
	began := time.Now()
	joined := o.start("kubectl fleet join " + name + " --member-context " + c.name + " --context member-1 --timeout 2m")
	end = c.play(t, "member-agent")
	out := joined()
	t.Logf("kubectl fleet join with helm itself: %s\n%s", time.Since(began).Round(time.Millisecond), out)
	_, rest, installed := strings.Cut(out, "installing the agent on "+c.name)
	assert.True(t, installed, "it installs the agent")
	assert.Contains(t, rest, "waiting until "+name+" has joined", "it waits once the agent is there")
	return end
}

// requireNoAgent asserts that nothing of the agent is left on a cluster but its kinds.
func (c *cluster) requireNoAgent(t *testing.T, o *operator) {
	t.Helper()
	for kind, version := range map[string]string{"Deployment": "apps/v1", "ServiceAccount": "v1"} {
		_, err := c.get(t, version, kind, namespace, "member-agent")
		assert.True(t, apierrors.IsNotFound(err), "%s: %v", kind, err)
	}
	_, err := c.get(t, "rbac.authorization.k8s.io/v1", "ClusterRole", "", "member-agent")
	assert.True(t, apierrors.IsNotFound(err), "ClusterRole: %v", err)
	assert.NotContains(t, o.run("helm list --all-namespaces --kube-context "+c.name), "member-agent")
}
