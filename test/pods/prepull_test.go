//go:build integration

package pods

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/test/devfleet/access"
	"github.com/fleetflow/fleetflow/test/devfleet/controlplane"
	"github.com/fleetflow/fleetflow/test/devfleet/realnode"
)

// pullLimit is the waitTime of the task that pulls images in the spec.
const pullLimit = 40 * time.Second

// ahead is a Deployment with the Secret of a registry, and what rolls its next image out: by a run whose stage is approved once its clusters
// have pulled that.
const ahead = `
apiVersion: v1
kind: Namespace
metadata: {name: ahead}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: ahead, namespace: ahead}
spec:
  selector: {matchLabels: {app: ahead}}
  template:
    metadata: {labels: {app: ahead}}
    spec:
      imagePullSecrets: [{name: registry}]
      containers: [{name: main, image: "%s"}]
---
apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: ClusterResourcePlacement
metadata: {name: ahead}
spec:
  resourceSelectors: [{group: "", version: v1, kind: Namespace, name: ahead}]
  policy: {placementType: PickAll}
  strategy: {type: External}
---
apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: ClusterStagedUpdateStrategy
metadata: {name: ahead}
spec:
  stages:
  - name: canary
    labelSelector: {matchLabels: {environment: canary}}
    beforeStageTasks: [{type: PrePull, waitTime: 40s}, {type: Approval, startsAfter: [PrePull]}]
`

const aheadRun = `---
apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: ClusterStagedUpdateRun
metadata: {name: %s}
spec: {placementName: ahead, stagedRolloutStrategyName: ahead, state: Run}
`

// pulledAhead has the node pull the image of a change, with the Secret that is placed, before the stage of its run starts. Of a tag that the
// registry does not have the hub has the registry's words, and the run goes on to what comes next.
func pulledAhead(t *testing.T) {
	const first = realnode.Workload + ":1"
	image := serveImage(t, "ahead/workload")
	registry, _, _ := strings.Cut(image, "/")
	apply(t, "apiVersion: v1\nkind: Namespace\nmetadata: {name: ahead}\n"+pullSecretFor("ahead", registry, registryPassword))
	said, _ := rollAhead(t, "ahead-1", first)
	assert.Contains(t, said.Message, "namespace ahead is not there yet")
	sh(t, "kubectl fleet approve run/ahead-1 --context hub")
	awaitRun(t, "ahead-1")
	awaitRuns(t, first)
	require.NotContains(t, imagesOfMember(t), image)

	said, _ = rollAhead(t, "ahead-2", image)
	assert.Equal(t, placementv1beta1.ReasonStageTaskPrePullPulled, said.Reason)
	assert.Equal(t, "1 of 1 clusters have the images of built-in kinds", said.Message)
	assert.Contains(t, imagesOfMember(t), image, "the node has it before the stage starts")
	deployment := &appsv1.Deployment{}
	require.NoError(t, shared.Members[member].Get(t.Context(), client.ObjectKey{Namespace: "ahead", Name: "ahead"}, deployment))
	assert.Equal(t, first, deployment.Spec.Template.Spec.Containers[0].Image, "nothing is changed yet")
	sh(t, "kubectl fleet approve run/ahead-2 --context hub")
	awaitRun(t, "ahead-2")
	awaitRuns(t, image)
	assertPulledBefore(t, image)

	missing := registry + "/ahead/workload:missing"
	said, took := rollAhead(t, "ahead-3", missing)
	assert.Less(t, took, pullLimit+5*time.Second)
	assert.Equal(t, placementv1beta1.ReasonStageTaskPrePullIncomplete, said.Reason)
	assert.Contains(t, said.Message, "not pulled: "+missing)
	assert.Contains(t, said.Message, "not found")
	assert.NotContains(t, said.Message, registryPassword)
	assert.NotContains(t, imagesOfMember(t), missing)
	pods := &corev1.PodList{}
	require.NoError(t, shared.Members[member].List(t.Context(), pods, client.InNamespace("ahead"), client.HasLabels{"fleetflow.io/image-pull"}))
	assert.Empty(t, pods.Items, "no Pod that pulls images stays")
	sh(t, "kubectl --context hub delete csur/ahead-1 csur/ahead-2 csur/ahead-3 crp/ahead ns/ahead --timeout=60s")
}

// rollAhead begins a run for an image, and returns what became of the pull before its stage, and how long that took. The run waits for its
// approval then.
func rollAhead(t *testing.T, name, image string) (pulled *metav1.Condition, took time.Duration) {
	t.Helper()
	apply(t, fmt.Sprintf(ahead, image))
	began := time.Now()
	apply(t, fmt.Sprintf(aheadRun, name))
	run := awaitTask(t, name, before, placementv1beta1.ConditionTypeApprovalRequestCreated)
	took = time.Since(began)
	pulled = conditionOf(run, before, placementv1beta1.ConditionTypeImagesPulled)
	require.NotNil(t, pulled)
	t.Logf("%s went on after %.1f s: %s", name, took.Seconds(), pulled.Message)
	return pulled, took
}

// imagesOfMember returns the names of the images that the member's node has.
func imagesOfMember(t *testing.T) []string {
	t.Helper()
	status, err := shared.Control.Status(t.Context())
	require.NoError(t, err)
	node, is := status.Component(controlplane.Node(member))
	require.True(t, is)
	images, err := realnode.ImagesOn(t.Context(), shared.Fleet.Tools["ctr"], node.PID)
	require.NoError(t, err)
	return images
}

// awaitRuns waits until the Deployment on the member runs an image.
func awaitRuns(t *testing.T, image string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	_, err := access.Await(ctx, shared.Members[member], client.ObjectKey{Namespace: "ahead", Name: "ahead"}, func(d *appsv1.Deployment) string {
		switch {
		case d == nil:
			return "there is none"
		case d.Spec.Template.Spec.Containers[0].Image != image:
			return "runs " + d.Spec.Template.Spec.Containers[0].Image
		case d.Status.ObservedGeneration != d.Generation || d.Status.UpdatedReplicas != 1 || d.Status.AvailableReplicas != 1 || d.Status.Replicas != 1:
			return fmt.Sprintf("is not available: %+v", d.Status)
		}
		return ""
	})
	require.NoError(t, err)
}

// assertPulledBefore holds that the kubelet has found an image when it started the Pod with it, and has not pulled it for that.
func assertPulledBefore(t *testing.T, image string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	_, err := access.AwaitAll(ctx, shared.Members[member], func(events []*corev1.Event) string {
		if slices.ContainsFunc(events, func(e *corev1.Event) bool {
			return e.Reason == "Pulled" && strings.HasPrefix(e.InvolvedObject.Name, "ahead-") && strings.Contains(e.Message, image) &&
				strings.Contains(e.Message, "already present on machine")
		}) {
			return ""
		}
		return "no event says that the image was there already"
	}, client.InNamespace("ahead"))
	require.NoError(t, err)
}
