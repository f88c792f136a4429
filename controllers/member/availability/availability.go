// Package availability tells whether an object on a member is ready to serve. The package is pure:
// it maps an object to a status.
//
// Built-in kinds are judged by their own fields (workloads.go, others.go), every other kind by its
// conditions, if it follows the conventions (conventions.go).
package availability

import (
	"maps"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Status says how ready an object is.
type Status string

const (
	// Available objects serve as their manifest says.
	Available Status = "Available"
	// NotYet objects are not available now, and possibly never.
	NotYet Status = "NotYet"
	// Failed objects never become available, as their own status says.
	Failed Status = "Failed"
	// NotTrackable objects have no field that tells their readiness, so it is assumed.
	NotTrackable Status = "NotTrackable"
)

// check returns the status of an object of one kind. An error means that the object does not have
// the shape of its kind.
type check func(object *unstructured.Unstructured) (Status, error)

// checks has the kinds that are not judged by the conventions. The version of a kind does not
// matter.
var checks = mergeChecks(
	map[schema.GroupKind]check{
		{Group: "apps", Kind: "Deployment"}:            checkTyped(checkDeployment),
		{Group: "apps", Kind: "StatefulSet"}:           checkTyped(checkStatefulSet),
		{Group: "apps", Kind: "DaemonSet"}:             checkTyped(checkDaemonSet),
		{Group: "apps", Kind: "ReplicaSet"}:            checkTyped(checkReplicaSet),
		{Group: "", Kind: "ReplicationController"}:     checkTyped(checkReplicationController),
		{Group: "", Kind: "Pod"}:                       checkTyped(checkPod),
		{Group: "batch", Kind: "Job"}:                  checkTyped(checkJob),
		{Group: "policy", Kind: "PodDisruptionBudget"}: checkTyped(checkPodDisruptionBudget),
		{Group: "apps.kruise.io", Kind: "CloneSet"}:    checkTyped(checkCloneSet),

		{Group: "", Kind: "Service"}:                                      checkTyped(checkService),
		{Group: "networking.k8s.io", Kind: "Ingress"}:                     checkTyped(checkIngress),
		{Group: "", Kind: "PersistentVolume"}:                             checkTyped(checkPersistentVolume),
		{Group: "", Kind: "PersistentVolumeClaim"}:                        checkTyped(checkPersistentVolumeClaim),
		{Group: "autoscaling", Kind: "HorizontalPodAutoscaler"}:           checkHorizontalPodAutoscaler,
		{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}: checkTyped(checkCustomResourceDefinition),
		{Group: "apiregistration.k8s.io", Kind: "APIService"}:             checkAPIService,
	},
	dataKinds("",
		"Namespace", "Secret", "ConfigMap", "ServiceAccount", "LimitRange", "ResourceQuota", "Endpoints", "PodTemplate"),
	dataKinds("rbac.authorization.k8s.io", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"),
	dataKinds("networking.k8s.io", "NetworkPolicy", "IngressClass"),
	dataKinds("discovery.k8s.io", "EndpointSlice"),
	dataKinds("storage.k8s.io", "StorageClass", "VolumeAttributesClass", "CSIDriver", "CSINode", "CSIStorageCapacity"),
	dataKinds("apps", "ControllerRevision"),
	dataKinds("scheduling.k8s.io", "PriorityClass"),
	dataKinds("node.k8s.io", "RuntimeClass"),
	dataKinds("coordination.k8s.io", "Lease"),
	dataKinds("admissionregistration.k8s.io",
		"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration",
		"ValidatingAdmissionPolicyBinding", "MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding"),
	// A CronJob is available once it has its schedule, which may be due tomorrow.
	dataKinds("batch", "CronJob"),
)

// Of returns the status of an object as it was read from the cluster.
func Of(object *unstructured.Unstructured) (Status, error) {
	if check, ok := checks[object.GroupVersionKind().GroupKind()]; ok {
		return check(object)
	}
	return checkByConvention(object)
}

// Failure returns why an object has failed for good, in the words of its own status; nothing if it has not.
func Failure(object *unstructured.Unstructured) string {
	if object.GroupVersionKind().GroupKind() != (schema.GroupKind{Group: "batch", Kind: "Job"}) {
		return ""
	}
	job := &batchv1.Job{}
	if runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, job) != nil {
		return "" // Of returns the error
	}
	if failed := findJobCondition(job, batchv1.JobFailed); failed != nil {
		return condition{Reason: failed.Reason, Message: failed.Message}.text()
	}
	return ""
}

// dataKinds lists kinds of a group that are data: they are available once they exist.
func dataKinds(group string, kinds ...string) map[schema.GroupKind]check {
	out := make(map[schema.GroupKind]check, len(kinds))
	for _, kind := range kinds {
		out[schema.GroupKind{Group: group, Kind: kind}] = alwaysAvailable
	}
	return out
}

func alwaysAvailable(*unstructured.Unstructured) (Status, error) { return Available, nil }

func mergeChecks(parts ...map[schema.GroupKind]check) map[schema.GroupKind]check {
	out := map[schema.GroupKind]check{}
	for _, part := range parts {
		maps.Copy(out, part)
	}
	return out
}

// checkTyped turns a check of a Go type into a check of an unstructured object.
func checkTyped[T any](statusOf func(*T) Status) check {
	return func(object *unstructured.Unstructured) (Status, error) {
		out := new(T)
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, out); err != nil {
			return NotYet, err
		}
		return statusOf(out), nil
	}
}

func availableIf(ok bool) Status {
	if ok {
		return Available
	}
	return NotYet
}
