//go:build integration

package pods

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/test/devfleet/controlplane"
	"github.com/fleetflow/fleetflow/test/devfleet/realnode"
	"github.com/fleetflow/fleetflow/test/devfleet/state"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// temporalElsewhere is a Temporal of its own on the hub, whose database lies on a volume.
const temporalElsewhere = `
apiVersion: v1
kind: Namespace
metadata: {name: temporal, labels: {pod-security.kubernetes.io/enforce: restricted}}
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: temporal}
spec:
  capacity: {storage: 1Gi}
  accessModes: [ReadWriteOnce]
  persistentVolumeReclaimPolicy: Retain
  claimRef: {namespace: temporal, name: temporal}
  local: {path: %s}
  nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [%s]}]}]}}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: temporal, namespace: temporal}
spec:
  storageClassName: ""
  accessModes: [ReadWriteOnce]
  resources: {requests: {storage: 1Gi}}
---
apiVersion: v1
kind: Service
metadata: {name: temporal, namespace: temporal}
spec: {selector: {app: temporal}, ports: [{port: 7233}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: temporal, namespace: temporal}
spec:
  strategy: {type: Recreate}
  selector: {matchLabels: {app: temporal}}
  template:
    metadata: {labels: {app: temporal}}
    spec:
      securityContext: {runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}}
      volumes:
      - {name: data, persistentVolumeClaim: {claimName: temporal}}
      - {name: tmp, emptyDir: {}}
      containers:
      - name: temporal
        image: %s
        command: [/temporal, server, start-dev, --ip=0.0.0.0, --headless, --namespace=fleetflow, --db-filename=/data/temporal.db]
        env: [{name: HOME, value: /tmp}]
        volumeMounts: [{name: data, mountPath: /data}, {name: tmp, mountPath: /tmp}]
        readinessProbe: {tcpSocket: {port: 7233}, periodSeconds: 1}
        securityContext: {allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: {drop: [ALL]}}
`

// temporalOnVolume moves the hub to a Temporal in a Pod of its own, whose database lies on a volume, and deletes that Pod in the middle of
// a run. The next Pod has the same workflows: the run goes on, and none of it is started again.
func temporalOnVolume(t *testing.T) {
	node, err := realnode.Load(controlplane.NodeFile(shared.Fleet, state.Hub))
	require.NoError(t, err)
	path, err := node.MakeVolume("temporal")
	require.NoError(t, err)
	image := ""
	for _, container := range leader(t).Spec.InitContainers {
		if container.Name == temporalContainer {
			image = container.Image
		}
	}
	require.NotEmpty(t, image, "the image of the bundled Temporal, which has the server")
	upgradeHub(t, "--set temporal.mode=External --set temporal.address=temporal.temporal.svc:7233") // lets Pods run in that namespace
	apply(t, fmt.Sprintf(temporalElsewhere, path, node.Name, image))
	sh(t, "kubectl --context hub -n temporal rollout status deployment/temporal --timeout=120s")
	beginRun(t, "web")()

	done := beginRun(t, "soaked")
	run := lastRun()
	began := awaitExecution(t, run)
	require.NotEmpty(t, began)
	pod := temporalPod(t)
	sh(t, "kubectl --context hub -n temporal delete pod "+pod.Name+" --timeout=60s")
	done()
	assert.NotEqual(t, pod.UID, temporalPod(t).UID)
	assert.Equal(t, began, awaitExecution(t, run), "the workflow of before has gone on, and none was started in its place")

	upgradeHub(t, "--set temporal.mode=Bundled --set temporal.address=")
	beginRun(t, "web")()
	sh(t, "kubectl --context hub delete ns/temporal pv/temporal --timeout=60s")
}

// temporalPod returns the Pod of the Temporal on a volume.
func temporalPod(t *testing.T) *corev1.Pod {
	t.Helper()
	sh(t, "kubectl --context hub -n temporal rollout status deployment/temporal --timeout=120s")
	deployment := &appsv1.Deployment{}
	require.NoError(t, shared.Hub.Get(t.Context(), client.ObjectKey{Namespace: "temporal", Name: "temporal"}, deployment))
	pods := &corev1.PodList{}
	require.NoError(t, shared.Hub.List(t.Context(), pods, client.InNamespace("temporal"), client.MatchingLabels(deployment.Spec.Selector.MatchLabels)))
	require.Len(t, pods.Items, 1)
	return &pods.Items[0]
}

// awaitExecution waits until Temporal has the workflow of a run, and returns the ID of its execution, which another database does not have.
func awaitExecution(t *testing.T, run string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		out, err := command(t, "kubectl --context hub -n temporal exec deploy/temporal -- /temporal workflow describe --namespace fleetflow --output json"+
			" --workflow-id "+wf.UpdateRunID("", run)).Output()
		described := struct {
			WorkflowExecutionInfo struct {
				Execution struct{ RunID string }
			}
		}{}
		if err == nil {
			require.NoError(t, json.Unmarshal(out, &described), "%s", out)
			return described.WorkflowExecutionInfo.Execution.RunID
		}
		awaitNext(ctx, t, "Temporal has no workflow of "+run)
	}
}
