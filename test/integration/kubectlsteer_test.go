//go:build integration

package integration

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/test/devfleet/state"
)

// steer runs a verb that has to succeed, and returns what it prints.
func (s *spec) steer(args ...string) string {
	s.Helper()
	out, code := s.kubectlFleet(args...)
	require.Zero(s, code, "kubectl fleet %v: %s", args, out)
	return out
}

// runNamed reads a run.
func (s *spec) runNamed(name string) *placementv1beta1.ClusterStagedUpdateRun {
	s.Helper()
	run := &placementv1beta1.ClusterStagedUpdateRun{}
	require.NoError(s, s.hub.Get(s.Context(), client.ObjectKey{Name: name}, run))
	return run
}

// commandLineSteersARun takes a run through stop, resume and approval, and back.
func commandLineSteersARun(s *spec) {
	s.externalPlacement()
	s.strategy(staging(approval), canary())
	name := s.name + "-1"
	require.Equal(s, "run/"+name+" created\n", s.steer("run", s.name, "--strategy", s.name, "--index", "0"))
	run := s.runNamed(name)
	s.awaitRequest(run, "staging")
	require.Contains(s, s.steer("status", name), "kubectl fleet approve "+name+" --stage staging")

	s.steer("stop", "run/"+name)
	s.awaitStopped(run)
	require.Contains(s, s.steer("approve", name, "--comment", "lgtm"), "stage staging of run/"+name+" approved")
	s.requireQuiet()
	s.requireNothingOn("member-1", "member-3")
	s.steer("resume", name)
	s.requireApproved(run, "staging", kubectlChannel)
	s.awaitSucceeded(run)
	s.awaitValue(value1, allMembers...)
	out, code := s.kubectlFleet("stop", name)
	require.Equal(s, 1, code)
	require.Contains(s, out, "has ended (succeeded)")

	s.changeTo(value2)
	s.awaitSnapshot(1)
	s.strategyNamed(s.name+"-all", everywhere())
	name = s.name + "-2"
	s.steer("run", s.name, "--strategy", s.name+"-all", "--name", name)
	s.awaitSucceeded(s.runNamed(name))
	s.awaitValue(value2, allMembers...)
	out, code = s.kubectlFleet("rollback", name)
	require.Equal(s, 1, code, "there is no terminal to ask on")
	require.Contains(s, out, "there is no terminal to ask on; give --yes")
	s.steer("rollback", name, "--yes")
	s.awaitSucceeded(s.runNamed(name + "-rollback"))
	s.awaitValue(value1, allMembers...)
}

func (s *spec) awaitSnapshot(index int) {
	s.Helper()
	s.awaitSnapshotOf(s.name, index)
}

func (s *spec) awaitSnapshotOf(placement string, index int) {
	s.Helper()
	taken := &placementv1beta1.ClusterResourceSnapshot{ObjectMeta: metav1.ObjectMeta{Name: placementv1beta1.ResourceSnapshotName(placement, index, 0)}}
	await(s, s.hub, taken, "to be taken", func(*placementv1beta1.ClusterResourceSnapshot) error { return nil })
}

// commandLineSkipsAndRetries leaves a cluster out that cannot be updated, and takes it back in a run to come.
func commandLineSkipsAndRetries(s *spec) {
	s.obstructed("member-2", staging(), canary())
	s.awaitSnapshot(1)
	name := s.name + "-next"
	s.steer("run", s.name, "--strategy", s.name, "--name", name)
	run := s.runNamed(name)
	s.awaitStarted(run, "member-2")
	s.steer("retry", name, "member-2")
	await(s, s.hub, run.DeepCopy(), "to be asked for another attempt", func(r *placementv1beta1.ClusterStagedUpdateRun) error {
		if len(r.Spec.ClusterActions) != 1 || r.Spec.ClusterActions[0].Action != placementv1beta1.ClusterActionRetry {
			return fmt.Errorf("its actions are %v", r.Spec.ClusterActions)
		}
		return nil
	})
	s.steer("skip", name, "member-2", "--yes")
	s.awaitSucceeded(run)
	s.requireIndexes("1", "1", "1")
	out, code := s.kubectlFleet("skip", name, "member-9", "--yes")
	require.Equal(s, 1, code)
	require.Contains(s, out, "has ended")
}

// commandLineEvicts asks for evictions that a budget forbids, and allows.
func commandLineEvicts(s *spec) {
	s.namespaceWithConfigMap()
	s.place()
	s.budget("", "3")
	s.awaitAvailable("0")
	out, code := s.kubectlFleet("evict", s.name, "member-1", "--yes")
	require.Equal(s, 1, code, out)
	require.Contains(s, out, byBudget("blocked", 3, 3))
	update(s, s.hub, &placementv1beta1.ClusterResourcePlacementDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: s.name}},
		func(b *placementv1beta1.ClusterResourcePlacementDisruptionBudget) {
			b.Spec.MinAvailable = new(intstr.FromInt32(2))
		})
	before := s.bindingOn("member-1")
	require.Contains(s, s.steer("evict", s.name, "member-1", "--yes"), byBudget("allowed", 3, 3))
	s.awaitReplaced("member-1", before)
	out, code = s.kubectlFleet("evict", s.name, "member-9", "--yes")
	require.Equal(s, 1, code)
	require.Contains(s, out, notPicked)
}

// commandLineFederates places what is on the hub already, and leaves it on the members when the placement goes.
func commandLineFederates(s *spec) {
	s.namespaceWithConfigMap()
	s.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.name, Name: "hidden"}, StringData: map[string]string{"key": "value"}})
	s.federateOneObject()

	printed := s.steer("federate", "ns", s.name, "-o", "yaml")
	require.Contains(s, printed, "placementType: PickAll")
	out := s.steer("federate", "ns", s.name, "--skip-api-resources", "secrets", "--clusters", "member-1,member-2")
	require.Equal(s, "placement/"+s.name+" created: namespace/"+s.name+", its ConfigMaps on member-1, member-2\n", out)
	s.awaitValue(value1, "member-1", "member-2")
	s.awaitAvailable("0")
	s.requireNothingOn("member-3")
	for _, name := range []string{"member-1", "member-2"} {
		err := s.member(name).Get(s.Context(), client.ObjectKey{Namespace: s.name, Name: "hidden"}, &corev1.Secret{})
		require.Error(s, err, "what is skipped must not be on %s", name)
		require.NoError(s, client.IgnoreNotFound(err))
	}

	require.Contains(s, s.steer("orphaning", "status", s.name), "disabled: ")
	s.steer("orphaning", "enable", s.name)
	require.Contains(s, s.steer("orphaning", "status", "crp/"+s.name), "enabled: ")
	p := s.placement()
	s.delete(s.hub, p)
	awaitGone(s, s.hub, p)
	s.requireQuiet()
	s.awaitValue(value1, "member-1", "member-2")
}

// federateOneObject places an object of a namespace, the namespace that it lives in, and nothing else of it.
func (s *spec) federateOneObject() {
	s.Helper()
	folder, err := os.MkdirTemp("", "federate-") // that of the test has a comma in its name, which parts files
	require.NoError(s, err)
	s.Cleanup(func() { _ = os.RemoveAll(folder) }) // a folder for temporary files
	one := &placementv1beta1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: s.name + "-one"}}
	out := s.steer("federate", "configmaps", configMapName, "-n", s.name, "--name", one.Name, "--clusters", "member-3")
	require.Equal(s, fmt.Sprintf("placement/%s created: namespace/%s, configmap/%s on member-3\n", one.Name, s.name, configMapName), out)
	s.awaitValue(value1, "member-3")
	err = s.member("member-3").Get(s.Context(), client.ObjectKey{Namespace: s.name, Name: "hidden"}, &corev1.Secret{})
	require.Error(s, err, "nothing else of the namespace must be on member-3")
	require.NoError(s, client.IgnoreNotFound(err))

	piped := filepath.Join(folder, "settings.yaml")
	require.NoError(s, os.WriteFile(piped, fmt.Appendf(nil, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s, namespace: %s}\n", configMapName, s.name), 0o600))
	fromFile := s.steer("federate", "--filename", piped, "--name", one.Name, "--clusters", "member-3")
	require.Equal(s, s.steer("federate", "configmaps", configMapName, "-n", s.name, "--name", one.Name, "--clusters", "member-3", "-o", "yaml"), fromFile)
	require.NoError(s, os.WriteFile(piped, []byte(fromFile), 0o600))
	s.delete(s.hub, one)
	awaitGone(s, s.hub, one)
	s.awaitCleared("member-3")
	s.kubectl("create", "-f", piped)
	s.awaitValue(value1, "member-3")
	s.delete(s.hub, one)
	awaitGone(s, s.hub, one)
	s.awaitCleared("member-3")
}

// commandLineDrains takes a member out of use, and back.
func commandLineDrains(s *spec) {
	s.namespaceWithConfigMap()
	s.place()
	s.awaitAvailable("0")
	defer s.uncordonMember("member-2")
	out := s.steer("drain", "member-2", "--yes")
	require.Contains(s, out, "placement/"+s.name+" evicted\n")
	require.Contains(s, out, "member/member-2 drained\n")
	s.awaitCleared("member-2")
	require.Contains(s, s.steer("cordon", "member-2"), "is cordoned already")
	s.steer("uncordon", "member-2")
	s.awaitValue(value1, allMembers...)
}

// uncordonMember is for the end of a spec that may have failed.
func (s *spec) uncordonMember(name string) {
	m := &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
	update(s, s.hub, m, func(m *clusterv1beta1.MemberCluster) { m.Spec.Taints = nil })
}

// joinTarget is how long it may take to make a cluster that is prepared a member on a busy machine; an idle one takes seconds.
const joinTarget = time.Minute

// commandLineJoins makes a cluster a member that no fleet knows, has it leave, and join again.
func commandLineJoins(s *spec) {
	s.namespaceWithConfigMap()
	s.place()
	s.awaitAvailable("0")
	g := s.guest(s.name + "-guest")
	for _, agent := range []string{"helm", "none"} {
		began := time.Now()
		installed := make(chan error, 1)
		if agent == "none" {
			go func() { installed <- g.install() }()
		} else {
			installed <- nil
		}
		out, code := g.kubectlFleet("join", g.name, "--member-context", g.name, "--access-namespace", s.name+"-access", "--agent", agent, "--timeout", "1m")
		took := time.Since(began)
		require.NoError(s, <-installed)
		require.Zero(s, code, out)
		s.Logf("kubectl fleet join --agent %s took %s:\n%s", agent, took.Round(time.Millisecond), out)
		require.Less(s, took, joinTarget)
		require.Contains(s, out, "waiting until "+g.name+" has joined")
		g.awaitValue(value1)
		g.requireMember()

		out, code = g.kubectlFleet("unjoin", g.name, "--member-context", g.name, "--yes")
		require.Zero(s, code, out)
		g.requireNothingLeft()
		awaitGone(s, g.cluster, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.name}})
	}
}

// install has the agent come otherwise than by the plugin, once its token is there.
func (g *guest) install() error {
	s := g.spec
	secret := client.ObjectKey{Namespace: "fleet-system", Name: "hub-kubeconfig-secret"}
	err := wait.PollUntilContextTimeout(s.Context(), againEvery, patience, true, func(ctx context.Context) (bool, error) {
		err := g.Get(ctx, secret, &corev1.Secret{})
		return err == nil, client.IgnoreNotFound(err)
	})
	if err != nil {
		return fmt.Errorf("waiting for the token on the guest: %w", err)
	}
	kubeconfig, err := clientcmd.LoadFromFile(s.Fleet.Kubeconfig())
	if err != nil {
		return err
	}
	if err := api.FlattenConfig(kubeconfig); err != nil { // what is in files comes in
		return err
	}
	authority := base64.StdEncoding.EncodeToString(kubeconfig.Clusters[state.Hub].CertificateAuthorityData)
	command := exec.CommandContext(s.Context(), filepath.Join(g.dir, "helm"), "upgrade", "--install", "member-agent", //nolint:gosec // the stand-in
		filepath.Join(root, "deploy", "charts", "member-agent"), "--kube-context", g.name, "--namespace", secret.Namespace,
		"--set", "config.hubURL="+s.Fleet.APIServerURL(state.Hub), "--set", "config.memberClusterName="+g.name, "--set", "config.hubCA="+authority)
	command.Env = g.environment()
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("installing the agent: %w: %s", err, out)
	}
	return nil
}

// environment is that of programs that work with the hub and the guest.
func (g *guest) environment() []string {
	fleet := g.spec.Fleet
	return append(os.Environ(), "KUBECONFIG="+filepath.Join(g.dir, "both.kubeconfig"),
		"PATH="+g.dir+string(os.PathListSeparator)+os.Getenv("PATH"),
		"KUBECTL="+fleet.Path("bin", "kubectl"), "STAND="+g.dir, "AGENT="+fleet.Path("bin", "member-agent"))
}

// kubectlFleet runs the plugin with the contexts of the hub and of the guest, and the stand-in in the place of helm.
func (g *guest) kubectlFleet(args ...string) (out string, code int) {
	s := g.spec
	s.Helper()
	command := exec.CommandContext(s.Context(), s.Fleet.Path("bin", "kubectl-fleet"), append(args, "--context", state.Hub)...)
	command.Env = g.environment()
	text, err := command.CombinedOutput()
	if exit, is := errors.AsType[*exec.ExitError](err); is {
		return string(text), exit.ExitCode()
	}
	require.NoError(s, err)
	return string(text), 0
}
