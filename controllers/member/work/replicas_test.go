package work

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

func counting(w *placementv1beta1.Work, ordinals ...int32) *placementv1beta1.Work {
	w.Spec.ReportReplicas = ordinals
	return w
}

func TestPodsOfDividedWorkloadsAreCounted(t *testing.T) {
	a := newAgent(t, []client.Object{counting(workWith("w", plainMap, plainDeployment), 1)}, nil)
	a.mustReconcile(t, "w")
	said := a.work(t, "w").Status.ManifestConditions
	assert.Nil(t, said[0].ReplicaStatus, "it is not asked for")
	assert.Equal(t, &placementv1beta1.ReplicaStatus{Replicas: 1}, said[1].ReplicaStatus)

	a.setStatus(t, appsv1.DeploymentStatus{Replicas: 1, ReadyReplicas: 1})
	assert.Equal(t, []string{"hub status Work w"}, a.mustReconcile(t, "w"))
	assert.Equal(t, &placementv1beta1.ReplicaStatus{Replicas: 1, Ready: 1}, a.work(t, "w").Status.ManifestConditions[1].ReplicaStatus)
	a.setStatus(t, appsv1.DeploymentStatus{Replicas: 1, ReadyReplicas: 1, CollisionCount: new(int32)})
	assert.Empty(t, a.mustReconcile(t, "w"), "nothing that is reported has changed")
}

func TestPodsAreNotCountedUnlessAskedFor(t *testing.T) {
	a := newAgent(t, []client.Object{workWith("w", plainDeployment)}, nil)
	a.mustReconcile(t, "w")
	a.setStatus(t, appsv1.DeploymentStatus{Replicas: 1, ReadyReplicas: 1})
	assert.Empty(t, a.mustReconcile(t, "w"))
	assert.Nil(t, a.work(t, "w").Status.ManifestConditions[0].ReplicaStatus)
}

func TestCountsThatChangeAllTheTimeAreReportedOnceASecond(t *testing.T) {
	const large = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"namespace":"n","name":"d"},"spec":{"replicas":9}}`
	a := newAgent(t, []client.Object{counting(workWith("w", large), 0)}, nil)
	a.mustReconcile(t, "w")
	for n := range int32(3) {
		a.setStatus(t, appsv1.DeploymentStatus{Replicas: 9, ReadyReplicas: n + 1})
		assert.Empty(t, a.mustReconcile(t, "w"))
	}
	a.clock.SetTime(a.clock.Now().Add(reportInterval))
	assert.Equal(t, []string{"hub status Work w"}, a.mustReconcile(t, "w"))
	assert.Equal(t, int32(3), a.work(t, "w").Status.ManifestConditions[0].ReplicaStatus.Ready)

	a.setStatus(t, appsv1.DeploymentStatus{Replicas: 9, ReadyReplicas: 9})
	assert.Equal(t, []string{"hub status Work w"}, a.mustReconcile(t, "w"), "that all are ready is reported at once")
	assert.Equal(t, int32(9), a.work(t, "w").Status.ManifestConditions[0].ReplicaStatus.Ready)
}

func TestReadyPodsAreReadOffTheWorkload(t *testing.T) {
	t.Parallel()
	type fields = map[string]any
	object := func(version, kind string, generation int64, spec, status fields) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: fields{
			"apiVersion": version, "kind": kind, "metadata": fields{"name": "x", "generation": generation}, "spec": spec, "status": status,
		}}
	}
	for name, tc := range map[string]struct {
		live   *unstructured.Unstructured
		before *podCount
		want   placementv1beta1.ReplicaStatus
	}{
		"a Deployment": {
			live: object("apps/v1", "Deployment", 1, fields{"replicas": int64(5)}, fields{"observedGeneration": int64(1), "readyReplicas": int64(3)}),
			want: placementv1beta1.ReplicaStatus{Replicas: 5, Ready: 3},
		},
		"one that does not say how many": {
			live: object("apps/v1", "StatefulSet", 1, fields{}, fields{"readyReplicas": int64(1)}),
			want: placementv1beta1.ReplicaStatus{Replicas: 1, Ready: 1},
		},
		"a Job": {
			live: object("batch/v1", "Job", 1, fields{"parallelism": int64(4)}, fields{"active": int64(4), "ready": int64(2)}),
			want: placementv1beta1.ReplicaStatus{Replicas: 4, Ready: 2},
		},
		"one that was asked for fewer and then for more, which its controller has not seen": {
			live:   object("apps/v1", "Deployment", 3, fields{"replicas": int64(8)}, fields{"observedGeneration": int64(1), "readyReplicas": int64(10)}),
			before: &podCount{asked: 3},
			want:   placementv1beta1.ReplicaStatus{Replicas: 8, Ready: 3},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			count, ok := readPodCount(tc.live, tc.before)
			require.True(t, ok)
			assert.Equal(t, tc.want, count.ReplicaStatus)
		})
	}
}

func TestPodsThatNoNodeTakesCountAfterAMinute(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	pending := func(since time.Duration, reason string) corev1.Pod {
		return corev1.Pod{Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: reason, LastTransitionTime: metav1.NewTime(now.Add(-since)),
		}}}}
	}
	leaving := pending(time.Hour, corev1.PodReasonUnschedulable)
	leaving.DeletionTimestamp = new(metav1.NewTime(now))
	count, lookAgain := countUnschedulable([]corev1.Pod{
		pending(time.Minute, corev1.PodReasonUnschedulable), pending(50*time.Second, corev1.PodReasonUnschedulable),
		pending(20*time.Second, corev1.PodReasonUnschedulable), pending(time.Hour, corev1.PodReasonSchedulingGated), leaving,
	}, now)
	assert.Equal(t, int32(1), count)
	assert.Equal(t, now.Add(10*time.Second), lookAgain, "when the next one passes a minute")
	_, lookAgain = countUnschedulable(nil, now)
	assert.Equal(t, now.Add(time.Minute), lookAgain, "no pod that is created now passes it before")
}
