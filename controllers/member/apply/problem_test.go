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
