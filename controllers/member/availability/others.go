package availability

import (
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// service: it has the address its type promises.
func service(d *corev1.Service) Status {
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

// ingress: it has an address. Many controllers never publish one, so that without it nothing
// can be told.
func ingress(d *networkingv1.Ingress) Status {
	for _, at := range d.Status.LoadBalancer.Ingress {
		if at.IP != "" || at.Hostname != "" {
			return Available
		}
	}
	return NotTrackable
}

// persistentVolume: it can be claimed, or is.
func persistentVolume(d *corev1.PersistentVolume) Status {
	return availableIf(d.Status.Phase == corev1.VolumeAvailable || d.Status.Phase == corev1.VolumeBound)
}

// persistentVolumeClaim: it has its volume.
func persistentVolumeClaim(d *corev1.PersistentVolumeClaim) Status {
	return availableIf(d.Status.Phase == corev1.ClaimBound)
}

// customResourceDefinition: the API server serves it.
func customResourceDefinition(d *apiextensionsv1.CustomResourceDefinition) Status {
	holds := map[apiextensionsv1.CustomResourceDefinitionConditionType]bool{}
	for _, c := range d.Status.Conditions {
		holds[c.Type] = c.Status == apiextensionsv1.ConditionTrue
	}
	return availableIf(holds[apiextensionsv1.Established] && holds[apiextensionsv1.NamesAccepted])
}

// apiService: the API server reaches what serves the API.
func apiService(object *unstructured.Unstructured) (Status, error) {
	conditions, err := conditionsOf(object)
	return availableIf(conditions["Available"].Status == corev1.ConditionTrue), err
}

// autoscalerConditions is the annotation in which version 1 of the autoscalers keeps conditions.
const autoscalerConditions = "autoscaling.alpha.kubernetes.io/conditions"

// horizontalPodAutoscaler: it can scale, and has the figures to scale by. One whose target has
// been scaled to nothing rests, as it should.
func horizontalPodAutoscaler(object *unstructured.Unstructured) (Status, error) {
	conditions, err := conditionsOf(object)
	if noted, ok := object.GetAnnotations()[autoscalerConditions]; err == nil && ok && len(conditions) == 0 {
		var list []condition
		if err = json.Unmarshal([]byte(noted), &list); err != nil {
			err = fmt.Errorf("reading the annotation %s: %w", autoscalerConditions, err)
		}
		conditions = byType(list)
	}
	active := conditions["ScalingActive"]
	return availableIf(conditions["AbleToScale"].Status == corev1.ConditionTrue &&
		(active.Status == corev1.ConditionTrue || active.Reason == "ScalingDisabled")), err
}
