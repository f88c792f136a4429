//go:build integration

package charts

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const (
	placements = "placement.kubernetes-fleet.io/v1beta1"
	runKind    = "ClusterStagedUpdateRun"
)

// hubPod plays the Pod of a hub agent: the agent, and Temporal beside it if the Pod has one.
type hubPod struct {
	*cluster
	agent    *agent
	temporal string
}

// startPod installs the chart with values and plays its Pod.
func (c *cluster) startPod(t *testing.T, temporal values) *hubPod {
	t.Helper()
	return c.startPodOf(t, 1, temporal)
}

// startPodOf installs the chart with values and plays one of so many Pods.
func (c *cluster) startPodOf(t *testing.T, replicas int, temporal values) *hubPod {
	t.Helper()
	agents := c.install(t, "hub-agent", values{"temporal": temporal, "replicaCount": replicas, "logVerbosity": 1})
	require.Len(t, agents, 1)
	p := &hubPod{cluster: c, agent: agents[0]}
	if server := p.agent.temporal; server != nil {
		p.temporal = "127.0.0.1:" + freePort(t)
		server.program = c.fleet.build(t, server.program)
		server.args = append(server.args, "--server="+c.fleet.tool("temporal"), "--address="+p.temporal, "--http-address=127.0.0.1:"+freePort(t))
		p.agent.args = append(p.agent.args, "--temporal-address="+p.temporal)
		c.fleet.start(t, server)
		await(t, "it answers the probe of its Pod", func() bool {
			return exec.CommandContext(t.Context(), server.program, append([]string{"health"}, server.args...)...).Run() == nil
		})
	}
	c.run(t, p.agent)
	return p
}

// restartTemporal kills the server and starts it again, as the kubelet does.
func (p *hubPod) restartTemporal(t *testing.T) {
	t.Helper()
	p.agent.temporal.kill(t)
	p.fleet.start(t, p.agent.temporal)
}

// restartAgent kills the agent and starts it again, beside the same server.
func (p *hubPod) restartAgent(t *testing.T) {
	t.Helper()
	p.agent.kill(t)
	p.fleet.start(t, p.agent)
}

// stop ends the Pod as an upgrade does.
func (p *hubPod) stop(t *testing.T) {
	t.Helper()
	p.agent.stop(t)
	if p.agent.temporal != nil {
		p.agent.temporal.stop(t)
	}
}

// end ends the Pod as a node that goes away does.
func (p *hubPod) end(t *testing.T) {
	t.Helper()
	p.agent.kill(t)
	if p.agent.temporal != nil {
		p.agent.temporal.kill(t)
	}
}

// executions are the workflows of the bundled server with a status.
func (p *hubPod) executions(t *testing.T, status string) (ids []string) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), p.fleet.tool("temporal"), "workflow", "list", "--address", p.temporal, "--namespace", "fleetflow",
		"--query", "ExecutionStatus = '"+status+"'", "--output", "json").Output()
	require.NoError(t, err)
	var found []struct {
		Execution struct {
			ID string `json:"workflowId"`
		} `json:"execution"`
	}
	require.NoError(t, json.Unmarshal(out, &found), "%s", out)
	for _, e := range found {
		ids = append(ids, e.Execution.ID)
	}
	return ids
}

// leading is the Pod in whose server alone the workflow of a run is open.
func leading(t *testing.T, pods []*hubPod, run string) (at int) {
	t.Helper()
	await(t, "one server has the workflow of run "+run, func() bool {
		at = -1
		for i, p := range pods {
			if !slices.Contains(p.executions(t, "Running"), "updaterun/"+run) {
				continue
			}
			require.Equal(t, -1, at, "of several servers only that of the agent that leads is used")
			at = i
		}
		return at >= 0
	})
	return at
}

// startRun begins a run of the strategy, with a new content.
func (c *cluster) startRun(t *testing.T, name, strategy string) {
	t.Helper()
	c.apply(t, manifest(fmt.Sprintf(`{apiVersion: v1, kind: ConfigMap, metadata: {name: app, namespace: bundled}, data: {run: %s}}`, name)))
	c.apply(t, manifest(fmt.Sprintf(`
apiVersion: %s
kind: %s
metadata: {name: %s}
spec: {placementName: bundled, stagedRolloutStrategyName: %s, state: Run}`, placements, runKind, name, strategy)))
}

// awaitSoak waits until the stage of a run is done and soaks.
func (c *cluster) awaitSoak(t *testing.T, name string) {
	t.Helper()
	await(t, "run "+name+" soaks", func() bool {
		object, err := c.get(t, placements, runKind, "", name)
		if err != nil {
			return false
		}
		stages, _, _ := unstructured.NestedSlice(object.Object, "status", "stagesStatus")
		if len(stages) == 0 {
			return false
		}
		conditions, _, _ := unstructured.NestedSlice(stages[0].(map[string]any), "conditions")
		return slices.ContainsFunc(conditions, func(entry any) bool { return entry.(map[string]any)["reason"] == "StageUpdatingWaiting" })
	})
}

func (c *cluster) awaitSucceeded(t *testing.T, name string) {
	t.Helper()
	await(t, "run "+name+" succeeds", func() bool { return c.condition(t, placements, runKind, "", name, "Succeeded") })
}

// TestInstalledWithTheBundledTemporal goes from one chart, without a Temporal or a database, to a finished staged run, and loses the
// server, the agent and the Pod in the middle of others, the mode, and of three Pods the one that leads.
func TestInstalledWithTheBundledTemporal(t *testing.T) {
	f := bringUp(t)
	hub, cluster := f.cluster(t, "hub"), f.cluster(t, "member-1")
	bundled := values{"address": ""}
	f.build(t, "hub-agent")
	f.build(t, "bundled-temporal")
	f.build(t, "member-agent")
	began := time.Now()
	pod := hub.startPod(t, bundled)

	cluster.apply(t, manifest(`
apiVersion: v1
kind: Secret
metadata: {name: hub-kubeconfig-secret, namespace: default}
stringData: {token: `+hub.invite(t)+`}`))
	members := cluster.installFrom(t, "default", "member-agent", values{
		"namespace": namespace,
		"config":    values{"hubURL": hub.config.Host, "memberClusterName": member, "hubCA": base64.StdEncoding.EncodeToString(hub.config.CAData)},
	})
	cluster.run(t, members[0])
	await(t, "the member joins", func() bool {
		return hub.condition(t, memberClusters, "MemberCluster", "", member, "Joined")
	})
	hub.apply(t, manifest(`{apiVersion: v1, kind: Namespace, metadata: {name: bundled}}`))
	hub.apply(t, manifest(`
apiVersion: `+placements+`
kind: ClusterResourcePlacement
metadata: {name: bundled}
spec:
  resourceSelectors: [{group: "", version: v1, kind: Namespace, name: bundled}]
  policy: {placementType: PickAll}
  strategy: {type: External}`))
	for name, tasks := range map[string]string{"at-once": "[]", "soaking": "[{type: TimedWait, waitTime: 6s}]"} {
		hub.apply(t, manifest(fmt.Sprintf(`
apiVersion: %s
kind: ClusterStagedUpdateStrategy
metadata: {name: %s}
spec: {stages: [{name: all, afterStageTasks: %s}]}`, placements, name, tasks)))
	}
	hub.startRun(t, "first", "at-once")
	hub.awaitSucceeded(t, "first")
	t.Logf("from the installation to a finished run: %s", time.Since(began).Round(time.Millisecond))
	f.requireWell(t, pod.agent)

	hub.startRun(t, "engine", "soaking")
	hub.awaitSoak(t, "engine")
	pod.restartTemporal(t)
	hub.awaitSucceeded(t, "engine")
	assert.NotContains(t, pod.executions(t, "Completed"), "updaterun/first", "its database begins empty")

	hub.startRun(t, "agent", "soaking")
	hub.awaitSoak(t, "agent")
	pod.restartAgent(t)
	await(t, "the execution of the agent that led before is ended", func() bool { return slices.Contains(pod.executions(t, "Terminated"), "updaterun/agent") })
	hub.awaitSucceeded(t, "agent")

	hub.startRun(t, "pod", "soaking")
	hub.awaitSoak(t, "pod")
	pod.end(t)
	pod = hub.startPod(t, bundled)
	hub.awaitSucceeded(t, "pod")

	for _, moved := range []struct {
		to       string
		temporal values
	}{{"external", values{"address": f.temporal, "mode": "External"}}, {"back", bundled}} {
		name := moved.to
		hub.startRun(t, name, "soaking")
		hub.awaitSoak(t, name)
		pod.stop(t)
		pod = hub.startPod(t, moved.temporal)
		hub.awaitSucceeded(t, name)
	}

	pod.stop(t)
	pods := []*hubPod{hub.startPodOf(t, 3, bundled), hub.startPodOf(t, 3, bundled), hub.startPodOf(t, 3, bundled)}
	hub.startRun(t, "three", "soaking")
	hub.awaitSoak(t, "three")
	at := leading(t, pods, "three")
	pods[at].end(t)
	pods = slices.Delete(pods, at, at+1)
	hub.awaitSucceeded(t, "three")
	assert.True(t, slices.ContainsFunc(pods, func(p *hubPod) bool { return slices.Contains(p.executions(t, "Completed"), "updaterun/three") }))

	hub.delete(t, placements, "ClusterResourcePlacement", "bundled")
	await(t, "what was placed is gone", func() bool {
		_, err := cluster.get(t, "v1", "Namespace", "", "bundled")
		return apierrors.IsNotFound(err)
	})
	hub.delete(t, memberClusters, "MemberCluster", member)
	await(t, "the member has left", func() bool {
		_, err := hub.get(t, memberClusters, "MemberCluster", "", member)
		return apierrors.IsNotFound(err)
	})
	f.requireNothingForbidden(t)
}
