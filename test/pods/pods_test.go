//go:build integration

package pods

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/test/devfleet/access"
)

// TestPods takes one fleet from its installation to its outages: each spec finds what those before it have left. Those that wait for
// different things run beside each other.
func TestPods(t *testing.T) {
	if !t.Run("a hub and a member are installed", installed) {
		return
	}
	beside(t, map[string]func(*testing.T){
		"the dashboard is installed":                                    dashboardInstalled,
		"a staged run rolls a Deployment out":                           rollsOut,
		"why a workload fails is told on the hub":                       causesAreTold,
		"an image is pulled by its digest with a secret that is placed": pulledWithSecret,
		"metrics are read through the Service":                          metricsScraped,
		"what the quickstart for kind places is placed":                 quickstartWalked,
	})
	beside(t, map[string]func(*testing.T){
		"a hub agent is replaced in the middle of a run": agentReplaced,
		"the token of the member is replaced":            tokenReplaced,
	})
	t.Run("the API server of the hub is away", func(t *testing.T) { apiServerAway(t, awayBriefly, 2) })
	t.Run("the hub agent that leads is killed, and then its Temporal", agentKilled)
}

// TestPodsLong takes the fleet through what takes long: longer outages, and changes of the hub's release.
func TestPodsLong(t *testing.T) {
	if !t.Run("an earlier commit is installed, and upgraded within a run", upgraded) || !t.Run("a hub and a member are installed", installed) {
		return
	}
	t.Run("an image is pulled before a stage", pulledAhead)
	t.Run("the API server of the hub is away for longer", func(t *testing.T) { apiServerAway(t, *away, 2, 1) })
	t.Run("the hub agent that leads is frozen", leaderFrozen)
	t.Run("a hub agent is upgraded to too little memory", tooLittleMemory)
	t.Run("the node of the hub agents is drained", drained)
	t.Run("workers of their own, and Temporal is cut off", workersApart)
	t.Run("Temporal with a volume, and its Pod is deleted", temporalOnVolume)
	t.Run("the policies of the hub are kept", policiesKept)
}

// beside runs specs beside each other, and returns when all have ended.
func beside(t *testing.T, specs map[string]func(*testing.T)) {
	t.Helper()
	var all sync.WaitGroup
	for name, spec := range specs {
		all.Go(func() { t.Run(name, spec) })
	}
	all.Wait()
}

const (
	// metricsFrom is a namespace on the hub in which Pods may run, for those that read metrics.
	metricsFrom = "monitoring"
	initialize  = "kubectl fleet init --context hub --chart deploy/charts/hub-agent"
	join        = "kubectl fleet join " + member + " --context hub --member-context " + member + " --chart deploy/charts/member-agent --hub-address "
)

// isInstalled says that an earlier test has installed the agents.
var isInstalled bool

// installed installs both agents as a user does, with restricted Pod Security enforced, and has the tests of the charts look.
func installed(t *testing.T) {
	if isInstalled {
		return
	}
	sh(t, initialize+" --set replicaCount=2 --set workloadNamespaces={"+metricsFrom+"}")
	sh(t, join+hubForMembers()+" --set pullImages=true")
	sh(t, "kubectl --context hub label membercluster "+member+" environment=canary --overwrite")
	for context, c := range map[string]client.WithWatch{"hub": shared.Hub, member: shared.Members[member]} {
		namespace := &corev1.Namespace{}
		require.NoError(t, c.Get(t.Context(), client.ObjectKey{Name: system}, namespace))
		assert.Equal(t, "restricted", namespace.Labels["pod-security.kubernetes.io/enforce"], context)
	}
	beside(t, map[string]func(*testing.T){
		"helm test of the hub": func(t *testing.T) { sh(t, "helm test hub-agent -n "+system+" --kube-context hub --logs --timeout 90s") },
		"helm test of the member": func(t *testing.T) {
			sh(t, "helm test member-agent -n "+system+" --kube-context "+member+" --logs --timeout 90s")
		},
	})
	assertNoRestarts(t, shared.Hub)
	assertNoRestarts(t, shared.Members[member])
	isInstalled = !t.Failed()
}

func dashboardInstalled(t *testing.T) {
	sh(t, "helm upgrade --install fleet-dashboard deploy/charts/fleet-dashboard -n fleet-system --kube-context hub --set url=https://fleet.example.com,tokens.enabled=true --wait --timeout 90s")
	sh(t, "helm test fleet-dashboard -n fleet-system --kube-context hub --logs --timeout 90s")
}

// assertNoRestarts holds that no container of the agents has ended.
func assertNoRestarts(t *testing.T, c client.Client) {
	t.Helper()
	pods := &corev1.PodList{}
	require.NoError(t, c.List(t.Context(), pods, client.InNamespace(system)))
	for _, pod := range pods.Items {
		for _, container := range pod.Status.ContainerStatuses {
			assert.Zero(t, container.RestartCount, "%s of %s", container.Name, pod.Name)
		}
	}
}

// web is a namespace with a Deployment in two versions, and the placement that a run rolls out.
const web = `
apiVersion: v1
kind: Namespace
metadata: {name: web}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: web
        image: devfleet.local/workload:%d
        args: [serve, --say, version %[1]d]
        ports: [{containerPort: 8080}]
        readinessProbe: {httpGet: {path: /ready, port: 8080}, periodSeconds: 1}
---
apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: ClusterResourcePlacement
metadata: {name: web}
spec:
  resourceSelectors: [{group: "", version: v1, kind: Namespace, name: web}]
  policy: {placementType: PickAll}
  strategy: {type: External}
---
apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: ClusterStagedUpdateStrategy
metadata: {name: web}
spec:
  stages:
  - name: canary
    labelSelector: {matchLabels: {environment: canary}}
---
apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: ClusterStagedUpdateStrategy
metadata: {name: soaked}
spec:
  stages:
  - name: canary
    labelSelector: {matchLabels: {environment: canary}}
    afterStageTasks: [{type: TimedWait, waitTime: 12s}]
`

const webRun = `
apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: ClusterStagedUpdateRun
metadata: {name: %s}
spec: {placementName: web, stagedRolloutStrategyName: %s, state: Run}
`

// runs is how many runs the specs have made so far.
var runs int

// beginRun applies the other version of the Deployment, makes a run for it with a strategy, and returns what waits until the run has
// succeeded and all Pods are of that version. With the strategy soaked the run is under way for some seconds.
func beginRun(t *testing.T, strategy string) func() {
	t.Helper()
	runs++
	name := lastRun()
	version := 2 - runs%2
	apply(t, fmt.Sprintf(web, version))
	apply(t, fmt.Sprintf(webRun, name, strategy))
	return func() {
		t.Helper()
		awaitRun(t, name)
		awaitVersion(t, version)
	}
}

// lastRun returns the name of the run that was begun last.
func lastRun() string { return fmt.Sprintf("web-%d", runs) }

// rollsOut rolls a Deployment out by a run, and then its next version.
func rollsOut(t *testing.T) {
	beginRun(t, "web")()
	beginRun(t, "web")()
	assert.Contains(t, sh(t, "kubectl --context "+member+" -n web exec deploy/web -- /workload crash --code 0 --say exec-reaches-it"), "exec-reaches-it")
}

// awaitRun waits until a run has succeeded.
func awaitRun(t *testing.T, name string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	_, err := access.Await(ctx, shared.Hub, client.ObjectKey{Name: name}, func(run *placementv1beta1.ClusterStagedUpdateRun) string {
		if run == nil {
			return "there is none"
		}
		condition := meta.FindStatusCondition(run.Status.Conditions, string(placementv1beta1.StagedUpdateRunConditionSucceeded))
		if condition == nil || condition.Status != metav1.ConditionTrue {
			return fmt.Sprintf("has not succeeded: %+v", run.Status.Conditions)
		}
		return ""
	})
	require.NoError(t, err)
}

// awaitVersion waits until all Pods of the Deployment on the member are ready, of a version.
func awaitVersion(t *testing.T, version int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	_, err := access.Await(ctx, shared.Members[member], client.ObjectKey{Namespace: "web", Name: "web"}, func(web *appsv1.Deployment) string {
		switch {
		case web == nil:
			return "there is none"
		case web.Spec.Template.Spec.Containers[0].Image != fmt.Sprintf("devfleet.local/workload:%d", version):
			return "is of another version"
		case web.Status.ObservedGeneration != web.Generation || web.Status.UpdatedReplicas != 2 || web.Status.ReadyReplicas != 2 || web.Status.Replicas != 2:
			return fmt.Sprintf("is not ready: %+v", web.Status)
		}
		return ""
	})
	require.NoError(t, err)
}
