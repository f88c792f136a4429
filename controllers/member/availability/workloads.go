package availability

import (
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// wanted is the number of replicas asked for; the API's default is one.
func wanted(replicas *int32) int32 {
	if replicas == nil {
		return 1
	}
	return *replicas
}

// deployment: all pods run the latest template and are available, and none of an older
// template is left.
func deployment(d *appsv1.Deployment) Status {
	n, s := wanted(d.Spec.Replicas), d.Status
	return availableIf(s.ObservedGeneration >= d.Generation &&
		s.Replicas == n && s.UpdatedReplicas == n && s.AvailableReplicas == n && s.UnavailableReplicas == 0)
}

// statefulSet: all pods are available, and those that are to be of the latest revision are.
func statefulSet(d *appsv1.StatefulSet) Status {
	n, s := wanted(d.Spec.Replicas), d.Status
	if s.ObservedGeneration < d.Generation || s.AvailableReplicas != n {
		return NotYet
	}
	if d.Spec.UpdateStrategy.Type == appsv1.OnDeleteStatefulSetStrategyType {
		return Available // whoever deletes pods decides when they are renewed
	}
	if rolling := d.Spec.UpdateStrategy.RollingUpdate; rolling != nil && rolling.Partition != nil && *rolling.Partition > 0 {
		return availableIf(s.CurrentRevision == s.UpdateRevision || s.UpdatedReplicas >= max(n-*rolling.Partition, 0))
	}
	return availableIf(s.CurrentReplicas == s.UpdatedReplicas && s.CurrentRevision == s.UpdateRevision)
}

// daemonSet: every node that shall run the pod runs the latest one.
func daemonSet(d *appsv1.DaemonSet) Status {
	s := d.Status
	renewed := s.UpdatedNumberScheduled == s.DesiredNumberScheduled ||
		d.Spec.UpdateStrategy.Type == appsv1.OnDeleteDaemonSetStrategyType
	return availableIf(s.ObservedGeneration >= d.Generation &&
		s.NumberAvailable == s.DesiredNumberScheduled && renewed && s.NumberUnavailable == 0)
}

func replicaSet(d *appsv1.ReplicaSet) Status {
	n, s := wanted(d.Spec.Replicas), d.Status
	return availableIf(s.ObservedGeneration >= d.Generation && s.Replicas == n && s.AvailableReplicas == n)
}

func replicationController(d *corev1.ReplicationController) Status {
	n, s := wanted(d.Spec.Replicas), d.Status
	return availableIf(s.ObservedGeneration >= d.Generation && s.Replicas == n && s.AvailableReplicas == n)
}

// pod: it is ready, or has done what it was made for.
func pod(d *corev1.Pod) Status {
	if d.Status.Phase == corev1.PodSucceeded {
		return Available
	}
	for _, c := range d.Status.Conditions {
		if c.Type == corev1.PodReady {
			return availableIf(c.Status == corev1.ConditionTrue)
		}
	}
	return NotYet
}

// job: one of its pods is ready or has succeeded. Whether all will succeed only the end tells.
func job(d *batchv1.Job) Status {
	ready := d.Status.Ready != nil && *d.Status.Ready > 0
	return availableIf(d.Status.Succeeded > 0 || ready)
}

// podDisruptionBudget: its controller has looked at it and guards the pods.
func podDisruptionBudget(d *policyv1.PodDisruptionBudget) Status {
	return availableIf(d.Status.ObservedGeneration > 0 && d.Status.ObservedGeneration >= d.Generation)
}

// openKruiseSet is what tells how ready a CloneSet is.
type openKruiseSet struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Replicas       *int32 `json:"replicas"`
		UpdateStrategy struct {
			Partition *intstr.IntOrString `json:"partition"`
		} `json:"updateStrategy"`
	} `json:"spec"`
	Status struct {
		ObservedGeneration      int64  `json:"observedGeneration"`
		Replicas                int32  `json:"replicas"`
		ReadyReplicas           int32  `json:"readyReplicas"`
		AvailableReplicas       *int32 `json:"availableReplicas"` // old versions have none
		UpdatedReplicas         int32  `json:"updatedReplicas"`
		UpdatedReadyReplicas    int32  `json:"updatedReadyReplicas"`
		ExpectedUpdatedReplicas *int32 `json:"expectedUpdatedReplicas"` // nor this
	} `json:"status"`
}

// cloneSet: all pods are available, none is left over, and as many as the partition lets are
// of the latest revision.
func cloneSet(d *openKruiseSet) Status {
	n, s := wanted(d.Spec.Replicas), d.Status
	available := s.ReadyReplicas
	if s.AvailableReplicas != nil {
		available = *s.AvailableReplicas
	}
	expected := n - heldBack(d.Spec.UpdateStrategy.Partition, n)
	if s.ExpectedUpdatedReplicas != nil {
		expected = *s.ExpectedUpdatedReplicas
	}
	return availableIf(s.ObservedGeneration >= d.Generation && s.Replicas == n && available == n &&
		s.UpdatedReplicas >= expected && s.UpdatedReadyReplicas >= expected)
}

// heldBack is how many of n pods a partition keeps at an older revision. A percentage below
// 100 lets go of one pod at least.
func heldBack(partition *intstr.IntOrString, n int32) int32 {
	if partition == nil {
		return 0
	}
	kept, err := intstr.GetScaledValueFromIntOrPercent(partition, int(n), true)
	if err != nil {
		return 0 // its controller cannot make sense of it either
	}
	if partition.Type == intstr.String && partition.StrVal != "100%" && n > 1 {
		kept = min(kept, int(n)-1)
	}
	return int32(min(max(kept, 0), int(n))) //nolint:gosec // between 0 and n
}
