package work

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/controllers/member/apply"
)

// unschedulableAfter is how long no node must have taken a pod until it counts as unschedulable.
const unschedulableAfter = 60 * time.Second

// podCount is how many pods of a workload there are.
type podCount struct {
	placementv1beta1.ReplicaStatus
	// asked is the fewest replicas that the workload was asked for since its controller has last looked at it.
	asked int32
	// lookAgain is when the pods that are not scheduled are to be looked at again; zero if they need not be.
	lookAgain time.Time
}

// mustLook reports whether the pods are to be looked at again.
func (c *podCount) mustLook(now time.Time) bool {
	return c != nil && !c.lookAgain.IsZero() && !now.Before(c.lookAgain)
}

// earliestLook returns when pods are to be looked at again; zero if none are.
func earliestLook(outcomes []outcome) time.Time {
	return earliestOf(outcomes, func(o outcome) (time.Time, bool) {
		if o.pods == nil {
			return time.Time{}, false
		}
		return o.pods.lookAgain, !o.pods.lookAgain.IsZero()
	})
}

// countPodsOf marks the steps whose pods the Work wants counted, with what the last pass found, whatever the manifest was then.
func countPodsOf(work *placementv1beta1.Work, steps []*step, last []outcome) {
	if len(work.Spec.ReportReplicas) == 0 {
		return
	}
	before := map[apply.Key]outcome{}
	for _, o := range last {
		before[apply.KeyOf(o.id)] = o
	}
	for _, s := range steps {
		id := s.manifest.Identifier
		if slices.Contains(work.Spec.ReportReplicas, int32(id.Ordinal)) { //nolint:gosec // a Work has fewer manifests
			s.countPods = true
			s.countedBefore = before[apply.KeyOf(id)]
		}
	}
}

// podsBefore returns what the last pass counted; nil if nothing, or if the object is another one by now.
func (s *step) podsBefore(uid types.UID) *podCount {
	if s.countedBefore.version.uid != uid {
		return nil
	}
	return s.countedBefore.pods
}

// podCounter counts pods on the member.
type podCounter struct {
	member client.Reader
	clock  clock.PassiveClock
}

// countPods counts the pods of a workload as its own status does. Pods are read only if some are missing, and only those that are
// not running: one that was created since they were last read has not been waiting for long enough.
func (c podCounter) countPods(ctx context.Context, live *unstructured.Unstructured, before *podCount) *podCount {
	count, ok := readPodCount(live, before)
	if !ok || count.Ready >= count.Replicas {
		return count
	}
	now := c.clock.Now()
	if before != nil && before.Unschedulable == 0 && !before.lookAgain.IsZero() && now.Before(before.lookAgain) {
		count.lookAgain = before.lookAgain
		return count
	}
	pods, err := c.listPendingPods(ctx, live)
	if err != nil {
		log.FromContext(ctx).V(1).Info("The pods of a workload could not be read", "object", live.GetNamespace()+"/"+live.GetName(), "cause",
			err.Error())
	}
	count.Unschedulable, count.lookAgain = countUnschedulable(pods, now)
	return count
}

// readPodCount reads off a workload how many pods it asks for and how many are ready; false if its kind does not say. As long as
// its controller has not seen the latest number, there are no more ready pods than it was asked for before.
func readPodCount(live *unstructured.Unstructured, before *podCount) (*podCount, bool) {
	fields, known := rules.ReplicaFieldsOf(live.GroupVersionKind().GroupKind())
	if !known {
		return nil, false
	}
	count := &podCount{ReplicaStatus: placementv1beta1.ReplicaStatus{Replicas: 1}}
	if wanted, found, err := unstructured.NestedInt64(live.Object, fields.Replicas...); err == nil && found {
		count.Replicas = int32(wanted) //nolint:gosec // the API server has checked it
	}
	ready := "readyReplicas"
	if fields.Completions != nil {
		ready = "ready"
	}
	if is, found, err := unstructured.NestedInt64(live.Object, "status", ready); err == nil && found {
		count.Ready = int32(is) //nolint:gosec // it is a number of pods
	}
	count.asked = count.Replicas
	observed, found, err := unstructured.NestedInt64(live.Object, "status", "observedGeneration")
	if err == nil && found && observed < live.GetGeneration() && before != nil {
		count.asked = min(count.asked, before.asked)
		count.Ready = min(count.Ready, before.asked)
	}
	return count, true
}

// listPendingPods lists the pods of a workload that are not running.
func (c podCounter) listPendingPods(ctx context.Context, live *unstructured.Unstructured) ([]corev1.Pod, error) {
	given, found, err := unstructured.NestedMap(live.Object, "spec", "selector")
	if err != nil || !found {
		return nil, err
	}
	var parsed metav1.LabelSelector
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(given, &parsed); err != nil {
		return nil, err
	}
	selector, err := metav1.LabelSelectorAsSelector(&parsed)
	if err != nil {
		return nil, err
	}
	var pods corev1.PodList
	err = c.member.List(ctx, &pods, client.InNamespace(live.GetNamespace()), client.MatchingLabelsSelector{Selector: selector},
		client.MatchingFields{"status.phase": string(corev1.PodPending)})
	return pods.Items, err
}

// countUnschedulable counts the pods that no node has taken for long enough, and says when there may be others.
func countUnschedulable(pods []corev1.Pod, now time.Time) (count int32, lookAgain time.Time) {
	lookAgain = now.Add(unschedulableAfter)
	for i := range pods {
		if !pods[i].DeletionTimestamp.IsZero() {
			continue
		}
		for _, said := range pods[i].Status.Conditions {
			if said.Type != corev1.PodScheduled || said.Status != corev1.ConditionFalse || said.Reason != corev1.PodReasonUnschedulable {
				continue
			}
			passes := said.LastTransitionTime.Add(unschedulableAfter)
			if !now.Before(passes) {
				count++
			} else if passes.Before(lookAgain) {
				lookAgain = passes
			}
		}
	}
	return count, lookAgain
}

// addPodCounts adds the pods of workloads to a report on the same outcomes. While a workload is not complete, counts of the same
// generation of the Work are reported once in an interval.
func (m *reportLimit) addPodCounts(status *placementv1beta1.WorkStatus, outcomes []outcome, previous placementv1beta1.WorkStatus,
	now metav1.Time) {
	tooSoon := now.Time.Before(m.nextReport()) && sameGeneration(status.Conditions, previous.Conditions)
	m.owed = false
	before := map[apply.Key]*placementv1beta1.ReplicaStatus{}
	for _, said := range previous.ManifestConditions {
		before[apply.KeyOf(said.Identifier)] = said.ReplicaStatus
	}
	for i, o := range outcomes {
		if o.pods == nil || o.problem != nil {
			continue
		}
		reported := &o.pods.ReplicaStatus
		switch old := before[apply.KeyOf(o.id)]; {
		case old != nil && equality.Semantic.DeepEqual(old, reported):
		case old != nil && tooSoon && reported.Ready < reported.Replicas:
			reported = old
			m.owed = true
		default:
			m.changed = now.Time
		}
		status.ManifestConditions[i].ReplicaStatus = reported
	}
}

// sameGeneration reports whether two reports are about the same generation of a Work.
func sameGeneration(a, b []metav1.Condition) bool {
	generations := func(conditions []metav1.Condition) []int64 {
		var all []int64
		for _, c := range conditions {
			if c.Type != placementv1beta1.ConditionTypeStatusTrimmed {
				all = append(all, c.ObservedGeneration)
			}
		}
		return slices.Compact(all)
	}
	return slices.Equal(generations(a), generations(b))
}
