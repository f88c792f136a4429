package availability

import (
	"cmp"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// wantedReplicas returns the number of replicas in the spec; the API's default is one.
func wantedReplicas(replicas *int32) int32 {
	if replicas == nil {
		return 1
	}
	return *replicas
}

// checkDeployment: all pods have the latest template and are available, and none has an older
// template.
func checkDeployment(d *appsv1.Deployment) Status {
	n := wantedReplicas(d.Spec.Replicas)
	s := d.Status
	return availableIf(s.ObservedGeneration >= d.Generation &&
		s.Replicas == n && s.UpdatedReplicas == n && s.AvailableReplicas == n && s.UnavailableReplicas == 0)
}

// checkStatefulSet: all pods are available, and those that the partition does not hold back have
// the latest revision.
func checkStatefulSet(d *appsv1.StatefulSet) Status {
	n := wantedReplicas(d.Spec.Replicas)
	s := d.Status
	if s.ObservedGeneration < d.Generation || s.AvailableReplicas != n {
		return NotYet
	}
	if d.Spec.UpdateStrategy.Type == appsv1.OnDeleteStatefulSetStrategyType {
		return Available // pods are renewed when a user deletes them
	}
	if rolling := d.Spec.UpdateStrategy.RollingUpdate; rolling != nil && rolling.Partition != nil && *rolling.Partition > 0 {
		return availableIf(s.CurrentRevision == s.UpdateRevision || s.UpdatedReplicas >= max(n-*rolling.Partition, 0))
	}
	return availableIf(s.CurrentReplicas == s.UpdatedReplicas && s.CurrentRevision == s.UpdateRevision)
}

// checkDaemonSet: every node that should run the pod runs the latest one.
func checkDaemonSet(d *appsv1.DaemonSet) Status {
	s := d.Status
	renewed := s.UpdatedNumberScheduled == s.DesiredNumberScheduled ||
		d.Spec.UpdateStrategy.Type == appsv1.OnDeleteDaemonSetStrategyType
	return availableIf(s.ObservedGeneration >= d.Generation &&
		s.NumberAvailable == s.DesiredNumberScheduled && renewed && s.NumberUnavailable == 0)
}

func checkReplicaSet(d *appsv1.ReplicaSet) Status {
	n := wantedReplicas(d.Spec.Replicas)
	s := d.Status
	return availableIf(s.ObservedGeneration >= d.Generation && s.Replicas == n && s.AvailableReplicas == n)
}

func checkReplicationController(d *corev1.ReplicationController) Status {
	n := wantedReplicas(d.Spec.Replicas)
	s := d.Status
	return availableIf(s.ObservedGeneration >= d.Generation && s.Replicas == n && s.AvailableReplicas == n)
}

// checkPod: it is ready, or has succeeded.
func checkPod(d *corev1.Pod) Status {
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

// checkJob: it is complete, or one of its pods is ready or has succeeded. Whether all succeed is
// only known at the end.
func checkJob(d *batchv1.Job) Status {
	switch {
	case findJobCondition(d, batchv1.JobFailed) != nil:
		return Failed
	case findJobCondition(d, batchv1.JobComplete) != nil:
		return Available
	}
	ready := d.Status.Ready != nil && *d.Status.Ready > 0
	return availableIf(d.Status.Succeeded > 0 || ready)
}

// findJobCondition returns the condition of a type if it is True.
func findJobCondition(d *batchv1.Job, kind batchv1.JobConditionType) *batchv1.JobCondition {
	for i := range d.Status.Conditions {
		if c := &d.Status.Conditions[i]; c.Type == kind && c.Status == corev1.ConditionTrue {
			return c
		}
	}
	return nil
}

// checkPodDisruptionBudget: its controller has observed it and guards the pods.
func checkPodDisruptionBudget(d *policyv1.PodDisruptionBudget) Status {
	return availableIf(d.Status.ObservedGeneration > 0 && d.Status.ObservedGeneration >= d.Generation)
}

// openKruiseSet has the fields of a CloneSet that tell its availability, in v1alpha1 as in v1beta1.
type openKruiseSet struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Replicas       *int32 `json:"replicas"`
		UpdateStrategy struct {
			Type          string              `json:"type"`
			Partition     *intstr.IntOrString `json:"partition"` // v1alpha1
			RollingUpdate struct {
				Partition *intstr.IntOrString `json:"partition"` // v1beta1
			} `json:"rollingUpdate"`
		} `json:"updateStrategy"`
	} `json:"spec"`
	Status struct {
		ObservedGeneration      int64  `json:"observedGeneration"`
		Replicas                int32  `json:"replicas"`
		ReadyReplicas           int32  `json:"readyReplicas"`
		AvailableReplicas       *int32 `json:"availableReplicas"` // absent in old versions
		UpdatedReplicas         int32  `json:"updatedReplicas"`
		UpdatedReadyReplicas    int32  `json:"updatedReadyReplicas"`
		ExpectedUpdatedReplicas *int32 `json:"expectedUpdatedReplicas"` // absent in old versions
	} `json:"status"`
}

// checkCloneSet: all pods are available, there is none too many, and as many as the partition
// allows have the latest revision.
func checkCloneSet(d *openKruiseSet) Status {
	n := wantedReplicas(d.Spec.Replicas)
	s := d.Status
	available := s.ReadyReplicas
	if s.AvailableReplicas != nil {
		available = *s.AvailableReplicas
	}
	strategy := d.Spec.UpdateStrategy
	expected := n - heldBackReplicas(cmp.Or(strategy.Partition, strategy.RollingUpdate.Partition), n)
	switch {
	case strategy.Type == "OnDelete": // v1beta1
		expected = 0 // pods are renewed when a user deletes them
	case s.ExpectedUpdatedReplicas != nil:
		expected = *s.ExpectedUpdatedReplicas
	}
	return availableIf(s.ObservedGeneration >= d.Generation && s.Replicas == n && available == n &&
		s.UpdatedReplicas >= expected && s.UpdatedReadyReplicas >= expected)
}

// heldBackReplicas returns how many of n pods a partition keeps at an older revision. A percentage below
// 100 keeps at most n-1.
func heldBackReplicas(partition *intstr.IntOrString, n int32) int32 {
	if partition == nil {
		return 0
	}
	kept, err := intstr.GetScaledValueFromIntOrPercent(partition, int(n), true)
	if err != nil {
		return 0 // its controller cannot parse it either
	}
	if partition.Type == intstr.String && partition.StrVal != "100%" && n > 1 {
		kept = min(kept, int(n)-1)
	}
	return int32(min(max(kept, 0), int(n))) //nolint:gosec // between 0 and n
}
