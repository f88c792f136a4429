//go:build integration

package member

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/test/devfleet/access"
	"github.com/fleetflow/fleetflow/test/onemember"
)

// causesAreSaid has pods without a kubelet: the spec says of them what a kubelet would. What else fails is said by Kubernetes' own
// controllers.
func causesAreSaid(s *spec) {
	require.NoError(s, rig.Member.Create(s.ctx, &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.name, Name: "small"},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("2")}},
	}))
	before := s.looks()
	s.place(s.workload("web", 2))
	web := client.ObjectKey{Namespace: s.name, Name: "web"}
	_, err := access.Await(s.ctx, rig.Member, web, func(d *appsv1.Deployment) string {
		if d == nil || d.Status.Replicas < 2 {
			return "it has not two pods yet"
		}
		return ""
	})
	require.NoError(s, err)
	var pods corev1.PodList
	require.NoError(s, rig.Member.List(s.ctx, &pods, client.InNamespace(s.name)))
	require.Len(s, pods.Items, 2)
	exits := corev1.ContainerStatus{
		Name: "web", RestartCount: 3, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}},
		LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 7, Message: "no database"}},
	}
	s.setStatus(&pods.Items[0], corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{exits}})
	s.awaitFailing(s.name, "web", placementv1beta1.ReasonCrashLoop, "1 of 2 pods: CrashLoopBackOff exit 7 of container web: no database")

	ready := corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}
	for i := range pods.Items {
		s.setStatus(&pods.Items[i], ready)
	}
	work := s.awaitAvailable(s.name)
	assert.Len(s, work.Status.ManifestConditions[0].Conditions, 2, "it fails no more")
	const own = 1 // the list above
	assert.LessOrEqual(s, s.looks()-before-own, 5)

	others := s.name + "-others"
	full := onemember.Work(others, s.workload("full", 1),
		s.manifest("v1", "PersistentVolumeClaim", "data", map[string]any{"spec": map[string]any{
			"storageClassName": "fast", "accessModes": []any{"ReadWriteOnce"},
			"resources": map[string]any{"requests": map[string]any{"storage": "1Gi"}},
		}}),
		s.manifest("v1", "Service", "door", map[string]any{"spec": map[string]any{
			"type": "LoadBalancer", "ports": []any{map[string]any{"port": int64(80)}},
		}}))
	require.NoError(s, rig.Hub.Create(s.ctx, full))
	s.awaitFailing(others, "full", placementv1beta1.ReasonQuotaExceeded, "exceeded quota: small")
	s.awaitFailing(others, "data", placementv1beta1.ReasonNoVolume, `"fast" not found`)
	s.awaitFailing(others, "door", placementv1beta1.ReasonNoAddress, "no load balancer has given the Service an address")
}

// workload returns a Deployment.
func (s *spec) workload(name string, replicas int64) map[string]any {
	labels := map[string]any{"app": name}
	return s.manifest("apps/v1", "Deployment", name, map[string]any{"spec": map[string]any{
		"replicas": replicas, "selector": map[string]any{"matchLabels": labels},
		"template": map[string]any{
			"metadata": map[string]any{"labels": labels},
			"spec":     map[string]any{"containers": []any{map[string]any{"name": name, "image": "example.com/" + name}}},
		},
	}})
}

// looks counts how often pods, their logs and events were read.
func (s *spec) looks() int {
	calls, err := rig.Calls(s.ctx, onemember.Member)
	require.NoError(s, err)
	part := calls.Of("pods", "events")
	return part.Total() - part.Writes().Total()
}

// setStatus says what a kubelet would say of a pod.
func (s *spec) setStatus(pod *corev1.Pod, status corev1.PodStatus) {
	data, err := json.Marshal(map[string]any{"status": status})
	require.NoError(s, err)
	require.NoError(s, rig.Member.Status().Patch(s.ctx, pod.DeepCopy(), client.RawPatch(types.MergePatchType, data)))
}

// awaitFailing waits until an object of a Work is reported as failing for a reason, in words that contain these.
func (s *spec) awaitFailing(work, object, reason, words string) {
	s.Helper()
	began := time.Now()
	s.awaitWork(work, func(w *placementv1beta1.Work) string {
		for _, m := range w.Status.ManifestConditions {
			if m.Identifier.Name != object {
				continue
			}
			said := placementv1beta1.FindTrue(m.Conditions, placementv1beta1.ConditionTypeFailing)
			if said != nil && said.Reason == reason && strings.Contains(said.Message, words) {
				return ""
			}
			return fmt.Sprintf("%s says %+v", object, m.Conditions)
		}
		return "there is no report on " + object
	})
	s.Logf("%s of %s was told after %s", reason, object, time.Since(began).Round(time.Millisecond))
}
