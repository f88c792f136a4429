package work

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/controllers/member/apply"
)

// comesAfter says that an object cannot be judged before another one of the same change is there.
func comesAfter(found apply.Rehearsal, what string) apply.Rehearsal {
	found.Outcome = fleetflowv1alpha1.RehearsalUnknown
	found.By = ""
	found.Message = "it comes after " + what + " of the same change, and can be judged only then"
	return found
}

// softened returns what is said of an object that is refused now, by what the same change brings before it. Definition is that of its
// kind, nil if the change has none. It is pure.
func softened(found apply.Rehearsal, definition *unstructured.Unstructured, earlier []fleetflowv1alpha1.RehearsedObject) apply.Rehearsal {
	if definition != nil && found.By == "the API server" && isChangedBy(earlier, "CustomResourceDefinition", definition.GetName()) {
		if why := unfit(found.Object, definition); why != "" {
			found.Message = why
			return found
		}
		return comesAfter(found, "CustomResourceDefinition "+definition.GetName())
	}
	for _, before := range earlier {
		if isWritten(before) && mayLift(found.RehearsedObject, before.Object) {
			return comesAfter(found, before.Object.Kind+" "+before.Object.Name)
		}
	}
	return found
}

// isWritten reports whether an object would be another one after the change, as far as that is known.
func isWritten(o fleetflowv1alpha1.RehearsedObject) bool {
	switch o.Outcome {
	case fleetflowv1alpha1.RehearsalCreates, fleetflowv1alpha1.RehearsalChanges, fleetflowv1alpha1.RehearsalUnknown:
		return true
	}
	return false
}

func isChangedBy(earlier []fleetflowv1alpha1.RehearsedObject, kind, name string) bool {
	return slices.ContainsFunc(earlier, func(o fleetflowv1alpha1.RehearsedObject) bool {
		return o.Object.Kind == kind && o.Object.Name == name && isWritten(o)
	})
}

// mayLift reports whether an object that comes before may be what another one is refused for now: its quota, its limits, the labels of its
// Namespace, a policy, or what it refers to by name.
func mayLift(refused fleetflowv1alpha1.RehearsedObject, before placementv1beta1.WorkResourceIdentifier) bool {
	inNamespace := before.Namespace == refused.Object.Namespace
	switch before.Kind {
	case "Namespace":
		return before.Name == refused.Object.Namespace && refused.By == "PodSecurity"
	case "ResourceQuota", "ValidatingAdmissionPolicy":
		return (inNamespace || before.Namespace == "") && refused.By == before.Kind+" "+before.Name
	case "LimitRange":
		return inNamespace && refused.By == before.Kind
	case "ServiceAccount", "PriorityClass", "RuntimeClass":
		return (inNamespace || before.Namespace == "") && saysMissing(refused.Message, before.Name)
	}
	return false
}

// saysMissing reports whether a message says that an object of a name is not found.
func saysMissing(message, name string) bool {
	return strings.Contains(message, "not found") && strings.Contains(message, name) ||
		strings.Contains(message, "no PriorityClass with name "+name+" was found")
}

// unfit returns why an object of a kind that the same change defines would not be served; nothing if it would.
func unfit(id placementv1beta1.WorkResourceIdentifier, definition *unstructured.Unstructured) string {
	scope, _, _ := unstructured.NestedString(definition.Object, "spec", "scope")
	if (scope == "Cluster") != (id.Namespace == "") && scope != "" {
		return fmt.Sprintf("CustomResourceDefinition %s of the same change has the scope %s, which the object contradicts", definition.GetName(), scope)
	}
	versions, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
	serves := func(item any) bool {
		version, _ := item.(map[string]any)
		return version["name"] == id.Version && version["served"] == true
	}
	if slices.ContainsFunc(versions, serves) {
		return ""
	}
	return fmt.Sprintf("CustomResourceDefinition %s of the same change does not serve version %s", definition.GetName(), id.Version)
}

// overQuota returns which of the objects that would be created in a namespace would find a quota of objects used up, by their index, and
// the quota. It is pure.
func overQuota(quotas []corev1.ResourceQuota, created []placementv1beta1.WorkResourceIdentifier) map[int]string {
	over := map[int]string{}
	for i := range quotas {
		quota := &quotas[i]
		if len(quota.Spec.Scopes) > 0 || quota.Spec.ScopeSelector != nil {
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(quota.Status.Hard)) {
			hard := quota.Status.Hard[name]
			used := quota.Status.Used[name]
			free := hard.Value() - used.Value()
			for at, id := range created {
				if _, isOver := over[at]; isOver || !isCountedBy(name, id) {
					continue
				}
				if free--; free < 0 {
					over[at] = quota.Name
				}
			}
		}
	}
	return over
}

// isCountedBy reports whether a quota of objects counts an object.
func isCountedBy(name corev1.ResourceName, id placementv1beta1.WorkResourceIdentifier) bool {
	counted := string(name)
	if id.Group == "" {
		return counted == id.Resource || counted == "count/"+id.Resource
	}
	return counted == "count/"+id.Resource+"."+id.Group
}
