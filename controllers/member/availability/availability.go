// Package availability tells whether an object on a member is ready to serve. The package
// is pure: an object in, a verdict out.
package availability

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Verdict says how ready an object is.
type Verdict string

const (
	// Available objects serve as their manifest says.
	Available Verdict = "Available"
	// NotYet means that the object is on its way; it may also stay there for ever.
	NotYet Verdict = "NotYet"
	// NotTrackable objects have nothing to tell their readiness by, so it is assumed.
	NotTrackable Verdict = "NotTrackable"
)

// check tells the verdict on one kind of object. An error means that the object does not
// have the shape of its kind.
type check func(object *unstructured.Unstructured) (Verdict, error)

var checks = map[schema.GroupKind]check{
	{Group: "apps", Kind: "Deployment"}:                               typed(deployment),
	{Group: "apps", Kind: "StatefulSet"}:                              typed(statefulSet),
	{Group: "apps", Kind: "DaemonSet"}:                                typed(daemonSet),
	{Group: "", Kind: "Service"}:                                      typed(service),
	{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}: typed(customResourceDefinition),

	{Group: "", Kind: "Namespace"}:                                   onceApplied,
	{Group: "", Kind: "Secret"}:                                      onceApplied,
	{Group: "", Kind: "ConfigMap"}:                                   onceApplied,
	{Group: "", Kind: "ServiceAccount"}:                              onceApplied,
	{Group: "", Kind: "LimitRange"}:                                  onceApplied,
	{Group: "", Kind: "ResourceQuota"}:                               onceApplied,
	{Group: "rbac.authorization.k8s.io", Kind: "Role"}:               onceApplied,
	{Group: "rbac.authorization.k8s.io", Kind: "RoleBinding"}:        onceApplied,
	{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"}:        onceApplied,
	{Group: "rbac.authorization.k8s.io", Kind: "ClusterRoleBinding"}: onceApplied,
	{Group: "networking.k8s.io", Kind: "NetworkPolicy"}:              onceApplied,
	{Group: "networking.k8s.io", Kind: "IngressClass"}:               onceApplied,
	{Group: "storage.k8s.io", Kind: "StorageClass"}:                  onceApplied,
	{Group: "storage.k8s.io", Kind: "CSIDriver"}:                     onceApplied,
	{Group: "storage.k8s.io", Kind: "CSINode"}:                       onceApplied,
	{Group: "storage.k8s.io", Kind: "CSIStorageCapacity"}:            onceApplied,
	{Group: "apps", Kind: "ControllerRevision"}:                      onceApplied,
	{Group: "scheduling.k8s.io", Kind: "PriorityClass"}:              onceApplied,
}

// Of tells how ready an object is, as read from the cluster.
func Of(object *unstructured.Unstructured) (Verdict, error) {
	check, ok := checks[object.GroupVersionKind().GroupKind()]
	if !ok {
		return NotTrackable, nil
	}
	return check(object)
}

// onceApplied is for objects that are data: to exist is to be available.
func onceApplied(*unstructured.Unstructured) (Verdict, error) { return Available, nil }

// typed turns a check of a Go type into a check of an unstructured object.
func typed[T any](verdict func(*T) Verdict) check {
	return func(object *unstructured.Unstructured) (Verdict, error) {
		out := new(T)
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, out); err != nil {
			return NotYet, err
		}
		return verdict(out), nil
	}
}

func availableIf(ok bool) Verdict {
	if ok {
		return Available
	}
	return NotYet
}

// wanted is the number of replicas asked for; the API's default is one.
func wanted(replicas *int32) int32 {
	if replicas == nil {
		return 1
	}
	return *replicas
}

// deployment: all pods run the latest template and are available, and none of an older
// template is left.
func deployment(d *appsv1.Deployment) Verdict {
	n, s := wanted(d.Spec.Replicas), d.Status
	return availableIf(s.ObservedGeneration >= d.Generation &&
		s.Replicas == n && s.UpdatedReplicas == n && s.AvailableReplicas == n && s.UnavailableReplicas == 0)
}

// statefulSet: all pods are of the latest revision and available.
func statefulSet(d *appsv1.StatefulSet) Verdict {
	n, s := wanted(d.Spec.Replicas), d.Status
	return availableIf(s.ObservedGeneration >= d.Generation &&
		s.AvailableReplicas == n && s.CurrentReplicas == s.UpdatedReplicas && s.CurrentRevision == s.UpdateRevision)
}

// daemonSet: every node that shall run the pod runs the latest one.
func daemonSet(d *appsv1.DaemonSet) Verdict {
	s := d.Status
	return availableIf(s.ObservedGeneration >= d.Generation &&
		s.NumberAvailable == s.DesiredNumberScheduled && s.UpdatedNumberScheduled == s.DesiredNumberScheduled &&
		s.NumberUnavailable == 0)
}

// service: it has the address its type promises.
func service(d *corev1.Service) Verdict {
	switch d.Spec.Type {
	case corev1.ServiceTypeExternalName:
		return NotTrackable
	case corev1.ServiceTypeLoadBalancer:
		for _, ingress := range d.Status.LoadBalancer.Ingress {
			if ingress.IP != "" || ingress.Hostname != "" {
				return Available
			}
		}
		return NotYet
	default:
		// A headless Service says "None": it has the address it asked for.
		return availableIf(d.Spec.ClusterIP != "" || len(d.Spec.ClusterIPs) > 0 && d.Spec.ClusterIPs[0] != "")
	}
}

// customResourceDefinition: the API server serves it.
func customResourceDefinition(d *apiextensionsv1.CustomResourceDefinition) Verdict {
	holds := map[apiextensionsv1.CustomResourceDefinitionConditionType]bool{}
	for _, c := range d.Status.Conditions {
		holds[c.Type] = c.Status == apiextensionsv1.ConditionTrue
	}
	return availableIf(holds[apiextensionsv1.Established] && holds[apiextensionsv1.NamesAccepted])
}
