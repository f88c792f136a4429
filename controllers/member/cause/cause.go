// Package cause tells why an object on a member is not available: an image that cannot be pulled, a container that exits again and
// again, no node with enough room. The object itself says nothing of that; its pods and the events about them do.
//
// judge.go decides by a fixed order from pods, events and the object's own status (pure). finder.go looks at them, only of objects that
// are not available, by watches.
package cause

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
)

// Cause is why an object is not available. The zero value says that no cause is known.
type Cause struct {
	// Reason is one of the reasons of the condition Failing on manifests.
	Reason string
	// Message says which pods it concerns, and what the cluster says of them.
	Message string
}

// maxMessage is how many bytes the message of a cause takes.
const maxMessage = 768

// newCause returns a cause whose message can be shown: the words in it come from registries, containers and controllers.
func newCause(reason, message string) Cause {
	return Cause{Reason: reason, Message: clusterv1beta1.CutText(clusterv1beta1.Printable(message), maxMessage)}
}

// Subject is an object that is not available, whose cause is looked for.
type Subject struct {
	UID       types.UID
	Kind      schema.GroupKind
	Namespace string
	Name      string
	// Pods selects its pods; nil if it has none.
	Pods labels.Selector
	// Own is the cause that its own status tells.
	Own Cause
}

// hasPods are the kinds whose objects own pods, by a selector.
var hasPods = map[schema.GroupKind]bool{
	{Group: "apps", Kind: "Deployment"}:         true,
	{Group: "apps", Kind: "StatefulSet"}:        true,
	{Group: "apps", Kind: "DaemonSet"}:          true,
	{Group: "apps", Kind: "ReplicaSet"}:         true,
	{Group: "", Kind: "ReplicationController"}:  true,
	{Group: "batch", Kind: "Job"}:               true,
	{Group: "apps.kruise.io", Kind: "CloneSet"}: true,
}

var (
	podKind        = schema.GroupKind{Kind: "Pod"}
	serviceKind    = schema.GroupKind{Kind: "Service"}
	claimKind      = schema.GroupKind{Kind: "PersistentVolumeClaim"}
	deploymentKind = schema.GroupKind{Group: "apps", Kind: "Deployment"}
)

// SubjectOf returns what is looked at to find out why an object is not available, and whether that takes more than the object itself.
func SubjectOf(live *unstructured.Unstructured) (of Subject, looks bool) {
	of = Subject{
		UID: live.GetUID(), Kind: live.GroupVersionKind().GroupKind(), Namespace: live.GetNamespace(), Name: live.GetName(),
		Own: judgeOwn(live),
	}
	if hasPods[of.Kind] {
		of.Pods = selectorOf(live, of.Kind)
		return of, true
	}
	return of, of.Kind == podKind || of.Kind == serviceKind || of.Kind == claimKind
}

// selectorOf returns the selector of a workload's pods; one that selects nothing if the workload has none.
func selectorOf(live *unstructured.Unstructured, kind schema.GroupKind) labels.Selector {
	if kind.Group == "" { // a ReplicationController has a map
		set, _, err := unstructured.NestedStringMap(live.Object, "spec", "selector")
		if err != nil || len(set) == 0 {
			return labels.Nothing()
		}
		return labels.SelectorFromSet(set)
	}
	given, found, err := unstructured.NestedMap(live.Object, "spec", "selector")
	if err != nil || !found {
		return labels.Nothing()
	}
	var parsed metav1.LabelSelector
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(given, &parsed); err != nil {
		return labels.Nothing()
	}
	selector, err := metav1.LabelSelectorAsSelector(&parsed)
	if err != nil {
		return labels.Nothing()
	}
	return selector
}

// owns reports whether a pod belongs to an object. That of a Deployment belongs to a ReplicaSet, whose name has the hash that the pod
// has as a label.
func (s Subject) owns(pod *corev1.Pod) bool {
	if s.Kind == podKind {
		return pod.UID == s.UID
	}
	owner := metav1.GetControllerOf(pod)
	if owner == nil {
		return false
	}
	if s.Kind == deploymentKind {
		return owner.Kind == "ReplicaSet" && owner.Name == s.Name+"-"+pod.Labels["pod-template-hash"]
	}
	return owner.UID == s.UID
}
