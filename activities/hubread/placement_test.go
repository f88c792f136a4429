package hubread_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/fleetflow/fleetflow/activities/hubread"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/test/fixture"
)

// Only what the hub says is not there is gone: what cannot be read is not known.
func TestThePlacementOfARecord(t *testing.T) {
	web := placementv1beta1.Scope{Namespace: "team"}.NewPlacement("web")
	web.SetNamespace("team")
	web.SetLabels(map[string]string{"tier": "prod"})
	c := fixture.NewClientBuilder(fixture.Scheme(t)).WithObjects(web).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
			if key.Name == "unread" || key.Name == "" {
				return errors.New("the hub is away")
			}
			return c.Get(ctx, key, o, options...)
		},
	}).Build()
	of := hubread.PlacementOf(t.Context(), c)
	record := func(name string) *fleetflowv1alpha1.AuditRecord {
		return &fleetflowv1alpha1.AuditRecord{Spec: fleetflowv1alpha1.AuditRecordSpec{
			PlacementName: name, SubjectRef: fleetflowv1alpha1.AuditSubjectReference{Namespace: "team"},
		}}
	}
	labels, isThere, err := of(record("web"))
	require.NoError(t, err)
	assert.True(t, isThere)
	assert.Equal(t, "prod", labels["tier"])

	labels, isThere, err = of(record("gone"))
	require.NoError(t, err)
	assert.False(t, isThere)
	assert.Equal(t, map[string]string{fleetflowv1alpha1.PlacementNameLabel: "gone", fleetflowv1alpha1.PlacementNamespaceLabel: "team"}, labels)

	_, _, err = of(record("unread"))
	require.ErrorContains(t, err, "reading placement unread of a record: the hub is away")

	_, isThere, err = of(record(""))
	require.NoError(t, err, "it is of no placement")
	assert.False(t, isThere)
}
