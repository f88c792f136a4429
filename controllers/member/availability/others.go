package availability

import (
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// checkService: it has the address that its type promises.
func checkService(d *corev1.Service) Status {
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
		// A headless Service has the cluster IP "None": that is the address it asked for.
		return availableIf(d.Spec.ClusterIP != "" || len(d.Spec.ClusterIPs) > 0 && d.Spec.ClusterIPs[0] != "")
	}
}

// checkIngress: it has an address. Many controllers never publish one, so an Ingress without an
// address is not trackable.
func checkIngress(d *networkingv1.Ingress) Status {
	for _, at := range d.Status.LoadBalancer.Ingress {
		if at.IP != "" || at.Hostname != "" {
			return Available
		}
	}
	return NotTrackable
}

// checkPersistentVolume: it can be claimed, or is claimed.
func checkPersistentVolume(d *corev1.PersistentVolume) Status {
	return availableIf(d.Status.Phase == corev1.VolumeAvailable || d.Status.Phase == corev1.VolumeBound)
}

// checkPersistentVolumeClaim: it has its volume.
func checkPersistentVolumeClaim(d *corev1.PersistentVolumeClaim) Status {
	return availableIf(d.Status.Phase == corev1.ClaimBound)
}

// checkCustomResourceDefinition: the API server serves it.
func checkCustomResourceDefinition(d *apiextensionsv1.CustomResourceDefinition) Status {
	isTrue := map[apiextensionsv1.CustomResourceDefinitionConditionType]bool{}
	for _, c := range d.Status.Conditions {
		isTrue[c.Type] = c.Status == apiextensionsv1.ConditionTrue
	}
	return availableIf(isTrue[apiextensionsv1.Established] && isTrue[apiextensionsv1.NamesAccepted])
}

// checkAPIService: the API server reaches the server behind the API.
func checkAPIService(object *unstructured.Unstructured) (Status, error) {
	conditions, err := conditionsOf(object)
	return availableIf(conditions["Available"].Status == corev1.ConditionTrue), err
}

// autoscalerConditions is the annotation in which autoscaling/v1 keeps the conditions.
const autoscalerConditions = "autoscaling.alpha.kubernetes.io/conditions"

// checkHorizontalPodAutoscaler: it can scale, and has the metrics it scales by. If its target has
// been scaled to zero, it is disabled, as it should be.
func checkHorizontalPodAutoscaler(object *unstructured.Unstructured) (Status, error) {
	conditions, err := conditionsOf(object)
	if annotation, ok := object.GetAnnotations()[autoscalerConditions]; err == nil && ok && len(conditions) == 0 {
		var list []condition
		if err = json.Unmarshal([]byte(annotation), &list); err != nil {
			err = fmt.Errorf("reading the annotation %s: %w", autoscalerConditions, err)
		}
		conditions = conditionsByType(list)
	}
	active := conditions["ScalingActive"]
	return availableIf(conditions["AbleToScale"].Status == corev1.ConditionTrue &&
		(active.Status == corev1.ConditionTrue || active.Reason == "ScalingDisabled")), err
}
