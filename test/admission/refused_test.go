//go:build integration

package admission

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fleetflow/fleetflow/test/refused"
)

// fewest is how many bad manifests the tables have at least.
const fewest = 150

func TestBadManifestsAreRefused(t *testing.T) {
	tables, err := refused.Tables()
	require.NoError(t, err)
	count := 0
	for _, table := range tables {
		count += len(table.Created) + len(table.Updated) + len(table.Status)
		t.Run(table.About, func(t *testing.T) {
			base := &unstructured.Unstructured{Object: table.Base}
			admin.admittedObject(t, base)
			for _, tc := range table.Created {
				t.Run(tc.It, func(t *testing.T) { refuseCreated(t, tc, base) })
			}
			for _, tc := range table.Updated {
				t.Run(tc.It, func(t *testing.T) { refuseUpdated(t, tc, base) })
			}
			for _, tc := range table.Status {
				t.Run(tc.It, func(t *testing.T) { refuseStatus(t, tc, base) })
			}
		})
	}
	t.Logf("%d bad manifests", count)
	assert.GreaterOrEqual(t, count, fewest)
}

func refuseCreated(t *testing.T, tc refused.Case, base *unstructured.Unstructured) {
	if len(tc.Fine) > 0 {
		admin.admittedObject(t, patched(base, tc.Fine))
	}
	options := strict()
	if tc.Lenient {
		options.FieldValidation = metav1.FieldValidationIgnore
	}
	wrong := patched(base, tc.Edit)
	resource, err := admin.resource(wrong)
	require.NoError(t, err)
	stored, err := resource.Create(t.Context(), wrong, options)
	if err == nil {
		remove(t, stored)
	}
	requireReasons(t, err, tc)
}

func refuseUpdated(t *testing.T, tc refused.Case, base *unstructured.Unstructured) {
	stored := admin.createObject(t, patched(base, tc.Before))
	if len(tc.Fine) > 0 {
		assert.NoError(t, admin.update(t.Context(), stored, tc.Fine, metav1.DryRunAll), "the neighbour that is right")
	}
	requireReasons(t, admin.update(t.Context(), stored, tc.Edit), tc)
}

func refuseStatus(t *testing.T, tc refused.Case, base *unstructured.Unstructured) {
	stored := admin.createObject(t, base)
	if len(tc.Fine) > 0 {
		require.NoError(t, admin.updateStatus(t, stored, tc.Fine), "the neighbour that is right")
		stored = current(t, stored)
	}
	requireReasons(t, admin.updateStatus(t, stored, tc.Edit), tc)
}

// requireReasons asserts that the server refused in the given words, of the field, and for nothing else.
func requireReasons(t testing.TB, err error, tc refused.Case) {
	t.Helper()
	requireRefusal(t, err, tc.Refusal.Message)
	var status apierrors.APIStatus
	require.ErrorAs(t, err, &status)
	details := status.Status().Details
	if details == nil {
		return
	}
	var reasons []string
	named := false
	for _, cause := range details.Causes {
		if !strings.Contains(cause.Message, "some validation rules were not checked") {
			reasons = append(reasons, cause.Field+": "+cause.Message)
		}
		named = named || cause.Field == tc.Refusal.Field && string(cause.Type) == tc.Refusal.Reason
	}
	assert.LessOrEqual(t, len(reasons), max(tc.Most, 1), "wrong in more than one way: %q", reasons)
	if tc.Refusal.Reason != "" {
		assert.True(t, named, "no cause has the field %s and the reason %s: %v", tc.Refusal.Field, tc.Refusal.Reason, details.Causes)
	}
}

func current(t testing.TB, object *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	resource, err := admin.resource(object)
	require.NoError(t, err)
	found, err := resource.Get(t.Context(), object.GetName(), metav1.GetOptions{})
	require.NoError(t, err)
	return found
}
