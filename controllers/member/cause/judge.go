package cause

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// order has the reasons, the one that is told before all others first: what stands at the beginning of a pod's life explains what
// follows.
var order = []string{
	placementv1beta1.ReasonImageNotPulled,
	placementv1beta1.ReasonOutOfMemory,
	placementv1beta1.ReasonCrashLoop,
	placementv1beta1.ReasonCannotStart,
	placementv1beta1.ReasonUnschedulable,
	placementv1beta1.ReasonQuotaExceeded,
	placementv1beta1.ReasonPodsRefused,
	placementv1beta1.ReasonMountFails,
	placementv1beta1.ReasonEvicted,
	placementv1beta1.ReasonProbeFails,
}

// warning is an event about an object that is not as it should be.
type warning struct {
	about   types.UID
	reason  string
	message string
	// at is when it happened last.
	at time.Time
}

// world is what is known of an object that is not available.
type world struct {
	now      time.Time
	pods     []*corev1.Pod
	warnings []warning
	// lastWords are what containers that exited wrote last.
	lastWords map[wordsKey]string
	// tellsOutput is whether what containers and their probes write is told.
	tellsOutput bool
}

// wordsKey names a container of pods that are alike: one pod speaks for all.
type wordsKey struct{ owner, revision, container string }

// wordsKeyOf returns the key of a container of a pod.
func wordsKeyOf(pod *corev1.Pod, container string) wordsKey {
	key := wordsKey{owner: string(pod.UID), container: container}
	if owner := metav1.GetControllerOf(pod); owner != nil {
		key.owner = string(owner.UID)
	}
	key.revision = pod.Labels["pod-template-hash"] + pod.Labels["controller-revision-hash"]
	return key
}

// finding is what is wrong with one pod.
type finding struct {
	reason string
	text   string
	pod    *corev1.Pod
	// container is the one that exits, if that is what is wrong.
	container string
}

// judge returns why an object is not available; nothing if it is unknown. It also returns the finding that it
// is about, if it is about pods.
func judge(of Subject, w world) (Cause, *finding) {
	all, total, newest := w.judgePods(of)
	refused := of.judgeRefusal(w.warnings, newest)
	worst := slices.MinFunc(append(all, finding{}), func(a, b finding) int {
		return cmp.Or(cmp.Compare(rank(a.reason), rank(b.reason)), cmp.Compare(nameOf(a.pod), nameOf(b.pod)))
	})
	if worst.reason == "" || refused.Reason != "" && rank(refused.Reason) < rank(worst.reason) {
		return refused, nil
	}
	if of.Kind == podKind {
		return newCause(worst.reason, worst.text), &worst
	}
	count := 0
	for _, found := range all {
		if found.reason == worst.reason {
			count++
		}
	}
	return newCause(worst.reason, fmt.Sprintf("%d of %d pods: %s", count, total, worst.text)), &worst
}

// judgePods returns what is wrong with the pods of an object, how many there are, and when the newest was made. Pods that have ended, and
// that their controller replaces, count only if nothing is wrong with others.
func (w world) judgePods(of Subject) (found []finding, total int, newest time.Time) {
	var ended []finding
	for _, pod := range w.pods {
		if !of.owns(pod) || !pod.DeletionTimestamp.IsZero() {
			continue
		}
		if made := pod.CreationTimestamp.Time; made.After(newest) {
			newest = made
		}
		problem, is := w.judgePod(pod)
		switch {
		case pod.Status.Phase == corev1.PodFailed && is:
			ended = append(ended, problem)
			continue
		case is:
			found = append(found, problem)
		}
		total++
	}
	if len(found) == 0 {
		return ended, total + len(ended), newest
	}
	return found, total, newest
}

// rank returns the place of a reason in the order; that of none is behind all.
func rank(reason string) int {
	if at := slices.Index(order, reason); at >= 0 {
		return at
	}
	return len(order)
}

func nameOf(pod *corev1.Pod) string {
	if pod == nil {
		return ""
	}
	return pod.Name
}

// judgeRefusal returns why the object itself cannot have what it asks for: its own status says so, or an event about it. That a pod could
// not be made counts no more once one was made after it.
func (s Subject) judgeRefusal(warnings []warning, newest time.Time) Cause {
	if s.Own.Reason != "" && s.Own.Reason != placementv1beta1.ReasonNoAddress && s.Own.Reason != placementv1beta1.ReasonNoVolume {
		return s.Own
	}
	for _, said := range slices.Backward(warnings) {
		if said.about != s.UID {
			continue
		}
		if s.Own.Reason != "" {
			return newCause(s.Own.Reason, s.Own.Message+": "+said.message)
		}
		if said.reason == "FailedCreate" && !said.at.Before(newest) {
			return refusalOf(said.message)
		}
	}
	return s.Own
}

// refusalOf returns the cause of pods that the API server does not let be created.
func refusalOf(message string) Cause {
	if strings.Contains(message, "exceeded quota") {
		return newCause(placementv1beta1.ReasonQuotaExceeded, message)
	}
	return newCause(placementv1beta1.ReasonPodsRefused, message)
}

// judgePod returns what is wrong with a pod, and whether anything is.
func (w world) judgePod(pod *corev1.Pod) (finding, bool) {
	if pod.Status.Phase == corev1.PodSucceeded || isReady(pod) {
		return finding{}, false
	}
	if pod.Status.Phase == corev1.PodFailed && pod.Status.Reason != "" { // its node has ended it, whatever its containers say
		text := strings.TrimSuffix(pod.Status.Reason+": "+pod.Status.Message, ": ")
		return finding{reason: placementv1beta1.ReasonEvicted, text: text, pod: pod}, true
	}
	var found []finding
	for i := range pod.Status.InitContainerStatuses {
		found = append(found, w.judgeContainer(pod, &pod.Status.InitContainerStatuses[i])...)
	}
	for i := range pod.Status.ContainerStatuses {
		found = append(found, w.judgeContainer(pod, &pod.Status.ContainerStatuses[i])...)
	}
	found = append(found, judgePlace(pod)...)
	found = append(found, w.judgeEvents(pod)...)
	if len(found) == 0 {
		return finding{}, false
	}
	worst := slices.MinFunc(found, func(a, b finding) int { return cmp.Compare(rank(a.reason), rank(b.reason)) })
	worst.pod = pod
	return worst, true
}

func isReady(pod *corev1.Pod) bool {
	for _, said := range pod.Status.Conditions {
		if said.Type == corev1.PodReady {
			return said.Status == corev1.ConditionTrue
		}
	}
	return false
}

// pullFailures are why a container waits while its image cannot be had.
var pullFailures = []string{
	"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "ImageInspectError", "RegistryUnavailable",
	"SignatureValidationFailed",
}

// startFailures are why a container waits that cannot be created or started.
var startFailures = []string{
	"CreateContainerConfigError", "CreateContainerError", "RunContainerError", "PreCreateHookError", "PreStartHookError", "PostStartHookError",
}

// hookFailures are those of them whose message has what a command of the container has written.
var hookFailures = []string{"PreStartHookError", "PostStartHookError"}

// startErrors are how a container ends that was not started. Kubelet tells them a moment later than the above, while it waits to try again.
var startErrors = []string{"StartError", "ContainerCannotRun"}

// recently is how long ago the last end of a container that runs may be to explain why it is not ready.
const recently = 10 * time.Minute

// endOf returns how a container ended, if that explains why it is not ready; nil if not. One that runs again for long has another reason,
// and so has one that ended well and runs again.
func (w world) endOf(c *corev1.ContainerStatus) *corev1.ContainerStateTerminated {
	if ended := c.State.Terminated; ended != nil {
		if ended.ExitCode == 0 {
			return nil
		}
		return ended
	}
	last := c.LastTerminationState.Terminated
	if last == nil || c.Ready {
		return nil
	}
	if runs := c.State.Running; runs != nil && (last.ExitCode == 0 || w.now.Sub(runs.StartedAt.Time) >= recently) {
		return nil
	}
	return last
}

// judgeContainer returns what is wrong with a container: its image, its start, or how it ended.
func (w world) judgeContainer(pod *corev1.Pod, c *corev1.ContainerStatus) []finding {
	if waits := c.State.Waiting; waits != nil {
		switch {
		case slices.Contains(pullFailures, waits.Reason):
			return []finding{{
				reason: placementv1beta1.ReasonImageNotPulled, text: fmt.Sprintf("the image %s cannot be pulled: %s", c.Image, says(waits)),
			}}
		case slices.Contains(startFailures, waits.Reason):
			text := says(waits)
			if slices.Contains(hookFailures, waits.Reason) && (!w.tellsOutput || readsSecrets(pod)) {
				text = waits.Reason // the rest is what the hook has written
			}
			return []finding{{
				reason: placementv1beta1.ReasonCannotStart, text: fmt.Sprintf("container %s cannot start: %s", c.Name, text),
			}}
		}
	}
	if ended := w.endOf(c); ended != nil {
		return w.judgeEnd(pod, c, ended)
	}
	return nil
}

// judgeEnd returns what is wrong with a container that ended: its memory, its start, or what it says.
func (w world) judgeEnd(pod *corev1.Pod, c *corev1.ContainerStatus, ended *corev1.ContainerStateTerminated) []finding {
	if ended.Reason == "OOMKilled" {
		return []finding{{
			reason: placementv1beta1.ReasonOutOfMemory, text: fmt.Sprintf("container %s was killed as it took more memory than it may%s",
				c.Name, limitOf(pod, c.Name)),
		}}
	}
	if slices.Contains(startErrors, ended.Reason) {
		text := fmt.Sprintf("container %s cannot start: %s", c.Name, ended.Reason)
		if ended.Message != "" && !readsSecrets(pod) { // the words of what was to start it; a command may have a value of a Secret
			text += ": " + ended.Message
		}
		return []finding{{reason: placementv1beta1.ReasonCannotStart, text: text}}
	}
	text := fmt.Sprintf("exit %d", ended.ExitCode)
	if ended.Reason != "" && ended.Reason != "Error" && ended.Reason != "Completed" {
		text += " (" + ended.Reason + ")"
	}
	if c.RestartCount > 0 || c.State.Waiting != nil {
		text = "CrashLoopBackOff " + text
	}
	text += " of container " + c.Name
	if words := w.wordsOf(pod, c.Name, ended); words != "" {
		text += ": " + words
	}
	return []finding{{reason: placementv1beta1.ReasonCrashLoop, text: text, container: c.Name}}
}

func says(waits *corev1.ContainerStateWaiting) string {
	if waits.Message == "" {
		return waits.Reason
	}
	return waits.Reason + ": " + waits.Message
}

// limitOf returns what memory a container may take, in parentheses.
func limitOf(pod *corev1.Pod, container string) string {
	for _, list := range [][]corev1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
		for i := range list {
			if limit, set := list[i].Resources.Limits[corev1.ResourceMemory]; set && list[i].Name == container {
				return " (" + limit.String() + ")"
			}
		}
	}
	return ""
}

// maxWords is how many bytes of what a container wrote last are told.
const maxWords = 256

// wordsOf returns what a container that ended wrote last, on one line.
func (w world) wordsOf(pod *corev1.Pod, container string, ended *corev1.ContainerStateTerminated) string {
	if !w.tellsOutput {
		return ""
	}
	if readsSecrets(pod) {
		return "what it wrote is not told, as it reads Secrets"
	}
	words := strings.Join(strings.Fields(cmp.Or(ended.Message, w.lastWords[wordsKeyOf(pod, container)])), " ")
	if len(words) > maxWords {
		words = "…" + strings.ToValidUTF8(words[len(words)-maxWords+len("…"):], "")
	}
	return words
}

// readsSecrets reports whether a pod is given values of Secrets, which it may write to its output. Those by which its image is pulled it
// never sees, and the token of its account is no value that a process prints.
func readsSecrets(pod *corev1.Pod) bool {
	for i := range pod.Spec.Volumes {
		if volumeReadsSecrets(&pod.Spec.Volumes[i]) {
			return true
		}
	}
	return slices.ContainsFunc(append(slices.Clone(pod.Spec.InitContainers), pod.Spec.Containers...), func(c corev1.Container) bool {
		return slices.ContainsFunc(c.EnvFrom, func(from corev1.EnvFromSource) bool { return from.SecretRef != nil }) ||
			slices.ContainsFunc(c.Env, func(env corev1.EnvVar) bool { return env.ValueFrom != nil && env.ValueFrom.SecretKeyRef != nil })
	})
}

func volumeReadsSecrets(volume *corev1.Volume) bool {
	if volume.Secret != nil || volume.CSI != nil {
		return true
	}
	return volume.Projected != nil && slices.ContainsFunc(volume.Projected.Sources, func(from corev1.VolumeProjection) bool {
		return from.Secret != nil
	})
}

// judgePlace returns what is wrong with where a pod is: no node takes it.
func judgePlace(pod *corev1.Pod) []finding {
	for _, said := range pod.Status.Conditions {
		if said.Type == corev1.PodScheduled && said.Status == corev1.ConditionFalse {
			return []finding{{reason: placementv1beta1.ReasonUnschedulable, text: strings.TrimSuffix(said.Reason+": "+said.Message, ": ")}}
		}
	}
	return nil
}

// judgeEvents returns what events say of a pod whose status says nothing: volumes and the sandbox before it starts, probes when it runs.
func (w world) judgeEvents(pod *corev1.Pod) []finding {
	for _, said := range slices.Backward(w.warnings) {
		if said.about != pod.UID {
			continue
		}
		switch said.reason {
		case "FailedMount", "FailedAttachVolume", "FailedMapVolume", "FailedBinding":
			if pod.Status.Phase == corev1.PodPending {
				return []finding{{reason: placementv1beta1.ReasonMountFails, text: said.reason + ": " + said.message}}
			}
		case "FailedCreatePodSandBox", "FailedCreatePodContainer":
			if pod.Status.Phase == corev1.PodPending {
				return []finding{{reason: placementv1beta1.ReasonCannotStart, text: said.reason + ": " + said.message}}
			}
		case "Unhealthy":
			if pod.Status.Phase == corev1.PodRunning {
				return []finding{{reason: placementv1beta1.ReasonProbeFails, text: w.probeText(pod, said.message)}}
			}
		}
	}
	return nil
}

// probeText returns what an event says of a probe. A probe that runs a command has its output in it.
func (w world) probeText(pod *corev1.Pod, message string) string {
	if (w.tellsOutput && !readsSecrets(pod)) || !runsProbes(pod) {
		return message
	}
	which, _, _ := strings.Cut(message, ":")
	return which
}

func runsProbes(pod *corev1.Pod) bool {
	return slices.ContainsFunc(append(slices.Clone(pod.Spec.InitContainers), pod.Spec.Containers...), func(c corev1.Container) bool {
		return slices.ContainsFunc([]*corev1.Probe{c.ReadinessProbe, c.LivenessProbe, c.StartupProbe}, func(p *corev1.Probe) bool {
			return p != nil && p.Exec != nil
		})
	})
}

// judgeOwn returns the cause that the status of an object tells by itself.
func judgeOwn(live *unstructured.Unstructured) Cause {
	kind := live.GroupVersionKind().GroupKind()
	switch kind {
	case serviceKind:
		return newCause(placementv1beta1.ReasonNoAddress, "no load balancer has given the Service an address")
	case claimKind:
		return newCause(placementv1beta1.ReasonNoVolume, "no volume is bound to the claim"+classOf(live))
	case podKind:
		return Cause{}
	}
	said := conditionsOf(live)
	if hasPods[kind] {
		if failure := said["ReplicaFailure"]; failure.Status == corev1.ConditionTrue {
			return refusalOf(failure.Message)
		}
		return Cause{}
	}
	for _, wanted := range []string{"Ready", "Available", "NamesAccepted", "Established", "AbleToScale", "ScalingActive"} {
		if c := said[wanted]; c.Status == corev1.ConditionFalse && (c.Reason != "" || c.Message != "") {
			return newCause(placementv1beta1.ReasonNotReady, fmt.Sprintf("%s is False: %s", wanted, strings.Trim(c.Reason+": "+c.Message, ": ")))
		}
	}
	return Cause{}
}

// ownCondition has the fields of a condition that tell a cause.
type ownCondition struct {
	Type    string                 `json:"type"`
	Status  corev1.ConditionStatus `json:"status"`
	Reason  string                 `json:"reason"`
	Message string                 `json:"message"`
}

// conditionsOf returns the conditions of an object by type; none if they are of another shape.
func conditionsOf(live *unstructured.Unstructured) map[string]ownCondition {
	var shape struct {
		Status struct {
			Conditions []ownCondition `json:"conditions"`
		} `json:"status"`
	}
	byType := map[string]ownCondition{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(live.Object, &shape); err != nil {
		return byType
	}
	for _, c := range shape.Status.Conditions {
		byType[c.Type] = c
	}
	return byType
}

func classOf(live *unstructured.Unstructured) string {
	class, found, err := unstructured.NestedString(live.Object, "spec", "storageClassName")
	if err != nil || !found || class == "" {
		return ""
	}
	return " of the storage class " + class
}
