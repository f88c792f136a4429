//go:build integration

package pods

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/test/devfleet/access"
	"github.com/fleetflow/fleetflow/test/devfleet/control"
	"github.com/fleetflow/fleetflow/test/devfleet/controlplane"
	"github.com/fleetflow/fleetflow/test/devfleet/state"
)

const (
	// anotherLeads is how long it may take until another agent leads: the lease of a frozen one is over after 15 s.
	anotherLeads = 30 * time.Second
	// agentContainer and temporalContainer are those of a Pod of the hub agent.
	agentContainer    = "hub-agent"
	temporalContainer = "temporal"
	// cutOff is how long Temporal is away: longer than the agent's first attempts to reach it again.
	cutOff = 30 * time.Second
)

// leaderFrozen stops all processes of the agent that leads: another leads once the lease is over, and carries a run on.
func leaderFrozen(t *testing.T) {
	scaleAgents(t, 2)
	pod := leader(t)
	signal(t, pod, agentContainer, syscall.SIGSTOP)
	t.Cleanup(func() { signal(t, pod, agentContainer, syscall.SIGCONT) })
	done := beginRun(t, "soaked")
	frozen := time.Now()
	awaitOtherLeader(t, pod)
	t.Logf("another agent led %.1f s after the leader was frozen", time.Since(frozen).Seconds())
	assert.LessOrEqual(t, time.Since(frozen), anotherLeads)
	done()
}

// agentKilled ends the agent that leads as the kernel does when memory is short, and then the Temporal server beside the next one, each
// in the middle of a run.
func agentKilled(t *testing.T) {
	for _, container := range []string{agentContainer, temporalContainer} {
		pod := leader(t)
		done := beginRun(t, "soaked")
		signal(t, pod, container, syscall.SIGKILL)
		done()
	}
	sh(t, "kubectl --context hub -n "+system+" rollout status deployment/hub-agent --timeout=120s")
}

// tooLittleMemory upgrades to an agent that the kernel ends at once: the one before stays and leads, and the way back is an upgrade.
func tooLittleMemory(t *testing.T) {
	scaleAgents(t, 1)
	sh(t, upgrade+"--set resources.limits.memory=12Mi --set resources.requests.memory=12Mi")
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	_, err := access.AwaitAll(ctx, shared.Hub, func(pods []*corev1.Pod) string {
		for _, pod := range pods {
			for _, container := range pod.Status.ContainerStatuses {
				if ended := container.LastTerminationState.Terminated; ended != nil && ended.Reason == "OOMKilled" {
					return ""
				}
			}
		}
		return "no container was ended for its memory"
	}, client.InNamespace(system))
	require.NoError(t, err)
	beginRun(t, "web")()
	upgradeHub(t, "--set resources.limits.memory=1Gi --set resources.requests.memory=256Mi")
}

// drained drains the only node: the budget keeps one of two agents, and drain says so. After that all is as before.
func drained(t *testing.T) {
	scaleAgents(t, 2)
	node := strings.TrimSpace(sh(t, "kubectl --context hub get nodes -o jsonpath='{.items[0].metadata.name}'"))
	out, err := command(t, "kubectl --context hub drain "+node+" --ignore-daemonsets --delete-emptydir-data --force --timeout=20s "+
		"--pod-selector app.kubernetes.io/name=hub-agent,app.kubernetes.io/component=agent").CombinedOutput()
	require.Error(t, err, "%s", out)
	assert.Contains(t, string(out), "would violate the pod's disruption budget")
	leader(t)
	beginRun(t, "web")()
	sh(t, "kubectl --context hub uncordon "+node)
	sh(t, "kubectl --context hub -n "+system+" rollout status deployment/hub-agent --timeout=120s")
}

// workersApart moves the hub in the middle of a run to a Temporal of its own with workers in Pods of their own, takes that Temporal away
// in the middle of another, and moves back in the middle of a third.
func workersApart(t *testing.T) {
	address := fmt.Sprintf("%s:%d", shared.Fleet.HostAddress(state.Hub), shared.Fleet.Ports["temporal"])
	done := beginRun(t, "soaked")
	upgradeHub(t, "--set temporal.mode=External --set temporal.address="+address+" --set workers.enabled=true")
	done()
	sh(t, "kubectl --context hub -n "+system+" rollout status deployment/hub-agent deployment/hub-agent-workers --timeout=120s")

	done = beginRun(t, "soaked")
	require.NoError(t, shared.Control.Do(t.Context(), control.Stop, controlplane.Temporal))
	select { // nothing tells that this time is over
	case <-time.After(cutOff):
	case <-t.Context().Done():
	}
	require.NoError(t, shared.Control.Do(t.Context(), control.Start, controlplane.Temporal))
	done()

	done = beginRun(t, "soaked")
	upgradeHub(t, "--set temporal.mode=Bundled --set temporal.address= --set workers.enabled=false")
	done()
}

// metricsScraped reads the metrics as Prometheus does: from a Pod, by the name of the Service, with the token of its account, which has
// the right. Another account is refused.
func metricsScraped(t *testing.T) {
	sh(t, "kubectl --context hub create namespace "+metricsFrom)
	sh(t, "kubectl --context hub -n "+metricsFrom+" create serviceaccount prometheus")
	sh(t, "kubectl --context hub create clusterrolebinding prometheus --clusterrole=hub-agent-metrics-reader --serviceaccount="+metricsFrom+":prometheus")
	assert.Contains(t, scraped(t, "prometheus"), "\nfleetflow_")
	assert.Contains(t, scraped(t, "default"), "403 Forbidden")
}

// scraped returns what a Pod with an account got from the Service of the metrics.
func scraped(t *testing.T, account string) string {
	t.Helper()
	name := "scrape-" + account
	url := "https://hub-agent-metrics." + system + ":8080/metrics"
	apply(t, fmt.Sprintf(scrape, name, account, url))
	sh(t, "kubectl --context hub -n "+metricsFrom+" wait pod/"+name+" --for=jsonpath='{.status.phase}'=Succeeded --timeout=60s")
	return sh(t, "kubectl --context hub -n "+metricsFrom+" logs "+name)
}

const scrape = `
apiVersion: v1
kind: Pod
metadata: {name: %s, namespace: monitoring}
spec:
  serviceAccountName: %s
  restartPolicy: Never
  containers:
  - name: get
    image: devfleet.local/workload:1
    args: [get, --address, %q, --token-file, /var/run/secrets/kubernetes.io/serviceaccount/token]
`

// upgrade changes values of the hub's release, all others stay.
const upgrade = "helm upgrade hub-agent deploy/charts/hub-agent -n " + system + " --kube-context hub --reuse-values "

// scaleAgents has a number of agents, one of which leads; one that it ends has given the lease back.
func scaleAgents(t *testing.T, replicas int) {
	t.Helper()
	agents := &appsv1.Deployment{}
	require.NoError(t, shared.Hub.Get(t.Context(), client.ObjectKey{Namespace: system, Name: "hub-agent"}, agents))
	if int(*agents.Spec.Replicas) != replicas || int(agents.Status.ReadyReplicas) != replicas {
		upgradeHub(t, fmt.Sprintf("--set replicaCount=%d", replicas))
	}
	leader(t)
}

// upgradeHub changes values of the hub's release, and waits until its Pods are ready.
func upgradeHub(t *testing.T, values string) {
	t.Helper()
	sh(t, upgrade+"--wait --timeout 120s "+values)
}

// leader returns the Pod whose agent leads. One that is about to end does not count.
func leader(t *testing.T) *corev1.Pod {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var leads *corev1.Pod
	_, err := access.Await(ctx, shared.Hub, client.ObjectKey{Namespace: system, Name: lease}, func(held *coordinationv1.Lease) string {
		if held == nil || held.Spec.HolderIdentity == nil || *held.Spec.HolderIdentity == "" {
			return "no agent leads"
		}
		pods := &corev1.PodList{}
		if err := shared.Hub.List(ctx, pods, client.InNamespace(system)); err != nil {
			return err.Error()
		}
		for i := range pods.Items {
			if leads = &pods.Items[i]; leads.DeletionTimestamp.IsZero() && holds(held, leads) {
				return ""
			}
		}
		return "is held by " + *held.Spec.HolderIdentity + ", which is no Pod that stays"
	})
	require.NoError(t, err)
	return leads
}

func holds(held *coordinationv1.Lease, pod *corev1.Pod) bool {
	holder := *held.Spec.HolderIdentity
	return strings.Contains(holder, string(pod.UID)) || strings.HasPrefix(holder, pod.Name)
}

// awaitOtherLeader waits until another Pod's agent leads.
func awaitOtherLeader(t *testing.T, pod *corev1.Pod) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	_, err := access.Await(ctx, shared.Hub, client.ObjectKey{Namespace: system, Name: lease}, func(held *coordinationv1.Lease) string {
		if held == nil || held.Spec.HolderIdentity == nil || *held.Spec.HolderIdentity == "" {
			return "no agent leads"
		}
		if holds(held, pod) {
			return "is held by " + pod.Name
		}
		return ""
	})
	require.NoError(t, err)
}

// signal sends a signal to all processes of a container: those in the cgroup that has its ID as its name.
func signal(t *testing.T, pod *corev1.Pod, container string, sent syscall.Signal) {
	t.Helper()
	processes := map[int]bool{}
	for _, status := range append(pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses...) {
		if status.Name == container {
			_, id, _ := strings.Cut(status.ContainerID, "://")
			for _, process := range processesOf(t, id) {
				processes[process] = true
			}
		}
	}
	if sent != syscall.SIGCONT { // a container that was frozen may have been ended since
		require.NotEmpty(t, processes, "container %s of %s", container, pod.Name)
	}
	for process := range processes {
		_ = syscall.Kill(process, sent) // one may have ended meanwhile
	}
}

// processesOf returns the processes of a container by this machine's numbers.
func processesOf(t *testing.T, id string) []int {
	t.Helper()
	var processes []int
	require.NotEmpty(t, id)
	_ = filepath.WalkDir("/sys/fs/cgroup", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // a group may vanish while it is looked at
		}
		if !entry.IsDir() || !strings.Contains(entry.Name(), id) {
			return nil
		}
		content, _ := os.ReadFile(filepath.Join(path, "cgroup.procs"))
		for line := range strings.FieldsSeq(string(content)) {
			if number, err := strconv.Atoi(line); err == nil && number > 0 {
				processes = append(processes, number)
			}
		}
		return fs.SkipDir
	})
	return processes
}
