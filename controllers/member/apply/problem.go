package apply

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/kubernetes/scheme"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/apis/quantity"
)

// Problem is why a manifest cannot be applied, as it is reported.
type Problem struct {
	// Reason is the reason of the condition.
	Reason string
	// Message is the message of the condition.
	Message string
	// NoRetry is whether another attempt cannot succeed until the manifest or the object changes.
	NoRetry bool
	// Refused is whether the cluster does not let the fleet place the object at all: an object that was applied before is
	// released, and stays.
	Refused bool
	// by is who has the object or a field of it, or who does not let the fleet place it; empty if cause tells.
	by string
	// cause is the answer of the API server, if there is one.
	cause error
}

// notAppliedText begins the message of problems that prevented a manifest from being applied.
const notAppliedText = "Failed to apply the manifest"

// refusalProblem returns why the API server refused a manifest.
func refusalProblem(err error, m Manifest, live *unstructured.Unstructured) *Problem {
	if isFieldConflict(err) {
		return fieldConflictProblem(err)
	}
	message := fmt.Sprintf("%s: %v", notAppliedText, err)
	if fields, words := fixedFields(err); len(fields) > 0 {
		message = fmt.Sprintf("%s: %s cannot be changed once the object exists%s; %s", notAppliedText, strings.Join(fields, ", "), words,
			adviceOnFixed(m))
	}
	return &Problem{Reason: placementv1beta1.ReasonManifestApplyFailed, Message: redactSecrets(message, m.Object, live), cause: err}
}

// unknownKindProblem says that the cluster does not serve a kind.
func unknownKindProblem(gvk schema.GroupVersionKind) *Problem {
	return &Problem{
		Reason: placementv1beta1.ReasonDecodingErred,
		Message: fmt.Sprintf("The cluster has no kind %s in %s; the manifest is tried again once the cluster has it, for example after its CustomResourceDefinition is installed",
			gvk.Kind, gvk.GroupVersion()),
	}
}

// quantityProblem says that an object of a built-in kind has a quantity that the API server would compute for a long time, with every
// attempt to apply it; nil if it has none.
func quantityProblem(object *unstructured.Unstructured) *Problem {
	typed, err := scheme.Scheme.New(object.GroupVersionKind())
	if err != nil {
		return nil // the cluster knows the kind by a definition, which bounds its texts itself
	}
	if err = quantity.CheckContent(reflect.TypeOf(typed), object.Object); err != nil {
		return &Problem{Reason: placementv1beta1.ReasonDecodingErred, Message: fmt.Sprintf("The object is not applied: %v", err), NoRetry: true}
	}
	return nil
}

// scopeProblem says that an object has a namespace though its kind has none on the cluster, or the
// other way round; nil if neither.
func scopeProblem(id placementv1beta1.WorkResourceIdentifier, scope meta.RESTScope) *Problem {
	var remedy string
	switch namespaced := scope.Name() == meta.RESTScopeNameNamespace; {
	case namespaced && id.Namespace == "":
		remedy = "its kind is namespaced on this cluster, and the object names no namespace: set metadata.namespace on the hub"
	case !namespaced && id.Namespace != "":
		remedy = "its kind is cluster-scoped on this cluster, and the object names a namespace: remove metadata.namespace on the hub; " +
			"in an envelope it has to be in a ClusterResourceEnvelope"
	default:
		return nil
	}
	return applyFailedProblem(fmt.Sprintf("%s: %s is refused: %s", notAppliedText, KeyOf(id), remedy))
}

// isFieldConflict tells a conflict over the ownership of fields from a conflict of versions, which
// another read resolves.
func isFieldConflict(err error) bool {
	return apierrors.IsConflict(err) && apierrors.HasStatusCause(err, metav1.CauseTypeFieldManagerConflict)
}

func fieldConflictProblem(err error) *Problem {
	var owned, managers []string
	for _, cause := range causesOf(err) {
		owner := strings.TrimPrefix(cause.Message, "conflict with ")
		if manager := managerIn(owner); !slices.Contains(managers, manager) {
			managers = append(managers, manager)
		}
		owned = append(owned, fmt.Sprintf("%s is owned by %s", cause.Field, owner))
	}
	return &Problem{
		Reason: placementv1beta1.ReasonApplyConflictWithOtherApplier,
		Message: fmt.Sprintf("%s: other appliers own fields of it: %s; leave these fields to one of them, or set serverSideApplyConfig.force to take them over",
			notAppliedText, strings.Join(owned, ", ")),
		NoRetry: true, by: strings.Join(managers, ", "),
	}
}

// managerIn returns the name of a manager in what API servers say of a conflict: "kubectl" using v1.
func managerIn(words string) string {
	name, _, quoted := strings.Cut(strings.TrimPrefix(words, `"`), `"`)
	if !quoted {
		return words
	}
	return name
}

// fixedTexts are in the words of API servers about fields that must not be changed.
var fixedTexts = []string{"immutable", "may not change", "cannot change roleRef", "updates to statefulset spec for fields other than"}

// fixedFields returns the fields that must not be changed, if that is the only reason for the refusal, and what the API server says
// of them in the first line of its answer. A message that has the value of the field as well is left out: values are long.
func fixedFields(err error) (fields []string, words string) {
	if !apierrors.IsInvalid(err) {
		return nil, ""
	}
	for _, cause := range causesOf(err) {
		isFixed := func(text string) bool { return strings.Contains(cause.Message, text) }
		if !slices.ContainsFunc(fixedTexts, isFixed) {
			return nil, ""
		}
		if !slices.Contains(fields, cause.Field) {
			fields = append(fields, cause.Field)
		}
		if cause.Type == metav1.CauseType(field.ErrorTypeForbidden) {
			said, _, _ := strings.Cut(cause.Message, "\n")
			words = ": " + said
		}
	}
	return fields, words
}

// adviceOnFixed returns what to do about a field that cannot be changed. What is deleted with its data is not to be deleted for it.
func adviceOnFixed(m Manifest) string {
	switch m.Object.GroupVersionKind().GroupKind() {
	case schema.GroupKind{Kind: "PersistentVolumeClaim"}, schema.GroupKind{Kind: "PersistentVolume"}, schema.GroupKind{Kind: "Namespace"},
		schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}:
		return "set it back on the hub. If it has to change, place another object beside this one and move the data: what this one has is lost when it is deleted"
	}
	return "set it back on the hub, or delete the object on the cluster to have it created anew"
}

func causesOf(err error) []metav1.StatusCause {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return nil
	}
	return status.Status().Details.Causes
}
