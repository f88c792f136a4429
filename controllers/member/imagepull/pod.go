package imagepull

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
)

// Label has, on a Pod that pulls images, the UID of the question that it is for.
const Label = fleetflowv1alpha1.GroupName + "/image-pull"

const (
	// nothing is the command of the containers. No image has it: the container does not start, and its image is there then.
	nothing = "/fleetflow-pulls-the-image-and-runs-nothing"
	// containerPrefix begins the names of the containers.
	containerPrefix = "image-"
	// user is that of the containers, whatever that of the image is.
	user = 65532
)

// newPod returns the Pod of a task. This is the only form of Pods that the agent starts by itself: it runs nothing, mounts nothing, has no
// rights and no token, and ends by itself.
func newPod(t task, question types.UID, left time.Duration) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: t.pods.Namespace, GenerateName: "image-pull-", Labels: map[string]string{Label: string(question)},
		},
		Spec: corev1.PodSpec{
			NodeName: t.node, Tolerations: t.pods.Tolerations,
			RestartPolicy: corev1.RestartPolicyNever, TerminationGracePeriodSeconds: new(int64(0)),
			ActiveDeadlineSeconds:        new(max(int64(left/time.Second), 1)),
			AutomountServiceAccountToken: new(false), EnableServiceLinks: new(false),
			SecurityContext: &corev1.PodSecurityContext{
				RunAsNonRoot: new(true), RunAsUser: new(int64(user)), RunAsGroup: new(int64(user)),
				SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
		},
	}
	for _, secret := range t.pods.PullSecrets {
		pod.Spec.ImagePullSecrets = append(pod.Spec.ImagePullSecrets, corev1.LocalObjectReference{Name: secret})
	}
	for i, image := range t.images {
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{
			Name: nameOf(i), Image: image, ImagePullPolicy: t.pods.PullPolicy, Command: []string{nothing},
			Resources: corev1.ResourceRequirements{Requests: little(1, 1<<20), Limits: little(10, 16<<20)},
			SecurityContext: &corev1.SecurityContext{
				AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true),
				Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
			},
		})
	}
	return pod
}

// nameOf returns the name of the container with an image of a task. A container of another name is one that the cluster has added.
func nameOf(image int) string { return fmt.Sprintf("%s%d", containerPrefix, image) }

// little returns resources that a quota can count and every node has.
func little(milliCPU, memory int64) corev1.ResourceList {
	return corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewMilliQuantity(milliCPU, resource.DecimalSI),
		corev1.ResourceMemory: *resource.NewQuantity(memory, resource.BinarySI),
	}
}

// verdict is what is known of an image on a node.
type verdict struct {
	outcome fleetflowv1alpha1.RehearsalOutcome
	message string
}

// refusals are why a container waits whose image the registry does not give.
var refusals = map[string]bool{
	"ErrImagePull": true, "ImagePullBackOff": true, "InvalidImageName": true, "RegistryUnavailable": true, "SignatureValidationFailed": true,
}

// afterPull are why a container waits whose image is there: the kubelet pulls it before it makes the container.
var afterPull = map[string]bool{
	"CreateContainerConfigError": true, "CreateContainerError": true, "RunContainerError": true, "CrashLoopBackOff": true,
}

// judge returns what the status of a Pod says about the images of its containers, by their names, and whether it will say no more. The
// cluster may have changed the names of images, as it does for the Pods of the change.
func judge(pod *corev1.Pod) (found map[string]verdict, over bool) {
	found = map[string]verdict{}
	for i := range pod.Status.ContainerStatuses {
		status := &pod.Status.ContainerStatuses[i]
		name := status.Name
		waiting := status.State.Waiting
		switch {
		case waiting != nil && refusals[waiting.Reason]:
			found[name] = verdict{fleetflowv1alpha1.RehearsalRefused, harmless(waiting.Reason + ": " + waiting.Message)}
		case status.ImageID != "", waiting != nil && afterPull[waiting.Reason]:
			found[name] = verdict{outcome: fleetflowv1alpha1.RehearsalPulled}
		case waiting != nil && strings.HasPrefix(waiting.Reason, "ErrImage"), waiting != nil && waiting.Reason == "ImageInspectError":
			found[name] = verdict{fleetflowv1alpha1.RehearsalUnknown, harmless(waiting.Reason + ": " + waiting.Message)}
		}
	}
	if pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded || !pod.DeletionTimestamp.IsZero() {
		addUnknown(found, pod)
	}
	return found, !slices.ContainsFunc(pod.Spec.Containers, func(c corev1.Container) bool {
		_, known := found[c.Name]
		return !known && strings.HasPrefix(c.Name, containerPrefix)
	})
}

// addUnknown adds the images about which a Pod that has ended says nothing.
func addUnknown(found map[string]verdict, pod *corev1.Pod) {
	why := "its Pod has ended before"
	if pod.Status.Reason != "" {
		why = harmless(pod.Status.Reason + ": " + pod.Status.Message)
	}
	for i := range pod.Spec.Containers {
		name := pod.Spec.Containers[i].Name
		if _, known := found[name]; !known {
			found[name] = verdict{fleetflowv1alpha1.RehearsalUnknown, why}
		}
	}
}
