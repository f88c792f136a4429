package apply

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func TestWhyAManifestIsRefused(t *testing.T) {
	gk := schema.GroupKind{Group: "apps", Kind: "Deployment"}
	selector := field.NewPath("spec", "selector")
	secret := Decode(raw(`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a"},"data":{"k":"aHVudGVyMg=="}}`))[0]
	claim := Decode(raw(`{"apiVersion":"v1","kind":"PersistentVolumeClaim","metadata":{"name":"a"}}`))[0]
	plain := Decode(raw(manifestX1))[0]
	tests := map[string]struct {
		err      error
		manifest Manifest
		want     []string
		not      string
	}{
		"a field that must not change is named, and its value is not": {
			apierrors.NewInvalid(gk, "a", field.ErrorList{field.Invalid(selector, "a long value", "field is immutable")}), plain,
			[]string{"spec.selector cannot be changed once the object exists"}, "a long value",
		},
		"the API server's words stay, and nobody is advised to delete a claim": {
			apierrors.NewInvalid(schema.GroupKind{Kind: "PersistentVolumeClaim"}, "a", field.ErrorList{field.Forbidden(field.NewPath("spec"), "spec is immutable after creation except resources.requests\n  core.Spec{a long value}")}), claim,
			[]string{"spec cannot be changed once the object exists: Forbidden: spec is immutable after creation except resources.requests; set it back on the hub", "what this one has is lost when it is deleted"}, "created anew",
		},
		"the difference of a claim is left out": {
			apierrors.NewInvalid(schema.GroupKind{Kind: "PersistentVolumeClaim"}, "a", field.ErrorList{field.Forbidden(field.NewPath("spec"), "spec is immutable\n  core.Spec{a long value}")}), claim,
			[]string{"spec cannot be changed"}, "a long value",
		},
		"a role reference cannot be changed": {
			apierrors.NewInvalid(gk, "a", field.ErrorList{field.Invalid(field.NewPath("roleRef"), "a long value", "cannot change roleRef")}), plain,
			[]string{"roleRef cannot be changed once the object exists; set it back on the hub, or delete the object on the cluster to have it created anew"}, "a long value",
		},
		"nor can most of a StatefulSet": {
			apierrors.NewInvalid(gk, "a", field.ErrorList{field.Forbidden(field.NewPath("spec"), "updates to statefulset spec for fields other than 'replicas' are forbidden")}), plain,
			[]string{"spec cannot be changed once the object exists: Forbidden: updates to statefulset spec for fields other than 'replicas' are forbidden; set it back"}, "a long value",
		},
		"anything else is told as it is": {
			apierrors.NewInvalid(gk, "a", field.ErrorList{field.Required(selector, "say which"), field.Invalid(selector, "x", "field is immutable")}), plain,
			[]string{"spec.selector: Required value: say which"}, "once the object exists",
		},
		"what a Secret keeps is not told": {
			apierrors.NewForbidden(schema.GroupResource{}, "a", errors.New("hunter2 (aHVudGVyMg==) is no good")), secret,
			[]string{"(redacted for security reasons) ((redacted for security reasons)) is no good"}, "hunter2",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			problem := refusalProblem(tc.err, tc.manifest, nil)
			assert.Equal(t, "ManifestApplyFailed", problem.Reason)
			for _, want := range tc.want {
				assert.Contains(t, problem.Message, want)
			}
			assert.NotContains(t, problem.Message, tc.not)
		})
	}
}
