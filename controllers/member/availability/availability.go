// Package availability tells whether an object on a member is ready to serve. The package
// is pure: an object in, a verdict out.
//
// Kinds that Kubernetes itself has are judged each by its own fields (workloads.go, others.go);
// every other kind by what it says about itself, if it follows the conventions (conventions.go).
package availability

import (
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Status says how ready an object is.
type Status string

const (
	// Available objects serve as their manifest says.
	Available Status = "Available"
	// NotYet means that the object is on its way; it may also stay there for ever.
	NotYet Status = "NotYet"
	// NotTrackable objects have nothing to tell their readiness by, so it is assumed.
	NotTrackable Status = "NotTrackable"
)

// check tells the verdict on one kind of object. An error means that the object does not
// have the shape of its kind.
type check func(object *unstructured.Unstructured) (Status, error)

// checks has the kinds that do not follow the conventions for others. It does not depend on
// the version a kind is served in.
var checks = merged(
	map[schema.GroupKind]check{
		{Group: "apps", Kind: "Deployment"}:            typed(deployment),
		{Group: "apps", Kind: "StatefulSet"}:           typed(statefulSet),
		{Group: "apps", Kind: "DaemonSet"}:             typed(daemonSet),
		{Group: "apps", Kind: "ReplicaSet"}:            typed(replicaSet),
		{Group: "", Kind: "ReplicationController"}:     typed(replicationController),
		{Group: "", Kind: "Pod"}:                       typed(pod),
		{Group: "batch", Kind: "Job"}:                  typed(job),
		{Group: "policy", Kind: "PodDisruptionBudget"}: typed(podDisruptionBudget),
		{Group: "apps.kruise.io", Kind: "CloneSet"}:    typed(cloneSet),

		{Group: "", Kind: "Service"}:                                      typed(service),
		{Group: "networking.k8s.io", Kind: "Ingress"}:                     typed(ingress),
		{Group: "", Kind: "PersistentVolume"}:                             typed(persistentVolume),
		{Group: "", Kind: "PersistentVolumeClaim"}:                        typed(persistentVolumeClaim),
		{Group: "autoscaling", Kind: "HorizontalPodAutoscaler"}:           horizontalPodAutoscaler,
		{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}: typed(customResourceDefinition),
		{Group: "apiregistration.k8s.io", Kind: "APIService"}:             apiService,
	},
	data("",
		"Namespace", "Secret", "ConfigMap", "ServiceAccount", "LimitRange", "ResourceQuota", "Endpoints", "PodTemplate"),
	data("rbac.authorization.k8s.io", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"),
	data("networking.k8s.io", "NetworkPolicy", "IngressClass"),
	data("discovery.k8s.io", "EndpointSlice"),
	data("storage.k8s.io", "StorageClass", "VolumeAttributesClass", "CSIDriver", "CSINode", "CSIStorageCapacity"),
	data("apps", "ControllerRevision"),
	data("scheduling.k8s.io", "PriorityClass"),
	data("node.k8s.io", "RuntimeClass"),
	data("coordination.k8s.io", "Lease"),
	data("admissionregistration.k8s.io",
		"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration",
		"ValidatingAdmissionPolicyBinding", "MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding"),
	// A CronJob serves by having its schedule, which may be due tomorrow.
	data("batch", "CronJob"),
)

// Of tells how ready an object is, as read from the cluster.
func Of(object *unstructured.Unstructured) (Status, error) {
	if check, ok := checks[object.GroupVersionKind().GroupKind()]; ok {
		return check(object)
	}
	return byConvention(object)
}

// data lists kinds of a group that are data: to exist is to be available.
func data(group string, kinds ...string) map[schema.GroupKind]check {
	out := make(map[schema.GroupKind]check, len(kinds))
	for _, kind := range kinds {
		out[schema.GroupKind{Group: group, Kind: kind}] = onceApplied
	}
	return out
}

func onceApplied(*unstructured.Unstructured) (Status, error) { return Available, nil }

func merged(parts ...map[schema.GroupKind]check) map[schema.GroupKind]check {
	out := map[schema.GroupKind]check{}
	for _, part := range parts {
		maps.Copy(out, part)
	}
	return out
}

// typed turns a check of a Go type into a check of an unstructured object.
func typed[T any](verdict func(*T) Status) check {
	return func(object *unstructured.Unstructured) (Status, error) {
		out := new(T)
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, out); err != nil {
			return NotYet, err
		}
		return verdict(out), nil
	}
}

func availableIf(ok bool) Status {
	if ok {
		return Available
	}
	return NotYet
}
